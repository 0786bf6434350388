"""Random pairs of labelled points, drawn in bulk from given uniform numbers."""

import numpy as np

from metrack.checks import Floats, Ints
from metrack.classes import ClassOrder


class PairSampler:
    """Draws pairs of different points, at the natural share of similar ones or at a given one.

    Parameters
    ----------
    codes : array (n_points,)
        Class of each point, 0, 1, ...
    similar : float or None
        Share of pairs of the same class; None draws both points at random.
    """

    def __init__(self, codes: Ints, similar: float | None) -> None:
        self.codes = codes
        self.similar = similar
        self.classes = ClassOrder(codes)
        self.n_points = self.classes.n_points
        if similar is not None:
            self._check(self.classes.counts, similar)
        # A point may come first as often as it has partners.
        self.up_to_similar: Ints = np.cumsum(self.classes.size - 1)
        self.up_to_dissimilar: Ints = np.cumsum(self.n_points - self.classes.size)

    def _check(self, counts: Ints, similar: float) -> None:
        if similar > 0 and counts.max() < 2:
            raise ValueError("no class has two points: there are no similar pairs to draw")
        if similar < 1 and np.count_nonzero(counts) < 2:
            raise ValueError("there is only one class: there are no dissimilar pairs to draw")

    def draw(self, uniforms: Floats) -> Ints:
        """Pairs of point numbers (n_pairs, 2), each from a row of three uniform numbers."""
        if self.similar is None:
            first = _scaled(uniforms[:, 0], self.n_points)
            second = first + 1 + _scaled(uniforms[:, 1], self.n_points - 1)
            return np.column_stack([first, second % self.n_points])
        alike = uniforms[:, 2] < self.similar
        places = np.empty((len(uniforms), 2), dtype=np.int64)
        places[alike] = self._similar(uniforms[alike])
        places[~alike] = self._dissimilar(uniforms[~alike])
        return self.classes.order[places]

    def _similar(self, uniforms: Floats) -> Ints:
        first = _weighted(uniforms[:, 0], self.up_to_similar)
        start, size = self.classes.start[first], self.classes.size[first]
        second = start + (first - start + 1 + _scaled(uniforms[:, 1], size - 1)) % size
        return np.column_stack([first, second])

    def _dissimilar(self, uniforms: Floats) -> Ints:
        first = _weighted(uniforms[:, 0], self.up_to_dissimilar)
        start, size = self.classes.start[first], self.classes.size[first]
        second = start + size + _scaled(uniforms[:, 1], self.n_points - size)
        return np.column_stack([first, second % self.n_points])

    def judge(self, pairs: Ints) -> Ints:
        """+1 where both points are of the same class, else -1."""
        labels = self.codes[pairs]
        return np.where(labels[:, 0] == labels[:, 1], 1, -1)


def _scaled(uniforms: Floats, n: int | Ints) -> Ints:
    """Whole numbers from 0 to n - 1."""
    return (uniforms * n).astype(np.int64)


def _weighted(uniforms: Floats, cumulative: Ints) -> Ints:
    """Places drawn in proportion to whole weights, given their running sum."""
    return np.searchsorted(cumulative, _scaled(uniforms, cumulative[-1]), side="right")
