"""Classifiers on streams that drift: ours beside River's and CapyMOA's.

    make bench-drift                             all; writes docs/figures/drift.json
    make bench-drift-moa                         CapyMOA's; needs Java; docs/figures/drift-moa.json
    python benchmarks/drift.py --data mine.csv   on another stream too (npz with X and y, or CSV)
    python benchmarks/drift.py --ours            ours alone; the others' figures stay
    python benchmarks/drift.py --table           the table of the last results

Prequential: each point is predicted, then learned; errors count from point 200 on. All have their
default settings. `DriftKNN` gets the points as they are; the others, which ask for features in like
units, get them standardised by the first 200 points. "Plain windows x k" are the experts of
`DriftKNN` without the tracked metric; "the last label" predicts what came just before, which is
right as often as labels stay the same.

gas.npz and weather.npz are looked for in the folder METRACK_DRIFT. Time is that of the processor on
one thread; memory is that of the pickled model at the end.
"""

import argparse
import importlib.metadata
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from river import forest, linear_model, multiclass, neighbors, tree

from benchmarks.drift_streams import streams
from benchmarks.tracking_tables import markdown_table
from metrack import DriftKNN
from metrack.engine.ensemble.units import own_units
from metrack.engine.online.neighbour_votes import NeighbourVotes
from metrack.estimators.choosing.pairing import next_refresh

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
RESULTS, OF_MOA = FIGURES / "drift.json", FIGURES / "drift-moa.json"
FIRST = 200  # points before errors count
OURS = "`DriftKNN()`"
PLAIN = "plain windows x k"
LAST = "the last label"
SEED = 0


class LastLabel:
    """Predicts the class of the point before."""

    def __init__(self):
        self.last = -1

    def observe(self, X, y):
        predicted = np.concatenate([[self.last], y[:-1]])
        self.last = y[-1]
        return predicted


class PlainWindows:
    """The experts of `DriftKNN`, without a metric that is tracked."""

    def observe(self, X, y):
        n_features, order = X.shape[1], np.arange(y.max() + 1)
        self.votes, predicted = NeighbourVotes(n_features, DriftKNN().window), []
        while len(predicted) < len(y):
            start = len(predicted)
            stop = next_refresh(start, n_features)
            predicted.extend(self.votes.observe(X[start:stop], y[start:stop], order))
            units = own_units(self.votes.memory.points[self.votes.filled])
            self.votes.look(units, np.diag(units))
        return np.array(predicted)


class OfRiver:
    """A River classifier, point by point."""

    def __init__(self, model):
        self.model = model

    def observe(self, X, y):
        predicted = []
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            x = dict(enumerate(row))
            predicted.append(self.model.predict_one(x))
            self.model.learn_one(x, label)
        return np.array(predicted, dtype=object)


def river_logistic():
    return multiclass.OneVsRestClassifier(linear_model.LogisticRegression())


# Name: how to make it, and whether it gets points as they are.
METHODS = {
    OURS: (lambda: DriftKNN(random_state=SEED), True),
    PLAIN: (PlainWindows, True),
    LAST: (LastLabel, True),
    "River k-NN": (lambda: OfRiver(neighbors.KNNClassifier()), False),
    "River forest (ARF)": (lambda: OfRiver(forest.ARFClassifier(seed=SEED)), False),
    "River tree (HAT)": (
        lambda: OfRiver(tree.HoeffdingAdaptiveTreeClassifier(seed=SEED)),
        False,
    ),
    "River logistic regression": (lambda: OfRiver(river_logistic()), False),
}


def standardised(X):
    """By the first points."""
    mean, spread = X[:FIRST].mean(axis=0), X[:FIRST].std(axis=0)
    return (X - mean) / np.where(spread > 0.0, spread, 1.0)


