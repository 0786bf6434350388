"""The tracking table: the default tracker against the best learning rate chosen in hindsight.

    make bench-tracking                           test seeds; a table, and benchmarks/tracking.json
    python benchmarks/tracking.py --quick         a smoke run
    python benchmarks/tracking.py --ablate        one setting at a time, on development seeds
    python benchmarks/tracking.py --markdown      the tables of docs/tracking.md, from the results

All methods see the same pairs. Settings are chosen on development seeds alone; the table is made
from test seeds. The comparators, both chosen after the fact:

best rate    the one of 24 COMID learners - 12 rates, with and without the regulariser, all else as
             the tracker has it - with the smallest mean prequential hinge loss on this very stream;
oracle       of these 24, the best one anew in every segment of the schedule.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import scipy.stats
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from metrack import COMID, SADL
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.evaluate import recovery_times
from metrack.streams import (
    DriftingClusters,
    Segment,
    abrupt,
    gradual,
    paper_schedule,
    recurring,
)

RESULTS = Path(__file__).parent / "tracking.json"
ABLATIONS = Path(__file__).parent / "tracking-ablations.json"

DEVELOPMENT_SEEDS = (1001, 1002)
TEST_SEEDS = tuple(range(2001, 2009))
N_PAIRS = 6_000

RATES = np.geomspace(1 / 80, 6.25, 12)  # times the tracker's eta0: on both sides of the best

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

# The bars of the table: name, value at most.
BARS = {"rate": 1.00, "worst": 1.05, "sweep": 1.05, "oracle": 1.05, "knn": 1.00, "recovery": 0.8}

# Root-mean-square angles by which a step turns a point.
SLOW, MODERATE, FAST, BURST = 0.01, 0.03, 0.06, 0.15


def steady(drift):
    return lambda n: [Segment("A", "A", n, drift)]


def accelerating(n):
    return [Segment(f"A {i}", "A", n // 8, FAST * i / 7) for i in range(8)]


def bursts(n):
    calm, quick = n // 4 - n // 40, n // 40
    return [Segment("calm", "A", calm), Segment("burst", "A", quick, BURST)] * 4


PROFILES: dict[str, Callable] = {
    "static": steady(0.0),
    "slow": steady(SLOW),
    "moderate": steady(MODERATE),
    "fast": steady(FAST),
    "accelerating": accelerating,
    "bursts": bursts,
    "single switch": lambda n: abrupt("A", "B", length=n // 2, drift=SLOW),
    "frequent switches": lambda n: recurring("A", "B", "C", "D", length=n // 24, cycles=6),
    "recurring": lambda n: recurring("A", "B", length=n // 8, cycles=4),
    "gradual switch": lambda n: gradual("A", "B", length=n // 2, blend=n // 6),
    "relevant features": lambda n: abrupt("A", "B", "C", length=n // 3),
    "paper's mix": paper_schedule,
}


@dataclass(frozen=True)
class Case:
    """A kind of stream: a drift profile, and how hard it is made."""

    profile: str
    what: str = "n = 25"
    n_features: int = 25
    similar: float | None = None
    label_noise: float = 0.0
    badly_scaled: bool = False
    n_seeds: int = 8

    def stream(self, seed, n_pairs):
        schedule = list(PROFILES[self.profile](n_pairs))
        return DriftingClusters(
            n_features=self.n_features,
            partitions=sorted({segment.partition for segment in schedule}),
            schedule=schedule,
            similar=self.similar,
            label_noise=self.label_noise,
            random_state=seed,
        )

    def factors(self, seed):
        """What each feature is multiplied by: over two decades where badly scaled."""
        if not self.badly_scaled:
            return np.ones(self.n_features)
        return 10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0, self.n_features)


MAIN = [Case(profile) for profile in PROFILES]
SWEEP = [
    Case(profile, what, n_seeds=n_seeds, **settings)
    for what, n_seeds, settings in [
        ("n = 10", 3, {"n_features": 10}),
        ("10 % label noise", 3, {"label_noise": 0.1}),
        ("30 % label noise", 3, {"label_noise": 0.3}),
        ("5 % similar", 3, {"similar": 0.05}),
        ("10 % similar", 3, {"similar": 0.1}),
        ("25 % similar", 3, {"similar": 0.25}),
        ("50 % similar", 3, {"similar": 0.5}),
        ("badly scaled", 3, {"badly_scaled": True}),
        ("n = 100", 2, {"n_features": 100}),
    ]
    for profile in ("paper's mix", "recurring")
]


def single_rates(tracker, n_features, rates=RATES):
    """The COMID learners among which the best is chosen; all else is as the tracker has it.

    What the tracker leaves to "auto" is what it takes that to be.
    """
    probe = clone(tracker).fit(np.eye(2, n_features)[None], [1])
    own, bank = probe.get_params(), probe.bank_.banks[0]
    shared = {name: own[name] for name in COMID().get_params() if name in own}
    names = {code: name for name, code in DIVERGENCES.items()}
    shared |= {"divergence": names[bank.rule.divergence]}
    return {
        f"{kind} {rate:.3g}": COMID(**shared | {"learning_rate": float(rate), "rho": rho})
        for kind, rho in (("regularised", float(bank.rule.rho)), ("plain", 0.0))
        for rate in bank.ladder.rate * np.asarray(rates)
    }


def run(learner, pairs, y, marks):
    """Losses before learning, and the embedding after each of the marks."""
    losses, embeddings = [], []
    for start, stop in pairwise([0, *marks]):
        losses.append(learner.observe(pairs[start:stop], y[start:stop]))
        embeddings.append(learner.components_)
    return np.concatenate(losses), embeddings


def knn_error(points, labels):
    """Share of points whose nearest neighbours, itself left out, outvote its own class."""
    squares = np.einsum("ij,ij->i", points, points)
    distances = squares[:, None] + squares - 2.0 * points @ points.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, N_NEIGHBOURS, axis=1)[:, :N_NEIGHBOURS]
    votes = (labels[nearest][:, :, None] == np.unique(labels)).sum(axis=1)
    return float(np.mean(np.unique(labels)[votes.argmax(axis=1)] != labels))


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
    tracker = SADL() if tracker is None else tracker
    learners = {"tracker": tracker} | single_rates(tracker, case.n_features, rates)
    runs = {name: run(learner, pairs, y, marks) for name, learner in learners.items()}

    chosen = np.random.default_rng(seed).choice(stream.n_points, N_POINTS, replace=False)
    errors = {name: [] for name in runs}
    for i, mark in enumerate(marks):
        points, labels = stream.points(mark - 1)[chosen] * factors, stream.labels(mark - 1)[chosen]
        for name, (_, embeddings) in runs.items():
            errors[name].append(knn_error(points @ embeddings[i].T, labels))

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


def directions(tracker):
    """How many eigenvectors hold 95 % of the metric's trace."""
    spectrum = np.linalg.svd(tracker.components_, compute_uv=False) ** 2
    shares = np.cumsum(spectrum) / max(spectrum.sum(), 1e-300)
    return min(int(np.searchsorted(shares, 0.95) + 1), len(spectrum))


