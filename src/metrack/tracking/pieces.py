"""Batches, learned in pieces: between two of them a run may be saved, ended or shown."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from metrack.tracking.formats import BadRow
from metrack.tracking.reader import Batch
from metrack.tracking.state import Tracking

LOOK_PAIRS, LOOK_SECONDS = 256, 0.1  # at most so much learning between two looks at the clock


class Piece(NamedTuple):
    """What was learned between two looks at the clock."""

    n_pairs: int
    bad: list[BadRow]  # up to the end of it
    batch: Batch
    end: int  # pairs of the batch that are learned now


class Pace:
    """How many pairs to learn before the next look at the clock and at signals.

    Parameters
    ----------
    clock : callable
        Seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.pairs = clock, 1

    def timed(self, learn: Callable[[int], int]) -> int:
        """Learn as many pairs as are right now; returns how many there were."""
        start = self.clock()
        n_pairs = learn(self.pairs)
        seconds = self.clock() - start
        # At most twice as many: the first pairs, with few learners at work, are the quickest.
        in_time = n_pairs * LOOK_SECONDS / seconds if seconds > 0.0 else LOOK_PAIRS
        self.pairs = max(1, int(min(in_time, 2 * self.pairs, LOOK_PAIRS)))
        return n_pairs


def pieces(batch: Batch, tracking: Tracking, pace: Pace) -> Iterator[Piece]:
    """Learn a batch piece by piece; at least one, since it may hold bad rows alone."""
    end, n_bad = 0, 0
    while True:
        n_pairs = pace.timed(partial(tracking.learn, batch.rows, end))
        end += n_pairs
        bad = batch.bad[n_bad : batch.n_bad(end)]
        n_bad += len(bad)
        yield Piece(n_pairs, bad, batch, end)
        if end == len(batch.rows.y):
            return
