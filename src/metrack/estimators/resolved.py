"""What settings come to: every choice that they leave open, made once.

From an estimator's settings and the number of features follows one frozen record, by names and
numbers, in which nothing is "auto". The engine's objects are built from it alone; it is saved with
what was learned, shown by ``metrack inspect``, and is the ``resolved_`` of a fitted estimator.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

from metrack.engine.ensemble.bank import Bank
from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.combine import CAPPED, OUTPUTS, WEIGHT_LOSSES, Combination
from metrack.engine.ensemble.combiners.protocol import RECORDS
from metrack.engine.ensemble.cover import LONGEST_FIRST
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.mirror import SCHEDULES, Ladder, MirrorBank, Rule
from metrack.engine.ensemble.similar import NeighbourEnsemble
from metrack.engine.ensemble.spaces import UNITS as VIEWS
from metrack.engine.ensemble.spaces import SpacesEnsemble
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.records import MOST, TINY, Flag, Number, Sizes, declared
from metrack.engine.numerics.steps import STEPS
from metrack.engine.online.oasis import DenseSimilarity, PassiveAggressive
from metrack.engine.online.targets import METHODS, DenseMetric, Target
from metrack.engine.representations.protocol import REPRESENTATIONS, Representation

REGULARIZERS = ("nuclear", "l1", "logdet", None)
INITS = ("zero", "identity")
UNITS = ("root_mean_square", "data")  # in which differences are measured
MOST_AT_START = 64  # learners
MOST_SPACES = 8


# How a tracker's experts are combined.
TRACKING = Combination(
    LOSSES["hinge"], RECORDS["adaptive_share"], OUTPUTS["average"], CAPPED, cap=4.0, balanced=True
)


class Name:
    """What a field holds: one of several names, of which one may be None.

    Parameters
    ----------
    names : collection, or mapping from names
    """

    def __init__(self, names: Collection[str | None]) -> None:
        self.names = names

    def plain(self, value: str | None) -> str | None:
        """For JSON."""
        return value

    def checked(self, value: Any, name: str, sizes: Sizes) -> str | None:
        """The name, if it is known."""
        if not (value is None or isinstance(value, str)) or value not in self.names:
            known = ", ".join(map(str, self.names))
            raise ValueError(f"{name} is {value!r}, which is unknown; known are {known}")
        return value


class _Representations(Collection[str | None]):
    """Names of all representations, also of those that are registered later."""

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in REPRESENTATIONS.values())

    def __len__(self) -> int:
        return len(REPRESENTATIONS)

    def __contains__(self, name: object) -> bool:
        return name in list(self)


class BankSettings(Protocol):
    """The choices for learners of one kind: a NamedTuple whose fields declare what they hold."""

    @property
    def kind(self) -> str:
        """Under which they are saved."""

    @property
    def width(self) -> int:
        """How many directions of the ensemble's basis it works on; 0: all features."""

    def dimensions(self, n_features: int) -> int:
        """How many features or directions its learners have; 0: whatever there is."""

    def build(self, n_features: int) -> Bank:
        """The learners, at their start."""

    def smallest(self) -> "BankSettings":
        """The same for one feature, or one direction."""

    def check(self, n_features: int) -> None:
        """Refuse what cannot be built, before anything is allocated."""


class Banks:
    """What a field holds: the choices for each bank of an ensemble."""

    def plain(self, value: tuple[BankSettings, ...]) -> list[dict[str, Any]]:
        """For JSON."""
        return [to_plain(each) for each in value]

    def checked(self, value: Any, name: str, sizes: Sizes) -> tuple[BankSettings, ...]:
        """The records, if they are such ones."""
        if not isinstance(value, list) or not value:
            raise ValueError(f"{name} is {value!r}; it must be a list of banks' settings")
        return tuple(from_plain_of(BANKS, each, f"{name}.{i}") for i, each in enumerate(value))


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

    @property
    def width(self) -> int:
        """It is of all features."""
        return 0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "mirror"

    def dimensions(self, n_features: int) -> int:
        """All features."""
        return n_features

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
            representation_of(self.representation),
            n_learners=self.n_learners,
            identity=self.init == "identity",
        )

    def smallest(self) -> "MirrorSettings":
        """The same for one feature."""
        return self._replace(capacity=1)

    def check(self, n_features: int) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        if self.capacity > n_features:
            raise ValueError(f"learners of rank {self.capacity} and {n_features} features")


