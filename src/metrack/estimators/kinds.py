"""Several kinds of experts: which there are, at which paces."""

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from metrack.engine.ensemble import additive, moments
from metrack.engine.ensemble.always_on import LONGEST_WINDOW, MOST_REPLAYS, AlwaysOnBank, Pace
from metrack.engine.ensemble.kinds import KINDS
from metrack.engine.ensemble.leading import LeadingBank
from metrack.engine.ensemble.plain import PlainBank
from metrack.engine.numerics.records import MOST, TINY, Number, Sizes, declared
from metrack.estimators.resolved import BANKS, BankSettings, Name

# Pairs replayed after each. A step's cost grows with the square of directions: so many numbers may
# be gone through, if that makes no fewer than the least, nor more than these.
REPLAYED = 6 * 64**2
LEAST_REPLAYS, REPLAYS, WHOLE_REPLAYS = 2, 8, 16
PULL = 0.25  # over n_features: a pair says something about one direction, the pull is in all

WHOLE_UP_TO = 64  # features: beyond, all learners work on directions of a basis
LEADING = 12  # directions that some learners work on beside whole matrices
NARROW, WIDE = 16, 192  # directions of a basis: few are learned fast, many hold more
MIDDLE = 32  # directions of a basis, whose covariances are found
OUTSIDE = 0.25  # weight of plain distance where learners of few directions have none

# Rate, share of the pull to plain distance, and how many of the last pairs are replayed; 0: none.
Rows: TypeAlias = tuple[tuple[float, float, int], ...]
# On all features, the faster the stronger the pull: what a pair says of one direction must not stay
# in all others.
STEADY_TARGET: Rows = ((0.2, 0.7, 64), (0.1, 0.5, 96), (0.05, 0.33, 256))
FREE_TARGET: Rows = ((0.1, 0.0, 0), (0.1, 0.0, 1024))
OUTER_TARGET: Rows = ((0.8, 1.0, 48), (0.5, 0.7, 48), (0.03, 0.33, 512))  # fastest and slowest
# On few directions.
FEW_TARGET: Rows = ((0.3, 0.33, 64), (0.1, 0.33, 64), (0.03, 0.33, 256))
# On a basis, what matters may have to grow a hundredfold: one learner is fast.
WIDE_TARGET: Rows = ((1.0, 0.0, 64), (0.1, 0.0, 1024))


class Learner(NamedTuple):
    """What tells one learner of a kind from others."""

    learning_rate: Annotated[float, Number(TINY)]
    rho: Annotated[float, Number()]
    replays: Annotated[int, Number(0, MOST_REPLAYS, whole=True)]
    window: Annotated[int, Number(1, LONGEST_WINDOW, whole=True)]
    outside: Annotated[float, Number()] = 1.0


class AdditiveLearner(NamedTuple):
    """What tells one additive learner from others."""

    learning_rate: Annotated[float, Number(TINY)]
    forgets: Annotated[float, Number(0.0, 1.0)]  # this share of the metric at each pair


class MomentLearner(NamedTuple):
    """What tells one memory of moment learners from others."""

    memory: Annotated[float, Number(1.0, moments.LONGEST)]


# The first finds what many pairs agree on, at any width. The others follow what moves, and are for
# few features: with many, they forget before they have seen enough.
ADDITIVE = (AdditiveLearner(0.3, 0.0003),)
FORGETFUL = (AdditiveLearner(0.06, 0.001), AdditiveLearner(0.06, 0.008))
MOMENT = (MomentLearner(200.0), MomentLearner(800.0))

ADDED = {"outside": 1.0}  # what rows of earlier states do not say


class Learners:
    """What a field holds: a row for each learner.

    Parameters
    ----------
    row : NamedTuple class
        Whose fields declare what they hold.
    """

    def __init__(self, row: Any) -> None:
        self.row = row

    def plain(self, value: tuple[Any, ...]) -> list[dict[str, Any]]:
        """For JSON."""
        return [each._asdict() for each in value]

    def checked(self, value: Any, name: str, sizes: Sizes) -> tuple[Any, ...]:
        """The rows, if they are such ones."""
        if not isinstance(value, list) or not value:
            raise ValueError(f"{name} is {value!r}; it must be a list of learners")
        fields = declared(self.row).items()
        return tuple(
            self.row(
                **{f: holds.checked((ADDED | row)[f], f"{name}.{f}", sizes) for f, holds in fields}
            )
            for row in value
        )


