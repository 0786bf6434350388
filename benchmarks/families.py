"""The default tracker on families of streams that it was not tuned on.

    make bench-tracking                              test seeds; tables, benchmarks/families.json
    python benchmarks/families.py --development      families and seeds to choose defaults on
    python benchmarks/families.py --oracle           what a metric could reach too; slow
    python benchmarks/families.py --quick            a smoke run
    python benchmarks/families.py --markdown         the tables of docs/tracking.md

All methods see the same pairs; benchmarks/family_streams.py has the streams. What the tracker is
held against does not depend on its settings, and is chosen after the fact for each stream:

best single, by hinge   the COMID learner with the smallest mean prequential hinge loss: Burg with
                        and without the LogDet pull, Frobenius; six rates of each, and more, a
                        factor 2 apart, as long as the best one is the first or the last;
best single, by AUC     of these and of OnlineITML the one with the largest mean AUC;
plain distance          its hinge loss is that of M = s I with a threshold learned online, by the
                        step that COMID takes at rate 0 on M: mu <- max(1, mu + y min(e, loss)).
                        mu starts at the mean squared distance; s and e are the best of a grid.

AUC: every 250 pairs on 2,000 fresh pairs of the question of the moment, half of them alike.
k-NN error: at the end of each segment, 5 neighbours, leave one out, in the embedding for neighbours
where a learner has one.

Where few pairs are alike, and where features have units of their own, answers are looked at too:
every 250 pairs, on 4,000 fresh ones of which as many are alike as of the stream's own. Average
precision (AP), beside the largest mean one of a single learner; F1 of ``predict`` of a tracker with
``threshold="f1"``, beside that of the best threshold for these very pairs; the expected calibration
error of ``predict_proba``, in ten equal bins.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.stats
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from benchmarks import family_oracle as oracle
from benchmarks import family_streams as streams
from benchmarks.measures import average_precision, best_f1, calibration_error, f1
from benchmarks.tracking import versions
from benchmarks.tracking_tables import interval, log_ratio, markdown_table
from metrack import COMID, MetricTracker, OnlineITML
from metrack.evaluate import leave_one_out_error
from metrack.streams import LabelledStream

RESULTS = Path(__file__).parent / "families.json"
DEVELOPMENT = Path(__file__).parent / "families-development.json"

DEVELOPMENT_SEEDS = (3001, 3002)
TEST_SEEDS = (4011, 4012, 4013)  # 4001 to 4003 were looked at while streams were designed

RATES = tuple(0.02 * 2.0**i for i in range(6))
MORE_RATES = 6  # at most so many beyond either end
MARGIN_LEARNERS = {
    "burg": lambda rate: COMID(divergence="burg", regularizer=None, learning_rate=rate),
    "logdet": lambda rate: COMID(divergence="burg", regularizer="logdet", learning_rate=rate),
    "frobenius": lambda rate: COMID(divergence="frobenius", learning_rate=rate),
}
TARGET_LEARNERS = {"itml": lambda rate: OnlineITML(learning_rate=rate)}

PLAIN_SCALES = np.geomspace(0.5, 64.0, 15)  # of the mean squared distance
PLAIN_RATES = np.geomspace(0.001, 1.0, 7)

EVERY = 250
N_FRESH = 2_000
N_ANSWERED = 4_000
N_POINTS = 500
N_NEIGHBOURS = 5

HINGE_BAR, PLAIN_BAR = 0.93, 1.01  # ratios, at most
F1_BAR, CALIBRATION_BAR = 0.02, 0.03  # below the best threshold's; at most
REAL, AUC_LEAD = ("digits", "banking"), 0.005  # at least level on each, and ahead by this on one
PLAIN = "plain is right"


class Looks:
    """Where a stream is interrupted, and what is looked at then."""

    def __init__(self, stream, seed, answered=False):
        rng = np.random.default_rng([seed, 2])
        starts = [start for start, _ in stream.marks]
        ends = {*starts[1:], len(stream)}
        self.marks = sorted({*range(EVERY, len(stream), EVERY), *ends})
        self.fresh, self.ends = {}, {}
        for mark in self.marks:
            points, labels = stream.points(mark - 1), stream.labels(mark - 1)
            if mark % EVERY == 0:
                self.fresh[mark] = fresh_pairs(points, labels, rng)
            if mark in ends:
                chosen = rng.permutation(len(labels))[:N_POINTS]
                self.ends[mark] = points[chosen], labels[chosen]
        self.answered = answered_pairs(stream, self.fresh, seed) if answered else {}

    def auc(self, mark, components):
        differences, alike = self.fresh[mark]
        return auc(((differences @ components.T) ** 2).sum(axis=1), alike)

    def average_precision(self, mark, components):
        pairs, alike = self.answered[mark]
        differences = pairs[:, 0] - pairs[:, 1]
        return average_precision(((differences @ components.T) ** 2).sum(axis=1), alike)

    def knn_error(self, embeddings):
        """Mean over the ends of segments."""
        errors = [
            leave_one_out_error(points @ embeddings[mark].T, labels, N_NEIGHBOURS)
            for mark, (points, labels) in self.ends.items()
        ]
        return float(np.mean(errors))


def auc(distances, alike):
    """Area under the ROC curve, from ranks: scikit-learn's checks would take most of the time."""
    n_alike = np.count_nonzero(alike)
    n_others = len(alike) - n_alike
    below = scipy.stats.rankdata(distances)[~alike].sum() - n_others * (n_others + 1) / 2
    return float(below / (n_alike * n_others))


