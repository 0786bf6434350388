"""COMID: one learner, one composite mirror-descent step a pair."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.mirror import CONSTANT, SCHEDULES, Ladder, MirrorBank, Rule
from metrack.engine.numerics.divergences import BURG, DIVERGENCES, FROBENIUS, VON_NEUMANN
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.steps import STEPS
from metrack.engine.representations.choice import for_nuclear_norm
from metrack.engine.representations.cone import CONE
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.diagonal import DIAGONAL
from metrack.engine.representations.elementwise import ELEMENTWISE
from metrack.engine.representations.protocol import Geometry, Representation
from metrack.estimators.online import OnlineLearner
from metrack.estimators.settings import choice, positive
from metrack.estimators.settings import whole as whole_number
from metrack.estimators.threads import exclusive

FULL_RANK_UP_TO = 100  # features: beyond, a step of full rank takes too long for a default
AUTO_RATE = {FROBENIUS: 0.4, VON_NEUMANN: 0.2, BURG: 0.2}
AUTO_RHO = {FROBENIUS: 0.001, VON_NEUMANN: 0.0, BURG: 0.0}
# The L1 norm of a direction's vv' is up to n_features times its nuclear norm, and LogDet pulls in
# n_features directions where a pair has one.
AUTO_L1, AUTO_LOGDET = 0.025, 0.25  # over n_features
REGULARIZERS = ("auto", "nuclear", "l1", "logdet", None)
NEEDS = {"l1": "frobenius", "logdet": "burg"}  # divergences
L1_BY_PSD = {"exact": CONE, "on_read": ELEMENTWISE, "diagonal": DIAGONAL}
EXACT_UP_TO, ENTRIES_UP_TO = 16, 4096  # features: beyond, steps take too long, and entries too much


class COMID(OnlineLearner):
    """Metric learning by composite objective mirror descent, exact and online.

    Each pair moves the metric M and the threshold mu by one step of

        argmin over M >= 0, mu >= 1 of  B(M, M_t) + e <grad loss, M> + e rho r(M)

    in closed form (Kunapuli and Shavlik, 2012; Duchi et al., 2010).

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "logistic", "exponential", "least_squares"}
        Loss on the margin y (mu - d^2).
    divergence : {"auto", "frobenius", "von_neumann", "burg"}
        Geometry of the step. "auto" is Burg, which learns fastest, where a metric of full rank can
        be afforded: up to 100 features, no ``n_components``, implicit steps; else Frobenius.
    regularizer : {"nuclear", "l1", "logdet", "auto", None}
        The nuclear norm r(M) = |M|_* asks for a metric of low rank; the elementwise L1 norm
        r(M) = sum |M_ij|, for Frobenius alone, for one that rests on few features; the LogDet
        divergence, for Burg alone, for one that is not far from plain distance: it can turn sooner.
        "auto" is LogDet for Burg without ``n_components``, else nuclear.
    rho : float or "auto"
        Strength of the regulariser; "auto" is 0.001 for Frobenius, else 0; for L1 it is
        0.025 / n_features, for LogDet 0.25 / n_features.
    learning_rate : float or "auto"
        Step size e; "auto" is 0.4 for Frobenius, else 0.2.
    schedule : {"constant", "invsqrt"}
        Keep the step size, or divide it by sqrt(t).
    step : {"implicit", "explicit"}
        Slope of the loss after the step (never moves further than the pair asks) or before it.
    n_components : int, optional
        Most directions a metric may have beside its start; ``truncated_mass_`` tells what that
        cost. None: exact.
    init : {"auto", "zero", "identity"}
        Start at M = 0 or I; "auto" is zero where the divergence can leave it (Frobenius), else
        identity.
    psd : {"auto", "exact", "on_read", "diagonal"}
        How L1 keeps M positive: by an exact step on the cone, of cost n_features^3 and more; when
        it is read, which keeps the guarantees on regret, and steps that cost what the non-zeros
        of a pair cost; or by being diagonal. "auto" is exact up to 16 features, on_read up to
        4,096, else diagonal. With L1, ``n_components`` counts when the metric is read.
    scale : {"auto", None}
        "auto" scales differences by their root mean square so far, so that results do not depend
        on the data's units.
    preprocessor : array, CSR matrix or callable, optional
        Points that pairs of row numbers refer to.
    random_state : int, RandomState or None
        Not used here: the step is deterministic.

    Attributes
    ----------
    components_ : array (rank_, n_features)
        L with M = L'L.
    mu_, threshold_ : float
        Threshold on the squared distance, and on the distance.
    rank_ : int
    density_ : float
        Share of M's entries that are not 0.
    truncated_mass_ : float
        Eigenvalue mass that ``n_components`` has cut off so far.
    n_pairs_seen_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import COMID
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(1000, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = COMID().fit(pairs[:900], y[:900])
    >>> learner.score(pairs[900:], y[900:]) > 0.95
    True
    >>> int(np.argmax(np.abs(learner.components_[0])))  # the feature that matters
    0
    """

    bank_: Ensemble

    def __init__(
        self,
        loss: str = "hinge",
        divergence: str = "auto",
        regularizer: str | None = "nuclear",
        rho: float | str = "auto",
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        step: str = "implicit",
        n_components: int | None = None,
        init: str = "auto",
        psd: str = "auto",
        scale: str | None = "auto",
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.divergence = divergence
        self.regularizer = regularizer
        self.rho = rho
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.step = step
        self.n_components = n_components
        self.init = init
        self.psd = psd
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    @property
    @exclusive
    def truncated_mass_(self) -> float:
        """Eigenvalue mass that the capacity has cut off so far, in the units of M."""
        check_is_fitted(self)
        return learners_of(self).truncated_mass(0, self.bank_.unit)

    @property
    @exclusive
    def density_(self) -> float:
        """Share of M's entries that are not 0; with L1, before M is made positive."""
        check_is_fitted(self)
        return learners_of(self).density(0)

    def _make_bank(self, n_features: int) -> Ensemble:
        schedule = choice("schedule", self.schedule, SCHEDULES)
        rule = comid_rule(self, n_features)._replace(schedule=schedule)
        rate = automatic("learning_rate", self.learning_rate, AUTO_RATE[rule.divergence])
        identity = starts_at_identity(self, rule.divergence)
        representation = representation_of(self, rule, n_features)
        bank = MirrorBank(n_features, rule, Ladder(rate), representation, identity=identity)
        return Ensemble(n_features, [bank], Combination(rule.loss), self.scale == "auto")


def learners_of(estimator: Any) -> MirrorBank:
    """The one bank of a fitted COMID or SADL."""
    (bank,) = estimator.bank_.banks
    assert isinstance(bank, MirrorBank)
    return bank


def comid_rule(settings: Any, n_features: int) -> Rule:
    """The engine's rule for a single learner, from an estimator's settings."""
    choice("scale", settings.scale, {"auto": 0, None: 0})
    divergence = resolve_divergence(settings, n_features)
    regularizer = resolve_regularizer(settings, divergence)
    own_rho = {"l1": AUTO_L1 / n_features, "logdet": AUTO_LOGDET / n_features}
    auto_rho = own_rho.get(regularizer or "", AUTO_RHO[divergence])
    rho = automatic("rho", settings.rho, auto_rho, or_zero=True)
    capacity = n_features
    if settings.n_components is not None:
        capacity = min(whole_number("n_components", settings.n_components), n_features)
    return Rule(
        loss=choice("loss", settings.loss, LOSSES),
        divergence=divergence,
        step=choice("step", settings.step, STEPS),
        schedule=CONSTANT,
        rho=rho if regularizer else 0.0,
        capacity=capacity,
        first_interval=0,
        replays=0,
    )


def resolve_divergence(settings: Any, n_features: int) -> int:
    """The divergence asked for; "auto" is Burg where a metric of full rank can be afforded.

    Burg adapts to the data's covariance as a second-order method does, and learned faster than
    Frobenius on all streams tried, but it keeps full rank and can't start at 0.
    """
    choice("step", settings.step, STEPS)
    choice("init", settings.init, {"auto": 0, "zero": 0, "identity": 0})
    choice("regularizer", settings.regularizer, dict.fromkeys(REGULARIZERS, 0))
    needs = NEEDS.get(settings.regularizer)
    if settings.divergence != "auto":
        asked = choice("divergence", settings.divergence, {"auto": -1, **DIVERGENCES})
        if needs is not None and asked != DIVERGENCES[needs]:
            raise ValueError(
                f"regularizer={settings.regularizer!r} with divergence={settings.divergence!r}: "
                f"its steps are known for {needs!r} alone; use that or 'auto'"
            )
        return asked
    if needs is not None:
        return DIVERGENCES[needs]
    affordable = settings.n_components is None and n_features <= FULL_RANK_UP_TO
    fits = affordable and settings.step == "implicit" and settings.init != "zero"
    return BURG if fits else FROBENIUS


def resolve_regularizer(settings: Any, divergence: int) -> str | None:
    """The regulariser asked for; "auto" is LogDet for Burg's metrics of full rank."""
    asked: str | None = settings.regularizer
    if asked == "logdet" and settings.n_components is not None:
        raise ValueError(
            f"regularizer='logdet' with n_components={settings.n_components}: it keeps full rank; "
            "use regularizer='nuclear', or n_components=None"
        )
    if asked == "auto":
        whole_metric = divergence == BURG and settings.n_components is None
        return "logdet" if whole_metric else "nuclear"
    return asked


def representation_of(settings: Any, rule: Rule, n_features: int) -> Representation:
    """How the regulariser keeps metrics."""
    choice("psd", settings.psd, dict.fromkeys(("auto", *L1_BY_PSD), 0))
    regularizer = resolve_regularizer(settings, rule.divergence)
    if regularizer == "logdet":
        return DENSE_FACTOR
    if regularizer != "l1":
        return for_nuclear_norm(Geometry(rule.divergence, rule.capacity), rule.rho, n_features)
    if settings.psd != "auto":
        return L1_BY_PSD[settings.psd]
    if n_features <= EXACT_UP_TO:
        return CONE
    return ELEMENTWISE if n_features <= ENTRIES_UP_TO else DIAGONAL


def automatic(name: str, value: Any, default: float, or_zero: bool = False) -> float:
    """A number, or what "auto" stands for."""
    if isinstance(value, str) and value == "auto":
        return default
    return positive(name, value, or_zero)


def starts_at_identity(settings: Any, divergence: int) -> bool:
    """Whether M starts at I; refuses a start that the divergence cannot leave."""
    if settings.init == "zero" and divergence != FROBENIUS:
        raise ValueError(
            f"init='zero' with divergence={settings.divergence!r}: it could never leave 0; "
            "use init='identity' or 'auto'"
        )
    return settings.init == "identity" or divergence != FROBENIUS
