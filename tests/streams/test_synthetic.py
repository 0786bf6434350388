import pickle

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from metrack.streams import DriftingClusters, Segment, abrupt, paper_schedule

SHORT = paper_schedule(1200)
RANGES = [(0, 1200), (700, 1100), (130, 131), (0, 300), (1199, 1200), (256, 384), (5, 5)]


@pytest.fixture(scope="module")
def stream():
    return DriftingClusters(schedule=SHORT, random_state=7)


@pytest.fixture(scope="module")
def whole(stream):
    return stream.pairs()


def test_a_random_state_as_estimators_take_it():
    drawn = [DriftingClusters(60, random_state=np.random.RandomState(s)) for s in (0, 0, 1)]
    same, again, other = (stream.rows()[0].tolist() for stream in drawn)
    assert same == again != other
    fresh = DriftingClusters(60, random_state=None)  # new every time, and told
    assert (
        fresh.rows()[0].tolist()
        == DriftingClusters(60, random_state=fresh.random_state).rows()[0].tolist()
    )


def test_same_seed_same_stream_other_seed_other_stream(whole):
    again = DriftingClusters(schedule=SHORT, random_state=7).pairs()
    other = DriftingClusters(schedule=SHORT, random_state=8).pairs()
    assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(whole, other, strict=True))


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_any_range_on_a_fresh_stream_is_that_of_the_whole(start, stop, whole):
    pairs, y = DriftingClusters(schedule=SHORT, random_state=7).pairs(start, stop)
    assert np.array_equal(pairs, whole[0][start:stop])
    assert np.array_equal(y, whole[1][start:stop])


def test_access_in_any_order_gives_the_same(stream, whole):
    for start, stop in [*RANGES, *RANGES[::-1]]:
        stream.points(start % 1200)
        assert np.array_equal(stream.pairs(start, stop)[0], whole[0][start:stop])


def test_iteration_is_bulk_access(stream, whole):
    steps = list(stream)
    assert len(steps) == len(stream) == 1200
    assert np.array_equal([(x, z) for x, z, _ in steps], whole[0])
    assert [y for *_, y in steps] == whole[1].tolist()


def test_survives_pickling(stream, whole):
    assert np.array_equal(pickle.loads(pickle.dumps(stream)).pairs(900)[0], whole[0][900:])


def test_a_pair_is_two_points_of_its_own_step_judged_by_its_labels(stream, whole):
    rows, y = stream.rows()
    for t in [0, 299, 300, 650, 1199]:
        np.testing.assert_allclose(whole[0][t], stream.points(t)[rows[t]], atol=1e-12)
        labels = stream.labels(t)[rows[t]]
        assert y[t] == (1 if labels[0] == labels[1] else -1)
    assert (rows[:, 0] != rows[:, 1]).all()


def test_a_longer_stream_starts_alike_until_the_schedules_part():
    short, long = (abrupt("A", "B", length=n, drift=0.01) for n in (200, 300))
    a, b = (DriftingClusters(schedule=s).pairs(0, 200)[0] for s in (short, long))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_finds_the_clusters_in_the_subspace_only(seed):
    stream = DriftingClusters(schedule=SHORT, random_state=seed)
    for t in [0, 700]:
        points, labels = stream.points(t), stream.labels(t)
        inside, raw = (
            normalized_mutual_info_score(
                labels, KMeans(3, n_init=10, random_state=0).fit_predict(x)
            )
            for x in (points @ stream.components(t).T, points)
        )
        assert inside > 0.9
        assert raw < 0.3


def test_clusters_have_their_shares_and_partitions_are_independent():
    stream = DriftingClusters(schedule=SHORT)
    a, b = stream.labels(0), stream.labels(400)
    for labels in (a, b):
        assert np.bincount(labels).tolist() == [1000, 400, 600]
    assert normalized_mutual_info_score(a, b) < 0.01


