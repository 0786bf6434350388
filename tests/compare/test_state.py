"""Comparisons on disk, alone and with their tracker."""

import json

import numpy as np
import pytest

import metrack
from metrack.compare import Comparisons, catalogues
from metrack.storage import CorruptStateError, ForeignStateError, StateError, StateFolder, read


def learned(n=40):
    left, right, same = catalogues(n)
    compare = Comparisons().fit(left, right)
    others = np.column_stack([same[:, 0], np.roll(same[:, 1], 1)])
    rows = np.concatenate([same, others])
    return compare, left, right, rows, np.repeat([1, -1], len(same))


def test_what_was_saved_goes_on_bit_for_bit(tmp_path):
    compare, left, right, rows, y = learned()
    u = compare.transform(left, right, rows)
    tracker = metrack.MetricTracker().partial_fit(u, y)
    compare.save(tmp_path, tracker)
    again, follower = Comparisons.load(tmp_path), metrack.load(tmp_path)
    for each in (compare, again):
        each.partial_fit(right)
    later = compare.transform(left, right, rows)
    assert np.array_equal(again.transform(left, right, rows), later)
    assert again.fields_ == compare.fields_
    assert again.get_params() == compare.get_params()
    assert np.array_equal(follower.observe(later, y), tracker.observe(later, y))


def test_every_kind_is_saved(tmp_path):
    records = [{"a": "x1", "b": [1.0, 2.0], "c": "2024-01-01", "d": True, "e": 3.5}]
    compare = Comparisons(steps=True).fit(records)
    compare.save(tmp_path)
    again = Comparisons.load(tmp_path)
    assert np.array_equal(again.transform(records, records), compare.transform(records, records))


def test_no_state_is_one_of_nothing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Comparisons.load(tmp_path / "none")
    metrack.MetricTracker().fit([[[0.0], [1.0]]], [1]).save(tmp_path)
    with pytest.raises(ForeignStateError, match="holds no comparisons"):
        Comparisons.load(tmp_path)
    compare, *_ = learned()
    compare.save(tmp_path)
    with pytest.raises(StateError):
        metrack.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda described: described.pop("kinds"),
        lambda described: described.update(steps=2),
        lambda described: described["kinds"].append(["title", "pickle"]),
        lambda described: described["compared"][0][1].update(has_codes=2),
        lambda described: described["compared"][0].reverse(),
    ],
)
def test_crafted_states_are_refused(tmp_path, change):
    compare, *_ = learned()
    compare.save(tmp_path)
    content, arrays = read(tmp_path)
    change(content["comparisons"])
    with StateFolder(tmp_path) as folder:
        folder.write(metrack.storage.State(json.loads(json.dumps(content)), arrays))
    with pytest.raises(CorruptStateError, match="describes no comparisons"):
        Comparisons.load(tmp_path)
