"""Speed, state size and quality of the tracker by the number of features.

    make bench-width                  the table of docs/which-method.md, and docs/figures/width.png
    benchmarks/width.py --banking     sentences, beside single learners with whole matrices
    benchmarks/width.py --small       a question in a few of many directions of small variance

Points have features of falling variance, as embeddings have: that of the i-th is 1 / i. Classes lie
in three features at a time, 3 standard deviations apart; half-way, three others decide. No method
here looks at the axes, so nothing need be turned.

Time: the processor's, the median over blocks of 250 pairs, one thread. AUC: every 250 pairs on
1,000 fresh ones.

The sentences are those of benchmarks/families.py, in all 512 directions and in their 256 principal
ones: 2,000 pairs of each of three questions, AUC every 250 on 2,000 fresh ones. Single learners
have the rate of largest mean AUC, chosen after the fact for each stream: of six, and of more as
long as the best one is the first or the last.

Small variance: of 512 features, turned, 100 have falling variance, and all others the same one. The
first question lies in six of the former, the second in six of the latter. AUC after the change, and
the largest that a single OnlineITML has at that moment, of eight rates.
"""

import argparse
import itertools
import json
import operator
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from benchmarks import families, family_streams
from benchmarks.families import auc, fresh_pairs
from benchmarks.tracking_tables import markdown_table
from metrack import MetricTracker, OnlineITML
from metrack.estimators.states.persistence import pack
from metrack.streams import LabelledStream, Segment, abrupt

BANKING = Path(__file__).parent / "width-banking.json"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "width.png"

