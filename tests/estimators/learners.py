"""The online estimators that every check runs on, their streams, and their state."""

from typing import NamedTuple

import numpy as np

from metrack import COMID, LEGO, POLA, SADL, KernelTracker, MetricTracker, OnlineITML

# Name: (estimator, features of its stream). A new estimator or setting is one line here.
LEARNERS = {
    "COMID": (COMID(), 6),
    "COMID-explicit": (COMID(step="explicit", learning_rate=0.1), 6),
    "COMID-von_neumann": (COMID(divergence="von_neumann"), 6),
    "COMID-burg": (COMID(divergence="burg", regularizer="nuclear", rho=0.01), 6),
    "COMID-logdet": (COMID(regularizer="logdet"), 6),
    "COMID-frobenius": (COMID(divergence="frobenius"), 6),
    "COMID-3": (COMID(n_components=3), 6),
    "COMID-frame": (COMID(n_components=2), 40),
    "COMID-frame-identity": (COMID(n_components=2, init="identity"), 40),
    "COMID-unscaled": (COMID(scale=None, learning_rate=0.1), 6),
    "COMID-logistic": (COMID(loss="logistic"), 6),
    "COMID-invsqrt": (COMID(schedule="invsqrt"), 6),
    "COMID-unregularised": (
        COMID(regularizer=None, loss="squared_hinge", divergence="frobenius"),
        12,
    ),
    "COMID-l1-exact": (COMID(regularizer="l1", psd="exact"), 6),
    "COMID-l1-on_read": (COMID(regularizer="l1", psd="on_read"), 6),
    "COMID-l1-diagonal": (COMID(regularizer="l1", psd="diagonal", init="identity"), 6),
    "SADL-l1": (SADL(regularizer="l1", psd="on_read"), 6),
    "MetricTracker": (MetricTracker(), 6),
    "MetricTracker-wide": (MetricTracker(), 66),
    "SADL": (SADL(), 6),
    "SADL-published": (SADL.as_published(eta0=0.5, random_state=0), 6),
    "SADL-best": (SADL(combiner="cbce", output="best", divergence="burg"), 6),
    "SADL-frame": (SADL(n_components=2), 40),
    "KernelTracker": (KernelTracker(n_landmarks=24), 6),
    "KernelTracker-wide": (KernelTracker(n_landmarks=16, kernel="poly", degree=2), 66),
    "OnlineITML": (OnlineITML(), 6),
    "LEGO": (LEGO(), 6),
    "LEGO-unscaled": (LEGO(scale=None), 12),
    "POLA": (POLA(), 6),
    "POLA-3": (POLA(n_components=3), 6),
}


def has_matrix(learner):
    """Whether its metric is a matrix on the points' features."""
    return not isinstance(learner, KernelTracker)


class Stream(NamedTuple):
    """Pairs as rows of a set of points, and as points."""

    points: np.ndarray
    rows: np.ndarray
    pairs: np.ndarray
    y: np.ndarray


def make_stream(n_features, n_pairs=240, seed=0):
    """Alike are points close in the first feature. Every 29th pair is a point and itself."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(100, n_features))
    points[rng.random(points.shape) < 0.4] = 0.0
    rows = rng.integers(len(points), size=(n_pairs, 2))
    rows[::29, 1] = rows[::29, 0]
    pairs = points[rows]
    far = np.abs(pairs[:, 0, 0] - pairs[:, 1, 0])
    return Stream(points, rows, pairs, np.where(far < 0.7, 1, -1))


def state(learner):
    """All that a fitted learner knows, bit for bit: name -> type, shape and bytes."""
    found = {}
    _flatten(_parts(learner.engine_), "engine", found)
    _flatten(str(learner.resolved_), "resolved", found)
    if learner.random_state is not None:  # else it is everyone's
        _flatten(learner.rng_.get_state()[1:], "rng", found)
    for name in [*read_outs(learner), "n_features_in_"]:
        _flatten(getattr(learner, name), name, found)
    return found


def read_outs(learner):
    """Names of what a learner computes from its state when asked."""
    names = [name for name in dir(type(learner)) if name[-1] == "_" and name[0] != "_"]
    return [name for name in names if isinstance(getattr(type(learner), name), property)]


def _parts(engine):
    """All that an engine has learned, by what holds it."""
    return {
        name: {part: getattr(holder, part) for part in holder.STATE}
        for name, holder in engine.holders().items()
    }


def _flatten(value, name, found):
    if isinstance(value, dict):
        for key, each in value.items():
            _flatten(each, f"{name}.{key}", found)
    elif hasattr(value, "_asdict"):
        _flatten(value._asdict(), name, found)
    elif isinstance(value, tuple | list):
        _flatten(dict(enumerate(value)), name, found)
    elif isinstance(value, np.ndarray) and value.dtype.names:
        _flatten({key: value[key] for key in value.dtype.names}, name, found)
    else:
        array = np.asarray(value)
        assert array.dtype.kind in "iufbU", f"{name} is no state that can be compared"
        found[name] = array.dtype.str, array.shape, array.tobytes()
