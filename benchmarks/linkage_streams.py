"""Judged pairs of records for benchmarks/linkage.py; needs numpy alone.

Each set has texts of records as embeddings of 384 features, pairs to learn from and to test on,
judged by people. An order of the pairs to learn from is a stream.

Two streams change and come back. In the first, pairs of publications are followed by pairs of
products, and these by publications again. In the second, pairs are of publications throughout, but
in the second third those are alike that came out in the same place (a conference, a journal): that
is in the records, which lie beside the embeddings as text. Names of places differ between the two
sides; ``PLACES`` says which are the same.
"""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SHARED = Path(__file__).parents[2] / "shared"
TITLES = {"dblp": "publications (DBLP-ACM)", "amazon": "products (Amazon-Google)"}
ORDERS = (7001, 7002, 7003, 7004, 7005)
SIZES = (250, 500, 1_000, 2_000, None)  # pairs; None: all
QUESTION = 2_000  # pairs of a question, in the streams that change

PLACES = {
    "sigmod conference": "international conference on management of data",
    "vldb": "very large data bases",
    "sigmod record": "acm sigmod record",
    "vldb j.": "the vldb journal -- the international journal on very large data bases",
    "acm trans . database syst .": "acm transactions on database systems ( tods )",
}
BY_SET = "publications, products, publications"
BY_PLACE = "the same publication, the same place, the same publication"


def default_path():
    return Path(os.environ.get("METRACK_LINKAGE", SHARED / "data" / "linkage.npz"))


@dataclass(frozen=True)
class Judged:
    """Points, and pairs of them: row numbers, and which are alike."""

    X: np.ndarray
    train: np.ndarray
    alike: np.ndarray
    test: np.ndarray
    test_alike: np.ndarray

    def order(self, seed):
        """Rows and judgements (+1, -1) of the pairs to learn from, in an order of their own."""
        order = np.random.default_rng(seed).permutation(len(self.train))
        return self.train[order], np.where(self.alike[order], 1, -1)

    def sizes(self, sizes=SIZES):
        return [len(self.train) if size is None else size for size in sizes]


def load(path):
    """The sets by name."""
    with np.load(path, allow_pickle=False) as data:
        return {name: _judged(data, name) for name in TITLES}


def _judged(data, name):
    train, test = data[f"{name}_train"], data[f"{name}_test"]
    X = data[f"{name}_X"].astype(float)
    return Judged(X, train[:, :2], train[:, 2] > 0, test[:, :2], test[:, 2] > 0)


@dataclass(frozen=True)
class Changing:
    """A stream whose question changes: pairs, judgements, and differences to test on by segment."""

    pairs: np.ndarray
    y: np.ndarray
    marks: tuple  # where segments end
    tests: tuple  # differences, and which are alike, a segment

    def test(self, mark):
        """What to test on after so many pairs."""
        return self.tests[int(np.searchsorted(self.marks, mark))]


def by_set(sets, seed, question=QUESTION):
    """Publications, products, publications."""
    parts = {name: judged.order(seed) for name, judged in sets.items()}
    segments = [("dblp", 0), ("amazon", 0), ("dblp", question)]
    chosen = [
        (sets[name].X[parts[name][0][at : at + question]], parts[name][1][at : at + question])
        for name, at in segments
    ]
    tests = [_test(sets[name], sets[name].test_alike) for name, _ in segments]
    return _changing(chosen, tests)


def by_place(judged, records, seed, question=QUESTION):
    """The same publication, the same place, the same publication."""
    same = {part: _same_place(records, part) for part in ("train", "test")}
    order = np.random.default_rng(seed).permutation(len(judged.train))
    chosen = []
    for i, answers in enumerate((judged.alike, same["train"], judged.alike)):
        rows = order[i * question : (i + 1) * question]
        chosen.append((judged.X[judged.train[rows]], np.where(answers[rows], 1, -1)))
    answers = (judged.test_alike, same["test"], judged.test_alike)
    return _changing(chosen, [_test(judged, each) for each in answers])


def _test(judged, alike):
    return judged.X[judged.test[:, 0]] - judged.X[judged.test[:, 1]], alike


def _changing(chosen, tests):
    marks = tuple(np.cumsum([len(y) for _, y in chosen]).tolist())
    pairs, y = (np.concatenate(each) for each in zip(*chosen, strict=True))
    return Changing(pairs, y, marks, tuple(tests))


def records_path(path):
    return Path(path).parent / "records-dblp.json.gz"


def _same_place(records, part):
    """Of the pairs of a part, in their order."""
    return np.array(
        [
            PLACES.get(records["left"][left]["venue"]) == records["right"][right]["venue"]
            for where, left, right, _ in records["pairs"]
            if where == part
        ]
    )


def changing(path, seed, question=QUESTION):
    """Streams that change, by title; the second only where records are."""
    sets = load(path)
    found = {BY_SET: by_set(sets, seed, question)}
    if records_path(path).exists():
        with gzip.open(records_path(path), "rt", encoding="utf-8") as file:
            records = json.load(file)
        found[BY_PLACE] = by_place(sets["dblp"], records, seed, question)
    return found
