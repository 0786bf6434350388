"""Several kinds of experts: which there are, at which paces."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble import additive
from metrack.engine.ensemble.always_on import LONGEST_WINDOW, MOST_REPLAYS, AlwaysOnBank, Pace
from metrack.engine.ensemble.kinds import KINDS
from metrack.engine.ensemble.plain import PlainBank
from metrack.engine.numerics.records import MOST, TINY, Number, Sizes, declared
from metrack.estimators.resolved import BANKS, BankSettings, Name

REPLAYS, REPLAYS_UP_TO = 8, 64  # pairs; features: beyond, fewer, as a step's cost grows
LEAST_REPLAYS = 2
PULL = 0.25  # over n_features: a pair says something about one direction, the pull is in all

WHOLE_UP_TO = 64  # features: beyond, learners work on directions of a basis
NARROW, WIDE = 32, 192  # directions: few are learned fast, many hold more
OUTSIDE = 0.25  # weight of plain distance where narrow learners have no directions

# Rate, share of the pull to plain distance, and how many of the last pairs are replayed; 0: none.
TARGET = ((0.3, 0.33, 64), (0.1, 0.33, 64), (0.03, 0.33, 256))
WHOLE_TARGET = ((0.1, 0.0, 0), (0.1, 0.0, 1024))
# On a basis, what matters may have to grow a hundredfold: one learner is fast.
WIDE_TARGET = ((1.0, 0.0, 64), (0.1, 0.0, 1024))


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


# The first finds what many pairs agree on, at any width. The others follow what moves, and are for
# few features: with many, they forget before they have seen enough.
ADDITIVE = (AdditiveLearner(0.3, 0.0003),)
FORGETFUL = (AdditiveLearner(0.06, 0.001), AdditiveLearner(0.06, 0.008))

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
        pace = Pace(*map(np.array, zip(*self.learners, strict=True)))
        return AlwaysOnBank(n_features, KINDS[self.learns].record, pace)

    def smallest(self) -> "AlwaysOnSettings":
        """The same for one direction."""
        return self._replace(width=min(self.width, 1))

    def check(self, n_features: int) -> None:
        """Whatever holds what its fields declare can be built."""


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


BANKS |= {"always_on": AlwaysOnSettings, "additive": AdditiveSettings, "plain": PlainSettings}


PLAIN = PlainSettings(memory=1000.0, start=4.0)  # it does not move: its scale may be learned longer


def several_kinds(n_features: int) -> tuple[BankSettings, ...]:
    """Target learners, plain distance and additive learners."""
    if n_features > WHOLE_UP_TO:
        wide = min(WIDE, n_features)
        return (
            targets(TARGET, n_features, NARROW, OUTSIDE),
            targets(WIDE_TARGET, n_features, wide),
            PLAIN,
            AdditiveSettings(ADDITIVE, wide),
        )
    return (
        targets(TARGET, n_features),
        targets(WHOLE_TARGET, n_features),
        PLAIN,
        AdditiveSettings(ADDITIVE),
        AdditiveSettings(FORGETFUL),
    )


def targets(
    rows: tuple[tuple[float, float, int], ...],
    n_features: int,
    width: int = 0,
    outside: float = 1.0,
) -> AlwaysOnSettings:
    """Target learners at these paces, on so many directions; 0: all features."""
    n = width or n_features
    replays = max(LEAST_REPLAYS, round(REPLAYS * min(1.0, (REPLAYS_UP_TO / n) ** 2)))
    learners = tuple(
        Learner(rate, pull * PULL / n, replays if window else 0, max(window, 1), outside)
        for rate, pull, window in rows
    )
    return AlwaysOnSettings("target", learners, width)