def test_centres_are_equally_far_apart():
    stream = DriftingClusters(spread=0.0, separation=2.5, schedule=SHORT)
    points, labels = stream.points(0)[:, :3], stream.labels(0)
    centres = np.array([points[labels == c].mean(axis=0) for c in range(3)])
    distances = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.testing.assert_allclose(distances[np.triu_indices(3, 1)], 2.5)


@pytest.mark.parametrize("t", [0, 299, 301, 500, 1199])
def test_rotations_are_orthogonal(stream, t):
    rotation = stream.rotation(t)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(25), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_the_first_segment_is_static_and_starts_at_the_identity(stream):
    assert np.array_equal(stream.rotation(0), np.eye(25))
    assert np.array_equal(stream.rotation(299), np.eye(25))


def test_drift_is_the_root_mean_square_angle_of_a_step():
    stream = DriftingClusters(schedule=[Segment("A", "A", 600, drift=0.05)])
    x = np.eye(25)[:, 0]
    turns = [stream.rotation(t) @ stream.rotation(t - 1).T for t in range(1, 600)]
    angles = np.arccos([min(x @ turn @ x, 1.0) for turn in turns])
    assert np.sqrt(np.mean(angles**2)) == pytest.approx(0.05, rel=0.05)


def test_rate_of_change_is_that_of_the_metric(stream):
    rates = stream.rate_of_change()
    assert rates.shape == (1200,)
    for t in [1, 128, 300, 301, 500, 900, 1199]:
        change = np.linalg.norm(stream.metric(t) - stream.metric(t - 1))
        assert rates[t] == pytest.approx(change, abs=1e-12)


def test_drift_rates_are_ordered_as_named(stream):
    rates = stream.rate_of_change()
    starts = [start for start, _ in stream.marks]
    static, moderate, fast, moderate_again, slow = (
        part[1:].mean() for part in np.split(rates, starts[1:])
    )
    assert static == 0.0 < slow < moderate < fast
    assert moderate_again == pytest.approx(moderate, rel=0.1)
    assert rates[stream.switches] == pytest.approx(np.sqrt(6), abs=0.1)


def test_the_stream_describes_its_drift(stream):
    names = ["A static", "B moderate", "B fast", "B moderate", "A slow"]
    assert stream.marks == list(zip([0, 300, 500, 700, 900], names, strict=True))
    assert stream.switches == [300, 900]
    assert [stream.partition(t) for t in (299, 300, 899, 900)] == ["A", "B", "B", "A"]


