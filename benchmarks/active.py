"""Judgements that suggested pairs save, and what points without judgements are worth.

Digits and banking (64 directions), natural shares of alike pairs, two questions in turn, 1,500
answers each. Printed for each way of asking: the AUC after so many answers, and how many answers it
takes to the AUC that random pairs reach after 1,500. Then the AUC after 100 and 5,000 random pairs
with and without `observe_points`, and the time of `suggest_pairs` on 100,000 points.

    python benchmarks/active.py [--seeds 12] [--jobs 1] [--out docs/figures/active.json]
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
from family_streams import banking_path
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from metrack import MetricTracker, implied_pairs

ANSWERS, BATCH, EVERY = 1_500, 10, 50
SHOWN = (100, 250, 500, 750, 1_500)
IMPLIED, WEIGHT = 192, 0.05  # pairs that follow, learned with each answer, and what each counts
N_TEST = 2_000  # alike pairs, and as many that are not


def load(name):
    """Points, and two questions about them: name and classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, {"digit": y, "parity": y % 2}
    with np.load(banking_path(), allow_pickle=False) as data:
        X = PCA(64, svd_solver="covariance_eigh").fit_transform(data["X"].astype(float))
        return X, {"intent": data["intent"], "group": data["group"]}


def random_pairs(n_points, n, rng):
    first, second = rng.integers(n_points, size=n), rng.integers(n_points - 1, size=n)
    return np.stack([first, second + (second >= first)], axis=1)


def judge(labels, rows):
    return np.where(labels[rows[:, 0]] == labels[rows[:, 1]], 1, -1)


def held_out(labels, rng):
    """As many alike pairs as others, and their labels."""
    rows = random_pairs(len(labels), 400_000, rng)
    y = judge(labels, rows)
    chosen = np.concatenate([np.flatnonzero(y == side)[:N_TEST] for side in (1, -1)])
    return rows[chosen], y[chosen]


class Asker:
    """A way of asking; keeps what was judged."""

    def __init__(self, X, rng):
        self.X, self.rng, self.tracker = X, rng, MetricTracker(preprocessor=X)
        self.new_question()

    def new_question(self):
        self.rows, self.y = np.empty((0, 2), int), np.empty(0)

    def seed(self):
        return int(self.rng.integers(2**31))

    def ask(self):
        return random_pairs(len(self.X), BATCH, self.rng)

    def learn(self, rows, y):
        self.rows, self.y = np.concatenate([self.rows, rows]), np.concatenate([self.y, y])
        self.tracker.observe(rows, y)


class Nearest(Asker):
    """The pairs nearest to the threshold, of 64 random ones for each."""

    def ask(self):
        rows = random_pairs(len(self.X), 64 * BATCH, self.rng)
        if not hasattr(self.tracker, "engine_"):
            return rows[:BATCH]
        far = np.abs(self.tracker.pair_distance(rows) ** 2 - self.tracker.mu_)
        return rows[np.argsort(far)[:BATCH]]


class Suggested(Asker):
    """`suggest_pairs`."""

    def ask(self):
        return self.tracker.suggest_pairs(self.X, BATCH, self.seed())


class Transitive(Asker):
    """`suggest_pairs` with what was judged, and `implied_pairs`."""

    def ask(self):
        judged = (self.rows, self.y) if len(self.y) else None
        return self.tracker.suggest_pairs(self.X, BATCH, self.seed(), judged=judged)

    def learn(self, rows, y):
        super().learn(rows, y)
        rows, y = implied_pairs(self.rows, self.y, IMPLIED * BATCH, self.seed())
        if len(y):
            self.tracker.observe(rows, y, sample_weight=np.full(len(y), WEIGHT))


class AsThePageSays(Transitive):
    """That, and `observe_points` before the first question."""

    def __init__(self, X, rng):
        super().__init__(X, rng)
        self.tracker.observe_points(np.arange(len(X)))


