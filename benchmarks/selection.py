"""Which learners the default has: forward and backward selection from a pool, on recorded streams.

    make bench-select                         both tables; records are kept in .selection
    make bench-ablation                       the default's tables without each row, and each kind
    python benchmarks/selection.py --wide     more than 64 features alone

Learners never look at the combiner. So a stream is gone through once, with all learners of a pool,
and what they predicted is kept; then any subset is weighed as the tracker would weigh it, exactly.
A table starts with plain distance, and takes up what lowers the score most, less what its time
costs; after each step it gives back what it does without. The score is the mean over groups of
streams of log loss: of the mean hinge loss, or, where few pairs are alike, of 1 - AP of what was
predicted before it was learned, in four stretches of the stream. Real data counts twice. (On a
basis, the order of directions is that of the whole pool: there a table is weighed almost as the
tracker would.)

Chosen on development seeds of the families, linkage, and tables with names from a to m; what is
reported elsewhere was never looked at here.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from joblib import Parallel, delayed

from benchmarks import drift_streams, families, family_streams, linkage_streams, tables, width
from benchmarks.family_streams import SLOW, FamilyStream, banking, steady, switching
from benchmarks.measures import average_precision
from metrack.engine.ensemble.combine import COUNTERS, Roster, State, Told, combine, new_experts
from metrack.engine.ensemble.page_hinkley import PAGE_HINKLEY
from metrack.engine.ensemble.scores import new_scores
from metrack.engine.ensemble.views import AS_THEY_COME, OWN
from metrack.engine.learners.bank import ALL, FOREVER, Predictions, Row
from metrack.engine.numerics.pairs import Pairs
from metrack.estimators.resolved.tables import (
    BASIS,
    NONE,
    TABLE,
    WHOLE_UP_TO,
    WIDE_TABLE,
    learners_for,
)
from metrack.estimators.resolved.tracker import TRACKING, TrackerSettings
from metrack.streams import LabelledStream, Segment

RECORDS = Path(__file__).parents[1] / ".selection"
VIEWS = (AS_THEY_COME, OWN)
STRETCHES = 4
LAST = 1_000  # points that another is compared with
SMALL_SEED = 6001
REAL = ("dblp", "amazon", "digits", "banking", "banking, wide", "tables", "real drift")
EVERY_TABLE = 4  # all would take most of the time
MOST_ROWS = 12
NO_WORSE = 0.001  # of log loss: what costs less is left out
PRICE = 0.0004  # of log loss, for each microsecond that a pair takes longer
TIMED = 2_000  # pairs

NARROW_POOL = [
    Row("plain", AS_THEY_COME, memory=1000),
    Row("plain", OWN, memory=1000),
    *(Row("target", v, r, m, p) for v, r, (m, p) in product(
        VIEWS, (0.05, 0.1, 0.2, 0.4),
        ((NONE, 0.0), (48, 1.0), (64, 0.33), (256, 0.33), (1024, 0.0)),
    )),
    *(Row("target", v, 0.02, 4096) for v in VIEWS),
    *(Row("target", v, 0.02, 4096) for v in VIEWS),
    *(Row("target", v, r, m, 0.33, width=12) for v, r, m in product(VIEWS, (0.1, 0.3), (64, 256))),
    *(Row("additive", v, r, m) for v, r, m in product(VIEWS, (0.06, 0.2), (125, 1000))),
    *(Row("moment", v, memory=m) for v, m in product(VIEWS, (200, 400, 800))),
    *(Row("gradient", v, r, m, mean=a) for v, r, (m, a) in product(
        VIEWS, (0.05, 0.1, 0.2, 0.4), ((256, 64), (ALL, 1024)),
    )),
]  # fmt: skip
WIDE_POOL = [
    Row("plain", AS_THEY_COME, memory=1000),
    Row("plain", OWN, memory=1000, width=16),
    *(Row("gradient", v, r, m, mean=a) for v, r, (m, a) in product(
        VIEWS, (0.1, 0.2, 0.4, 0.8), ((256, 256), (ALL, 256), (ALL, 1024)),
    )),
    *(Row("target", v, r, m, p, width=w) for v, r, (m, p), w in product(
        VIEWS, (0.1, 0.3, 0.6), ((64, 0.33), (256, 0.33), (1024, 0.0)), (16, 64),
    )),
    *(Row("additive", v, 0.2, 1000, width=w) for v, w in product(VIEWS, (16, 64))),
    *(Row("moment", v, memory=m, width=w) for v, m, w in product(VIEWS, (200, 800), (24, 64))),
]  # fmt: skip
N_NARROW, N_WIDE = 25, 128  # features of families
WIDE_KINDS = [
    FamilyStream("wide clusters", "static", partial(steady, n=N_WIDE)),
    FamilyStream("wide clusters", "slow", partial(steady, n=N_WIDE, drift=SLOW)),
    FamilyStream("wide clusters", "switches", partial(switching, n=N_WIDE)),
    FamilyStream("wide clusters", "heavy tails", partial(switching, n=N_WIDE, tails=3)),
    FamilyStream("wide units", "static", partial(steady, n=N_WIDE, decades=4.0)),
    FamilyStream("wide units", "switches", partial(switching, n=N_WIDE, decades=4.0)),
    FamilyStream("wide, few alike", "static", partial(steady, n=N_WIDE, similar=0.05), True),
    FamilyStream("wide, few alike", "switches", partial(switching, n=N_WIDE, similar=0.05), True),
]


class Stream(NamedTuple):
    """Pairs to record on, and how they count."""

    group: str
    name: str
    few_alike: bool
    make: object  # a function without arguments: differences and judgements


class Record(NamedTuple):
    """What each learner of a pool predicted along a stream; two columns for a row of moments."""

    stream: Stream
    q: np.ndarray
    mu: np.ndarray
    y: np.ndarray


def of_family(kind, seed):
    """Differences of a family's stream."""

    def make():
        stream = kind.make(seed, family_streams.QUESTION)
        pairs, y = stream.pairs()
        pairs = stream.preprocessor[pairs] if pairs.ndim == 2 else pairs
        return pairs[:, 0] - pairs[:, 1], y

    return Stream(kind.family, f"{kind.family}, {kind.name}, {seed}", kind.answered, make)


