"""Records that people judged, few of them alike: MetricTracker beside what one would take instead.

    make bench-linkage                  everything; some ten minutes; docs/figures/linkage.json
    python benchmarks/linkage.py --without-torch     with the figures of Adam that are kept there

Two sets of pairs of records (see benchmarks/linkage_streams.py), five orders of each, one pass. On
the test pairs, after 250, 500, 1,000, 2,000 and all pairs: average precision (AP) and area under
the ROC curve (AUC) of distances; F1 of ``predict`` with ``threshold="f1"``, beside that of the best
threshold for these very test pairs; expected calibration error of ``predict_proba`` in ten equal
bins.

What is chosen in hindsight, each time for the largest mean AP on the test pairs: the rate of
OnlineITML, that of Adam (benchmarks/torch_linkage.py), and the strength of the penalty of logistic
regression on the squared differences. Grids grow as long as the best is at an end.

Time is the processor's, one thread, learning alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import linkage_streams as streams
from benchmarks.measures import along, average_precision, best_f1, calibration_error, f1
from metrack import KernelTracker, MetricTracker, OnlineITML

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "figures" / "linkage.json"
TORCH = ROOT / ".venv-torch" / "bin" / "python"

EVERY = 250  # pairs, in the streams that change
RATES = tuple(0.02 * 2.0**i for i in range(6))
PENALTIES = (0.0001, 0.001, 0.01, 0.1, 1.0)

TRACKER_NAME, KERNEL_NAME, PLAIN = "`MetricTracker()`", "`KernelTracker()`", "plain distance"
LOGISTIC, ITML_NAME = "logistic regression on (x - z)^2", "`OnlineITML`"
TRACKERS = {TRACKER_NAME: MetricTracker, KERNEL_NAME: KernelTracker}


def adam_name(passes):
    return f"Adam, {passes} pass{'es' if int(passes) > 1 else ''}"


def as_pairs(differences):
    return np.stack([differences, np.zeros_like(differences)], axis=1)


def quality(distances, alike):
    return {
        "ap": average_precision(distances, alike),
        "auc": float(roc_auc_score(alike, -distances)),
    }


def follow(learner, judged, seed, sizes, answers=False):
    """A line for each number of pairs. ``answers``: of what is called alike, and how likely too."""
    rows, y = judged.order(seed)
    test, alike, found, spent = judged.X[judged.test], judged.test_alike, [], 0.0
    for start, size in pairwise([0, *sizes]):
        pairs = judged.X[rows[start:size]]
        before = time.process_time()
        learner.partial_fit(pairs, y[start:size])
        spent += time.process_time() - before
        distances = learner.pair_distance(test)
        line = {**quality(distances, alike), "seconds": spent}
        if answers:
            probabilities = learner.predict_proba(test)[:, list(learner.classes_).index(1)]
            line |= {
                "f1": f1(learner.predict(test) > 0, alike),
                "best_f1": best_f1(distances, alike),
                "calibration": calibration_error(probabilities, alike),
            }
        found.append(line)
    return found


def logistic(judged, seed, sizes, penalty):
    """The same of a batch method, fitted anew to each number of pairs."""
    rows, y = judged.order(seed)
    squares, test = ((judged.X[r[:, 0]] - judged.X[r[:, 1]]) ** 2 for r in (rows, judged.test))
    unit, found = squares.mean(), []
    for size in sizes:
        before = time.process_time()
        model = LogisticRegression(C=penalty, max_iter=1_000).fit(squares[:size] / unit, y[:size])
        spent = time.process_time() - before
        distances = -model.decision_function(test / unit)
        found.append({**quality(distances, judged.test_alike), "seconds": spent})
    return found


def columns(runs):
    """Of lines by order and number of pairs: by number of pairs, each measure a list of orders."""
    return [
        {name: [each[name] for each in line] for name in line[0]}
        for line in zip(*runs, strict=True)
    ]


def mean_ap(lines):
    """By number of pairs."""
    return np.array([np.mean(line["ap"]) for line in lines])


def best_of(runs):
    """Each number of pairs at its own best rate."""
    rates = sorted(runs)
    best = np.argmax([mean_ap(runs[rate]) for rate in rates], axis=0)
    return [{"rate": rates[i], **runs[rates[i]][at]} for at, i in enumerate(best)]


def curves(judged, orders, sizes, rates=RATES, penalties=PENALTIES):
    """Lines of each method by number of pairs."""
    found = {}
    for name, make in TRACKERS.items():
        found[name] = columns([follow(make(), judged, seed, sizes) for seed in orders])
    found[ITML_NAME] = best_of(
        along(
            lambda rate: columns(
                [follow(OnlineITML(learning_rate=rate), judged, seed, sizes) for seed in orders]
            ),
            mean_ap,
            rates,
            factor=2.0,
        )
    )
    found[LOGISTIC] = best_of(
        along(
            lambda c: columns([logistic(judged, seed, sizes, c) for seed in orders]),
            mean_ap,
            penalties,
            factor=10.0,
        )
    )
    test = judged.X[judged.test]
    plain = quality(np.linalg.norm(test[:, 0] - test[:, 1], axis=1), judged.test_alike)
    found[PLAIN] = [
        {**{name: [value] * len(orders) for name, value in plain.items()}, "seconds": [0.0]}
        for _ in sizes
    ]
    return {
        name: [{"pairs": size, **line} for size, line in zip(sizes, lines, strict=True)]
        for name, lines in found.items()
    }


def along_stream(learner, stream):
    """AP every so many pairs."""
    found = []
    for start in range(0, len(stream.y), EVERY):
        learner.partial_fit(stream.pairs[start : start + EVERY], stream.y[start : start + EVERY])
        differences, alike = stream.test(start + EVERY)
        found.append(average_precision(learner.pair_distance(as_pairs(differences)), alike))
    return found


def changes(several, rates=RATES):
    """AP along streams that change, a list for each order."""
    found = {}
    for title in several[0]:
        own = [each[title] for each in several]
        runs = along(
            lambda rate, own=own: {
                "ap": [along_stream(OnlineITML(learning_rate=rate), stream) for stream in own]
            },
            lambda run: np.mean(run["ap"]),
            rates,
            factor=2.0,
        )
        best = max(runs, key=lambda rate: np.mean(runs[rate]["ap"]))
        plain = {}
        for differences, alike in own[0].tests:
            plain[id(alike)] = average_precision((differences**2).sum(axis=1), alike)
        found[title] = {
            "marks": list(own[0].marks),
            "every": EVERY,
            "shares": [float(np.mean(alike)) for _, alike in own[0].tests],
            "plain": [plain[id(alike)] for _, alike in own[0].tests],
            "methods": {
                name: {"ap": [along_stream(make(), stream) for stream in own]}
                for name, make in TRACKERS.items()
            }
            | {ITML_NAME: {"rate": best, **runs[best]}},
        }
    return found


def warm(n_features):
    """Compile what is timed."""
    pairs = np.random.default_rng(0).normal(size=(600, 2, n_features))
    for learner in (MetricTracker(), KernelTracker(), MetricTracker(threshold="f1"), OnlineITML()):
        learner.partial_fit(pairs, np.tile([1, -1], 300)).pair_distance(pairs[:2])


def adam(python, path, orders):
    """Measured by a Python that has torch."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "adam.json"
        script = Path(__file__).parent / "torch_linkage.py"
        seeds = [str(seed) for seed in orders]
        subprocess.run(
            [python, script, "--data", path, "--out", out, "--orders", *seeds], check=True
        )
        return json.loads(out.read_text(encoding="utf-8")) | {"same_run": True}


