"""The speed table: ratios measured in one run, one thread, against the textbook and the floor.

    make bench            all rows; a table, and benchmarks/results.json

The textbook is tests/reference: a dense ``eigh`` every step. Its time per step does not depend on
what it has learned, so one step is timed and counted for every learner and pair. The floor is what
no tracker can do without: the squared distances u'M_j u of all active learners, by BLAS.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from benchmarks import batch
from metrack import COMID, SADL, MetricTracker
from metrack.streams import DriftingClusters
from tests.reference.comid import DenseCOMID

RESULTS = Path(__file__).parent / "results.json"


def seconds(work, repeat=3):
    """The shortest of a few runs: the rest is other people's noise."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def blobs(rng, n_pairs, n, informative=3, separation=3.0, n_clusters=3):
    """Pairs of points from Gaussian clusters that differ in some of n features."""
    centres = np.zeros((n_clusters, n))
    centres[:, :informative] = separation * rng.normal(size=(n_clusters, informative))
    which = rng.integers(n_clusters, size=(n_pairs, 2))
    pairs = centres[which] + rng.normal(size=(n_pairs, 2, n))
    return pairs, np.where(which[:, 0] == which[:, 1], 1, -1)


def ranks(learner):
    """Mean rank over the active learners of a bank."""
    active = range(learner.engine_.n_active)
    return round(float(np.mean([len(learner.engine_.metric(j).values) for j in active])), 1)


def row(name, ours, reference, bar, goal, **facts):
    """One line of the table; times are seconds per pair."""
    return {
        "what": name,
        "ours_us": ours * 1e6,
        "reference_us": reference * 1e6,
        "ratio": reference / ours,
        "bar": bar,
        "goal": goal,
        **facts,
    }


def textbook_step(n, divergence="frobenius", n_steps=200):
    """Seconds of one dense step: an ``eigh`` of n x n. What was learned before does not matter."""
    textbook = DenseCOMID(n, rho=0.01, learning_rate=0.1, divergence=divergence)
    us = np.random.default_rng(0).normal(size=(n_steps, n))

    def some():
        for t, u in enumerate(us):
            textbook.observe(u, 1 if t % 2 else -1)

    return seconds(some, 20) / n_steps


def against_textbook(name, tracker, pairs, y):
    """A tracker's time per pair against as many textbook steps: one per learner."""
    losses = tracker.observe(pairs, y)
    ours = seconds(lambda: tracker.fit(pairs, y)) / len(y)
    steps = len(tracker.scales_)
    if tracker.combiner != "fixed_share":
        steps = np.mean(np.floor(np.log2(np.arange(1, len(y) + 1))) + 1)
    learners = tracker.resolved_.learners
    facts = {"n": 25, "rank": ranks(tracker), "active": float((losses > 0).mean())}
    reference = steps * textbook_step(25, learners.divergence)
    return row(name, ours, reference, 100, 200, **facts)


def sadl_25_clear(n_pairs=10_000):
    """SADL as published on clusters that three of 25 features tell apart.

    eta0 and rho are those of the lowest loss on another seed, of grids of 4 and 5.
    """
    pairs, y = blobs(np.random.default_rng(0), n_pairs, 25)
    tracker = SADL.as_published(eta0=0.001, rho=1.0, random_state=0)
    return against_textbook("SADL as published, clear clusters / textbook", tracker, pairs, y)


def sadl_25_drift(n_pairs=10_000):
    """SADL as published on the paper's drifting stream, where the metric is nearly of full rank."""
    pairs, y = drifting(n_pairs)
    tracker = SADL.as_published(eta0=0.005, rho=0.1, random_state=0)
    return against_textbook("SADL as published, drifting clusters / textbook", tracker, pairs, y)


def tracker_default(n_features, n_pairs=10_000):
    """The default tracker against textbook learners that take the same steps."""
    pairs, y = blobs(np.random.default_rng(0), n_pairs, n_features)
    tracker = MetricTracker()
    losses = tracker.observe(pairs, y)
    ours = seconds(lambda: tracker.fit(pairs, y)) / len(y)
    targets = [bank for bank in tracker.engine_.banks if bank.name == "target"]
    steps = sum(int(np.sum(1 + bank.pace.replays)) for bank in targets)
    facts = {"n": n_features, "rank": tracker.rank_, "active": float((losses > 0).mean())}
    reference = steps * textbook_step(n_features, "burg")
    return row("MetricTracker / textbook", ours, reference, 100, 200, **facts)


