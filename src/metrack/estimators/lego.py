"""LEGO: LogDet exact gradient online, one implicit step per pair."""

from metrack.engine.online.targets import DenseMetric
from metrack.estimators.bases.linear_learner import LinearLearner
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.resolved.auto import target_learner
from metrack.estimators.resolved.dense import TargetSettings


class LEGO(LinearLearner):
    """LogDet exact gradient online metric learning.

    A similar pair is to have a squared distance q of at most ``upper``, a dissimilar one of at
    least ``lower``. A pair that misses its target g moves the metric to

        argmin over M of  D(M, M_t) + e (u'Mu - g)^2 / 2

    with the LogDet divergence D, exactly (Jain, Kulis, Dhillon and Grauman, 2008): the step stops
    short of the target, and M stays positive definite, whatever e is. It starts at the identity
    and has full rank; a step takes time and memory proportional to n_features^2.

    Parameters
    ----------
    learning_rate : float
        Step size e.
    upper : float
        Target for the squared distance of similar pairs, as in `OnlineITML`.
    lower : float
        Target for the squared distance of dissimilar pairs, at least ``upper``.
    scale
        As in `OnlineITML`.
    preprocessor, random_state
        As in `OnlineITML`.

    Attributes
    ----------
    components_, mu_, threshold_, rank_, n_pairs_seen_, resolved_
        As in `OnlineITML`.

    Notes
    -----
    `observe` gives the loss (q - g)^2 / 2 of pairs that miss their target, and 0 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import LEGO
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(1000, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = LEGO().fit(pairs[:900], y[:900])
    >>> learner.score(pairs[900:], y[900:]) > 0.95
    True
    >>> learner.resolved_.units
    'root_mean_square'
    """

    resolved_: TargetSettings
    engine_: DenseMetric

    def __init__(
        self,
        learning_rate: float = 0.5,
        upper: float = 0.25,
        lower: float = 1.75,
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.upper = upper
        self.lower = lower
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    def resolve(self, n_features: int) -> TargetSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        return target_learner(self, "lego", n_features)
