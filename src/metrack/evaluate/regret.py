"""Regret: what a learner has lost beyond a comparator, as arrays ready to plot.

Every function takes the losses suffered, as ``observe`` returns them, and those of a comparator on
the same pairs, as `comparator_losses` gives them. Where several comparators are given, regret is
that against the best of them: of all so far, or in each interval.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats, Ints, whole
from metrack.engine.numerics.losses import LOSSES
from metrack.estimators.inputs import PairBatch, check_labels
from metrack.estimators.inputs.settings import choice
from metrack.evaluate.checks import check_losses, check_rivals
from metrack.evaluate.margins import loss_of

Metrics = Iterable[ArrayLike] | Callable[[int], ArrayLike | tuple[ArrayLike, ArrayLike]]
Comparator = tuple[ArrayLike, ArrayLike] | Callable[[int], tuple[ArrayLike, ArrayLike]]


def comparator_losses(
    pairs: ArrayLike, y: ArrayLike, comparator: Comparator, loss: str = "hinge"
) -> Floats:
    """Losses of given metrics and thresholds on pairs.

    Parameters
    ----------
    pairs : array (n_pairs, 2, n_features)
    y : array (n_pairs,)
        +1 alike, -1 not alike.
    comparator : (M, mu), or callable
        A metric (n_features, n_features), or one for each pair (n_pairs, n_features, n_features),
        with a threshold on the squared distance or one for each pair; or a function that gives
        (M, mu) for round t = 0, 1, ...
    loss : str
        As in `metrack.COMID`.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = np.array([[[0.0, 0.0], [2.0, 5.0]], [[0.0, 0.0], [1.0, 5.0]]])
    >>> only_first = np.diag([1.0, 0.0])
    >>> comparator_losses(pairs, [-1, 1], (only_first, 1.5))  # q = 4 and 1
    array([0. , 0.5])
    >>> comparator_losses(pairs, [-1, 1], lambda t: (only_first, 1.5 + t))
    array([0., 0.])
    """
    batch = PairBatch(pairs, None, None)
    labels = check_labels(y, len(batch))
    kind = choice("loss", loss, LOSSES)
    u = np.asarray(batch.differences(0, len(batch)))
    if callable(comparator):
        each = [_judged(u[t : t + 1], *comparator(t)) for t in range(len(u))]
        q, mu = (np.concatenate(part) for part in zip(*each, strict=True))
    else:
        q, mu = _judged(u, *comparator)
    shortfalls = np.where(labels > 0.0, (1.0 - mu) + q, (1.0 + mu) - q)
    return loss_of(kind, shortfalls)


def static_regret(losses: ArrayLike, comparator_losses: ArrayLike) -> Floats:
    """Regret so far against the best fixed one of some comparators, round by round.

    Parameters
    ----------
    losses : array (n_rounds,)
    comparator_losses : array (n_rounds,) or (n_comparators, n_rounds)
        Of fixed metrics, such as `best_fixed` gives.

    Examples
    --------
    >>> static_regret([1.0, 1.0, 1.0], [[0.0, 2.0, 2.0], [1.0, 1.0, 0.5]])
    array([1. , 0. , 0.5])
    """
    regret: Floats = _cumulative(losses, comparator_losses)[:, 1:].max(axis=0)
    return regret


def dynamic_regret(losses: ArrayLike, comparator_losses: ArrayLike) -> Floats:
    """Regret so far against one sequence of comparators, round by round.

    Parameters
    ----------
    losses, comparator_losses : array (n_rounds,)

    Examples
    --------
    >>> dynamic_regret([1.0, 1.0, 1.0], [0.0, 1.0, 0.5])
    array([1. , 1. , 1.5])
    """
    suffered = check_losses(losses)
    return np.cumsum(suffered - check_rivals(comparator_losses, suffered.size, several=False)[0])


def interval_regret(
    losses: ArrayLike, comparator_losses: ArrayLike, intervals: ArrayLike | None = None
) -> Floats:
    """Regret on intervals, in each against the best comparator there.

    Parameters
    ----------
    losses : array (n_rounds,)
    comparator_losses : array (n_rounds,) or (n_comparators, n_rounds)
    intervals : array (n_intervals, 2), optional
        (start, stop), the latter not included; by default every interval there is.

    Returns
    -------
    array (n_intervals,), or (n_rounds + 1, n_rounds + 1)
        With no intervals given, entry [start, stop] is the regret on that interval, and NaN where
        there is none. That takes 8 n_rounds^2 bytes: for long streams see `adaptive_regret`.

    Examples
    --------
    >>> losses, best = [1.0, 3.0, 1.0], [1.0, 0.0, 0.5]
    >>> interval_regret(losses, best, [(0, 1), (1, 3)])
    array([0. , 3.5])
    >>> interval_regret(losses, best)[1, 3]
    np.float64(3.5)
    """
    totals = _cumulative(losses, comparator_losses)
    n_rounds = totals.shape[1] - 1
    if intervals is not None:
        start, stop = _check_intervals(intervals, n_rounds).T
        on_given: Floats = (totals[:, stop] - totals[:, start]).max(axis=0)
        return on_given
    on_all = np.full((n_rounds + 1, n_rounds + 1), -np.inf)
    for total in totals:
        np.maximum(on_all, total - total[:, None], out=on_all)
    on_all[np.tril_indices(n_rounds + 1)] = np.nan
    return on_all


def adaptive_regret(losses: ArrayLike, comparator_losses: ArrayLike, lengths: ArrayLike) -> Floats:
    """The largest regret on any interval of each length: strongly adaptive regret.

    Parameters
    ----------
    losses : array (n_rounds,)
    comparator_losses : array (n_rounds,) or (n_comparators, n_rounds)
    lengths : array of int

    Examples
    --------
    >>> adaptive_regret([1.0, 3.0, 1.0], [1.0, 0.0, 0.5], lengths=[1, 2, 3])
    array([3. , 3.5, 3.5])
    """
    totals = _cumulative(losses, comparator_losses)
    widths = [
        whole("a length", each, most=totals.shape[1] - 1) for each in np.ravel(lengths).tolist()
    ]
    return np.array([(totals[:, w:] - totals[:, :-w]).max() for w in widths])


def path_length(metrics: Metrics, n_rounds: int | None = None) -> Floats:
    """How far a sequence of metrics has moved: the sum of |M_t+1 - M_t|_F so far, round by round.

    Parameters
    ----------
    metrics : array (n_rounds, n_features, n_features), or callable
        The metrics, or a function that gives the metric, or (M, mu), of round t = 0, 1, ...
        Thresholds do not count.
    n_rounds : int
        With a function, for how many rounds to call it.

    Examples
    --------
    >>> import numpy as np
    >>> path_length([np.zeros((2, 2)), np.eye(2), 3 * np.eye(2)]).round(3)
    array([0.   , 1.414, 4.243])
    >>> path_length(lambda t: t * np.eye(4), n_rounds=3)
    array([0., 2., 4.])
    """
    found: Iterable[ArrayLike]
    if callable(metrics):
        given = map(metrics, range(whole("n_rounds", n_rounds)))
        found = (each[0] if isinstance(each, tuple) else each for each in given)
    else:
        found = metrics
    moved, last = [], None
    for each in found:
        now = np.asarray(each, dtype=np.float64)
        moved.append(0.0 if last is None else float(np.linalg.norm(now - last)))
        last = now
    return np.cumsum(moved)


def _cumulative(losses: ArrayLike, comparator_losses: ArrayLike) -> Floats:
    """Regret against each comparator before every round and after the last."""
    suffered = check_losses(losses)
    excess = suffered - check_rivals(comparator_losses, suffered.size)
    return np.pad(np.cumsum(excess, axis=1), ((0, 0), (1, 0)))


def _judged(u: Floats, M: ArrayLike, mu: ArrayLike) -> tuple[Floats, Floats]:
    """Squared distances and thresholds for each row of u."""
    (n_rounds, n), metric = u.shape, np.asarray(M, dtype=np.float64)
    if metric.shape not in ((n, n), (n_rounds, n, n)):
        raise ValueError(
            f"a comparator's metric must have shape ({n}, {n}), or ({n_rounds}, {n}, {n}) with one "
            f"per pair; got {metric.shape}"
        )
    threshold = np.asarray(mu, dtype=np.float64)
    if threshold.shape not in ((), (n_rounds,)):
        raise ValueError(
            f"a comparator's threshold must be a number, or {n_rounds} of them, one per pair; got "
            f"shape {threshold.shape}"
        )
    moved = u @ metric if metric.ndim == 2 else np.einsum("ti,tij->tj", u, metric)
    q: Floats = np.einsum("ti,ti->t", moved, u)
    return q, np.broadcast_to(threshold, q.shape)


def _check_intervals(intervals: ArrayLike, n_rounds: int) -> Ints:
    array = np.asarray(intervals)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"intervals must be whole numbers (n_intervals, 2); got {intervals!r}")
    start, stop = array.T
    wrong = np.flatnonzero((start < 0) | (start >= stop) | (stop > n_rounds))
    if wrong.size:
        first = tuple(array[wrong[0]].tolist())
        raise ValueError(
            f"intervals[{wrong[0]}] = {first}: ask for 0 <= start < stop <= {n_rounds}"
        )
    return array.astype(np.int64)