def sadl_25(n_pairs=10_000):
    """The paper's ensemble on the drifting stream."""
    pairs, y = drifting(n_pairs)
    return against_textbook("SADL / textbook", SADL(), pairs, y)


def bank_25(divergence, rho, n_pairs=10_000):
    """A bank of 12 always-on learners against 12 textbook learners."""
    pairs, y = blobs(np.random.default_rng(0), n_pairs, 25)
    settings = {"divergence": divergence, "rho": rho}
    tracker = SADL(combiner="fixed_share", eta0=2.0, **settings)
    name = f"12 learners, {divergence}, rho = {rho} / 12 textbooks"
    return against_textbook(name, tracker, pairs, y)


def drifting(n_pairs):
    """The paper's stream, again and again until there are pairs enough."""
    streams = [DriftingClusters(random_state=seed) for seed in range(n_pairs // 6_000 + 1)]
    batches = [stream.pairs(0, len(stream)) for stream in streams]
    pairs, y = (np.concatenate(part)[:n_pairs] for part in zip(*batches, strict=True))
    return pairs, y


def sadl_768(n_pairs=4_000):
    """Frozen embeddings: against the distances alone."""
    pairs, y = blobs(np.random.default_rng(0), n_pairs, 768, 32, 4.0, 20)
    tracker = MetricTracker(n_components=32)
    losses = tracker.observe(pairs, y)
    ours = seconds(lambda: tracker.fit(pairs, y), 2) / n_pairs
    n_learners = len(tracker.scales_)
    stacked = np.random.default_rng(1).normal(size=(n_learners * 32, 768))
    differences = pairs[:, 0] - pairs[:, 1]

    def floor():
        for u in differences:
            w = stacked @ u
            (w * w).reshape(n_learners, 32).sum(axis=1)

    facts = {"n": 768, "rank": ranks(tracker), "active": float((losses > 0).mean())}
    name = f"MetricTracker, {n_learners} learners of rank 32 / their distances by BLAS"
    line = row(name, ours, seconds(floor) / n_pairs, 10, 4, **facts)
    return line | {"ratio": 1 / line["ratio"], "at_most": True}


def word_counts(n_pairs):
    """Sparse points of 2,369 features, and pairs of them with about 100 non-zeros."""
    rng = np.random.default_rng(0)
    points = sp.random(2_000, 2_369, density=50 / 2_369, random_state=rng, format="csr")
    pairs = rng.integers(2_000, size=(n_pairs, 2))
    kind = np.asarray(points[:, :400].sum(axis=1)).ravel() > 4
    return points, pairs, np.where(kind[pairs[:, 0]] == kind[pairs[:, 1]], 1, -1)


def within(name, learner, pairs, y, bar):
    """A row for a bound on the time that a pair takes, in us."""
    losses = learner.observe(pairs, y)
    ours = seconds(lambda: learner.observe(pairs, y), 2) / len(y)
    facts = {"n": 2_369, "rank": learner.rank_, "active": float((losses > 0).mean())}
    line = row(name, ours, bar * 1e-6, 1, 0.5, **facts)
    return line | {"ratio": 1 / line["ratio"], "at_most": True}


def words_low_rank(n_pairs=3_000):
    """Nuclear norm, rank 16: at most 0.3 ms a pair."""
    points, pairs, y = word_counts(n_pairs)
    learner = COMID(n_components=16, preprocessor=points)
    return within("COMID, 100 non-zeros, rank 16 / 0.3 ms", learner, pairs, y, 300)


def words_l1(n_pairs=3_000):
    """Elementwise L1: at most 1 ms a pair."""
    points, pairs, y = word_counts(n_pairs)
    learner = COMID(regularizer="l1", n_components=5, preprocessor=points)
    return within("COMID with L1, 100 non-zeros / 1 ms", learner, pairs, y, 1_000)


def words_l1_tracked(n_pairs=4_000):
    """The whole ensemble with elementwise L1: at most 12 ms a pair."""
    points, pairs, y = word_counts(n_pairs)
    tracker = SADL(regularizer="l1", n_components=5, first_interval=1, preprocessor=points)
    return within("SADL with L1, 12 learners and more / 12 ms", tracker, pairs, y, 12_000)


def comid_2369(n_pairs=3_000):
    """Word counts: about 100 non-zeros a pair, against the textbook step."""
    points, pairs, y = word_counts(n_pairs)
    learner = COMID(n_components=32, preprocessor=points)
    losses = learner.observe(pairs, y)
    ours = seconds(lambda: learner.fit(pairs, y)) / n_pairs
    textbook = DenseCOMID(2_369, rho=0.001, learning_rate=0.4)
    u = (points[[0]] - points[[1]]).toarray().ravel()
    reference = seconds(lambda: textbook.observe(u, -1), 1)
    facts = {"n": 2_369, "rank": learner.rank_, "active": float((losses > 0).mean())}
    name = "COMID, 100 non-zeros, rank 32 / textbook"
    return row(name, ours, reference, 5_000, 20_000, **facts)


def growth():
    """Time a pair as the stream goes on: proportional to log t on the cover."""
    pairs, y = blobs(np.random.default_rng(0), 20_000, 25)
    tracker = SADL(combiner="sadl", regularizer="nuclear", rho=0.05)
    marks, times, seen = (10_000, 100_000, 1_000_000), {}, 0
    for mark in marks:
        while seen < mark:
            start = time.perf_counter()
            tracker.observe(pairs, y)
            last = (time.perf_counter() - start) / len(y)
            seen += len(y)
        times[mark] = {"us": last * 1e6, "learners": len(tracker.scales_)}
    return times


def start_up():
    """Seconds to import, and to compile what a first partial_fit needs from an empty cache."""
    first = (
        "import time; s = time.perf_counter(); from metrack import SADL; import numpy as np;"
        "t = time.perf_counter(); MetricTracker().partial_fit(np.eye(4).reshape(2, 2, 4), [1, -1]);"
        "print(t - s, time.perf_counter() - t)"
    )
    plain = "import time; s = time.perf_counter(); import metrack; print(time.perf_counter() - s)"
    with tempfile.TemporaryDirectory() as empty:
        env = os.environ | {"NUMBA_CACHE_DIR": empty}

        def run(code):
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
            return [float(word) for word in done.stdout.split()]

        run(plain)
        imported = run(plain)[0]
        compiled = run(first)[1]
    return {"import_metrack_s": imported, "cold_compile_s": compiled}


def show(console, rows):
    """The rows as a table."""
    table = Table(title="Speed, one thread")
    for title in (
        "what",
        "n",
        "rank",
        "active",
        "us a pair",
        "reference us",
        "ratio",
        "bar (goal)",
    ):
        table.add_column(title, justify="left" if title == "what" else "right")
    for line in rows:
        sign = "<=" if line.get("at_most") else ">="
        table.add_row(
            line["what"],
            str(line["n"]),
            str(line["rank"]),
            f"{line['active']:.0%}",
            f"{line['ours_us']:.1f}",
            f"{line['reference_us']:.0f}",
            f"{line['ratio']:.3g}",
            f"{sign} {line['bar']} ({line['goal']})",
        )
    console.print(table)


def main():
    """Measure, print and write everything."""
    console = Console(width=140)
    MetricTracker().partial_fit(
        np.eye(4).reshape(2, 2, 4), [1, -1]
    )  # compiled before the clock starts
    rows = []
    for measure in (
        sadl_25_clear,
        sadl_25_drift,
        partial(tracker_default, 25),
        partial(tracker_default, 64),
        sadl_25,
        partial(bank_25, "burg", 0.0),
        partial(bank_25, "frobenius", 0.05),
        partial(bank_25, "frobenius", 0.003),
        sadl_768,
        comid_2369,
        words_low_rank,
        words_l1,
        words_l1_tracked,
    ):
        rows.append(measure())
        console.print(f"measured: {rows[-1]['what']}")
    show(console, rows)
    times = growth()
    for mark, found in times.items():
        console.print(
            f"SADL on the cover, pair {mark:,}: {found['us']:.1f} us, {found['learners']} learners"
        )
    started = start_up()
    console.print(
        f"import metrack {started['import_metrack_s']:.2f} s; "
        f"first partial_fit from an empty cache {started['cold_compile_s']:.1f} s"
    )
    batch_rows = batch.measure(console)
    machine = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "threads": 1,
        "processor": platform.machine(),
    }
    results = {
        "rows": rows,
        "batch": batch_rows,
        "growth": times,
        "start_up": started,
        "machine": machine,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"written to {RESULTS.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
