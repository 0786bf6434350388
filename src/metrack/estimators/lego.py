"""LEGO: LogDet exact gradient online, one implicit step per pair."""

from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.online_itml import OnlineITML


class LEGO(OnlineITML):
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
    upper
        As in `OnlineITML`.
    lower
        As in `OnlineITML`.
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

    _method = "lego"

    def __init__(
        self,
        learning_rate: float = 0.5,
        upper: float = 0.25,
        lower: float = 1.75,
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(learning_rate, upper, lower, scale, preprocessor, random_state)
