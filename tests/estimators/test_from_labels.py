"""Class-labelled points: the buffer, the pairs drawn from it, and life in scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrack import COMID, ITML, SADL, FromLabels, MetricTracker
from metrack.estimators.choosing.pairing import CHUNK, PairBuffer
from tests.estimators.learners import state

ALL_CHECKS = """
import warnings
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator
from metrack import COMID, SADL, FromLabels, MetricTracker
warnings.simplefilter("ignore", SkipTestWarning)
results = check_estimator(FromLabels({learner}))
missed = [each["check_name"] for each in results if each["status"] != "passed"]
assert not missed, missed
assert results
"""


@pytest.mark.parametrize("learner", ["MetricTracker()", "COMID()"])
def test_scikit_learns_checks_pass_in_full(learner, monkeypatch):
    """None fails, none is skipped; one of them runs only where scipy was told before its import."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    code = ALL_CHECKS.format(learner=learner)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def blobs(n_points, n_features=6, n_classes=3, seed=0, feature=0):
    """Classes lie apart in one feature; the others are noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_points)
    X = rng.normal(size=(n_points, n_features))
    X[:, feature] = 3.0 * y + 0.5 * X[:, feature]
    return X, y


class Recorder:
    """In place of a learner: what it would have been taught."""

    def __init__(self):
        self.pairs, self.y = [], []

    def observe_batch(self, batch, y):
        self.pairs += batch.points[batch.rows][:, :, 0].astype(int).tolist()
        self.y += y.tolist()


def numbered(n_points):
    return np.arange(n_points, dtype=float)[:, None]


def held_by_a_buffer(n_points, size, recent, seed=0):
    """Numbers of the points remembered: the recent ones, and the others."""
    buffer = PairBuffer(size, recent, 1, np.random.RandomState(seed))
    buffer.teach(Recorder(), numbered(n_points), [0] * n_points)
    held = buffer.points[:size, 0].astype(int)
    assert (buffer.labels == 0).sum() == min(n_points, size)
    held = held[buffer.labels == 0]
    n_recent = round(recent * size)
    return set(held[:n_recent].tolist()), held[n_recent:].tolist()


@pytest.mark.parametrize("recent", [0.0, 0.5, 1.0])
def test_what_is_recent_is_remembered(recent):
    latest, _ = held_by_a_buffer(300, 20, recent)
    assert latest == set(range(300 - round(20 * recent), 300))


def test_all_is_remembered_while_there_is_room():
    for n_points in (1, 9, 10, 11, 20):
        latest, others = held_by_a_buffer(n_points, 20, 0.5)
        assert sorted([*latest, *others]) == list(range(n_points))


@pytest.mark.parametrize("recent", [0.0, 0.5])
def test_the_rest_is_a_uniform_sample_of_the_past(recent):
    n_points, size, trials = 120, 20, 600
    counts = np.zeros(n_points)
    for seed in range(trials):
        latest, others = held_by_a_buffer(n_points, size, recent, seed)
        assert len(others) == len(set(others)) == size - len(latest)
        counts[others] += 1
    older = n_points - len(latest)
    assert not counts[older:].any()
    expected = trials * len(others) / older
    # Drawn without replacement, counts vary a little less than this chi-square allows.
    chi_square = ((counts[:older] - expected) ** 2 / expected).sum()
    assert chi_square < older + 4.0 * np.sqrt(2.0 * older)


def test_the_buffer_is_bounded():
    """Whatever the stream's length, and however many classes it has."""
    buffer = PairBuffer(50, 0.5, 2, np.random.RandomState(0))
    for start in range(0, 20_000, 500):
        buffer.teach(Recorder(), numbered(500), range(start, start + 500))
    assert len(buffer.labels) == 50
    assert len(buffer.points) <= 50 + CHUNK
    assert len(buffer.codes) <= 4 * 50 + 500