ASKERS = {
    "random": Asker,
    "nearest to the threshold": Nearest,
    "suggested": Suggested,
    "suggested, with judged": Transitive,
    "and with points": AsThePageSays,
}


def curves(kind, X, questions, seed):
    """AUC every 50 answers, question by question."""
    asker, found = kind(X, np.random.default_rng(seed)), {}
    for name, labels in questions.items():
        rows, y = held_out(labels, np.random.default_rng([seed, len(found)]))
        asker.new_question()
        found[name] = []
        for done in range(BATCH, ANSWERS + 1, BATCH):
            asked = asker.ask()
            asker.learn(asked, judge(labels, asked))
            if done % EVERY == 0:
                found[name].append(roc_auc_score(y, asker.tracker.pair_score(rows)))
    return found


def line(way, curve, goal, every, shown):
    """AUC after some numbers of answers, and how many it takes to the goal."""
    there = np.flatnonzero(curve >= goal)
    needed = f"{every * (there[0] + 1):,}" if there.size else f"> {every * len(curve):,}"
    scores = "  ".join(f"{curve[n // every - 1]:.3f}" for n in shown)
    return f"  {way:26s}{scores}   {needed}"


def compare(name, seeds, jobs):
    X, questions = load(name)
    found = {
        way: Parallel(jobs)(delayed(curves)(kind, X, questions, seed) for seed in range(seeds))
        for way, kind in ASKERS.items()
    }
    means = {
        question: {
            way: np.mean([each[question] for each in all_], axis=0) for way, all_ in found.items()
        }
        for question in questions
    }
    for question, by_way in means.items():
        goal = by_way["random"][-1]
        print(f"\n{name}, {question}: AUC after {SHOWN} answers; answers to {goal:.3f}")
        for way, curve in by_way.items():
            print(line(way, curve, goal, EVERY, SHOWN), flush=True)
    return {q: {w: c.round(5).tolist() for w, c in by_way.items()} for q, by_way in means.items()}


def points(name, seeds):
    """What `observe_points` is worth, with random pairs."""
    X, questions = load(name)
    question, labels = next(iter(questions.items()))
    scores = {True: [], False: []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows, y = held_out(labels, np.random.default_rng([seed, 0]))
        pairs = random_pairs(len(X), 5_000, rng)
        for with_points, found in scores.items():
            tracker = MetricTracker(preprocessor=X)
            if with_points:
                tracker.observe_points(X)
            tracker.partial_fit(pairs[:100], judge(labels, pairs[:100]))
            early = roc_auc_score(y, tracker.pair_score(rows))
            tracker.partial_fit(pairs[100:], judge(labels, pairs[100:]))
            found.append([early, roc_auc_score(y, tracker.pair_score(rows))])
    without, with_ = (np.mean(scores[each], axis=0) for each in (False, True))
    print(
        f"\n{name}, {question}: observe_points: AUC after 100 pairs {without[0]:.4f} -> "
        f"{with_[0]:.4f}, after 5,000 {without[1]:.4f} -> {with_[1]:.4f}"
    )


def speed():
    X = np.random.default_rng(0).normal(size=(100_000, 64))
    tracker = MetricTracker().fit(X[:2000].reshape(-1, 2, 64), np.tile([1, -1], 500))
    suggest = partial(tracker.suggest_pairs, X, 20, random_state=0)
    first, seconds = suggest(), []
    for _ in range(5):
        start = time.perf_counter()
        again = suggest()
        seconds.append(time.perf_counter() - start)
    same = np.array_equal(first, again)
    print(f"\n20 of 100,000 points x 64: {np.median(seconds):.2f} s; the same for a seed: {same}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    speed()
    found = {}
    for name in ("digits", "banking"):
        points(name, asked.seeds)
        found[name] = compare(name, asked.seeds, asked.jobs)
    if asked.out is not None:
        asked.out.write_text(json.dumps({"every": EVERY, "curves": found}) + "\n")


if __name__ == "__main__":
    main()