def fresh_pairs(points, labels, rng):
    """Differences of fresh pairs, and which are alike: half of them."""
    stream = LabelledStream(
        points, labels, n_pairs=N_FRESH, similar=0.5, random_state=int(rng.integers(2**31))
    )
    rows, y = stream.pairs()
    return points[rows[:, 0]] - points[rows[:, 1]], y > 0


def answered_pairs(stream, marks, seed):
    """Fresh pairs by when they are looked at, and which are alike: as many as in the stream."""
    rng, found = np.random.default_rng([seed, 3]), {}
    for mark in marks:
        points, labels = stream.points(mark - 1), stream.labels(mark - 1)
        fresh = LabelledStream(
            points,
            labels,
            n_pairs=N_ANSWERED,
            similar=stream.similar,
            random_state=int(rng.integers(2**31)),
        )
        rows, y = fresh.pairs()
        found[mark] = points[rows], y > 0
    return found


def follow(learner, pairs, y, looks):
    """A learner's way along a stream: mean loss before learning, mean AUC, embeddings at ends.

    Mean AP too, where answers are looked at.
    """
    losses, aucs, precisions, embeddings = [], [], [], {}
    for start, mark in pairwise([0, *looks.marks]):
        losses.append(learner.observe(pairs[start:mark], y[start:mark]))
        components = learner.components_
        if mark in looks.fresh:
            aucs.append(looks.auc(mark, components))
        if mark in looks.answered:
            precisions.append(looks.average_precision(mark, components))
        if mark in looks.ends:
            embeddings[mark] = neighbour_components(learner)
    return {
        "hinge": float(np.concatenate(losses).mean()),
        "auc": float(np.mean(aucs)),
        "ap": float(np.mean(precisions)) if precisions else None,
        "embeddings": embeddings,
    }


def answers(tracker, pairs, y, looks):
    """Means along a stream: F1 of ``predict``, of the best threshold, and calibration error."""
    found = []
    for start, mark in pairwise([0, *looks.answered]):
        tracker.partial_fit(pairs[start:mark], y[start:mark])
        fresh, alike = looks.answered[mark]
        probabilities = tracker.predict_proba(fresh)[:, list(tracker.classes_).index(1)]
        found.append(
            (
                f1(tracker.predict(fresh) > 0, alike),
                best_f1(tracker.pair_distance(fresh), alike),
                calibration_error(probabilities, alike),
            )
        )
    return dict(zip(("f1", "f1_best", "calibration"), np.mean(found, axis=0).tolist(), strict=True))


