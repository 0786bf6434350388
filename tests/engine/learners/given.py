"""Pairs as a bank is given them, without an ensemble around it."""

import numpy as np

from metrack.engine.learners.bank import Predictions
from metrack.engine.learners.memory import new_buffer, new_past, store
from metrack.engine.learners.replay import Material
from metrack.engine.numerics.pairs import Chunk

NOTHING, DENSE = np.empty(0), np.empty(0, np.int64)


def chunk_of(u, y, seen=0, whole=NOTHING):
    """Dense pairs, before which so many came; perhaps longer than they are here."""
    return Chunk(u.ravel().copy(), np.arange(u.shape[1]), DENSE, y, (u**2).sum(axis=1), whole, seen)


def learn(bank, u, y, sizes=(10_000,), slots=64):
    """What a bank predicts, its pairs given in chunks."""
    n = u.shape[1]
    buffer, found, done, call = new_buffer(n, slots), [], 0, 0
    while done < len(y):
        rows = slice(done, done + sizes[call % len(sizes)])
        chunk = chunk_of(u[rows], y[rows], done)
        shape = len(chunk.y), len(bank.lengths)
        said = Predictions(np.empty(shape), np.empty(shape))
        bank.learn(Material(chunk, buffer, new_past(0, n)), said)
        store(buffer, chunk)
        found.append(said)
        done, call = done + len(chunk.y), call + 1
    return Predictions(*map(np.concatenate, zip(*found, strict=True)))
