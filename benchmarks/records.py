"""Records compared field by field: the trackers beside batch models on the same comparisons.

    make bench-linkage              docs/figures/records.json, among others; half an hour
    python benchmarks/records.py --without-dedupe     with the figures of dedupe that are kept

The records behind the two sets of benchmarks/linkage.py, compared by ``Comparisons()``, and with
``steps=True``. Three parts:

sets        AP and best F1 on the test pairs after one pass over all pairs, in five random orders;
            logistic regression and random forests are fitted to all pairs at once. Also 13
            comparisons, and the 91 products of two of them.
changes     half-way through 5,000 pairs the records or the question change. AP on test pairs that
            have changed, too, 250 to 2,000 answers after the change, beside models that are fitted
            anew to all pairs so far, or to the last ones.
asking      AP after so many answers to questions of ``ActivePairs``, beside random candidates and
            dedupe's own way (benchmarks/dedupe_linkage.py, in an environment of its own)
speed       pairs compared and learned in a second, of records with a vocabulary of 50,000 trigrams.

Time is the processor's, one thread.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.linkage import rounded
from benchmarks.linkage_streams import ORDERS, PLACES, SHARED, TITLES
from benchmarks.measures import average_precision, best_f1
from metrack import Differences, KernelTracker, MetricTracker
from metrack.compare import ActivePairs, Comparisons
from metrack.compare.values import number_of

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "figures" / "records.json"
DEDUPE = ROOT / ".venv-dedupe" / "bin" / "python"
BEFORE, AFTER, EVERY = 3_000, 2_000, 250  # pairs, around a change
WINDOWS = (250, 500, 1_000, 2_000, None)  # the last pairs that models are fitted to; None: all
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
TREES = 200
AT_A_TIME = 5  # questions
LOOKS = (25, 50, 100, 200, 300, 500, 1_000)  # answers
DEDUPE_LOOKS, DEDUPE_SEEDS = LOOKS[:5], ORDERS[:2]  # it takes minutes to ask 300 questions
FEW = 13  # comparisons of which products are made

TRACKERS = {"`MetricTracker()`": MetricTracker, "`KernelTracker()`": KernelTracker}


def logistic(seed=0, penalty=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=3_000))


def forest(seed=0):
    return RandomForestClassifier(TREES, random_state=seed)


BATCH = {"logistic regression": logistic, "random forest": forest}


@dataclass(frozen=True)
class Judged:
    """Records of two sources, and pairs of rows with judgements, to learn from and to test on."""

    left: list
    right: list
    train: np.ndarray
    alike: np.ndarray
    test: np.ndarray
    test_alike: np.ndarray


def default_folder():
    return Path(os.environ.get("METRACK_RECORDS", SHARED / "data"))


def load(folder, name):
    with gzip.open(Path(folder) / f"records-{name}.json.gz", "rt", encoding="utf-8") as file:
        found = json.load(file)
    rows = {
        part: np.array([pair[1:] for pair in found["pairs"] if pair[0] == part])
        for part in ("train", "test")
    }
    train, test = rows["train"], rows["test"]
    left, right = found["left"], found["right"]
    return Judged(left, right, train[:, :2], train[:, 2] > 0, test[:, :2], test[:, 2] > 0)


def labels(alike):
    return np.where(alike, 1, -1)


def distances(model, u):
    """By which pairs are ranked."""
    if hasattr(model, "pair_distance"):
        return model.pair_distance(Differences(u))
    return -model.predict_proba(u)[:, 1]


# Sets


def one_pass(make, train, alike, test, test_alike, orders):
    """A tracker, in each of several orders."""
    found = {"ap": [], "f1": [], "seconds": []}
    for seed in orders:
        order = np.random.default_rng(seed).permutation(len(alike))
        tracker, before = make(), time.process_time()
        tracker.partial_fit(Differences(train[order]), labels(alike[order]))
        _tell(found, distances(tracker, test), test_alike, time.process_time() - before)
    return found


def all_at_once(make, train, alike, test, test_alike, several):
    """A batch model, for each of several ways to make it."""
    found = {"ap": [], "f1": [], "seconds": []}
    for how in several:
        before = time.process_time()
        model = make(**how).fit(train, alike)
        _tell(found, distances(model, test), test_alike, time.process_time() - before)
    return found


def _tell(found, far, alike, seconds):
    found["ap"].append(average_precision(far, alike))
    found["f1"].append(best_f1(far, alike))
    found["seconds"].append(seconds)


def on_features(train, test, judged, orders):
    """All methods on the same features; of logistic regression the best penalty in hindsight."""
    data = train, judged.alike, test, judged.test_alike
    found = {name: one_pass(make, *data, orders) for name, make in TRACKERS.items()}
    penalties = all_at_once(logistic, *data, [{"penalty": c} for c in PENALTIES])
    best = int(np.argmax(penalties["ap"]))
    found["logistic regression"] = {name: [each[best]] for name, each in penalties.items()}
    found["logistic regression"]["penalty"] = PENALTIES[best]
    found["random forest"] = all_at_once(forest, *data, [{"seed": seed} for seed in orders])
    return found


def products(u):
    """Of all pairs of features, and of each with itself."""
    i, j = np.triu_indices(u.shape[1])
    return u[:, i] * u[:, j]


def on_set(judged, orders):
    found = {}
    for title, steps in (("`Comparisons()`", False), ("`Comparisons(steps=True)`", True)):
        before = time.process_time()
        compare = Comparisons(steps=steps).fit(judged.left, judged.right)
        left, right = compare.prepare(judged.left), compare.prepare(judged.right)
        train, test = (compare.transform(left, right, r) for r in (judged.train, judged.test))
        seconds = time.process_time() - before
        u, v = np.asarray(train), np.asarray(test)
        found[title] = {"n_features": u.shape[1], "seconds": seconds}
        found[title]["methods"] = on_features(u, v, judged, orders)
        if not steps:
            plain = np.linalg.norm(v, axis=1)
            found[title]["plain"] = average_precision(plain, judged.test_alike)
            few = [i for i, name in enumerate(train.names) if "missing" not in name][:FEW]
            some = {f"{len(few)} comparisons": (u[:, few], v[:, few])}
            made = products(u[:, few]), products(v[:, few])
            some[f"their {made[0].shape[1]} products"] = made
            for name, (a, b) in some.items():
                own = on_features(a, b, judged, orders)
                found[name] = {"n_features": a.shape[1], "methods": own}
    return found


# Changes


def without_codes(judged):
    """The second source's texts lose all words with a digit; prices are no words."""
    return replace(judged, right=[_changed(each, "title", _no_codes) for each in judged.right])


