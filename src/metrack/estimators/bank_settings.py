"""What the settings of several kinds of experts hold, bank by bank, and what is built from them."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble import additive, gradient, moments
from metrack.engine.ensemble.always_on import LONGEST_WINDOW, MOST_REPLAYS, AlwaysOnBank, Pace
from metrack.engine.ensemble.kinds import KINDS
from metrack.engine.ensemble.leading import LeadingBank
from metrack.engine.ensemble.plain import PlainBank
from metrack.engine.numerics.records import MOST, TINY, Flag, Number, Sizes, declared
from metrack.estimators.resolved import BANKS, Name


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
            self.row(**{f: holds.checked(row[f], f"{name}.{f}", sizes) for f, holds in fields})
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
    every : int
        Metrics are found anew after so many pairs, or as many as there are features.
    """

    learners: Annotated[tuple[MomentLearner, ...], Learners(MomentLearner)]
    width: Annotated[int, Number(0, MOST, whole=True)] = 0
    every: Annotated[int, Number(1, LONGEST_WINDOW, whole=True)] = moments.OFTEN

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
        return moments.MomentBank(n_features, pace, self.every)

    def smallest(self) -> "MomentSettings":
        """The same for one direction."""
        return self._replace(width=min(self.width, 1))

    def check(self, n_features: int) -> None:
        """Whatever holds what its fields declare can be built."""


class GradientLearner(NamedTuple):
    """What tells one gradient learner from others."""

    learning_rate: Annotated[float, Number(TINY)]
    window: Annotated[int, Number(0, gradient.LONGEST_WINDOW, whole=True)]  # 0: of all the past
    balanced: Annotated[bool, Flag()]
    mean: Annotated[float, Number(1.0)]
    replays: Annotated[int, Number(0, gradient.MOST_REPLAYS, whole=True)]


class GradientSettings(NamedTuple):
    """Linear embeddings by stochastic gradient descent on minibatches.

    Attributes
    ----------
    learners : tuple of GradientLearner
        Their rates; how many of the last pairs they replay, or of all the past; whether half of
        these are alike; over how many pairs metrics are averaged; and minibatches after each block.
    every : int
        Pairs of a block.
    width : int
        Directions of a basis that they work on; 0: all features.
    """

    learners: Annotated[tuple[GradientLearner, ...], Learners(GradientLearner)]
    every: Annotated[int, Number(1, gradient.LONGEST_BLOCK, whole=True)]
    width: Annotated[int, Number(0, MOST, whole=True)] = 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "gradient"

    def dimensions(self, n_features: int) -> int:
        """How many features it works on; 0: whatever there is."""
        return min(self.width or n_features, n_features)

    def build(self, n_features: int) -> gradient.GradientBank:
        """The learners, at their start."""
        pace = gradient.Pace(*map(np.array, zip(*self.learners, strict=True)))
        return gradient.GradientBank(n_features, pace, self.every)

    def smallest(self) -> "GradientSettings":
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
    "gradient": GradientSettings,
    "moment": MomentSettings,
    "plain": PlainSettings,
}
