"""How a stream went, in bounded memory: what was true of each of a number of equal blocks of pairs.

When there are too many, two and two become one. What is kept depends on the pairs alone, and not on
how they were cut into batches.
"""

from collections.abc import Callable

import numpy as np

from metrack.checks import Floats


class Course:
    """Mean losses of blocks of pairs, and values of a learner at the end of each.

    Parameters
    ----------
    n_values : int
    width : int
        Pairs of a block at the start.
    most : int
        Blocks, of which there are always fewer; even.
    """

    def __init__(self, n_values: int, width: int = 16, most: int = 128) -> None:
        self.width, self.most = width, most
        self.pairs = 0  # in the last block, which is not full yet
        self.total = 0.0  # of their losses
        self.losses: Floats = np.empty(0)  # mean of each block
        self.values: Floats = np.empty((0, n_values))  # at the end of each

    @property
    def room(self) -> int:
        """Pairs until the block is full."""
        return self.width - self.pairs

    def take(self, losses: Floats, values: Callable[[], Floats]) -> None:
        """Add losses, no more than there is room for."""
        # One after another: numpy's own sum would depend on how many there are.
        self.total = float(np.add.accumulate(np.append(self.total, losses))[-1])
        self.pairs += len(losses)
        if self.room:
            return
        self.losses = np.append(self.losses, self.total / self.width)
        self.values = np.concatenate([self.values, values()[None]])
        self.pairs, self.total = 0, 0.0
        if len(self.losses) == self.most:
            self.losses = 0.5 * (self.losses[::2] + self.losses[1::2])
            self.values = self.values[1::2]
            self.width *= 2

    def ends(self) -> Floats:
        """Pairs after which each block ended."""
        return self.width * np.arange(1, len(self.losses) + 1, dtype=float)

    def so_far(self, values: Callable[[], Floats]) -> tuple[Floats, Floats, Floats]:
        """Ends, losses and values of all blocks, the last as far as it has come."""
        ends, losses, all_ = self.ends(), self.losses, self.values
        if self.pairs:
            ends = np.append(ends, self.width * len(losses) + self.pairs)
            losses = np.append(losses, self.total / self.pairs)
            all_ = np.concatenate([all_, values()[None]])
        return ends, losses, all_