def log_ratio(records, ours, theirs):
    """Log of the ratio of each record's two measures; no measure is taken for less than 0.001."""
    return np.array([np.log(max(r[ours], 1e-3) / max(r[theirs], 1e-3)) for r in records])


def interval(logs):
    """Geometric mean and its 95 % t interval."""
    mean = logs.mean()
    if len(logs) < 2:
        return [float(np.exp(mean))] * 3
    half = scipy.stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return [float(np.exp(each)) for each in (mean, mean - half, mean + half)]


RATIOS = {
    "hinge": ("hinge", "hinge_best"),
    "oracle": ("hinge", "hinge_oracle"),
    "error": ("error", "error_best"),
    "knn": ("knn", "knn_best"),
    "knn_least": ("knn", "knn_least"),
}


def recovery_ratio(record):
    """Rounds to recover, all switches of a stream together, against the best rate's."""
    return sum(record["recovery"]) / sum(record["recovery_best"])


def summarise(records):
    """A line for each kind of stream."""
    lines = []
    for what, profile in dict.fromkeys((r["what"], r["profile"]) for r in records):
        own = [r for r in records if (r["what"], r["profile"]) == (what, profile)]
        line = {"what": what, "profile": profile, "n_seeds": len(own)}
        for name in ("hinge", "hinge_best", "error", "error_best", "knn", "knn_best", "rank"):
            line[f"mean_{name}"] = float(np.mean([r[name] for r in own]))
        for name, (ours, theirs) in RATIOS.items():
            line[name] = interval(log_ratio(own, ours, theirs))
        line["best"] = ", ".join(sorted({r["best"] for r in own}))
        line["directions"] = float(np.median([r["directions"] for r in own]))
        if own[0]["recovery"]:
            line["recovery"] = float(np.median([recovery_ratio(r) for r in own]))
            line["rounds"] = float(np.median([t for r in own for t in r["recovery"]]))
            line["rounds_best"] = float(np.median([t for r in own for t in r["recovery_best"]]))
        lines.append(line)
    return lines


