"""POLA: pseudo-metric online learning, two projections per pair."""

import sys

from metrack.estimators.comid import COMID
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.resolved.margin import EnsembleSettings


class POLA(COMID):
    """Pseudo-metric online learning algorithm.

    A pair with a margin y (mu - d^2) below 1 moves the metric M and the threshold mu to the nearest
    ones (in the Frobenius norm) that give it a margin of 1, and those to the nearest with M
    positive semidefinite and mu >= 1 (Shalev-Shwartz, Singer and Ng, 2004). It starts at M = 0 and
    mu = 1.

    The first projection is COMID's implicit step for the hinge with the Frobenius divergence, where
    no learning rate bounds it; the second is COMID's own, without a regulariser. So POLA is `COMID`
    with these settings fixed, and there is nothing to tune.

    Parameters
    ----------
    n_components : int, optional
        Most directions a metric may have; ``truncated_mass_`` tells what that cost. None: exact.
    scale
        As in `COMID`.
    preprocessor, random_state
        As in `COMID`.

    Attributes
    ----------
    components_, mu_, threshold_, rank_, density_, truncated_mass_, n_pairs_seen_, last_change_
        As in `COMID`.
    resolved_ : NamedTuple
        What the settings came to for so many features, as those of `COMID`.

    Notes
    -----
    `observe` gives the hinge loss max(0, 1 - y (mu - d^2)).

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import POLA
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(1000, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = POLA().fit(pairs[:900], y[:900])
    >>> learner.score(pairs[900:], y[900:]) > 0.9
    True
    >>> learner.resolved_.learners.regularizer is None
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    def resolve(self, n_features: int) -> EnsembleSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        learner = COMID(
            divergence="frobenius",
            regularizer=None,
            learning_rate=sys.float_info.max,
            n_components=self.n_components,
            init="zero",
            scale=self.scale,
        )
        return learner.resolve(n_features)
