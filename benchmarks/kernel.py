"""KernelTracker beside MetricTracker: non-linear questions, drifting points, speed.

    make bench-kernel            the tables of docs/kernel.md; a quarter of an hour

Mean AUC: every 250 pairs, on 2,000 fresh pairs of the question of the moment, half of them alike.
Time: the processor's, after the first 1,000 pairs, one thread. The default was chosen on the same
digits and sentences and the same kinds of made-up points, with other pairs.
"""

import argparse
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn.datasets import load_digits, make_circles, make_moons

from benchmarks import family_streams
from benchmarks.families import auc
from benchmarks.tracking_tables import markdown_table
from metrack import KernelTracker, MetricTracker
from metrack.estimators.states.persistence import pack
from metrack.streams import LabelledStream, abrupt

SEED, QUESTION, EVERY, N_FRESH, WARM = 5002, 2_000, 250, 2_000, 1_000
N_POINTS = 1_500
N_MOVING, BANDWIDTHS = 20_000, 10.0  # pairs, and how far points move in that time


def labelled(X, labels, question, seed):
    schedule = abrupt(*labels, length=question)
    return LabelledStream(X, labels, schedule=schedule, similar=0.5, random_state=seed)


def moons(seed, question):
    X, y = make_moons(N_POINTS, noise=0.1, random_state=seed)
    return labelled(X, {"moon": y}, question, seed)


def rings(seed, question):
    X, y = make_circles(N_POINTS, noise=0.05, factor=0.5, random_state=seed)
    return labelled(X, {"ring": y}, question, seed)


def signs(seed, question):
    """The sign of a product; then which of four quadrants, in two others of ten features."""
    X = np.random.default_rng(seed).normal(size=(N_POINTS, 10))
    labels = {"product": X[:, 0] * X[:, 1] > 0, "quadrant": 2 * (X[:, 2] > 0) + (X[:, 3] > 0)}
    return labelled(X, labels, question, seed)


