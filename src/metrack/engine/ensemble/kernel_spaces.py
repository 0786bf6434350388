"""Linear and kernel learners in one ensemble: features that landmarks of the stream give.

Landmarks of the kernel spaces come from the stream. Until there are enough of them, all points are
landmarks, renewed after 1, 2, 4, ... pairs; from then on they are drawn, see `landmarks`, as often
as the number of pairs doubles, up to some number, and after that whenever points have moved away
from them: when more of the latest points is outside of the landmarks' span than was at first.
Learners are carried over by a change of basis; see `BasisEnsemble.change_features`. All of this
comes at fixed counts of pairs, so that calls of any sizes lead to the same state.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from metrack.engine.ensemble import landmarks
from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.landmarks import KernelRule
from metrack.engine.ensemble.similar import NeighbourEnsemble
from metrack.engine.ensemble.spaces import SpacesEnsemble
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Pairs, PointPairs

EVERY = 256  # pairs: how often it is asked whether points have moved away
DOUBLING_UP_TO = 1024  # pairs
GAIN = 0.01  # so much more of points inside: landmarks move with them
MOVED_AWAY = 0.05  # of what was inside of the landmarks' span: more than that is outside now


def block_of(t: int) -> int:
    """Where the block that pair t (counted from 0) belongs to ends."""
    if t < DOUBLING_UP_TO:
        return min(1 << t.bit_length(), t - t % EVERY + EVERY)
    return t - t % EVERY + EVERY


class KernelEnsemble(SpacesEnsemble):
    """Linear spaces, and those of a kernel, under one combiner.

    Parameters
    ----------
    linear, views
        As of a `SpacesEnsemble`.
    kernel : sequence of BasisEnsemble
        On features by the kernel, one for each bandwidth; all of as many features as there may be
        landmarks.
    rule : KernelRule
    combination : Combination
    """

    def __init__(
        self,
        linear: Sequence[NeighbourEnsemble],
        views: Sequence[str],
        kernel: Sequence[BasisEnsemble],
        rule: KernelRule,
        combination: Combination,
    ) -> None:
        n_features = linear[0].n_features
        super().__init__(n_features, [*linear, *kernel], views, combination)
        self.rule = rule
        self.landmarks = landmarks.no_landmarks(n_features, kernel[0].n_features, len(kernel))

    @property
    def kernel_spaces(self) -> list[BasisEnsemble]:
        """Those on features by the kernel."""
        return [
            space for space in self.spaces[len(self.views) :] if isinstance(space, BasisEnsemble)
        ]

    def observe_points(self, pairs: PointPairs, draws: Floats) -> Floats:
        """Loss suffered on each pair before learning from it; see `Ensemble.observe`."""
        losses, done = np.empty(len(pairs.u.y)), 0
        while done < len(losses):
            end = block_of(self.n_pairs)
            stop = min(done + end - self.n_pairs, len(losses))
            losses[done:stop] = self._observe_block(pairs.part(done, stop), draws[done:stop])
            done = stop
            if self.n_pairs == end:
                self._follow_points()
        return losses

    def _observe_block(self, pairs: PointPairs, draws: Floats) -> Floats:
        """Pairs between two changes of landmarks."""
        gaps = landmarks.differences(self.rule, self.landmarks, pairs.x, pairs.z)
        landmarks.keep(self.landmarks, pairs.x, pairs.z, self.n_pairs)
        y = pairs.u.y
        views = [*self._views(pairs.u), *(_rows(gap, y) for gap in gaps)]
        return self._observe_views(views, y, draws)

    def _follow_points(self) -> None:
        """At the end of a block: renew landmarks, where it is time or points have moved."""
        t = self.n_pairs
        doubled = t & (t - 1) == 0 and t <= DOUBLING_UP_TO
        if not (doubled or self._have_moved_away()):
            return
        self.landmarks, changes = landmarks.renew(self.rule, self.landmarks, t)
        for space, change in zip(self.kernel_spaces, changes, strict=True):
            space.change_features(change)

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

    def forget_points(self, pairs: PointPairs) -> int:
        """Let pairs of these points, in either order, ask for nothing more; returns how many.

        They are found among the latest points.
        """
        latest, n = self.landmarks.latest, self.n_features
        kept = latest.reshape(len(latest) // 2, 2 * n)
        x, z = landmarks.dense(pairs.x, n), landmarks.dense(pairs.z, n)
        given = {row.tobytes() for row in np.concatenate([np.hstack([x, z]), np.hstack([z, x])])}
        found = 0
        for t in range(max(0, self.n_pairs - len(kept)), self.n_pairs):
            if kept[t % len(kept)].tobytes() in given:
                found += self._forget(t)
        return found

    def _forget(self, t: int) -> bool:
        """Whether pair t, counted from 0, was still replayed."""
        buffers = [
            space.recent.y for space in self.spaces if self.n_pairs - t <= len(space.recent.y)
        ]
        replayed = any(y[t % len(y)] != 0.0 for y in buffers)
        for y in buffers:
            y[t % len(y)] = 0.0
        return replayed

    def continue_from(self, old: Any) -> None:
        """Go on from such an ensemble of perhaps fewer features; the others have been 0 so far."""
        super().continue_from(old)
        more = self.n_features - old.n_features
        before = old.landmarks
        self.landmarks = before._replace(
            points=np.pad(before.points, ((0, more), (0, 0))),
            latest=np.pad(before.latest, ((0, 0), (0, more))),
            centre=np.pad(before.centre, (0, more)),
        )

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check()
        first, *_ = kernel = self.kernel_spaces
        m, n_spaces = first.n_features, len(kernel)
        expected = landmarks.no_landmarks(self.n_features, m, n_spaces)
        for found, like, name in zip(self.landmarks, expected, expected._fields, strict=True):
            if found.shape != like.shape:
                raise ValueError(f"landmarks.{name} is {found.shape}, expected {like.shape}")
        if self.landmarks.used[0] > m:
            raise ValueError(f"{self.landmarks.used[0]} landmarks of {m}")

    def features(self, X: Any) -> list[Any]:
        """Points as each space sees them."""
        return [X, *landmarks.features(self.rule, self.landmarks, X)]

    def mixtures(self, p: Floats) -> list[Factored]:
        """The weighted sums of the first experts' metrics: of points, then of their features."""
        return [self.mixture(p), *(space.mixture(share) for space, share in self._of_kernel(p))]

    def neighbours_of_all(self, p: Floats) -> list[Factored]:
        """The same, with the inverse covariance of similar pairs."""
        return [self.neighbours(p), *(space.neighbours(own) for space, own in self._of_kernel(p))]

    def _of_kernel(self, p: Floats) -> list[tuple[NeighbourEnsemble, Floats]]:
        return self._weighed(p)[len(self.views) :]

    def metric(self, expert: int) -> Factored:
        """There is none on the points alone: see `mixtures`."""
        raise NotImplementedError


def _rows(features: Floats, y: Floats) -> Pairs:
    return Pairs(features.ravel(), np.arange(features.shape[1]), np.empty(0, np.int64), y)