class AlwaysOnSettings(NamedTuple):
    """Learners of one kind that are always on, in the LogDet geometry.

    Attributes
    ----------
    learns : {"margin", "target"}
        What a pair asks for.
    learners : tuple of Learner
        Their rates, how strongly they are pulled to plain distance, how many recent pairs they
        replay after each, and of how many; the weight of plain distance beyond their directions.
    width : int
        Directions of a basis that they work on; 0: all features.
    """

    learns: Annotated[str, Name(KINDS)]
    learners: Annotated[tuple[Learner, ...], Learners(Learner)]
    width: Annotated[int, Number(0, MOST, whole=True)] = 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "always_on"

    def dimensions(self, n_features: int) -> int:
        """How many features it works on; 0: whatever there is."""
        return min(self.width or n_features, n_features)

    def build(self, n_features: int) -> AlwaysOnBank:
        """The learners, at their start."""
        return AlwaysOnBank(n_features, KINDS[self.learns].record, _pace(self.learners))

    def smallest(self) -> "AlwaysOnSettings":
        """The same for one direction."""
        return self._replace(width=min(self.width, 1))

    def check(self, n_features: int) -> None:
        """Whatever holds what its fields declare can be built."""


class LeadingSettings(NamedTuple):
    """Target learners on the leading directions of differences, beside others on all features.

    Attributes
    ----------
    learners : tuple of Learner
        As of `AlwaysOnSettings`.
    directions : int
        How many.
    features : int
        In which they are found.
    """

    learners: Annotated[tuple[Learner, ...], Learners(Learner)]
    directions: Annotated[int, Number(1, MOST, whole=True)]
    features: Annotated[int, Number(1, MOST, whole=True)]

    @property
    def width(self) -> int:
        """It is of all features."""
        return 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "leading"

    def dimensions(self, n_features: int) -> int:
        """How many directions its learners have."""
        return self.directions

    def build(self, n_features: int) -> LeadingBank:
        """The learners, at their start."""
        return LeadingBank(self.features, n_features, KINDS["target"].record, _pace(self.learners))

    def smallest(self) -> "LeadingSettings":
        """The same for one feature."""
        return self._replace(directions=1, features=1)

    def check(self, n_features: int) -> None:
        """Refuse other features than there are, and more directions than these have."""
        if not self.directions <= self.features == n_features:
            raise ValueError(
                f"{self.directions} of {self.features} directions; {n_features} features"
            )


def _pace(learners: tuple[Learner, ...]) -> Pace:
    return Pace(*map(np.array, zip(*learners, strict=True)))


class AdditiveSettings(NamedTuple):
    """Learners that are always on, whose steps add to the metric.

    Attributes
    ----------
    learners : tuple of AdditiveLearner
        Their rates, and how fast they forget.
    width : int
        Directions of a basis that they work on; 0: all features.
    """

    learners: Annotated[tuple[AdditiveLearner, ...], Learners(AdditiveLearner)]
    width: Annotated[int, Number(0, MOST, whole=True)] = 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "additive"

    def dimensions(self, n_features: int) -> int:
        """How many features it works on; 0: whatever there is."""
        return min(self.width or n_features, n_features)

    def build(self, n_features: int) -> additive.AdditiveBank:
        """The learners, at their start."""
        pace = additive.Pace(*map(np.array, zip(*self.learners, strict=True)))
        return additive.AdditiveBank(n_features, pace)

    def smallest(self) -> "AdditiveSettings":
        """The same for one direction."""
        return self._replace(width=min(self.width, 1))

    def check(self, n_features: int) -> None:
        """Whatever holds what its fields declare can be built."""


