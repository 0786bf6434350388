"""A bank of gradient learners: linear embeddings by stochastic gradient descent on minibatches.

It is what people would write first, along a stream. The metric is M = L'L, L starts at I, and a
pair loses log(1 + exp(-y (b - a |Lu|^2))); a and b are learned, too. After each block of pairs
comes one step on the block, then some on minibatches of the past, each as large: of the last pairs,
or of all the past, half of them alike. Steps are products of matrices, so that learning from
a pair many times costs little. Of many features, what a step adds is in single precision.

A step multiplies L by I - e H, where H is the weighted sum of uu' over a minibatch. It is cut to
|e H| = 1/2, which leaves L its rank, whatever the rate. What predicts is the mean of L over some
time: the last iterate has the noise of the last minibatches.
"""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np

from metrack.engine.learners.always_on import AlwaysOnBank, sum_of_squares
from metrack.engine.learners.bank import ALL, FOREVER, Predictions, Row
from metrack.engine.learners.blocks import block_of
from metrack.engine.learners.calibration import MEMORY, calibrate, scales
from metrack.engine.learners.replay import (
    DOUBLE_UP_TO,
    Material,
    Minibatch,
    draw_past,
    draw_recent,
    latest,
    new_minibatch,
)
from metrack.engine.numerics.divergences import LARGEST
from metrack.engine.numerics.kernels import Floats, Ints, dot, fill, inner, kernel, reduction
from metrack.engine.numerics.pairs import UNIT, Chunk, dense_row, rest, sign
from metrack.engine.numerics.records import floats

LONGEST_STEP = 0.5  # of |e H|
TOGETHER = 4  # rows
POWERS = 4  # of H, to find its length
PARTS = 8  # of the stream so far, of which L is averaged over the last, if that is less
LEAST_SCALE = 0.05  # of a: distances must not count the other way round
BLOCK, WIDE_BLOCK = 16, 64  # pairs between steps ...
MINIBATCHES, WIDE_MINIBATCHES = 4, 1  # ... and how many of the past follow each block
MOST_REPLAYS = 1 << 6


class Pace(NamedTuple):
    """What tells learners apart, an entry each."""

    rate: Floats
    window: Ints  # pairs replayed; 0: of all the past, half of them alike
    mean: Floats  # pairs over which L is averaged
    replays: Ints  # minibatches after each block


class Embeddings(NamedTuple):
    """The state of J learners."""

    factor: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]  # L
    margin: Annotated[Floats, floats("J", 2, least=-LARGEST, most=LARGEST)]  # a and b
    mean: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]  # of L


class GradientBank(AlwaysOnBank):
    """Learners by stochastic gradient descent, with paces of their own; all are always on.

    From some time on, blocks have ``every`` pairs.
    """

    name = "gradient"
    pace: Pace

    def __init__(self, n_features: int, pace: Pace, every: int) -> None:
        super().__init__(n_features, len(pace.rate))
        self.pace = pace
        self.every = every
        start = np.tile(np.eye(n_features), (self.n_learners, 1, 1))
        self.learners = Embeddings(start, np.ones((self.n_learners, 2)), start.copy())

    @classmethod
    def of_rows(cls, rows: Sequence[Row], n_features: int) -> Self:
        """A row's memory is how many of the last pairs minibatches are drawn from.

        0: of all the past, half of them alike.
        """
        few = rows[0].width == ALL and n_features <= DOUBLE_UP_TO
        replays = MINIBATCHES if few else WIDE_MINIBATCHES
        paces = [(r.rate, r.memory, float(r.mean), replays) for r in rows]
        pace = Pace(*map(np.array, zip(*paces, strict=True)))
        return cls(n_features, pace, BLOCK if few else WIDE_BLOCK)

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner."""
        return np.where(self.pace.window > 0, self.pace.window, FOREVER)

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed."""
        return max(self.every, int(self.pace.window.max(initial=0)))

    @property
    def remembers(self) -> bool:
        """Whether pairs of all the past are replayed."""
        return bool((self.pace.window == 0).any())

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, block by block."""
        chunk, done, work = material.chunk, 0, np.zeros((TOGETHER, self.n_features))
        while done < len(chunk.y):
            begin, end = block_of(chunk.seen + done, self.every)
            stop = min(end - chunk.seen, len(chunk.y))
            predict(self.learners.mean, chunk, done, stop, predictions.q, work)
            done = stop
            if chunk.seen + done == end:
                self._learn_block(material, done, end - begin)
        calibrate(self.calibration, predictions, chunk.y, MEMORY)

    def _learn_block(self, material: Material, stop: int, size: int) -> None:
        """Steps on the last pairs before a row, and on others of the past."""
        t = material.chunk.seen + stop
        new, old = new_minibatch(size, self.n_features), new_minibatch(size, self.n_features)
        latest(material, stop, new)
        for j, window in enumerate(self.pace.window):
            self._take_step(j, new)
            for k in range(self.pace.replays[j]):
                number = (t * len(self.pace.rate) + j) * MOST_REPLAYS + k
                if window > 0:
                    draw_recent(material, stop, window, number, old)
                else:
                    draw_past(material.past, number, old)
                self._take_step(j, old)
            share = min(max(size / self.pace.mean[j], PARTS * size / t), 1.0)
            own = self.learners
            own.mean[j] += share * (own.factor[j] - own.mean[j])

    def _take_step(self, j: int, pairs: Minibatch) -> None:
        factor, margin, _ = self.learners
        u = pairs.u
        embedded = u @ factor[j].astype(u.dtype, copy=False).T
        ask(margin[j], self.pace.rate[j], pairs, u @ u.T, embedded)
        factor[j] -= embedded.T @ u

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics: on their directions, and beyond them."""
        weights = p * scales(self.calibration)
        return sum_of_squares(weights, self.learners.mean), float(weights.sum())

    def change_basis(self, old: "GradientBank", turn: Floats) -> None:
        """Go on from what a bank has learned, with other directions; see `Bank`.

        L becomes what it is between these directions, so that it and its mean stay comparable.
        """
        n, width = old.n_features, self.n_features
        known, beyond = turn[:n, :width], turn[n:, :width]
        factor, margin, mean = old.learners
        outside = beyond.T @ beyond
        self.learners = Embeddings(
            known.T @ factor @ known + outside, margin, known.T @ mean @ known + outside
        )
        self.calibration = old.calibration

    def continue_from(self, old: "GradientBank") -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        n = old.n_features
        self.learners.factor[:, :n, :n] = old.learners.factor
        self.learners.mean[:, :n, :n] = old.learners.mean
        self.learners.margin[:] = old.learners.margin
        self.calibration = old.calibration


