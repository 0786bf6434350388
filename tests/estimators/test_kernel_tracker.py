"""KernelTracker: questions that no linear metric answers, and what is its own."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.neighbors import KNeighborsClassifier

import metrack
from metrack import FromLabels, KernelTracker, MetricTracker
from tests.estimators.learners import state


def pairs_of(labels, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(labels), size=(n_pairs, 2))
    return rows, np.where(labels[rows[:, 0]] == labels[rows[:, 1]], 1, -1)


RINGS = make_circles(400, noise=0.05, factor=0.5, random_state=0)
MOONS = make_moons(400, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def on_rings():
    rows, y = pairs_of(RINGS[1], 800)
    return KernelTracker(n_landmarks=64, preprocessor=RINGS[0]).fit(rows, y)


@pytest.fixture
def tracker(on_rings):
    return metrack.load(metrack.estimators.states.persistence.dump(on_rings), preprocessor=RINGS[0])


@pytest.mark.parametrize("data", [MOONS, RINGS], ids=["moons", "rings"])
def test_it_answers_what_no_linear_metric_does(data):
    X, labels = data
    (rows, y), (fresh, alike) = pairs_of(labels, 800), pairs_of(labels, 2000, seed=1)
    found = KernelTracker(n_landmarks=64).fit(X[rows], y)
    assert found.score(X[fresh], alike) > 0.99
    assert np.mean(found.predict(X[fresh]) == alike) > 0.95
    assert MetricTracker().fit(X[rows], y).score(X[fresh], alike) < 0.9
    trusted = {each.space: 0.0 for each in found.experts_}
    for each in found.experts_:
        trusted[each.space] += each.weight
    linear = ["as they come", "own"]
    assert list(trusted) == [*linear, *(f"rbf {gamma:.3g}" for gamma in found.gammas_)]
    assert sum(trusted[space] for space in linear) < 0.1


def test_where_a_linear_metric_suffices_its_experts_are_trusted():
    """The question is asked in one of 20 features, to which a kernel of all is blind."""
    X = np.random.default_rng(0).normal(size=(500, 20))
    rows = np.random.default_rng(1).integers(500, size=(2000, 2))
    y = np.where(np.abs(X[rows[:, 0], 0] - X[rows[:, 1], 0]) < 0.8, 1, -1)
    found = KernelTracker(n_landmarks=32).fit(X[rows], y)
    assert sum(each.weight for each in found.experts_ if not each.space.startswith("rbf")) > 0.8
    linear = MetricTracker().fit(X[rows], y)
    assert found.observe(X[rows], y).mean() < 1.05 * linear.observe(X[rows], y).mean()


def test_what_makes_no_sense_is_absent(tracker):
    for name in (
        *("components_", "rank_", "get_mahalanobis_matrix", "top_features", "to_linear"),
        *("observe_points", "aligned_components", "neighbour_components", "change_since"),
    ):
        assert not hasattr(tracker, name)


def test_the_embedding_is_one_of_the_learned_distance(tracker):
    X, rows = RINGS[0], pairs_of(RINGS[1], 200, seed=2)[0]
    for view in tracker, tracker.for_neighbours():
        embedded = view.transform(X)
        apart = np.linalg.norm(embedded[rows[:, 0]] - embedded[rows[:, 1]], axis=1)
        assert_allclose(view.pair_distance(rows), apart, atol=1e-6 * apart.max())
    spread = tracker.transform(tracker.landmarks_).var(axis=0)
    assert (np.diff(spread) <= 1e-9 * spread[0]).all()  # the widest first
    names = tracker.get_feature_names_out()
    assert len(names) == tracker.transform(X).shape[1]


@pytest.mark.parametrize("width", [1, 3, 500])
def test_components_are_the_directions_in_which_landmarks_spread(tracker, width):
    whole = tracker.transform(tracker.landmarks_)
    embedded = tracker.set_params(n_components=width)
    embedded._forget_read_outs()
    found = tracker.transform(tracker.landmarks_)
    assert found.shape == (len(tracker.landmarks_), width)
    singular = np.linalg.svd(whole - whole.mean(axis=0), compute_uv=False)[:width]
    ours = np.linalg.svd(found - found.mean(axis=0), compute_uv=False)[: len(singular)]
    assert_allclose(ours, singular, atol=1e-6 * singular[0])


def test_a_frozen_metric_stays(tracker):
    metric, view = tracker.get_metric(), tracker.for_neighbours()
    x, z = RINGS[0][:2]
    before, embedded = metric(x, z), view.transform(RINGS[0])
    assert before == pytest.approx(tracker.pair_distance([[0, 1]])[0])
    rows, y = pairs_of(RINGS[1], 300, seed=5)
    tracker.partial_fit(rows, -y)
    assert metric(x, z) == before
    assert_array_equal(view.transform(RINGS[0]), embedded)
    assert tracker.pair_distance([[0, 1]])[0] != before


def test_landmarks_that_matter(tracker):
    found = tracker.top_landmarks(5)
    assert len(found) == 5
    points = {point.tobytes() for point in tracker.landmarks_}
    assert all(each.point.tobytes() in points for each in found)
    shares = [each.share for each in found]
    assert shares == sorted(shares, reverse=True)
    assert len(tracker.top_landmarks(10_000)) == len(tracker.landmarks_)
    assert sum(each.share for each in tracker.top_landmarks(10_000)) == pytest.approx(1.0)


def test_sparse_points_are_the_same():
    X = np.random.default_rng(0).normal(size=(60, 9))
    X[X < 0.4] = 0.0
    rows, y = pairs_of((X[:, 0] > 0) & (X[:, 1] > 0), 300)
    dense, sparse = (
        KernelTracker(n_landmarks=24, preprocessor=kind(X)).fit(rows, y)
        for kind in (np.asarray, sp.csr_array)
    )
    assert_allclose(sparse.pair_distance(rows), dense.pair_distance(rows), atol=1e-8)
    there, here = sparse.transform(sp.csr_array(X)), dense.transform(X)
    assert_allclose(there @ there.T, here @ here.T, atol=1e-8)  # columns have any sign


KERNELS = {
    "poly": {"kernel": "poly", "degree": 2},
    "cosine": {"kernel": "cosine"},
    "laplacian": {"kernel": "laplacian", "gamma": 0.5},
    "several": {"gamma": [0.5, 2.0, 8.0]},
    "function": {"kernel": lambda x, z: float(np.exp(-np.sum((x - z) ** 2)))},
}


@pytest.mark.parametrize("name", KERNELS)
def test_other_kernels(name):
    (rows, y), (fresh, alike) = pairs_of(RINGS[1], 250), pairs_of(RINGS[1], 500, seed=1)
    X = RINGS[0]
    found = KernelTracker(n_landmarks=24, **KERNELS[name])
    parts = clone(found).partial_fit(X[rows[:99]], y[:99]).partial_fit(X[rows[99:]], y[99:])
    found.fit(X[rows], y)
    assert_array_equal(parts.pair_distance(X[fresh]), found.pair_distance(X[fresh]))
    if name != "cosine":  # rings differ in length alone, which it does not see
        assert found.score(X[fresh], alike) > 0.9


class Failing:
    """A kernel that gives no numbers after some calls."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, x, z):
        self.left -= 1
        return float(np.exp(-np.sum((x - z) ** 2))) if self.left > 0 else np.nan