@pytest.mark.parametrize("pairs_per_point", [1, 3, 4])
@pytest.mark.parametrize("rare", [0.5, 0.03])
def test_pairs_are_right_and_balanced(pairs_per_point, rare):
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < rare).astype(int)
    buffer, seen = PairBuffer(40, 0.5, pairs_per_point, np.random.RandomState(0)), Recorder()
    buffer.teach(seen, numbered(3000), labels.tolist())
    pairs, y = np.array(seen.pairs), np.array(seen.y)
    assert ((labels[pairs[:, 0]] == labels[pairs[:, 1]]) == (y > 0)).all()
    assert (pairs[:, 1] < pairs[:, 0]).all()  # with the past only
    assert np.bincount(pairs[:, 0]).max() <= pairs_per_point
    assert np.abs(np.cumsum(y)).max() <= 1  # balanced at every moment
    if rare == 0.5:  # then as many as were asked for
        assert len(pairs) > 0.99 * 3000 * pairs_per_point


def test_one_class_alone_teaches_nothing():
    X, _ = blobs(100)
    zero = {"divergence": "frobenius"}
    for learner in (COMID(**zero), SADL(**zero), SADL(combiner="sadl", **zero)):
        fitted = FromLabels(learner, random_state=0).partial_fit(X, np.zeros(100))
        assert fitted.learner_.n_pairs_seen_ <= 1
        assert fitted.transform(X).shape == (100, 6)
        assert not fitted.get_mahalanobis_matrix().any()
        assert fitted.learner_.mu_ >= 1.0
    fitted = FromLabels(COMID(init="identity"), random_state=0).partial_fit(X[:1], [0])
    np.testing.assert_allclose(fitted.transform(X), X)


