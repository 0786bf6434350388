"""The tracking table: the default tracker against the best learning rate chosen in hindsight.

    make bench-tracking                           test seeds; a table, and benchmarks/tracking.json
    python benchmarks/tracking.py --quick         a smoke run
    python benchmarks/tracking.py --ablate        one setting at a time, on development seeds
    python benchmarks/tracking.py --markdown      the tables of docs/tracking.md, from the results

All methods see the same pairs. Settings are chosen on development seeds alone; the table is made
from test seeds. The comparators, both chosen after the fact:

best rate    the one of 24 COMID learners - 12 rates, with and without the regulariser, all else as
             on the dyadic cover - with the least mean prequential hinge loss on this very stream;
oracle       of these 24, the best one anew in every segment of the schedule.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import time
from itertools import pairwise
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from benchmarks.tracking_ablations import ABLATION_COLUMNS, ablate, ablation_rows
from benchmarks.tracking_rates import RATES, single_rates
from benchmarks.tracking_streams import MAIN, SWEEP, TEST_SEEDS, Case
from benchmarks.tracking_tables import directions, markdown, markdown_table, show
from metrack import SADL, MetricTracker
from metrack.evaluate import leave_one_out_error, recovery_times

RESULTS = Path(__file__).parent / "tracking.json"
ABLATIONS = Path(__file__).parent / "tracking-ablations.json"

N_PAIRS = 6_000
COMPARED = SADL()  # whose learners the single rates are

# Recovery: rounds after a switch of partition until the loss on fresh pairs, judged as of then and
# looked at every EVERY rounds, is for WINDOW looks in the mean within TOLERANCE of the level: the
# best rate's mean over the last third of that segment, on the same pairs. Where that never happens,
# the length of the segment.
EVERY = 10
WINDOW = 3
TOLERANCE = 0.1
N_FRESH = 1_000

N_SNAPSHOTS = 10  # times at which neighbours are asked for, evenly spaced
N_POINTS = 300
N_NEIGHBOURS = 5


def run(learner, pairs, y, marks):
    """Losses before learning, and the embedding for neighbours after each of the marks."""
    losses, embeddings = [], []
    for start, stop in pairwise([0, *marks]):
        losses.append(learner.observe(pairs[start:stop], y[start:stop]))
        embeddings.append(learner.neighbour_components())
    return np.concatenate(losses), embeddings


def fresh_losses(learner, case, seed, stream, pairs, y):
    """Hinge loss on fresh pairs every few rounds of each segment that starts with a switch."""
    factors = case.factors(seed)
    edges = [start for start, _ in stream.marks] + [len(stream)]
    switched = set(abrupt_switches(stream))
    curves = []
    for start, stop in pairwise(edges):
        if start not in switched:
            learner.observe(pairs[start:stop], y[start:stop])
            continue
        rows, judged = fresh_pairs(stream.labels(start), case.similar, seed + start)
        curve = []
        for here in range(start, stop, EVERY):
            there = min(here + EVERY, stop)
            learner.observe(pairs[here:there], y[here:there])
            points = stream.points(there - 1) * factors @ learner.components_.T
            q = ((points[rows[:, 0]] - points[rows[:, 1]]) ** 2).sum(axis=1)
            curve.append(np.maximum(0.0, 1.0 - judged * (learner.mu_ - q)).mean())
        curves.append(np.array(curve))
    return curves


def fresh_pairs(labels, similar, seed):
    """Row numbers of pairs and their judgements, as many similar ones as the stream has."""
    rows = np.random.default_rng(seed).integers(len(labels), size=(40 * N_FRESH, 2))
    alike = labels[rows[:, 0]] == labels[rows[:, 1]]
    n_alike = round((alike.mean() if similar is None else similar) * N_FRESH)
    rows = np.concatenate([rows[alike][:n_alike], rows[~alike][: N_FRESH - n_alike]])
    return rows, np.where(np.arange(N_FRESH) < n_alike, 1.0, -1.0)


def abrupt_switches(stream):
    """Where the partition changes from one pair to the next."""
    blended = {
        start for (start, _), s in zip(stream.marks, stream.schedule, strict=True) if s.blend
    }
    return [switch for switch in stream.switches if switch not in blended]


def recovery(curves, best_curves):
    """Rounds after each switch until the loss on fresh pairs is down to the best rate's level."""
    times = []
    for curve, best in zip(curves, best_curves, strict=True):
        level = float(best[-(len(best) // 3) :].mean())
        found = recovery_times(curve, [0], WINDOW, TOLERANCE, target=level)[0]
        times.append(float(EVERY * min(found, len(curve))))
    return times


def measure(case, seed, n_pairs=N_PAIRS, rates=RATES, tracker=None):
    """One stream: the tracker, all single rates, and what is made of them."""
    stream = case.stream(seed, n_pairs)
    n_pairs = len(stream)
    factors = case.factors(seed)
    pairs, y = stream.pairs()
    pairs *= factors
    marks = np.linspace(0, n_pairs, N_SNAPSHOTS + 1).astype(int)[1:]
    tracker = MetricTracker() if tracker is None else tracker
    learners = {"tracker": tracker} | single_rates(COMPARED, case.n_features, rates)
    runs = {name: run(learner, pairs, y, marks) for name, learner in learners.items()}

    chosen = np.random.default_rng(seed).choice(stream.n_points, N_POINTS, replace=False)
    errors = {name: [] for name in runs}
    for i, mark in enumerate(marks):
        points, labels = stream.points(mark - 1)[chosen] * factors, stream.labels(mark - 1)[chosen]
        for name, (_, embeddings) in runs.items():
            embedded = points @ embeddings[i].T
            errors[name].append(leave_one_out_error(embedded, labels, N_NEIGHBOURS))

    hinge = {name: float(losses.mean()) for name, (losses, _) in runs.items()}
    knn = {name: float(np.mean(each)) for name, each in errors.items()}
    singles = [name for name in runs if name != "tracker"]
    best = min(singles, key=hinge.__getitem__)
    starts = [start for start, _ in stream.marks]
    by_segment = [np.add.reduceat(runs[name][0], starts) for name in singles]
    fresh = [
        fresh_losses(clone(learners[name]), case, seed, stream, pairs, y)
        for name in ("tracker", best)
        if abrupt_switches(stream)
    ]
    return {
        "profile": case.profile,
        "what": case.what,
        "seed": seed,
        "n_pairs": n_pairs,
        "best": best,
        "hinge": hinge["tracker"],
        "hinge_best": hinge[best],
        "hinge_regularised": min(hinge[name] for name in singles if name.startswith("reg")),
        "hinge_plain": min(hinge[name] for name in singles if name.startswith("plain")),
        "hinge_oracle": float(np.min(by_segment, axis=0).sum() / n_pairs),
        "error": float(np.mean(runs["tracker"][0] > 1.0)),  # a hinge above 1 is a wrong judgement
        "error_best": float(np.mean(runs[best][0] > 1.0)),
        "knn": knn["tracker"],
        "knn_best": knn[best],
        "knn_least": min(knn[name] for name in singles),
        "recovery": recovery(fresh[0], fresh[1]) if fresh else [],
        "recovery_best": recovery(fresh[1], fresh[1]) if fresh else [],
        "rank": int(tracker.rank_),
        "directions": directions(tracker),
        "trace": float(np.sum(tracker.components_**2)),
    }


def versions():
    return {
        "metrack": importlib.metadata.version("metrack"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "default": {name: str(value) for name, value in MetricTracker().get_params().items()},
    }


def benchmark(console, cases=None, n_pairs=N_PAIRS, seeds=TEST_SEEDS, rates=RATES, keep=None):
    """Records of all cases, each on its number of seeds; ``keep`` is told after each."""
    found = {"main": [], "sweep": []}
    for part, group in {"main": MAIN, "sweep": SWEEP}.items() if cases is None else cases.items():
        for case in group:
            start = time.perf_counter()
            for seed in seeds[: case.n_seeds]:
                found[part].append(measure(case, seed, n_pairs, rates))
            spent = time.perf_counter() - start
            console.print(f"{case.what}, {case.profile}: {spent:.0f} s")
            if keep is not None:
                keep(found)
    return found


def write(found):
    RESULTS.write_text(json.dumps({**found, "versions": versions()}, indent=1) + "\n")


QUICK = {"main": [Case("static"), Case("recurring")], "sweep": [Case("recurring", "n = 10", 10)]}


def main():
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three short streams, one seed")
    parser.add_argument("--ablate", action="store_true", help="variants, on development seeds")
    parser.add_argument("--markdown", action="store_true", help="tables of the last results")
    asked = parser.parse_args()
    console = Console(width=180)
    if asked.markdown:
        if RESULTS.exists():
            print(markdown(json.loads(RESULTS.read_text())))
        if ABLATIONS.exists():
            rows = ablation_rows(json.loads(ABLATIONS.read_text())["variants"])
            print("\n" + markdown_table(ABLATION_COLUMNS, rows))
        return
    MetricTracker().partial_fit(
        np.eye(4).reshape(2, 2, 4), [1, -1]
    )  # compiled before the clock starts
    if asked.ablate:
        results = {"variants": ablate(console), "versions": versions()}
        ABLATIONS.write_text(json.dumps(results, indent=1) + "\n")
        table = Table(*ABLATION_COLUMNS, title="Ablations, development seeds")
        for cells in ablation_rows(results["variants"]):
            table.add_row(*cells)
        console.print(table)
        return
    if asked.quick:
        found = benchmark(console, QUICK, 800, TEST_SEEDS[:1], RATES[::3])
    else:
        found = benchmark(console, keep=write)
        console.print(f"written to {RESULTS}")
    show(console, found)


if __name__ == "__main__":
    main()
