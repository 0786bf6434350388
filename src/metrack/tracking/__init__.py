"""``metrack track``: from files and pipes of feedback to a state on disk, and what reads it."""
