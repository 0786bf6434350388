"""Pairs and labels as users give them, checked once at the door.

Every error names the offending row and says what to do. Nothing here changes a learner.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.pairs import HEAVIEST, Pairs, PointPairs
from metrack.estimators.differences import Differences
from metrack.estimators.settings import is_number

CHUNK = 4096  # pairs whose differences are held at a time
LARGEST = 1e40  # of a feature: what the engine squares stays finite

# What users give; what of it is of use is found out here.
PointsLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix  # rows, or row numbers or ids of them
# Pairs or triplets of points, or of row numbers or ids; pairs also by their differences.
TuplesLike: TypeAlias = ArrayLike | Differences
LabelsLike: TypeAlias = ArrayLike
Preprocessor: TypeAlias = PointsLike | Callable[[Any], Any] | None  # points, or ids to points
# What was checked.
Points = Floats | sp.csr_array
Lookup: TypeAlias = Points | Callable[[Any], Any] | None  # a preprocessor


def check_points(points: Any, name: str = "X", n_features: int | None = None) -> Points:
    """Rows of finite numbers, dense or CSR."""
    if sp.issparse(points):
        given: Any = points
        if given.ndim != 2:
            raise ValueError(f"{name} must be 2-D, one point a row; got {given.ndim} dimensions")
        _check_kind(given.dtype, name)
        matrix = sp.csr_array(given, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the next line works in place, and the arrays are the caller's
            matrix.sum_duplicates()
        _check_finite(matrix.data, lambda i: f"{name} row {_row_of(matrix, i)}")
        found: Points = matrix
    else:
        found = _numbers(points, name)
        if found.ndim == 1:
            raise ValueError(
                f"{name} must be 2-D, one point a row; got a 1-D array. Reshape your data using "
                "array.reshape(1, -1) if it is a single point."
            )
        if found.ndim != 2:
            raise ValueError(f"{name} must be 2-D, one point a row; got {found.ndim} dimensions")
        _check_finite(found, lambda i: f"{name} row {i // found.shape[1]}")
    if found.shape[0] == 0:
        raise ValueError(f"{name} has 0 rows; pass at least one point")
    _check_width(found.shape[1], name, n_features)
    return found


def check_preprocessor(preprocessor: Preprocessor) -> Lookup:
    """The points that index pairs refer to, or the callable that gives them."""
    if preprocessor is None or callable(preprocessor):
        return preprocessor
    return check_points(preprocessor, "preprocessor")


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


def points_of(X: PointsLike, preprocessor: Lookup, n_features: int | None) -> Points:
    """Points given as such, or as row numbers or other ids."""
    if preprocessor is not None and not sp.issparse(X):
        array = _numbers(X, "X", id_dimensions=1)
        if array.ndim == 1:
            points, rows = _look_up(array, preprocessor, "X")
            _check_width(points.shape[1], "X", n_features)
            taken: Points = points[rows]
            return taken
    return check_points(X, "X", n_features)


def points_for(estimator: Any, X: PointsLike) -> Points:
    """Points as a fitted estimator takes them: of its features, under the names that it knows."""
    take_names(estimator, X, reset=False)
    return points_of(X, estimator.preprocessor_, estimator.n_features_in_)


def are_ids(X: PointsLike, preprocessor: Lookup) -> bool:
    """Whether X names points by row numbers or other ids."""
    return preprocessor is not None and not sp.issparse(X) and np.asarray(X).ndim == 1


def float_type(points: Any) -> type[np.floating[Any]]:
    """The type of what is computed from points: float32 where they are, else float64."""
    dtype = points.dtype if hasattr(points, "dtype") else np.asarray(points).dtype
    return np.float32 if dtype == np.float32 else np.float64


class TupleBatch:
    """A checked batch of pairs or triplets: arrays of points, or indices into one.

    Parameters
    ----------
    tuples : array (n_tuples, size, n_features), or row numbers or ids (n_tuples, size)
        The latter with a preprocessor. Pairs may be `Differences`.
    preprocessor : None, points, or callable
        As `check_preprocessor` returns it.
    n_features : int or None
        What the learner has seen before.
    """

    name: ClassVar[str]
    size: ClassVar[int]

    def __init__(
        self, tuples: PointsLike | Differences, preprocessor: Lookup, n_features: int | None
    ) -> None:
        name, size = self.name, self.size
        self.names: Sequence[str] | None = None  # of features, where differences have them
        if isinstance(tuples, Differences) and size == 2:
            self.names, tuples = tuples.names, tuples.as_points()
        array = _numbers(tuples, name, id_dimensions=2)
        are_ids = preprocessor is not None or _is_text(array)
        if are_ids and array.ndim == 2 and array.shape[1:] == (size,):
            self.rows: Ints | None
            self.points, self.rows = _look_up(array, preprocessor, name)
            width = self.points.shape[1]
        else:
            _check_tuples_shape(array, name, size)
            self.rows = None
            self.points = np.ascontiguousarray(array, dtype=np.float64)
            width = self.points.shape[2]
            _check_finite(
                self.points, lambda i: f"{name}[{i // (size * width)}, {i // width % size}]"
            )
        _check_width(width, name, n_features)
        self.n_features = width
        self.reports: Callable[[int], None] | None = (
            None  # told how many were taken, range by range
        )

    def __len__(self) -> int:
        return len(self.points if self.rows is None else self.rows)

    def member(self, i: int, start: int, stop: int) -> Points:
        """Rows: the i-th point of each tuple in a range."""
        if self.rows is None:
            points: Points = self.points[start:stop, i]
        else:
            points = self.points[self.rows[start:stop, i]]
        return points

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The batch in pieces that the engine takes."""
        for start in range(0, len(self), CHUNK):
            if self.reports is not None:
                self.reports(start)
            yield start, min(start + CHUNK, len(self))


