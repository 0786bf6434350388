"""MetricTracker: learners of several kinds under one combiner."""

import numpy as np
import pytest

import metrack
from metrack import SADL, FromLabels, MetricTracker
from metrack.engine.learners.moment import FORMS
from metrack.engine.learners.target import TargetBank
from metrack.estimators.resolved.record import rows
from metrack.estimators.resolved.tables import BASIS, TABLE
from metrack.estimators.resolved.tracker import plans_of
from metrack.evaluate import leave_one_out_error
from metrack.streams import DriftingClusters, abrupt
from tests.estimators.learners import make_stream, state


def table(n_features):
    """Kind and features of each learner, by the settings' own account."""
    plans = plans_of(MetricTracker().resolve(n_features).learners, n_features, BASIS)
    return [
        (row.kind, row.view)
        for plan in plans
        for bank in plan.banks
        for row in bank.rows
        for _ in range(FORMS if row.kind == "moment" else 1)
    ]


@pytest.mark.parametrize("n_features", [5, 13, 70])
def test_experts_tell_who_is_trusted(n_features):
    stream = make_stream(n_features)
    tracker = MetricTracker().fit(stream.pairs, stream.y)
    experts = tracker.experts_
    assert [(each.kind, each.space) for each in experts] == table(n_features)
    assert sum(each.weight for each in experts) == pytest.approx(1.0)
    np.testing.assert_allclose([each.weight for each in experts], tracker.weights_)
    plain = [each for each in experts if each.kind == "plain"]
    assert plain
    assert {(each.memory, each.learning_rate) for each in plain} == {(np.inf, 0.0)}
    assert 1.0 <= tracker.drift_report().effective_window <= tracker.n_pairs_seen_
    cover = SADL().fit(stream.pairs, stream.y)
    assert {each.kind for each in cover.experts_} == {"margin"}
    np.testing.assert_array_equal([each.memory for each in cover.experts_], cover.scales_)


@pytest.mark.parametrize("n_features", [5, 13])
def test_saved_and_resumed_it_goes_on_bit_for_bit(tmp_path, n_features):
    stream = make_stream(n_features)
    tracker = MetricTracker().partial_fit(stream.pairs[:150], stream.y[:150])
    tracker.save(tmp_path)
    again = metrack.load(tmp_path)
    rest = stream.pairs[150:], stream.y[150:]
    np.testing.assert_array_equal(tracker.observe(*rest), again.observe(*rest))
    assert state(tracker) == state(again)
    ours, theirs = (each.for_neighbours().components_ for each in (tracker, again))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_features", [5, 13])
def test_units_and_order_of_features(n_features):
    stream = make_stream(n_features)
    losses = MetricTracker().observe(stream.pairs, stream.y)
    for changed in (1000.0 * stream.pairs, stream.pairs[:, :, ::-1]):
        np.testing.assert_allclose(
            MetricTracker().observe(changed, stream.y), losses, rtol=1e-6, atol=1e-6
        )


def test_learners_of_many_directions_replay_less():
    def replays(n_features):
        banks = MetricTracker().resolve(n_features).build().banks
        targets = [bank for bank in banks if isinstance(bank, TargetBank)]
        return {bank.n_features: int(bank.pace.replays.max()) for bank in targets}

    assert replays(25)[25] == 16
    assert replays(64)[64] == 6
    found = replays(200)
    assert found[16] == 8  # on a basis, no more
    assert all(found[width] == 2 for width in found if width > 110)


def test_beyond_some_width_no_learner_works_on_all_features():
    for n_features, whole in ((25, True), (300, True), (600, False)):
        found = [s for s in MetricTracker().resolve(n_features).build().spaces if s.basis is None]
        assert bool(found) == whole


def test_the_embedding_for_neighbours():
    """Near neighbours are found better with it, the pairs of a stream better without."""
    stream = DriftingClusters(schedule=abrupt("A", "B", length=1000, drift=0.01), random_state=3)
    pairs, y = stream.pairs()
    tracker = MetricTracker().fit(pairs, y)
    view = tracker.for_neighbours()
    points, labels = stream.points(len(y) - 1), stream.labels(len(y) - 1)
    errors = [
        leave_one_out_error(embedded, labels)
        for embedded in (view.transform(points), tracker.transform(points), points)
    ]
    assert errors[0] <= errors[1] + 0.01
    assert errors[0] < 0.5 * errors[2]
    before = view.components_.copy()
    tracker.partial_fit(pairs[:50], y[:50])
    np.testing.assert_array_equal(view.components_, before)


def test_the_cover_has_one_embedding():
    stream = make_stream(4)
    tracker = SADL().fit(stream.pairs, stream.y)
    np.testing.assert_array_equal(tracker.for_neighbours().components_, tracker.components_)


def test_from_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = rng.normal(size=(300, 6)) + 3.0 * np.eye(3, 6)[y]
    model = FromLabels(MetricTracker(), random_state=0).fit(X, y)
    assert leave_one_out_error(model.transform(X), y) < 0.1


def bank_of(tracker, name):
    return next(bank for bank in tracker.engine_.banks if bank.name == name)


def test_with_more_features_the_same_kinds_go_on():
    stream = make_stream(5)
    tracker = MetricTracker().partial_fit(stream.pairs, stream.y)
    seen, form = tracker.n_pairs_seen_, bank_of(tracker, "additive").learners.matrix
    M = tracker.get_mahalanobis_matrix()
    before = {(each.kind, each.space): each.weight for each in tracker.experts_}
    tracker.widen(64)
    np.testing.assert_array_equal(bank_of(tracker, "additive").learners.matrix[:, :5, :5], form)
    # But for the prior of the one that starts now.
    np.testing.assert_allclose(tracker.get_mahalanobis_matrix()[:5, :5], M, atol=1e-2 * M.max())
    experts = tracker.experts_
    assert [(each.kind, each.space) for each in experts] == table(64)
    own = [each.weight for each in experts if (each.kind, each.space) == ("gradient", "own")]
    assert own == pytest.approx([before["gradient", "own"]], abs=0.01)
    tracker.widen(70)
    assert [(each.kind, each.space) for each in tracker.experts_] == table(70)
    assert tracker.n_pairs_seen_ == seen
    wide = np.pad(stream.pairs, ((0, 0), (0, 0), (0, 65)))
    assert tracker.score(wide, stream.y) > 0.8
    assert np.isfinite(tracker.observe(wide, stream.y)).all()
    tracker.engine_.check()


def test_what_settings_came_to_reads_as_text():
    found = dict(rows(MetricTracker().resolve(25)))
    assert len([name for name in found if name.startswith("learner ")]) == len(TABLE)
    row = TABLE[0]
    numbers = f"rate {row.rate:g}, memory {row.memory}, pull {row.pull:g}, mean {row.mean}, width 0"
    assert found["learner 1"] == f"{row.kind}, {row.view}, {numbers}"
