"""SADL with several kinds of experts."""

import numpy as np
import pytest

import metrack
from metrack import SADL, FromLabels
from metrack.estimators.resolved import rows
from metrack.evaluate import leave_one_out_error
from metrack.streams import DriftingClusters, abrupt
from tests.estimators import golden_states
from tests.estimators.learners import make_stream, state

MOMENT = ["moment"] * 4
WIDE = ["target"] * 6 + ["plain", "additive"] + MOMENT
FEW = ["target"] * 8 + ["plain"] + ["additive"] * 3 + MOMENT  # features: all lead
KINDS = ["target"] * 8 + ["leading"] * 3 + ["plain"] + ["additive"] * 3 + MOMENT


def test_experts_tell_who_is_trusted():
    stream = make_stream(13)
    tracker = SADL(experts="kinds").fit(stream.pairs, stream.y)
    experts = tracker.experts_
    assert [each.kind for each in experts] == KINDS
    assert sum(each.weight for each in experts) == pytest.approx(1.0)
    np.testing.assert_allclose([each.weight for each in experts], tracker.weights_)
    assert [each.learning_rate for each in experts[5:8]] == [0.8, 0.5, 0.03]
    assert [each.learning_rate for each in experts[8:11]] == [0.3, 0.1, 0.03]
    assert [each.memory for each in experts[8:11]] == [64, 64, 256]
    assert (experts[11].memory, experts[11].learning_rate) == (np.inf, 0.0)
    assert [each.learning_rate for each in experts[12:15]] == [0.3, 0.06, 0.06]
    assert [each.memory for each in experts[15:]] == [200, 200, 800, 800]
    assert (0.5 / 0.3) ** 2 <= tracker.drift_report().effective_window <= 1024
    cover = SADL(experts="cover").fit(stream.pairs, stream.y)
    assert {each.kind for each in cover.experts_} == {"margin"}
    np.testing.assert_array_equal([each.memory for each in cover.experts_], cover.scales_)


@pytest.mark.parametrize("n_features", [5, 13])
def test_saved_and_resumed_it_goes_on_bit_for_bit(tmp_path, n_features):
    stream = make_stream(n_features)
    tracker = SADL(experts="kinds").partial_fit(stream.pairs[:150], stream.y[:150])
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
    losses = SADL(experts="kinds").observe(stream.pairs, stream.y)
    for changed in (1000.0 * stream.pairs, stream.pairs[:, :, ::-1]):
        np.testing.assert_allclose(
            SADL(experts="kinds").observe(changed, stream.y), losses, rtol=1e-6, atol=1e-6
        )


def test_learners_of_many_directions_replay_less():
    narrow, wide, fast, _, additive, moment = SADL(experts="kinds").resolve(200).banks
    assert (narrow.width, wide.width, fast.width, additive.width) == (16, 176, 176, 176)
    assert (moment.width, moment.every) == (24, 128)
    replays = [max(each.replays for each in bank.learners) for bank in (narrow, wide, fast)]
    assert replays == [8, 2, 2]
    for n_features, replays in ((25, 16), (64, 6)):
        *whole, leading, _, _, _, _ = SADL(experts="kinds").resolve(n_features).banks
        assert ([bank.width for bank in whole], leading.directions) == ([0, 0, 0], 12)
        found = [max(each.replays for each in bank.learners) for bank in (*whole, leading)]
        assert found == [replays, replays, replays, 8]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"divergence": "burg"}, "divergence='burg': these experts have their own"),
        ({"n_components": 4}, "n_components=4"),
        ({"combiner": "cbce"}, "combiner='cbce': they are always on"),
        ({"experts": "many"}, "choose one of 'auto', 'cover', 'kinds'"),
    ],
)
def test_settings_that_do_not_go_together(settings, why):
    with pytest.raises(ValueError, match=why):
        SADL(**{"experts": "kinds"} | settings).fit(np.eye(2, 3)[None], [1])


