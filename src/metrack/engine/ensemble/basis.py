"""Learners of many features work on a basis that all share, and that follows the stream.

A whole matrix of n features takes n^2 numbers and as much time a pair. Here a pair is its
coordinates c = B'u on up to a few hundred orthonormal directions, the columns of B, and what is
left of |u|^2. Each learner is a dense factor on the first few or on all directions, and plain
distance, times a number of its own, beyond them:

    M = B A B' + s (I - BB').

Between two renewals learning is exact for metrics of that form. A renewal, after every block of
pairs, does three things:

1. directions are ordered by what rests on them: the variance of differences there, and how far the
   mixture of all learners has moved away from plain distance, by the covariance of (A / s - I) c;
2. the leading directions of what the last pairs have outside of the basis take the place of the
   last ones, so that whatever comes up gets its chance;
3. all that was learned is carried over: each M is restricted to the new form, which changes
   nothing where the old directions are still there.

Here are the directions and what was seen of differences there; `space` has all that is carried
over. Renewals come at fixed counts of pairs, so that calls of any sizes lead to the same state.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.learners.blocks import EARLY, SHORT
from metrack.engine.learners.memory import new_buffer, store
from metrack.engine.numerics.factored import Factored, OnFrame, metric_values, root
from metrack.engine.numerics.frame import Frame
from metrack.engine.numerics.kernels import Floats, Ints, dot, kernel
from metrack.engine.numerics.pairs import Chunk, times
from metrack.engine.numerics.records import TINY, check_shapes, floats

EVERY = EARLY  # pairs between renewals, from then on
LAST = (
    SHORT  # pairs at its end in which new directions are looked for; of the first blocks the most
)
NEW = 12  # one in so many directions may be new in a block, where there is no room for more
KEPT = 1.0 - 1.0 / EVERY  # variances rest on as many pairs
GONE = 1e-6  # a direction of which no more is left is none: rounding would choose it
NOTHING = 1e-10  # a share of the variance that may be rounding's


class Directions(NamedTuple):
    """The directions, and what was seen of differences there."""

    vectors: Annotated[Floats, floats("n", "width", least=-2.0, most=2.0)]  # B; 0 where unused
    scatter: Annotated[Floats, floats("width", "width")]  # of coordinates, forgetting
    last: Annotated[Floats, floats(LAST, "n", least=-1e145, most=1e145)]  # differences


class Basis:
    """So many directions that follow the stream, as this module says."""

    STATE = ("directions",)

    def __init__(self, n_features: int, width: int) -> None:
        self.n_features = n_features
        self.width = min(width, n_features)
        # None yet: any that no pair has shown would be a matter of rounding.
        self.directions = Directions(
            np.zeros((n_features, self.width)),
            np.zeros((self.width, self.width)),
            np.zeros((LAST, n_features)),
        )
        self._found: tuple[Floats, Frame] | None = None

    @property
    def vectors(self) -> Floats:
        """B, with columns of 0 where there are no directions yet."""
        return self.directions.vectors

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """Which directions there are already."""
        found: NDArray[np.bool_] = np.einsum("ij,ij->j", self.vectors, self.vectors) > 0.5
        return found

    def on_basis(self, chunk: Chunk) -> Chunk:
        """A chunk's pairs by their coordinates; its last ones are kept as they are."""
        store(new_buffer(0, LAST)._replace(u=self.directions.last), chunk)
        size = len(chunk.y)
        where, none = np.arange(self.width), np.empty(0, np.int64)
        u, norm2 = np.empty(size * self.width), np.empty(size)
        found = Chunk(u, where, none, chunk.y, norm2, chunk.norm2, chunk.seen)
        project(self.vectors, chunk, found)
        return found

    def last(self, n_pairs: int) -> tuple[Ints, Floats]:
        """Numbers of the pairs, of so many, whose differences are kept, and these."""
        numbers = np.arange(max(n_pairs - LAST, 0), n_pairs)
        return numbers, self.directions.last[numbers % LAST]

    def new_directions(self, differences: Floats) -> Floats:
        """The leading directions of what pairs have outside of the basis."""
        vectors = self.vectors
        outside = differences - (differences @ vectors) @ vectors.T
        values, mixing = np.linalg.eigh(outside @ outside.T)
        free = int(np.sum(~self.in_use))
        least = NOTHING * np.sum(differences**2)
        wanted = min(max(-(-self.width // NEW), free), int(np.sum(values > least)), self.width)
        found = outside.T @ mixing[:, len(values) - wanted :][:, ::-1]
        found -= vectors @ (vectors.T @ found)  # once more, since rounding has grown
        return np.linalg.qr(found)[0]

    def take_up(self, new: Floats, block: Floats) -> None:
        """Add directions, and a block of pairs by their coordinates on old and new ones."""
        vectors, scatter, last = self.directions
        faded = KEPT ** np.arange(len(block) - 1, -1, -1)
        scatter = np.pad(scatter * KEPT ** len(block), (0, new.shape[1]))
        scatter += (block * faded[:, None]).T @ block
        self.directions = Directions(np.hstack([vectors, new]), scatter, last)

    def best_turn(self, form: Floats, outside: float) -> Floats:
        """From coordinates on old and new directions to those that are kept, in their order.

        The metric is a form of the old ones, and plain distance times ``outside`` beyond.
        """
        scatter, width, known = self.directions.scatter, self.width, len(form)
        n_new = len(scatter) - known
        old = scatter[:known, :known] / max(np.trace(scatter), TINY)  # nothing can overflow
        added = form / outside - np.eye(known)
        _, order = np.linalg.eigh(old + added @ old @ added)
        kept = order[:, ::-1][:, : width - n_new]
        # New ones come behind as many places as are in use with them: where there is room, some
        # between stay empty until the next renewal.
        first = min(int(np.sum(self.in_use)), width - n_new)
        turn = np.zeros((len(scatter), width))
        turn[:known, :first] = kept[:, :first]
        turn[known:, first : first + n_new] = np.eye(n_new)
        turn[:known, first + n_new :] = kept[:, first:]
        return turn

    def turn(self, turn: Floats) -> None:
        """Go on with the columns of ``turn`` as directions."""
        vectors, scatter, last = self.directions
        self.directions = Directions(vectors @ turn, turn.T @ scatter @ turn, last)

    def of_features(self, n_features: int) -> Floats:
        """From the first features, and as many more as are not in use yet, to the directions."""
        return np.vstack([self.vectors[:n_features], np.eye(self.width)[~self.in_use]])

    def change_features(self, change: Floats) -> tuple[Floats, Floats]:
        """Go on with other features; what coordinates become, and the directions, see `Space`.

        Coordinates are on old directions, and on what of new ones is outside of these.
        """
        width, in_use = self.width, self.in_use
        moved = change @ self.vectors[:, in_use]
        directions = _in_order(moved)
        n_kept, held = directions.shape[1], directions.T @ moved
        turn = np.zeros((2 * width, width))
        turn[:width, :n_kept][in_use] = held.T
        turn[width : width + n_kept, :n_kept] = root(np.eye(n_kept) - held @ held.T)
        # Those not in use yet, and others in the place of those that are gone.
        free = np.concatenate([np.flatnonzero(~in_use), np.arange(width + n_kept, 2 * width)])
        turn[free[: width - n_kept], range(n_kept, width)] = 1.0
        _, scatter, last = self.directions
        turned = turn[:width].T @ scatter @ turn[:width]
        vectors = np.pad(directions, ((0, 0), (0, width - n_kept)))
        self.directions = Directions(vectors, turned, last @ change.T)
        return turn, vectors

    def continue_from(self, old: "Basis", widest: int) -> None:
        """Go on from a basis of perhaps fewer features, with so many directions at first."""
        vectors, scatter, last = old.directions
        n, more = old.n_features, widest - old.width
        self.directions = Directions(
            np.pad(vectors, ((0, self.n_features - n), (0, more))),
            np.pad(scatter, (0, more)),
            np.pad(last, ((0, 0), (0, self.n_features - n))),
        )

    def lifted(self, matrix: Floats, outside: float) -> Factored:
        """A metric on the basis, as one of all features."""
        used = self.in_use
        if np.sum(used) < self.n_features:
            return OnFrame(self._frame(used), matrix[np.ix_(used, used)], outside)
        values, mixing = np.linalg.eigh(matrix)
        rows = (self.vectors @ mixing).T
        return Factored(metric_values(values[::-1]), rows[::-1], 0.0)

    def _frame(self, used: NDArray[np.bool_]) -> Frame:
        """The directions in use, until a renewal."""
        vectors = self.vectors
        if self._found is None or self._found[0] is not vectors:
            self._found = vectors, Frame(np.ascontiguousarray(vectors[:, used]))
        return self._found[1]

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        expected = Basis(self.n_features, self.width).directions
        check_shapes(self.directions, expected, "basis")


def as_basis(u: Floats) -> Basis:
    """All features as directions, as some pairs saw them."""
    n = u.shape[1]
    found = Basis(n, n)
    found.directions = found.directions._replace(vectors=np.eye(n), scatter=u.T @ u)
    return found


@kernel
def project(vectors: Floats, chunk: Chunk, on_basis: Chunk) -> None:
    """The coordinates of a chunk's pairs; those that are sparse cost their non-zeros."""
    width = vectors.shape[1]
    for row in range(chunk.y.size):
        c = on_basis.u[row * width : (row + 1) * width]
        times(chunk, row, vectors, c)
        on_basis.norm2[row] = dot(c, c, width)


def _in_order(vectors: Floats) -> Floats:
    """Orthonormal columns; the first few span the first few vectors, or what is left of them."""
    found = np.zeros((len(vectors), 0))
    for vector in vectors.T:
        left = vector - found @ (found.T @ vector)
        left -= found @ (found.T @ left)  # once more, since rounding has grown
        length = np.linalg.norm(left)
        if length > GONE:
            found = np.column_stack([found, left / length])
    return found