def overall(records):
    """Geometric means over the profiles, seed by seed, with intervals over the seeds."""
    found = {}
    seeds = dict.fromkeys(r["seed"] for r in records)
    for name, (ours, theirs) in RATIOS.items():
        logs = [
            log_ratio([r for r in records if r["seed"] == seed], ours, theirs).mean()
            for seed in seeds
        ]
        found[name] = interval(np.array(logs))
    found["worst"] = max(line["hinge"][0] for line in summarise(records))
    switched = [recovery_ratio(r) for r in records if r["recovery"]]
    found["recovery"] = float(np.median(switched)) if switched else None
    return found


def bars(results):
    """Each bar: what was found, and what it may be at most."""
    found = overall(results["main"])
    swept = [line["hinge"][0] for line in summarise(results["sweep"])]
    values = {
        "rate": found["hinge"][0],
        "worst": found["worst"],
        "sweep": max(swept, default=None),
        "oracle": found["oracle"][0],
        "knn": found["knn"][0],
        "recovery": found["recovery"],
    }
    return {name: (values[name], BARS[name]) for name in BARS if values[name] is not None}


BAR_NAMES = {
    "rate": "hinge / best rate, geometric mean over profiles",
    "worst": "hinge / best rate, worst profile",
    "sweep": "hinge / best rate, worst of the sweep",
    "oracle": "hinge / oracle of the segments, geometric mean",
    "knn": "k-NN error / best rate's, geometric mean",
    "recovery": "rounds to recover / best rate's, median",
}


def show_ratio(three):
    return f"{three[0]:.3f} ({three[1]:.3f}-{three[2]:.3f})"


COLUMNS = [
    ("stream", lambda s: f"{s['what']}, {s['profile']}"),
    ("hinge", lambda s: f"{s['mean_hinge']:.3f}"),
    ("/ best rate", lambda s: show_ratio(s["hinge"])),
    ("/ oracle", lambda s: f"{s['oracle'][0]:.3f}"),
    ("0-1 loss", lambda s: f"{s['mean_error']:.3f}"),
    ("/ best rate's", lambda s: f"{s['error'][0]:.3f}"),
    ("k-NN error", lambda s: f"{s['mean_knn']:.3f}"),
    ("/ best rate's", lambda s: f"{s['knn'][0]:.3f}"),
    ("/ least", lambda s: f"{s['knn_least'][0]:.3f}"),
    ("rounds to recover", lambda s: f"{s['rounds']:.0f}" if "rounds" in s else ""),
    ("best rate's", lambda s: f"{s['rounds_best']:.0f}" if "rounds" in s else ""),
    ("ratio", lambda s: f"{s['recovery']:.2f}" if "rounds" in s else ""),
    ("rank", lambda s: f"{s['mean_rank']:.0f}"),
    ("directions", lambda s: f"{s['directions']:.0f}"),
]


