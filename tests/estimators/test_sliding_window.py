"""SlidingWindow: what is fitted, when, and what is told in between."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from metrack import COMID, LEGO, OASIS, MetricTracker, SlidingWindow
from metrack.estimators.bases.linear import LinearEmbedding
from tests.estimators.learners import make_stream


class Spread(LinearEmbedding):
    """A learner of labelled points that counts its fits and says where they started."""

    preprocessor = None
    preprocessor_ = None

    def __init__(self, warm_start=False):
        self.warm_start = warm_start

    def fit(self, X, y):
        self.starts_ = [*getattr(self, "starts_", []), self.warm_start]
        dense = X.toarray() if sp.issparse(X) else X
        self.X_, self.y_ = X, y
        self.components_ = np.diag(1.0 / (1.0 + dense.std(axis=0)))
        self.n_features_in_ = X.shape[1]
        return self


@pytest.mark.parametrize("learner", [LEGO(), COMID(), MetricTracker()], ids=repr)
def test_it_is_the_learner_fitted_to_the_latest(learner):
    stream = make_stream(4, 1000)
    window = SlidingWindow(learner, window=150, every=40)
    start = 0
    for stop in range(7, 1000, 57):
        window.partial_fit(stream.pairs[start:stop], stream.y[start:stop])
        start = stop
        last = stop // 40 * 40  # when it was fitted
        if last == 0:
            continue
        latest = slice(max(0, last - 150), last)
        by_hand = clone(learner).fit(stream.pairs[latest], stream.y[latest])
        assert_array_equal(window.components_, by_hand.components_)
        assert window.threshold_ == by_hand.threshold_
        assert window.n_seen_ == stop
        assert window.n_fits_ == stop // 40


@pytest.mark.parametrize("kind", ["pairs", "rows", "sparse"])
@pytest.mark.parametrize(("window", "every"), [(100, 30), (30, 100), (7, 1), (1000, 50), (64, 64)])
def test_calls_of_any_sizes_are_as_one(window, every, kind):
    stream = make_stream(4)
    points = sp.csr_array(stream.points) if kind == "sparse" else stream.points
    items = stream.pairs if kind == "pairs" else stream.rows
    whole = SlidingWindow(LEGO(preprocessor=points), window=window, every=every)
    losses = whole.observe(items, stream.y)
    for cuts in [1, 2, 99, 100, 101], range(1, 240), [200]:
        split = clone(whole)
        pieces = zip(np.split(items, cuts), np.split(stream.y, cuts), strict=True)
        found = np.concatenate([split.observe(some, y) for some, y in pieces])
        assert_allclose(found, losses, rtol=1e-12, atol=1e-12)  # BLAS sums a batch in its own way
        assert_array_equal(split.components_, whole.components_)
        assert split.n_fits_ == whole.n_fits_
        assert split._n_held < 2 * window + every  # memory is bounded


def test_observe_judges_by_the_metric_before():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(), window=100, every=50)
    losses = window.observe(stream.pairs, stream.y)
    assert_array_equal(losses[:50], 1 - stream.y[:50])  # no metric yet
    for start in range(50, 240, 50):
        before = slice(max(0, start - 100), start)
        by_hand = LEGO().fit(stream.pairs[before], stream.y[before])
        part = slice(start, start + 50)
        squares = by_hand.pair_distance(stream.pairs[part]) ** 2 / by_hand.threshold_**2
        assert_allclose(losses[part], np.maximum(0, 1 - stream.y[part] * (1 - squares)))


def test_losses_stay_finite_at_a_threshold_of_0():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(), every=50).fit(stream.pairs, stream.y).set_threshold(0.0)
    assert np.isfinite(window.observe(stream.pairs[:20], stream.y[:20])).all()


def test_fit_rests_on_the_last_and_counts_anew():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(), window=70, every=30)
    window.partial_fit(stream.pairs[:65], stream.y[:65])
    assert window.fit(stream.pairs, stream.y) is window
    by_hand = LEGO().fit(stream.pairs[-70:], stream.y[-70:])
    assert_array_equal(window.components_, by_hand.components_)
    assert (window.n_fits_, window.n_seen_) == (1, 240)
    window.partial_fit(stream.pairs[:29], stream.y[:29])
    assert window.n_fits_ == 1
    window.partial_fit(stream.pairs[29:30], stream.y[29:30])
    assert window.n_fits_ == 2
    narrow = make_stream(2)
    assert window.fit(narrow.pairs, narrow.y).n_features_in_ == 2


def test_it_follows_a_change_that_the_whole_past_hides():
    stream = make_stream(6, 4000)
    y = stream.y.copy()
    y[2000:] = np.where(np.abs(np.diff(stream.pairs[2000:, :, 1], axis=1)[:, 0]) < 0.7, 1, -1)
    short = SlidingWindow(COMID(schedule="invsqrt"), window=500, every=250)
    long = SlidingWindow(COMID(schedule="invsqrt"), window=4000, every=250)
    for each in short, long:
        each.partial_fit(stream.pairs[:3500], y[:3500])
    later = stream.pairs[3500:], y[3500:]
    assert short.score(*later) > long.score(*later)


def test_read_outs_are_the_learners():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(preprocessor=stream.points)).fit(stream.rows, stream.y)
    learner = window.learner_
    for name in "pair_distance", "pair_score", "decision_function", "predict":
        assert_array_equal(getattr(window, name)(stream.rows), getattr(learner, name)(stream.rows))
    assert_array_equal(window.transform([1, 2]), learner.transform([1, 2]))
    assert_array_equal(window.get_mahalanobis_matrix(), learner.get_mahalanobis_matrix())
    assert window.get_metric()(*stream.pairs[1]) == learner.get_metric()(*stream.pairs[1])
    assert window.score(stream.rows, stream.y) == learner.score(stream.rows, stream.y)
    assert window.calibrate_threshold(stream.rows, stream.y, strategy="f_beta") is window
    assert window.set_threshold(0.5).threshold_ == learner.threshold_ == 0.5
    assert window.n_features_in_ == 4
    twin = pickle.loads(pickle.dumps(window))
    assert_array_equal(twin.components_, window.components_)


# Points and triplets


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_labelled_points(make):
    stream = make_stream(4)
    X, y = make(stream.points), np.where(stream.points[:, 0] > 0, "warm", "cold")
    window = SlidingWindow(Spread(), window=30, every=20)
    for start in range(0, 100, 9):
        window.partial_fit(X[start : start + 9], y[start : start + 9])
    held = window.learner_.X_
    assert_array_equal(held.toarray() if sp.issparse(held) else held, stream.points[70:])
    assert_array_equal(window.learner_.y_, y[70:])
    assert_array_equal(window.transform(X), window.learner_.transform(X))
    assert window.n_fits_ == 5
    for name in "observe", "predict", "decision_function", "score", "set_threshold", "threshold_":
        assert not hasattr(window, name)


def test_warm_start_where_the_learner_can():
    stream = make_stream(4)
    y = stream.points[:, 0] > 0
    window = SlidingWindow(Spread(), window=30, every=20).partial_fit(stream.points, y)
    assert window.learner_.starts_ == [True] * 5  # in place
    assert not window.learner.warm_start
    assert window.fit(stream.points, y).learner_.starts_ == [True]


@pytest.mark.parametrize("learner", [NeighborhoodComponentsAnalysis(2, random_state=0)], ids=repr)
def test_learners_of_scikit_learn(learner):
    stream = make_stream(4)
    X, y = stream.points, stream.points[:, 0] > 0
    window = SlidingWindow(learner, window=60, every=50).partial_fit(X, y)
    assert window.n_fits_ == 2
    assert window.transform(X).shape == (100, 2)


def test_triplets():
    rng = np.random.default_rng(0)
    triplets = rng.normal(size=(300, 3, 4))
    window = SlidingWindow(OASIS(), window=120, every=100)
    losses = window.observe(triplets)
    assert_array_equal(losses[:100], 1.0)
    by_hand = OASIS().fit(triplets[80:200])
    expected = np.maximum(0, 1 - by_hand.decision_function(triplets[200:]))
    assert_array_equal(losses[200:], expected)
    pairs = triplets[:, :2]
    assert_array_equal(window.pair_score(pairs), OASIS().fit(triplets[180:]).pair_score(pairs))


# What a stream may bring


def test_one_label_only_waits_for_another():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(), window=20, every=10)
    alike = stream.pairs[stream.y > 0][:30]
    window.partial_fit(alike, np.ones(30))
    assert window.n_fits_ == 0
    with pytest.raises(NotFittedError, match="not fitted yet"):
        window.predict(alike)
    window.partial_fit(stream.pairs[stream.y < 0][:10], -np.ones(10))
    assert window.n_fits_ == 1


def test_unfitted():
    window = SlidingWindow(LEGO())
    for use in (
        lambda: window.components_,
        lambda: window.threshold_,
        lambda: window.predict([[[0.0], [1.0]]]),
        lambda: window.pair_score([[[0.0], [1.0]]]),
        lambda: window.transform([[0.0]]),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()


def test_the_callers_arrays_may_change_afterwards():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(), window=100, every=80)
    buffer, labels = np.empty((40, 2, 4)), np.empty(40)
    for start in range(0, 240, 40):
        buffer[:], labels[:] = stream.pairs[start : start + 40], stream.y[start : start + 40]
        window.partial_fit(buffer, labels)
    by_hand = LEGO().fit(stream.pairs[-100:], stream.y[-100:])
    assert_array_equal(window.components_, by_hand.components_)


BAD = {
    "NaN": (
        lambda s: (np.where(s.pairs == s.pairs[3, 1, 0], np.nan, s.pairs), s.y),
        "contains NaN",
    ),
    "label": (lambda s: (s.pairs, 2 * s.y), r"y\[0\] = -?2; labels are"),
    "width": (lambda s: (s.pairs[:, :, 1:], s.y), "pairs has 3 features, but"),
    "few labels": (lambda s: (s.pairs, s.y[1:]), "one label per pair"),
    "no labels": (lambda s: (s.pairs, None), "requires y to be passed"),
    "empty": (lambda s: (s.pairs[:0], s.y[:0]), "pairs is empty"),
    "rows": (lambda s: (s.rows, s.y), "pass the points they refer to as preprocessor"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "observe"])
def test_bad_input_changes_nothing(kind, method):
    stream = make_stream(4)
    window, other = (SlidingWindow(LEGO(), 90, 50) for _ in range(2))
    for each in window, other:
        each.partial_fit(stream.pairs[:70], stream.y[:70])
    change, words = BAD[kind]
    if (kind, method) != ("width", "fit"):
        with pytest.raises(ValueError, match=words):
            getattr(window, method)(*change(stream))
    for each in window, other:
        each.partial_fit(stream.pairs[70:], stream.y[70:])
    assert_array_equal(window.components_, other.components_)
    fresh = clone(window)
    if kind != "width":
        with pytest.raises(ValueError, match=words):
            getattr(fresh, method)(*change(stream))
        assert set(vars(fresh)) == set(fresh.get_params(deep=False))


def test_a_fit_that_fails_leaves_the_window_as_it_was():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(learning_rate=-1.0), 90, 50)
    window.partial_fit(stream.pairs[:49], stream.y[:49])
    for _ in range(2):
        with pytest.raises(ValueError, match="learning_rate=-1"):
            window.partial_fit(stream.pairs[49:], stream.y[49:])
        assert window.n_seen_ == 49
        assert window._n_held == 49


def test_rows_and_points_do_not_mix():
    stream = make_stream(4)
    window = SlidingWindow(LEGO(preprocessor=stream.points)).partial_fit(stream.rows, stream.y)
    with pytest.raises(ValueError, match="some pairs are row numbers and some are points"):
        window.partial_fit(stream.pairs, stream.y)


@pytest.mark.parametrize("y", [None, [0, 1], np.zeros((100, 1))])
def test_labels_of_points(y):
    with pytest.raises(ValueError, match=r"y must have one label per point: 100 points, but y has"):
        SlidingWindow(Spread()).partial_fit(make_stream(4).points, y)


def test_labels_of_points_are_classes():
    with pytest.raises(ValueError, match="Unknown label type"):
        SlidingWindow(Spread()).partial_fit(make_stream(4).points, np.linspace(0, 1, 100))
    for labels in np.r_[np.zeros(99), np.nan], np.array(["a"] * 99 + [None], object):
        with pytest.raises(ValueError, match=r"y\[99\] = .*: the class label is missing; drop"):
            SlidingWindow(Spread()).partial_fit(make_stream(4).points, labels)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 0}, "^window=0; it must be a whole number"),
        ({"every": 1.5}, "^every=1.5; it must be a whole number"),
        ({"learner": LEGO}, "^learner=<class .*; it must be an estimator"),
        ({"learner": None}, "^learner=None; it must be an estimator"),
    ],
)
def test_settings(settings, words):
    stream = make_stream(4)
    window = SlidingWindow(LEGO()).set_params(**settings)
    with pytest.raises(ValueError, match=words):
        window.partial_fit(stream.pairs, stream.y)


def test_settings_of_the_learner_can_be_reached():
    window = SlidingWindow(LEGO()).set_params(learner__learning_rate=0.25)
    assert window.learner.learning_rate == 0.25
    assert clone(window).get_params()["learner__learning_rate"] == 0.25


def test_tags_are_the_learners():
    assert SlidingWindow(LEGO()).__sklearn_tags__().estimator_type == "classifier"
    assert SlidingWindow(LEGO()).__sklearn_tags__().input_tags.three_d_array
    tags = SlidingWindow(LinearDiscriminantAnalysis()).__sklearn_tags__()
    assert tags.input_tags.two_d_array
    assert tags.target_tags.required
