"""What settings come to: every choice that they leave open, made once.

From an estimator's settings and the number of features follows one frozen record, by names and
numbers, in which nothing is "auto". The engine's objects are built from it alone; it is saved with
what was learned, shown by ``metrack inspect``, and is the ``resolved_`` of a fitted estimator.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Protocol

from metrack.engine.ensemble.bank import Bank
from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.combine import OUTPUTS, WEIGHT_LOSSES, Combination
from metrack.engine.ensemble.combiners.protocol import RECORDS
from metrack.engine.ensemble.cover import LONGEST_FIRST
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.mirror import SCHEDULES, Ladder, MirrorBank, Rule
from metrack.engine.ensemble.similar import NeighbourEnsemble
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.records import MOST, TINY, Flag, Number, Sizes, declared
from metrack.engine.numerics.steps import STEPS
from metrack.engine.online.oasis import DenseSimilarity, PassiveAggressive
from metrack.engine.online.targets import METHODS, DenseMetric, Target
from metrack.engine.representations.choice import for_nuclear_norm
from metrack.engine.representations.cone import CONE
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.diagonal import DIAGONAL
from metrack.engine.representations.elementwise import ELEMENTWISE
from metrack.engine.representations.protocol import REPRESENTATIONS, Geometry, Representation
from metrack.estimators.settings import choice, positive, whole

FULL_RANK_UP_TO = 100  # features: beyond, a step of full rank takes too long for a default
AUTO_RATE = {"frobenius": 0.4, "von_neumann": 0.2, "burg": 0.2}
AUTO_RHO = {"frobenius": 0.001, "von_neumann": 0.0, "burg": 0.0}
# The L1 norm of a direction's vv' is up to n_features times its nuclear norm, and LogDet pulls in
# n_features directions where a pair has one.
AUTO_RHO_BY_WIDTH = {"l1": 0.025, "logdet": 0.25}  # over n_features
NEEDS = {"l1": "frobenius", "logdet": "burg"}  # divergences
REGULARIZERS = ("nuclear", "l1", "logdet", None)
INITS = ("zero", "identity")
UNITS = ("root_mean_square", "data")  # in which differences are measured
L1_BY_PSD = {"exact": CONE, "on_read": ELEMENTWISE, "diagonal": DIAGONAL}
EXACT_UP_TO, ENTRIES_UP_TO = 16, 4096  # features: beyond, steps take too long, and entries too much
AUTO_REPLAYS, REPLAYS_UP_TO = 24, 50  # pairs, features
REPLAYING_RATE = 0.8  # of Burg
N_ALWAYS_ON, MOST_AT_START = 12, 64  # learners


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

    def dimensions(self, n_features: int) -> int:
        """How many features, or directions of a basis, it works on; 0: whatever there is."""

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
        return tuple(_from_plain(BANKS, each, f"{name}.{i}") for i, each in enumerate(value))


class MirrorSettings(NamedTuple):
    """Margin learners by composite mirror descent: those of COMID, POLA and SADL.

    Attributes
    ----------
    loss, divergence, regularizer, rho, schedule, step, init, replays
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
    replays: Annotated[int, Number(0, MOST, whole=True)] = 0

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
            replays=self.replays,
        )
        return MirrorBank(
            n_features,
            rule,
            Ladder(self.learning_rate, float(self.first_interval), self.length_ratio),
            _representation(self.representation),
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
        kind = Ensemble
        if len(banks) > 1:  # several kinds come with a second output
            kind = BasisEnsemble if self._on_basis else NeighbourEnsemble
        return kind(self.n_features, banks, combination, _scaled(self.units))

    def dimensions(self) -> list[int]:
        """On how many features, or directions of a basis, each bank works."""
        any_number = 1 if self._on_basis else self.n_features
        return [bank.dimensions(self.n_features) or any_number for bank in self.banks]

    @property
    def _on_basis(self) -> bool:
        return any(0 < bank.dimensions(self.n_features) < self.n_features for bank in self.banks)

    def smallest(self) -> "EnsembleSettings":
        """The same for one or two features: its engine has the same parts, and is small."""
        n_features = 2 if self._on_basis else 1
        return self._replace(n_features=n_features, banks=tuple(b.smallest() for b in self.banks))

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        for bank in self.banks:
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


Resolved = EnsembleSettings | TargetSettings | SimilaritySettings
Engine = Ensemble | DenseMetric | DenseSimilarity

# Kind in a file: the record that it becomes. A kind of bank from elsewhere is added to these.
KINDS: dict[str, Any] = {
    "ensemble": EnsembleSettings,
    "target": TargetSettings,
    "similarity": SimilaritySettings,
}
BANKS: dict[str, Any] = {"mirror": MirrorSettings}
ADDED = {"width": 0}  # what earlier states do not say


def to_plain(resolved: Any) -> dict[str, Any]:
    """What JSON can say of it."""
    fields = declared(type(resolved)).items()
    plain = {field: holds.plain(getattr(resolved, field)) for field, holds in fields}
    return {"kind": resolved.kind, **plain}


def from_plain(plain: Mapping[str, Any]) -> Resolved:
    """The inverse of `to_plain`; refuses what cannot be built."""
    found: Resolved = _from_plain(KINDS, plain, "resolved")
    found.check()
    return found


def _from_plain(kinds: Mapping[str, Any], plain: Mapping[str, Any], name: str) -> Any:
    kind = kinds[str(Name(kinds).checked(plain["kind"], f"{name}.kind", {}))]
    plain = {**ADDED, **plain}
    fields = declared(kind).items()
    return kind(**{f: holds.checked(plain[f], f"{name}.{f}", {}) for f, holds in fields})


def rows(resolved: Resolved) -> list[tuple[str, str]]:
    """Every choice and its value as text, for a table."""
    found = to_plain(resolved)
    banks = found.pop("banks", [])
    for i, bank in enumerate(banks):
        before = "" if len(banks) == 1 else f"{bank['kind']} {i + 1}: "
        found |= {before + name: value for name, value in bank.items()}
    return [(name, _text(value)) for name, value in found.items() if name != "kind"]


def _text(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    rows = (", ".join(f"{name} {number:.4g}" for name, number in row.items()) for row in value)
    return "; ".join(rows)


class Asked(Protocol):
    """The settings that COMID and SADL have in common."""

    loss: str
    divergence: str
    regularizer: str | None
    rho: float | str
    step: str
    n_components: int | None
    init: str
    psd: str


class LadderAsked(Asked, Protocol):
    """Those, and what SADL has of its own."""

    eta0: float | str
    first_interval: int
    replays: int | str


class TargetAsked(Protocol):
    """The settings that OnlineITML and LEGO have in common."""

    learning_rate: float
    upper: float
    lower: float
    scale: str | None


def margin_learner(asked: Asked, n_features: int, of_full_rank: str = "nuclear") -> MirrorSettings:
    """One learner by mirror descent, at the rate that "auto" stands for.

    ``of_full_rank`` is the regulariser that "auto" stands for with Burg's metrics of full rank.
    LogDet's strength falls with the length of memories. A learner alone has no length, and would
    have the strength of the shortest: at rest it learned less than without.
    """
    whole("n_features", n_features)
    divergence = _divergence(asked, n_features)
    regularizer = _regularizer(asked, divergence, of_full_rank)
    auto = AUTO_RHO[divergence]
    if regularizer in AUTO_RHO_BY_WIDTH:
        auto = AUTO_RHO_BY_WIDTH[regularizer] / n_features
    rho = number("rho", asked.rho, auto, or_zero=True)
    if regularizer is None:
        rho = 0.0
    capacity = n_features
    if asked.n_components is not None:
        capacity = min(whole("n_components", asked.n_components), n_features)
    choice("loss", asked.loss, LOSSES)
    return MirrorSettings(
        loss=asked.loss,
        divergence=divergence,
        regularizer=regularizer,
        rho=rho,
        learning_rate=AUTO_RATE[divergence],
        schedule="constant",
        step=asked.step,
        representation=_kept_as(asked, regularizer, divergence, rho, capacity, n_features).name,
        capacity=capacity,
        init=_init(asked, divergence),
    )


def margin_ladder(asked: LadderAsked, always_on: bool, n_features: int) -> MirrorSettings:
    """Learners by mirror descent of many memory lengths: those of SADL."""
    learner = margin_learner(asked, n_features, of_full_rank="logdet")
    replays = _replays(asked.replays, learner.representation, n_features)
    rate = learner.learning_rate
    if learner.divergence == "burg" and replays > 0:
        rate = REPLAYING_RATE
    return learner._replace(
        learning_rate=number("eta0", asked.eta0, rate),
        first_interval=whole("first_interval", asked.first_interval, most=LONGEST_FIRST),
        length_ratio=4.0 if always_on else 2.0,
        on_cover=not always_on,
        n_learners=N_ALWAYS_ON if always_on else 2,
        replays=replays,
    )


def target_learner(asked: TargetAsked, method: str, n_features: int) -> TargetSettings:
    """One dense metric whose squared distances have targets."""
    whole("n_features", n_features)
    rate = positive("learning_rate", asked.learning_rate)
    upper, lower = positive("upper", asked.upper), positive("lower", asked.lower)
    if upper > lower:
        raise ValueError(f"upper={asked.upper!r}; it must be at most lower={asked.lower!r}")
    return TargetSettings(n_features, units(asked.scale), method, rate, upper, lower)


def units(scale: str | None) -> str:
    """In which units differences are measured."""
    return choice("scale", scale, {"auto": "root_mean_square", None: "data"})


def number(name: str, value: Any, auto: float, or_zero: bool = False) -> float:
    """A number, or what "auto" stands for."""
    if isinstance(value, str) and value == "auto":
        return auto
    return positive(name, value, or_zero)


def _divergence(asked: Asked, n_features: int) -> str:
    """The divergence asked for; "auto" is Burg where a metric of full rank can be afforded.

    Burg adapts to the data's covariance as a second-order method does, and learned faster than
    Frobenius on all streams tried, but it keeps full rank and can't start at 0.
    """
    choice("step", asked.step, STEPS)
    choice("init", asked.init, dict.fromkeys(("auto", *INITS)))
    choice("regularizer", asked.regularizer, dict.fromkeys(("auto", *REGULARIZERS)))
    choice("divergence", asked.divergence, dict.fromkeys(("auto", *DIVERGENCES)))
    needs = NEEDS.get(asked.regularizer or "")
    if asked.divergence != "auto":
        if needs is not None and asked.divergence != needs:
            raise ValueError(
                f"regularizer={asked.regularizer!r} with divergence={asked.divergence!r}: "
                f"its steps are known for {needs!r} alone; use that or 'auto'"
            )
        return asked.divergence
    if needs is not None:
        return needs
    affordable = asked.n_components is None and n_features <= FULL_RANK_UP_TO
    fits = affordable and asked.step == "implicit" and asked.init != "zero"
    return "burg" if fits else "frobenius"


def _regularizer(asked: Asked, divergence: str, of_full_rank: str) -> str | None:
    """The regulariser asked for, or what "auto" stands for."""
    if asked.regularizer == "logdet" and asked.n_components is not None:
        raise ValueError(
            f"regularizer='logdet' with n_components={asked.n_components}: it keeps full rank; "
            "use regularizer='nuclear', or n_components=None"
        )
    if asked.regularizer == "auto":
        full_rank = divergence == "burg" and asked.n_components is None
        return of_full_rank if full_rank else "nuclear"
    return asked.regularizer


def _kept_as(
    asked: Asked,
    regularizer: str | None,
    divergence: str,
    rho: float,
    capacity: int,
    n_features: int,
) -> Representation:
    """The fastest exact representation for a regulariser."""
    choice("psd", asked.psd, dict.fromkeys(("auto", *L1_BY_PSD)))
    if regularizer == "logdet":
        return DENSE_FACTOR
    if regularizer != "l1":
        return for_nuclear_norm(Geometry(DIVERGENCES[divergence], capacity), rho, n_features)
    if asked.psd != "auto":
        return L1_BY_PSD[asked.psd]
    if n_features <= EXACT_UP_TO:
        return CONE
    return ELEMENTWISE if n_features <= ENTRIES_UP_TO else DIAGONAL


def _init(asked: Asked, divergence: str) -> str:
    """Where M starts; refuses a start that the divergence cannot leave."""
    if asked.init == "zero" and divergence != "frobenius":
        raise ValueError(
            f"init='zero' with divergence={asked.divergence!r}: it could never leave 0; "
            "use init='identity' or 'auto'"
        )
    at_identity = asked.init == "identity" or divergence != "frobenius"
    return "identity" if at_identity else "zero"


def _replays(asked: int | str, representation: str, n_features: int) -> int:
    if asked == "auto":
        cheap = _representation(representation).cheap and n_features <= REPLAYS_UP_TO
        return AUTO_REPLAYS if cheap else 0
    return whole("replays", asked, or_zero=True)


def _representation(name: str) -> Representation:
    return next(each for each in REPRESENTATIONS.values() if each.name == name)


def _scaled(units: str) -> bool:
    return units == "root_mean_square"
