"""Files of pairs that are known by their differences: columns u_..., or a column of lists."""

import json

import numpy as np
import pytest

import metrack
from metrack import Differences, MetricTracker
from tests.tracking.feedback import write_csv
from tests.tracking.test_commands import metrack_

NAMES = ["title: words", "price: difference"]


@pytest.fixture
def judged():
    u = np.random.default_rng(0).random((300, 2))
    return u, np.where(u[:, 0] < 0.5, 1, -1)


@pytest.fixture
def expected(judged):
    u, y = judged
    return MetricTracker(random_state=0).partial_fit(Differences(u, NAMES), y)


def write(path, u, y):
    lines = [f"{a},{b},{label}\n" for (a, b), label in zip(u.tolist(), y.tolist(), strict=True)]
    write_csv(path, lines, [*(f"u_{name}" for name in NAMES), "y"])


def test_columns_of_differences_are_learned_under_their_names(judged, expected, tmp_path):
    write(tmp_path / "judged.csv", *judged)
    metrack_("track", tmp_path / "judged.csv", "--out", tmp_path / "state")
    tracker = metrack.load(tmp_path / "state")
    assert np.array_equal(tracker.components_, expected.components_)
    changed = dict(tracker.drift_report().most_changed())  # of two, one gains what the other loses
    assert changed["title: words"] > 0.0 > changed["price: difference"]
    assert tracker.observe(Differences(judged[0][:5], NAMES), judged[1][:5]).shape == (5,)
    metrack_("inspect", tmp_path / "state", "--html", tmp_path / "page.html")
    assert "price: difference" in (tmp_path / "page.html").read_text()


def test_they_are_scored(judged, expected, tmp_path):
    write(tmp_path / "judged.csv", *judged)
    metrack_("track", tmp_path / "judged.csv", "--out", tmp_path / "state")
    metrack_(
        "distance", tmp_path / "state", tmp_path / "judged.csv", "--out", tmp_path / "scores.csv"
    )
    scores = np.loadtxt(tmp_path / "scores.csv", delimiter=",", skiprows=1)
    assert np.allclose(scores[:, 1], expected.pair_distance(Differences(judged[0])), rtol=1e-12)


def test_lists_of_differences_have_no_names(judged, expected, tmp_path):
    u, y = judged
    with open(tmp_path / "judged.jsonl", "w", encoding="utf-8") as file:
        for row, label in zip(u.tolist(), y.tolist(), strict=True):
            file.write(json.dumps({"diff": row, "y": label}) + "\n")
    source, out = tmp_path / "judged.jsonl", tmp_path / "state"
    metrack_("track", source, "--out", out, "--columns", "u=diff")
    tracker = metrack.load(out)
    assert np.array_equal(tracker.components_, expected.components_)
    assert not hasattr(tracker, "feature_names_in_")


def test_other_differences_are_refused(judged, tmp_path):
    write(tmp_path / "judged.csv", *judged)
    metrack_("track", tmp_path / "judged.csv", "--out", tmp_path / "state")
    write_csv(tmp_path / "other.csv", ["0.1,0.2,1\n"], ["u_title: words", "u_colour", "y"])
    again = "track", tmp_path / "other.csv", "--out", tmp_path / "state", "--new-source"
    assert "feature 'colour' is not one" in metrack_(*again, code=2).error
    assert metrack.load(tmp_path / "state").n_pairs_seen_ == 300