def test_a_kernel_that_fails_leaves_everything_as_it_was():
    X, (rows, y) = RINGS[0], pairs_of(RINGS[1], 60)
    kernel = Failing(100)
    learner = KernelTracker(n_landmarks=8, kernel=kernel)
    with pytest.raises(ValueError, match="gives numbers that are not finite"):
        learner.fit(X[rows], y)
    assert not hasattr(learner, "engine_")
    kernel.left = 10**6
    learner.fit(X[rows[:20]], y[:20])
    before = learner.pair_distance(X[rows])
    for learn in learner.fit, learner.partial_fit:
        kernel.left = 200
        with pytest.raises(ValueError, match="gives numbers that are not finite"):
            learn(X[rows], y)
        kernel.left = 10**6
        assert learner.n_pairs_seen_ == 20
        assert_array_equal(learner.pair_distance(X[rows]), before)


def test_a_kernel_that_is_not_positive():
    X, (rows, y) = RINGS[0], pairs_of(RINGS[1], 60)
    learner = KernelTracker(n_landmarks=8, kernel=lambda x, z: -float(np.sum((x - z) ** 2)))
    with pytest.raises(ValueError, match=r"not positive semidefinite .*; use another kernel"):
        learner.fit(X[rows], y)
    assert not hasattr(learner, "engine_")


