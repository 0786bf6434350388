"""States of every format so far, in golden/, with what their writers went on to learn.

There is one of each learner, written after 40 pairs; the JSON file beside it says what the same
process then learned from 40 more. They load for ever. A new format gets a folder of its own, once
and for all, here and beside the tests of tracking:

    python -m tests.estimators.golden_states v1
"""

import json
import shutil
import sys
from functools import cache
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
from metrack.estimators.states.persistence import dump
from metrack.storage import from_bytes
from metrack.tracking.items import read_items
from metrack.tracking.loop import Run, track
from metrack.tracking.saving import SavePolicy

GOLDEN = Path(__file__).with_name("golden")
TRACKING = Path(__file__).parents[1] / "tracking" / "golden"
N_PAIRS = 40  # before the state, and again after it
LEARNERS = {
    "comid": lambda: COMID(),
    "sadl": lambda: SADL(),
    "tracker": lambda: MetricTracker(),
    "kernel": lambda: KernelTracker(n_landmarks=8),
    "itml": lambda: OnlineITML(),
    "lego": lambda: LEGO(scale=None),
    "pola": lambda: POLA(n_components=2),
    "oasis": lambda: OASIS(),
    "from-labels": lambda: FromLabels(MetricTracker(), buffer_size=12, random_state=5),
    "drift-knn": lambda: DriftKNN(window=10, random_state=5),
}
# Other forms of metrics and combiners: what they hold is tested, no file is kept.
VARIANTS = {
    "comid-logdet": lambda: COMID(regularizer="logdet"),
    "comid-spectral": lambda: COMID(divergence="von_neumann", loss="logistic", schedule="invsqrt"),
    "comid-frame": lambda: COMID(n_components=1),
    "comid-cone": lambda: COMID(regularizer="l1", psd="exact"),
    "comid-entries": lambda: COMID(regularizer="l1", psd="on_read", step="explicit"),
    "comid-diagonal": lambda: COMID(regularizer="l1", psd="diagonal", init="identity"),
    "sadl-nuclear": lambda: SADL(regularizer="nuclear"),
    "sadl-published": lambda: SADL.as_published(eta0=0.5, random_state=3),
    "sadl-ader": lambda: SADL(combiner="ader", divergence="frobenius", output="best"),
    "tracker-wide": lambda: MetricTracker(),
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


@cache
def _dumped(name):
    make = (LEARNERS | VARIANTS)[name]
    return dump(make().fit(*stream(name)[0]))


def written(name):
    """A state of today's format, to be changed."""
    return from_bytes(_dumped(name), name)


def write(version):
    """Each learner's state, and what it goes on to learn."""
    for name, make in LEARNERS.items():
        first, second = stream(name)
        folder = GOLDEN / version / name
        learner = make().fit(*first)
        learner.save(folder)
        (folder / "lock").unlink()
        expected = json.dumps(outcome(learner, second), indent=1)
        (folder.parent / f"{name}.json").write_text(expected + "\n")


def write_tracking(version):
    """A state of ``metrack track``, of 300 pairs of ids."""
    folder = TRACKING / version
    folder.mkdir(parents=True)
    rng = np.random.RandomState(0)
    points = rng.standard_normal((12, 2)).round(3)
    rows = rng.randint(12, size=(300, 2))
    alike = np.abs(points[rows[:, 0], 0] - points[rows[:, 1], 0]) < 0.7
    items = [f"p{i},{width},{height}" for i, (width, height) in enumerate(points)]
    (folder / "items.csv").write_text("\n".join(["id,width,height", *items]) + "\n")
    pairs = [f"p{a},p{b},{1 if y else -1}" for (a, b), y in zip(rows, alike, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["a,b,y", *pairs]) + "\n")
    given = {"items": read_items(folder / "items.csv"), "saves": SavePolicy(10**9, 10**9)}
    source = str(folder.relative_to(Path.cwd()) / "pairs.csv")
    track(Run(source, folder / "tracked", MetricTracker(), **given))
    (folder / "tracked" / "lock").unlink()


if __name__ == "__main__":
    for folder in (GOLDEN, TRACKING):
        shutil.rmtree(folder / sys.argv[1], ignore_errors=True)
    write(sys.argv[1])
    write_tracking(sys.argv[1])