class PairBatch(TupleBatch):
    """Pairs (x, z)."""

    name, size = "pairs", 2

    def differences(self, start: int, stop: int) -> Points:
        """Rows x - z of a range of pairs."""
        return self.member(0, start, stop) - self.member(1, start, stop)

    def pieces(self) -> Iterator[Points]:
        """Differences, piece by piece."""
        for start, stop in self.ranges():
            yield self.differences(start, stop)

    def chunks(self, y: Floats) -> Iterator[Pairs]:
        """Differences and labels, piece by piece."""
        for start, stop in self.ranges():
            yield _rows(self.differences(start, stop), y[start:stop])

    def point_chunks(self, y: Floats) -> Iterator[PointPairs]:
        """Both points, differences and labels, piece by piece."""
        for start, stop in self.ranges():
            x, z, labels = self.member(0, start, stop), self.member(1, start, stop), y[start:stop]
            yield PointPairs(*(_rows(points, labels) for points in (x, z, x - z)))


class TripletBatch(TupleBatch):
    """Triplets (anchor, positive, negative)."""

    name, size = "triplets", 3

    def gaps(self, start: int, stop: int) -> Points:
        """Rows positive - negative of a range of triplets."""
        return self.member(1, start, stop) - self.member(2, start, stop)

    def chunks(self) -> Iterator[tuple[Pairs, Pairs]]:
        """Anchors and gaps, piece by piece."""
        for start, stop in self.ranges():
            ones = np.ones(stop - start)
            yield _rows(self.member(0, start, stop), ones), _rows(self.gaps(start, stop), ones)


def _rows(points: Any, y: Floats) -> Pairs:
    """Points as the engine takes them."""
    if sp.issparse(points):
        csr: Any = points
        where, starts = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        return Pairs(csr.data, where, starts, y)
    return Pairs(np.ravel(points), np.arange(points.shape[1]), np.empty(0, np.int64), y)


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
        labels = _array(y)
    except (TypeError, ValueError):
        raise ValueError("y must have one label per pair, +1 (alike) or -1 (not alike)") from None
    if labels.shape != (n_pairs,):
        raise ValueError(
            f"y must have one label per pair: {n_pairs} pairs, but y has shape {labels.shape}"
        )
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
    weights = _numbers(sample_weight, "sample_weight")
    if weights.shape != (n_pairs,):
        raise ValueError(
            f"sample_weight must have one number per pair: {n_pairs} pairs, but it has shape "
            f"{weights.shape}"
        )
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
    answers = _numbers(y, "y")
    if answers.shape != (n_pairs,):
        return check_labels(y, n_pairs)
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


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor not
        return True


def _array(values: Any) -> Any:
    """What numpy makes of it; objects count for what they hold, so that text stays text."""
    array = np.asarray(values)
    return np.asarray(array.tolist()) if array.dtype.kind == "O" else array


def _is_text(array: Any) -> bool:
    kind: str = array.dtype.kind
    return kind in "US"