def test_the_embedding_for_neighbours():
    """Near neighbours are found better with it, the pairs of a stream better without."""
    stream = DriftingClusters(schedule=abrupt("A", "B", length=1000, drift=0.01), random_state=3)
    pairs, y = stream.pairs()
    tracker = SADL(experts="kinds").fit(pairs, y)
    view = tracker.for_neighbours()
    points, labels = stream.points(len(y) - 1), stream.labels(len(y) - 1)
    errors = [
        leave_one_out_error(embedded, labels)
        for embedded in (view.transform(points), tracker.transform(points), points)
    ]
    assert errors[0] <= errors[1] + 0.01
    assert errors[0] < 0.5 * errors[2]
    np.testing.assert_allclose(
        np.trace(view.get_mahalanobis_matrix()), np.sum(tracker.components_**2)
    )
    before = view.components_.copy()
    tracker.partial_fit(pairs[:50], y[:50])
    np.testing.assert_array_equal(view.components_, before)


def test_the_cover_has_one_embedding():
    stream = make_stream(4)
    tracker = SADL(experts="cover").fit(stream.pairs, stream.y)
    np.testing.assert_array_equal(tracker.for_neighbours().components_, tracker.components_)


def test_from_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = rng.normal(size=(300, 6)) + 3.0 * np.eye(3, 6)[y]
    model = FromLabels(SADL(experts="kinds"), random_state=0).fit(X, y)
    assert leave_one_out_error(model.transform(X), y) < 0.1


def kinds_of(tracker):
    return [each.kind for each in tracker.experts_]


def bank_of(tracker, name):
    return next(bank for bank in tracker.engine_.banks if bank.name == name)


def test_with_more_features_the_same_kinds_go_on():
    stream = make_stream(5)
    tracker = SADL().partial_fit(stream.pairs, stream.y)
    assert kinds_of(tracker) == FEW
    form = bank_of(tracker, "additive").learners.matrix
    tracker.widen(64)
    np.testing.assert_array_equal(bank_of(tracker, "additive").learners.matrix[:, :5, :5], form)
    assert kinds_of(tracker) == KINDS
    np.testing.assert_array_equal(tracker.weights_[8:11], 0.0)  # they start now
    seen = tracker.n_pairs_seen_
    tracker.widen(70)
    assert kinds_of(tracker) == WIDE
    assert tracker.n_pairs_seen_ == seen
    basis, after = tracker.engine_.basis.vectors, bank_of(tracker, "additive").learners.matrix
    np.testing.assert_allclose((basis @ after[0] @ basis.T)[:5, :5], form[0], atol=1e-9)
    wide = np.pad(stream.pairs, ((0, 0), (0, 0), (0, 65)))
    assert np.isfinite(tracker.observe(wide, stream.y)).all()
    tracker.engine_.check()


def test_a_state_of_earlier_learners_goes_on_with_others_when_it_is_widened():
    tracker = metrack.load(golden_states.GOLDEN / "v3" / "sadl-kinds")
    assert kinds_of(tracker) == ["margin"] * 3 + ["target"] * 5 + ["plain"]
    trusted, go_on = tracker.weights_[3:], [0, 1, 2, 3, 4, 8]
    tracker.widen(4)
    assert kinds_of(tracker) == FEW
    # Bets have a prior of 1/n, and n is 12 where it was 9.
    np.testing.assert_allclose(tracker.weights_[go_on], trusted / trusted.sum(), rtol=12 / 9 - 1)
    assert tracker.weights_[go_on].sum() == pytest.approx(1.0)  # the others start now
    stream = make_stream(4)
    assert np.isfinite(tracker.observe(stream.pairs, stream.y)).all()
    assert (tracker.weights_ > 0.0).all()
    tracker.engine_.check()


def test_what_settings_came_to_reads_as_text():
    found = dict(rows(SADL(experts="kinds").resolve(25)))
    assert found["always_on 1: learns"] == "target"
    first = found["always_on 1: learners"].split("; ")[0]
    assert first == "learning_rate 0.2, rho 0.007, replays 16, window 64, outside 1"
    assert found["additive 6: learners"] == "learning_rate 0.3, forgets 0.0003"