def neighbour_components(learner):
    own = getattr(learner, "neighbour_components", None)
    return learner.components_ if own is None else own()


def hinge_of(run):
    return run["hinge"]


def minus_auc(run):
    return -run["auc"]


def minus_ap(run):
    return -run["ap"]


def along_rates(run, measures, rates=RATES):
    """Runs by rate, and beyond the ends as long as the best one, by any of the measures, is there.

    ``run(rate)`` is a run; measures are the better the smaller.
    """
    runs = {rate: run(rate) for rate in rates}
    least, largest = min(rates) / 2.0**MORE_RATES, max(rates) * 2.0**MORE_RATES
    while True:
        best = {min(runs, key=lambda rate: measure(runs[rate])) for measure in measures}
        ends = {min(runs): min(runs) / 2.0, max(runs): max(runs) * 2.0}
        beyond = [new for end, new in ends.items() if end in best and least <= new <= largest]
        if not beyond:
            return runs
        runs |= {rate: run(rate) for rate in beyond}


def singles(kinds, measures, pairs, y, looks, rates=RATES):
    """Runs of single learners of some kinds, along their rates."""
    found = {}
    for kind, learner in kinds.items():

        def run(rate, learner=learner):
            return follow(learner(rate), pairs, y, looks)

        runs = along_rates(run, measures, rates)
        found |= {f"{kind} {rate:.2g}": each for rate, each in runs.items()}
    return found


def plain_hinge(pairs, y):
    """Mean hinge loss of plain distance, as the module says: the least over scales and rates."""
    q = ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(axis=1)
    scales, rates = np.meshgrid(PLAIN_SCALES, PLAIN_RATES)
    mu, total = np.maximum(1.0, scales), np.zeros_like(scales)
    for each, judgement in zip(q / q.mean(), y, strict=True):
        loss = np.maximum(0.0, 1.0 - judgement * (mu - scales * each))
        total += loss
        mu = np.maximum(1.0, mu + judgement * np.minimum(rates, loss))
    return float(total.min() / len(y))


def torch_auc(pairs, y, looks, seed):
    """The largest mean AUC of the embeddings by Adam."""
    from benchmarks.torch_embedding import RATES as ADAM_RATES
    from benchmarks.torch_embedding import TorchEmbedding

    n_features = pairs.shape[2]
    return max(
        follow(TorchEmbedding(rate, n_features, seed), pairs, y, looks)["auc"]
        for rate in ADAM_RATES
    )


def measure(
    kind, seed, question=streams.QUESTION, rates=RATES, tracker=None, torch=False, told=False
):
    """One stream: the tracker, plain distance, all single learners, and the best of them.

    ``told``: what could be reached by one who is told more, or computes more, too.
    """
    stream = kind.make(seed, question)
    pairs, y = stream.pairs()
    if pairs.ndim == 2:  # row numbers
        pairs = stream.preprocessor[pairs]
    looks = Looks(stream, seed, kind.answered)
    tracker = MetricTracker() if tracker is None else tracker
    own = follow(clone(tracker), pairs, y, looks)
    by_rank = (minus_auc, minus_ap) if kind.answered else (minus_auc,)
    margin = singles(MARGIN_LEARNERS, (hinge_of, *by_rank), pairs, y, looks, rates)
    target = singles(TARGET_LEARNERS, by_rank, pairs, y, looks, rates)
    best = min(margin, key=lambda name: margin[name]["hinge"])
    every = margin | target
    best_auc = max(every, key=lambda name: every[name]["auc"])
    unchanged = np.eye(pairs.shape[2])
    return {
        "family": kind.family,
        "name": kind.name,
        "seed": seed,
        "n_pairs": len(y),
        "hinge": own["hinge"],
        "best": best,
        "hinge_best": margin[best]["hinge"],
        "hinge_plain": plain_hinge(pairs, y),
        "hinge_possible": oracle.possible(stream) if told else None,
        "hinge_refitted": oracle.refitted(stream) if told else None,
        "hinge_windowed": oracle.windowed(pairs[:, 0] - pairs[:, 1], y) if told else None,
        "auc": own["auc"],
        "auc_plain": float(np.mean([looks.auc(mark, unchanged) for mark in looks.fresh])),
        "best_by_auc": best_auc,
        "auc_best": every[best_auc]["auc"],
        "auc_torch": torch_auc(pairs, y, looks, seed) if torch else None,
        "knn": looks.knn_error(own["embeddings"]),
        "knn_plain": looks.knn_error(dict.fromkeys(looks.ends, unchanged)),
        "knn_best": looks.knn_error(every[best_auc]["embeddings"]),
    } | (answered(tracker, own, every, pairs, y, looks) if kind.answered else {})


