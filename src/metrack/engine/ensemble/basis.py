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

Pairs to be replayed keep their coordinates; in a new direction only the last pairs have any.
Renewals come at fixed counts of pairs, so that calls of any sizes lead to the same state.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from metrack.engine.ensemble import replay
from metrack.engine.ensemble.bank import Bank
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.similar import Beyond, NeighbourEnsemble, for_neighbours
from metrack.engine.numerics.factored import Factored, OnFrame, metric_values, root
from metrack.engine.numerics.frame import Frame
from metrack.engine.numerics.kernels import Floats, Ints, dot, kernel
from metrack.engine.numerics.pairs import Chunk, times
from metrack.engine.numerics.records import TINY, floats

EVERY = 512  # pairs of a block, from some time on
LAST = 64  # pairs at its end in which new directions are looked for; of the first blocks the most
NEW = 12  # one in so many directions may be new in a block, where there is no room for more
MEMORY = 512.0  # pairs that variances rest on
KEPT = 1.0 - 1.0 / MEMORY
GONE = 1e-6  # a direction of which no more is left is none: rounding would choose it
NOTHING = 1e-10  # a share of the variance that may be rounding's

# What read-outs have found out about the directions of an ensemble, beside it: it holds its state
# alone, and copies and pickles need no care.
_frames: WeakKeyDictionary["BasisEnsemble", tuple[Floats, Frame]] = WeakKeyDictionary()


class Basis(NamedTuple):
    """The directions, and what was seen of differences there."""

    vectors: Annotated[Floats, floats("n", "width", least=-2.0, most=2.0)]  # B; 0 where unused
    scatter: Annotated[Floats, floats("width", "width")]  # of coordinates, forgetting
    last: Annotated[Floats, floats(LAST, "n", least=-1e145, most=1e145)]  # differences
    # Squared lengths of the pairs to be replayed.
    whole: Annotated[Floats, floats("slots", least=0.0, most=1e300)]
    # Of similar pairs' squared lengths, forgetting: what is outside of the basis.
    similar: Annotated[Floats, floats(1, least=0.0)]


def new_basis(n_features: int, width: int, slots: int) -> Basis:
    """No directions yet: any that no pair has shown would be a matter of rounding."""
    return Basis(
        np.zeros((n_features, width)),
        np.zeros((width, width)),
        np.zeros((LAST, n_features)),
        np.zeros(slots),
        np.zeros(1),
    )


@kernel
def project(vectors: Floats, chunk: Chunk, on_basis: Chunk) -> None:
    """The coordinates of a chunk's pairs; those that are sparse cost their non-zeros."""
    width = vectors.shape[1]
    for row in range(chunk.y.size):
        c = on_basis.u[row * width : (row + 1) * width]
        times(chunk, row, vectors, c)
        on_basis.norm2[row] = dot(c, c, width)


class BankOnBasis(Bank, Protocol):
    """A bank whose learners can be given another basis. They work on its first directions."""

    @property
    def n_features(self) -> int:
        """How many directions."""

    def change_basis(self, old: Any, turn: Floats) -> None:
        """Go on from what such a bank has learned, perhaps itself, with other directions.

        c becomes turn' (c, coordinates on new directions); columns of ``turn`` are orthonormal.
        """