def table_rows(records):
    return [[show(line) for _, show in COLUMNS] for line in summarise(records)]


def show(console, results):
    """The results as tables."""
    for title, records in (("Drift profiles", results["main"]), ("Sweep", results["sweep"])):
        if not records:
            continue
        table = Table(title=title)
        for i, (name, _) in enumerate(COLUMNS):
            table.add_column(name, justify="right" if i else "left")
        for cells in table_rows(records):
            table.add_row(*cells)
        console.print(table)
    for name, (value, bar) in bars(results).items():
        verdict = "holds" if value <= bar else "missed"
        console.print(f"{BAR_NAMES[name]}: {value:.3f}, at most {bar:.2f}: {verdict}")


def markdown_table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def markdown(results):
    """The tables of docs/tracking.md."""
    titles = [name for name, _ in COLUMNS]
    parts = []
    found = bars(results)
    verdicts = [
        [
            BAR_NAMES[name],
            f"{value:.3f}",
            f"{bar:.2f}",
            "holds" if value <= bar else "**missed**",
        ]
        for name, (value, bar) in found.items()
    ]
    parts.append(markdown_table(["bar", "found", "at most", ""], verdicts))
    parts += [markdown_table(titles, table_rows(results[part])) for part in ("main", "sweep")]
    return "\n\n".join(parts)


BASE = {"combiner": "adanormalhedge", "divergence": "frobenius", "eta0": 0.8, "rho": 0.003}

# One setting at a time, around this base. "units": the root mean square of |x - z| is not 1 but
# this much. Differences c times as long move the metric c^4 times as far beside mu, so that this is
# mu's own rate; eta0 falls with it, or the metric's steps would grow.
VARIANTS = {
    "base": {},
    "combiner sadl": {"combiner": "sadl"},
    "combiner cbce": {"combiner": "cbce"},
    "combiner fixed_share (always on)": {"combiner": "fixed_share"},
    "combiner ader (always on)": {"combiner": "ader"},
    "first_interval 4": {"first_interval": 4},
    "first_interval 4, eta0 1.6": {"first_interval": 4, "eta0": 1.6},
    "first_interval 16": {"first_interval": 16},
    "first_interval 16, eta0 3.2": {"first_interval": 16, "eta0": 3.2},
    "eta0 0.4": {"eta0": 0.4},
    "eta0 0.6": {"eta0": 0.6},
    "eta0 1.0": {"eta0": 1.0},
    "eta0 1.6": {"eta0": 1.6},
    "rho 0": {"rho": 0.0},
    "rho 0.001": {"rho": 0.001},
    "rho 0.01": {"rho": 0.01},
    "rho 0.03": {"rho": 0.03},
    "explicit steps": {"step": "explicit"},
    "explicit steps, eta0 0.3": {"step": "explicit", "eta0": 0.3},
    "cap 1": {"cap": 1.0},
    "cap 4": {"cap": 4.0},
    "cap 8": {"cap": 8.0},
    "weight_loss logistic": {"weight_loss": "logistic"},
    "output sample": {"output": "sample", "random_state": 0},
    "output best": {"output": "best"},
    "loss logistic": {"loss": "logistic"},
    "loss squared_hinge": {"loss": "squared_hinge"},
    "divergence von_neumann": {"divergence": "von_neumann"},
    "divergence burg": {"divergence": "burg"},
    "init identity": {"init": "identity"},
    "units 2": {"units": 2.0, "eta0": 0.2},
    "units 3": {"units": 3.0, "eta0": 0.06},
    "units 5": {"units": 5.0, "eta0": 0.008},
    "units 8": {"units": 8.0, "eta0": 0.00125},
    "units 5, rho 0": {"units": 5.0, "eta0": 0.008, "rho": 0.0},
    "units 5, rho 0.03": {"units": 5.0, "eta0": 0.008, "rho": 0.03},
    "von_neumann, units 2, eta0 0.2": {"divergence": "von_neumann", "units": 2.0, "eta0": 0.2},
    "von_neumann, units 2, eta0 0.4": {"divergence": "von_neumann", "units": 2.0, "eta0": 0.4},
    "von_neumann, units 3, eta0 0.4": {"divergence": "von_neumann", "units": 3.0, "eta0": 0.4},
    "burg, eta0 0.2": {"divergence": "burg", "eta0": 0.2},
    "burg, units 1.4, eta0 0.2": {"divergence": "burg", "units": 1.4, "eta0": 0.2},
    "burg, units 2, eta0 0.2": {"divergence": "burg", "units": 2.0, "eta0": 0.2},
}

