"""What ``metrack inspect`` says, in the terminal and on its page."""

import html
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from metrack import MetricTracker, cli
from metrack.estimators.resolved.tables import TABLE
from metrack.tracking import inspection
from metrack.tracking.history import History
from metrack.tracking.inspection import (
    MOST,
    Change,
    directions_that_matter,
    page,
    running_median,
    sections,
    spectrum,
)
from metrack.tracking.items import Items
from metrack.tracking.loop import Run, Tracking, track
from tests.figures import figures

NAMES = ["price[/day]", "temp[c]", "<b>size</b> &amp;", "[bold]:smile:", "a\x1b[2Jb"]


def write_pairs(path, n_pairs, names):
    """Pairs that are alike where the first feature is close."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n_pairs, len(names)))
    alike = np.abs(x - z)[:, 0] < 1
    with open(path, "w", encoding="utf-8") as file:
        for a, b, y in zip(x.tolist(), z.tolist(), alike.tolist(), strict=True):
            row = {f"x_{name}": v for name, v in zip(names, a, strict=True)}
            row |= {f"z_{name}": v for name, v in zip(names, b, strict=True)}
            file.write(json.dumps({**row, "y": y}) + "\n")


def tracked(tmp_path, n_pairs, names):
    write_pairs(tmp_path / "pairs.jsonl", n_pairs, names)
    learner = MetricTracker(random_state=0)
    track(Run(source=str(tmp_path / "pairs.jsonl"), out=tmp_path / "state", learner=learner))
    return Tracking.load(tmp_path / "state")


def test_names_are_shown_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    tracked(tmp_path, 300, NAMES)
    args = ["inspect", str(tmp_path / "state"), "--html", str(tmp_path / "page.html")]
    found = CliRunner().invoke(cli.app, args)
    assert found.exit_code == 0, found.exception
    shown = [*NAMES[:-1], r"a\x1b[2Jb"]  # a terminal would obey the escape
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for name, in_terminal in zip(NAMES, shown, strict=True):
        assert in_terminal in found.output
        assert f"<td>{html.escape(name)}</td>" in text
    assert "\x1b" not in found.output


def test_ids_are_shown_as_they_are(tmp_path):
    tracking = tracked(tmp_path, 300, ["0", "1", "2"])
    tracking.items = Items(["<i>one</i>", "</script>", "a&b"], np.eye(3), ["0", "1", "2"])
    text = page(tmp_path, tracking).html()
    data, _ = figures(text)[-1]
    assert data[-1]["text"] == ["&lt;i&gt;one&lt;/i&gt;", "&lt;/script&gt;", "a&amp;b"]
    assert text.count("</script>") == text.count("<script")


def test_last_block_is_drawn_before_it_is_full(tmp_path):
    tracking = tracked(tmp_path, 300, ["0", "1", "2"])
    (losses, _), (memory, axis), *_ = figures(page(tmp_path, tracking).html())
    assert losses[0]["x"] == memory[0]["x"] == [256, 300]
    assert losses[0]["y"][1] == pytest.approx(tracking.history.total / 44)
    assert all(re.fullmatch(r"[\d,]+", text) for text in axis["yaxis"]["ticktext"])
    low, high = axis["yaxis"]["range"]
    drawn = np.log10(memory[0]["y"])
    assert low <= drawn.min() <= drawn.max() <= high
    assert {10.0**low, 10.0**high} <= set(axis["yaxis"]["tickvals"])


def test_fewer_pairs_than_a_block_are_drawn(tmp_path):
    (losses, _), *_ = figures(page(tmp_path, tracked(tmp_path, 7, ["0", "1"])).html())
    assert losses[0]["x"] == [7]


def test_curves_end_with_what_there_is():
    history = History(2)
    assert [len(each) for each in history.curves(None)] == [0, 0, 0]


def test_smoothed_memory_keeps_steps_and_drops_spikes():
    spikes = np.full(40, 600.0)
    spikes[[5, 17, 30]] = 8.0
    np.testing.assert_array_equal(running_median(spikes), np.full(40, 600.0))
    step = np.repeat([600.0, 8.0], 20)
    np.testing.assert_array_equal(running_median(step), step)


def test_directions_are_those_that_hold_most_of_the_metric(tmp_path):
    values = np.append(np.full(20, 1.0), np.full(364, 1e-6))
    assert directions_that_matter(values) == 19  # 18 hold just less than nine tenths
    assert directions_that_matter(np.zeros(3)) == 0
    assert directions_that_matter(np.empty(0)) == 0
    tracking = tracked(tmp_path, 300, ["0", "1", "2"])
    values = spectrum(tracking.learner)
    assert values.sum() == pytest.approx(np.trace(tracking.learner.get_mahalanobis_matrix()))
    summary = dict(sections(tmp_path, tracking)[0].rows)
    count = int(summary["directions that matter"].split()[0])
    assert values[:count].sum() >= MOST * values.sum() > values[: count - 1].sum()


@pytest.mark.parametrize(
    ("gained", "listed", "note"),
    [
        ([0.3, -0.2, -0.1], {"0", "1", "2"}, "In all, 30.0% of the metric moved"),
        ([0.02, -0.012, -0.008], {"0", "1"}, "In all, 2.0% of the metric moved"),
        ([0.002, -0.001, -0.001], set(), "none of which gained or lost 1%"),
    ],
)
def test_features_that_hardly_changed_are_not_listed(tmp_path, monkeypatch, gained, listed, note):
    tracking = tracked(tmp_path, 20, ["0", "1", "2"])
    before = np.array([0.4, 0.3, 0.3])
    change = Change("since then", before, before + gained)
    monkeypatch.setattr(inspection, "feature_change", lambda tracking: change)
    section = sections(tmp_path, tracking)[-1]
    assert {row[0] for row in section.rows} == listed
    assert note in section.note
    assert section.note in page(tmp_path, tracking).html()


def test_what_settings_came_to_is_shown(tmp_path):
    tracking = Tracking(MetricTracker(), None)
    tracking.learner.fit(np.random.default_rng(0).normal(size=(9, 2, 4)), [1, -1, 1] * 3)
    shown = next(each for each in sections(tmp_path, tracking) if each.title == "Settings in use")
    rows = dict(shown.rows)
    assert rows["learner 1"].startswith(f"{TABLE[0].kind}, {TABLE[0].view}, rate ")
    assert rows["units"] == "root_mean_square"
    assert "auto" not in str(rows)
    assert shown.title in page(tmp_path, tracking).html()
