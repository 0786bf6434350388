"""The benchmark on records by fields, with so few made-up pairs that it only runs."""

import gzip
import json

import numpy as np
import pytest

from benchmarks import records
from benchmarks.linkage_streams import PLACES
from docs.figures import make_records
from metrack import KernelTracker
from metrack.compare import catalogues

ORDERS = (1,)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two sets of two shops' records, under the names of fields that the real ones have."""
    found = tmp_path_factory.mktemp("records")
    left, right, same = catalogues(40)
    others = np.column_stack([np.roll(same[:, 0], 1), same[:, 1]])
    rows = np.concatenate([same, others])
    alike = np.repeat([1, 0], len(same))
    for name, fields in (
        ("dblp", ("title", "venue", "year")),
        ("amazon", ("title", "manufacturer", "price")),
    ):
        sides = []
        for side, which in ((left, 0), (right, 1)):
            named = [dict(zip(fields, each.values(), strict=True)) for each in side]
            for i, record in enumerate(named):
                record |= {key: str(value or "") for key, value in record.items()}
                if name == "dblp":
                    record |= {
                        "venue": list(PLACES.items())[i % 5][which],
                        "year": str(1990 + i % 9),
                    }
            sides.append(named)
        pairs = [
            [part, int(i), int(j), int(y)]
            for part in ("train", "test")
            for (i, j), y in zip(rows, alike, strict=True)
        ]
        content = {"left": sides[0], "right": sides[1], "pairs": pairs}
        with gzip.open(found / f"records-{name}.json.gz", "wt", encoding="utf-8") as file:
            json.dump(content, file)
    return found


@pytest.fixture(scope="module")
def found(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "TREES", 5)
        patch.setattr(records, "PENALTIES", (1.0,))
        patch.setitem(records.TRACKERS, "`KernelTracker()`", lambda: KernelTracker(n_landmarks=8))
        for name, some in records.CHANGES.items():
            patch.setitem(records.CHANGES, name, dict([list(some.items())[-1]]))
        measured = records.measure(folder, ORDERS, looks=(10, 20), before=20, after=20, every=10)
    theirs = {name: {"ap": [[0.5]], "yes": [3]} for name in measured["sets"]}
    return measured | {
        "speed": records.speed(200, 300, 100),
        "dedupe": {"looks": [10], "sets": theirs},
    }


def test_every_method_is_measured(found):
    for own in found["sets"].values():
        titles = list(own["features"])
        assert titles[0] == make_records.BY_FIELD
        assert titles[-1] == make_records.IN_STEPS
        few, many = (own["features"][each]["n_features"] for each in titles[1:3])
        assert many == few * (few + 1) // 2
        for features in own["features"].values():
            assert set(features["methods"]) == {*make_records.TRACKERS, *make_records.BATCH}
            for method in features["methods"].values():
                assert all(0.0 <= ap <= 1.0 for ap in method["ap"])


def test_streams_change(folder, found):
    judged = records.load(folder, "amazon")
    dropped = records.without_codes(judged)
    assert not any(letter.isdigit() for each in dropped.right for letter in each["title"])
    assert [each["price"] for each in dropped.right] == [each["price"] for each in judged.right]
    cheap = [{**each, "price": "1"} for each in judged.right[::2]]
    judged.right[::2] = cheap
    priced = records.same_price(judged)
    assert 0 < priced.alike.sum() < judged.alike.sum()
    assert not (priced.alike & ~judged.alike).any()
    for own in found["changes"].values():
        for runs in own.values():
            assert {len(values) for method, (values,) in runs.items() if "alone" not in method} == {
                3
            }


def test_the_page_can_be_made_of_it(found):
    for block in make_records.BLOCKS.values():
        assert block(found)


def test_the_page_has_the_figures_that_are_kept():
    assert make_records.filled() == make_records.PAGE.read_text(encoding="utf-8")
