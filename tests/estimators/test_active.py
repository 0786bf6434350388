"""Which pairs to judge next: what is suggested, by which scores, and what it stands for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import metrack
from metrack import COMID, MetricTracker, OnlineITML
from metrack.estimators.bases.linear import FrozenMetric
from metrack.estimators.choosing.active import Expert, candidates, doubt, exploration, suggest
from tests.estimators.learners import state

POINTS = np.random.default_rng(7).normal(size=(400, 3))
ROWS = np.random.default_rng(0).integers(len(POINTS), size=(600, 2))


def judged(rows, points=POINTS):
    """Alike are points close in the first feature."""
    return np.where(np.abs(points[rows[:, 0], 0] - points[rows[:, 1], 0]) < 0.5, 1, -1)


@pytest.fixture(scope="module")
def tracker():
    return MetricTracker().fit(POINTS[ROWS], judged(ROWS))


def test_every_online_learner_suggests_and_changes_nothing(fitted, stream):
    before = state(fitted)
    rows = fitted.suggest_pairs(stream.points, 7, random_state=3)
    assert state(fitted) == before
    assert rows.shape == (7, 2)
    assert rows.dtype.kind == "i"
    assert (rows[:, 0] != rows[:, 1]).all()
    assert rows.min() >= 0
    assert rows.max() < len(stream.points)
    np.testing.assert_array_equal(rows, fitted.suggest_pairs(stream.points, 7, random_state=3))
    scores = fitted.informativeness(stream.points[rows])
    assert scores.shape == (7,)
    assert (scores >= 0.0).all()
    assert (scores <= 1.0).all()
    assert (np.diff(scores) <= 1e-9).all()  # the best first


def test_every_online_learner_suggests_before_it_has_learned(learner, stream):
    rows = learner.suggest_pairs(stream.points, 5, random_state=0)
    assert rows.shape == (5, 2)
    with pytest.raises(NotFittedError):
        learner.informativeness(stream.points[rows])


def test_a_pair_at_the_threshold_tells_a_single_learner_most():
    rows = np.random.default_rng(0).integers(len(POINTS), size=(300, 2))
    one = COMID().fit(POINTS[rows], judged(rows))
    x = np.array([1.0, 0.0, 0.0])
    at_threshold = x * one.threshold_ / one.pair_distance([[x, 0 * x]])[0]
    pairs = np.array([[scale * at_threshold, 0 * x] for scale in (1.0, 0.9, 0.5, 0.0)])
    scores = one.informativeness(pairs)
    assert scores[0] == pytest.approx(1.0, rel=1e-3)
    assert (np.diff(scores) < 0.0).all()


def test_experts_that_are_sure_of_different_things_are_in_doubt():
    near, far = Expert(np.eye(1), 1e-3, 0.5), Expert(np.eye(1), 1e3, 0.5)
    q = np.array([1.0])
    assert doubt([q, q], [near, far])[0] == pytest.approx(1.0, rel=1e-3)
    assert doubt([q, q], [near, near])[0] == pytest.approx(0.0, abs=1e-12)
    # One voice of ten, whom nobody trusts, is still heard.
    committee = [near._replace(weight=1 / 9)] * 9 + [far._replace(weight=0.0)]
    assert doubt([q] * 10, committee)[0] == pytest.approx(4 * 0.05 * 0.95, rel=1e-3)


def test_informativeness_does_not_depend_on_batches_or_on_how_pairs_are_given(tracker):
    rows = np.random.default_rng(1).integers(len(POINTS), size=(50, 2))
    together = tracker.informativeness(POINTS[rows])
    alone = np.concatenate([tracker.informativeness(POINTS[row][None]) for row in rows])
    np.testing.assert_allclose(alone, together, rtol=1e-9, atol=1e-12)


def test_points_may_be_sparse_or_row_numbers():
    rows = np.random.default_rng(0).integers(len(POINTS), size=(300, 2))
    by_rows = MetricTracker(preprocessor=POINTS).fit(rows, judged(rows))
    dense = by_rows.suggest_pairs(POINTS, 6, random_state=1)
    sparse = by_rows.suggest_pairs(sp.csr_array(POINTS), 6, random_state=1)
    np.testing.assert_array_equal(sparse, dense)
    chosen = np.arange(100, 300)
    some = by_rows.suggest_pairs(chosen, 6, random_state=1)
    np.testing.assert_array_equal(some, by_rows.suggest_pairs(POINTS[chosen], 6, random_state=1))


def test_what_is_loaded_suggests_the_same(tracker, tmp_path):
    tracker.save(tmp_path / "state")
    loaded = metrack.load(tmp_path / "state")
    np.testing.assert_array_equal(
        loaded.suggest_pairs(POINTS, 9, random_state=2),
        tracker.suggest_pairs(POINTS, 9, random_state=2),
    )


def test_a_batch_asks_about_a_point_once_while_there_are_others(tracker):
    rows = tracker.suggest_pairs(POINTS, 100, random_state=0)
    assert len(np.unique(rows)) == 200
    few = tracker.suggest_pairs(POINTS[:5], 10, random_state=0)
    assert len(np.unique(np.sort(few, axis=1), axis=0)) == 10  # each of all pairs


def test_candidates_are_distinct_pairs_that_stand_for_all(tracker):
    found = candidates(POINTS, 4096, tracker.components_, np.random.RandomState(0))
    assert len(np.unique(np.sort(found.rows, axis=1), axis=0)) == len(found.rows)
    assert (found.rows[:, 0] != found.rows[:, 1]).all()
    anchors, partners = np.unique(found.rows[:, 0]), np.unique(found.rows[:, 1])
    assert np.intersect1d(anchors, partners).size == 0
    assert found.stands_for.sum() == pytest.approx(200 * 200)
    distances = tracker.pair_distance(POINTS[found.rows])
    near = found.stands_for == 1.0
    for anchor in anchors[:10]:
        own = found.rows[:, 0] == anchor
        assert distances[own & near].max() <= distances[own & ~near].min()


def test_all_pairs_are_candidates_where_there_are_few():
    found = candidates(POINTS[:30], 4096, None, np.random.RandomState(0))
    assert len(np.unique(np.sort(found.rows, axis=1), axis=0)) == 30 * 29 // 2
    assert (found.stands_for == 1.0).all()


def test_suggested_pairs_find_those_that_are_alike(tracker):
    """Hardly any random pair is alike here; of those suggested, many are."""
    points = np.random.default_rng(3).normal(size=(2000, 3)) * [20.0, 1.0, 1.0]
    alike = [
        np.mean(judged(tracker.suggest_pairs(points, 50, random_state=i), points) == 1)
        for i in range(4)
    ]
    everywhere = np.abs(points[:, None, 0] - points[None, :, 0]) < 0.5
    assert np.mean(everywhere) < 0.02
    assert np.mean(alike) > 5 * np.mean(everywhere)


def test_weights_undo_the_choice(tracker):
    """The share of alike pairs, from suggestions that have far too many of them."""
    points = POINTS * [5.0, 1.0, 1.0]
    everywhere = np.abs(points[:, None, 0] - points[None, :, 0]) < 0.5
    share = np.mean(everywhere[np.triu_indices(len(points), 1)])
    y, weights = [], []
    for seed in range(60):
        rows, weight = tracker.suggest_pairs(points, 60, random_state=seed, return_weights=True)
        y.append(judged(rows, points) == 1)
        weights.append(weight)
    y, weights = np.concatenate(y), np.concatenate(weights)
    assert weights.max() <= 1 / 0.1
    assert np.mean(y) > 2 * share
    # Five standard errors of a mean of so many pairs with such weights.
    error = np.sqrt(np.sum((weights * (y - share)) ** 2)) / weights.sum()
    assert abs(np.average(y, weights=weights) - share) < 5 * error < share


def test_more_is_explored_after_a_change():
    assert exploration(np.inf) == pytest.approx(0.1)
    assert exploration(0) == pytest.approx(0.5)
    rows = np.random.default_rng(0).integers(len(POINTS), size=(1500, 2))
    y = judged(rows)
    tracker = MetricTracker().fit(POINTS[rows[:1000]], y[:1000])
    assert tracker._exploration() == pytest.approx(0.1)
    tracker.partial_fit(POINTS[rows[1000:]], -y[1000:])
    assert tracker.last_change_ > 1000
    since = tracker.n_pairs_seen_ - tracker.last_change_
    assert tracker._exploration() == pytest.approx(0.1 + 0.4 * np.exp(-since / 100))


def test_with_nothing_in_doubt_pairs_are_drawn_at_random():
    sure = Expert(np.eye(3), 1e-12, 1.0)
    found = suggest(POINTS, 20, np.eye(3), [sure], 0.1, np.random.RandomState(0))
    assert len(found.rows) == 20
    np.testing.assert_allclose(found.weights, 1.0)


def test_components_set_by_hand_are_what_suggestions_go_by(tracker):
    changed = clone(tracker).fit(POINTS[:2][None], [1])
    changed.components_ = np.array([[1.0, 0.0, 0.0]])
    assert changed.informativeness([[[0.0, 5.0, 5.0], [0.0, 0.0, 0.0]]])[0] < 1e-3


BAD = {
    "no pairs": (POINTS, 0, r"n_pairs=0; it must be a whole number >= 1"),
    "half a pair": (POINTS, 1.5, r"n_pairs=1.5; it must be a whole number >= 1"),
    "too many": (POINTS[:3], 4, r"n_pairs=4: 3 points have 3 pairs; ask for fewer"),
    "one point": (POINTS[:1], 1, r"n_pairs=1: 1 points have 0 pairs; ask for fewer"),
    "NaN": (np.array([[0.0, 1, 2], [np.nan, 1, 2]]), 1, r"X row 1 contains NaN; drop or impute"),
    "fewer features": (POINTS[:, :2], 1, r"X has 2 features, but the metric was learned on 3"),
}


@pytest.mark.parametrize(("X", "n_pairs", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_and_changes_nothing(tracker, X, n_pairs, says):
    before = state(tracker)
    with pytest.raises(ValueError, match=says):
        tracker.suggest_pairs(X, n_pairs)
    with pytest.raises(ValueError, match="learned on 3"):
        tracker.informativeness(np.zeros((1, 2, 4)))
    assert state(tracker) == before


def test_change_is_what_all_pairs_say(tracker):
    """The estimate from some pairs, against all of them."""
    then = clone(tracker).fit(POINTS[ROWS[:40]], judged(ROWS[:40])).get_metric()
    i, j = np.triu_indices(len(POINTS), 1)
    pairs = np.stack([POINTS[i], POINTS[j]], axis=1)
    now = tracker.pair_distance(pairs) <= tracker.threshold_
    gaps = (pairs[:, 0] - pairs[:, 1]) @ then.components.T
    before = np.linalg.norm(gaps, axis=1) <= then.threshold
    share = np.sum(now != before) / np.sum(now | before)
    assert 0.05 < share < 0.95
    found = [tracker.change_since(then, POINTS, seed) for seed in range(40)]
    assert all(0.0 <= each.low <= each.share <= each.high <= 1.0 for each in found)
    # At 95 %, fewer than 30 of 40 right is an event of 1e-7.
    assert sum(each.low <= share <= each.high for each in found) >= 30
    assert tracker.change_since(tracker.get_metric(), POINTS, 0).share == 0.0


def test_what_will_change_is_mostly_below_what_was_foretold():
    """By simulation: as many answers again, on streams of several widths, with and without noise.

    Nine of ten were right where AHEAD was chosen; below 30 of 40 is then an event of 0.1 %.
    """
    right = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(300, 3 + seed % 7))
        rows = rng.integers(300, size=(800, 2))
        y = judged(rows, points) * np.where(rng.random(800) < 0.1 * (seed % 2), -1, 1)
        tracker = MetricTracker(preprocessor=points).fit(rows[:200], y[:200])
        half_way = tracker.get_metric()
        told = tracker.partial_fit(rows[200:400], y[200:400]).change_since(half_way, points, seed)
        then = tracker.get_metric()
        tracker.partial_fit(rows[400:], y[400:])
        right += tracker.change_since(then, points, seed).share <= told.ahead
    assert right >= 30


def test_change_needs_a_metric_of_this_learner(tracker):
    with pytest.raises(ValueError, match=r"then must be what get_metric\(\) of this learner gave"):
        tracker.change_since(FrozenMetric(np.eye(3)), POINTS)
    with pytest.raises(ValueError, match="a metric of 3 features"):
        tracker.change_since(FrozenMetric(np.eye(4), 1.0), POINTS)
    with pytest.raises(ValueError, match="X has 1 point; pairs need 2 or more"):
        tracker.change_since(tracker.get_metric(), POINTS[:1])


def test_nobody_calls_anything_alike():
    rows = ROWS[:50]
    tracker = COMID().fit(POINTS[rows], judged(rows)).set_threshold(-1.0)
    assert tracker.change_since(tracker.get_metric(), POINTS, 0) == (0.0, 0.0, 1.0, 1.0)


def test_what_is_forgotten_is_replayed_no_more():
    """A mistake that is replayed goes on pulling; one that is forgotten does not."""
    learner = MetricTracker().fit(POINTS[ROWS[:100]], judged(ROWS[:100]))
    wrong = ROWS[100:130]
    learner.observe(POINTS[wrong], -judged(wrong))
    assert learner.forget(POINTS[wrong[:, ::-1]]) == 30
    assert learner.forget(POINTS[wrong]) == 0
    kept = [space.memory.recent for space in learner.engine_.spaces]
    kept = [recent for recent in kept if len(recent.y) >= 160]
    assert kept
    assert all(np.sum(recent.y != 0.0) == 100 for recent in kept)
    assert learner.n_pairs_seen_ == 130
    learner.observe(POINTS[wrong], judged(wrong))  # and is learned anew when it is judged anew
    assert all(np.sum(recent.y != 0.0) == 130 for recent in kept)


def test_on_a_basis_pairs_are_forgotten_too():
    points = np.random.default_rng(3).normal(size=(2600, 390))
    rows, y = np.arange(2600).reshape(1300, 2), np.tile([1, -1], 650)
    tracker = MetricTracker().fit(points[rows], y)
    memories = [space.memory for space in tracker.engine_.spaces]
    assert all(len(memory.recent.y) < 1200 for memory in memories)  # the first are kept of the past
    marks = tracker.engine_.marks.memory
    for forgotten in (rows[1200:, ::-1], rows[:100]):
        before = np.count_nonzero(marks.past.y)
        assert tracker.forget(points[forgotten]) == 100
        assert tracker.forget(points[forgotten]) == 0
        assert np.count_nonzero(marks.past.y) < before
    for memory in memories:
        assert memory.kept == 0 or np.array_equal(memory.past.y, marks.past.y)
        assert not memory.recent.y[np.arange(1200, 1300) % len(memory.recent.y)].any()


def test_learners_that_replay_nothing_have_nothing_to_forget():
    learner = OnlineITML().fit(POINTS[ROWS[:100]], judged(ROWS[:100]))
    before = state(learner)
    assert learner.forget(POINTS[ROWS[:10]]) == 0
    assert state(learner) == before
