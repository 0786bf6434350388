"""What answers imply where alike is transitive: classes, topics, duplicates of one another.

Points that answers connect as alike form groups. One answer that two points are not alike tells
their whole groups apart, and one that they are makes one group of two: so a new point, compared
with the groups that are nearest, is soon known with regard to all other points in them.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.inputs import LabelsLike, check_labels
from metrack.estimators.inputs.settings import Seed, whole

ONE_IN = 10  # answers about a point that was judged before is alike, where classes are few ...
UNLUCKY = 3  # ... but for so many
OF_AN_ANSWER, WEIGHT = 192, 0.05  # pairs that are learned beside one, and what each counts
SEEN_OF_A_CLASS = 16  # members whose mean stands for it


class Groups(NamedTuple):
    """Points that were judged, and what is known of them."""

    points: Ints  # rows, in rising order
    group: Ints  # of each point
    apart: Any  # CSR matrix (n_groups, n_groups): not 0 where two groups are told apart


def groups_of(rows: Ints, y: Floats) -> Groups:
    """The groups that answers make; those that contradict them are left out."""
    points, where = np.unique(rows, return_inverse=True)
    ends = where.reshape(-1, 2)
    n, alike = len(points), ends[y > 0.0]
    edges = sp.coo_array((np.ones(len(alike)), alike.T), shape=(n, n))
    n_groups, group = connected_components(edges, directed=False)
    pairs = group[ends[y < 0.0]]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    apart = sp.csr_array((np.ones(len(both)), both.T), shape=(n_groups, n_groups))
    apart.sum_duplicates()
    return Groups(points, group.astype(np.int64), apart)


def implied_pairs(
    rows: ArrayLike, y: LabelsLike, n_pairs: int, random_state: Seed = None
) -> tuple[Ints, Floats]:
    """Draw pairs whose judgement follows from others, where alike is transitive.

    If a and b are alike, and b and c, then so are a and c; if c and d are not alike, neither are a
    and d. Learned beside what was judged, such pairs let few answers go a long way: many of them,
    each with little weight, since they are all of the same few points. With so many classes that
    fewer than one in ten answers about a point that was judged before is alike, few pairs would be
    learned again and again: none is drawn then.

    Parameters
    ----------
    rows : array (n_judged, 2)
        Pairs that were judged, as row numbers, in the order of their judgements.
    y : array (n_judged,)
        +1 alike, -1 not alike; all answers to the same question.
    n_pairs : int
        How many to draw; 192 for each answer that is learned with them, at a ``sample_weight`` of
        0.05, did best of what was tried.
    random_state : int, RandomState or None

    Returns
    -------
    rows, y : array (n_drawn, 2) and (n_drawn,)
        Different pairs that were not judged, half of them alike. Fewer than asked for, or
        none, where fewer of a kind follow.

    Examples
    --------
    >>> from metrack import implied_pairs
    >>> rows, y = implied_pairs([[0, 1], [1, 2], [1, 3]], [1, 1, -1], 100, random_state=0)
    >>> sorted((int(each), min(row), max(row)) for row, each in zip(rows.tolist(), y))[-1]
    (1, 0, 2)
    """
    judged, labels = check_judged(rows, y)
    rng, n_alike = check_random_state(random_state), whole("n_pairs", n_pairs) // 2
    if not few_classes(judged, labels):
        return np.empty((0, 2), np.int64), np.empty(0)
    known = groups_of(judged, labels)
    alike = _not_judged(_alike(known, n_alike, rng), judged)
    other = _not_judged(_apart(known, n_pairs - n_alike, rng), judged)
    each = min(len(alike), len(other))
    found = np.concatenate([alike[:each], other[:each]])
    order = rng.permutation(2 * each)
    return found[order], np.repeat([1.0, -1.0], each)[order]


def following(known: Groups, label: float, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """Pairs that are alike (label 1) or not (-1), whether judged or not; none where none are."""
    return (_alike if label > 0.0 else _apart)(known, n_pairs, rng)


def told_apart(known: Groups, one: Ints, two: Ints) -> Any:
    """Which groups are told apart from which, pair by pair."""
    n_groups, apart = known.apart.shape[0], known.apart.tocoo()
    return np.isin(one * n_groups + two, apart.row.astype(np.int64) * n_groups + apart.col)


def few_classes(rows: Ints, y: Floats) -> bool:
    """Whether so few classes have come up that points can be compared with each of them.

    A point that was judged before stands for its class: of such questions one in as many as there
    are classes is answered by alike if nothing is known, and more if anything is. Once there were
    too few such answers, it is decided.
    """
    seen = np.ones(rows.size, bool)
    seen[np.unique(rows, return_index=True)[1]] = False
    alike = y[seen.reshape(-1, 2).any(axis=1)] > 0.0
    enough = UNLUCKY + np.cumsum(alike) >= np.arange(1, len(alike) + 1) / ONE_IN
    return bool(enough.all())


def _not_judged(pairs: Ints, judged: Ints) -> Ints:
    """Different pairs, in their order, without those that were judged."""
    both = np.sort(np.concatenate([judged, pairs]), axis=1)
    _, first = np.unique(both, axis=0, return_index=True)
    return pairs[np.sort(first[first >= len(judged)]) - len(judged)]


def check_judged(rows: ArrayLike, y: LabelsLike) -> tuple[Ints, Floats]:
    """Pairs of row numbers and their labels, as users give them."""
    judged = np.asarray(rows)
    if judged.ndim != 2 or judged.shape[1] != 2 or judged.dtype.kind not in "iu":
        raise ValueError(
            f"judged pairs must be row numbers of shape (n_pairs, 2); got {judged.dtype} of shape "
            f"{judged.shape}"
        )
    return judged.astype(np.int64), check_labels(y, len(judged))


def _alike(known: Groups, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """Two points of a group: one, then another."""
    members, starts, sizes = _members(known)
    first = np.flatnonzero(sizes[known.group[members]] > 1)
    if first.size == 0:
        return np.empty((0, 2), np.int64)
    one = rng.choice(first, n_pairs)
    group = known.group[members[one]]
    step = 1 + (rng.random_sample(n_pairs) * (sizes[group] - 1)).astype(np.int64)
    two = starts[group] + (one - starts[group] + step) % sizes[group]
    pairs: Ints = known.points[members[np.stack([one, two], axis=1)]]
    return pairs


def _apart(known: Groups, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """A point, then one of a group that its own is told apart from."""
    members, starts, sizes = _members(known)
    from_, n_apart = known.apart.indptr, np.diff(known.apart.indptr)
    first = np.flatnonzero(n_apart[known.group] > 0)
    if first.size == 0:
        return np.empty((0, 2), np.int64)
    one = rng.choice(first, n_pairs)
    group = known.group[one]
    drawn = from_[group] + (rng.random_sample(n_pairs) * n_apart[group]).astype(np.int64)
    other = known.apart.indices[drawn]
    two = members[starts[other] + (rng.random_sample(n_pairs) * sizes[other]).astype(np.int64)]
    pairs: Ints = known.points[np.stack([one, two], axis=1)]
    return pairs


def _members(known: Groups) -> tuple[Ints, Ints, Ints]:
    """Points group by group, where each group starts, and its size."""
    sizes = np.bincount(known.group)
    return np.argsort(known.group, kind="stable"), np.cumsum(sizes) - sizes, sizes


def next_questions(
    points: Any, n_pairs: int, components: Floats, known: Groups, rng: np.random.RandomState
) -> Ints:
    """Pairs of a point of no class yet, and one of the class that is nearest to it.

    Classes are groups that are all told apart from one another. Groups that are not told apart from
    all of them come first, with the nearest class that has not refused them; then new points.

    Parameters
    ----------
    points : array or CSR matrix (n_points, n_features)
    n_pairs : int
        At most so many are returned.
    components : array (rank, n_features)
        L of the metric.
    known : Groups
    rng : RandomState
    """
    members, starts, sizes = _members(known)
    told = classes(known)
    refused = known.apart[:, told].toarray() > 0.0
    open_ = ~refused.all(axis=1)
    open_[told] = False
    waiting = rng.permutation(np.flatnonzero(open_))[:n_pairs]
    fresh = np.setdiff1d(np.arange(points.shape[0]), known.points)
    fresh = rng.permutation(fresh)[: n_pairs - len(waiting)]
    asked = np.concatenate([known.points[members[starts[waiting]]], fresh])
    offsets = rng.random_sample((len(told), SEEN_OF_A_CLASS)) * sizes[told, None]
    seen = known.points[members[starts[told, None] + offsets.astype(np.int64)]]
    centres = np.asarray(points[seen.ravel()] @ components.T)
    centres = centres.reshape(*seen.shape, -1).mean(axis=1)
    squares = cdist(np.asarray(points[asked] @ components.T), centres, "sqeuclidean")
    squares[: len(waiting)][refused[waiting]] = np.inf
    nearest = np.argmin(squares, axis=1)
    rows: Ints = np.stack([asked, seen[nearest, 0]], axis=1)
    return rows


def classes(known: Groups) -> Ints:
    """Groups that are all told apart from one another, the largest first."""
    found: list[int] = []
    sizes = np.bincount(known.group)
    told = np.zeros(len(sizes))  # from how many of the classes
    for group in np.argsort(-sizes, kind="stable").tolist():
        if told[group] == len(found):
            found.append(group)
            told[known.apart[[group]].indices] += 1.0
    return np.array(found, np.int64)