@pytest.mark.parametrize("learner", [MetricTracker(), ITML()], ids=str)
def test_fit_needs_classes_to_tell_apart(learner):
    X, y = blobs(60)
    model = FromLabels(learner, random_state=0).fit(X, y)
    M = model.get_mahalanobis_matrix()
    for labels, words in (
        (np.full(9, "a"), "only one class, 'a': there are no dissimilar pairs .* another class"),
        (np.arange(9), "no class has two points: .* add points of the same class"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X[:9], labels)
        np.testing.assert_array_equal(model.get_mahalanobis_matrix(), M)


def test_more_components_than_features():
    X, y = blobs(60)
    with pytest.raises(ValueError, match="n_components=7; there are only 6 features"):
        FromLabels(COMID(n_components=7)).fit(X, y)
    assert FromLabels(COMID(n_components=6)).fit(X, y).transform(X).shape == (60, 6)


def test_one_point_and_one_feature():
    fitted = FromLabels(random_state=0).partial_fit([[1.0]], ["a"])
    assert fitted.transform([[2.0]])[0, 0] > 0.0  # nothing learned: a multiple of plain distance
    fitted.partial_fit([[3.0], [1.1], [3.1]], ["b", "a", "b"])
    assert fitted.transform([[2.0]])[0, 0] > 0.0
    assert fitted.learner_.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "learner",
    [
        MetricTracker(),
        SADL(output="sample", n_components=3),
        COMID(divergence="burg"),
        COMID(scale=None),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_batches_of_any_sizes_give_the_same_bit_for_bit(learner, kind):
    X, y = blobs(CHUNK + 300)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = 0.0
    X = kind(X)
    whole = FromLabels(learner, buffer_size=30, pairs_per_point=6, random_state=3).fit(X, y)
    pieces = FromLabels(learner, buffer_size=30, pairs_per_point=6, random_state=3)
    start = 0
    for size in (1, 1, 7, 60, 1, 500, 1000):
        pieces.partial_fit(X[start : start + size], y[start : start + size])
        start += size
    assert start >= len(y)
    assert state(pieces.learner_) == state(whole.learner_)
    assert (pieces.transform(X) == whole.transform(X)).all()
    assert (pieces.buffer_.doubt == whole.buffer_.doubt).all()


def test_sparse_points_are_dense_points():
    X, y = blobs(400)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    dense = FromLabels(random_state=0).fit(X, y)
    M = dense.get_mahalanobis_matrix()
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        sparse = FromLabels(random_state=0).fit(kind(X), y)
        np.testing.assert_allclose(sparse.get_mahalanobis_matrix(), M, atol=1e-10)
        np.testing.assert_allclose(sparse.transform(kind(X)), dense.transform(X), atol=1e-8)
    for first, second in ((sp.csr_array, np.asarray), (np.asarray, sp.csr_array)):
        mixed = FromLabels(random_state=0)
        mixed.partial_fit(first(X[:150]), y[:150]).partial_fit(second(X[150:]), y[150:])
        np.testing.assert_allclose(mixed.get_mahalanobis_matrix(), M, atol=1e-10)


@pytest.mark.parametrize(
    "names",
    [
        ["cat", "dog", "cow"],
        [7, -1, 3],
        [0.0, 1.0, 2.0],
        np.array(["a", "b", "c"], object),
    ],
    ids=str,
)
def test_labels_of_any_kind(names):
    X, y = blobs(200)
    named = np.asarray(names)[y]
    expected = state(FromLabels(random_state=0).fit(X, y).learner_)
    assert state(FromLabels(random_state=0).fit(X, named).learner_) == expected


def test_fit_forgets_and_the_learner_given_stays_as_it_was():
    X, y = blobs(200)
    learner = MetricTracker()
    model = FromLabels(learner, random_state=0).fit(X, y)
    first = state(model.learner_)
    model.partial_fit(X[:50], y[:50])
    assert state(model.learner_) != first
    assert state(model.fit(X, y).learner_) == first
    assert not hasattr(learner, "engine_")
    assert model.learner is learner


def test_random_state_reaches_the_learner():
    X, y = blobs(200)
    draw = FromLabels(SADL(output="sample"), random_state=5)
    first = state(clone(draw).fit(X, y).learner_)
    assert state(clone(draw).fit(X, y).learner_) == first
    own = FromLabels(SADL(output="sample", random_state=1), random_state=5).fit(X, y)
    assert own.learner_.random_state == 1
    assert state(own.learner_)["rng.0"] != first["rng.0"]


def test_drifting_labels_are_followed():
    """What the classes mean moves from one feature to another."""
    before, after = blobs(1000, feature=0, seed=1), blobs(1000, feature=3, seed=2)
    # Plain distance has a sixth in each feature. MetricTracker's metric for neighbours is drawn
    # towards what varies within classes, which is all features alike: it has less than its metric
    # for pairs. Half of what the buffer has in the end is from before.
    for learner, least in ((MetricTracker(), 0.25), (COMID(), 0.4)):
        model = FromLabels(learner, random_state=0).fit(*before)
        shares = np.diag(model.get_mahalanobis_matrix())
        assert shares.argmax() == 0
        model.partial_fit(*after)
        shares = np.diag(model.get_mahalanobis_matrix())
        assert shares.argmax() == 3
        assert shares[3] > least * shares.sum()


def test_read_outs_are_the_learners():
    X, y = blobs(300)
    model = FromLabels(random_state=0).fit(X, y)
    learner = model.learner_
    pairs = np.stack([X[:50], X[50:100]], axis=1)
    view = learner.for_neighbours()
    assert (model.components_ == view.components_).all()
    assert (model.get_mahalanobis_matrix() == view.get_mahalanobis_matrix()).all()
    assert (model.pair_distance(pairs) == view.pair_distance(pairs)).all()
    assert not np.allclose(model.pair_distance(pairs), learner.pair_distance(pairs))
    assert model.get_metric()(X[0], X[1]) == pytest.approx(model.pair_distance([X[:2]])[0])
    embedded = model.transform(X)
    gaps = np.linalg.norm(embedded[:50] - embedded[50:100], axis=1)
    np.testing.assert_allclose(gaps, model.pair_distance(pairs), rtol=1e-8)


def test_columns_do_not_depend_on_the_rank():
    X, y = blobs(300)
    assert FromLabels(SADL(rho=0.5)).fit(X, y).transform(X).shape == (300, 6)
    model = FromLabels(MetricTracker(n_components=2), random_state=0).fit(X, y)
    assert model.transform(X).shape == (300, 2)
    assert model.get_feature_names_out().tolist() == ["fromlabels0", "fromlabels1"]


def test_what_was_embedded_before_stays_comparable():
    """More points of the same kind may sharpen the metric, and turn nothing around."""
    X, y = blobs(2000)
    model = FromLabels(random_state=0).fit(X[:1000], y[:1000])
    before = model.transform(X)
    for start in range(1000, 2000, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
        after = model.transform(X)
        cosine = np.sum(after * before) / (np.linalg.norm(after) * np.linalg.norm(before))
        assert cosine > 0.9


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    X, y = blobs(100)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = FromLabels(random_state=0).set_output(transform="pandas").fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.n_features_in_ == 6
    assert model.transform(frame).columns.tolist() == [f"fromlabels{i}" for i in range(6)]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("fedcba")], y)


def test_in_a_pipeline_with_cross_validation_and_grid_search():
    X, y = blobs(400, n_features=25)
    knn = make_pipeline(StandardScaler(), KNeighborsClassifier())
    model = make_pipeline(
        StandardScaler(), FromLabels(MetricTracker(), random_state=0), KNeighborsClassifier()
    )
    plain = cross_val_score(knn, X, y, cv=3).mean()
    assert cross_val_score(model, X, y, cv=3, error_score="raise").mean() > plain + 0.1
    model.set_params(fromlabels__learner=COMID())
    grid = {"fromlabels__learner__rho": [0.01, 1e6], "fromlabels__buffer_size": [64]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["fromlabels__learner__rho"] == 0.01


def everything(model):
    """State, buffer and the numbers to come."""
    buffer = model.buffer_
    return (
        state(model.learner_),
        buffer.points[: buffer.size].tobytes(),
        buffer.labels.tobytes(),
        buffer.clock.tobytes(),
        repr(buffer.rng.get_state()),
        model.n_features_in_,
    )


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0, np.nan]], [0], "NaN"),
        ([[1.0, 1e200]], [0], "too large"),
        ([["a", "b"]], [0], "could not convert"),
        (np.empty((0, 2)), [], "0 sample"),
        ([[1.0, 2.0]], None, "requires y"),
        ([[1.0, 2.0]], [0, 1], "inconsistent"),
        ([[1.0, 2.0], [3.0, 4.0]], [0, np.nan], r"y\[1\] = nan: the class label is missing; drop"),
        ([[1.0, 2.0], [3.0, 4.0]], ["a", None], r"y\[1\] = None: the class label is missing"),
        ([[1.0, 2.0], [1.0, 2.0]], [0.5, 0.7], "continuous"),
    ],
)
def test_bad_input_leaves_everything_as_it_was(method, X, y, words):
    good, labels = blobs(60, n_features=2)
    model = FromLabels(random_state=0).fit(good, labels)
    before = everything(model)
    with pytest.raises(ValueError, match=words):
        getattr(model, method)(X, y)
    assert everything(model) == before


def test_another_number_of_features_is_refused_by_partial_fit():
    X, y = blobs(60, n_features=2)
    model = FromLabels(random_state=0).fit(X, y)
    before = everything(model)
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.ones((2, 3)), [0, 1])
    assert everything(model) == before


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"buffer_size": 0}, "buffer_size=0"),
        ({"buffer_size": 2.5}, "buffer_size=2.5"),
        ({"recent": 1.5}, "recent=1.5"),
        ({"recent": "half"}, "recent='half'"),
        ({"pairs_per_point": 0}, "pairs_per_point=0"),
        ({"learner": KNeighborsClassifier()}, "must be a pair learner"),
        ({"learner": MetricTracker(preprocessor=np.eye(2))}, "preprocessor"),
        ({"learner": SADL(rho=-1)}, "rho=-1"),
    ],
)
def test_bad_settings_are_refused_and_change_nothing(setting, words):
    X, y = blobs(60, n_features=2)
    model = FromLabels(random_state=0).fit(X, y)
    before = everything(model)
    model.set_params(**setting)
    with pytest.raises(ValueError, match=words):
        model.fit(np.hstack([X, X]), y)
    assert everything(model) == before