def answered(tracker, own, every, pairs, y, looks):
    """What a record has more where answers are looked at."""
    best = max(every, key=lambda name: every[name]["ap"])
    unchanged = np.eye(pairs.shape[2])
    return {
        "ap": own["ap"],
        "ap_plain": float(
            np.mean([looks.average_precision(mark, unchanged) for mark in looks.answered])
        ),
        "best_by_ap": best,
        "ap_best": every[best]["ap"],
        **answers(clone(tracker).set_params(threshold="f1"), pairs, y, looks),
    }


MEANS = ("hinge", "auc", "auc_plain", "auc_best", "knn", "knn_plain", "knn_best")
ANSWERS = ("ap", "ap_plain", "ap_best", "f1", "f1_best", "calibration")
CHOSEN_ON = {kind.family for kind in streams.CHOSEN_ON}


def groups(records, key):
    return {
        value: [r for r in records if r[key] == value]
        for value in dict.fromkeys(r[key] for r in records)
    }


def ratio(records, theirs, ours="hinge"):
    """Geometric mean of the hinge's ratio over streams, with an interval over the seeds."""
    seeds = groups(records, "seed").values()
    return interval(np.array([log_ratio(own, ours, theirs).mean() for own in seeds]))


def summarise(records, title, parts):
    """A line of a table: all these records together, and the worst part of them."""
    line = {"title": title} | {
        name: float(np.mean([record[name] for record in records])) for name in MEANS
    }
    looked_at = all("ap" in record for record in records)
    for name in ANSWERS:
        line[name] = float(np.mean([record[name] for record in records])) if looked_at else None
    line["best_by_ap"] = ""
    if looked_at:
        line["best_by_ap"] = ", ".join(sorted({record["best_by_ap"] for record in records}))
    line["auc_torch"] = None
    if records[0]["auc_torch"] is not None:
        line["auc_torch"] = float(np.mean([record["auc_torch"] for record in records]))
    line["rate"], line["plain"] = ratio(records, "hinge_best"), ratio(records, "hinge_plain")
    for name in ("possible", "refitted", "windowed"):
        known = records[0][f"hinge_{name}"] is not None
        line[name] = ratio(records, "hinge_best", f"hinge_{name}")[0] if known else None
    each = {part: ratio(own, "hinge_best")[0] for part, own in groups(records, parts).items()}
    worst = max(each, key=each.__getitem__)
    line["worst"] = f"{each[worst]:.3f} ({worst})"
    for name in ("best", "best_by_auc"):
        line[name] = ", ".join(sorted({record[name] for record in records}))
    return line


def family_title(family):
    return f"{family} ({'chosen on' if family in CHOSEN_ON else 'reported'})"


def family_lines(records):
    return [
        summarise(own, family_title(family), "name")
        for family, own in groups(records, "family").items()
    ]


def stream_lines(records):
    return [summarise(own, name, "seed") for name, own in groups(records, "name").items()]


def figure(name):
    return lambda line: "" if line[name] is None else f"{line[name]:.3f}"


