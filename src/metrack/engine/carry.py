"""A bank goes on as a wider one, whose form and rule are those of the new width.

Learners keep their metrics, the combiner what it remembers, the clock its counts. The new features
have been 0 so far: there every metric is where it started, or where the new form starts.
"""

from typing import Any

import numpy as np

from metrack.engine import diagonal, elementwise, replay, spectral
from metrack.engine.bank import Bank
from metrack.engine.divergences import LARGEST
from metrack.engine.kernels import Floats


def carry(old: Bank, new: Bank) -> None:
    """Give a new bank, of at least as many features, what another has learned."""
    n_learners, more = len(old.learners.mu), new.n_features - old.n_features
    new.learners = _learners(old, new)
    kept = {name: getattr(old.trust, name) for name in ("memory", "p", "losses")}
    new.trust = new._new_trust(0, n_learners)._replace(**kept)
    new.clock = old.clock
    if new.rule.replays > 0 and old.rule.replays > 0:
        new.memory = replay.widen(old.memory, more)


def _learners(old: Bank, new: Bank) -> Any:
    more = new.n_features - old.n_features
    if new.form is spectral:
        return _spectral(old, new)
    if new.form is old.form:
        return new.form.widen(old.learners, more)
    return new.form.widen(_entries(old, new), more)


def _entries(old: Bank, new: Bank) -> Any:
    """Learners of the elementwise L1 norm in a form that keeps less; no threshold is pending."""
    learners, rows = old.learners, np.arange(old.n_features)
    if new.form is elementwise:
        upper = np.triu_indices(old.n_features)
        heights, fresh = learners.matrix[:, *upper], learners.fresh
    elif old.form is elementwise:
        on_diagonal = np.equal(*np.triu_indices(old.n_features))
        heights = learners.heights[:, on_diagonal] - learners.total[:, None]
        fresh = learners.fresh - learners.total
    else:
        heights, fresh = learners.matrix[:, rows, rows], learners.fresh
    if new.form is diagonal:
        heights = np.maximum(heights, 0.0)
    nothing = np.zeros(len(heights))
    return type(new.learners)(heights, nothing, np.maximum(fresh, 0.0), learners.mu)


def _spectral(old: Bank, new: Bank) -> spectral.Spectral:
    """Bases and spectra, in arrays as large as those of a new bank, or larger."""
    same = old.form is spectral and old.rule.divergence == new.rule.divergence
    fresh, capacity = new.learners, new.rule.capacity
    n_learners, width = len(old.learners.mu), new.n_features
    start = float(fresh.outside[0])
    found = [_same(old, j) if same else _full(old, j, start) for j in range(n_learners)]
    learners = spectral.new_learners(n_learners, width, capacity, new.rule.divergence, start != 0.0)
    learners.rank[:] = [len(values) for values, _, _ in found]
    while (grown := spectral.grow(learners, capacity)) is not learners:
        learners = grown
    for j, (values, vectors, outside) in enumerate(found):
        rank, n = vectors.shape
        learners.spectrum[j, :rank], learners.outside[j] = values, outside
        if learners.frame.shape[1] > 0:
            learners.frame[j, :n, :rank] = vectors.T
            learners.basis[j, :rank, :rank] = np.eye(rank)
            learners.width[j] = rank
        else:
            learners.basis[j, :rank, :n] = vectors
    kept = {"dropped": old.learners.dropped, "age": old.learners.age} if same else {}
    return learners._replace(mu=old.learners.mu, **kept)


def _same(old: Bank, j: int) -> tuple[Floats, Floats, float]:
    """The spectrum as it is stored, the basis, and the stored value outside."""
    learners = old.learners
    vectors = spectral.metric(learners, j, old.rule.divergence, old.n_features)[1]
    return learners.spectrum[j, : len(vectors)], vectors, float(learners.outside[j])


def _full(old: Bank, j: int, outside: float) -> tuple[Floats, Floats, float]:
    """Eigenvalues and vectors of all of the old metric; the new features are at their start."""
    values, vectors, around = old.metric(j)
    if around > 0.0:
        values, vectors = np.linalg.eigh(old.metric(j).matrix())
        values, vectors = values[::-1], vectors.T[::-1]
    return np.maximum(values * old.unit, 1.0 / LARGEST), vectors, outside
