"""When a state is saved."""

from collections.abc import Callable
from typing import NamedTuple

from metrack.storage import StateFolder
from metrack.tracking.pieces import Piece
from metrack.tracking.quarantine import Quarantine
from metrack.tracking.state import Tracking


class SavePolicy(NamedTuple):
    """When to save: after so many pairs, or seconds, whichever comes first."""

    pairs: int = 1_000_000
    seconds: float = 30.0


class Saver:
    """Saves when it is time, if there is anything new."""

    def __init__(
        self,
        policy: SavePolicy,
        folder: StateFolder,
        tracking: Tracking,
        quarantine: Quarantine,
        clock: Callable[[], float],
    ) -> None:
        self.policy, self.folder, self.clock = policy, folder, clock
        self.tracking, self.quarantine = tracking, quarantine
        self.last: Piece | None = None  # where there is anything new
        self.pairs, self.since = 0, clock()

    def count(self, piece: Piece) -> None:
        """Take note of what was learned."""
        self.last = piece
        self.pairs += piece.n_pairs
        self.quarantine.take(piece.bad)

    def save_if_due(self) -> None:
        """Save after enough pairs, bad rows or seconds."""
        late = self.clock() - self.since >= self.policy.seconds
        if late or self.pairs >= self.policy.pairs or self.quarantine.is_full():
            self.save()

    def save(self) -> None:
        """Save now, if there is anything new."""
        if self.last is None:
            return
        batch, end = self.last.batch, self.last.end
        self.tracking.checkpoint = batch.checkpoint(end).saved(batch.before)
        self.quarantine.write()
        if self.tracking.history is not None:  # else no pair was learned yet
            self.folder.write(self.tracking.pack())
        self.last, self.pairs, self.since = None, 0, self.clock()