FIGURES = [
    ("hinge", figure("hinge")),
    ("/ best single", lambda line: "{:.3f} ({:.3f}-{:.3f})".format(*line["rate"])),
    ("worst", lambda line: line["worst"]),
    ("possible", figure("possible")),
    ("refitted", figure("refitted")),
    ("windowed", figure("windowed")),
    ("/ plain", lambda line: f"{line['plain'][0]:.3f}"),
    ("AUC", figure("auc")),
    ("plain's", figure("auc_plain")),
    ("best single's", figure("auc_best")),
    ("Adam's", figure("auc_torch")),
    ("k-NN error", figure("knn")),
    ("plain's", figure("knn_plain")),
    ("best single's", figure("knn_best")),
    ("AP", figure("ap")),
    ("plain's", figure("ap_plain")),
    ("best single's", figure("ap_best")),
    ("F1", figure("f1")),
    ("best threshold's", figure("f1_best")),
    ("calibration error", figure("calibration")),
]
FAMILY_COLUMNS = [("family", lambda line: line["title"]), *FIGURES]
STREAM_COLUMNS = [
    ("stream", lambda line: line["title"]),
    *FIGURES,
    ("best by hinge", lambda line: line["best"]),
    ("best by AUC", lambda line: line["best_by_auc"]),
    ("best by AP", lambda line: line["best_by_ap"]),
]


class Bar(NamedTuple):
    name: str
    value: float
    limit: float
    at_most: bool = True

    @property
    def asked(self):
        return f"at {'most' if self.at_most else 'least'} {self.limit:g}"

    @property
    def verdict(self):
        met = self.value <= self.limit if self.at_most else self.value >= self.limit
        return "met" if met else "missed"


def bars(records):
    """All bars for which there are records."""
    families = groups(records, "family")
    found = [
        Bar(f"hinge / best single, {family}", ratio(own, "hinge_best")[0], HINGE_BAR)
        for family, own in families.items()
    ]
    leads = {
        family: float(np.mean([record["auc"] - record["auc_best"] for record in families[family]]))
        for family in REAL
        if family in families
    }
    for family, lead in leads.items():
        found.append(Bar(f"AUC - best single's, {family}", lead, 0.0, at_most=False))
    if len(leads) == len(REAL):
        title = f"AUC - best single's, the larger of {' and '.join(leads)}"
        found.append(Bar(title, max(leads.values()), AUC_LEAD, at_most=False))
    if PLAIN in families:
        value = ratio(families[PLAIN], "hinge_plain")[0]
        found.append(Bar(f"hinge / plain distance's, {PLAIN}", value, PLAIN_BAR))
    return found + answer_bars([record for record in records if "ap" in record])


def answer_bars(records):
    """Bars of each kind of stream on which answers are looked at."""
    found = []
    for family, own in groups(records, "family").items():
        for name, some in groups(own, "name").items():
            title = f"{family}, {name}"
            mean = {key: float(np.mean([record[key] for record in some])) for key in ANSWERS}
            found += [
                Bar(f"AP - best single's, {title}", mean["ap"] - mean["ap_best"], 0.0, False),
                Bar(f"best F1 - F1, {title}", mean["f1_best"] - mean["f1"], F1_BAR),
                Bar(f"calibration error, {title}", mean["calibration"], CALIBRATION_BAR),
            ]
    return found


def cells(columns, lines):
    """Titles and rows of a table, without columns that are empty."""
    rows = [[cell(line) for _, cell in columns] for line in lines]
    filled = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return [columns[i][0] for i in filled], [[row[i] for i in filled] for row in rows]


def show_table(console, title, columns, lines):
    table = Table(title=title)
    names, rows = cells(columns, lines)
    for i, name in enumerate(names):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show(console, records):
    """A table of each family's streams, one of all families, and the bars."""
    for family, own in groups(records, "family").items():
        show_table(console, family_title(family), STREAM_COLUMNS, stream_lines(own))
    show_table(console, "All families", FAMILY_COLUMNS, family_lines(records))
    for bar in bars(records):
        console.print(f"{bar.name}: {bar.value:.4f}, {bar.asked}: {bar.verdict}")


