"""Which pairs to judge next."""

import numpy as np

from metrack.checks import Floats, Ints
from metrack.estimators.online import OnlineLearner

CANDIDATES = 2000


def suggest_pairs(
    learner: OnlineLearner, X: Floats, n_pairs: int, random_state: int | None = None
) -> Ints:
    """Rows of X, two and two: of random pairs those whose judgement is least certain.

    These are the ones whose distance is nearest to the threshold, by ratio. No pair comes twice.

    Parameters
    ----------
    learner : OnlineLearner
        Started.
    X : array (n_points, n_features)
    n_pairs : int
    random_state : int, optional

    Returns
    -------
    array (at most n_pairs, 2)
    """
    rng = np.random.default_rng(random_state)
    rows: Ints = rng.integers(len(X), size=(max(CANDIDATES, 4 * n_pairs), 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    _, first = np.unique(np.sort(rows, axis=1), axis=0, return_index=True)
    rows = rows[np.sort(first)]
    if not len(rows):
        return rows
    distances = learner.pair_distance(X[rows])
    unsure = np.abs(np.log((distances + 1e-12) / (learner.threshold_ + 1e-12)))
    return rows[np.argsort(unsure, kind="stable")[:n_pairs]]