class EnsembleSettings(NamedTuple):
    """Banks of learners under one combiner: COMID, POLA and SADL.

    Attributes
    ----------
    n_features : int
    units : {"root_mean_square", "data"}
        In which differences are measured.
    loss : str
        By which the ensemble's predictions are judged.
    banks : tuple of MirrorSettings or others
        The learners, kind by kind.
    combiner : str
        "alone": there is one learner.
    output, weight_loss, cap
        As the settings of these names. A combiner that works on linearised losses has the weight
        loss "linear".
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    loss: Annotated[str, Name(LOSSES)]
    banks: Annotated[tuple[BankSettings, ...], Banks()]
    combiner: Annotated[str, Name(RECORDS)] = "alone"
    output: Annotated[str, Name(OUTPUTS)] = "average"
    weight_loss: Annotated[str, Name(WEIGHT_LOSSES)] = "capped"
    cap: Annotated[float, Number(TINY)] = 2.0

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "ensemble"

    def build(self) -> Ensemble:
        """The learners and their combiner, at their start."""
        combination = Combination(
            LOSSES[self.loss],
            RECORDS[self.combiner],
            OUTPUTS[self.output],
            WEIGHT_LOSSES[self.weight_loss],
            self.cap,
        )
        sizes = zip(self.banks, self.dimensions(), strict=True)
        banks = [bank.build(size) for bank, size in sizes]
        return Ensemble(self.n_features, banks, combination, _scaled(self.units))

    def dimensions(self) -> list[int]:
        """How many features or directions the learners of each bank have."""
        return [bank.dimensions(self.n_features) or self.n_features for bank in self.banks]

    def smallest(self) -> "EnsembleSettings":
        """The same for one feature: its engine has the same parts, and is small."""
        return self._replace(n_features=1, banks=tuple(b.smallest() for b in self.banks))

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        for bank in self.banks:
            bank.check(self.n_features)


class SpaceSettings(NamedTuple):
    """Learners that see the same features of pairs.

    Attributes
    ----------
    view : {"as they come", "own"}
        In which units differences are seen.
    on_basis : bool
        Learners work on directions of a basis, or else on all features.
    banks : tuple of settings
        The learners, kind by kind.
    """

    view: Annotated[str, Name(VIEWS)]
    on_basis: Annotated[bool, Flag()]
    banks: Annotated[tuple[BankSettings, ...], Banks()]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "space"

    def dimensions(self, n_features: int) -> list[int]:
        """How many features or directions the learners of each bank have."""
        any_number = 1 if self.on_basis else n_features
        return [bank.dimensions(n_features) or any_number for bank in self.banks]

    def build(self, n_features: int, combination: Combination, scaled: bool) -> NeighbourEnsemble:
        """The learners, at their start."""
        sizes = zip(self.banks, self.dimensions(n_features), strict=True)
        kind = BasisEnsemble if self.on_basis else NeighbourEnsemble
        return kind(n_features, [b.build(size) for b, size in sizes], combination, scaled)

    def smallest(self) -> "SpaceSettings":
        """The same for one feature, or one direction."""
        return self._replace(banks=tuple(bank.smallest() for bank in self.banks))


class Spaces:
    """What a field holds: the choices for each space.

    Parameters
    ----------
    kind : NamedTuple class
        Of these choices.
    most : int
        So many at the most.
    """

    def __init__(self, kind: Any, most: int) -> None:
        self.kind = kind
        self.most = most

    def plain(self, value: tuple[Any, ...]) -> list[dict[str, Any]]:
        """For JSON."""
        return [to_plain(each) for each in value]

    def checked(self, value: Any, name: str, sizes: Sizes) -> tuple[Any, ...]:
        """The records, if they are such ones."""
        if not isinstance(value, list) or not 1 <= len(value) <= self.most:
            raise ValueError(f"{name} is {value!r}; it must be a list of spaces' settings")
        kinds = {"space": self.kind}
        return tuple(from_plain_of(kinds, each, f"{name}.{i}") for i, each in enumerate(value))


class TrackerSettings(NamedTuple):
    """Learners of several kinds on several features of the same pairs: MetricTracker.

    Attributes
    ----------
    n_features, units
        As of `EnsembleSettings`.
    spaces : tuple of SpaceSettings
        Which learners see which features.
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    spaces: Annotated[tuple[SpaceSettings, ...], Spaces(SpaceSettings, MOST_SPACES)]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "tracker"

    def build(self) -> SpacesEnsemble:
        """The learners and their combiner, at their start."""
        scaled = _scaled(self.units)
        spaces = [each.build(self.n_features, TRACKING, scaled) for each in self.spaces]
        views = [each.view for each in self.spaces]
        return SpacesEnsemble(self.n_features, spaces, views, TRACKING)

    def dimensions(self) -> list[int]:
        """How many features or directions the learners of each bank have."""
        return [size for space in self.spaces for size in space.dimensions(self.n_features)]

    def widths(self) -> list[int]:
        """How many features each space has."""
        return [self.n_features for _ in self.spaces]

    def smallest(self) -> "TrackerSettings":
        """The same for two features, of which a basis has one direction."""
        return self._replace(n_features=2, spaces=tuple(s.smallest() for s in self.spaces))

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        for space in self.spaces:
            for bank in space.banks:
                bank.check(self.n_features)


