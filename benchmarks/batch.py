"""The batch methods against metric-learn 0.7, which runs in an interpreter of its own.

    METRIC_LEARN_PYTHON=/path/to/python make bench          with the other rows
    METRIC_LEARN_PYTHON=/path/to/python python benchmarks/batch.py

The interpreter needs metric-learn 0.7.0 and a scikit-learn below 1.6, the last that it works with:

    python3 -m venv peer && peer/bin/pip install metric-learn==0.7.0 'scikit-learn<1.6'

2,000 points of 25 features, in three clusters that differ in three of them; 1,000 pairs, half of
them similar. Both sides solve the same problem, and what they reach is compared as well as the time
it takes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

N_POINTS, N_FEATURES, N_PAIRS = 2_000, 25, 1_000
REPEAT = {"LMNN": 3, "ITML": 3, "MMC": 20}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def seconds(work, repeat):
    """The shortest of a few runs: the rest is other people's noise."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def problem():
    """Points, classes, pairs and judgements."""
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=N_POINTS)
    X = rng.normal(size=(N_POINTS, N_FEATURES))
    X[np.arange(N_POINTS), classes] += 3.0
    rows = rng.integers(N_POINTS, size=(20 * N_PAIRS, 2))
    alike = classes[rows[:, 0]] == classes[rows[:, 1]]
    rows = np.concatenate([rows[alike][: N_PAIRS // 2], rows[~alike][: N_PAIRS // 2]])
    return X, classes, rows, np.repeat([1, -1], N_PAIRS // 2)


def peer(folder):
    """What metric-learn does; run by its own interpreter."""
    import metric_learn

    warnings.simplefilter("ignore")
    given = np.load(Path(folder) / "problem.npz")
    X, classes, pairs, y = (given[name] for name in ("X", "classes", "pairs", "y"))
    times, found = {}, {}
    for name, learner, data in (
        ("LMNN", metric_learn.LMNN(n_neighbors=3), (X, classes)),
        # It holds the bounds, which are distances, against squared distances: so they are squared.
        ("ITML", metric_learn.ITML(), (pairs, y, given["bounds"] ** 2)),
        ("MMC", metric_learn.MMC(), (pairs, y)),
    ):
        times[name] = seconds(partial(learner.fit, *data), REPEAT[name])
        found[name] = learner.get_mahalanobis_matrix()
    np.savez(Path(folder) / "found.npz", **found)
    (Path(folder) / "times.json").write_text(json.dumps(times))


def lmnn_objective(M, X, classes):
    """With all triplets, class by class."""
    from sklearn.neighbors import NearestNeighbors

    values, vectors = np.linalg.eigh(M)
    Z = X @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    total = 0.0
    for label in np.unique(classes):
        mine, others = classes == label, Z[classes != label]
        nearest = NearestNeighbors(n_neighbors=3).fit(X[mine]).kneighbors(return_distance=False)
        of_class = Z[mine]
        near = ((of_class[:, None] - of_class[nearest]) ** 2).sum(axis=2)
        far = ((of_class[:, None] - others[None]) ** 2).sum(axis=2)
        hinge = np.maximum(1.0 + near[:, :, None] - far[:, None], 0.0).sum()
        total += 0.5 * near.sum() + 0.5 * hinge
    return total


def itml_error(M, best):
    """Largest entry by which a matrix differs from the converged one, relative."""
    return np.abs(M - best).max() / np.abs(best).max()


def mmc_objective(M, pairs, y):
    """Mean square of similar distances where the mean of dissimilar ones is 1."""
    u = pairs[:, 0] - pairs[:, 1]
    squares = np.einsum("ni,ij,nj->n", u, M, u)
    return squares[y > 0].mean() / np.sqrt(squares[y < 0]).mean() ** 2


def measure(console):
    """Rows of what both took and reached, printed as a table; none without the interpreter."""
    from rich.table import Table

    from metrack import ITML, LMNN, MMC

    python = os.environ.get("METRIC_LEARN_PYTHON")
    if not python:
        console.print(
            "LMNN, ITML and MMC are not measured: METRIC_LEARN_PYTHON is not set. Give it the path "
            "of a Python that has metric-learn 0.7.0 and scikit-learn below 1.6; "
            "benchmarks/batch.py says how to make one."
        )
        return []
    X, classes, rows, y = problem()
    pairs = X[rows]
    learners = {
        "LMNN": (LMNN(), (X, classes)),
        "ITML": (ITML(), (pairs, y)),
        "MMC": (MMC(), (pairs, y)),
    }
    ours = {}
    for name, (learner, data) in learners.items():
        learner.fit(*data)  # compiled before the clock starts
        ours[name] = seconds(lambda learner=learner, data=data: learner.fit(*data), 5)
    with tempfile.TemporaryDirectory() as folder:
        bounds = learners["ITML"][0].bounds_
        np.savez(
            Path(folder) / "problem.npz", X=X, classes=classes, pairs=pairs, y=y, bounds=bounds
        )
        command = [python, __file__, "--peer", folder]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True)
        if done.returncode:
            console.print(f"LMNN, ITML and MMC are not measured: {python} failed.\n{done.stderr}")
            return []
        theirs = json.loads((Path(folder) / "times.json").read_text())
        found = dict(np.load(Path(folder) / "found.npz"))
    best = ITML(tol=1e-8, max_iter=1_000_000).fit(pairs, y).get_mahalanobis_matrix()
    judge = {
        "LMNN": lambda M: lmnn_objective(M, X, classes),
        "ITML": lambda M: itml_error(M, best),
        "MMC": lambda M: mmc_objective(M, pairs, y),
    }
    reached = {"LMNN": "objective", "ITML": "error of M", "MMC": "objective"}
    bars = {"LMNN": (5, 20), "ITML": (10, 10), "MMC": (10, 10)}
    lines = [
        {
            "what": f"{name}, against metric-learn 0.7",
            "ours_s": ours[name],
            "reference_s": theirs[name],
            "ratio": theirs[name] / ours[name],
            "bar": bars[name][0],
            "goal": bars[name][1],
            "reached": reached[name],
            "ours": float(judge[name](learners[name][0].get_mahalanobis_matrix())),
            "reference": float(judge[name](found[name])),
        }
        for name in learners
    ]
    table = Table(
        title=f"Batch methods, {N_POINTS:,} x {N_FEATURES}, {N_PAIRS:,} pairs, one thread"
    )
    for title in (
        "what",
        "s",
        "reference s",
        "ratio",
        "bar (goal)",
        "reached",
        "ours",
        "reference",
    ):
        table.add_column(title, justify="left" if title in ("what", "reached") else "right")
    for line in lines:
        table.add_row(
            line["what"],
            f"{line['ours_s']:.3g}",
            f"{line['reference_s']:.3g}",
            f"{line['ratio']:.3g}",
            f">= {line['bar']} ({line['goal']})",
            line["reached"],
            f"{line['ours']:.6g}",
            f"{line['reference']:.6g}",
        )
    console.print(table)
    return lines


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2])
    else:
        from rich.console import Console

        measure(Console(width=150))
