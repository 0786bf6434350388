"""What a representation is: a way of keeping the metrics of J learners, and of moving them.

A representation is a NamedTuple class of arrays, one entry (row, block) a learner and ``mu`` among
them, and a `Representation` of it. Its compiled functions are called by their names below, for
whichever representation the type of the arrays belongs to.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metrack.engine.numerics.dispatch import by_type
from metrack.engine.numerics.factored import Factored, mixture_of
from metrack.engine.numerics.kernels import Floats, inner
from metrack.engine.numerics.pairs import Difference


class Geometry(NamedTuple):
    """What a step needs to know beside its size."""

    divergence: int
    capacity: int  # of a metric's rank


class Step(NamedTuple):
    """A step of one learner: M moves by -b uu' in the divergence's dual, then shrinks."""

    q: float  # squared distance of the pair before it
    b: float
    shrink: float  # rate times rho


class Entries(NamedTuple):
    """A learner's M as it is learned, perhaps not positive."""

    matrix: Floats
    untouched: float  # value of a diagonal entry that no pair has touched


class NoScratch(NamedTuple):
    """Of representations whose steps need no working memory."""


@inner
def _squared_length(learners: Any, u: Difference) -> float:
    """Norm of what most representations add: |uu'|."""
    return u.norm2


@inner
def _has_room(learners: Any, capacity: int) -> bool:
    """Most representations are never full."""
    return False


@dataclass(frozen=True, eq=False)
class Representation:
    """A way of keeping metrics: methods that a subclass has, and compiled functions.

    These do what the functions of this module of the same names say.
    """

    name: str  # under which learners are saved
    kind: type  # the NamedTuple class of the learners' arrays
    squared_distance: Any
    update: Any
    copy_learner: Any
    step_norm: Any = _squared_length
    is_full: Any = _has_room

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> Any:
        """So many learners of so many features, that all start at 0, or at the identity."""
        raise NotImplementedError

    def make_scratch(self, learners: Any, n_features: int) -> Any:
        """Working memory for a pass over a chunk: a NamedTuple of arrays."""
        return NoScratch()

    def grow(self, learners: Any, capacity: int) -> Any:
        """Learners with more room, where `is_full` asked for it; else the same object."""
        return learners

    def widen(self, learners: Any, new: Any, geometry: Geometry) -> Any:
        """The same learners with more features, which have been 0 so far.

        They have as many as ``new`` learners, in arrays such as theirs. Exact; the divergence
        stays.
        """
        raise NotImplementedError

    def adopt(self, source: "Source", new: Any, geometry: Geometry) -> Any:
        """In the place of ``new`` learners, with at least as many features, those of a source.

        They were kept in another representation, or learned by another divergence.
        """
        raise NotImplementedError

    def check(self, learners: Any, geometry: Geometry, n_features: int) -> None:
        """Refuse learners that no stream can have led to.

        Their arrays hold what the fields of ``kind`` declare; see `numerics.records`.
        """
        raise NotImplementedError

    def entries(self, learners: Any, j: int, geometry: Geometry) -> Entries:
        """What learner j has learned, entry by entry."""
        raise NotImplementedError

    def metric(self, learners: Any, j: int, geometry: Geometry, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        raise NotImplementedError

    def mixture(self, learners: Any, p: Floats, geometry: Geometry, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``.

        It is positive semidefinite and cut to the capacity.
        """
        metrics = [self.metric(learners, j, geometry, unit) for j in range(len(p))]
        return mixture_of(metrics, p, geometry.capacity)

    def density(self, learners: Any, j: int, geometry: Geometry) -> float:
        """Share of M's entries that are not 0."""
        L = self.metric(learners, j, geometry, 1.0).components()
        return float(np.mean(L.T @ L != 0.0))

    def truncated_mass(self, learners: Any, j: int) -> float:
        """Eigenvalue mass that the capacity has cost learner j."""
        return 0.0

    def rho_for_length(self, rho: float, lengths: Floats) -> Floats:
        """The regulariser's strength for learners of these memory lengths."""
        return rho + 0.0 * lengths


class Source(NamedTuple):
    """Learners that are to be kept in another way."""

    representation: Representation
    learners: Any
    geometry: Geometry

    @property
    def mu(self) -> Any:
        """Thresholds."""
        return self.learners.mu

    def metrics(self) -> list[Factored]:
        """The learners' metrics."""
        own = self.representation
        return [own.metric(self.learners, j, self.geometry, 1.0) for j in range(len(self.mu))]

    def entries(self) -> list[Entries]:
        """What the learners have learned, entry by entry."""
        own = self.representation
        return [own.entries(self.learners, j, self.geometry) for j in range(len(self.mu))]


REPRESENTATIONS: dict[type, Representation] = {}


def register(representation: Representation) -> Representation:
    """Make a representation known to compiled code, and give it back."""
    REPRESENTATIONS[representation.kind] = representation
    return representation


@by_type(REPRESENTATIONS)
def squared_distance(
    learners: Any, scratch: Any, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance q = u'Mu of learner j."""
    raise NotImplementedError


@by_type(REPRESENTATIONS)
def update(
    learners: Any, scratch: Any, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """Take a step; `squared_distance` of the same pair came before."""
    raise NotImplementedError


@by_type(REPRESENTATIONS)
def step_norm(learners: Any, u: Difference) -> float:
    """Frobenius norm of what a step of size 1 adds to M in the dual."""
    raise NotImplementedError


@by_type(REPRESENTATIONS)
def copy_learner(learners: Any, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    raise NotImplementedError


@by_type(REPRESENTATIONS)
def is_full(learners: Any, capacity: int) -> bool:
    """Whether the learners need more room before the next step."""
    raise NotImplementedError
