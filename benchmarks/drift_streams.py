"""Labelled streams that drift, for benchmarks/drift.py: real ones, River's, and our own."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from river import datasets

from metrack.streams import DriftingClusters

LONGEST = 8_000  # points of a stream
DATA = Path(__file__).parents[2] / "shared" / "data"
REAL = ("gas", "weather")
OF_RIVER = ("Phishing", "ImageSegments", "Bananas")
CLUSTERS = "drifting clusters"


class Points(NamedTuple):
    """Points and their classes, in order of time."""

    X: np.ndarray
    y: np.ndarray  # numbers from 0


def folder():
    """Where gas.npz and weather.npz are."""
    return Path(os.environ.get("METRACK_DRIFT") or DATA)


def from_file(path):
    """An npz with X and y, or a CSV file with a head line whose last column is the class."""
    if path.suffix == ".npz":
        with np.load(path) as found:
            return _points(found["X"], found["y"])
    table = np.genfromtxt(path, delimiter=",", dtype=str, skip_header=1)
    return _points(table[:, :-1].astype(float), table[:, -1])


def of_river(name):
    rows = list(getattr(datasets, name)())
    names = list(rows[0][0])
    return _points([[float(x[each]) for each in names] for x, _ in rows], [y for _, y in rows])


def drifting_clusters(seed=1):
    """A point a step: the clusters turn, and what the class is changes."""
    stream, rng = DriftingClusters(random_state=seed), np.random.default_rng(seed)
    steps = range(len(stream))
    rows = rng.integers(2_000, size=len(stream))
    X = [stream.points(t)[row] for t, row in zip(steps, rows, strict=True)]
    return _points(X, [stream.labels(t)[row] for t, row in zip(steps, rows, strict=True)])


def _points(X, y):
    X, y = np.asarray(X, dtype=float)[:LONGEST], np.asarray(y)[:LONGEST]
    return Points(X, np.unique(y, return_inverse=True)[1])


def streams(more=()):
    """Points by name; real ones where their files are, and those of other files."""
    found = {name: from_file(path) for name in REAL if (path := folder() / f"{name}.npz").exists()}
    found |= {name: of_river(name) for name in OF_RIVER}
    found[CLUSTERS] = drifting_clusters()
    return found | {Path(each).stem: from_file(Path(each)) for each in more}
