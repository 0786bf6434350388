"""Pairs and triplets drawn from class labels.

Pairs and triplets are numbered from 0, in the order of classes; different numbers drawn at random
stand for different ones.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from metrack.classes import ClassOrder
from metrack.engine.numerics.kernels import Ints
from metrack.estimators.inputs import check_class_labels
from metrack.estimators.inputs.settings import Seed, whole


def pairs_from_labels(labels: Any, n_pairs: int, random_state: Seed = None) -> tuple[Ints, Ints]:
    """Draw pairs of points, as many similar as dissimilar ones.

    Parameters
    ----------
    labels : array (n_points,)
        Class labels of any kind that can be sorted.
    n_pairs : int
        Half of them, rounded up, are similar; fewer pairs of a kind where there are not so many.
    random_state : int, RandomState or None

    Returns
    -------
    pairs : array (n_pairs, 2)
        Row numbers; no pair comes twice, and in random order.
    y : array (n_pairs,)
        +1 where both points are of the same class, else -1.

    Examples
    --------
    >>> from metrack.estimators.choosing.constraints import pairs_from_labels
    >>> pairs, y = pairs_from_labels(["a", "a", "b", "b", "b"], 6, random_state=0)
    >>> pairs.shape, int(y.sum())
    ((6, 2), 0)
    """
    n_pairs, rng = whole("n_pairs", n_pairs), check_random_state(random_state)
    classes = ClassOrder(check_classes(labels))
    after = classes.end - np.arange(classes.n_points) - 1
    alike = _unrank(classes, after, 1, -(-n_pairs // 2), rng)
    others = _unrank(classes, classes.n_points - classes.end, None, n_pairs // 2, rng)
    pairs = np.concatenate([alike, others])
    y = np.repeat([1, -1], [len(alike), len(others)])
    mixed = rng.permutation(len(pairs))
    return pairs[mixed], y[mixed]


def triplets_from_labels(labels: Any, n_triplets: int, random_state: Seed = None) -> Ints:
    """Draw triplets: a point, another of its class, and one of another class.

    Parameters
    ----------
    labels : array (n_points,)
        Class labels of any kind that can be sorted.
    n_triplets : int
        All there are, where there are not so many.
    random_state : int, RandomState or None

    Returns
    -------
    array (n_triplets, 3)
        Row numbers; no triplet comes twice, and in random order.

    Examples
    --------
    >>> from metrack.estimators.choosing.constraints import triplets_from_labels
    >>> sorted(triplets_from_labels(["a", "a", "b"], 9, random_state=0).tolist())
    [[0, 1, 2], [1, 0, 2]]
    """
    n_triplets, rng = whole("n_triplets", n_triplets), check_random_state(random_state)
    classes = ClassOrder(check_classes(labels))
    n_others = classes.n_points - classes.size
    up_to = np.cumsum((classes.size - 1) * n_others)
    numbers = _different(int(up_to[-1]), n_triplets, rng)
    first = np.searchsorted(up_to, numbers, side="right")
    left = up_to[first] - 1 - numbers
    second, third = np.divmod(left, n_others[first])
    start, size = classes.start[first], classes.size[first]
    second = start + (first - start + 1 + second) % size
    third = (classes.end[first] + third) % classes.n_points
    triplets: Ints = classes.order[np.column_stack([first, second, third])]
    return triplets


def check_classes(labels: Any) -> Ints:
    """The class of each point, by number; refuses what has no pairs."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"labels must be 1-D, one a point; got shape {given.shape}")
    if given.size < 2:
        raise ValueError(f"there are labels of {given.size} sample; pairs need two or more")
    check_class_labels(given)
    names, codes, counts = np.unique(given, return_inverse=True, return_counts=True)
    if counts.max() < 2:
        raise ValueError(
            "no class has two points: there are no similar pairs to draw; add points of the same "
            "class"
        )
    if counts.size < 2:
        raise ValueError(
            f"there is only one class, {names.tolist()[0]!r}: there are no dissimilar pairs to "
            "draw; add points of another class"
        )
    return codes


def _unrank(
    classes: ClassOrder, n_partners: Ints, offset: int | None, n_pairs: int, rng: Any
) -> Ints:
    """Different pairs of a point and one after it: ``offset`` places on, or after its class."""
    up_to = np.cumsum(n_partners)
    numbers = _different(int(up_to[-1]), n_pairs, rng)
    first = np.searchsorted(up_to, numbers, side="right")
    begin = classes.end[first] if offset is None else first + offset
    return classes.order[np.column_stack([first, begin + up_to[first] - 1 - numbers])]


def _different(n: int, n_wanted: int, rng: Any) -> Ints:
    """Whole numbers below n, all different, in random order."""
    numbers = sample_without_replacement(n, min(n, n_wanted), random_state=rng)
    return rng.permutation(numbers.astype(np.int64))  # type: ignore[no-any-return]
