"""What `KernelSADL`'s settings come to: linear experts, and experts on features by a kernel."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.combine import OUTPUTS, WEIGHT_LOSSES
from metrack.engine.ensemble.combiners.protocol import RECORDS
from metrack.engine.ensemble.landmarks import KernelRule
from metrack.engine.ensemble.spaces import SpacesEnsemble
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.records import MOST, TINY, Flag, Number, Sizes
from metrack.estimators.kinds import FAST_TARGET, FEW_TARGET, OUTSIDE, PLAIN, WIDE_TARGET, targets
from metrack.estimators.resolved import (
    KINDS,
    UNITS,
    Banks,
    BankSettings,
    EnsembleSettings,
    Name,
    from_plain_of,
    to_plain,
)

RELATIVE = {"rbf", "poly", "polynomial"}  # kernels whose gamma "auto" is in units of the data
AUTO_GAMMAS = (1.0, 3.0)  # of which the second has narrow learners alone: details are local
NARROW, WIDE = 32, 192  # directions of a basis
MOST_LANDMARKS = 1 << 12
MOST_SPACES = 8


class KernelName:
    """What a field holds: a kernel that scikit-learn knows by name, or a function."""

    def plain(self, value: str | Callable[..., Any]) -> str:
        """For JSON."""
        return value if isinstance(value, str) else str(value)

    def checked(self, value: Any, name: str, sizes: Sizes) -> str:
        """The name, if it is known."""
        return str(Name(PAIRWISE_KERNEL_FUNCTIONS).checked(value, name, sizes))


class SpaceSettings(NamedTuple):
    """Experts on the features of one bandwidth."""

    gamma: Annotated[float, Number()]
    banks: Annotated[tuple[BankSettings, ...], Banks()]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "space"


class Spaces:
    """What a field holds: the choices for each bandwidth."""

    def plain(self, value: tuple[SpaceSettings, ...]) -> list[dict[str, Any]]:
        """For JSON."""
        return [to_plain(each) for each in value]

    def checked(self, value: Any, name: str, sizes: Sizes) -> tuple[SpaceSettings, ...]:
        """The records, if they are such ones."""
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_SPACES:
            raise ValueError(f"{name} is {value!r}; it must be a list of spaces' settings")
        kinds = {"space": SpaceSettings}
        return tuple(from_plain_of(kinds, each, f"{name}.{i}") for i, each in enumerate(value))


class KernelSettings(NamedTuple):
    """Linear learners, and learners on the features that landmarks give: KernelSADL.

    Attributes
    ----------
    n_features, units, loss, banks, combiner, output, weight_loss, cap
        As of `EnsembleSettings`; banks are the linear learners.
    kernel, degree, coef0
        As the settings of these names.
    n_landmarks : int
    relative : bool
        Gammas are in units of the data.
    spaces : tuple of SpaceSettings
        A gamma each, 0 where the kernel has none, and learners.
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    loss: Annotated[str, Name(LOSSES)]
    banks: Annotated[tuple[BankSettings, ...], Banks()]
    kernel: Annotated[str | Callable[..., Any], KernelName()]
    degree: Annotated[float, Number()]
    coef0: Annotated[float, Number()]
    n_landmarks: Annotated[int, Number(1, MOST_LANDMARKS, whole=True)]
    relative: Annotated[bool, Flag()]
    spaces: Annotated[tuple[SpaceSettings, ...], Spaces()]
    combiner: Annotated[str, Name(RECORDS)]
    output: Annotated[str, Name(OUTPUTS)]
    weight_loss: Annotated[str, Name(WEIGHT_LOSSES)]
    cap: Annotated[float, Number(TINY)]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "kernel"

    @property
    def linear(self) -> EnsembleSettings:
        """The linear learners, as an ensemble."""
        shared = {name: getattr(self, name) for name in EnsembleSettings._fields}
        return EnsembleSettings(**shared)

    def build(self) -> SpacesEnsemble:
        """The learners and their combiner, at their start."""
        linear: Any = self.linear.build()
        spaces = [
            BasisEnsemble(
                self.n_landmarks,
                [bank.build(self._size(bank)) for bank in space.banks],
                linear.combination,
                scaled=True,
            )
            for space in self.spaces
        ]
        gammas = tuple(space.gamma for space in self.spaces)
        rule = KernelRule(self.kernel, gammas, self.relative, self.degree, self.coef0)
        return SpacesEnsemble(linear, spaces, rule, linear.combination)

    def dimensions(self) -> list[int]:
        """On how many features, or directions of a basis, each bank works."""
        own = [self._size(bank) for space in self.spaces for bank in space.banks]
        return [*self.linear.dimensions(), *own]

    def _size(self, bank: BankSettings) -> int:
        return bank.dimensions(self.n_landmarks) or 1

    def widths(self) -> list[int]:
        """How many features each space has."""
        return [self.n_features, *(self.n_landmarks for _ in self.spaces)]

    def smallest(self) -> "KernelSettings":
        """The same for one or two features, and one landmark."""
        linear = self.linear.smallest()
        spaces = tuple(
            each._replace(banks=tuple(bank.smallest() for bank in each.banks))
            for each in self.spaces
        )
        return self._replace(
            n_features=linear.n_features, banks=linear.banks, n_landmarks=1, spaces=spaces
        )

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        self.linear.check()
        for space in self.spaces:
            for bank in space.banks:
                bank.check(self.n_landmarks)


KINDS |= {"kernel": KernelSettings}


def kernel_kinds(n_landmarks: int, gammas: tuple[float, ...]) -> tuple[SpaceSettings, ...]:
    """Target learners and plain distance for each bandwidth; wide ones for the first."""
    narrow, wide = min(NARROW, n_landmarks), min(WIDE, n_landmarks)
    found = []
    for i, gamma in enumerate(gammas):
        banks: list[BankSettings] = [targets(FEW_TARGET, narrow, OUTSIDE)]
        if i == 0:
            banks += [targets(WIDE_TARGET, wide), targets(FAST_TARGET, wide)]
        found.append(SpaceSettings(gamma, (*banks, PLAIN)))
    return tuple(found)
