"""Judgements and class labels as users give them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import HEAVIEST
from metrack.estimators.inputs.arrays import as_array, as_numbers, check_one_each
from metrack.estimators.inputs.points import PointsLike, check_points
from metrack.estimators.inputs.settings import is_number

LabelsLike: TypeAlias = ArrayLike


def check_labels(
    y: LabelsLike | None, n_pairs: int, numbers: Sequence[int] | None = None
) -> Floats:
    """Labels +1 (alike) and -1 (not alike), one per pair; also where they are 1 and 0, or booleans.

    A batch of ones alone is the same in all three. Only one that has both 0 and -1 cannot be read.

    Parameters
    ----------
    y, n_pairs
    numbers : sequence of int, optional
        Of the labels among those that a user gave, for errors; by default from 0 on.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give one label per pair"
        )
    try:
        labels = as_array(y)
    except (TypeError, ValueError):
        raise ValueError("y must have one label per pair, +1 (alike) or -1 (not alike)") from None
    check_one_each(labels, "y", "label", n_pairs, "pair")
    if labels.dtype.kind == "b":
        return np.where(labels, 1.0, -1.0)
    _check_values(labels, range(n_pairs) if numbers is None else numbers)
    return np.where(labels > 0, 1.0, -1.0)


def _check_values(labels: Any, numbers: Sequence[int]) -> None:
    """Refuse what is no label, and labels for not alike of two kinds."""
    if labels.dtype.kind in "iuf":
        wrong = np.flatnonzero((labels != 0) & (np.abs(labels) != 1))
    else:
        wrong = np.flatnonzero([not _is_label(each) for each in labels.tolist()])
    if wrong.size:
        label = labels.tolist()[wrong[0]]
        raise ValueError(
            f"y[{numbers[wrong[0]]}] = {label!r}; labels are +1 (alike) or -1 (not alike), or 1 "
            "and 0, or booleans"
        )
    zeros, minuses = (np.flatnonzero(labels == value) for value in (0, -1))
    if zeros.size and minuses.size:
        (before, first), (row, second) = sorted([(zeros[0], 0), (minuses[0], -1)])
        raise ValueError(
            f"y[{numbers[row]}] = {second}, but y[{numbers[before]}] = {first}: not alike is "
            "either -1 or 0; leave pairs out that nobody is sure of"
        )


def _is_label(value: Any) -> bool:
    return isinstance(value, bool) or (is_number(value) and value in (-1, 0, 1))


def check_judgements(
    y: LabelsLike | None, n_pairs: int, sample_weight: ArrayLike | None, graded: bool
) -> Floats:
    """Labels times weights: the sign says whether a pair is alike, the size how much it counts."""
    labels = check_graded(y, n_pairs) if graded else check_labels(y, n_pairs)
    if sample_weight is None:
        return labels
    weights = as_numbers(sample_weight, "sample_weight")
    check_one_each(weights, "sample_weight", "number", n_pairs, "pair")
    wrong = np.flatnonzero(~((weights >= 0.0) & (weights <= HEAVIEST)))
    if wrong.size:
        raise ValueError(
            f"sample_weight[{wrong[0]}] = {weights[wrong[0]]:g}; weights must be numbers from 0 to "
            f"{HEAVIEST:g}"
        )
    found: Floats = labels * weights
    return found


def check_graded(y: LabelsLike | None, n_pairs: int) -> Floats:
    """Answers from -1 (surely not alike) over 0 (unsure) to +1 (surely alike), one per pair.

    Booleans are sure, both of them.
    """
    if y is None or np.asarray(y).dtype.kind == "b":
        return check_labels(y, n_pairs)
    answers = as_numbers(y, "y")
    check_one_each(answers, "y", "label", n_pairs, "pair")
    wrong = np.flatnonzero(~(np.abs(answers) <= 1.0))
    if wrong.size:
        raise ValueError(
            f"y[{wrong[0]}] = {answers[wrong[0]]:g}; graded answers are from -1 (surely not alike) "
            "to +1 (surely alike), and 0 where it is unsure"
        )
    graded: Floats = answers
    return graded


def check_class_labels(y: LabelsLike) -> None:
    """Refuse class labels of which some are missing."""
    labels: Any = np.asarray(y)
    if labels.ndim == 0 or labels.dtype.kind not in "fO":
        return
    for i, label in enumerate(labels.ravel().tolist()):
        if _is_missing(label):
            raise ValueError(
                f"y[{i}] = {label!r}: the class label is missing; drop the points that have none"
            )


def check_labelled(
    estimator: Any, X: PointsLike, y: LabelsLike | None, **options: Any
) -> tuple[Any, Any]:
    """Points and their class labels: what scikit-learn asks of them, finite, and none missing.

    Options are those of ``validate_data``.
    """
    if y is not None:
        check_class_labels(y)
    points, labels = validate_data(estimator, X, y, dtype=np.float64, **options)
    check_classification_targets(labels)
    return check_points(points), labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor not
        return True