def without_years(judged):
    return replace(judged, right=[{**each, "year": None} for each in judged.right])


def abbreviated(judged):
    """The second source's titles: the first four letters of each word."""
    return replace(judged, right=[_changed(each, "title", _short) for each in judged.right])


def _changed(record, field, change):
    return {**record, field: change(record[field] or "")}


def _no_codes(text):
    return " ".join(word for word in text.split() if not re.search(r"\d", word))


def _short(text):
    return " ".join(word[:4] for word in text.split())


def same_place(judged):
    """Alike are publications that came out in the same place."""

    def alike(rows):
        return np.array([PLACES.get(a["venue"]) == b["venue"] for a, b in _records(judged, rows)])

    return replace(judged, alike=alike(judged.train), test_alike=alike(judged.test))


def same_price(judged):
    """Alike are only offers of the same product whose prices are not a fifth apart."""

    def near(rows):
        prices = np.array(
            [[number_of(each["price"]) for each in pair] for pair in _records(judged, rows)]
        )
        return ~(np.abs(prices[:, 0] - prices[:, 1]) > 0.2 * prices.max(axis=1))

    alike, test_alike = judged.alike & near(judged.train), judged.test_alike & near(judged.test)
    return replace(judged, alike=alike, test_alike=test_alike)


def _records(judged, rows):
    return [(judged.left[i], judged.right[j]) for i, j in rows.tolist()]


