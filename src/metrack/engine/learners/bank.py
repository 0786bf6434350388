"""What a bank is: learners of one kind that see the same pairs, and know nothing of combiners.

A new kind of learner is a file with a class of this protocol; it need not use a representation.
Where its learners are always on and speak of distances on scales of their own, most of the protocol
comes from `AlwaysOnBank`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Protocol

from metrack.engine.learners.replay import Material
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.records import MOST, Number, Text

FOREVER = float(1 << 53)  # memory length of a learner that forgets nothing
ALL = 0  # features; of the past
LONGEST = 1 << 20  # memory, pairs


class Row(NamedTuple):
    """A learner of a table; what its numbers mean is its kind's to say."""

    kind: Annotated[str, Text()]
    view: Annotated[str, Text()]  # which features of pairs it sees
    rate: Annotated[float, Number()] = 0.0
    memory: Annotated[int, Number(0, LONGEST, whole=True)] = ALL  # pairs
    pull: Annotated[float, Number()] = 0.0
    mean: Annotated[int, Number(1, LONGEST, whole=True)] = 1  # pairs
    width: Annotated[int, Number(0, MOST, whole=True)] = ALL  # directions of a basis


class Predictions(NamedTuple):
    """What each learner said of each pair before learning it, (n_pairs, n_learners)."""

    q: Floats  # squared distance
    mu: Floats  # threshold


class Bank(Protocol):
    """Learners of one kind.

    On the dyadic cover (``first_interval`` > 0) learner j has the intervals of level j; else all
    learners are always on.
    """

    @property
    def STATE(self) -> tuple[str, ...]:
        """Names of the attributes that are state, records all: these are saved."""

    n_features: int  # or directions of a basis, on which its learners work

    @property
    def first_interval(self) -> int:
        """Length of the cover's shortest intervals; 0: learners are always on."""

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed."""
        return 0

    @property
    def remembers(self) -> bool:
        """Whether pairs of all the past are replayed."""
        return False

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner there is."""

    @property
    def name(self) -> str:
        """Of the kind of learners."""

    @property
    def learning_rates(self) -> Floats:
        """Learning rate of each learner there is; 0 where no metric is learned."""

    @property
    def mu(self) -> Floats:
        """Threshold of each learner there is."""

    def n_active(self, t: int) -> int:
        """How many learners, the first ones, predict the t-th pair (counted from 1)."""

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another.

        Predictions are left in the columns of the learners that are active.
        """

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``."""

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of all learners' metrics: on their features, and beyond them.

        Where a learner's form need not be a metric, of these forms.
        """

    def change_basis(self, old: Any, turn: Floats) -> None:
        """Go on from what such a bank has learned, perhaps itself, with other directions.

        c becomes turn' (c, coordinates on new directions); columns of ``turn`` are orthonormal.
        """

    def continue_from(self, old: Any) -> None:
        """Go on from what a bank of the same kind has learned, with perhaps fewer features.

        The others have been 0 so far: there every metric is at its start.
        """

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""


class Kind(Protocol):
    """What a kind of learners is, that a table may have: a class of banks."""

    @property
    def NEEDS(self) -> tuple[str, ...]:
        """Numbers of a row that must be above 0."""

    def of_rows(self, rows: Sequence[Row], n_features: int) -> Bank:
        """The learners of a table's rows, which have the same features."""
