"""Pairs from anybody's labelled points."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from metrack.checks import Ints, whole
from metrack.streams.base import PairStream, RandomState
from metrack.streams.schedule import Segment

Points = NDArray[Any] | sp.csr_array


class LabelledStream(PairStream):
    """A stream of pairs from labelled points, with a question that may change.

    A pair is two row numbers of ``X``, so that no point is copied and sparse points stay sparse:
    give ``stream.preprocessor`` to the learner. Two points with the same label are alike.

    Parameters
    ----------
    X : array or CSR matrix (n_points, n_features)
    labels : array (n_points,) or (n_points, n_questions), mapping of names to arrays, or data frame
        Any labels that can be sorted. With several questions, a segment's ``partition`` is the name
        of one, or the number of its column.
    n_pairs : int, optional
        Length of the stream; several questions follow one another at equal lengths.
    schedule : iterable of Segment, optional
        The questions asked, in place of ``n_pairs``; their ``drift`` is 0, as the points stay.
    similar : float, optional
        Share of similar pairs; by default the natural one of random pairs.
    label_noise : float
        Share of judgements that are turned around.
    random_state : int, RandomState or None
        Same number, same stream; of a RandomState or None, a number is drawn.

    Attributes
    ----------
    preprocessor : array or CSR matrix (n_points, n_features)
        The points that pairs refer to.

    Examples
    --------
    >>> from metrack import COMID
    >>> from metrack.streams import LabelledStream
    >>> from sklearn.datasets import load_wine
    >>> X, cultivar = load_wine(return_X_y=True)
    >>> stream = LabelledStream(X / X.std(axis=0), cultivar, n_pairs=1000, similar=0.5)
    >>> pairs, y = stream.pairs()
    >>> pairs.shape
    (1000, 2)
    >>> learner = COMID(preprocessor=stream.preprocessor).fit(pairs[:800], y[:800])
    >>> learner.score(pairs[800:], y[800:]) > 0.9
    True

    Two questions, the second from the middle on:

    >>> strong = X[:, 0] > 13
    >>> stream = LabelledStream(X, {"cultivar": cultivar, "strong": strong}, n_pairs=1000)
    >>> stream.marks
    [(0, 'cultivar'), (500, 'strong')]
    """

    def __init__(
        self,
        X: ArrayLike | sp.csr_array,
        labels: ArrayLike | Mapping[Any, ArrayLike],
        n_pairs: int | None = None,
        schedule: Iterable[Segment] | None = None,
        similar: float | None = None,
        label_noise: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.preprocessor: Points = X if hasattr(X, "shape") else np.asarray(X)  # type: ignore[assignment]
        questions = _questions(labels, _n_points(self.preprocessor))
        if (n_pairs is None) == (schedule is None):
            raise ValueError("give either n_pairs or a schedule")
        if schedule is None:
            schedule = _in_turn(list(questions), whole("n_pairs", n_pairs, len(questions)))
        super().__init__(questions, schedule, similar, label_noise, random_state)
        for segment in self.schedule:
            if segment.drift:
                raise ValueError(
                    f"segment {segment.name!r} has drift {segment.drift}, but the points of a "
                    "LabelledStream stay; leave out its drift"
                )

    def pairs(self, start: int = 0, stop: int | None = None) -> tuple[Ints, Ints]:
        """Pairs of row numbers (n_pairs, 2), and judgements y, +1 alike or -1 not alike.

        Parameters
        ----------
        start, stop : int
            The steps from ``start`` up to, not including, ``stop``; by default all.
        """
        return self.rows(start, stop)

    def points(self, t: int) -> Points:
        """The points, the same at every step."""
        self._step(t)
        return self.preprocessor


def _n_points(X: Points) -> int:
    if len(X.shape) != 2 or X.shape[0] < 2:
        raise ValueError(
            f"X must be 2-D with at least two points, one per row; got shape {X.shape}"
        )
    return int(X.shape[0])


def _questions(labels: Any, n_points: int) -> dict[Hashable, Ints]:
    """Class numbers of the points, question by question."""
    if hasattr(labels, "items") and getattr(labels, "ndim", 2) == 2:  # a series has but one column
        columns = {name: np.asarray(column) for name, column in labels.items()}
    else:
        array = np.asarray(labels)
        columns = dict(enumerate(array.T)) if array.ndim == 2 else {0: array}
    if not columns:
        raise ValueError("labels is empty; give at least one column of labels")
    return {name: _codes(column, n_points, name) for name, column in columns.items()}


def _codes(labels: NDArray[Any], n_points: int, name: Hashable) -> Ints:
    title = f"column {name!r} of labels"
    if labels.shape != (n_points,):
        raise ValueError(
            f"{title} must have one label per point: X has {n_points} points, but the labels have "
            f"shape {labels.shape}"
        )
    missing = np.flatnonzero(labels != labels)
    if missing.size:
        raise ValueError(f"{title}: row {missing[0]} is NaN; drop unlabelled points first")
    try:
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise ValueError(f"{title} cannot be sorted; give numbers or strings alone") from None


def _in_turn(questions: list[Hashable], n_pairs: int) -> list[Segment]:
    ends = np.linspace(0, n_pairs, len(questions) + 1).astype(int)
    return [
        Segment(str(question), question, int(length))
        for question, length in zip(questions, np.diff(ends), strict=True)
    ]
