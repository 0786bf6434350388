"""States of every format so far, in golden/, with what their writers went on to learn.

Each was written after 40 pairs; the JSON file beside it says what the same process then learned
from 40 more. They load for ever. A new format gets a folder of its own, once and for all:

    python -m tests.estimators.golden_states v4
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

from metrack import (
    COMID,
    LEGO,
    OASIS,
    POLA,
    SADL,
    DriftKNN,
    FromLabels,
    KernelTracker,
    MetricTracker,
    OnlineITML,
)

GOLDEN = Path(__file__).with_name("golden")
N_PAIRS = 40  # before the state, and again after it
LEARNERS = {
    "comid-dense": lambda: COMID(),
    "comid-logdet": lambda: COMID(regularizer="logdet"),
    "comid-spectral": lambda: COMID(divergence="von_neumann", loss="logistic", schedule="invsqrt"),
    "comid-frame": lambda: COMID(n_components=1),
    "comid-cone": lambda: COMID(regularizer="l1", psd="exact"),
    "comid-entries": lambda: COMID(regularizer="l1", psd="on_read", step="explicit"),
    "comid-diagonal": lambda: COMID(regularizer="l1", psd="diagonal", init="identity"),
    "sadl": lambda: SADL(),
    "sadl-nuclear": lambda: SADL(regularizer="nuclear"),
    "sadl-published": lambda: SADL.as_published(eta0=0.5, random_state=3),
    "sadl-ader": lambda: SADL(combiner="ader", divergence="frobenius", output="best"),
    "tracker": lambda: MetricTracker(),
    "tracker-wide": lambda: MetricTracker(),
    "kernel": lambda: KernelTracker(n_landmarks=8),
    "itml": lambda: OnlineITML(),
    "lego": lambda: LEGO(scale=None),
    "pola": lambda: POLA(n_components=2),
    "oasis": lambda: OASIS(),
    "from-labels": lambda: FromLabels(MetricTracker(), buffer_size=12, random_state=5),
    "drift-knn": lambda: DriftKNN(window=10, random_state=5),
}


def stream(name):
    """What a learner is taught, in two halves; numpy keeps these numbers the same for ever."""
    rng = np.random.RandomState(0)
    wide = {"comid-frame": 6, "tracker": 14, "tracker-wide": 66}
    n_features = wide.get(name, 3)
    size = 3 if name == "oasis" else 2
    tuples = rng.standard_normal((2 * N_PAIRS, size, n_features))
    if name == "oasis":
        return [(half,) for half in np.split(tuples, 2)]
    if name in ("from-labels", "drift-knn"):
        points = tuples[:, 0]
        labels = np.where(points[:, 0] > 0.0, "right", "left")
        return list(zip(np.split(points, 2), np.split(labels, 2), strict=True))
    y = np.where(np.abs(tuples[:, 0, 0] - tuples[:, 1, 0]) < 0.7, 1, -1)
    return list(zip(np.split(tuples, 2), np.split(y, 2), strict=True))


def outcome(learner, second_half):
    """What a learner says while and after it goes on."""
    losses = []
    if isinstance(learner, DriftKNN):
        predicted = learner.observe(*second_half).tolist()
        return {
            "right": [float(a == b) for a, b in zip(predicted, second_half[1], strict=True)],
            "probabilities": learner.predict_proba(second_half[0]).tolist(),
        }
    if isinstance(learner, FromLabels):
        learner.partial_fit(*second_half)
    else:
        losses = learner.observe(*second_half).tolist()
    if isinstance(learner, OASIS):
        return {"losses": losses, "matrix": learner.get_bilinear_matrix().tolist()}
    pairs = getattr(learner, "learner_", learner)
    if isinstance(learner, KernelTracker):
        distances = learner.pair_distance(second_half[0]).tolist()
        return {"losses": losses, "distances": distances, "mu": learner.mu_}
    return {
        "losses": losses,
        "matrix": learner.get_mahalanobis_matrix().tolist(),
        "mu": pairs.mu_,
        "pairs": pairs.n_pairs_seen_,
    }


def write(version):
    for name, make in LEARNERS.items():
        learner = make()
        if not hasattr(learner, "save"):  # it came in a later format
            continue
        first, second = stream(name)
        folder = GOLDEN / version / name
        learner.fit(*first).save(folder)
        (folder / "lock").unlink()
        expected = json.dumps(outcome(learner, second), indent=1)
        (folder.parent / f"{name}.json").write_text(expected + "\n")


if __name__ == "__main__":
    shutil.rmtree(GOLDEN / sys.argv[1], ignore_errors=True)
    write(sys.argv[1])
