"""What the settings of learners of one dense matrix come to: OnlineITML, LEGO and OASIS."""

from typing import Annotated, NamedTuple

from metrack.engine.numerics.records import MOST, TINY, Number
from metrack.engine.online.oasis import DenseSimilarity, PassiveAggressive
from metrack.engine.online.targets import METHODS, DenseMetric, Target
from metrack.estimators.resolved.fields import UNITS, Name, scaled


class TargetSettings(NamedTuple):
    """One dense metric whose squared distances have targets: OnlineITML and LEGO."""

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    method: Annotated[str, Name(METHODS)]
    learning_rate: Annotated[float, Number(TINY)]
    upper: Annotated[float, Number(TINY)]
    lower: Annotated[float, Number(TINY)]

    def build(self) -> DenseMetric:
        """The learner, at its start."""
        method, in_units = METHODS[self.method], scaled(self.units)
        rule = Target(method, self.learning_rate, self.upper, self.lower, in_units)
        return DenseMetric(self.n_features, rule)

    def sizes(self) -> dict[str, int]:
        """How many features each holder of state has."""
        return {"learner": self.n_features}

    def smallest(self) -> "TargetSettings":
        """The same for one feature."""
        return self._replace(n_features=1)

    def check(self) -> None:
        """Refuse what cannot be built."""
        if self.upper > self.lower:
            raise ValueError(f"the target {self.upper} is above {self.lower}")


class SimilaritySettings(NamedTuple):
    """One dense bilinear similarity: OASIS."""

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    learning_rate: Annotated[float, Number(TINY)]

    def build(self) -> DenseSimilarity:
        """The learner, at its start."""
        rule = PassiveAggressive(self.learning_rate, scaled(self.units))
        return DenseSimilarity(self.n_features, rule)

    def sizes(self) -> dict[str, int]:
        """How many features each holder of state has."""
        return {"learner": self.n_features}

    def smallest(self) -> "SimilaritySettings":
        """The same for one feature."""
        return self._replace(n_features=1)

    def check(self) -> None:
        """Whatever holds what its fields declare can be built."""
