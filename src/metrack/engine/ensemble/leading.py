"""A bank on the leading directions of differences, beside banks that work on all features.

A metric of few directions has few numbers to learn, and is learned from few pairs; and where
differences have most of their variance in a few directions, what counts is often found there. The
learners are those of an always-on bank. They see a pair by its coordinates c = V'u, and have plain
distance, times a number of their own, beyond the columns of V:

    M = V A V' + s (I - VV').

V are the leading directions of the last pairs. They are found anew at fixed counts of pairs, so
that calls of any sizes lead to the same state, and each M is then restricted to the new form. Until
they are found for the first time there are none, and each M is plain distance.

With more features, all banks work on such directions; see `basis`.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble import replay
from metrack.engine.ensemble.always_on import AlwaysOnBank, Pace
from metrack.engine.ensemble.bank import Predictions, ReadFromMatrix
from metrack.engine.ensemble.replay import Material
from metrack.engine.numerics.factored import root
from metrack.engine.numerics.kernels import Floats, Ints, combine, dot, kernel
from metrack.engine.numerics.pairs import Chunk
from metrack.engine.numerics.records import floats
from metrack.engine.representations.dense_factor import change_basis

FIRST, EVERY = 128, 256  # pairs: when directions are found first, and then at multiples
LAST = 1024  # pairs in which they are found
NOTHING = 1e-10  # a share of the variance that may be rounding's


class Directions(NamedTuple):
    """The leading directions of differences."""

    vectors: Annotated[Floats, floats("features", "n", least=-2.0, most=2.0)]  # V; 0 where unused


class LeadingBank(ReadFromMatrix, AlwaysOnBank):
    """Learners on the leading directions of differences.

    Parameters
    ----------
    n_features : int
        Of the pairs.
    width : int
        How many directions.
    kind, pace
        As of an `AlwaysOnBank`.
    """

    def __init__(self, n_features: int, width: int, kind: Any, pace: Pace) -> None:
        super().__init__(width, kind, pace)
        self.directions = Directions(np.zeros((n_features, width)))

    @property
    def name(self) -> str:
        """Of the kind of learners."""
        return "leading"

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept: those in which directions are found."""
        return max(LAST, self._window)

    @property
    def _window(self) -> int:
        """How many of the last pairs learners replay."""
        return super().recent

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another."""
        seen, done = material.chunk.seen, 0
        while done < len(material.chunk.y):
            due = next_renewal(seen + done) - seen
            stop = min(due, len(material.chunk.y))
            rows = Predictions(predictions.q[done:stop], predictions.mu[done:stop])
            super().learn(self._on_directions(material, done, stop), rows)
            done = stop
            if done == due:
                self._renew(replay.last_pairs(material, done, LAST).u)

    def _on_directions(self, material: Material, start: int, stop: int) -> Material:
        """Some rows of the chunk, and the pairs before them, by their coordinates."""
        t, window = material.chunk.seen + start, self._window
        n_before = min(t, window)
        last = replay.last_pairs(material, stop, n_before + stop - start)
        seen = on_directions(self.directions.vectors, last.u)
        slots = np.arange(t - n_before, t) % window
        buffer, whole = replay.new_buffer(self.n_features, window), np.zeros(window)
        buffer.u[slots], buffer.y[slots] = seen.c[:n_before], last.y[:n_before]
        whole[slots] = seen.whole[:n_before]
        chunk = Chunk(
            seen.c[n_before:].ravel(),
            np.arange(self.n_features),
            np.empty(0, np.int64),
            last.y[n_before:],
            seen.norm2[n_before:],
            seen.whole[n_before:],
            t,
        )
        return material._replace(chunk=chunk, recent=buffer, whole=whole)

    def _renew(self, u: Floats) -> None:
        """Find the leading directions of these differences, and carry learners over."""
        values, vectors = np.linalg.eigh(u.T @ u)
        there = values[::-1] > NOTHING * values.sum()
        leading = (vectors[:, ::-1] * there)[:, : self.n_features]
        self._turn_to(np.ascontiguousarray(leading))

    def _turn_to(self, vectors: Floats) -> None:
        """Go on with other directions; each M is restricted to these."""
        held = self.directions.vectors.T @ vectors
        beyond = root(np.eye(self.n_features) - held.T @ held)
        turn = np.vstack([held, beyond])
        self.learners = change_basis(self.learners, turn, self.pace.outside)
        self.directions = Directions(vectors)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics, of all features."""
        vectors = self.directions.vectors
        inside, outside = super().matrix(p)
        added = inside - outside * np.eye(self.n_features)
        return vectors @ added @ vectors.T + outside * np.eye(len(vectors)), 0.0

    def continue_from(self, old: Any) -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        super().continue_from(old)
        self.directions.vectors[: len(old.directions.vectors)] = old.directions.vectors

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check(n_features)
        if len(self.directions.vectors) != n_features:
            raise ValueError(f"directions are of {len(self.directions.vectors)} features")


def next_renewal(t: int) -> int:
    """After how many pairs directions are found next, when t have been learned."""
    return FIRST if t < FIRST else t - t % EVERY + EVERY


class Seen(NamedTuple):
    """Pairs as learners see them."""

    c: Floats  # coordinates
    norm2: Floats  # |c|^2
    whole: Floats  # |u|^2


def on_directions(vectors: Floats, u: Floats) -> Seen:
    """Differences by their coordinates; each the same, whatever others come with it."""
    found = Seen(np.empty((len(u), vectors.shape[1])), np.empty(len(u)), np.empty(len(u)))
    project(vectors, u, np.arange(len(vectors)), found)
    return found


@kernel
def project(vectors: Floats, u: Floats, where: Ints, found: Seen) -> None:
    """Coordinates and squared lengths, row by row."""
    n, width = vectors.shape
    for row in range(len(u)):
        c = found.c[row]
        combine(c, u[row], vectors, where, n, width)
        found.norm2[row] = dot(c, c, width)
        found.whole[row] = dot(u[row], u[row], n)
