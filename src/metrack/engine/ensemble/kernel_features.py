"""Points by features of a kernel: their shadows on landmarks, which are taken from the stream.

Landmarks are drawn anew whenever the number of pairs has doubled, up to DOUBLING_UP_TO, and then
when points have moved away from them: what the latest points have outside of the landmarks' span is
compared, every so often, with what it was when these were drawn. All that a space on these features
has learned is carried over by a change of basis; see `Space.change_features`. All of this comes at
fixed counts of pairs, so that calls of any sizes lead to the same state.
"""

import numpy as np

from metrack.engine.ensemble import landmarks
from metrack.engine.ensemble.kernel_rule import KernelRule
from metrack.engine.learners.blocks import LONG
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Pairs, PointPairs
from metrack.engine.numerics.records import check_shapes

EVERY = LONG  # pairs: how often it is asked whether points have moved away
DOUBLING_UP_TO = 1024  # pairs
GAIN = 0.01  # so much more of points inside: landmarks move with them
MOVED_AWAY = 0.05  # of what was inside of the landmarks' span: more than that is outside now


class KernelFeatures:
    """Features of a kernel, of one bandwidth for each space, as many as there may be landmarks."""

    STATE = ("landmarks",)

    def __init__(self, n_features: int, n_landmarks: int, rule: KernelRule) -> None:
        self.n_features = n_features
        self.n_landmarks = n_landmarks
        self.rule = rule
        self.landmarks = landmarks.no_landmarks(n_features, n_landmarks, len(rule.gammas))

    def of(self, pairs: PointPairs, seen: int) -> list[Pairs]:
        """Pairs as each space sees them, before which ``seen`` came; their points are kept."""
        gaps = landmarks.differences(self.rule, self.landmarks, pairs.x, pairs.z)
        landmarks.keep(self.landmarks, pairs.x, pairs.z, seen)
        return [
            Pairs(gap.ravel(), np.arange(gap.shape[1]), np.empty(0, np.int64), pairs.u.y)
            for gap in gaps
        ]

    def follow(self, t: int) -> list[Floats]:
        """At the end of a block, after t pairs: what features become, space by space, if they do.

        Landmarks are drawn anew where it is time, or points have moved away.
        """
        doubled = t & (t - 1) == 0 and t <= DOUBLING_UP_TO
        if not (doubled or (t % EVERY == 0 and self._have_moved_away())):
            return []
        self.landmarks, changes = landmarks.renew(self.rule, self.landmarks, t)
        return changes

    def _have_moved_away(self) -> bool:
        """Whether points are no longer where landmarks are; these move with them, where they can.

        A kernel of differences, as "rbf" is, stays the same where landmarks and points have moved
        by the same vector, and so does all that was learned.
        """
        share = landmarks.share_outside(self.rule, self.landmarks)
        if self.rule.of_differences:
            moved = landmarks.moved_along(self.landmarks)
            nearer = landmarks.share_outside(self.rule, moved)
            if nearer < share - GAIN * (1.0 - share):
                self.landmarks, share = moved, nearer
        before = float(self.landmarks.outside[0])
        if before > 1.0:
            self.landmarks.outside[0] = share
            return False
        return share > before + MOVED_AWAY * (1.0 - before)

    def continue_from(self, old: "KernelFeatures") -> None:
        """Go on from those of points of perhaps fewer features, which have been 0 so far."""
        more, before = self.n_features - old.n_features, old.landmarks
        self.landmarks = before._replace(
            points=np.pad(before.points, ((0, more), (0, 0))),
            latest=np.pad(before.latest, ((0, 0), (0, more))),
            centre=np.pad(before.centre, (0, more)),
        )

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        m, n_spaces = self.n_landmarks, len(self.rule.gammas)
        expected = landmarks.no_landmarks(self.n_features, m, n_spaces)
        check_shapes(self.landmarks, expected, "landmarks")
        if self.landmarks.used[0] > m:
            raise ValueError(f"{self.landmarks.used[0]} landmarks of {m}")
