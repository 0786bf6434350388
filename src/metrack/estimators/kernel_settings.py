"""What `KernelTracker`'s settings come to: linear experts, and experts on features by a kernel."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.kernel_spaces import KernelEnsemble
from metrack.engine.ensemble.landmarks import KernelRule
from metrack.engine.numerics.records import MOST, Flag, Number, Sizes
from metrack.estimators.kinds import Row, banks_of
from metrack.estimators.resolved import (
    KINDS,
    MOST_SPACES,
    TRACKING,
    UNITS,
    Banks,
    BankSettings,
    Name,
    Spaces,
    SpaceSettings,
    TrackerSettings,
)

RELATIVE = {"rbf", "poly", "polynomial"}  # kernels whose gamma "auto" is in units of the data
AUTO_GAMMAS = (1.0, 3.0)  # of which the second has narrow learners alone: details are local
NARROW, WIDE = 32, 192  # directions of a basis
KERNEL = "kernel"
TABLE = (
    Row("target", KERNEL, 0.3, 64, 0.33, width=NARROW),
    Row("target", KERNEL, 0.1, 64, 0.33, width=NARROW),
    Row("target", KERNEL, 0.03, 256, 0.33, width=NARROW),
    Row("target", KERNEL, 0.15, 0, width=WIDE),
    Row("target", KERNEL, 0.1, 1024, width=WIDE),
    Row("target", KERNEL, 1.0, 64, width=WIDE),
    Row("plain", KERNEL, memory=1000),
)
MOST_LANDMARKS = 1 << 12


class KernelName:
    """What a field holds: a kernel that scikit-learn knows by name, or a function."""

    def plain(self, value: str | Callable[..., Any]) -> str:
        """For JSON."""
        return value if isinstance(value, str) else str(value)

    def checked(self, value: Any, name: str, sizes: Sizes) -> str:
        """The name, if it is known."""
        return str(Name(PAIRWISE_KERNEL_FUNCTIONS).checked(value, name, sizes))


class KernelSpaceSettings(NamedTuple):
    """Experts on the features of one bandwidth."""

    gamma: Annotated[float, Number()]
    banks: Annotated[tuple[BankSettings, ...], Banks()]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "space"


class KernelSettings(NamedTuple):
    """Linear learners, and learners on the features that landmarks give: KernelTracker.

    Attributes
    ----------
    n_features, units, spaces
        As of `TrackerSettings`; spaces are those of the linear learners.
    kernel, degree, coef0
        As the settings of these names.
    n_landmarks : int
    relative : bool
        Gammas are in units of the data.
    kernel_spaces : tuple of KernelSpaceSettings
        A gamma each, 0 where the kernel has none, and learners.
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    spaces: Annotated[tuple[SpaceSettings, ...], Spaces(SpaceSettings, MOST_SPACES)]
    kernel: Annotated[str | Callable[..., Any], KernelName()]
    degree: Annotated[float, Number()]
    coef0: Annotated[float, Number()]
    n_landmarks: Annotated[int, Number(1, MOST_LANDMARKS, whole=True)]
    relative: Annotated[bool, Flag()]
    kernel_spaces: Annotated[
        tuple[KernelSpaceSettings, ...], Spaces(KernelSpaceSettings, MOST_SPACES)
    ]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "kernel"

    @property
    def linear(self) -> TrackerSettings:
        """The linear learners, as a tracker."""
        return TrackerSettings(*(getattr(self, name) for name in TrackerSettings._fields))

    def build(self) -> KernelEnsemble:
        """The learners and their combiner, at their start."""
        linear = self.linear.build()
        kernel = [
            BasisEnsemble(
                self.n_landmarks,
                [bank.build(self._size(bank)) for bank in space.banks],
                TRACKING,
                scaled=True,
            )
            for space in self.kernel_spaces
        ]
        gammas = tuple(space.gamma for space in self.kernel_spaces)
        rule = KernelRule(self.kernel, gammas, self.relative, self.degree, self.coef0)
        return KernelEnsemble(linear.spaces, linear.views, kernel, rule, TRACKING)

    def dimensions(self) -> list[int]:
        """On how many features, or directions of a basis, each bank works."""
        own = [self._size(bank) for space in self.kernel_spaces for bank in space.banks]
        return [*self.linear.dimensions(), *own]

    def _size(self, bank: BankSettings) -> int:
        return bank.dimensions(self.n_landmarks) or 1

    def widths(self) -> list[int]:
        """How many features each space has."""
        return [*self.linear.widths(), *(self.n_landmarks for _ in self.kernel_spaces)]

    def smallest(self) -> "KernelSettings":
        """The same for two features, and one landmark."""
        linear = self.linear.smallest()
        kernel = tuple(
            each._replace(banks=tuple(bank.smallest() for bank in each.banks))
            for each in self.kernel_spaces
        )
        return self._replace(
            n_features=linear.n_features, spaces=linear.spaces, n_landmarks=1, kernel_spaces=kernel
        )

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        self.linear.check()
        for space in self.kernel_spaces:
            for bank in space.banks:
                bank.check(self.n_landmarks)


KINDS |= {"kernel": KernelSettings}


def kernel_kinds(n_landmarks: int, gammas: tuple[float, ...]) -> tuple[KernelSpaceSettings, ...]:
    """Target learners and plain distance for each bandwidth; wide ones for the first."""
    found = []
    for i, gamma in enumerate(gammas):
        rows = [row for row in TABLE if i == 0 or row.width < WIDE]
        fitted = [row._replace(width=min(row.width, n_landmarks)) for row in rows]
        found.append(KernelSpaceSettings(gamma, tuple(banks_of(fitted, n_landmarks))))
    return tuple(found)
