"""Adam on the streams of benchmarks/linkage.py: what twenty lines of PyTorch reach.

M = L'L from L = I, a learned scale and threshold, logistic loss, minibatches of 64 in the order of
the stream; one thread. benchmarks/linkage.py runs this by a Python that has torch:

    python benchmarks/torch_linkage.py --data FILE --out FILE
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks import linkage_streams as streams
from benchmarks.measures import along, average_precision

RATES, PASSES, BATCH = (0.0003, 0.001, 0.003, 0.01, 0.03), (1, 5, 20), 64
EVERY = 250  # pairs, in the streams that change


class Adam:
    """A linear embedding; ``learn`` goes over some pairs ``passes`` times."""

    def __init__(self, n_features, rate, unit):
        self.unit = unit
        self.L = torch.eye(n_features, requires_grad=True)
        self.scale = torch.ones((), requires_grad=True)
        self.threshold = torch.ones((), requires_grad=True)
        self.optimiser = torch.optim.Adam([self.L, self.scale, self.threshold], lr=rate)

    def learn(self, differences, y, passes):
        u = torch.tensor(differences / self.unit, dtype=torch.float32)
        y = torch.tensor(y, dtype=torch.float32)
        for _ in range(passes):
            for i in range(0, len(u), BATCH):
                q = ((u[i : i + BATCH] @ self.L.T) ** 2).sum(1)
                margins = y[i : i + BATCH] * (self.threshold - self.scale * q)
                loss = torch.nn.functional.softplus(-margins).mean()
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()

    def distances(self, differences):
        with torch.no_grad():
            u = torch.tensor(differences / self.unit, dtype=torch.float32)
            return ((u @ self.L.T) ** 2).sum(1).numpy()


def unit(differences):
    """Root mean square length."""
    return float(np.sqrt(np.mean(np.sum(differences**2, axis=1))))


def curve(judged, size, passes, rate, orders):
    """AP, AUC and seconds, an order each."""
    test = judged.X[judged.test[:, 0]] - judged.X[judged.test[:, 1]]
    found = []
    for seed in orders:
        rows, y = judged.order(seed)
        u = judged.X[rows[:size, 0]] - judged.X[rows[:size, 1]]
        start = time.process_time()
        learner = Adam(u.shape[1], rate, unit(u))
        learner.learn(u, y[:size], passes)
        spent = time.process_time() - start
        distances = learner.distances(test)
        found.append(
            {
                "ap": average_precision(distances, judged.test_alike),
                "auc": float(roc_auc_score(judged.test_alike, -distances)),
                "seconds": spent,
            }
        )
    return {name: [each[name] for each in found] for name in found[0]}


def follow(stream, passes, rate):
    """AP every so many pairs, each block of which is gone over ``passes`` times."""
    u = stream.pairs[:, 0] - stream.pairs[:, 1]
    learner, found = Adam(u.shape[1], rate, unit(u[:EVERY])), []
    for start in range(0, len(u), EVERY):
        learner.learn(u[start : start + EVERY], stream.y[start : start + EVERY], passes)
        differences, alike = stream.test(start + EVERY)
        found.append(average_precision(learner.distances(differences), alike))
    return found


def mean_ap(run):
    return np.mean(run["ap"])


def measure(path, orders, sizes=streams.SIZES, passes=PASSES, rates=RATES, question=None):
    """Everything, at the rate of largest mean AP, each number of pairs and passes for itself."""
    found = {"torch": torch.__version__.partition("+")[0], "curves": {}, "changes": {}}
    for name, judged in streams.load(path).items():
        for each in passes:
            lines = []
            for size in judged.sizes(sizes):

                def run(rate, judged=judged, size=size, each=each):
                    return curve(judged, size, each, rate, orders)

                runs = along(run, mean_ap, rates)
                best = max(runs, key=lambda rate: mean_ap(runs[rate]))
                lines.append({"pairs": size, "rate": best, **runs[best]})
                print(f"{name}, {each} passes, {size}: {best:g} {mean_ap(runs[best]):.4f}")
            found["curves"].setdefault(name, {})[str(each)] = lines
    several = [streams.changing(path, seed, question or streams.QUESTION) for seed in orders]
    for title in several[0]:
        for each in passes[:2]:

            def run(rate, title=title, each=each):
                return {"ap": [follow(streams[title], each, rate) for streams in several]}

            runs = along(run, mean_ap, rates)
            best = max(runs, key=lambda rate: mean_ap(runs[rate]))
            found["changes"].setdefault(title, {})[str(each)] = {"rate": best, **runs[best]}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--orders", type=int, nargs="+", default=streams.ORDERS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.out.write_text(json.dumps(measure(asked.data, asked.orders)), encoding="utf-8")


if __name__ == "__main__":
    main()
