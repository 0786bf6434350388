"""Judgements that asking saves, and what points without judgements are worth.

Digits and banking (64 directions), natural shares of alike pairs, two questions in turn, 1,500
answers each. Printed for each way of asking: the AUC after so many answers, and how many answers it
takes to the AUC that random pairs reach after 1,500. `ActiveTracker` is not told that the question
changed; when it noticed, and how far its own estimate of the AUC is off, is printed too. Then the
AUC after 300 answers on public tables, standardised: those on which 3,000 random pairs are worth
.02 AUC more than plain distance, on pairs of the other half of their rows; means of three halves.
Then the AUC after 100 and 5,000 random pairs with and without `observe_points`, and the time of
`suggest_pairs` on 100,000 points.

    python benchmarks/active.py [--seeds 12] [--jobs 1] [--tables .venv-torch/tables.npz]
                                [--out docs/figures/active.json]
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from benchmarks import tables
from benchmarks.family_streams import banking_path
from metrack import ActiveTracker, MetricTracker

ANSWERS, BATCH, EVERY = 1_500, 10, 50
SHOWN = (100, 250, 500, 750, 1_500)
ON_TABLES, AT_ONCE = 300, 25  # answers
WORTH = 0.02  # AUC by which a table can be learned
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
    """Random pairs."""

    def __init__(self, X, rng):
        self.X, self.rng, self.tracker = X, rng, MetricTracker(preprocessor=X)

    def seed(self):
        return int(self.rng.integers(2**31))

    def ask(self, n=BATCH):
        return random_pairs(len(self.X), n, self.rng)

    def learn(self, rows, y):
        self.tracker.observe(rows, y)


class Nearest(Asker):
    """The pairs nearest to the threshold, of 64 random ones for each."""

    def ask(self, n=BATCH):
        rows = random_pairs(len(self.X), 64 * n, self.rng)
        if not hasattr(self.tracker, "engine_"):
            return rows[:n]
        far = np.abs(self.tracker.pair_distance(rows) ** 2 - self.tracker.mu_)
        return rows[np.argsort(far)[:n]]


class Suggested(Asker):
    """`suggest_pairs`."""

    def ask(self, n=BATCH):
        return self.tracker.suggest_pairs(self.X, n, self.seed())


class Active(Asker):
    """`ActiveTracker`, as it comes."""

    def __init__(self, X, rng):
        super().__init__(X, rng)
        self.asker = ActiveTracker(self.tracker, X, self.seed())

    def ask(self, n=BATCH):
        return self.asker.query(n)

    def learn(self, rows, y):
        self.asker.teach(rows, y)


ASKERS = {
    "random": Asker,
    "nearest to the threshold": Nearest,
    "suggest_pairs": Suggested,
    "ActiveTracker": Active,
}


def curves(kind, X, questions, seed):
    """AUC every 50 answers, question by question, and what an `ActiveTracker` says of itself."""
    asker, found = kind(X, np.random.default_rng(seed)), {}
    for name, labels in questions.items():
        rows, y = held_out(labels, np.random.default_rng([seed, len(found)]))
        scores, told, question = [], [], []
        for done in range(BATCH, ANSWERS + 1, BATCH):
            asked = asker.ask()
            asker.learn(asked, judge(labels, asked))
            if done % EVERY == 0:
                scores.append(roc_auc_score(y, asker.tracker.pair_score(rows)))
                if kind is Active:
                    progress = asker.asker.progress()
                    told.append(np.nan if progress.auc is None else progress.auc)
                    question.append(progress.question)
        found[name] = {"auc": scores, "told": told, "question": question}
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
            way: np.mean([each[question]["auc"] for each in all_], axis=0)
            for way, all_ in found.items()
        }
        for question in questions
    }
    for question, by_way in means.items():
        goal = by_way["random"][-1]
        print(f"\n{name}, {question}: AUC after {SHOWN} answers; answers to {goal:.3f}")
        for way, curve in by_way.items():
            print(line(way, curve, goal, EVERY, SHOWN), flush=True)
    return {
        "seeds": seeds,
        "curves": {
            q: {w: c.round(5).tolist() for w, c in by_way.items()} for q, by_way in means.items()
        },
        "said": said(name, found["ActiveTracker"]),
    }


def said(name, found):
    """How far estimates of the AUC were off, and when the second question was noticed."""
    result = {}
    for number, question in enumerate(found[0]):
        runs = [each[question] for each in found]
        off = [np.abs(np.subtract(each["told"], each["auc"])) for each in runs]
        noticed = [np.argmax(np.array(each["question"]) > 1) for each in runs]
        noticed = [
            EVERY * (int(at) + 1) if max(each["question"]) > 1 else None
            for at, each in zip(noticed, runs, strict=True)
        ]
        most = [max(each["question"]) for each in runs]
        with np.errstate(invalid="ignore"):
            error = float(np.nanmean(off)) if not np.isnan(off).all() else None
        known = float(np.mean(~np.isnan(off)))
        result[question] = {"error": error, "known": known, "noticed": noticed, "questions": most}
        print(f"  {name}, {question}: AUC told off by {error}, in {known:.0%}")
        if number:
            print(f"  changes: {most}; the first was seen after {noticed}")
        else:
            print(f"  questions by then: {most}")
    return result


def on_table(X, y, seed):
    """AUC after so many answers, by ways of asking; of plain distance and many random pairs too."""
    (first, asked_y), (second, other_y) = tables.halves(X, y, seed)
    here, there = tables.standardised(first, first), tables.standardised(second, first)
    rows, alike = tables.random_pairs(other_y, 4_000, np.random.default_rng([seed, 1]))
    if len(set(alike)) < 2:
        return None

    def score(tracker):
        return roc_auc_score(alike, -tracker.pair_distance(there[rows]))

    plain = -np.linalg.norm(there[rows[:, 0]] - there[rows[:, 1]], axis=1)
    found = {"plain distance": roc_auc_score(alike, plain)}
    many = random_pairs(len(here), 3_000, np.random.default_rng([seed, 2]))
    found["3,000 random"] = score(MetricTracker().fit(here[many], judge(asked_y, many)))
    for way, kind in ASKERS.items():
        asker = kind(here, np.random.default_rng([seed, 3]))
        for _ in range(0, ON_TABLES, AT_ONCE):
            asked = asker.ask(AT_ONCE)
            asker.learn(asked, judge(asked_y, asked))
        found[way] = score(asker.tracker)
    return found


def on_tables(path, jobs):
    found = {}
    sets = tables.load(path)
    runs = Parallel(jobs)(
        delayed(on_table)(X, y, seed) for X, y in sets.values() for seed in tables.SPLITS
    )
    for i, name in enumerate(sets):
        splits = [each for each in runs[3 * i : 3 * i + 3] if each is not None]
        if splits:
            mean = {way: float(np.mean([each[way] for each in splits])) for way in splits[0]}
            if mean["3,000 random"] > mean["plain distance"] + WORTH:
                found[name] = mean
    print(f"\n{len(found)} tables: AUC after {ON_TABLES} answers, worse and better than random")
    for way in next(iter(found.values())):
        gains = np.array([each[way] - each["random"] for each in found.values()])
        mean = np.mean([each[way] for each in found.values()])
        print(f"  {way:26s}{mean:.4f}  {np.sum(gains < -0.01)}  {np.sum(gains > 0.01)}")
    return found


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
    parser.add_argument("--tables", type=Path, help="as benchmarks/pydataset_tables.py leaves them")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    speed()
    found = {}
    for name in ("digits", "banking"):
        points(name, asked.seeds)
        found[name] = compare(name, asked.seeds, asked.jobs)
    on = {} if asked.tables is None else on_tables(asked.tables, asked.jobs)
    if asked.out is not None:
        result = {"every": EVERY, "sets": found, "tables": on}
        asked.out.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