class MomentSettings(NamedTuple):
    """Learners of the covariances of similar and of dissimilar pairs; two for each memory.

    Attributes
    ----------
    learners : tuple of MomentLearner
        Over how many pairs covariances forget.
    width : int
        Directions of a basis that they work on; 0: all features.
    """

    learners: Annotated[tuple[MomentLearner, ...], Learners(MomentLearner)]
    width: Annotated[int, Number(0, MOST, whole=True)] = 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "moment"

    def dimensions(self, n_features: int) -> int:
        """How many features it works on; 0: whatever there is."""
        return min(self.width or n_features, n_features)

    def build(self, n_features: int) -> moments.MomentBank:
        """The learners, at their start."""
        pace = moments.Pace(*map(np.array, zip(*self.learners, strict=True)))
        return moments.MomentBank(n_features, pace)

    def smallest(self) -> "MomentSettings":
        """The same for one direction."""
        return self._replace(width=min(self.width, 1))

    def check(self, n_features: int) -> None:
        """Whatever holds what its fields declare can be built."""


class PlainSettings(NamedTuple):
    """Plain distance.

    Attributes
    ----------
    memory : float
        Pairs that its scale and threshold rest on.
    start : float
        Both at first; see `calibration.new_calibration`.
    """

    memory: Annotated[float, Number(2.0)]
    start: Annotated[float, Number(1.0)]

    @property
    def width(self) -> int:
        """It is of all features."""
        return 0

    @property
    def kind(self) -> str:
        """Under which it is saved."""
        return "plain"

    def dimensions(self, n_features: int) -> int:
        """Whatever there is."""
        return 0

    def build(self, n_features: int) -> PlainBank:
        """The expert, at its start."""
        return PlainBank(n_features, self.memory, self.start)

    def smallest(self) -> "PlainSettings":
        """The same for one feature."""
        return self

    def check(self, n_features: int) -> None:
        """There is nothing to refuse."""


BANKS |= {
    "always_on": AlwaysOnSettings,
    "leading": LeadingSettings,
    "additive": AdditiveSettings,
    "moment": MomentSettings,
    "plain": PlainSettings,
}


PLAIN = PlainSettings(memory=1000.0, start=4.0)  # it does not move: its scale may be learned longer


def several_kinds(n_features: int) -> tuple[BankSettings, ...]:
    """Target learners, some on leading directions; plain distance; additive and moment learners."""
    return _on_basis(n_features) if n_features > WHOLE_UP_TO else _on_features(n_features)


def _on_basis(n_features: int) -> tuple[BankSettings, ...]:
    wide = min(WIDE, n_features)
    return (
        targets(FEW_TARGET, NARROW, OUTSIDE),
        targets(WIDE_TARGET, wide),
        PLAIN,
        AdditiveSettings(ADDITIVE, wide),
        MomentSettings(MOMENT, MIDDLE),
    )


def _on_features(n_features: int) -> tuple[BankSettings, ...]:
    steady, free, outer = (
        AlwaysOnSettings("target", _learners(rows, n_features, WHOLE_REPLAYS))
        for rows in (STEADY_TARGET, FREE_TARGET, OUTER_TARGET)
    )
    few = _learners(FEW_TARGET, LEADING, REPLAYS, OUTSIDE)
    leading = [LeadingSettings(few, LEADING, n_features)] if n_features > LEADING else []
    additive = AdditiveSettings(ADDITIVE), AdditiveSettings(FORGETFUL)
    # With more features, the first two go on as narrow and as wide ones.
    return steady, free, outer, *leading, PLAIN, *additive, MomentSettings(MOMENT)


def targets(rows: Rows, width: int, outside: float = 1.0) -> AlwaysOnSettings:
    """Target learners on so many directions of a basis."""
    return AlwaysOnSettings("target", _learners(rows, width, REPLAYS, outside), width)


def _learners(
    rows: Rows, n_directions: int, most_replays: int, outside: float = 1.0
) -> tuple[Learner, ...]:
    """Learners at these paces."""
    replays = min(max(LEAST_REPLAYS, round(REPLAYED / n_directions**2)), most_replays)
    return tuple(
        Learner(rate, pull * PULL / n_directions, replays if window else 0, max(window, 1), outside)
        for rate, pull, window in rows
    )