def test_a_function_cannot_be_saved(tmp_path):
    X, (rows, y) = RINGS[0], pairs_of(RINGS[1], 20)
    learner = KernelTracker(n_landmarks=8, kernel=Failing(10**6)).fit(X[rows], y)
    with pytest.raises(TypeError, match=r"kernel=.* is a function, and a state holds no code"):
        learner.save(tmp_path)


def test_fewer_points_than_landmarks():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    rows, y = pairs_of(np.array([0, 0, 1, 1]), 400)
    found = KernelTracker(preprocessor=X).fit(rows, y)
    assert len(found.landmarks_) == 4
    assert_array_equal(found.predict(rows), y)


def test_states_of_another_shape_are_refused(tracker):
    held = metrack.estimators.states.persistence.pack(tracker)
    for name, wrong, words in (
        ("kernel.landmarks.used", np.array([65]), "65 landmarks of 64"),
        ("kernel.landmarks.points", np.zeros((2, 65)), "shape"),
        ("experts.counters.pairs", np.array([700]), "of 700 pairs"),
        ("basis 2.directions.scatter", np.zeros((31, 31)), "shape"),
    ):
        arrays = {**held.arrays, name: wrong}
        with pytest.raises(metrack.storage.StateError, match=words):
            metrack.estimators.states.persistence.unpack(held._replace(arrays=arrays), None, "it")


def test_judgements_are_forgotten_by_their_points(tracker):
    rows, y = pairs_of(RINGS[1], 40, seed=7)
    tracker.partial_fit(rows, -y)
    assert tracker.forget(rows[:10, ::-1]) == 10
    assert tracker.forget(rows[:10]) == 0
    for space in tracker.engine_.spaces:
        y = space.memory.recent.y
        assert not y[np.arange(800, 810) % len(y)].any()
        assert y[np.arange(810, 840) % len(y)].all()


def test_more_features_that_were_0(tracker):
    X = np.hstack([RINGS[0], np.zeros((400, 3))])
    rows, y = pairs_of(RINGS[1], 200, seed=3)
    distances = tracker.pair_distance(rows)
    wider = tracker.widen(5)
    assert_allclose(wider.pair_distance(X[rows]), distances, rtol=1e-9)
    assert np.isfinite(wider.partial_fit(X[rows], y).transform(X)).all()


def test_questions_come_from_all_experts(tracker):
    rows = tracker.suggest_pairs(RINGS[0], 20, random_state=0)
    assert rows.shape == (20, 2)
    doubt = tracker.informativeness(rows)
    others = tracker.informativeness(pairs_of(RINGS[1], 200, seed=4)[0])
    assert doubt.mean() > others.mean()


def test_from_labels_finds_classes():
    X, labels = RINGS
    metric = FromLabels(KernelTracker(n_landmarks=32), random_state=0).fit(X[:300], labels[:300])
    assert not hasattr(metric, "components_")
    neighbours = KNeighborsClassifier(3).fit(metric.transform(X[:300]), labels[:300])
    assert neighbours.score(metric.transform(X[300:]), labels[300:]) > 0.95
    assert metric.pair_distance(X[:4].reshape(2, 2, 2)).shape == (2,)
    assert len(metric.get_feature_names_out()) == metric.transform(X).shape[1]


def test_in_a_river_pipeline():
    pytest.importorskip("river")
    from metrack.river import KernelTracker as RiverKernelTracker

    model = RiverKernelTracker(seed=0, n_landmarks=16)
    for i, (point, ring) in enumerate(zip(*RINGS, strict=True)):
        x = dict(enumerate(point.tolist()))
        model.learn_one(x if i < 60 else x | {"late": 1.0}, ring)
    assert model.features == [0, 1, "late"]
    embedded = model.transform_one({0: 0.1, "late": 1.0})
    assert len(embedded) == 3 + 2 * 16
    assert np.isfinite(list(embedded.values())).all()
    assert state(model.tracker)["n_pairs_seen_"] is not None


def test_settings_that_do_not_fit():
    for settings, words in (
        ({"gamma": []}, "give 1 to 8 numbers"),
        ({"gamma": "scale"}, "choose one of 'auto'"),
    ):
        with pytest.raises(ValueError, match=words):
            KernelTracker(**settings).resolve(3)


def test_more_columns_than_there_can_be_are_refused():
    rows, y = pairs_of(RINGS[1], 20)
    with pytest.raises(ValueError, match=r"n_components=19; .* <= 18"):
        KernelTracker(n_landmarks=8, n_components=19).fit(RINGS[0][rows], y)
