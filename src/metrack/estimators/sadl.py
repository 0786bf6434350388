"""SADL: the paper's ensemble, COMID learners on the dyadic cover under one combiner."""

from typing import Any, Self

import numpy as np

from metrack.engine.ensemble.combine import OUTPUTS, WEIGHT_LOSSES
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.ensemble_learner import LinearEnsemble
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed, choice, positive
from metrack.estimators.reading.drift_report import ReportsDrift
from metrack.estimators.resolved.auto import margin_ladder, units
from metrack.estimators.resolved.margin import EnsembleSettings

# What the combiner may be told; "ader" alone works on linearised losses, and always does.
ASKED_WEIGHT_LOSSES = {name: name for name in WEIGHT_LOSSES if name != "linear"}


class SADL(ReportsDrift, WeighedLearner, LinearEnsemble):
    """Strongly adaptive metric learning: the paper's ensemble (Greenewald, Kelley and Hero, 2016).

    COMID learners on the dyadic cover: learner j lives on intervals of length
    L = first_interval * 2^j, starts each from the next shorter scale's metric, and has the rate
    eta0 / sqrt(L). A combiner weighs them by their recent regret, which is bounded on every stretch
    of time. `SADL.as_published` is the paper's own algorithm; `MetricTracker` is what to use where
    metrics are to be tracked.

    Parameters
    ----------
    eta0 : float or "auto"
        Learning rate of a memory of length 1; "auto" is 0.4 for the Frobenius divergence, else 0.2.
    first_interval : int
        Length of the shortest memory, at most 2^40.
    combiner : {"cbce", "adanormalhedge", "sadl", "adaptive_share", "fixed_share", "ader"}
        Weight rule. The first three are for learners on the cover. The others are for learners that
        are always on: 12 COMID learners with the rates eta0 / sqrt(first_interval * 4^j).
    output : {"average", "sample", "best"}
        Predict with the weighted mean of the metrics, with one drawn by its weight, or with the
        most trusted one.
    weight_loss : {"capped", "logistic"}
        What the combiner is told: min(cap, loss) / cap, or 1 / (1 + exp(margin)). "ader" works on
        the linearised loss instead.
    cap : float
        The largest loss that the combiner is told, where ``weight_loss`` is "capped".
    loss
        As in `COMID`, for every learner.
    step
        As in `COMID`.
    divergence, regularizer, rho, init, psd, scale
        As in `COMID`.
    n_components, preprocessor
        As in `COMID`.
    random_state : int, RandomState or None
        For ``output="sample"``.

    Attributes
    ----------
    scales_ : array
        Memory lengths of the active learners, shortest first.
    weights_, experts_, effective_window_
        As in `MetricTracker`, of the active learners.
    selected_scale_ : float
        Memory length that predicted last; for an average the most trusted one.
    components_, mu_, threshold_, rank_, n_pairs_seen_, last_change_, resolved_
        As in `COMID`, of the output.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import SADL
    >>> pairs = np.random.default_rng(0).normal(size=(500, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> tracker = SADL().fit(pairs, y)
    >>> tracker.scales_.tolist()
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
    """

    resolved_: EnsembleSettings

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
        self.eta0 = eta0
        self.first_interval = first_interval
        self.combiner = combiner
        self.output = output
        self.weight_loss = weight_loss
        self.cap = cap
        self.step = step
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
            "scale": None,
        }
        return cls(**paper | overrides)

    def resolve(self, n_features: int) -> EnsembleSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        combiner = choice("combiner", self.combiner, COMBINERS)
        choice("output", self.output, OUTPUTS)
        weight_loss = choice("weight_loss", self.weight_loss, ASKED_WEIGHT_LOSSES)
        return EnsembleSettings(
            n_features,
            units(self.scale),
            self.loss,
            margin_ladder(self, combiner.always_on, n_features),
            combiner=self.combiner,
            output=self.output,
            weight_loss="linear" if combiner.linearised else weight_loss,
            cap=positive("cap", self.cap),
        )

    def _draws(self, n_pairs: int) -> Floats:
        sampling = self.resolved_.output == "sample"
        draws: Floats = self.rng_.random_sample(n_pairs if sampling else 0)
        return draws

    @property
    @exclusive
    def selected_scale_(self) -> float:
        """Memory length that predicted last."""
        return float(self.scales_[self._selected()])

    def _selected(self) -> int:
        """The learner that predicted last; for an average the most trusted one."""
        if self.resolved_.output == "sample":
            return int(self.engine_.experts.counters["selected"][0])
        return int(np.argmax(self.weights_))

    def _mu(self) -> float:
        if self.resolved_.output == "average":
            return super()._mu()
        return float(self.engine_.experts.mu[self._selected()])

    def _metric(self) -> Factored:
        if self.resolved_.output == "average":
            return self.engine_.mixture(self.weights_)
        return self.engine_.metric(self._selected())
