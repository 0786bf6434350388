"""Pairs that are known by how their two sides differ, and not by two points."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from metrack.engine.numerics.kernels import Floats


class Differences:
    """Pairs given by their differences: every method that takes pairs takes these.

    Two records are compared field by field: there are no two points whose difference that would
    be. A pair is then a row of differences u, and its squared distance is u'Mu. Nothing differs
    where all of them are 0. As an array, for other libraries, they are these rows.

    Parameters
    ----------
    u : array (n_pairs, n_features), or a DataFrame
        How much the two sides of each pair differ, feature by feature.
    names : sequence of str (n_features,), optional
        Of the features; by default a DataFrame's columns. A learner knows its features by them.

    Examples
    --------
    >>> import numpy as np
    >>> import metrack
    >>> rng = np.random.default_rng(0)
    >>> u = rng.random((500, 2))
    >>> pairs = metrack.Differences(u, names=["title", "price"])
    >>> y = np.where(u[:, 0] < 0.5, 1, -1)
    >>> tracker = metrack.MetricTracker().partial_fit(pairs[:400], y[:400])
    >>> tracker.score(pairs[400:], y[400:]) > 0.95
    True
    >>> share = dict(tracker.drift_report().most_changed())
    >>> share["title"] > 0 > share["price"]
    True
    """

    def __init__(self, u: ArrayLike, names: Sequence[str] | None = None) -> None:
        names = getattr(u, "columns", None) if names is None else names
        self.u: Floats = np.asarray(u, dtype=np.float64)
        self.names = None if names is None else [str(name) for name in names]
        if self.u.ndim != 2:
            raise ValueError(
                "differences must be 2-D, one pair a row and one feature a column; got "
                f"{self.u.ndim} dimensions"
            )
        if self.names is not None and len(self.names) != self.u.shape[1]:
            raise ValueError(
                f"{len(self.names)} names for {self.u.shape[1]} features; give one each"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of pairs, and of features."""
        return self.u.shape[0], self.u.shape[1]

    def __len__(self) -> int:
        return len(self.u)

    def __getitem__(self, rows: Any) -> "Differences | Floats":
        found = self.u[rows]
        whole = found.ndim == 2 and found.shape[1] == self.u.shape[1]
        return Differences(found, self.names) if whole else found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.u, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<Differences of {self.shape[0]:,} pairs by {self.shape[1]:,} features>"

    def as_points(self) -> Floats:
        """Each pair as two points, of which the second is 0."""
        return np.stack([self.u, np.zeros_like(self.u)], axis=1)

    def followed_by(self, others: Self) -> "Differences":
        """These pairs, and others after them."""
        return Differences(np.concatenate([self.u, others.u]), self.names)