CHANGES = {
    "dblp": {
        "one source drops the years": without_years,
        "one source abbreviates titles": abbreviated,
        "now the same place counts": same_place,
    },
    "amazon": {
        "one source drops model numbers": without_codes,
        "one source abbreviates titles": abbreviated,
        "now about the same price counts, too": same_price,
    },
}


def compared(before, after):
    """Comparisons of the pairs to learn from, before and after, and of those to test on."""
    compare = Comparisons().fit(before.left, before.right)
    found = []
    for judged in (before, after):
        left, right = compare.prepare(judged.left), compare.prepare(judged.right)
        u, v = (np.asarray(compare.transform(left, right, r)) for r in (judged.train, judged.test))
        found.append((u, judged.alike, v, judged.test_alike))
        compare.partial_fit(after.right)
    return found


def along(data, seed, before=BEFORE, after=AFTER, every=EVERY, windows=WINDOWS):
    """AP of each method at each look, by the number of answers after the change."""
    (u, y, *_), (u2, y2, test, test_alike) = data
    order = np.random.default_rng(seed).permutation(len(y))[: before + after]
    first, then = order[:before], order[before:]
    stream = np.concatenate([u[first], u2[then]])
    alike = np.concatenate([y[first], y2[then]])
    looks = range(before, before + after + 1, every)
    found = {}
    for name, make in TRACKERS.items():
        tracker, fresh = make(), make()
        found[name] = []
        for start, stop in zip([0, *looks], looks, strict=False):
            tracker.partial_fit(Differences(stream[start:stop]), labels(alike[start:stop]))
            found[name].append(average_precision(distances(tracker, test), test_alike))
        fresh.partial_fit(Differences(stream[before:]), labels(alike[before:]))
        found[f"{name}, new pairs alone"] = average_precision(distances(fresh, test), test_alike)
    for name, make in BATCH.items():
        for window in windows:
            own = []
            for stop in looks:
                rows = slice(0 if window is None else max(stop - window, 0), stop)
                if len(set(alike[rows].tolist())) < 2:
                    own.append(float(test_alike.mean()))
                    continue
                model = make(seed).fit(stream[rows], alike[rows])
                own.append(average_precision(distances(model, test), test_alike))
            found[f"{name}, {'all' if window is None else f'last {window:,}'}"] = own
    return found


def changes(judged, name, orders, **around):
    found = {}
    for title, change in CHANGES[name].items():
        data = compared(judged, change(judged))
        runs = [along(data, seed, **around) for seed in orders]
        found[title] = {method: [run[method] for run in runs] for method in runs[0]}
        print(f"{name}, {title}: done", flush=True)
    return found


# Asking


def asking(judged, orders, looks=LOOKS):
    """AP after so many answers, asked for as `ActivePairs` does, or drawn evenly."""
    compare = Comparisons().fit(judged.left, judged.right)
    pairs = compare.transform(judged.left, judged.right, judged.train)
    test = np.asarray(compare.transform(judged.left, judged.right, judged.test))
    found = {"asked": {"ap": [], "yes": []}, "random": {"ap": [], "yes": []}}
    for seed in orders:
        for name, own in found.items():
            asker = ActivePairs(MetricTracker(), pairs, random_state=seed)
            rng, values = np.random.default_rng(seed), []
            order = rng.permutation(len(pairs))
            for look in looks:
                while asker.n_answers < look:
                    done = slice(asker.n_answers, asker.n_answers + AT_A_TIME)
                    rows = asker.query(AT_A_TIME) if name == "asked" else order[done]
                    asker.teach(rows, judged.alike[rows])
                values.append(average_precision(distances(asker.tracker, test), judged.test_alike))
            own["ap"].append(values)
            own["yes"].append(int(np.sum(asker.answers_ > 0)))
    return found


