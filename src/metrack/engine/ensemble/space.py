"""Learners that see the same features of pairs, with what they share.

Pairs come by all features, or, where there are many, by their coordinates on a basis that follows
the stream; see `basis`. A memory keeps pairs to be replayed. For the output for neighbours, the
covariance of similar pairs is kept, too.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metrack.engine.ensemble import scaler, similar
from metrack.engine.ensemble.basis import EVERY, Basis, as_basis
from metrack.engine.learners.bank import Bank, Predictions
from metrack.engine.learners.blocks import LONG
from metrack.engine.learners.memory import Memory
from metrack.engine.learners.replay import Material
from metrack.engine.numerics.factored import Factored, metric_values, nearest_metric
from metrack.engine.numerics.kernels import Floats, Record
from metrack.engine.numerics.pairs import UNIT, Chunk, Pairs

KEPT = 1024  # pairs of each kind that are kept of all the past


class Learned(NamedTuple):
    """What came of some pairs."""

    predictions: list[Predictions]  # bank by bank
    chunk: Chunk  # as learners saw them


class Space:
    """Banks of learners on the same features, or on a basis as wide as the widest of them.

    If ``scaled``, pairs have a mean |u|^2 of UNIT. The covariance of similar pairs is kept if
    `neighbours` is to be asked for.
    """

    STATE = ("scaler", "similar")

    def __init__(
        self,
        n_features: int,
        banks: Sequence[Bank],
        scaled: bool,
        basis: Basis | None = None,
        neighbours: bool = False,
    ) -> None:
        self.n_features = n_features
        self.banks = tuple(banks)
        self.spread = UNIT if scaled else 0.0
        self.basis = basis
        self.scaler: Record = scaler.SCALER()
        remembers = any(bank.remembers for bank in banks)
        last = max(bank.recent for bank in banks)
        if remembers:
            last = max(last, LONG)  # those between two ends of blocks
        if basis is not None:
            last = max(last, EVERY)  # and between two renewals
        self.memory = Memory(self.width, last, KEPT if remembers else 0, basis is not None)
        self.similar = similar.new_similar(self.width if neighbours else 0)

    @property
    def width(self) -> int:
        """How many features banks are given."""
        return self.n_features if self.basis is None else self.basis.width

    @property
    def unit(self) -> float:
        """Square of the length in which u is measured."""
        return scaler.unit(self.scaler, self.spread)

    def learn(self, pairs: Pairs, seen: int) -> Learned:
        """Predict and learn pairs, before which ``seen`` came."""
        chunk = scaler.to_scale(self.scaler, pairs, self.spread, seen)
        if self.basis is not None:
            chunk = self.basis.on_basis(chunk)
        material = Material(chunk, self.memory.recent, self.memory.past)
        each = [_learned(bank, material) for bank in self.banks]
        self.memory.store(chunk)
        return Learned(each, chunk)

    def follow(self, chunk: Chunk, windows: Floats) -> None:
        """Keep what similar pairs show, over effective windows, one a pair."""
        if len(self.similar.scatter) > 0:
            full = np.zeros(self.width)
            similar.follow(self.similar, chunk, similar.memory(windows), full)

    def end_block(self, begin: int, end: int, shares: Sequence[Floats]) -> None:
        """At fixed counts of pairs: keep some of them for long, and renew the basis.

        The basis is ordered by a mixture of learners, whose weights are given bank by bank.
        """
        self.memory.keep(begin, end)
        if self.basis is not None and (end <= EVERY or end % EVERY == 0):
            self._renew(self.basis, end - EVERY if end > EVERY else begin, end, shares)

    def _renew(self, basis: Basis, begin: int, end: int, shares: Sequence[Floats]) -> None:
        """Order directions, take up new ones, and carry everything over."""
        recent, (last, differences) = self.memory.recent, basis.last(end)
        new = basis.new_directions(differences)
        # Coordinates on old and new directions; on the latter they are known of the last pairs.
        known = np.pad(recent.u, ((0, 0), (0, new.shape[1])))
        known[last % len(recent.y), basis.width :] = differences @ new
        basis.take_up(new, known[np.arange(begin, end) % len(recent.y)])
        self.memory.recent = recent._replace(u=known)
        turn = basis.best_turn(*self._summed(_or_alike(shares), self.banks))
        basis.turn(turn)
        self._carry(turn, self.banks)

    def _carry(self, turn: Floats, banks: Sequence[Any], apart: Sequence[Bank] = ()) -> None:
        """Go on with the columns of ``turn`` as directions, from what banks have learned.

        Those ``apart`` have worked on all features.
        """
        self.memory.turn(turn)
        if (width := len(self.similar.scatter)) > 0:
            wider = similar.widened(self.similar, len(turn) - width, self.n_features - width)
            self.similar = similar.turned(wider, turn)
        for bank, old in zip(self.banks, banks, strict=True):
            own = turn
            if self.basis is not None and old in apart:
                own = self.basis.of_features(old.n_features)
            bank.change_basis(old, own)

    def change_features(self, change: Floats, n_pairs: int) -> None:
        """Go on with other features, of which v becomes ``change`` v, a projection.

        The features are coordinates on orthonormal directions of a larger space; ``change`` has the
        products of new and old ones, a row for each new one. What is carried over is exact where
        the new features span what the old ones did. Else each M is restricted to the new span, in
        which it is plain distance where nothing is known.
        """
        if self.basis is None:
            raise NotImplementedError
        turn, vectors = self.basis.change_features(change)
        recent = self.memory.recent
        self.memory.recent = recent._replace(u=np.pad(recent.u, ((0, 0), (0, self.width))))
        self._carry(turn, self.banks)
        # What the last pairs had outside of the old directions may be inside of the new ones.
        last, seen = self.basis.last(n_pairs)
        self.memory.recent.u[last % len(recent.y)] = seen @ vectors

    def continue_from(
        self, old: "Space", banks: Sequence[Bank], shares: Sequence[Floats], n_pairs: int
    ) -> None:
        """Go on from a space of the same kinds of learners, with perhaps fewer features.

        The others have been 0 so far. Each bank goes on from one that is given, perhaps itself.
        """
        self.scaler = old.scaler.copy()
        if self.basis is None:
            for bank, before in zip(self.banks, banks, strict=True):
                if before is not bank:
                    bank.continue_from(before)
            self.memory.continue_from(old.memory, n_pairs)
            n = len(old.similar.scatter)
            self.similar.scatter[:n, :n] = old.similar.scatter
            return
        basis = old.basis or as_basis(old.memory.recent.u)
        widest = max(basis.width, self.width)  # it may have had more directions
        size = len(self.memory.recent.y)
        memory = Memory(widest, size, self.memory.kept, True)
        memory.continue_from(old.memory, n_pairs)
        memory.last = self.memory.last
        self.memory = memory
        self.basis.continue_from(basis, widest)
        self.similar = similar.widened(old.similar, widest - len(old.similar.scatter), 0)
        turn = np.eye(widest, self.width)
        if old.basis is None:
            turn = self.basis.best_turn(*self._summed(_or_alike(shares), banks, widest))
        self.basis.turn(turn)
        inside = (*old.banks, *self.banks)
        self._carry(turn, banks, [] if old.basis is None else [b for b in banks if b not in inside])

    def check(self, n_pairs: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        for bank in self.banks:
            bank.check(self.n_features)
        scaler.check(self.scaler, n_pairs)
        if self.basis is not None:
            self.basis.check()
        self.memory.check(self.width)
        if len(self.similar.scatter) not in (0, self.width):
            raise ValueError(f"similar.scatter is of {len(self.similar.scatter)} features")

    def metric(self, shares: Sequence[Floats]) -> Factored:
        """The weighted sum of learners' metrics, whose weights are given bank by bank."""
        if self.basis is not None:
            matrix, outside = self._summed(shares, self.banks)
            return self.basis.lifted(matrix / self.unit, outside / self.unit)
        if len(self.banks) == 1:
            return self.banks[0].mixture(shares[0], self.unit)
        return nearest_metric(self.form(shares))

    def form(self, shares: Sequence[Floats]) -> Floats:
        """The weighted sum of learners' forms, a matrix of all features."""
        matrix, outside = self._summed(shares, self.banks)
        if self.basis is not None:
            # Of unused directions the columns are 0.
            vectors, plain = self.basis.vectors, np.eye(self.width)
            matrix = vectors @ (matrix - outside * plain) @ vectors.T
            matrix = matrix + outside * np.eye(self.n_features)
        return matrix / self.unit

    def _summed(
        self, shares: Sequence[Floats], banks: Sequence[Any], widest: int = 0
    ) -> tuple[Floats, float]:
        """The weighted sum of learners' forms: on the features at hand, and beyond them.

        Before a basis is narrowed, there are more of them: ``widest``.
        """
        width = widest or self.width
        total, outside = np.zeros((width, width)), 0.0
        for bank, share in zip(banks, shares, strict=True):
            matrix, beyond = bank.matrix(share)
            own = len(matrix)
            total[:own, :own] += matrix
            total[range(own, width), range(own, width)] += beyond
            outside += beyond
        return total, outside

    def neighbours(self, shares: Sequence[Floats], window: float) -> Factored:
        """The same, with the inverse covariance of similar pairs over an effective window."""
        if self.basis is None:
            return similar.for_neighbours(self.similar, self.metric(shares), window)
        matrix, outside = self._summed(shares, self.banks)
        used = np.flatnonzero(self.basis.in_use)
        own = np.ix_(used, used)
        values, vectors = np.linalg.eigh(matrix[own])
        inside = self.similar._replace(scatter=self.similar.scatter[own])
        metric = Factored(metric_values(values), vectors.T, outside)
        found = similar.for_neighbours(inside, metric, window, self.n_features - len(used))
        matrix[own] = found.matrix()
        return self.basis.lifted(matrix / self.unit, found.outside / self.unit)


def _learned(bank: Bank, material: Material) -> Predictions:
    """What a bank says of a chunk, which it learns."""
    chunk = material.chunk
    shape = len(chunk.y), bank.n_active(chunk.seen + len(chunk.y))
    predictions = Predictions(np.empty(shape), np.empty(shape))
    bank.learn(material, predictions)
    return predictions


def _or_alike(shares: Sequence[Floats]) -> Sequence[Floats]:
    """Weights of a space's learners; all alike, where none of them is trusted at all."""
    trusted = any(share.any() for share in shares)
    return shares if trusted else [np.ones(len(share)) for share in shares]