def cluster_unions(seed, question, n=20, n_clusters=24):
    """Classes are unions of clusters, as the digits below 5 are."""
    rng = np.random.default_rng(seed)
    which = rng.integers(n_clusters, size=N_POINTS)
    X = 1.2 * rng.normal(size=(n_clusters, n))[which] + rng.normal(size=(N_POINTS, n))
    labels = {"half": which % 2, "third": which % 3, "other half": which // (n_clusters // 2)}
    return labelled(X, labels, question, seed)


STREAMS = {
    "digits, four questions, n = 64": family_streams.digits,
    "banking, n = 512": family_streams.banking,
    "moons, n = 2": moons,
    "rings, n = 2": rings,
    "sign of a product, quadrants, n = 10": signs,
    "unions of clusters, n = 20": cluster_unions,
}


def fresh_pairs(source, t, rng):
    """Rows of the points, and which pairs are alike, by the question of a moment."""
    labels, seed = source.labels(t), int(rng.integers(2**31))
    stream = LabelledStream(
        source.points(t), labels, n_pairs=N_FRESH, similar=0.5, random_state=seed
    )
    rows, y = stream.pairs()
    return rows, y > 0


def follow(learner, source):
    """Mean AUC, and microseconds a pair."""
    rng = np.random.default_rng(0)
    rows, y = source.pairs()
    X, found, spent = source.preprocessor, [], []
    for mark in range(EVERY, len(source) + 1, EVERY):
        block = slice(mark - EVERY, mark)
        start = time.process_time()
        learner.observe(X[rows[block]], y[block])
        spent.append((time.process_time() - start) / EVERY * 1e6)
        fresh, alike = fresh_pairs(source, mark - 1, rng)
        found.append(auc(learner.pair_distance(source.points(mark - 1)[fresh]), alike))
    return float(np.mean(found)), float(np.median(spent[WARM // EVERY :] or spent))


def quality(streams, seed=SEED, question=QUESTION):
    """A line for each stream."""
    rows = []
    for name, make in streams.items():
        source = make(seed, question)
        linear, tracker = MetricTracker(), KernelTracker()
        linear_auc, linear_us = follow(linear, source)
        kernel_auc, kernel_us = follow(tracker, source)
        trust = sum(each.weight for each in tracker.experts_ if each.space == "linear")
        size = sum(array.nbytes for array in pack(tracker).arrays.values()) / 1e6
        rows.append(
            [
                name,
                f"{linear_auc:.4f}",
                f"{kernel_auc:.4f}",
                f"{trust:.0%}",
                f"{linear_us:.0f}",
                f"{kernel_us:.0f}",
                f"{size:.1f}",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    return rows


def digits_below_5():
    X, y = load_digits(return_X_y=True)
    return X, y < 5


def clusters_below():
    rng = np.random.default_rng(SEED)
    which = rng.integers(12, size=N_POINTS)
    X = 1.5 * rng.normal(size=(12, 10))[which] + rng.normal(size=(N_POINTS, 10))
    return X, which % 2


MOVING = {"unions of clusters, n = 10": clusters_below, "digits below 5": digits_below_5}


def at_the_end(X, labels, moved, n_pairs, seed=SEED):
    """AUC where points have come to, after pairs of points that ``moved``, a row for each pair."""
    source = LabelledStream(X, labels, n_pairs=n_pairs, similar=0.5, random_state=seed)
    rows, y = source.pairs()
    tracker = KernelTracker()
    for start in range(0, n_pairs, EVERY):
        block = slice(start, start + EVERY)
        tracker.observe(X[rows[block]] + moved[block][:, None], y[block])
    fresh, alike = fresh_pairs(source, n_pairs - 1, np.random.default_rng(1))
    return auc(tracker.pair_distance(X[fresh] + moved[-1]), alike)


def drifting(kinds, n_pairs=N_MOVING):
    """Points that move away from all early landmarks, beside a start where they end up."""
    rows = []
    for name, make in kinds.items():
        X, labels = make()
        rng = np.random.default_rng(SEED)
        some = rng.integers(len(X), size=(2, 2_000))
        bandwidth = np.sqrt(np.median(np.sum((X[some[0]] - X[some[1]]) ** 2, axis=1)))
        direction = rng.normal(size=X.shape[1])
        far = BANDWIDTHS * bandwidth * direction / np.linalg.norm(direction)
        way = np.linspace(0.0, 1.0, n_pairs)[:, None] * far
        moving = at_the_end(X, labels, way, n_pairs)
        there = at_the_end(X, labels, np.tile(far, (n_pairs, 1)), n_pairs)
        rows.append([name, f"{moving:.4f}", f"{there:.4f}", f"{moving - there:+.4f}"])
        print(" | ".join(rows[-1]), flush=True)
    return rows


QUALITY_TITLES = [
    "stream",
    "`MetricTracker`, AUC",
    "`KernelTracker`, AUC",
    "trust in linear experts",
]
QUALITY_TITLES += ["`MetricTracker`, us a pair", "`KernelTracker`, us a pair", "state, MB"]
DRIFT_TITLES = ["points", "after moving", "started there", "difference"]


def main():
    """Measure and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-drift", action="store_true", help="quality and speed alone")
    asked = parser.parse_args()
    streams = dict(STREAMS)
    if not family_streams.banking_path().exists():
        print(f"banking is left out: there is no {family_streams.banking_path()}")
        streams = {name: make for name, make in streams.items() if "banking" not in name}
    warm = np.random.default_rng(0).normal(size=(300, 2, 80))
    for n in (2, 80):  # compiled before anything is timed
        for learner in (MetricTracker(), KernelTracker()):
            learner.fit(warm[..., :n], np.tile([1, -1], 150)).pair_distance(warm[:2, :, :n])
    print(markdown_table(QUALITY_TITLES, quality(streams)))
    if not asked.skip_drift:
        print(markdown_table(DRIFT_TITLES, drifting(MOVING)))


if __name__ == "__main__":
    main()