WIDTHS = (8, 16, 25, 50, 64, 96, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
QUESTION, EVERY = 1_500, 250  # pairs
N_POINTS, N_FRESH, DIM, N_CLASSES, APART = 1_500, 1_000, 3, 6, 3.0
WHOLE_UP_TO = 1_536  # features: beyond, one whole matrix takes too long to wait for

N_BANKING = 512
SINGLES = families.MARGIN_LEARNERS | families.TARGET_LEARNERS

N_SMALL, N_LARGE, SMALL_DIM = 512, 100, 6
SMALL = ((0.05, 3.0), (0.05, 6.0), (0.1, 3.0), (0.3, 3.0))  # spread, centres apart in spreads
SMALL_SEEDS, SMALL_RATES = (5011, 5012, 5013, 5014), tuple(0.04 * 2.0**i for i in range(8))
FIRST, AFTER = 1_500, (500, 1_000, 2_000)  # pairs


def stream(n, question=QUESTION, seed=5001):
    rng = np.random.default_rng(seed)  # the same classes for every n
    points = rng.normal(size=(N_POINTS, 2 * DIM))
    labels = {}
    for i, name in enumerate("AB"):
        labels[name] = rng.integers(N_CLASSES, size=N_POINTS)
        centres = APART / np.sqrt(2.0) * rng.normal(size=(N_CLASSES, DIM))
        points[:, i * DIM : (i + 1) * DIM] += centres[labels[name]]
    points = np.hstack([points, rng.normal(size=(N_POINTS, n - 2 * DIM))])
    points /= np.sqrt(np.arange(1, n + 1))
    schedule = abrupt("A", "B", length=question)
    return LabelledStream(points, labels, schedule=schedule, similar=0.5, random_state=seed)


def looks(source):
    """Fresh pairs, by when they are looked at."""
    rng = np.random.default_rng(0)
    marks = range(EVERY, len(source) + 1, EVERY)
    return {
        mark: fresh_pairs(source.points(mark - 1), source.labels(mark - 1), rng) for mark in marks
    }


def follow(learner, source, fresh):
    """Microseconds a pair, and mean AUC."""
    rows, y = source.pairs()
    spent, found = [], []
    for mark, (differences, alike) in fresh.items():
        block = slice(mark - EVERY, mark)
        pairs = source.preprocessor[rows[block]]
        start = time.process_time()
        learner.observe(pairs, y[block])
        spent.append((time.process_time() - start) / EVERY * 1e6)
        both = np.stack([differences, np.zeros_like(differences)], axis=1)
        found.append(auc(learner.pair_distance(both), alike))
    return float(np.median(spent)), float(np.mean(found))


def measure(n, question=QUESTION):
    """One line of the table."""
    source = stream(n, question)
    fresh = looks(source)
    tracker = MetricTracker()
    tracker_us, tracker_auc = follow(tracker, source, fresh)
    single_us = single_auc = None
    if n <= WHOLE_UP_TO:
        single_us, single_auc = follow(OnlineITML(), source, fresh)
    plain = [auc((u**2).sum(axis=1), alike) for u, alike in fresh.values()]
    return {
        "n": n,
        "us": tracker_us,
        "single_us": single_us,
        "state": sum(array.nbytes for array in pack(tracker).arrays.values()) / 1e6,
        "auc": tracker_auc,
        "single_auc": single_auc,
        "plain_auc": float(np.mean(plain)),
    }


def table(records):
    """As Markdown."""

    def rate(us):
        return "" if us is None else f"{1e6 / us:,.0f}"

    titles = ["features", "pairs a second", "`OnlineITML`'s", "state, MB"]
    titles += ["AUC", "`OnlineITML`'s", "plain distance's"]
    rows = [
        [
            f"{each['n']:,}",
            rate(each["us"]),
            rate(each["single_us"]),
            f"{each['state']:.1f}",
            f"{each['auc']:.3f}",
            "" if each["single_auc"] is None else f"{each['single_auc']:.3f}",
            f"{each['plain_auc']:.3f}",
        ]
        for each in records
    ]
    return markdown_table(titles, rows)


def draw(records, path):
    """The same as a figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    n = [each["n"] for each in records]
    whole = [each for each in records if each["single_us"] is not None]
    n_whole = [each["n"] for each in whole]
    panels[0].loglog(n, [1e6 / each["us"] for each in records], "o-", label="MetricTracker")
    single = [1e6 / each["single_us"] for each in whole]
    panels[0].loglog(n_whole, single, "s--", label="OnlineITML")
    panels[0].set(title="pairs a second", xlabel="features")
    panels[1].loglog(n, [each["state"] for each in records], "o-")
    panels[1].set(title="state, MB", xlabel="features")
    panels[2].semilogx(n, [each["auc"] for each in records], "o-", label="MetricTracker")
    panels[2].semilogx(n_whole, [each["single_auc"] for each in whole], "s--", label="OnlineITML")
    panels[2].semilogx(n, [each["plain_auc"] for each in records], "^:", label="plain distance")
    panels[2].set(title="AUC", xlabel="features")
    for panel in (panels[0], panels[2]):
        panel.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def banking(n, seed, question=family_streams.QUESTION, rates=families.RATES):
    """Mean AUC on sentences: of the tracker, and of each kind of single learner at its best."""
    source = family_streams.banking(seed, question, None if n == N_BANKING else n)
    rows, y = source.pairs()
    pairs, fresh = source.preprocessor[rows], families.Looks(source, seed)
    found = {"MetricTracker()": {"auc": families.follow(MetricTracker(), pairs, y, fresh)["auc"]}}
    for kind, learner in SINGLES.items():

        def mean_auc(rate, learner=learner):
            return families.follow(learner(rate), pairs, y, fresh)["auc"]

        runs = families.along_rates(mean_auc, (operator.neg,), rates)
        best = max(runs, key=runs.__getitem__)
        found[kind] = {"auc": runs[best], "rate": best, "runs": runs}
    return {"n": n, "seed": seed, "found": found}


def banking_table(records):
    """As Markdown: a line for each stream, and the mean of each width."""
    kinds = list(records[0]["found"])

    def line(own, title):
        means = [np.mean([each["found"][kind]["auc"] for each in own]) for kind in kinds]
        return [f"{own[0]['n']}", title, *(f"{mean:.4f}" for mean in means)]

    rows = []
    for own in families.groups(records, "n").values():
        rows += [line([each], str(each["seed"])) for each in own]
        rows.append(line(own, "mean"))
    return markdown_table(["directions", "seed", *kinds], rows)


def measure_banking():
    """All widths and seeds; written as they come."""
    records = []
    for seed in families.TEST_SEEDS:
        for n in (N_BANKING // 2, N_BANKING):
            records.append(banking(n, seed))
            BANKING.write_text(json.dumps(records, indent=1) + "\n")
            print(f"{n} directions, seed {seed}", flush=True)
    print(banking_table(records))


def small_variance(spread, apart, seed):
    """Points, and the labels of two questions."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(N_POINTS, N_SMALL))
    labels = {}
    for start, name in ((0, "large"), (N_LARGE, "small")):
        labels[name] = rng.integers(SMALL_DIM + 1, size=N_POINTS)
        centres = apart / np.sqrt(2.0) * rng.normal(size=(SMALL_DIM + 1, SMALL_DIM))
        points[:, start : start + SMALL_DIM] += centres[labels[name]]
    points[:, :N_LARGE] /= np.sqrt(np.arange(1, N_LARGE + 1))
    points[:, N_LARGE:] *= spread
    return points @ family_streams.random_basis(N_SMALL, rng), labels


def after_change(learner, points, labels, seed, first=FIRST, after=AFTER):
    """AUC on fresh pairs, so many pairs after the question has changed."""
    schedule = [Segment("large", "large", first), Segment("small", "small", max(after))]
    source = LabelledStream(points, labels, schedule=schedule, similar=0.5, random_state=seed)
    rows, y = source.pairs()
    fresh, alike = fresh_pairs(points, labels["small"], np.random.default_rng(seed))
    both, found = np.stack([fresh, np.zeros_like(fresh)], axis=1), []
    for start, end in itertools.pairwise([0, *(first + each for each in after)]):
        learner.observe(points[rows[start:end]], y[start:end])
        found.append(auc(learner.pair_distance(both), alike))
    return found


def measure_small(kinds=SMALL, seeds=SMALL_SEEDS, rates=SMALL_RATES, **lengths):
    """As Markdown: means over seeds."""
    rows = []
    for spread, apart in kinds:
        streams = [(*small_variance(spread, apart, seed), seed) for seed in seeds]
        own = np.mean([after_change(MetricTracker(), *each, **lengths) for each in streams], axis=0)
        single = [
            np.mean([after_change(OnlineITML(learning_rate=r), *s, **lengths) for s in streams], 0)
            for r in rates
        ]
        pairs = zip(own, np.max(single, axis=0), strict=True)
        rows.append([f"{spread:g}", f"{apart:g}", *(f"{a:.3f} / {b:.3f}" for a, b in pairs)])
    titles = [f"{each:,} pairs" for each in lengths.get("after", AFTER)]
    return markdown_table(["spread", "apart", *titles], rows)


def main():
    """Measure, print and draw everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--banking", action="store_true", help="sentences alone; half an hour")
    parser.add_argument("--small", action="store_true", help="small variance alone; a minute")
    asked = parser.parse_args()
    if asked.banking:
        measure_banking()
        return
    if asked.small:
        print(measure_small())
        return
    warm = np.random.default_rng(0).normal(size=(2, 2, 80))
    for learner in (MetricTracker(), OnlineITML()):  # compiled before anything is timed
        learner.observe(warm, [1, -1])
    records = []
    for n in WIDTHS:
        records.append(measure(n))
        print(f"{n} features: {records[-1]['us']:.0f} us a pair", flush=True)
    draw(records, FIGURE)
    print(table(records))


if __name__ == "__main__":
    main()