def markdown(records):
    """The same for docs/tracking.md."""
    parts = [
        markdown_table(
            ["bar", "found", "asked", ""],
            [
                [
                    bar.name,
                    f"{bar.value:.4f}",
                    bar.asked,
                    bar.verdict.replace("missed", "**missed**"),
                ]
                for bar in bars(records)
            ],
        ),
        markdown_table(*cells(FAMILY_COLUMNS, family_lines(records))),
    ]
    for family, own in groups(records, "family").items():
        parts.append(f"#### {family_title(family)}")
        parts.append(markdown_table(*cells(STREAM_COLUMNS, stream_lines(own))))
    return "\n\n".join(parts)


def benchmark(console, kinds, seeds, jobs=1, **settings):
    """Records of all kinds of streams on all seeds."""
    tasks = [delayed(measure)(kind, seed, **settings) for kind in kinds for seed in seeds]
    found, start = [], time.perf_counter()
    for record in Parallel(n_jobs=jobs, return_as="generator")(tasks):
        found.append(record)
        spent = time.perf_counter() - start
        console.print(f"{spent:.0f} s: {record['family']}, {record['name']}, {record['seed']}")
    return found


def available(kinds, console):
    """Without the streams whose data is not there."""
    if streams.banking_path().exists():
        return kinds
    console.print(f"banking is left out: there is no {streams.banking_path()}; see --banking")
    return [kind for kind in kinds if not kind.family.startswith("banking")]


def main():
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short streams, one seed, few rates")
    parser.add_argument(
        "--development", action="store_true", help="families and seeds to choose defaults on"
    )
    parser.add_argument("--wide", action="store_true", help="banking in all 512 directions too")
    parser.add_argument("--torch", action="store_true", help="an embedding by Adam too; slow")
    parser.add_argument("--oracle", action="store_true", help="what a metric could reach too; slow")
    parser.add_argument("--markdown", action="store_true", help="tables of the last results")
    known = sorted({kind.family for kind in streams.CHOSEN_ON + streams.REPORTED})
    parser.add_argument(
        "--family", action="append", choices=known, help="only this one; repeatable"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="where records go; else beside this file")
    parser.add_argument("--banking", help="path of banking.npz; or set METRACK_BANKING")
    parser.add_argument(
        "--settings", type=json.loads, default={}, help="of the tracker, as in '{\"eta0\": 0.2}'"
    )
    asked = parser.parse_args()
    console = Console(width=200)
    results = asked.out or (DEVELOPMENT if asked.development else RESULTS)
    if asked.torch and importlib.util.find_spec("torch") is None:
        parser.error("--torch: torch is not installed here; install it, or leave out --torch")
    if asked.markdown and not results.exists():
        parser.error(f"--markdown: there is no {results} yet; run without --markdown first")
    if asked.markdown:
        print(markdown(json.loads(results.read_text())["records"]))
        return
    if asked.banking:
        os.environ["METRACK_BANKING"] = asked.banking  # processes inherit it
    kinds = streams.CHOSEN_ON + ([] if asked.development else streams.REPORTED)
    kinds = available(kinds + (streams.WIDE if asked.wide else []), console)
    kinds = [kind for kind in kinds if kind.family in (asked.family or [kind.family])]
    options = {
        "tracker": MetricTracker(**asked.settings),
        "torch": asked.torch,
        "told": asked.oracle,
    }
    # Compiled once, before the processes start.
    learners = [make(0.1) for make in (MARGIN_LEARNERS | TARGET_LEARNERS).values()]
    for learner in [clone(options["tracker"]), *learners]:
        learner.partial_fit(np.eye(4).reshape(2, 2, 4), [1, -1])
    if asked.quick:
        options |= {"question": 2 * EVERY, "rates": RATES[1::3]}
        show(console, benchmark(console, kinds, TEST_SEEDS[:1], asked.jobs, **options))
        return
    seeds = DEVELOPMENT_SEEDS if asked.development else TEST_SEEDS
    records = benchmark(console, kinds, seeds, asked.jobs, **options)
    written = {"records": records, "settings": asked.settings, "versions": versions()}
    results.write_text(json.dumps(written, indent=1) + "\n")
    console.print(f"written to {results}")
    show(console, records)


if __name__ == "__main__":
    main()
