"""Asking in two lines: what is asked, what follows, changes of the question, undo, and states."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import metrack
from metrack import OASIS, ActiveTracker, KernelTracker, MetricTracker, OnlineITML
from metrack.estimators.choosing import foretold, judged
from metrack.estimators.choosing.closure import groups_of
from metrack.storage import CorruptStateError, StateFolder, read
from tests.estimators.learners import state

RNG = np.random.default_rng(2)
CLASSES = RNG.integers(6, size=500)
CENTRES = RNG.normal(size=(6, 5)) * 2.0
POINTS = CENTRES[CLASSES] + RNG.normal(size=(500, 5)) * [1, 1, 1, 4, 4]


def said(rows, classes=CLASSES):
    return np.where(classes[rows[:, 0]] == classes[rows[:, 1]], 1, -1)


def session(asker, n_batches, classes=CLASSES, n=10):
    for _ in range(n_batches):
        rows = asker.query(n)
        asker.teach(rows, said(rows, classes))
    return asker


@pytest.fixture(scope="module")
def asked():
    return session(ActiveTracker(MetricTracker(), POINTS), 30)


def auc(tracker, classes=CLASSES):
    rows = np.random.default_rng(0).integers(len(POINTS), size=(4000, 2))
    return roc_auc_score(said(rows, classes), tracker.pair_score(POINTS[rows]))


def test_questions_are_of_classes_and_what_follows_is_learned(asked):
    known = judged.known_of(asked._asking.judged)
    assert known.in_classes
    sizes = np.sort(np.bincount(known.groups.group))
    assert sizes[-6:].sum() > 150  # points of known class, by 300 answers
    assert asked.n_answers == 300
    assert asked.tracker.n_pairs_seen_ == 300 + asked.n_implied
    assert asked.n_implied > 3000
    assert asked.progress().question == 1


def test_progress_tells_what_random_pairs_would(asked):
    told = asked.progress()
    assert told.answers == 300
    assert told.alike == int(np.sum(asked._asking.judged.y > 0))
    assert told.unsure == 0
    assert told.auc == pytest.approx(auc(asked.tracker), abs=0.05)
    assert 0.0 < told.ahead <= 1.0
    assert asked.progress() == told
    assert asked.progress(at_most=1.0).stop
    assert not asked.progress(at_most=0.0).stop
    nothing = ActiveTracker(MetricTracker(), POINTS).progress()
    assert nothing == (0, 0, 0, 1, None, None, False)


def test_the_same_answers_lead_to_the_same_questions():
    one, two = (session(ActiveTracker(MetricTracker(), POINTS, 5), 4) for _ in range(2))
    np.testing.assert_array_equal(one.query(10), two.query(10))
    assert state(one.tracker) == state(two.tracker)
    other = session(ActiveTracker(MetricTracker(), POINTS, 6), 4)
    assert not np.array_equal(one.query(10), other.query(10))


def test_a_change_of_the_question_is_noticed():
    wider = CLASSES % 2
    for seed in range(4):
        asker = session(ActiveTracker(MetricTracker(), POINTS, seed), 30)
        assert asker.progress().question == 1
        session(asker, 30, wider)
        assert asker.progress().question == 2
        known = judged.known_of(asker._asking.judged)
        right = said(known.rows, wider) == known.y
        assert right.mean() > 0.95  # answers to the first question count no more
        assert asker.progress().answers < 320


def test_mistakes_are_no_change():
    rng = np.random.default_rng(0)
    asker = ActiveTracker(MetricTracker(), POINTS)
    for _ in range(40):
        rows = asker.query(10)
        asker.teach(rows, said(rows) * np.where(rng.random(10) < 0.03, -1, 1))
    assert asker.progress().question == 1


def test_where_alike_is_not_transitive_nothing_follows():
    """Points on a line, alike where they are near: all are connected."""
    points = np.random.default_rng(3).uniform(size=(300, 3))
    asker = ActiveTracker(MetricTracker(), points)
    for _ in range(40):
        rows = asker.query(10)
        gaps = np.abs(points[rows[:, 0], 0] - points[rows[:, 1], 0])
        asker.teach(rows, gaps < 0.5)
    told = asker._asking.judged
    assert told.start.tolist() == [0, 0, 1]
    assert not judged.known_of(told).in_classes
    assert asker.tracker.top_features(n=1)[0][0] == 0


@pytest.mark.parametrize(("answer", "weight"), [(1, 0.05), (-1, 1.0)])
def test_an_answer_that_repeats_one_has_little_weight(answer, weight):
    asker, other = (ActiveTracker(MetricTracker(), POINTS) for _ in range(2))
    for each in (asker, other):
        each.teach([[0, 1], [2, 3]], [1, -1])
    asker.teach([1, 0], answer)
    losses = other.tracker.observe(POINTS[[[1, 0]]], [answer], sample_weight=[weight])
    assert state(asker.tracker) == state(other.tracker)
    np.testing.assert_allclose(weight * asker.losses_, losses)


def test_no_more_pairs_are_implied_at_once_than_points_were_judged(asked):
    one = session(ActiveTracker(MetricTracker(), POINTS), 1)
    before, n_points = one.n_implied, []
    for _ in range(5):
        session(one, 1)
        n_points.append(len(judged.known_of(one._asking.judged).groups.points))
    assert one.n_implied - before <= 10 * sum(n_points)
    assert asked.n_implied <= 192 * asked.n_answers


def test_with_many_classes_pairs_are_drawn():
    asker = session(ActiveTracker(MetricTracker(), POINTS), 15, np.arange(500) // 2)
    assert not judged.known_of(asker._asking.judged).in_classes
    assert asker.n_answers == 150
    assert asker.progress().answers == 150


def test_unsure_pairs_teach_nothing_and_are_not_asked_again():
    points = POINTS[:5]
    asker = ActiveTracker(MetricTracker(), points)
    rows = asker.query(10)
    before = state(asker.tracker)
    asker.teach(rows[:4], None)
    assert state(asker.tracker) == before
    assert asker.progress().unsure == 4
    asker.teach(rows[4:7], [None, True, None])
    assert asker.n_answers == 1
    assert asker.tracker.n_pairs_seen_ == 1
    asker.teach(rows[7], None)
    asker._asked.clear()  # as in a later session
    left = {tuple(sorted(row)) for row in asker.query(10).tolist()}
    known = {tuple(sorted(rows[5].tolist()))}  # which may be asked about to see whether it holds
    assert left - known == {tuple(sorted(row)) for row in rows[8:].tolist()}


def test_every_pair_is_asked_about_once_and_then_none():
    asker = ActiveTracker(MetricTracker(), POINTS[:4])
    pairs = [tuple(sorted(asker.query()[0].tolist())) for _ in range(6)]
    assert len(set(pairs)) == 6
    assert asker.query(3).shape == (0, 2)


@pytest.mark.parametrize("kind", [MetricTracker, KernelTracker, OnlineITML])
def test_undo_is_exact(kind):
    asker = ActiveTracker(kind(), POINTS)
    tracker, known, taught = asker.tracker, [], []
    for _ in range(5):
        rows = asker.query(6)
        known.append((state(tracker), asker._asking))
        taught.append(rows)
        asker.teach(rows, said(rows))
    last = state(tracker)
    for before, rows in zip(reversed(known), reversed(taught), strict=True):
        np.testing.assert_array_equal(asker.undo(), rows)
        assert asker.tracker is tracker
        assert state(tracker) == before[0]
        assert asker._asking is before[1]
    assert asker.undo().shape == (0, 2)
    for rows in taught:
        asker.teach(rows, said(rows))
    assert state(tracker) == last


def test_what_is_saved_goes_on(tmp_path):
    asker = session(ActiveTracker(MetricTracker(), POINTS, 3), 15)
    asker.teach([0, 1], None)
    asker.save(tmp_path / "state")
    loaded = ActiveTracker.load(tmp_path / "state", POINTS)
    assert state(metrack.load(tmp_path / "state")) == state(asker.tracker)
    assert loaded.progress() == asker.progress()
    assert loaded.n_implied == asker.n_implied
    rows = np.arange(20).reshape(10, 2)
    for each in (asker, loaded):
        each.teach(rows, said(rows))
    assert state(loaded.tracker) == state(asker.tracker)
    assert loaded.progress().ahead == asker.progress().ahead
    more = ActiveTracker.load(tmp_path / "state", np.concatenate([POINTS, POINTS]))
    assert more.progress().answers == 150
    with pytest.raises(ValueError, match=r"has judgements of row \d+, and X has 9 rows"):
        ActiveTracker.load(tmp_path / "state", POINTS[:9])


def test_a_state_of_a_tracker_alone_will_do(tmp_path):
    rows = np.arange(60).reshape(30, 2)
    MetricTracker().fit(POINTS[rows], said(rows)).save(tmp_path / "state")
    asker = ActiveTracker.load(tmp_path / "state", POINTS)
    assert asker.n_answers == 0
    assert asker.recall(rows, said(rows)).n_answers == 30
    assert asker.tracker.n_pairs_seen_ == 30
    session(asker, 2)


@pytest.mark.parametrize("part", ["judged", "foretold", "moments", "implied", "random_state"])
def test_damaged_states_are_refused(tmp_path, part):
    session(ActiveTracker(MetricTracker(), POINTS), 3).save(tmp_path / "state")
    found = read(tmp_path / "state")
    if part in ("judged", "foretold"):
        found.arrays[f"asking.{part}.rows"][0] = -1
    else:
        found.content["asking"][part] = [{"answers": -1}] if part == "moments" else None
    with StateFolder(tmp_path / "other") as folder:
        folder.write(found)
    with pytest.raises(CorruptStateError, match="describes no answers"):
        ActiveTracker.load(tmp_path / "other", POINTS)


def test_points_may_be_sparse_and_names_are_kept():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(POINTS, columns=list("abcde"))
    named, sparse = (
        session(ActiveTracker(MetricTracker(), X), 3) for X in (frame, sp.csr_array(POINTS))
    )
    assert named.tracker.feature_names_in_.tolist() == list("abcde")
    kernel = ActiveTracker(KernelTracker(n_landmarks=8), frame).tracker
    assert kernel.feature_names_in_.tolist() == list("abcde")
    assert named.tracker.n_pairs_seen_ == sparse.tracker.n_pairs_seen_


def test_a_tracker_that_has_learned_goes_on():
    rows = np.random.default_rng(1).integers(500, size=(200, 2))
    tracker = MetricTracker(preprocessor=POINTS).fit(rows, said(rows))
    asker = session(ActiveTracker(tracker, POINTS), 2)
    assert asker.tracker is tracker
    assert tracker.n_pairs_seen_ == 220 + asker.n_implied


BAD = {
    "half a row": ([[0.5, 1.0]], [1], r"row numbers of shape \(n_pairs, 2\); got float64"),
    "triples": ([[0, 1, 2]], [1], r"of shape \(1, 3\)"),
    "no such row": ([[0, 1], [0, 500]], [1, 1], r"rows\[1\] = \[0, 500\]; rows of X are 0 to 499"),
    "too few labels": ([[0, 1], [0, 2]], [1], "2 pairs, but y has shape"),
    "no label": ([[0, 1], [0, 2]], [None, 3], r"y\[1\] = 3; labels are \+1 \(alike\) or -1"),
}


@pytest.mark.parametrize(("rows", "y", "says"), BAD.values(), ids=BAD)
def test_bad_answers_change_nothing(asked, rows, y, says):
    before = state(asked.tracker), asked._asking
    with pytest.raises(ValueError, match=says):
        asked.teach(rows, y)
    assert (state(asked.tracker), asked._asking) == before


def test_what_fails_half_way_changes_nothing(monkeypatch):
    asker = session(ActiveTracker(MetricTracker(), POINTS), 3)
    before, asking = state(asker.tracker), asker._asking
    monkeypatch.setattr(judged, "take", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        asker.teach([[0, 1]], [1])
    assert state(asker.tracker) == before
    assert asker._asking is asking


def test_wrong_use_is_refused():
    with pytest.raises(TypeError, match="OASIS; ActiveTracker teaches learners of pairs"):
        ActiveTracker(OASIS(), POINTS)
    with pytest.raises(ValueError, match="X has 1 point; pairs need 2 or more"):
        ActiveTracker(MetricTracker(), POINTS[:1])
    with pytest.raises(ValueError, match="X row 0 contains NaN"):
        ActiveTracker(MetricTracker(), POINTS * np.nan)
    with pytest.raises(ValueError, match="n_pairs=11: 5 points have 10 pairs; ask for fewer"):
        ActiveTracker(MetricTracker(), POINTS[:5]).query(11)
    with pytest.raises(ValueError, match="n_components=9; there are only 5 features"):
        ActiveTracker(MetricTracker(n_components=9), POINTS)


def test_relations_are_what_answers_and_classes_say():
    rows = np.array([[0, 1], [1, 2], [3, 4], [2, 3], [5, 6]])
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    known = judged.Known(rows, y, groups_of(rows, y), True)
    pairs = np.array([[1, 0], [0, 2], [0, 4], [5, 0], [7, 0], [6, 5]])
    told, follows = judged.relations(known, pairs)
    np.testing.assert_array_equal(told, [1, 0, 0, 0, 0, -1])
    np.testing.assert_array_equal(follows, [1, 1, -1, 0, 0, -1])
    told, follows = judged.relations(known._replace(in_classes=False), pairs)
    np.testing.assert_array_equal(follows, told)


def test_contradictions_of_what_was_said_begin_a_new_question():
    rows = np.stack([np.arange(0, 40, 2), np.arange(1, 40, 2)], axis=1)
    told = judged.take(judged.nothing_judged(), rows, np.full(20, -1.0))
    one = judged.take(told, rows[:1], np.ones(1))
    assert one.start[1] == 0
    assert one.excess[0] == pytest.approx(np.log(5.0))
    again = judged.take(one, rows[1:6], np.ones(5))
    assert again.start.tolist() == [20, 1, 0]
    np.testing.assert_array_equal(judged.known_of(again).y, np.ones(6))
    calm = judged.take(one, rows[1:6], -np.ones(5))
    assert calm.excess[0] == 0.0
    assert judged.audited(calm) < judged.audited(one)


def test_the_estimate_is_of_weighted_pairs_where_classes_are_many():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    rows = rng.permutation(1000)[:800].reshape(400, 2)
    known = judged.Known(rows, y, groups_of(rows, y), False)
    ratio = np.exp(rng.normal(size=400) - y)
    weight = rng.uniform(0.5, 1.5, size=400)
    kept = foretold.take(foretold.nothing_foretold(), rows, ratio, weight, 0)
    found = foretold.auc(kept, known, 0)
    assert found == pytest.approx(roc_auc_score(y, -ratio, sample_weight=weight))
    assert foretold.auc(kept, known, 1) is None
    few = kept._replace(weight=weight / 10.0)  # of no more than 20 random pairs of each kind
    assert foretold.auc(few, known, 0) is None
