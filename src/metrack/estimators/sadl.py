"""SADL: many COMID learners, weighted by how well each has done recently."""

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.combine import OUTPUTS, WEIGHT_LOSSES
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.spaces import SpacesEnsemble
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.auto import margin_ladder, units
from metrack.estimators.base import FrozenMetric
from metrack.estimators.drift_report import DriftReport, by_size, change_of_shares
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.kinds import several_kinds
from metrack.estimators.probability import Goal, check_goal
from metrack.estimators.resolved import EnsembleSettings, TrackerSettings
from metrack.estimators.settings import Seed, choice, positive, whole
from metrack.estimators.threads import exclusive
from metrack.estimators.weighed import WeighedLearner

# What the combiner may be told; "ader" alone works on linearised losses, and always does.
ASKED_WEIGHT_LOSSES = {name: name for name in WEIGHT_LOSSES if name != "linear"}
AUTO_COMBINER = {"cover": "cbce", "kinds": "adaptive_share"}
# Settings of the learners on a cover, or of a ladder of rates. Several kinds have their own.
OF_THE_COVER = (
    *("loss", "divergence", "regularizer", "rho", "eta0", "first_interval", "step", "replays"),
    *("init", "psd"),
)


class SADL(WeighedLearner):
    """Strongly adaptive metric tracking: the metric follows switches and drift of any speed.

    Many learners see every pair; a combiner weights them by their recent regret (Greenewald, Kelley
    and Hero, 2016), which is bounded on every stretch of time. There is nothing to tune, and the
    number of pairs need not be known.

    By default the learners are of several kinds: target learners (ITML's steps, which multiply), on
    all features and on the leading directions, additive learners, moment learners (closed forms of
    covariances), and linear embeddings by gradient descent on minibatches of all the past, at
    several rates and memory lengths; and plain distance. Some see differences as they come, some
    each feature in its own units, so that features may come in any. The settings from ``eta0`` to
    ``psd`` are those of the paper's ensemble, and bring it: COMID learners on the dyadic cover,
    where learner j lives on intervals of length L = first_interval * 2^j, starts each from the next
    shorter scale's metric, and has the rate eta0 / sqrt(L).

    There are two outputs. `transform`, `pair_distance` and `predict` judge pairs; `for_neighbours`
    gives the embedding in which to look for neighbours and clusters.

    Parameters
    ----------
    eta0 : float or "auto"
        Learning rate of a memory of length 1; "auto" is 0.4 for the Frobenius divergence, else
        0.2; for Burg, where pairs are replayed, 0.8.
    first_interval : int
        Length of the shortest memory, at most 2^40.
    experts : {"auto", "kinds", "cover"}
        Which learners the ensemble has: several kinds, with settings of their own, or COMID
        learners on the dyadic cover. "auto" is several kinds, unless a setting of the cover's
        learners (``loss``, ``divergence``, ``regularizer``, ``rho``, ``eta0``, ``first_interval``,
        ``step``, ``replays``, ``init`` or ``psd``) or another combiner is given.
    combiner : {"auto", "adaptive_share", "cbce", "adanormalhedge", "sadl", "fixed_share", "ader"}
        Weight rule. "auto" is "adaptive_share" for several kinds, "cbce" for the cover, for which
        "adanormalhedge" and "sadl" are, too. "fixed_share" and "ader" are for learners that are
        always on: several kinds, or else 12 COMID learners with the rates
        eta0 / sqrt(first_interval * 4^j).
    output : {"average", "sample", "best"}
        Predict with the weighted mean of the metrics, with one drawn by its weight, or with the
        most trusted one.
    weight_loss : {"capped", "logistic"}
        What the combiner is told: min(cap, loss) / cap, or 1 / (1 + exp(margin)). "ader" works on
        the linearised loss instead.
    cap : float
        The largest loss that the combiner is told, where ``weight_loss`` is "capped".
    replays : int or "auto"
        How many recent pairs the learners of 32 to 256 rounds replay after each new one, with
        a step on each: more is learned from the same pairs, in more time. "auto" is 24 for Burg
        without the nuclear norm or ``n_components``, up to 50 features; else 0.
    loss
        As in `COMID`, for every learner.
    divergence
        As in `COMID`.
    regularizer
        As in `COMID`.
    rho
        As in `COMID`.
    step
        As in `COMID`.
    n_components
        As in `COMID`. The output is the best metric of that rank near the mean; `observe` judges
        the mean itself.
    threshold : {"accuracy", "f1"} or dict
        What `predict` is to reach, followed along the stream: fewest errors; the largest F1 score;
        or {"precision": 0.95}, as many alike pairs as can be found where at least so many of those
        that are called alike are; or {"recall": 0.9}, as few pairs as can be called alike where at
        least so many of the alike ones are.
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
    experts_ : list of Expert
        Kind, memory length, learning rate and weight of every active learner.
    effective_window_ : float
        How many of the most recent pairs the metric rests on.
    selected_scale_ : float
        Memory length that predicted last; for an average the most trusted one.
    components_, mu_, threshold_, rank_, n_pairs_seen_, last_change_
        As in `COMID`, of the output.
    resolved_ : NamedTuple
        What the settings came to for so many features: every choice, none of them "auto".

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
    >>> sorted({expert.kind for expert in tracker.experts_})
    ['additive', 'gradient', 'moment', 'plain', 'target']
    >>> tracker.resolved_.combiner
    'adaptive_share'
    """

    def __init__(
        self,
        loss: str = "hinge",
        divergence: str = "auto",
        regularizer: str | None = "auto",
        rho: float | str = "auto",
        eta0: float | str = "auto",
        first_interval: int = 1,
        experts: str = "auto",
        combiner: str = "auto",
        output: str = "average",
        weight_loss: str = "capped",
        cap: float = 4.0,
        step: str = "implicit",
        replays: int | str = "auto",
        n_components: int | None = None,
        threshold: Goal = "accuracy",
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
        self.eta0 = eta0
        self.first_interval = first_interval
        self.experts = experts
        self.combiner = combiner
        self.output = output
        self.weight_loss = weight_loss
        self.cap = cap
        self.step = step
        self.replays = replays
        self.n_components = n_components
        self.threshold = threshold
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

    def resolve(self, n_features: int) -> EnsembleSettings | TrackerSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        whole("n_features", n_features)
        experts = self._experts()
        name = AUTO_COMBINER[experts] if self.combiner == "auto" else self.combiner
        combiner = choice("combiner", name, COMBINERS)
        choice("output", self.output, OUTPUTS)
        check_goal(self.threshold)
        weight_loss = choice("weight_loss", self.weight_loss, ASKED_WEIGHT_LOSSES)
        told: dict[str, Any] = {
            "combiner": name,
            "output": self.output,
            "weight_loss": "linear" if combiner.linearised else weight_loss,
            "cap": positive("cap", self.cap),
        }
        if experts == "kinds":
            self._check_kinds(combiner.always_on)
            spaces = several_kinds(n_features)
            return TrackerSettings(n_features, units(self.scale), self.loss, spaces, **told)
        banks = (margin_ladder(self, combiner.always_on, n_features),)
        return EnsembleSettings(n_features, units(self.scale), self.loss, banks, **told)

    def _experts(self) -> str:
        """Which experts: several kinds, unless a setting of others is given."""
        choice("experts", self.experts, dict.fromkeys(("auto", *AUTO_COMBINER)))
        if self.experts != "auto":
            return self.experts
        of_kinds = self.combiner in ("auto", AUTO_COMBINER["kinds"])
        return "kinds" if of_kinds and not self._asked_of_the_cover() else "cover"

    def _asked_of_the_cover(self) -> dict[str, Any]:
        """The settings that several kinds do not have, where they are not the usual ones."""
        usual = type(self)()
        asked = {name: getattr(self, name) for name in OF_THE_COVER}
        return {name: value for name, value in asked.items() if value != getattr(usual, name)}

    def _check_kinds(self, always_on: bool) -> None:
        """Several kinds have settings of their own, and are always on."""
        for name, asked in self._asked_of_the_cover().items():
            raise ValueError(
                f"experts='kinds' with {name}={asked!r}: these experts have their own; leave "
                "it out, or use experts='cover'"
            )
        if not always_on:
            raise ValueError(
                f"experts='kinds' with combiner={self.combiner!r}: they are always on; leave it "
                "out, or use 'fixed_share'"
            )

    @exclusive
    def neighbour_components(self) -> Floats:
        """L of the metric for neighbours and clusters; see `for_neighbours`."""
        check_is_fitted(self)
        engine = self.engine_
        if not isinstance(engine, SpacesEnsemble) or "components" in self.set_by_hand_:
            return super().neighbour_components()
        if "neighbours" not in self._computed:
            metric = self._with_points(engine.neighbours(self.weights_))
            found = self._cut(metric).components()
            found.flags.writeable = False
            self._computed["neighbours"] = found
        components: Floats = self._computed["neighbours"]
        return components

    def _metric(self) -> Factored:
        if self.resolved_.output == "average":
            found = self.engine_.mixture(self.weights_)
        else:
            found = self.engine_.metric(self._selected())
        return self._cut(found)

    def _cut(self, metric: Factored) -> Factored:
        """The directions that ``n_components`` asks for; learners on a cover have no others."""
        if self.n_components is None or isinstance(self.resolved_, EnsembleSettings):
            return metric
        return metric.leading(self.n_components)

    @exclusive
    def drift_report(self, since: FrozenMetric | None = None, names: Any = None) -> DriftReport:
        """How fast things drift, when they last changed, and what changed.

        Parameters
        ----------
        since : FrozenMetric, optional
            The metric of an earlier moment, as `get_metric` gave it then; None: the metric without
            any preference, in which all features have the same share.
        names : sequence (n_features,), optional
            Of the features; by default those of the DataFrame that the points came in, else
            numbers.
        """
        check_is_fitted(self)
        change = change_of_shares(self.components_, None if since is None else since.components)
        return DriftReport(
            effective_window=self.effective_window_,
            pairs_since_change=self.n_pairs_seen_ - self.last_change_,
            features=self._named_features(names)[by_size(change)],
            change=change,
        )