class BasisEnsemble(NeighbourEnsemble):
    """An ensemble on a basis, as this module says.

    Parameters
    ----------
    n_features, combination, scaled
        As of an `Ensemble`.
    banks : sequence of BankOnBasis
        The widest one has as many directions as the basis.
    """

    banks: tuple[BankOnBasis, ...]

    def __init__(
        self, n_features: int, banks: Sequence[Bank], combination: Combination, scaled: bool
    ) -> None:
        super().__init__(n_features, banks, combination, scaled)
        self.basis = new_basis(n_features, self.width, self.recent.y.size)

    @property
    def width(self) -> int:
        """How many directions the basis has."""
        return min(self.n_features, max(bank.n_features for bank in self.banks))

    @property
    def _recent(self) -> int:
        """How many of the last pairs are kept: those between two renewals, too."""
        return max(EVERY, super()._recent)

    def _end_block(self, begin: int) -> None:
        """Renew the basis, at first after each block."""
        super()._end_block(begin)
        if self.n_pairs <= EVERY or self.n_pairs % EVERY == 0:
            self._renew(self.n_pairs - EVERY if self.n_pairs > EVERY else begin)

    def _on_features(self, chunk: Chunk) -> Chunk:
        replay.store(replay.ReplayBuffer(self.basis.last, np.empty(LAST)), chunk)
        size, width = len(chunk.y), self.width
        found = Chunk(
            np.empty(size * width),
            np.arange(width),
            np.empty(0, np.int64),
            chunk.y,
            np.empty(size),
            chunk.norm2,
            chunk.seen,
        )
        project(self.basis.vectors, chunk, found)
        return found

    @property
    def _whole(self) -> Floats:
        return self.basis.whole

    @property
    def _similar_beyond(self) -> Floats:
        return self.basis.similar

    def _keep(self, chunk: Chunk) -> None:
        super()._keep(chunk)
        whole = self.basis.whole
        whole[np.arange(chunk.seen, chunk.seen + len(chunk.y)) % len(whole)] = chunk.whole

    def places_of(self, u: Floats) -> replay.Places:
        """Where pairs with these differences are kept, if they are among the last.

        Of earlier ones coordinates are kept, which do not tell which pair they were.
        """
        last = self._last()
        found = last[replay.same(self.basis.last[last % LAST], u)]
        return replay.Places(found, np.zeros(self.past.y.shape, np.bool_))

    def _last(self) -> Ints:
        """Numbers of the pairs whose differences are kept as they were."""
        return np.arange(max(self.n_pairs - LAST, 0), self.n_pairs)

    def _renew(self, begin: int) -> None:
        """Order directions, take up new ones, and carry everything over."""
        basis, recent = self.basis, self.recent
        last = self._last()
        seen, slots = basis.last[last % LAST], last % len(recent.y)
        new = self._new_directions(seen, recent.u[slots])
        # Coordinates on old and new directions; on the latter they are known of the last pairs.
        known = np.pad(recent.u, ((0, 0), (0, new.shape[1])))
        known[slots, self.width :] = seen @ new
        block = known[np.arange(begin, self.n_pairs) % len(recent.y)]
        faded = KEPT ** np.arange(len(block) - 1, -1, -1)
        scatter = _widened(basis.scatter * KEPT ** len(block), new.shape[1])
        scatter += (block * faded[:, None]).T @ block
        self.recent = recent._replace(u=known)
        self.basis = basis._replace(vectors=np.hstack([basis.vectors, new]), scatter=scatter)
        self._widen_similar(new.shape[1])
        self._carry(self._turn(scatter, self.banks), self.banks)

    def _carry(self, turn: Floats, banks: Sequence[Any]) -> None:
        """Go on with the columns of ``turn`` as directions."""
        vectors, scatter = self.basis.vectors @ turn, turn.T @ self.basis.scatter @ turn
        self.basis = self.basis._replace(vectors=vectors, scatter=scatter)
        self.recent = self.recent._replace(u=self.recent.u @ turn)
        self.past = self.past._replace(u=self.past.u @ turn[: self.past.u.shape[2]])
        similar, outside = self.similar.scatter, self.basis.similar
        total = np.trace(similar) + outside[0]
        self.similar = self.similar._replace(scatter=turn.T @ similar @ turn)
        outside[0] = max(total - np.trace(self.similar.scatter), 0.0)
        for bank, old in zip(self.banks, banks, strict=True):
            bank.change_basis(old, turn)

    def change_features(self, change: Floats) -> None:
        """Go on with other features, of which v becomes ``change`` v, a projection.

        The features are coordinates on orthonormal directions of a larger space; ``change`` has the
        products of new and old ones, a row for each new one. What is carried over is exact where
        the new features span what the old ones did. Else each M is restricted to the new span, in
        which it is plain distance where nothing is known.
        """
        basis, width = self.basis, self.width
        in_use = _in_use(basis)
        moved = change @ basis.vectors[:, in_use]
        directions = _in_order(moved)
        n_kept, held = directions.shape[1], directions.T @ moved
        # From coordinates on old directions, and on what of new ones is outside of these.
        turn = np.zeros((2 * width, width))
        turn[:width, :n_kept][in_use] = held.T
        turn[width : width + n_kept, :n_kept] = root(np.eye(n_kept) - held @ held.T)
        # Those not in use yet, and others in the place of those that are gone.
        free = np.concatenate([np.flatnonzero(~in_use), np.arange(width + n_kept, 2 * width)])
        turn[free[: width - n_kept], range(n_kept, width)] = 1.0
        self.recent = self.recent._replace(u=np.pad(self.recent.u, ((0, 0), (0, width))))
        self.basis = basis._replace(
            vectors=np.zeros((len(change), 2 * width)),  # set below
            scatter=_widened(basis.scatter, width),
            last=basis.last @ change.T,
        )
        self._widen_similar(width)
        self._carry(turn, self.banks)
        self.basis.vectors[:, :n_kept] = directions
        # What the last pairs had outside of the old directions may be inside of the new ones.
        last = self._last()
        seen = self.basis.last[last % LAST]
        self.recent.u[last % len(self.recent.y)] = seen @ self.basis.vectors

    def _new_directions(self, differences: Floats, c: Floats) -> Floats:
        """The leading directions of what pairs have outside of the basis."""
        vectors = self.basis.vectors
        outside = differences - c @ vectors.T
        values, mixing = np.linalg.eigh(outside @ outside.T)
        free = int(np.sum(~_in_use(self.basis)))
        least = NOTHING * np.sum(differences**2)
        wanted = min(max(-(-self.width // NEW), free), int(np.sum(values > least)), self.width)
        found = outside.T @ mixing[:, len(values) - wanted :][:, ::-1]
        found -= vectors @ (vectors.T @ found)  # once more, since rounding has grown
        return np.linalg.qr(found)[0]

    def _turn(self, scatter: Floats, banks: Sequence[Any]) -> Floats:
        """From coordinates on old and new directions to those that are kept, in their order."""
        width, n_new = self.width, len(scatter) - self.width
        old = scatter[:width, :width] / max(np.trace(scatter), TINY)  # nothing can overflow
        matrix, outside = self._summed(self.weights, banks)
        added = matrix / outside - np.eye(width)
        _, order = np.linalg.eigh(old + added @ old @ added)
        kept = order[:, ::-1][:, : width - n_new]
        # New ones come behind as many places as are in use with them: where there is room, some
        # between stay empty until the next renewal.
        first = min(int(np.sum(_in_use(self.basis))), width - n_new)
        turn = np.zeros((len(scatter), width))
        turn[:width, :first] = kept[:, :first]
        turn[width:, first : first + n_new] = np.eye(n_new)
        turn[:width, first + n_new :] = kept[:, first:]
        return turn

    def _widen_similar(self, n_new: int) -> None:
        """What similar pairs have outside of the basis is the same in all directions there."""
        scatter, outside = _widened(self.similar.scatter, n_new), self.basis.similar
        each = outside[0] / max(self.n_features - self.width, 1)
        scatter[range(self.width, len(scatter)), range(self.width, len(scatter))] = each
        outside[0] -= n_new * each
        self.similar = self.similar._replace(scatter=scatter)

    def continue_from(self, old: Ensemble) -> None:
        """Go on from an ensemble of the same kinds, on a basis or on all of its features."""
        if not isinstance(old, NeighbourEnsemble):
            raise TypeError(f"{type(old).__name__} has other learners")
        self._continue_combiner(old)
        before = old.basis if isinstance(old, BasisEnsemble) else _as_basis(old.recent)
        n, width = before.vectors.shape
        widest = max(width, self.width)  # it may have had more directions
        more = widest - width
        slots = len(self.recent.y)
        recent = replay.widen(old.recent, widest)
        self.recent = replay.ReplayBuffer(*(replay.moved(e, slots, old.n_pairs) for e in recent))
        self.past = replay.widen_past(old.past, widest) if self._kept else self.past
        self.similar = old.similar._replace(scatter=_widened(old.similar.scatter, more))
        vectors = np.pad(before.vectors, ((0, self.n_features - n), (0, more)))
        self.basis = self.basis._replace(
            vectors=vectors,
            scatter=_widened(before.scatter, more),
            whole=replay.moved(before.whole, slots, old.n_pairs),
            similar=before.similar.copy(),
        )
        self.basis.last[:, :n] = before.last
        turn, banks = np.eye(widest, self.width), self._counterparts(old)
        if not isinstance(old, BasisEnsemble):
            turn = self._turn(self.basis.scatter, banks)
        self._carry(turn, banks)

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check()
        expected = new_basis(self.n_features, self.width, len(self.recent.y))
        for found, like, name in zip(self.basis, expected, Basis._fields, strict=True):
            if found.shape != like.shape:
                raise ValueError(f"basis.{name} is {found.shape}, expected {like.shape}")

    def metric(self, expert: int) -> Factored:
        """Metric of an expert."""
        return self.mixture(np.eye(len(self.experts.length))[expert])

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first experts' metrics."""
        return self._lifted(*self._summed(p, self.banks))

    def form(self, p: Floats) -> Floats:
        """The weighted sum of the first experts' forms, a matrix of all features."""
        matrix, outside = self._summed(p, self.banks)
        vectors = self.basis.vectors
        # Of unused directions the columns are 0.
        found: Floats = vectors @ (matrix - outside * np.eye(self.width)) @ vectors.T
        return found + outside * np.eye(self.n_features)

    def neighbours(self, p: Floats) -> Factored:
        """The mixture, with the inverse covariance of similar pairs."""
        matrix, outside = self._summed(p, self.banks)
        used = np.flatnonzero(_in_use(self.basis))
        own = np.ix_(used, used)
        values, vectors = np.linalg.eigh(matrix[own])
        similar = self.similar._replace(scatter=self.similar.scatter[own])
        beyond = Beyond(self.n_features - len(used), float(self.basis.similar[0]))
        metric = Factored(metric_values(values), vectors.T, outside)
        found = for_neighbours(similar, metric, self.effective_window, beyond)
        matrix[own] = found.matrix()
        return self._lifted(matrix, found.outside)

    def _lifted(self, matrix: Floats, outside: float) -> Factored:
        """A metric on the basis, as one of all features."""
        used = _in_use(self.basis)
        if np.sum(used) < self.n_features:
            return OnFrame(self._frame(used), matrix[np.ix_(used, used)], outside)
        values, mixing = np.linalg.eigh(matrix)
        rows = (self.basis.vectors @ mixing).T
        return Factored(metric_values(values[::-1]), rows[::-1], 0.0)

    def _frame(self, used: NDArray[np.bool_]) -> Frame:
        """The directions in use, until a renewal."""
        vectors = self.basis.vectors
        found = _frames.get(self)
        if found is None or found[0] is not vectors:
            found = _frames[self] = vectors, Frame(np.ascontiguousarray(vectors[:, used]))
        return found[1]


def _as_basis(recent: replay.ReplayBuffer) -> Basis:
    """All features as directions, as recent pairs saw them."""
    u = recent.u
    n, whole = u.shape[1], np.einsum("ij,ij->i", u, u)
    return new_basis(n, n, len(u))._replace(vectors=np.eye(n), scatter=u.T @ u, whole=whole)


def _in_use(basis: Basis) -> NDArray[np.bool_]:
    """Which directions there are already."""
    found: NDArray[np.bool_] = np.einsum("ij,ij->j", basis.vectors, basis.vectors) > 0.5
    return found


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


def _widened(matrix: Floats, more: int) -> Floats:
    found: Floats = np.pad(matrix, (0, more))
    return found
