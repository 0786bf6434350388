"""What the settings of COMID, POLA and SADL come to: margin learners under one combiner."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from metrack.engine.ensemble.combine import OUTPUTS, WEIGHT_LOSSES, Combination
from metrack.engine.ensemble.combiners.protocol import RECORDS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import AS_THEY_COME
from metrack.engine.learners.cover import LONGEST_FIRST
from metrack.engine.learners.mirror import SCHEDULES, Ladder, MirrorBank, Rule
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.records import MOST, TINY, Flag, Number
from metrack.engine.numerics.steps import STEPS
from metrack.engine.representations.protocol import REPRESENTATIONS
from metrack.estimators.resolved.fields import UNITS, Name, RecordOf, scaled

REGULARIZERS = ("nuclear", "l1", "logdet", None)
INITS = ("zero", "identity")
MOST_AT_START = 64  # learners


class _Representations:
    """Names of all representations, also of those that are registered later."""

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in REPRESENTATIONS.values())


class MirrorSettings(NamedTuple):
    """Margin learners by composite mirror descent: those of COMID, POLA and SADL.

    Attributes
    ----------
    loss, divergence, regularizer, rho, schedule, step, init
        As the settings of these names, without "auto".
    learning_rate : float
        Of a memory of length 1; a learner's rate is this over the root of its memory length.
    representation : str
        How metrics are kept.
    capacity : int
        Most directions of a metric.
    first_interval : int
        Shortest memory length; the others are ``length_ratio`` times the one before.
    length_ratio : float
    on_cover : bool
        Learners live on the intervals of the dyadic cover, or else are always on.
    n_learners : int
        How many there are at the start.
    """

    loss: Annotated[str, Name(LOSSES)]
    divergence: Annotated[str, Name(DIVERGENCES)]
    regularizer: Annotated[str | None, Name(REGULARIZERS)]
    rho: Annotated[float, Number()]
    learning_rate: Annotated[float, Number(TINY)]
    schedule: Annotated[str, Name(SCHEDULES)]
    step: Annotated[str, Name(STEPS)]
    representation: Annotated[str, Name(_Representations())]
    capacity: Annotated[int, Number(1, MOST, whole=True)]
    init: Annotated[str, Name(INITS)]
    first_interval: Annotated[int, Number(1, LONGEST_FIRST, whole=True)] = 1
    length_ratio: Annotated[float, Number(1.0)] = 2.0
    on_cover: Annotated[bool, Flag()] = False
    n_learners: Annotated[int, Number(1, MOST_AT_START, whole=True)] = 1

    def build(self, n_features: int) -> MirrorBank:
        """The learners, at their start."""
        rule = Rule(
            loss=LOSSES[self.loss],
            divergence=DIVERGENCES[self.divergence],
            step=STEPS[self.step],
            schedule=SCHEDULES[self.schedule],
            rho=self.rho,
            capacity=self.capacity,
            first_interval=self.first_interval if self.on_cover else 0,
        )
        return MirrorBank(
            n_features,
            rule,
            Ladder(self.learning_rate, float(self.first_interval), self.length_ratio),
            next(e for e in REPRESENTATIONS.values() if e.name == self.representation),
            n_learners=self.n_learners,
            identity=self.init == "identity",
        )


class EnsembleSettings(NamedTuple):
    """Margin learners under one combiner: COMID, POLA and SADL.

    Attributes
    ----------
    n_features : int
    units : {"root_mean_square", "data"}
        In which differences are measured.
    loss : str
        By which the ensemble's predictions are judged.
    learners : MirrorSettings
    combiner : str
        "alone": there is one learner.
    output, weight_loss, cap
        As the settings of these names. A combiner that works on linearised losses has the weight
        loss "linear".
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    loss: Annotated[str, Name(LOSSES)]
    learners: Annotated[MirrorSettings, RecordOf({"mirror": MirrorSettings})]
    combiner: Annotated[str, Name(RECORDS)] = "alone"
    output: Annotated[str, Name(OUTPUTS)] = "average"
    weight_loss: Annotated[str, Name(WEIGHT_LOSSES)] = "capped"
    cap: Annotated[float, Number(TINY)] = 2.0

    def build(self) -> Ensemble:
        """The learners and their combiner, at their start."""
        combination = Combination(
            LOSSES[self.loss],
            RECORDS[self.combiner],
            OUTPUTS[self.output],
            WEIGHT_LOSSES[self.weight_loss],
            self.cap,
        )
        space = Space(self.n_features, [self.learners.build(self.n_features)], scaled(self.units))
        return Ensemble(self.n_features, [space], [AS_THEY_COME], combination)

    def sizes(self) -> dict[str, int]:
        """How many features each holder of state has."""
        return {"views": self.n_features, "bank 0": self.n_features}

    def smallest(self) -> "EnsembleSettings":
        """The same for one feature: its engine has the same parts, and is small."""
        return self._replace(n_features=1, learners=self.learners._replace(capacity=1))

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        if self.learners.capacity > self.n_features:
            raise ValueError(
                f"learners of rank {self.learners.capacity} and {self.n_features} features"
            )