def of_table(name, X, y):
    """Differences of random pairs of a table."""

    def make():
        rng = np.random.default_rng(tables.SEED)
        rows, judged = tables.random_pairs(y, tables.N_PAIRS, rng)
        return X[rows[:, 0]] - X[rows[:, 1]], judged

    return Stream("tables", f"table {name}", False, make)


def of_points(name, points):
    """Differences of points that drift and earlier ones among the last, as many alike as not."""

    def make():
        rng, found = np.random.default_rng(tables.SEED), []
        for t in range(1, len(points.y)):
            same = points.y[max(t - LAST, 0) : t] == points.y[t]
            wanted = np.flatnonzero(same == (t % 2 == 0))
            if len(wanted):
                other = max(t - LAST, 0) + int(rng.choice(wanted))
                found.append((points.X[t] - points.X[other], 1 if t % 2 == 0 else -1))
        differences, y = zip(*found, strict=True)
        return np.array(differences), np.array(y)

    return Stream("real drift", f"points {name}", False, make)


def of_small_directions(spread, apart):
    """Differences of points whose second question is about directions of little variance."""

    def make():
        points, labels = width.small_variance(spread, apart, SMALL_SEED)
        schedule = [Segment("large", "large", width.FIRST), Segment("small", "small", 3_000)]
        source = LabelledStream(
            points, labels, schedule=schedule, similar=0.5, random_state=SMALL_SEED
        )
        rows, y = source.pairs()
        return points[rows[:, 0]] - points[rows[:, 1]], y

    return Stream("small directions", f"small directions, {spread:g}, {apart:g}", False, make)


def of_linkage(name, judged, seed):
    """Differences of judged records."""

    def make():
        rows, y = judged.order(seed)
        return judged.X[rows[:, 0]] - judged.X[rows[:, 1]], y

    return Stream(name, f"{name}, {seed}", True, make)


def narrow_streams(path):
    """Up to 64 features."""
    kinds = [*family_streams.CHOSEN_ON, *family_streams.ANSWERED]
    found = [of_family(kind, families.DEVELOPMENT_SEEDS[0]) for kind in kinds]
    chosen = [(n, *t) for n, t in tables.load(path).items() if not tables.to_report(n)]
    found += [of_table(*t) for t in chosen[::EVERY_TABLE] if t[1].shape[1] <= WHOLE_UP_TO]
    found += [of_family(FamilyStream("banking", "n = 64", partial(banking, n_directions=64)), 3001)]
    weather = drift_streams.from_file(drift_streams.folder() / "weather.npz")
    return [*found, of_points("weather", weather)]


