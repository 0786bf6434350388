"""By what pairs are found again, wherever they are kept to be replayed: a number for each.

Spaces keep pairs in units, on bases and as features of kernels, all of which change. But all keep
the same pairs in the same places. So a memory of one number for each pair as it came, a sum of its
features times fixed factors, tells where a pair is in all of them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metrack.engine.learners.memory import Memory, Places
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Chunk, Pairs, turned

SAME = 1e-9  # numbers that differ by less, relative to their size, are of the same pair


class Marks:
    """A number for each pair that is kept in any of some memories."""

    def __init__(self, n_features: int, memories: Sequence[Memory]) -> None:
        last, kept = max(each.last for each in memories), max(each.kept for each in memories)
        self.memory = Memory(1, last, kept, longer=False)
        # Of as many features as there are, the first are those of fewer.
        self.factors = np.sin(np.arange(1.0, n_features + 1.0) ** 2)[:, None]

    def store(self, pairs: Pairs, seen: int) -> None:
        """Add pairs, before which ``seen`` came."""
        if self.memory.last > 0:
            none, first = np.empty(0), np.zeros(1, np.int64)
            chunk = Chunk(self._of(pairs), first, np.empty(0, np.int64), pairs.y, none, none, seen)
            self.memory.store(chunk)

    def places_of(self, pairs: Pairs, n_pairs: int) -> Places:
        """Where pairs with these differences, or their opposites, are kept, of so many."""
        given, memory = self._of(pairs), self.memory
        recent, past = (_among(own.u[..., 0], given) for own in (memory.recent, memory.past))
        return memory.places(recent, past, n_pairs)

    def _of(self, pairs: Pairs) -> Floats:
        return turned(pairs, self.factors).u


def _among(kept: Floats, given: Floats) -> NDArray[np.bool_]:
    """Which numbers are among those given, but for their signs."""
    apart = np.abs(np.abs(kept)[..., None] - np.abs(given))
    found: NDArray[np.bool_] = np.any(apart <= SAME * np.abs(given), axis=-1)
    return found
