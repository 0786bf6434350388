"""The benchmark on judged records, with so few made-up pairs that it only runs."""

import gzip
import json

import numpy as np
import pytest

from benchmarks import linkage
from benchmarks import linkage_streams as streams
from docs.figures import make_linkage

ORDERS = (1,)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two sets of ten features, with records beside them."""
    folder = tmp_path_factory.mktemp("linkage")
    rng, arrays, judged = np.random.default_rng(0), {}, []
    for name in streams.TITLES:
        which = rng.integers(8, size=200)
        arrays[f"{name}_X"] = (rng.normal(size=(8, 10))[which] + rng.normal(size=(200, 10))).astype(
            np.float16
        )
        for part, n in (("train", 800), ("test", 80)):
            rows = rng.integers(200, size=(n, 2))
            alike = np.where(which[rows[:, 0]] == which[rows[:, 1]], 1, -1)
            arrays[f"{name}_{part}"] = np.column_stack([rows, alike]).astype(np.int32)
            if name == "dblp":
                judged += [
                    [part, int(i), int(j), int(k > 0)]
                    for (i, j), k in zip(rows, alike, strict=True)
                ]
    np.savez(folder / "linkage.npz", **arrays)
    places = list(streams.PLACES.items())
    records = {
        "left": [{"venue": places[i % 5][0]} for i in range(200)],
        "right": [{"venue": places[i % 5][1]} for i in range(200)],
        "pairs": judged,
    }
    with gzip.open(folder / "records-dblp.json.gz", "wt", encoding="utf-8") as file:
        json.dump(records, file)
    return folder / "linkage.npz"


@pytest.fixture(scope="module")
def found(data):
    return linkage.measure(
        data, ORDERS, sizes=(100, None), question=250, rates=(0.1,), penalties=(0.1,)
    )


def test_every_method_has_a_line_for_each_number_of_pairs(found):
    for own in found["sets"].values():
        assert {linkage.PLAIN, linkage.LOGISTIC, linkage.ITML_NAME, *linkage.TRACKERS} == set(
            own["curves"]
        )
        for lines in own["curves"].values():
            assert [line["pairs"] for line in lines] == [100, 800]
            assert all(len(line["ap"]) == len(ORDERS) for line in lines)
            assert all(0.0 <= ap <= 1.0 for line in lines for ap in line["ap"])
        for line in own["answers"]:
            assert np.all(np.array(line["f1"]) <= np.array(line["best_f1"]) + 1e-12)
            assert all(0.0 <= error <= 1.0 for error in line["calibration"])


def test_streams_change_and_come_back(data, found):
    assert list(found["changes"]) == [streams.BY_SET, streams.BY_PLACE]
    for own in found["changes"].values():
        assert own["marks"] == [250, 500, 750]
        assert own["plain"][0] == own["plain"][2]
    stream = streams.changing(data, 1, 250)[streams.BY_PLACE]
    first, second, third = stream.tests
    np.testing.assert_array_equal(first[1], third[1])
    assert 0.1 < second[1].mean() < 0.4  # a fifth of the places are the same
    assert stream.test(250) is first
    assert stream.test(251) is second


def test_without_records_one_stream_changes(data, tmp_path):
    alone = tmp_path / "linkage.npz"
    alone.write_bytes(data.read_bytes())
    assert list(streams.changing(alone, 1, 250)) == [streams.BY_SET]


def test_orders_are_of_the_same_pairs(data):
    judged = streams.load(data)["dblp"]
    (rows, y), (others, _) = judged.order(1), judged.order(2)
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, others.tolist()))
    assert np.mean(y > 0) == pytest.approx(judged.alike.mean())


def test_data_is_found_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("METRACK_LINKAGE", str(tmp_path / "elsewhere.npz"))
    assert streams.default_path() == tmp_path / "elsewhere.npz"


def test_the_page_has_the_figures_that_are_kept():
    assert make_linkage.filled() == make_linkage.PAGE.read_text(encoding="utf-8")


def test_adam_learns(data):
    pytest.importorskip("torch")
    from benchmarks import torch_linkage

    found = torch_linkage.measure(data, ORDERS, (100, None), (1, 5), (0.01,), question=250)
    assert set(found["curves"]) == set(streams.TITLES)
    for own in found["curves"].values():
        assert np.mean(own["5"][-1]["ap"]) > np.mean(own["1"][0]["ap"]) - 0.1
    assert set(found["changes"]) == {streams.BY_SET, streams.BY_PLACE}
