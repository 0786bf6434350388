"""The subcommands of ``metrack``; each imports what it needs when it runs."""
