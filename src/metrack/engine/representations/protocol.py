"""What a representation is: a way of keeping the metrics of J learners, and of moving them.

A representation is a NamedTuple class of arrays, one entry (row, block) a learner and ``mu`` among
them, and the functions on it that `Representation` names. The compiled ones are called by their
names below, for whichever representation the type of the arrays belongs to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from metrack.engine.numerics.dispatch import by_type
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Difference


class Learners(Protocol):
    """The arrays of J learners: a NamedTuple."""

    @property
    def mu(self) -> Floats:
        """Thresholds."""

    def _asdict(self) -> dict[str, Any]: ...

    def __iter__(self) -> Any: ...


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


def constant_rho(rho: float, lengths: Floats) -> Floats:
    """The regulariser's strength, the same for all memory lengths."""
    return rho + 0.0 * lengths


def nothing_truncated(learners: Any, j: int) -> float:
    """A representation without capacity loses nothing to it."""
    return 0.0


@dataclass(frozen=True)
class Representation:
    """A way of keeping metrics; every field is required of it.

    Attributes
    ----------
    name : str
        Under which learners are saved.
    kind : type
        The NamedTuple class of the learners' arrays.
    squared_distance, update, step_norm, copy_learner, is_full : compiled functions
        What the functions of this module of the same names say.
    new_learners : (n_learners, n_features, geometry, identity) -> learners
        All at 0, or at the identity.
    make_scratch : (learners, n_features) -> NamedTuple of arrays
        Working memory for a pass over a chunk.
    grow : (learners, capacity) -> learners
        With more room, where `is_full` asked for it; else the same object.
    widen : (learners, new, geometry) -> learners
        The same learners with more features, which have been 0 so far: as many as ``new`` learners
        have, and in arrays such as theirs. Exact; the divergence stays.
    adopt : (source, new, geometry) -> learners
        In the place of ``new`` learners, with at least as many features, the metrics of learners
        that are kept in another representation, or learn by another divergence.
    check : (learners, geometry, n_features) -> None
        Raise a ValueError for learners that no stream can have led to. Their arrays hold what the
        fields of ``kind`` declare; see `numerics.records`.
    entries : (learners, j, geometry) -> Entries
        What learner j has learned, entry by entry.
    metric : (learners, j, geometry, unit) -> Factored
        Metric of learner j, over ``unit``.
    mixture : (learners, p, geometry, unit) -> Factored
        The weighted sum of the first learners' metrics, positive semidefinite and cut to the
        capacity, over ``unit``.
    density : (learners, j, geometry) -> float
        Share of M's entries that are not 0.
    truncated_mass : (learners, j) -> float
        Eigenvalue mass that the capacity has cost learner j.
    rho_for_length : (rho, lengths) -> array
        The regulariser's strength for learners of these memory lengths.
    cheap : bool
        Whether steps are so cheap that many of them a pair can be afforded.
    """

    name: str
    kind: type
    squared_distance: Any
    update: Any
    step_norm: Any
    copy_learner: Any
    is_full: Any
    new_learners: Callable[[int, int, Geometry, bool], Any]
    make_scratch: Callable[[Any, int], Any]
    grow: Callable[[Any, int], Any]
    widen: Callable[[Any, Any, Geometry], Any]
    adopt: Callable[["Source", Any, Geometry], Any]
    check: Callable[[Any, Geometry, int], None]
    entries: Callable[[Any, int, Geometry], Entries]
    metric: Callable[[Any, int, Geometry, float], Factored]
    mixture: Callable[[Any, Floats, Geometry, float], Factored]
    density: Callable[[Any, int, Geometry], float]
    truncated_mass: Callable[[Any, int], float]
    rho_for_length: Callable[[float, Floats], Floats]
    cheap: bool


class Source(NamedTuple):
    """Learners that are to be kept in another way."""

    representation: Representation
    learners: Any
    geometry: Geometry

    @property
    def mu(self) -> Floats:
        """Thresholds."""
        thresholds: Floats = self.learners.mu
        return thresholds

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


def always_room(learners: Any, capacity: int) -> Any:
    """Learners that never need to grow."""
    return learners


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