@pytest.mark.parametrize("t", [0, 650, 1199])
def test_the_metric_is_a_projector_of_rank_3_that_separates(stream, t):
    metric = stream.metric(t)
    values = np.linalg.eigvalsh(metric)
    np.testing.assert_allclose(values, [0] * 22 + [1] * 3, atol=1e-10)
    embedded, labels = stream.points(t) @ metric, stream.labels(t)
    centres = np.array([embedded[labels == c].mean(axis=0) for c in range(3)])
    nearest = np.linalg.norm(embedded[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.97


def test_natural_share_of_similar_pairs():
    _, y = DriftingClusters(schedule=abrupt("A", "B", length=20_000)).rows()
    assert (y == 1).mean() == pytest.approx(0.25 + 0.04 + 0.09, abs=0.01)


@pytest.mark.parametrize("similar", [0.0, 0.5, 1.0])
def test_chosen_share_of_similar_pairs(similar):
    rows, y = DriftingClusters(schedule=abrupt("A", length=20_000), similar=similar).rows()
    assert (y == 1).mean() == pytest.approx(similar, abs=0.015)
    assert (rows[:, 0] != rows[:, 1]).all()
    assert len(np.unique(rows)) == 2000


def test_chosen_share_keeps_the_balance_within_similar_and_dissimilar_pairs():
    schedule = abrupt("A", length=40_000)
    natural, balanced = (
        DriftingClusters(schedule=schedule, similar=share, random_state=1) for share in (None, 0.5)
    )
    codes = natural.labels(0)

    def shares(stream, judgement):
        rows, y = stream.rows()
        classes = codes[rows[y == judgement]]
        return np.bincount(3 * classes[:, 0] + classes[:, 1], minlength=9) / len(classes)

    for judgement in (1, -1):
        np.testing.assert_allclose(
            shares(natural, judgement), shares(balanced, judgement), atol=0.02
        )


def test_label_noise_turns_its_share_of_judgements_and_nothing_else():
    clean, noisy = (
        DriftingClusters(schedule=abrupt("A", length=20_000), label_noise=share).rows()
        for share in (0.0, 0.1)
    )
    assert np.array_equal(clean[0], noisy[0])
    assert (clean[1] != noisy[1]).mean() == pytest.approx(0.1, abs=0.01)


def test_every_number_is_a_parameter():
    stream = DriftingClusters(
        n_points=100,
        n_features=12,
        proportions=(0.25, 0.25, 0.25, 0.25),
        subspace_dim=4,
        partitions=("x", "y", "z"),
        noise=0.0,
        schedule=abrupt("z", "x", length=50, drift=0.01),
    )
    pairs, _ = stream.pairs()
    assert pairs.shape == (100, 2, 12)
    assert np.linalg.matrix_rank(stream.metric(99)) == 4
    assert np.bincount(stream.labels(0)).tolist() == [25] * 4


def test_no_drift_dimension_of_one():
    stream = DriftingClusters(
        n_features=1,
        proportions=(0.5, 0.5),
        subspace_dim=1,
        partitions=["A"],
        schedule=[Segment("A", "A", 10, drift=0.1)],
    )
    assert np.array_equal(stream.rotation(9), [[1.0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_points": 1}, "n_points is 1"),
        ({"n_points": 2.5}, "n_points is 2.5"),
        ({"n_points": True}, "n_points is True"),
        ({"n_features": 5}, "need 6 features, but n_features is 5"),
        ({"proportions": (0.5, 0.2)}, "add up to 0.7"),
        ({"proportions": ()}, "add up to 0"),
        ({"proportions": (1.5, -0.5)}, r"proportions\[0\] is 1.5"),
        ({"proportions": (0.0, 1.0)}, "leave a cluster of 2000 points empty"),
        ({"proportions": (0.2,) * 5}, "raise subspace_dim to 4"),
        ({"subspace_dim": 0}, "subspace_dim is 0"),
        ({"partitions": ("A", "A")}, "each only once"),
        ({"partitions": ()}, "at least one name"),
        ({"separation": -1.0}, "separation is -1.0"),
        ({"spread": np.nan}, "spread is nan"),
        ({"noise": "much"}, "noise is 'much'"),
        ({"similar": 1.5}, "similar is 1.5"),
        ({"label_noise": -0.1}, "label_noise is -0.1"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "0"}, "random_state is '0'"),
        ({"schedule": ()}, "schedule is empty"),
        ({"schedule": ["A"]}, r"schedule\[0\] is 'A'"),
        ({"schedule": [Segment("C", "C", 10)]}, "names partition 'C'; there are 'A', 'B'"),
        ({"proportions": (1.0,), "similar": 0.5}, "only one class"),
    ],
)
def test_bad_settings_are_value_errors_that_say_which(settings, message):
    with pytest.raises(ValueError, match=message):
        DriftingClusters(**settings)


@pytest.mark.parametrize("t", [-1, 1200, 0.5, "now"])
def test_a_step_outside_the_stream_is_a_value_error(stream, t):
    for access in (stream.points, stream.labels, stream.metric, stream.partition):
        with pytest.raises(ValueError, match="t is"):
            access(t)


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (0, 1201), (7, 6), (0.0, 5)])
def test_a_range_outside_the_stream_is_a_value_error(stream, start, stop):
    with pytest.raises(ValueError, match="start"):
        stream.pairs(start, stop)
