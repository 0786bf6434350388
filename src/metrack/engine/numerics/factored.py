"""A metric by its eigenvectors: what the engine hands out."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from metrack.engine.numerics.frame import Frame
from metrack.engine.numerics.kernels import Floats

LEAST = 1e-9  # share of the mean eigenvalue
EVEN = 1e3  # ratio of lengths, whose squares have half of their digits in common
ROUNDING = 1e-14  # eigenvalues below this share of the largest are no directions


class Factored:
    """A metric M = outside (I - VV') + V diag(values) V', by V' as ``vectors``."""

    def __init__(self, values: Floats, vectors: Floats, outside: float) -> None:
        self._found = values, vectors
        self.outside = outside

    @property
    def values(self) -> Floats:
        """Eigenvalues along V."""
        return self._found[0]

    @property
    def vectors(self) -> Floats:
        """V', (rank, n_features)."""
        return self._found[1]

    def matrix(self) -> Floats:
        """M itself."""
        n = self.vectors.shape[1]
        above = (self.vectors.T * (self.values - self.outside)) @ self.vectors
        return above + self.outside * np.eye(n)

    def eigenpairs(self) -> tuple[Floats, Floats]:
        """Eigenvalues, falling, and vectors as rows; those of value 0 may be left out."""
        if self.outside == 0.0:
            return self.values, self.vectors
        values, vectors, above = self._falling()
        others = self._frame(vectors).others()
        alike = np.full(len(others), self.outside)
        return (
            np.concatenate([values[:above], alike, values[above:]]),
            np.concatenate([vectors[:above], others, vectors[above:]]),
        )

    def _falling(self) -> tuple[Floats, Floats, int]:
        """Eigenvalues and V' in their order, and how many are not below all others."""
        order = np.argsort(-self.values, kind="stable")
        return self.values[order], self.vectors[order], int(np.sum(self.values >= self.outside))

    def _frame(self, vectors: Floats) -> Frame:
        """Directions that M is not plain in; ``vectors`` are V', in their order."""
        return Frame(vectors.T)

    def leading(self, rank: int) -> "Factored":
        """The nearest metric of so small a rank."""
        values, vectors, above = self._falling()
        if above < rank:
            values, vectors = self.eigenpairs()
        return Factored(values[:rank], vectors[:rank], 0.0)

    def embed(self, points: Floats) -> Floats:
        """Points times the transpose of `components`; quicker, where V is narrow."""
        if self.outside == 0.0 or not self.values.all():
            embedded: Floats = points @ self.components().T
            return embedded
        return self._embed(points)

    def _embed(self, points: Floats) -> Floats:
        values, vectors, _ = self._falling()
        return self._by_frame(points, self._frame(vectors), np.diag(np.sqrt(values)))

    def _by_frame(self, points: Floats, frame: Frame, roots: Floats) -> Floats:
        """Columns by falling eigenvalue: that of the others lies between those along V.

        ``roots`` turn coordinates on the frame to those along V, in their order, and scale them.
        """
        above, below = np.split(roots, [int(np.sum(self.values >= self.outside))], axis=1)
        found = np.empty_like(points, order="C")  # parts are written where they belong, not copied
        first, last = above.shape[1], found.shape[1] - below.shape[1]
        c, others = points @ frame.vectors, found[:, first:last]
        np.matmul(c, above, out=found[:, :first])
        np.matmul(c, below, out=found[:, last:])
        frame.left_out(points, c, others)
        others *= points.dtype.type(np.sqrt(self.outside))
        return found

    def squared_distances(self, u: Floats) -> Floats:
        """Those of differences, row by row."""
        along = u @ self.vectors.T
        above = np.einsum("ij,ij,j->i", along, along, self.values - self.outside)
        found: Floats = np.maximum(above + self.outside * np.einsum("ij,ij->i", u, u), 0.0)
        return found

    def components(self) -> Floats:
        """L with M = L'L, rows by falling eigenvalue."""
        values, vectors = self.eigenpairs()
        kept = values > 0.0
        components: Floats = np.sqrt(values[kept])[:, None] * vectors[kept]
        return components


class OnFrame(Factored):
    """A metric M = outside (I - BB') + B A B', of which eigenvectors are computed when asked for.

    B, the frame, lasts for many pairs, and what it leaves out is found once; A, the form, is
    another after each. Where that is no metric, the nearest one takes its place.
    """

    def __init__(self, frame: Frame, form: Floats, outside: float) -> None:
        self.frame = frame
        self.form = form
        self.outside = outside

    @cached_property
    def _eigen(self) -> tuple[Floats, Floats]:
        """Eigenvalues of A, falling, and vectors as columns."""
        values, turn = np.linalg.eigh(self.form)
        return metric_values(values[::-1]), turn[:, ::-1]

    @cached_property
    def _on_frame(self) -> Floats:
        """A as a matrix; no eigenvectors where it is the form."""
        if is_metric(self.form):
            return self.form
        values, turn = self._eigen
        return (turn * values) @ turn.T

    @property
    def values(self) -> Floats:
        """Eigenvalues, falling."""
        return self._eigen[0]

    @cached_property
    def vectors(self) -> Floats:
        """V', (width, n_features)."""
        return self._eigen[1].T @ self.frame.vectors.T

    def _falling(self) -> tuple[Floats, Floats, int]:
        return self.values, self.vectors, int(np.sum(self.values >= self.outside))

    def _frame(self, vectors: Floats) -> Frame:
        return self.frame

    def _embed(self, points: Floats) -> Floats:
        values, turn = self._eigen
        roots = (turn * np.sqrt(values)).astype(points.dtype, copy=False)
        return self._by_frame(points, self.frame.of_type(points.dtype), roots)

    def squared_distances(self, u: Floats) -> Floats:
        """Those of differences, row by row; of few ones without eigenvectors."""
        if len(u) > len(self.frame.vectors):
            return super().squared_distances(u)
        c = u @ self.frame.vectors
        above = np.einsum("ij,ij->i", c @ self._on_frame, c)
        rest = np.einsum("ij,ij->i", u, u) - np.einsum("ij,ij->i", c, c)
        found: Floats = np.maximum(above + self.outside * rest, 0.0)
        return found


def metric_values(values: Floats) -> Floats:
    """Eigenvalues of the metric nearest to a form, by Frobenius, from those of the form.

    None is below LEAST of their mean, so that no direction is lost.
    """
    least = LEAST * max(float(values.mean()), 0.0) if values.size > 0 else 0.0
    found: Floats = np.maximum(values, least)
    return found


def nearest_metric(form: Floats) -> Factored:
    """The metric nearest to a form, by its eigenvectors."""
    values, vectors = np.linalg.eigh(form)
    return Factored(metric_values(values[::-1]), vectors.T[::-1], 0.0)


def metric_of(factor: Floats) -> Factored:
    """The metric L'L by its eigenvectors.

    Where columns of L are of very different lengths, L'L would round the short ones away.
    """
    lengths = np.linalg.norm(factor, axis=0)
    if lengths.max(initial=0.0) < EVEN * lengths.min(initial=np.inf):
        values, vectors = np.linalg.eigh(factor.T @ factor)
        return Factored(np.maximum(values[::-1], 0.0), vectors.T[::-1], 0.0)
    _, roots, rows = np.linalg.svd(factor, full_matrices=False)
    return Factored(roots**2, rows, 0.0)


def is_metric(form: Floats) -> bool:
    """Whether the metric nearest to a form is the form itself."""
    n = len(form)
    least = LEAST * max(float(np.trace(form)), 0.0) / max(n, 1)
    try:
        np.linalg.cholesky(form - least * np.eye(n))
    except np.linalg.LinAlgError:
        return False
    return True


def root(matrix: Floats) -> Floats:
    """The symmetric root of a positive matrix."""
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return found


def mixture_of(metrics: Sequence[Factored], p: Floats, capacity: int) -> Factored:
    """The weighted sum of metrics, cut to a rank of ``capacity`` where its rank is not full."""
    n_features = metrics[0].vectors.shape[1]
    outside = float(sum(weight * m.outside for weight, m in zip(p, metrics, strict=True)))
    rows = np.concatenate([m.vectors for m in metrics])
    above = [weight * (m.values - m.outside) for weight, m in zip(p, metrics, strict=True)]
    lifted = np.concatenate(above)
    if outside == 0.0 and len(rows) < n_features:
        # Fewer directions than features: the Gram matrix of L has the eigenvalues of L'L.
        factor = np.sqrt(lifted)[:, None] * rows
        values, mixing = np.linalg.eigh(factor @ factor.T)
        vectors = mixing.T @ factor
    else:
        values, mixing = np.linalg.eigh((rows.T * lifted) @ rows)
        vectors = mixing.T
    values, vectors = values[::-1] + outside, vectors[::-1]
    n_kept = int(np.sum(values > ROUNDING * values[0])) if len(values) else 0
    if outside == 0.0:
        n_kept = min(n_kept, capacity)
    vectors = vectors[:n_kept]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Factored(values[:n_kept], vectors / lengths, 0.0)
