"""Pictures of a tracker show what it knows; and how it went, whatever the batches."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist
from sklearn.base import clone

import metrack
from metrack import COMID, SADL, ActiveTracker, KernelTracker, MetricTracker, OnlineITML
from metrack.estimators.bases.course import Course
from metrack.estimators.reading.plotting import flat

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(200, 4))
ROWS = RNG.integers(200, size=(400, 2))
GAPS = np.abs(POINTS[ROWS[:, 0]] - POINTS[ROWS[:, 1]])
Y = np.where(np.where(np.arange(400) < 250, GAPS[:, 0], GAPS[:, 1]) < 0.7, 1, -1)


def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def tracker():
    return MetricTracker(preprocessor=POINTS).fit(ROWS, Y)


@pytest.mark.parametrize(
    "learner", [MetricTracker(), KernelTracker(n_landmarks=8), SADL(), COMID(), OnlineITML()]
)
def test_the_course_is_the_same_however_pairs_are_cut(learner):
    learner = clone(learner).set_params(preprocessor=POINTS)
    cuts = [slice(i, i + 7) for i in range(0, 400, 7)]
    losses = np.concatenate([learner.observe(ROWS[cut], Y[cut]) for cut in cuts])
    cut, whole = learner.course_, learner.fit(ROWS, Y).course_
    np.testing.assert_array_equal(cut.losses, whole.losses)
    np.testing.assert_array_equal(cut.values, whole.values)
    assert (cut.pairs, cut.total, cut.width) == (whole.pairs, whole.total, 16)
    np.testing.assert_allclose(cut.losses, losses.reshape(-1, 16).mean(axis=1))


def test_blocks_become_one_where_there_are_too_many():
    course, losses = Course(1, width=4, most=8), RNG.random(400)
    for start in range(0, 400, 2):
        course.take(losses[start : start + 2], lambda start=start: np.array([start + 2.0]))
    assert course.width == 64
    np.testing.assert_allclose(course.losses, losses[:384].reshape(-1, 64).mean(axis=1))
    np.testing.assert_array_equal(course.values[:, 0], course.ends())
    ends, means, values = course.so_far(lambda: np.array([400.0]))
    assert (ends[-1], values[-1, 0]) == (400.0, 400.0)
    assert means[-1] == pytest.approx(losses[384:].mean())


def test_losses_and_changes_are_drawn(tracker):
    given = ax()
    assert tracker.plot_loss(given) is given
    curve, *changes = given.lines
    np.testing.assert_array_equal(curve.get_xdata(), 16 * np.arange(1, 26))
    np.testing.assert_array_equal(curve.get_ydata(), tracker.course_.losses)
    at = {line.get_xdata()[0] for line in changes}
    assert tracker.last_change_ in at or tracker.last_change_ == 0
    assert OnlineITML(preprocessor=POINTS).fit(ROWS, Y).plot_loss(ax()).lines


def test_trust_is_drawn_by_the_length_of_memories(tracker):
    given = tracker.plot_trust(ax())
    lengths = tracker.scales_
    areas = {area.get_label(): area for area in given.collections}
    assert list(areas)[-1] == "all pairs"
    last = areas["up to 64 pairs"].get_paths()[0].vertices
    height = np.ptp(last[last[:, 0] == 400.0, 1])
    short = (lengths > 16.0) & (lengths <= 64.0)
    assert height == pytest.approx(tracker.weights_[short].sum())
    assert SADL(preprocessor=POINTS).fit(ROWS, Y).plot_trust(ax()).collections
    assert not hasattr(COMID(), "plot_trust")


def test_drift_is_drawn_by_names(tracker):
    before = tracker.get_metric()
    after = MetricTracker(preprocessor=POINTS).fit(ROWS[:250], Y[:250])
    given = after.plot_drift(ax(), since=before, names=list("abcd"), n=3)
    report = after.drift_report(before, list("abcd"))
    assert [label.get_text() for label in given.get_yticklabels()] == report.features[:3].tolist()
    widths = [bar.get_width() for bar in given.patches]
    np.testing.assert_allclose(widths, [100 * each for _, each in report.most_changed(3)])


@pytest.mark.parametrize("learner", [MetricTracker(), KernelTracker(n_landmarks=8)])
def test_points_are_drawn_where_they_spread_most(learner):
    learner.set_params(preprocessor=POINTS).fit(ROWS, Y)
    kinds = np.arange(200) % 3
    given = learner.plot_embedding(POINTS, kinds, ax())
    drawn = np.empty((200, 2))
    for kind, dots in enumerate(given.collections):
        drawn[kinds == kind] = dots.get_offsets()
    embedded = learner.for_neighbours().transform(POINTS)
    centred = embedded - embedded.mean(axis=0)
    spread = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    np.testing.assert_allclose(np.sum(drawn**2, axis=0), spread[:2])
    assert (pdist(drawn) <= pdist(embedded) + 1e-9).all()
    assert [each.get_text() for each in given.get_legend().get_texts()] == ["0", "1", "2"]
    assert len(learner.plot_embedding(POINTS, ax=ax()).collections) == 1
    many = learner.plot_embedding(POINTS, POINTS[:, 0], ax()).collections[0]
    order = np.argsort(POINTS[:, 0])
    np.testing.assert_array_equal(many.get_array()[order], np.arange(200))
    assert flat(POINTS[:, :1]).shape == (200, 2)


def test_what_cannot_be_drawn_is_said(tracker, monkeypatch, tmp_path):
    tracker.save(tmp_path / "state")
    loaded = metrack.load(tmp_path / "state", preprocessor=POINTS)
    with pytest.raises(ValueError, match="since this tracker was started or loaded"):
        loaded.plot_loss(ax())
    with pytest.raises(ValueError, match="200 points, but labels has shape"):
        tracker.plot_embedding(POINTS, [1, 2], ax())
    with pytest.raises(ValueError, match="n=0; it must be"):
        tracker.plot_drift(ax(), n=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'metrack\[plots\]'"):
        tracker.plot_loss()


def test_a_course_goes_back_with_an_answer():
    asker = ActiveTracker(MetricTracker(), POINTS)
    asker.teach(ROWS[:40], Y[:40])
    course = asker.tracker.course_
    asker.teach(ROWS[40:80], Y[40:80])
    asker.undo()
    np.testing.assert_array_equal(asker.tracker.course_.losses, course.losses)
    assert asker.tracker.course_.total == course.total


def test_a_wider_tracker_goes_on(tracker):
    wide = MetricTracker(preprocessor=POINTS).fit(ROWS, Y)
    wide.widen(6)
    assert len(wide.course_.losses) == 25