def wide_streams(_):
    """More."""
    sets = linkage_streams.load(linkage_streams.default_path())
    found = [of_linkage(name, each, seed) for name, each in sets.items() for seed in (6001, 6002)]
    found += [of_family(kind, 3001) for kind in (*family_streams.WIDE, *WIDE_KINDS)]
    directions = FamilyStream("banking", "n = 256", partial(banking, n_directions=256))
    found += [of_family(directions, 3001)]
    found += [of_small_directions(*kind) for kind in width.SMALL]
    return [*found, of_points("gas", drift_streams.from_file(drift_streams.folder() / "gas.npz"))]


def record(stream, pool):
    """What a pool predicts along a stream: gone through once, and kept."""
    text = json.dumps([stream.name, pool])
    path = RECORDS / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        differences, y = stream.make()
        q, mu = predicted(pool, differences, y)
        RECORDS.mkdir(exist_ok=True)
        partial = path.with_suffix(".part.npz")
        np.savez(partial, q=q.astype(np.float32), mu=mu.astype(np.float32), y=y)
        partial.rename(path)
    with np.load(path) as data:
        return Record(stream, data["q"], data["mu"], data["y"].astype(float))


def predicted(pool, differences, y):
    """Squared distances and thresholds, (n_pairs, rows of the pool, 2)."""
    n = differences.shape[1]
    rows = learners_for(n, pool)
    ensemble = TrackerSettings(n, "root_mean_square", rows, BASIS).build()
    u = np.ascontiguousarray(differences, dtype=float)
    blocks = []
    pairs = Pairs(u.ravel(), np.arange(n), np.empty(0, np.int64), y.astype(float))
    ensemble.observe(pairs, np.empty(0), blocks)
    q, mu = np.empty((2, len(y), len(pool), 2))
    for places, each in zip(places_of_banks(rows), zip(*blocks, strict=True), strict=True):
        all_q, all_mu = (np.concatenate(part) for part in zip(*each, strict=True))
        forms = all_q.shape[1] // len(places)
        for k, place in enumerate(places):
            at = [k * forms, k * forms + forms - 1]
            q[:, place], mu[:, place] = all_q[:, at], all_mu[:, at]
    return q, mu


def places_of_banks(rows):
    """Places in a pool of each bank's rows, in the order of banks."""
    for space in dict.fromkeys((row.view, row.width > 0) for row in rows):
        own = [i for i, row in enumerate(rows) if (row.view, row.width > 0) == space]
        for bank in dict.fromkeys((rows[i].kind, rows[i].width) for i in own):
            yield [i for i in own if (rows[i].kind, rows[i].width) == bank]


def loss(found, rows, pool):
    """The log loss of some rows on a record."""
    two = [(i, form) for i in rows for form in ((0, 1) if pool[i].kind == "moment" else (0,))]
    q = np.stack([found.q[:, i, form] for i, form in two], axis=1).astype(float)
    mu = np.stack([found.mu[:, i, form] for i, form in two], axis=1).astype(float)
    experts = new_experts(np.full(len(two), FOREVER), TRACKING.combiner)
    state = State(experts, COUNTERS(), PAGE_HINKLEY(), new_scores())
    told = Told(np.empty(len(q)), np.empty(0), np.empty(len(q)))
    roster = Roster(0, len(two))
    combine(state, TRACKING, roster, Predictions(q, mu), found.y, np.empty(0), told)
    if not found.stream.few_alike:
        return float(np.log(told.losses.mean()))
    ends = np.linspace(0, len(q), STRETCHES + 1).astype(int)
    stretches = [slice(*each) for each in pairwise(ends)]
    missed = [1.0 - average_precision(told.scores[s], found.y[s] > 0) for s in stretches]
    return float(np.mean(np.log(missed)))


def score(records, rows, pool):
    """Mean over groups of the mean log loss of their streams."""
    groups = {}
    for found in records:
        groups.setdefault(found.stream.group, []).append(loss(found, rows, pool))
    return {name: float(np.mean(each)) for name, each in groups.items()}