def measure(make, points, as_they_are):
    """Error, microseconds a point and bytes of one classifier on one stream."""
    model, X = make(), points.X if as_they_are else standardised(points.X)
    start = time.process_time()
    wrong = model.observe(X, points.y) != points.y
    spent = time.process_time() - start
    return {
        "error": float(np.mean(wrong[FIRST:])),
        "microseconds": 1e6 * spent / len(points.y),
        "bytes": len(pickle.dumps(model)),
    }


def versions():
    packages = ("metrack", "numpy", "scikit-learn", "river")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), **found}


def benchmark(found, names, last):
    """Records of classifiers on all streams; of the others those of the last time."""
    for make, _ in list(METHODS.values())[:2]:  # compiled before anything is timed
        make().observe(np.eye(9), np.arange(9) % 2)
    records = {}
    for stream, points in found.items():
        own = records[stream] = dict.fromkeys(METHODS) | last.get(stream, {})
        for name in names:
            make, as_they_are = METHODS[name]
            record = own[name] = measure(make, points, as_they_are)
            print(f"{stream}, {name}: {record['error']:.4f}, {record['microseconds']:.0f} us")
    return records


def described(found):
    """Points, features and classes of each stream."""
    return {name: [*points.X.shape, int(points.y.max()) + 1] for name, points in found.items()}


def methods(*results):
    """All records by stream and method."""
    streams_ = results[0]["records"]
    return {
        stream: {
            name: record
            for each in results
            for name, record in each["records"].get(stream, {}).items()
        }
        for stream in streams_
    }


def table(*results):
    """Errors in per cent by method and stream, the least in bold; then time and memory."""
    records = methods(*results)
    names = list(dict.fromkeys(name for own in records.values() for name in own))
    head = ["", *records, "points a second", "memory, MB"]
    return markdown_table(head, [_line(name, records) for name in names])


def _line(name, records):
    cells = []
    for own in records.values():
        least = min(each["error"] for each in own.values())
        error = own[name]["error"] if name in own else None
        shown = "" if error is None else f"{100 * error:.2f}"
        cells.append(f"**{shown}**" if error == least else shown)
    own = [each[name] for each in records.values() if name in each]
    rates = sorted(1e6 / max(each["microseconds"], 1e-3) for each in own)
    sizes = sorted(each["bytes"] / 1e6 for each in own if each["bytes"])
    cells.append("" if name == LAST else f"{_round(rates[0])} - {_round(rates[-1])}")
    cells.append(f"{sizes[0]:.1f} - {sizes[-1]:.1f}" if sizes and name != LAST else "")
    return [name, *cells]


def _round(number):
    return f"{float(f'{number:.2g}'):,.0f}"


def export(found, to):
    """Streams as files, for who has not River here: X standardised, y."""
    for name, points in found.items():
        np.savez(Path(to) / f"{name}.npz", X=standardised(points.X), y=points.y)


def main():
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", default=[], help="another stream; repeatable")
    parser.add_argument("--table", action="store_true", help="the table of the last results")
    parser.add_argument("--ours", action="store_true", help="measure ours alone anew")
    parser.add_argument("--moa", metavar="PYTHON", help="measure CapyMOA's, in its environment")
    asked = parser.parse_args()
    if asked.table:
        files = [each for each in (RESULTS, OF_MOA) if each.exists()]
        print(table(*(json.loads(each.read_text(encoding="utf-8")) for each in files)))
        return
    found = streams(asked.data)
    if asked.moa:
        script = Path(__file__).with_name("drift_moa.py")
        with tempfile.TemporaryDirectory() as folder:
            export(found, folder)
            subprocess.run([asked.moa, script, folder, OF_MOA], check=True)
        return
    last = json.loads(RESULTS.read_text(encoding="utf-8"))["records"] if asked.ours else {}
    records = benchmark(found, (OURS, PLAIN) if asked.ours else METHODS, last)
    written = {"streams": described(found), "records": records, "versions": versions()}
    if not asked.data:
        RESULTS.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        print(f"written to {RESULTS}")
    print(table(written))


if __name__ == "__main__":
    main()
