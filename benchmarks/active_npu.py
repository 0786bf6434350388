"""Suggested pairs against NPU (Xiong et al. 2014), of active-semi-supervised-clustering.

NPU compares all points with one another for every point it asks about, so it gets 300 points, of
digits or of banking, and takes minutes; it is told the number of classes, and knows no change of
question. MetricTracker learns from what each way asks, and from what follows from the answers.
Printed: the AUC on pairs of all points after so many answers, and how many it takes to the AUC of
random pairs after 300.

    pip install active-semi-supervised-clustering
    python benchmarks/active_npu.py [--data digits] [--seeds 2]
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections import deque

import active
import numpy as np
from active_semi_clustering.active.pairwise_constraints import NPU
from active_semi_clustering.active.pairwise_constraints.example_oracle import ExampleOracle
from active_semi_clustering.semi_supervised.pairwise_constraints import PCKMeans
from sklearn.metrics import roc_auc_score

np.seterr(all="warn", under="ignore")  # the package lets any rounding to 0 raise
POOL, ANSWERS, EVERY = 300, 300, 20
SHOWN = (60, 100, 200, 300)


class Logged(ExampleOracle):
    """Answers, and keeps what was asked."""

    def __init__(self, labels):
        super().__init__(labels, ANSWERS)
        self.asked = []

    def query(self, i, j):
        alike = super().query(i, j)
        self.asked.append((i, j))
        return alike


class ByNPU(active.Active):
    """What NPU asks; it was asked beforehand, as it does not look at the metric."""

    def __init__(self, X, rng, labels):
        super().__init__(X, rng)
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002, NPU draws from this generator
        oracle = Logged(labels)
        NPU(PCKMeans(n_clusters=len(np.unique(labels)))).fit(X, oracle=oracle)
        self.asked = deque(oracle.asked)

    def ask(self, n=active.BATCH):
        return np.array([self.asked.popleft() for _ in range(min(n, len(self.asked)))])


WAYS = {
    "random": lambda X, rng, labels: active.Asker(X, rng),
    "NPU": ByNPU,
    "ActiveTracker": lambda X, rng, labels: active.Active(X, rng),
}


def curve(way, X, labels, seed):
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(X))[:POOL]
    rows, y = active.held_out(labels, np.random.default_rng([seed, 0]))
    asker, found = WAYS[way](X[pool], rng, labels[pool]), []
    for done in range(active.BATCH, ANSWERS + 1, active.BATCH):
        asked = asker.ask()
        asker.learn(asked, active.judge(labels[pool], asked))
        if done % EVERY == 0:
            found.append(roc_auc_score(y, asker.tracker.pair_score(X[rows])))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=["digits", "banking"], default="digits")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    X, questions = active.load(asked.data)
    question, labels = next(iter(questions.items()))
    print(f"{asked.data}, {question}: AUC after {SHOWN} answers")
    goal = None
    for way in WAYS:
        mean = np.mean([curve(way, X, labels, seed) for seed in range(asked.seeds)], axis=0)
        goal = mean[-1] if goal is None else goal
        print(active.line(way, mean, goal, EVERY, SHOWN), flush=True)


if __name__ == "__main__":
    main()