def mean(groups):
    """Over groups; real data counts twice."""
    counts = [2.0 if name in REAL else 1.0 for name in groups]
    return float(np.average(list(groups.values()), weights=counts))


def microseconds(row, n):
    """What a learner takes a pair on so many features, with plain distance beside it."""
    u = np.random.default_rng(0).normal(size=(TIMED, n))
    y = np.where(u[:, 0] ** 2 < 0.5, 1.0, -1.0)
    pairs = Pairs(u.ravel(), np.arange(n), np.empty(0, np.int64), y)
    engine = TrackerSettings(n, "root_mean_square", learners_for(n, [row]), BASIS).build()
    times = []
    for _ in range(4):  # the first compiles
        start = time.process_time()
        engine.observe(pairs, np.empty(0))
        times.append(time.process_time() - start)
    return 1e6 * min(times[1:]) / TIMED


def prices(pool, n):
    """What each row has to bring to be worth its time; rows of the same size cost the same."""
    sizes = {row._replace(rate=0.1, mean=1, view=AS_THEY_COME, pull=0.0) for row in pool}
    known = {size: microseconds(size, n) for size in sizes}
    return [
        PRICE * known[row._replace(rate=0.1, mean=1, view=AS_THEY_COME, pull=0.0)] for row in pool
    ]


def select(records, pool, n, most=MOST_ROWS, jobs=2):
    """Forward, and back after each step; yields each table with its score.

    The first row of the pool is plain distance, and always in: nothing may be worse.
    """
    price = prices(pool, n)
    with Parallel(jobs, backend="threading") as parallel:

        def best(tables):
            scores = parallel(delayed(score)(records, t, pool) for t in tables)
            return min(
                ((paid(found, t), found, t) for found, t in zip(scores, tables, strict=True)),
                key=lambda each: each[0],
            )

        def paid(found, table):
            return mean(found) + sum(price[i] for i in table)

        chosen, known = [0], {}
        while len(chosen) < most:
            value, found, chosen = best([[*chosen, i] for i in range(len(pool)) if i not in chosen])
            known[len(chosen)] = value
            yield chosen, found
            while len(chosen) > 2:
                less, fewer_found, fewer = best(
                    [[i for i in chosen if i != left] for left in chosen[1:]]
                )
                if less > min(known.get(len(fewer), np.inf) - 1e-6, value + NO_WORSE):
                    break
                chosen, found, value = fewer, fewer_found, less
                known[len(chosen)] = value
                yield chosen, found


def ablate(records, table):
    """Yields what is left out, and the score without it."""
    everything = list(range(len(table)))
    yield "nothing", score(records, everything, table)
    for i, row in enumerate(table):
        yield str(row), score(records, [j for j in everything if j != i], table)
    for kind in dict.fromkeys(row.kind for row in table):
        left = [i for i, row in enumerate(table) if row.kind != kind]
        yield f"all of {kind}", score(records, left, table)


def printed(title, found):
    """A score, and its groups."""
    groups = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    print(f"{title}: {mean(found):.4f} ({groups})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wide", action="store_true", help="More than 64 features alone.")
    parser.add_argument("--narrow", action="store_true", help="Up to 64 features alone.")
    parser.add_argument("--ablate", action="store_true", help="Of the default's tables.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", type=Path, default=tables.TABLES)
    asked = parser.parse_args()
    both = asked.wide == asked.narrow
    for wanted, streams, pool, table, n in (
        (asked.narrow or both, narrow_streams, NARROW_POOL, TABLE, N_NARROW),
        (asked.wide or both, wide_streams, WIDE_POOL, WIDE_TABLE, 2 * N_WIDE),
    ):
        if not wanted:
            continue
        pool = list(table) if asked.ablate else pool
        records = []
        for stream in streams(asked.tables):
            records.append(record(stream, pool))
            print(f"recorded {stream.name}: {len(records[-1].y):,} pairs", flush=True)
        if asked.ablate:
            for left_out, found in ablate(records, pool):
                printed(f"without {left_out}", found)
            continue
        for rows, found in select(records, pool, n, jobs=asked.jobs):
            printed(f"\n{len(rows)} rows", found)
            for i in rows:
                print(f"    {pool[i]}", flush=True)


if __name__ == "__main__":
    main()
