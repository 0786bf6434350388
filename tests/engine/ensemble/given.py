"""Pairs as an ensemble is given them: dense or sparse, in calls of any sizes."""

import numpy as np
import scipy.sparse as sp

from metrack.engine.numerics.pairs import Pairs


def dense(u, y):
    """Differences, one a row."""
    return Pairs(u.ravel().copy(), np.arange(u.shape[1]), np.empty(0, np.int64), y)


def sparse(u, y):
    """The same by their non-zeros."""
    rows = sp.csr_array(u)
    return Pairs(rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64), y)


def observe(ensemble, u, y, sizes=(10_000,)):
    """Losses of pairs given in calls of these sizes."""
    losses, done, call = [], 0, 0
    while done < len(y):
        rows = slice(done, done + sizes[call % len(sizes)])
        losses.append(ensemble.observe(dense(u[rows], y[rows]), np.empty(0)))
        done, call = done + len(losses[-1]), call + 1
    return np.concatenate(losses)
