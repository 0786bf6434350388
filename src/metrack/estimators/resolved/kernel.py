"""What `KernelTracker`'s settings come to: linear experts, and experts on features by a kernel."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.kernel_features import KernelFeatures
from metrack.engine.ensemble.kernel_rule import KernelRule
from metrack.engine.ensemble.views import VIEWS
from metrack.engine.learners.bank import Row
from metrack.engine.numerics.records import MOST, Flag, Number
from metrack.estimators.resolved.fields import UNITS, Name, Several, scaled
from metrack.estimators.resolved.tables import KERNEL
from metrack.estimators.resolved.tracker import (
    ROWS,
    TRACKING,
    SpacePlan,
    check_rows,
    plans_of,
    sizes_of,
)

RELATIVE = {"rbf", "poly", "polynomial"}  # kernels whose gamma "auto" is in units of the data
AUTO_GAMMAS = (1.0, 3.0)
MOST_GAMMAS = 8
MOST_LANDMARKS = 1 << 12


class KernelName(Name):
    """A kernel that scikit-learn knows by name; in memory also a function, which is told."""

    def plain(self, value: Any) -> str:
        """For JSON."""
        return str(value)


class KernelSettings(NamedTuple):
    """Linear learners, and learners on the features that landmarks give: KernelTracker.

    Attributes
    ----------
    n_features, units, basis
        As of `TrackerSettings`.
    learners : tuple of Row
        Those that see differences, and those that see the features of each gamma.
    kernel, degree, coef0
        As the settings of these names.
    n_landmarks : int
    relative : bool
        Gammas are in units of the data.
    gammas : tuple of float
        For each space of the kernel; 0 where it has none.
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    learners: Annotated[tuple[Row, ...], ROWS]
    basis: Annotated[int, Number(1, MOST, whole=True)]
    kernel: Annotated[str | Callable[..., Any], KernelName(PAIRWISE_KERNEL_FUNCTIONS)]
    degree: Annotated[float, Number()]
    coef0: Annotated[float, Number()]
    n_landmarks: Annotated[int, Number(1, MOST_LANDMARKS, whole=True)]
    relative: Annotated[bool, Flag()]
    gammas: Annotated[tuple[float, ...], Several(Number(), MOST_GAMMAS)]

    def build(self) -> Ensemble:
        """The learners and their combiner, at their start."""
        linear, of_kernel = self._plans()
        rule = KernelRule(self.kernel, self.gammas, self.relative, self.degree, self.coef0)
        spaces = [plan.build(scaled(self.units)) for plan in linear]
        spaces += [plan.build(True) for plan in of_kernel]
        features = KernelFeatures(self.n_features, self.n_landmarks, rule)
        views = [plan.view for plan in linear]
        return Ensemble(self.n_features, spaces, views, TRACKING, features)

    def _plans(self) -> tuple[list[SpacePlan], list[SpacePlan]]:
        """The spaces of differences, and those of the kernel."""
        linear = [row for row in self.learners if row.view in VIEWS]
        others = [row for row in self.learners if row.view not in VIEWS]
        of_kernel = plans_of(others, self.n_landmarks, basis=1)
        return plans_of(linear, self.n_features, self.basis), of_kernel

    def sizes(self) -> dict[str, int]:
        """How many features each holder of state has."""
        linear, of_kernel = self._plans()
        own = {"views": self.n_features, "kernel": self.n_features}
        return own | sizes_of([*linear, *of_kernel])

    def smallest(self) -> "KernelSettings":
        """The same for one feature, and one landmark."""
        return self._replace(n_features=1, n_landmarks=1)

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        of_kernel = [KERNEL.format(i) for i in range(len(self.gammas))]
        check_rows(self.learners, (*VIEWS, *of_kernel))
        seen = dict.fromkeys((row.view, row.width > 0) for row in self.learners)
        if [view for view, _ in seen if view not in VIEWS] != of_kernel:
            raise ValueError(f"learners see {list(seen)}; expected are {of_kernel}, too")
        self.smallest().build()
