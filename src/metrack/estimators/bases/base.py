"""What every learned metric can tell: distances, scores, the embedding."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.inputs import LabelsLike, Lookup, PointsLike, TuplesLike
from metrack.estimators.inputs.settings import Configurable

F = TypeVar("F", bound=Callable[..., Any])


fitted_to_points: Callable[[F], F] = available_if(
    lambda self: get_tags(self).input_tags.two_d_array
)


class _FitTransform:
    """``fit_transform`` where ``fit`` takes points, as ``transform`` does, and not pairs of them.

    It is apart because scikit-learn wraps what a transformer's own class defines, and so would
    always show it.
    """

    @fitted_to_points
    def fit_transform(self, X: PointsLike, y: LabelsLike | None = None, **fit_params: Any) -> Any:
        """Fit to points, then embed them."""
        return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]


class Embedding(_FitTransform, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Configurable):
    """Read-outs of a metric, whatever it is and was learned from.

    A subclass provides, once fitted, ``n_features_in_`` and ``preprocessor_`` (the preprocessor,
    checked); and ``feature_names_in_``, where that is a DataFrame.
    """

    n_features_in_: int
    preprocessor_: Lookup

    def transform(self, X: PointsLike) -> Floats:
        """Embed points where the Euclidean distance is the learned one.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor

        Returns
        -------
        array (n_points, rank)
            Directions that matter most come first. With an ``n_components`` setting there are that
            many columns: the last are 0 where the metric has fewer directions, and the least are
            left out where it has more. float32 where the points are.
        """
        check_is_fitted(self)
        return self._embed(X)

    def _embed(self, X: PointsLike) -> Floats:
        raise NotImplementedError

    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        raise NotImplementedError

    def _named_features(self, names: Any = None) -> NDArray[Any]:
        """The features by given names, else by those that are known, else by number."""
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        if names is None:
            return np.arange(self.n_features_in_)
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"names has {len(names)} names for {self.n_features_in_} features; give one each"
            )
        return np.array(names, dtype=object)

    def pair_score(self, pairs: TuplesLike) -> Floats:
        """Similarity of each pair: the negative of its distance."""
        return -self.pair_distance(pairs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