@kernel
def ask(margin: Floats, rate: float, pairs: Minibatch, products: Floats, embedded: Floats) -> None:
    """What a minibatch asks for: each Lu becomes its share of the step; a and b are moved.

    ``products`` are those of differences with each other.
    """
    size, n = pairs.u.shape
    a, b = margin[0], margin[1]
    up, down = 0.0, 0.0
    for row in range(size):
        q = pairs.rest[row]
        for i in range(n):
            q += embedded[row, i] * embedded[row, i]
        q /= UNIT
        y = sign(pairs.y[row])
        pull = abs(pairs.y[row]) * y / (1.0 + math.exp(min(y * (b - a * q), 700.0)))
        up += pull
        down += pull * q
        pairs.asked[row] = 2.0 * a * pull / UNIT
    step, longest = rate, length_of(pairs, products)
    if step * longest > LONGEST_STEP:
        step = LONGEST_STEP / longest
    for row in range(size):
        for i in range(n):
            embedded[row, i] *= step * pairs.asked[row]
    margin[0] = min(max(a - step * down, LEAST_SCALE), LARGEST)
    margin[1] = min(max(b + step * up, -LARGEST), LARGEST)


@inner
def length_of(pairs: Minibatch, products: Floats) -> float:
    """The spectral norm of H, were all its weights of the same sign: by the power method."""
    size, length = pairs.asked.size, 0.0
    for row in range(size):
        pairs.power[0, row] = 1.0
    for _ in range(POWERS):
        square, before = 0.0, 0.0
        for row in range(size):
            total = 0.0
            for other in range(size):
                weight = math.sqrt(abs(pairs.asked[row] * pairs.asked[other]))
                total += weight * products[row, other] * pairs.power[0, other]
            pairs.power[1, row] = total
            square += total * total
            before += pairs.power[0, row] * pairs.power[0, row]
        if square == 0.0:
            return 0.0
        length = math.sqrt(square / before)
        for row in range(size):
            pairs.power[0, row] = pairs.power[1, row] / length
    return length


@kernel
def predict(factors: Floats, chunk: Chunk, start: int, stop: int, q: Floats, work: Floats) -> None:
    """Squared distances of some rows of a chunk; ``work`` is working memory.

    Several rows at a time, since a factor takes longer to read than to multiply. There are always
    as many, some perhaps 0: so each is rounded in the same way, whatever others come with it.
    """
    n = work.shape[1]
    for first in range(start, stop, TOGETHER):
        size = min(TOGETHER, stop - first)
        for i in range(TOGETHER):
            if i < size:
                dense_row(chunk, first + i, work[i])
            else:
                fill(work[i], 0.0, n)
        for j in range(len(factors)):
            a, b, c, d = squared_lengths(factors[j], work[0], work[1], work[2], work[3])
            found = (a, b, c, d)
            for i in range(size):
                norm2 = dot(work[i], work[i], n)
                q[first + i, j] = found[i] + rest(chunk.whole, first + i, norm2)


@reduction
def squared_lengths(
    factor: Floats, a: Floats, b: Floats, c: Floats, d: Floats
) -> tuple[float, float, float, float]:
    """|La|^2 and those of three others."""
    n = a.size
    qa = qb = qc = qd = 0.0
    for i in range(n):
        row = factor[i]
        wa = wb = wc = wd = 0.0
        for k in range(n):
            wa += row[k] * a[k]
            wb += row[k] * b[k]
            wc += row[k] * c[k]
            wd += row[k] * d[k]
        qa += wa * wa
        qb += wb * wb
        qc += wc * wc
        qd += wd * wd
    return qa, qb, qc, qd