class TargetSettings(NamedTuple):
    """One dense metric whose squared distances have targets: OnlineITML and LEGO."""

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    method: Annotated[str, Name(METHODS)]
    learning_rate: Annotated[float, Number(TINY)]
    upper: Annotated[float, Number(TINY)]
    lower: Annotated[float, Number(TINY)]

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "target"

    def build(self) -> DenseMetric:
        """The learner, at its start."""
        method, scaled = METHODS[self.method], _scaled(self.units)
        rule = Target(method, self.learning_rate, self.upper, self.lower, scaled)
        return DenseMetric(self.n_features, rule)

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

    @property
    def kind(self) -> str:
        """Under which they are saved."""
        return "similarity"

    def build(self) -> DenseSimilarity:
        """The learner, at its start."""
        rule = PassiveAggressive(self.learning_rate, _scaled(self.units))
        return DenseSimilarity(self.n_features, rule)

    def smallest(self) -> "SimilaritySettings":
        """The same for one feature."""
        return self._replace(n_features=1)

    def check(self) -> None:
        """Whatever holds what its fields declare can be built."""


Resolved = EnsembleSettings | TrackerSettings | TargetSettings | SimilaritySettings
Engine = Ensemble | DenseMetric | DenseSimilarity

# Kind in a file: the record that it becomes. A kind of bank from elsewhere is added to these.
KINDS: dict[str, Any] = {
    "ensemble": EnsembleSettings,
    "tracker": TrackerSettings,
    "target": TargetSettings,
    "similarity": SimilaritySettings,
}
BANKS: dict[str, Any] = {"mirror": MirrorSettings}


def to_plain(resolved: Any) -> dict[str, Any]:
    """What JSON can say of it."""
    fields = declared(type(resolved)).items()
    plain = {field: holds.plain(getattr(resolved, field)) for field, holds in fields}
    return {"kind": resolved.kind, **plain}


def from_plain(plain: Mapping[str, Any]) -> Resolved:
    """The inverse of `to_plain`; refuses what cannot be built."""
    found: Resolved = from_plain_of(KINDS, plain, "resolved")
    found.check()
    return found


def from_plain_of(kinds: Mapping[str, Any], plain: Mapping[str, Any], name: str) -> Any:
    """The record of one of these kinds, if it holds what its fields declare."""
    kind = kinds[str(Name(kinds).checked(plain["kind"], f"{name}.kind", {}))]
    fields = declared(kind).items()
    return kind(**{f: holds.checked(plain[f], f"{name}.{f}", {}) for f, holds in fields})


def rows(resolved: Resolved) -> list[tuple[str, str]]:
    """Every choice and its value as text, for a table."""
    found = to_plain(resolved)
    spaces = found.pop("spaces", []) + found.pop("kernel_spaces", [])
    found |= _of_banks("", found.pop("banks", []))
    for space in spaces:
        which = f"gamma {space['gamma']:.4g}" if "gamma" in space else _features(space)
        found |= _of_banks(f"{which}, ", space["banks"])
    return [(name, _text(value)) for name, value in found.items() if name != "kind"]


def _features(space: Mapping[str, Any]) -> str:
    return f"{space['view']}{' on a basis' if space['on_basis'] else ''}"


def _of_banks(before: str, banks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The choices for banks, each with a name of its own."""
    found: dict[str, Any] = {}
    for i, bank in enumerate(banks):
        which = before if len(banks) == 1 else f"{before}{bank['kind']} {i + 1}: "
        found |= {which + name: value for name, value in bank.items()}
    return found


def _text(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    rows = (", ".join(f"{name} {number:.4g}" for name, number in row.items()) for row in value)
    return "; ".join(rows)


def representation_of(name: str) -> Representation:
    """A representation by its name."""
    return next(each for each in REPRESENTATIONS.values() if each.name == name)


def _scaled(units: str) -> bool:
    return units == "root_mean_square"
