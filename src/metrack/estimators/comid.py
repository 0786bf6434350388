"""COMID: one learner, one composite mirror-descent step per pair."""

from metrack.engine.learners.mirror import SCHEDULES, MirrorBank
from metrack.estimators.bases.ensemble_learner import LinearEnsemble
from metrack.estimators.bases.threads import when_fitted
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed, choice
from metrack.estimators.resolved.auto import margin_learner, number, units
from metrack.estimators.resolved.margin import EnsembleSettings


class COMID(LinearEnsemble):
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
    regularizer : {"auto", "nuclear", "l1", "logdet", None}
        The nuclear norm r(M) = |M|_* asks for a metric of low rank; the elementwise L1 norm
        r(M) = sum |M_ij|, for Frobenius alone, for one that rests on few features; the LogDet
        divergence, for Burg alone, for one that is not far from plain distance: it can turn sooner.
        "auto" is nuclear; in `SADL`, LogDet for Burg without ``n_components``.
    rho : float or "auto"
        Strength of the regulariser; "auto" is 0.001 for Frobenius, else 0; for L1 it is
        0.025 / n_features, for LogDet 0.25 / n_features.
    learning_rate : float or "auto"
        Step size e; "auto" is 0.4 for Frobenius, else 0.2.
    schedule : {"constant", "invsqrt"}
        Keep the step size, or divide it by sqrt(t).
    step : {"implicit", "explicit"}
        Gradient of the loss after the step (never moves further than the pair asks) or before it.
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
    last_change_ : int
        The pair at which losses were last found to have risen; 0: none.
    resolved_ : NamedTuple
        What the settings came to for so many features: every choice, none of them "auto".

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
    >>> chosen = learner.resolved_.learners
    >>> chosen.divergence, chosen.regularizer, chosen.rho
    ('burg', 'nuclear', 0.0)
    """

    def __init__(
        self,
        loss: str = "hinge",
        divergence: str = "auto",
        regularizer: str | None = "auto",
        rho: float | str = "auto",
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        step: str = "implicit",
        n_components: int | None = None,
        init: str = "auto",
        psd: str = "auto",
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
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
    @when_fitted
    def truncated_mass_(self) -> float:
        """Eigenvalue mass that the capacity has cut off so far, in the units of M."""
        return learners_of(self).truncated_mass(0, self.engine_.spaces[0].unit)

    @property
    @when_fitted
    def density_(self) -> float:
        """Share of M's entries that are not 0; with L1, before M is made positive."""
        return learners_of(self).density(0)

    def resolve(self, n_features: int) -> EnsembleSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        choice("schedule", self.schedule, SCHEDULES)
        learner = margin_learner(self, n_features)
        rate = number("learning_rate", self.learning_rate, learner.learning_rate)
        learner = learner._replace(learning_rate=rate, schedule=self.schedule)
        return EnsembleSettings(n_features, units(self.scale), self.loss, learner)


def learners_of(estimator: LinearEnsemble) -> MirrorBank:
    """The one bank of a fitted COMID or SADL."""
    (bank,) = estimator.engine_.banks
    assert isinstance(bank, MirrorBank)
    return bank
