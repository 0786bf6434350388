"""SADL with several kinds of experts."""

import numpy as np
import pytest

import metrack
from metrack import SADL, FromLabels
from metrack.estimators.resolved import rows
from metrack.evaluate import leave_one_out_error
from metrack.streams import DriftingClusters, abrupt
from tests.estimators.learners import make_stream, state

KINDS = ["margin"] * 3 + ["target"] * 5 + ["plain"]


def test_experts_tell_who_is_trusted():
    stream = make_stream(6)
    tracker = SADL(experts="kinds").fit(stream.pairs, stream.y)
    experts = tracker.experts_
    assert [each.kind for each in experts] == KINDS
    assert sum(each.weight for each in experts) == pytest.approx(1.0)
    np.testing.assert_allclose([each.weight for each in experts], tracker.weights_)
    assert experts[-1].memory == np.inf
    assert experts[-1].learning_rate == 0.0
    assert 8 <= tracker.drift_report().effective_window <= 1024
    cover = SADL(experts="cover").fit(stream.pairs, stream.y)
    assert {each.kind for each in cover.experts_} == {"margin"}
    np.testing.assert_array_equal([each.memory for each in cover.experts_], cover.scales_)


def test_saved_and_resumed_it_goes_on_bit_for_bit(tmp_path):
    stream = make_stream(5)
    tracker = SADL(experts="kinds").partial_fit(stream.pairs[:150], stream.y[:150])
    tracker.save(tmp_path)
    again = metrack.load(tmp_path)
    rest = stream.pairs[150:], stream.y[150:]
    np.testing.assert_array_equal(tracker.observe(*rest), again.observe(*rest))
    assert state(tracker) == state(again)
    ours, theirs = (each.for_neighbours().components_ for each in (tracker, again))
    np.testing.assert_array_equal(ours, theirs)


def test_units_and_order_of_features():
    stream = make_stream(5)
    losses = SADL(experts="kinds").observe(stream.pairs, stream.y)
    for changed in (1000.0 * stream.pairs, stream.pairs[:, :, ::-1]):
        np.testing.assert_allclose(
            SADL(experts="kinds").observe(changed, stream.y), losses, rtol=1e-6, atol=1e-6
        )


def test_learners_of_many_directions_replay_less():
    _, narrow, wide, _ = SADL(experts="kinds").resolve(200).banks
    assert (narrow.width, wide.width) == (32, 192)
    assert [max(each.replays for each in bank.learners) for bank in (narrow, wide)] == [8, 2]
    assert {bank.width for bank in SADL(experts="kinds").resolve(64).banks[:3]} == {0}


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


def test_what_settings_came_to_reads_as_text():
    found = dict(rows(SADL(experts="kinds").resolve(25)))
    assert found["always_on 1: learns"] == "margin"
    first = found["always_on 1: learners"].split("; ")[0]
    assert first == "learning_rate 0.003, rho 0.0035, replays 8, window 256, outside 1"
