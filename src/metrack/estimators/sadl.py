"""SADL: many COMID learners, weighted by how well each has done of late."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.combine import (
    AVERAGE,
    CAPPED,
    LINEAR,
    OUTPUTS,
    SAMPLE,
    SQUASHED,
    Combination,
)
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.cover import LONGEST_FIRST
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.mirror import Ladder, MirrorBank
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.representations.protocol import Representation
from metrack.estimators.base import FrozenMetric
from metrack.estimators.comid import (
    AUTO_RATE,
    automatic,
    comid_rule,
    representation_of,
    starts_at_identity,
)
from metrack.estimators.online import OnlineLearner
from metrack.estimators.settings import choice, positive, whole
from metrack.estimators.threads import exclusive

N_ALWAYS_ON = 12
AUTO_REPLAYS, REPLAYS_UP_TO = 24, 50  # pairs, features
REPLAYING_RATE = 0.8  # of Burg
# What the combiner may be told; "ader" alone works on linearised losses, and always does.
WEIGHT_LOSSES = {"capped": CAPPED, "logistic": SQUASHED}


class DriftReport(NamedTuple):
    """What `SADL.drift_report` tells.

    Attributes
    ----------
    memory : float
        How many of the latest pairs the metric rests on: the trusted interval length.
    pairs_since_change : int
        Pairs since losses last exceeded the usual ones by far, or since the start.
    features : array of int
        All features, those whose share of the metric has changed most first.
    change : array of float
        By how much each feature's share of the metric's trace has grown (or, negative, shrunk).
    """

    memory: float
    pairs_since_change: int
    features: Ints
    change: Floats


class SADL(OnlineLearner):
    """Strongly adaptive metric tracking: the metric follows switches and drift of any speed.

    COMID learners with different memory lengths see every pair; a combiner weights them by their
    recent regret (Greenewald, Kelley and Hero, 2016). On the dyadic cover, learner j lives on
    intervals of length L = first_interval * 2^j, starts each from the next shorter scale's metric,
    and has the rate eta0 / sqrt(L). Always-on combiners keep 12 learners with the rates
    eta0 / sqrt(first_interval * 4^j). The number of pairs need not be known.

    Parameters
    ----------
    eta0 : float or "auto"
        Learning rate of a memory of length 1; "auto" is 0.4 for the Frobenius divergence, else
        0.2; for Burg, where pairs are replayed, 0.8.
    first_interval : int
        Length of the shortest memory, at most 2^40.
    combiner : {"cbce", "adanormalhedge", "sadl", "fixed_share", "ader"}
        Weight rule. "fixed_share" and "ader" have always-on learners, the others the dyadic cover.
    output : {"average", "sample", "best"}
        Predict with the weighted mean of the metrics, with one drawn by its weight, or with the
        most trusted one.
    weight_loss : {"capped", "logistic"}
        What the combiner is told: min(cap, loss) / cap, or 1 / (1 + exp(margin)). "ader" works on
        the linearised loss instead.
    cap : float
    replays : int or "auto"
        How many recent pairs the learners of 32 to 256 rounds replay after each new one, with
        a step on each: more is learned from the same pairs, in more time. "auto" is 24 for Burg
        without the nuclear norm or ``n_components``, up to 50 features; else 0.
    loss
        As in `COMID`, for every learner; so are those that follow.
    divergence
        As in `COMID`.
    regularizer
        As in `COMID`.
    rho
        As in `COMID`.
    step
        As in `COMID`.
    n_components
        As in `COMID`. What is read out is the best metric of that rank near the mean; `observe`
        judges the mean itself.
    init
        As in `COMID`.
    psd
        As in `COMID`.
    scale
        As in `COMID`.
    preprocessor
        As in `COMID`.
    random_state : int, RandomState or None
        For ``output="sample"``.

    Attributes
    ----------
    scales_ : array
        Memory lengths of the active learners, shortest first.
    weights_ : array
        Their normalised weights: where the trust lies tells how fast things drift.
    selected_scale_ : float
        Memory length that predicted last; for an average the most trusted one.
    components_, mu_, threshold_, rank_, n_pairs_seen_
        As in `COMID`, of the output.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import SADL
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(2000, 2, 5))
    >>> gap = np.abs(pairs[:, 0] - pairs[:, 1])
    >>> y = np.where(gap[:, 0] < 1, 1, -1)
    >>> y[1000:] = np.where(gap[1000:, 1] < 1, 1, -1)  # now the second feature counts
    >>> tracker = SADL().fit(pairs[:1000], y[:1000])
    >>> before = tracker.get_metric()
    >>> report = tracker.partial_fit(pairs[1000:], y[1000:]).drift_report(since=before)
    >>> sorted(report.features[:2].tolist())
    [0, 1]
    """

    bank_: Ensemble

    def __init__(
        self,
        loss: str = "hinge",
        divergence: str = "auto",
        regularizer: str | None = "auto",
        rho: float | str = "auto",
        eta0: float | str = "auto",
        first_interval: int = 1,
        combiner: str = "cbce",
        output: str = "average",
        weight_loss: str = "capped",
        cap: float = 4.0,
        step: str = "implicit",
        replays: int | str = "auto",
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
        self.eta0 = eta0
        self.first_interval = first_interval
        self.combiner = combiner
        self.output = output
        self.weight_loss = weight_loss
        self.cap = cap
        self.step = step
        self.replays = replays
        self.n_components = n_components
        self.init = init
        self.psd = psd
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    @classmethod
    def as_published(cls, **overrides: Any) -> Self:
        """The paper's own algorithm.

        Dyadic cover, explicit steps, sampled output, cap 2, data in their own units. The paper
        sets ``eta0`` and ``rho`` by cross-validation: pass yours.
        """
        paper: dict[str, Any] = {
            "divergence": "frobenius",
            "combiner": "sadl",
            "output": "sample",
            "step": "explicit",
            "weight_loss": "capped",
            "cap": 2.0,
            "first_interval": 1,
            "replays": 0,
            "scale": None,
        }
        return cls(**paper | overrides)

    def _make_bank(self, n_features: int) -> Ensemble:
        combiner = choice("combiner", self.combiner, COMBINERS)
        weight_loss = choice("weight_loss", self.weight_loss, WEIGHT_LOSSES)
        first = whole("first_interval", self.first_interval, most=LONGEST_FIRST)
        rule = comid_rule(self, n_features)
        combination = Combination(
            rule.loss,
            combiner.record,
            choice("output", self.output, OUTPUTS),
            LINEAR if combiner.linearised else weight_loss,
            positive("cap", self.cap),
        )
        rule = rule._replace(first_interval=0 if combiner.always_on else first)
        representation = representation_of(self, rule, n_features)
        rule = rule._replace(replays=self._replays(representation, n_features))
        replaying = rule.divergence == BURG and rule.replays > 0
        auto_rate = REPLAYING_RATE if replaying else AUTO_RATE[rule.divergence]
        rate = automatic("eta0", self.eta0, auto_rate)
        bank = MirrorBank(
            n_features,
            rule,
            Ladder(rate, float(first), 4.0 if combiner.always_on else 2.0),
            representation,
            n_learners=N_ALWAYS_ON if combiner.always_on else 2,
            identity=starts_at_identity(self, rule.divergence),
        )
        return Ensemble(n_features, [bank], combination, self.scale == "auto")

    def _replays(self, representation: Representation, n_features: int) -> int:
        if self.replays == "auto":
            return AUTO_REPLAYS if representation.cheap and n_features <= REPLAYS_UP_TO else 0
        return whole("replays", self.replays, or_zero=True)

    def _draws(self, n_pairs: int) -> Floats:
        sampling = self.bank_.combination.output == SAMPLE
        draws: Floats = self.rng_.random_sample(n_pairs if sampling else 0)
        return draws

    @property
    @exclusive
    def scales_(self) -> Floats:
        """Memory lengths of the active learners."""
        check_is_fitted(self)
        return self.bank_.lengths

    @property
    @exclusive
    def weights_(self) -> Floats:
        """Normalised weights of the active learners."""
        check_is_fitted(self)
        return self.bank_.weights

    @property
    @exclusive
    def selected_scale_(self) -> float:
        """Memory length that predicted last."""
        return float(self.scales_[self._selected()])

    def _selected(self) -> int:
        if self.bank_.combination.output == SAMPLE:
            return int(self.bank_.counters["selected"][0])
        return int(np.argmax(self.weights_))

    def _metric(self) -> Factored:
        if self.bank_.combination.output == AVERAGE:
            return self.bank_.mixture(self.weights_)
        return self.bank_.metric(self._selected())

    def _mu(self) -> float:
        p = self.weights_
        if self.bank_.combination.output == AVERAGE:
            return max(1.0, float(p @ self.bank_.mu[: len(p)]))  # a mean of >= 1, rounded
        return float(self.bank_.mu[self._selected()])

    @exclusive
    def drift_report(self, since: FrozenMetric | None = None) -> DriftReport:
        """How fast things drift, when they last changed, and what changed.

        Parameters
        ----------
        since : FrozenMetric, optional
            The metric of an earlier moment, as `get_metric` gave it then; None: the metric without
            any preference, in which all features have the same share.
        """
        check_is_fitted(self)
        then = np.full(self.n_features_in_, 1.0 / self.n_features_in_)
        if since is not None:
            then = _shares(since.components)
        change = _shares(self.components_) - then
        return DriftReport(
            memory=float(2.0 ** (self.weights_ @ np.log2(self.scales_))),
            pairs_since_change=self.bank_.n_pairs - self.bank_.last_change,
            features=np.argsort(-np.abs(change), kind="stable"),
            change=change,
        )


def _shares(components: Floats) -> Floats:
    """Each feature's share of the metric's trace."""
    traces: Floats = np.einsum("ij,ij->j", components, components)
    total = traces.sum()
    return traces / total if total > 0.0 else traces