def _numbers(values: Any, name: str, id_dimensions: int | None = None) -> Any:
    """A real array; integers and text stay as they are only where they may be row numbers or ids.

    Parameters
    ----------
    values, name
    id_dimensions : int, optional
        Number of dimensions of an array of ids.
    """
    if sp.issparse(values):
        raise ValueError(
            f"{name} is a sparse matrix; pass the sparse matrix of points as preprocessor, and "
            "pairs or triplets as an integer array of its rows, one a line"
        )
    try:
        array = _array(values)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} row {_odd_row(values)} does not have the shape of the others; give every "
            "point the same number of features"
        ) from None
    if id_dimensions is not None and (
        array.dtype.kind in "iu" or (_is_text(array) and array.ndim == id_dimensions)
    ):
        return array
    try:
        _check_kind(array.dtype, name)
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        if array.dtype.kind == "c":
            raise
        raise ValueError(
            f"{name} row {_odd_row(values)} is not numbers ({error}); encode text first, or, where "
            "it is ids, pass a callable as preprocessor that gives their points"
        ) from None


def _check_kind(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real numbers")
    if dtype.kind not in "iufbO":
        raise ValueError(f"{name} has type {dtype}")


def _odd_row(values: Any) -> int:
    """The first row that is not numbers of the first row's shape."""
    shape: tuple[int, ...] | None = None
    for i, row in enumerate(values if np.iterable(values) else [values]):
        try:
            array = _array(row).astype(np.float64)
        except (TypeError, ValueError):
            return i
        if shape not in (None, array.shape) or _array(row).dtype.kind not in "iufbO":
            return i
        shape = array.shape
    return 0


def _check_tuples_shape(array: Any, name: str, size: int) -> None:
    if array.ndim == 3 and array.shape[1] == size and len(array) > 0:
        return
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); pass at least one {name[:-1]}")
    hint = ""
    if array.ndim == 2:
        hint = f"; for {name} of row numbers, pass the points they refer to as preprocessor"
    raise ValueError(
        f"{name} must have shape (n_{name}, {size}, n_features), got {array.shape}{hint}"
    )


def _look_up(array: Any, preprocessor: Lookup, name: str) -> tuple[Any, Ints]:
    """Points, and for each index its row among them."""
    if len(array) == 0:
        raise ValueError(f"{name} is empty; pass at least one index")
    if _is_text(array) and not callable(preprocessor):
        raise ValueError(
            f"{name} has ids that are text: pass a callable as preprocessor, which takes an array "
            "of ids and returns their points, one a row; an array's rows have numbers"
        )
    if array.dtype.kind not in "iuUS":
        raise ValueError(f"{name} of indices must be integers; cast them with .astype(int)")
    if callable(preprocessor):
        unique, inverse = np.unique(array, return_inverse=True)
        try:
            points = check_points(preprocessor(unique), "preprocessor(indices)")
        except LookupError as error:
            raise ValueError(
                f"{name} has an index that the preprocessor refuses: {error}"
            ) from error
        if points.shape[0] != len(unique):
            raise ValueError(
                f"preprocessor(indices) gave {points.shape[0]} points for {len(unique)} indices; "
                "it must return one a row"
            )
        return points, inverse.reshape(array.shape)
    assert preprocessor is not None  # there are ids because there is one
    n_points = preprocessor.shape[0]
    wrong = np.argwhere((array < -n_points) | (array >= n_points))
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise ValueError(
            f"{name}[{', '.join(map(str, where))}] = {array[where]} is out of range: the "
            f"preprocessor has {n_points} points, numbered 0 to {n_points - 1}, or from the end "
            f"-1 to {-n_points}"
        )
    rows: Ints = array.astype(np.int64)
    return preprocessor, np.where(rows < 0, rows + n_points, rows)


def _check_finite(values: Any, where: Callable[[int], str]) -> None:
    # Two reductions and no copy; NaN fails both comparisons.
    if values.size == 0 or (values.max() <= LARGEST and values.min() >= -LARGEST):
        return
    flat = values.ravel()
    i = int(np.flatnonzero(~(np.abs(flat) <= LARGEST))[0])
    if np.isfinite(flat[i]):
        raise ValueError(f"{where(i)} contains {flat[i]:g}, too large to square; rescale it")
    kind = "NaN" if np.isnan(flat[i]) else "infinity"
    raise ValueError(f"{where(i)} contains {kind}; drop or impute such rows first")


def _check_width(width: int, name: str, n_features: int | None) -> None:
    if width == 0:
        raise ValueError(f"{name} has 0 feature(s); a minimum of 1 is required.")
    if n_features is not None and width != n_features:
        raise ValueError(
            f"{name} has {width} features, but the metric was learned on {n_features}; "
            "pass points with the same features, or call fit to start anew"
        )


def _row_of(matrix: sp.csr_array, entry: int) -> int:
    return int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
