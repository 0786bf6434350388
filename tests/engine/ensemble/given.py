"""Ensembles, and pairs as they are given them: dense or sparse, in calls of any sizes."""

import numpy as np
import scipy.sparse as sp

from metrack.engine.ensemble.basis import Basis
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import AS_THEY_COME
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.pairs import Pairs

SHARING = Combination(HINGE, COMBINERS["adaptive_share"].record, cap=4.0)


def ensemble_of(n, banks, combination=SHARING, scaled=False, width=0, neighbours=False):
    """Banks in one space of pairs as they come, on a basis of so many directions or none."""
    basis = Basis(n, width) if width else None
    return Ensemble(n, [Space(n, banks, scaled, basis, neighbours)], [AS_THEY_COME], combination)


def dense(u, y):
    """Differences, one a row."""
    return Pairs(u.ravel().copy(), np.arange(u.shape[1]), np.empty(0, np.int64), y)


def sparse(u, y):
    """The same by their non-zeros."""
    rows = sp.csr_array(u)
    return Pairs(rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64), y)


def observe(ensemble, u, y, sizes=(10_000,), draws=None):
    """Losses of pairs given in calls of these sizes."""
    losses, done, call = [], 0, 0
    while done < len(y):
        rows = slice(done, done + sizes[call % len(sizes)])
        drawn = np.empty(0) if draws is None else draws[rows]
        losses.append(ensemble.observe(dense(u[rows], y[rows]), drawn))
        done, call = done + len(losses[-1]), call + 1
    return np.concatenate(losses)


def mixture(ensemble):
    """The ensemble's metric, by the weights of this moment."""
    return ensemble.mixture(ensemble.experts.weights)


def state(ensemble):
    """All that was learned, bit for bit, by names."""
    found = {}
    for name, holder in ensemble.holders().items():
        for part in holder.STATE:
            record = getattr(holder, part)
            arrays = record if isinstance(record, tuple) else (record,)
            found[f"{name}.{part}"] = [array.tobytes() for array in arrays]
    return found