# The hinge loss of a margin, from another loss of it.
HINGE_OF = {
    "hinge": lambda loss: loss,
    "squared_hinge": lambda loss: np.sqrt(2.0 * loss),
    "logistic": lambda loss: np.maximum(
        0.0, 1.0 + loss + np.log(-np.expm1(-np.maximum(loss, 1e-300)))
    ),
}


def ablate(console, cases=None, seeds=DEVELOPMENT_SEEDS, n_pairs=3_000, variants=None):
    """Each variant on the development streams: hinge against the base's best rate."""
    variants = VARIANTS if variants is None else variants
    cases = MAIN if cases is None else cases
    found = {name: [] for name in variants}
    for case in cases:
        for seed in seeds:
            stream = case.stream(seed, n_pairs)
            pairs, y = stream.pairs()
            unit = np.sqrt(np.mean(np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1)))
            singles = single_rates(SADL(**BASE), case.n_features)
            best = min(float(each.observe(pairs, y).mean()) for each in singles.values())
            for name, settings in variants.items():
                own = {name: value for name, value in settings.items() if name != "units"}
                measured = pairs
                if "units" in settings:
                    own["scale"], measured = None, pairs * (settings["units"] / unit)
                tracker = SADL(**BASE | own)
                start = time.perf_counter()
                losses = HINGE_OF[tracker.loss](tracker.observe(measured, y))
                record = {
                    "profile": case.profile,
                    "seed": seed,
                    "hinge": float(losses.mean()),
                    "error": float(np.mean(losses > 1.0)),
                    "hinge_best": best,
                    "rank": int(tracker.rank_),
                    "directions": directions(tracker),
                    "seconds": time.perf_counter() - start,
                }
                found[name].append(record)
        console.print(f"{case.profile} done")
    return found


ABLATION_COLUMNS = ["variant", "hinge / best rate", "worst profile", "0-1 loss", "time"]


def ablation_rows(found):
    rows = []
    base = sum(r["seconds"] for r in found["base"])
    for name, records in found.items():
        logs = log_ratio(records, "hinge", "hinge_best")
        profiles = dict.fromkeys(r["profile"] for r in records)
        means = {
            profile: np.mean(
                [log for log, r in zip(logs, records, strict=True) if r["profile"] == profile]
            )
            for profile in profiles
        }
        worst = max(means, key=means.__getitem__)
        error = np.mean([r["error"] for r in records])
        seconds = sum(r["seconds"] for r in records) / base
        cells = [name, f"{np.exp(logs.mean()):.3f}", f"{np.exp(means[worst]):.3f} ({worst})"]
        rows.append([*cells, f"{error:.3f}", f"{seconds:.2f}"])
    return rows


def versions():
    return {
        "metrack": importlib.metadata.version("metrack"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "default": {name: str(value) for name, value in SADL().get_params().items()},
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
    SADL().partial_fit(np.eye(4).reshape(2, 2, 4), [1, -1])  # compiled before the clock starts
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
