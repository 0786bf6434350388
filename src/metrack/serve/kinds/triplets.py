"""Learners of triplets: an anchor, a point that is like it, and one that is less so."""

import numpy as np

from metrack.checks import Floats
from metrack.estimators.oasis import OASIS
from metrack.serve.kinds.kind import Examples
from metrack.serve.kinds.reading import Reading, linear
from metrack.serve.plain_distance import unknown
from metrack.serve.series import Outcome


class Triplets:
    """Triplets, for a similarity; for distances the positive semidefinite part is taken."""

    example: str = "triplets"
    members: int = 3
    sides: tuple[str, ...] = ("anchor", "near", "far")
    by_copy = False
    in_their_units = True

    def learn(self, learner: OASIS, some: Examples, room: int) -> tuple[int, Outcome]:
        """Learn the first of some triplets; the loss is below 1 where their order was right."""
        n = min(room, len(some.y))
        losses = learner.observe(some.points[:n])
        nothing = unknown(n)
        right = (losses < 1.0).astype(float)
        return n, Outcome(losses, nothing, right, nothing, np.ones(n, dtype=bool))

    def forget(self, learner: OASIS, points: Floats) -> None:
        """Nothing is replayed."""

    def inner(self, learner: OASIS) -> OASIS:
        """Itself."""
        return learner

    def counted(self, learner: OASIS) -> int:
        """Triplets."""
        return learner.n_triplets_seen_

    def threshold(self, learner: OASIS) -> float | None:
        """No pair is called alike."""
        return None

    def read(self, learner: OASIS, n_features: int) -> Reading:
        """A matrix."""
        return linear(learner, n_features, None)