def asked_by_dedupe(python, folder, seeds, looks=DEDUPE_LOOKS):
    """Measured by a Python that has dedupe."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "dedupe.json"
        script = Path(__file__).parent / "dedupe_linkage.py"
        listed = [[str(each) for each in several] for several in (seeds, looks)]
        command = [python, script, "--data", folder, "--out", out, "--seeds", *listed[0]]
        subprocess.run([*command, "--looks", *listed[1]], check=True)
        return {"looks": list(looks), "sets": json.loads(out.read_text(encoding="utf-8"))}


# Speed


def speed(n_pairs=20_000, n_records=20_000, at_a_time=1_000):
    """Pairs a second, of records whose titles have some 50,000 trigrams; all is done on the way."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyzäöüß0123456789"))
    words = ["".join(rng.choice(letters, rng.integers(3, 9))) for _ in range(30_000)]

    def record():
        title = " ".join(words[i] for i in rng.integers(len(words), size=8))
        return {"title": title, "maker": words[rng.integers(200)], "price": rng.random()}

    left = [record() for _ in range(n_records)]
    right = [
        {**each, "title": f"{each['title'][:30]} {words[rng.integers(len(words))]}"}
        for each in left
    ]
    rows = np.column_stack([rng.integers(n_records, size=n_pairs) for _ in "lr"])
    alike = rng.random(n_pairs) < 0.2
    rows[alike, 1] = rows[alike, 0]
    compare = Comparisons().fit(left, right)
    vocabulary = len(compare._compared["title"].letters.keys)
    found = {"pairs": n_pairs, "vocabulary": vocabulary}
    for name, make in TRACKERS.items():
        make().partial_fit(compare.transform(left, right, rows[:600]), labels(alike[:600]))
        tracker, before = make(), time.process_time()
        for start in range(0, n_pairs, at_a_time):
            some = rows[start : start + at_a_time]
            ours, theirs = ([side[i] for i in some[:, k]] for k, side in enumerate((left, right)))
            u = compare.transform(ours, theirs)
            tracker.partial_fit(u, labels(alike[start : start + at_a_time]))
        found[name] = n_pairs / (time.process_time() - before)
    return found


def measure(folder, orders=ORDERS, looks=LOOKS, **around):
    found = {"orders": list(orders), "sets": {}, "changes": {}, "asking": {}}
    for name in TITLES:
        judged = load(folder, name)
        found["sets"][name] = {
            "n_pairs": len(judged.train),
            "alike": float(judged.alike.mean()),
            "features": on_set(judged, orders),
        }
        print(f"{name}: learned", flush=True)
        found["changes"][name] = changes(judged, name, orders[:3], **around)
        found["asking"][name] = asking(judged, orders, looks)
    return found | {"looks": list(looks), "every": around.get("every", EVERY)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of records-*.json.gz; METRACK_RECORDS")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--dedupe", type=Path, default=DEDUPE, help="a Python that has dedupe")
    parser.add_argument("--without-dedupe", action="store_true", help="its figures as kept")
    asked = parser.parse_args()
    folder = asked.data or default_folder()
    if not (folder / "records-dblp.json.gz").exists():
        sys.exit(f"there is no records-dblp.json.gz in {folder}; see --data")
    if asked.without_dedupe:
        theirs = json.loads(asked.out.read_text(encoding="utf-8"))["dedupe"]
    elif asked.dedupe.exists():
        theirs = asked_by_dedupe(asked.dedupe, folder, DEDUPE_SEEDS)
    else:
        sys.exit(f"there is no {asked.dedupe}; run make bench-linkage, or with --without-dedupe")
    found = measure(folder) | {"speed": speed(), "dedupe": theirs}
    asked.out.write_text(json.dumps(rounded(found)) + "\n", encoding="utf-8")
    print(f"written to {asked.out}")


if __name__ == "__main__":
    main()
