"""OnlineITML: information-theoretic metric learning, one explicit step per pair."""

from metrack.engine.online.targets import DenseMetric
from metrack.estimators.bases.linear_learner import LinearLearner
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.resolved.auto import target_learner
from metrack.estimators.resolved.dense import TargetSettings


class OnlineITML(LinearLearner):
    """Information-theoretic metric learning, online.

    A similar pair is to have a squared distance q of at most ``upper``, a dissimilar one of at
    least ``lower``. A pair that misses its target g moves the metric by a gradient step of
    (q - g)^2 in the LogDet geometry (Davis, Kulis, Jain, Sra and Dhillon, 2007),

        M <- M - k Mu (Mu)' / (1 + k q),    k = 2 e (q - g),

    with e made smaller where it would more than double q: so M stays positive definite. It starts
    at the identity and has full rank; a step takes time and memory proportional to n_features^2.

    Parameters
    ----------
    learning_rate : float
        Step size e.
    upper : float
        Target for the squared distance of similar pairs. With ``scale="auto"``, 1 is the mean over
        all pairs at the start.
    lower : float
        Target for the squared distance of dissimilar pairs, at least ``upper``.
    scale
        As in `COMID`.
    preprocessor, random_state
        As in `COMID`.

    Attributes
    ----------
    components_ : array (n_features, n_features)
        L with M = L'L.
    mu_, threshold_ : float
        Half way between the targets: (upper + lower) / 2 for the squared distance, and its root
        for the distance. It is not learned; `calibrate_threshold` may find a better one.
    rank_, n_pairs_seen_, resolved_
        As in `COMID`.

    Notes
    -----
    `observe` gives the loss (q - g)^2 of pairs that miss their target, and 0 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import OnlineITML
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(1000, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = OnlineITML().fit(pairs[:900], y[:900])
    >>> learner.score(pairs[900:], y[900:]) > 0.95
    True
    >>> int(np.argmax(np.abs(learner.components_[0])))  # the feature that matters
    0
    >>> learner.resolved_.units
    'root_mean_square'
    """

    resolved_: TargetSettings
    engine_: DenseMetric
    _method = "itml"  # a subclass has the same targets, and another step

    def __init__(
        self,
        learning_rate: float = 0.1,
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
        return target_learner(self, self._method, n_features)
