"""The trackers in River: its own checks, features that come and go, and life in its pipelines."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("river")

from river import base, checks, compose, evaluate, metrics, neighbors, preprocessing

import metrack
from metrack import river
from metrack.estimators.comid import learners_of
from tests.estimators.learners import state

SETTINGS = [
    {},
    {"n_components": 2},
    {"seed": 1, "recent": 0.0, "pairs_per_point": 1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", [river.MetricTracker, river.COMID])
def test_rivers_checks_pass_in_full(kind, settings):
    assert not any("_unit_test_skips" in vars(each) for each in kind.__mro__ if ours(each))
    checks.check_estimator(kind(**settings))


def ours(kind):
    return kind.__module__.startswith("metrack")


def points(n_points, n_features=6, seed=0, feature=0):
    """Classes lie apart in one feature; the others are noise."""
    rng = np.random.default_rng(seed)
    for _ in range(n_points):
        x, y = rng.normal(size=n_features), rng.choice(["a", "b", "c"])
        x[feature] = 3.0 * "abc".index(y) + 0.5 * x[feature]
        yield {f"f{i}": value for i, value in enumerate(x.tolist())}, str(y)


def taught(model, stream):
    for x, y in stream:
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize(
    ("kind", "settings"), [("MetricTracker", {"n_components": 2}), ("COMID", {})]
)
def test_it_is_from_labels_bit_for_bit(kind, settings):
    stream = list(points(300))
    X, y = np.array([list(x.values()) for x, _ in stream]), [y for _, y in stream]
    model = taught(getattr(river, kind)(seed=4, buffer_size=50, **settings), stream)
    learner = getattr(metrack, kind)(**settings)
    expected = metrack.FromLabels(learner, buffer_size=50, random_state=4).fit(X, y)
    assert state(model.tracker) == state(expected.learner_)
    embedded = [list(model.transform_one(x).values()) for x, _ in stream]
    np.testing.assert_allclose(embedded, expected.transform(X), atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"rho": 0.0},
        {"n_components": 1},
        {"n_components": 5},
        {"init": "identity", "rho": 0.0},
        {"divergence": "frobenius"},
        {"divergence": "von_neumann", "n_components": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_first", [2, 7])
def test_a_feature_not_seen_yet_is_one_that_was_always_0(settings, n_first):
    """Frames and bases, and capacities that grow with the features.

    They come when the metric is read by which near points are told from far ones: it says nothing
    about a feature that came later.
    """
    late = river.COMID(seed=0, buffer_size=60, **settings)
    all_along = river.COMID(seed=0, buffer_size=60, **settings)
    all_along.learn_one(dict.fromkeys((f"f{i}" for i in range(10)), 0.0), "a")
    late.learn_one(dict.fromkeys((f"f{i}" for i in range(n_first)), 0.0), "a")
    for t, (x, y) in enumerate(points(600, 10)):
        known = dict(list(x.items())[: n_first + (t + 1) // 64])
        late.learn_one(known, y)
        all_along.learn_one(known, y)
    order = [late.features.index(name) for name in all_along.features]
    M = late.tracker.get_mahalanobis_matrix()[np.ix_(order, order)]
    expected = all_along.tracker.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, expected, atol=1e-8 * np.abs(expected).max())
    assert late.tracker.mu_ == pytest.approx(all_along.tracker.mu_, rel=1e-8)
    rest = state(late.tracker)["n_features_in_"], state(late.tracker)["n_pairs_seen_"]
    assert rest == tuple(state(all_along.tracker)[n] for n in ("n_features_in_", "n_pairs_seen_"))


def test_the_automatic_regulariser_follows_the_number_of_features():
    model = river.MetricTracker(seed=0)
    for t, (x, y) in enumerate(points(200, 10)):
        model.learn_one(dict(list(x.items())[: 5 + t // 40]), y)
    expected = metrack.MetricTracker().resolve(len(model.features))
    assert model.tracker.resolved_ == expected
    for bank, built in zip(model.tracker.engine_.banks, expected.build().banks, strict=True):
        if bank.name == "target":
            np.testing.assert_array_equal(bank.pace.rho, built.pace.rho)


def test_features_come_and_go():
    model = river.MetricTracker(seed=0)
    assert model.transform_one({"f0": 1.0}) == {}
    model.learn_one({}, "a")
    stream = list(points(200))
    taught(model, stream[:100])
    x = stream[0][0]
    embedded = model.transform_one(x)
    assert list(embedded) == [f"metric{i}" for i in range(6)]
    assert model.transform_one(x | {"unknown": 5.0}) == embedded
    assert model.transform_one({}) == dict.fromkeys(embedded, 0.0)
    without = {name: value for name, value in x.items() if name != "f3"}
    assert model.transform_one(without) == pytest.approx(model.transform_one(x | {"f3": 0.0}))
    model.learn_one({"f0": 1.0, 7: 2.0, ("a", 1): True}, "b")
    assert sorted(map(str, model.features[6:])) == ["('a', 1)", "7"]
    assert len(model.transform_one(x)) == 8
    assert len(taught(river.COMID(seed=0, n_components=2), stream).transform_one(x)) == 2


def test_copies_go_on_alike():
    stream = list(points(200))
    model = taught(river.MetricTracker(seed=0), stream[:100])
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    fresh = model.clone()
    expected = state(taught(model, stream[100:]).tracker)
    for each in copies:
        assert state(taught(each, stream[100:]).tracker) == expected
    assert state(taught(fresh, stream).tracker) == expected
    assert model.clone({"n_components": 2}).tracker.n_components == 2


def noisy(n_points, **options):
    for x, y in points(n_points, 20, **options):
        yield {name: value * (1 if name in ("f0", "f5") else 2) for name, value in x.items()}, y


def accuracy(stream, *steps):
    model = compose.Pipeline(*steps)
    return evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get()


def test_neighbours_in_a_pipeline_are_better_for_it():
    drifting = [*noisy(500), *noisy(500, feature=5, seed=1)]
    scaler = preprocessing.StandardScaler()
    knn = neighbors.KNNClassifier(engine=neighbors.LazySearch(100))
    plain = accuracy(drifting, scaler.clone(), knn.clone())
    for kind in (river.MetricTracker, river.COMID):
        assert accuracy(drifting, scaler.clone(), kind(seed=0), knn.clone()) > plain + 0.1


def test_what_follows_in_a_pipeline_learns_from_the_embedding():
    class Last(base.Classifier):
        def learn_one(self, x, y):
            self.x = x

        def predict_proba_one(self, x):
            return {}

    model = river.MetricTracker(seed=0) | Last()
    taught(model, points(60))
    assert set(model["Last"].x) == {f"metric{i}" for i in range(6)}


def test_beside_other_features():
    model = (river.COMID(seed=0) + compose.Select("f1")) | neighbors.KNNClassifier()
    taught(model, points(200))
    assert np.mean([model.predict_one(x) == y for x, y in points(100, seed=1)]) > 0.6


@pytest.mark.parametrize("value", ["red", "1.5", None, float("nan"), float("inf"), 1e200, 10**400])
def test_bad_values_are_named_and_leave_everything_as_it_was(value):
    model = taught(river.MetricTracker(seed=0), points(50))
    before = pickle.dumps(model)
    for method in (lambda x: model.learn_one(x, "a"), model.transform_one):
        with pytest.raises(ValueError, match=r"x\['f2'\] is .*encode text"):
            method({"f1": 0.0, "f2": value, "new": 1.0})
    assert pickle.dumps(model) == before


def test_bad_settings():
    with pytest.raises(TypeError, match=r"MetricTracker has no setting .learning_rate.; it has"):
        river.MetricTracker(learning_rate=1.0)
    with pytest.raises(TypeError, match="preprocessor"):
        river.MetricTracker(preprocessor=np.eye(2))
    with pytest.raises(ValueError, match="buffer_size=0"):
        river.MetricTracker(buffer_size=0)
    model = river.COMID(rho=-1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="rho"):
            model.learn_one({"a": 1.0}, "x")


def test_without_river_the_remedy_is_named():
    code = "import sys; sys.modules['river'] = None; import metrack.river"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert 'pip install "metrack[river]"' in run.stderr


def test_a_stream_that_grows_is_learned_as_its_width_asks():
    """At three features and at 120 other learners are chosen."""
    model = taught(river.COMID(seed=0), points(50, 3))
    narrow, seen = learners_of(model.tracker).rule, model.tracker.n_pairs_seen_
    taught(model, points(20, 120, seed=1))
    expected = metrack.COMID().fit(np.eye(2, 120)[None], [1])
    bank, expected = learners_of(model.tracker), learners_of(expected)
    assert (bank.representation, bank.rule) == (expected.representation, expected.rule)
    assert bank.rule.divergence != narrow.divergence
    assert model.tracker.n_pairs_seen_ == seen + 80
    assert len(model.transform_one(next(points(1, 120))[0])) == 120


def test_a_stream_may_bring_so_many_features_and_no_more():
    model = taught(river.COMID(seed=0, max_features=7), points(30, 7))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"'new'.* makes 8; at most max_features=7 .*hash"):
        model.learn_one({"f1": 0.5, "new": 1.0}, "a")
    assert pickle.dumps(model) == before
    assert model.clone().max_features == 7
    with pytest.raises(ValueError, match="max_features=0"):
        river.MetricTracker(max_features=0)


def test_points_without_labels_count():
    metric = river.MetricTracker(seed=0)
    rng = np.random.default_rng(0)
    for size, noise in rng.normal(size=(200, 2)) * [5.0, 1.0]:
        metric.observe_one({"size": size, "noise": noise})
    here, there = (
        metric.transform_one({"size": 1.0, "noise": 0.0}),
        metric.transform_one({"noise": 1}),
    )
    assert sum(v * v for v in here.values()) > 4 * sum(v * v for v in there.values())
    assert metric.tracker.points_.moments.counts[0] == 200
    metric.learn_one({"size": 1.0, "noise": 0.0, "new": 1.0}, "a")
    assert metric.tracker.points_.moments.mean.shape == (3,)


@pytest.mark.parametrize("settings", [{}, {"seed": 1, "window": 30}], ids=str)
def test_rivers_checks_of_a_classifier_pass_in_full(settings):
    checks.check_estimator(river.DriftKNN(**settings))


def test_the_classifier_is_metracks_bit_for_bit():
    stream = list(points(300))
    X, y = np.array([list(x.values()) for x, _ in stream]), [y for _, y in stream]
    model = river.DriftKNN(seed=4, window=100)
    found = []
    for x, label in stream:
        found.append(model.predict_one(x))
        model.learn_one(x, label)
    expected = metrack.DriftKNN(window=100, random_state=4)
    assert found == expected.observe(X, y).tolist()
    shares = [model.predict_proba_one(x) for x, _ in stream]
    assert [[each[label] for label in "abc"] for each in shares] == expected.predict_proba(
        X
    ).tolist()


def test_features_come_and_go_for_the_classifier():
    model = river.DriftKNN(seed=0)
    assert model.predict_proba_one({"f0": 1.0}) == {}
    model.learn_one({}, "a")
    stream = list(points(150))
    for t, (x, y) in enumerate(stream):
        model.learn_one(dict(list(x.items())[: 1 + t // 20]), y)
    assert len(model.features) == 6
    x = stream[0][0]
    assert model.predict_proba_one(x | {"unknown": 5.0}) == model.predict_proba_one(x)
    model.learn_one(x, ("any", "label"))
    assert ("any", "label") in model.predict_proba_one(x)
    with pytest.raises(ValueError, match="x\\['f0'\\] is 'red'"):
        model.learn_one({"f0": "red"}, "a")