def measure(path, orders, sizes=streams.SIZES, question=streams.QUESTION, **grids):
    """Everything but Adam."""
    found = {"orders": list(orders), "sets": {}, "changes": {}}
    for name, judged in streams.load(path).items():
        own = judged.sizes(sizes)
        warm(judged.X.shape[1])
        answering = [
            follow(MetricTracker(threshold="f1"), judged, seed, own, True) for seed in orders
        ]
        lines = columns(answering)
        found["sets"][name] = {
            "n_pairs": len(judged.train),
            "n_features": judged.X.shape[1],
            "alike": float(judged.alike.mean()),
            "n_test": len(judged.test),
            "test_alike": float(judged.test_alike.mean()),
            "curves": curves(judged, orders, own, **grids),
            "answers": [
                {"pairs": size, **{k: line[k] for k in ("f1", "best_f1", "calibration")}}
                for size, line in zip(own, lines, strict=True)
            ],
        }
        print(f"{name}: learned")
    rates = grids.get("rates", RATES)
    several = [streams.changing(path, seed, question) for seed in orders]
    found["changes"] = changes(several, rates)
    return found


def rounded(value):
    """With six digits, so that what is kept stays small."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def kept(path):
    """Adam's figures as they were measured before."""
    if not path.exists():
        sys.exit(f"--without-torch: there is no {path} yet; run without it first")
    return json.loads(path.read_text(encoding="utf-8"))["adam"] | {"same_run": False}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="path of linkage.npz; or set METRACK_LINKAGE")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--torch", type=Path, default=TORCH, help="a Python that has torch")
    parser.add_argument("--without-torch", action="store_true", help="Adam's figures as kept")
    asked = parser.parse_args()
    path = asked.data or streams.default_path()
    if not path.exists():
        sys.exit(f"there is no {path}; see --data")
    if not asked.without_torch and not asked.torch.exists():
        sys.exit(f"there is no {asked.torch}; run make bench-linkage, or with --without-torch")
    found = measure(path, streams.ORDERS)
    found["adam"] = (
        kept(asked.out) if asked.without_torch else adam(asked.torch, path, streams.ORDERS)
    )
    asked.out.write_text(json.dumps(rounded(found), indent=1) + "\n", encoding="utf-8")
    print(f"written to {asked.out}")


if __name__ == "__main__":
    main()
