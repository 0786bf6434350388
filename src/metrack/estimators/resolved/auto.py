"""What "auto" stands for: from an estimator's settings to the records of `resolved`.

Every rule of thumb is here, and nowhere else: which divergence, regulariser and representation suit
so many features, at which rates.
"""

from typing import TYPE_CHECKING, Any

from metrack.engine.learners.cover import LONGEST_FIRST
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.steps import STEPS
from metrack.engine.representations.choice import for_nuclear_norm
from metrack.engine.representations.cone import CONE
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.diagonal import DIAGONAL
from metrack.engine.representations.elementwise import ELEMENTWISE
from metrack.engine.representations.protocol import Geometry, Representation
from metrack.estimators.inputs.settings import choice, positive, whole
from metrack.estimators.resolved.dense import TargetSettings
from metrack.estimators.resolved.margin import INITS, REGULARIZERS, MirrorSettings

if TYPE_CHECKING:
    from metrack.estimators.comid import COMID
    from metrack.estimators.online_itml import OnlineITML
    from metrack.estimators.sadl import SADL

FULL_RANK_UP_TO = 100  # features: beyond, a step of full rank takes too long for a default
AUTO_RATE = {"frobenius": 0.4, "von_neumann": 0.2, "burg": 0.2}
AUTO_RHO = {"frobenius": 0.001, "von_neumann": 0.0, "burg": 0.0}
# The L1 norm of a direction's vv' is up to n_features times its nuclear norm, and LogDet pulls in
# n_features directions where a pair has one.
AUTO_RHO_BY_WIDTH = {"l1": 0.025, "logdet": 0.25}  # over n_features
NEEDS = {"l1": "frobenius", "logdet": "burg"}  # divergences
L1_BY_PSD = {"exact": CONE, "on_read": ELEMENTWISE, "diagonal": DIAGONAL}
EXACT_UP_TO, ENTRIES_UP_TO = 16, 4096  # features: beyond, steps take too long, and entries too much
N_ALWAYS_ON = 12  # learners


def margin_learner(
    asked: "COMID | SADL", n_features: int, of_full_rank: str = "nuclear"
) -> MirrorSettings:
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


def margin_ladder(asked: "SADL", always_on: bool, n_features: int) -> MirrorSettings:
    """Learners by mirror descent of many memory lengths: those of SADL."""
    learner = margin_learner(asked, n_features, of_full_rank="logdet")
    return learner._replace(
        learning_rate=number("eta0", asked.eta0, learner.learning_rate),
        first_interval=whole("first_interval", asked.first_interval, most=LONGEST_FIRST),
        length_ratio=4.0 if always_on else 2.0,
        on_cover=not always_on,
        n_learners=N_ALWAYS_ON if always_on else 2,
    )


def target_learner(asked: "OnlineITML", method: str, n_features: int) -> TargetSettings:
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


def _divergence(asked: "COMID | SADL", n_features: int) -> str:
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


def _regularizer(asked: "COMID | SADL", divergence: str, of_full_rank: str) -> str | None:
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
    asked: "COMID | SADL",
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


def _init(asked: "COMID | SADL", divergence: str) -> str:
    """Where M starts; refuses a start that the divergence cannot leave."""
    if asked.init == "zero" and divergence != "frobenius":
        raise ValueError(
            f"init='zero' with divergence={asked.divergence!r}: it could never leave 0; "
            "use init='identity' or 'auto'"
        )
    at_identity = asked.init == "identity" or divergence != "frobenius"
    return "identity" if at_identity else "zero"
