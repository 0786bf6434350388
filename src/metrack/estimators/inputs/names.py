"""Features by their names: of the columns of a DataFrame, of differences, of a saved state."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data


def take_names(estimator: Any, points: Any, reset: bool = True) -> None:
    """Know the features by the columns of a DataFrame, as everywhere in scikit-learn.

    Without ``reset`` the columns must be those that are known; what has none is not compared.
    """
    if hasattr(points, "columns"):
        if reset or hasattr(estimator, "feature_names_in_"):
            validate_data(estimator, points, reset=reset, skip_check_array=True)
    elif reset:
        vars(estimator).pop("feature_names_in_", None)


def take_names_of_pairs(estimator: Any, names: Sequence[str] | None) -> None:
    """Know the features by the names of differences; names that are known must be the same."""
    if names is None:
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif names != known.tolist():
        i, *_ = (i for i, name in enumerate(known) if names[i] != name)
        raise ValueError(
            f"feature {i} of the differences is {names[i]!r}, but the metric was learned with "
            f"{known[i]!r} there; give the same features in the same order"
        )


def restore_names(estimator: Any, names: Any, n_features: int) -> None:
    """Know the features by names that were saved, if there were any."""
    if names is None:
        return
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"there are not {n_features} names of features")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def hand_names(estimator: Any, other: Any) -> None:
    """Let another estimator, on the same features, know them by the same names."""
    if hasattr(estimator, "feature_names_in_"):
        other.feature_names_in_ = estimator.feature_names_in_
