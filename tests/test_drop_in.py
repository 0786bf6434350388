"""A script written for metric-learn's ITML, run with metrack's classes and no other change.

What it must reach is set by two references on the same data: the Euclidean distance, and the metric
that a batch solver finds for all pairs at once.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metrack
from metrack.evaluate import best_fixed

LEARNERS = [metrack.MetricTracker, metrack.COMID]


class Wines:
    """The user's data: wines among features that say nothing, and judged pairs of their rows."""

    def __init__(self):
        rng = np.random.default_rng(0)
        wines, self.labels = load_wine(return_X_y=True)
        self.raw = np.hstack([wines, rng.normal(scale=100, size=(len(wines), 60))])
        self.X = StandardScaler().fit_transform(self.raw)
        rows = np.arange(len(self.X))
        self.train, self.test = train_test_split(rows, stratify=self.labels, random_state=0)
        self.pairs, self.y = self.judged(rng, self.train, 1500)
        self.pairs_valid, self.y_valid = self.judged(rng, self.train, 300)
        self.pairs_test, self.y_test = self.judged(rng, self.test, 500)

    def judged(self, rng, rows, n_pairs):
        pairs = rng.choice(rows, size=(2 * n_pairs, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]][:n_pairs]
        return pairs, np.where(self.labels[pairs[:, 0]] == self.labels[pairs[:, 1]], 1, -1)


@pytest.fixture(scope="module")
def data():
    return Wines()


@pytest.fixture(params=LEARNERS, ids=lambda learner: learner.__name__)
def ITML(request):  # the name that the script knows
    return request.param


@pytest.fixture
def itml(ITML, data):
    return ITML(preprocessor=data.X, random_state=0).fit(data.pairs, data.y)


def test_scores_and_distances(itml, data):
    distance, score = itml.pair_distance(data.pairs_test), itml.pair_score(data.pairs_test)
    assert distance.shape == (500,)
    assert (distance >= 0).all()
    np.testing.assert_array_equal(score, -distance)
    np.testing.assert_array_equal(itml.decision_function(data.pairs_test), score)
    assert itml.score(data.pairs_test, data.y_test) == roc_auc_score(data.y_test, score)


def test_quality_is_near_that_of_a_batch_solver(itml, data):
    u = np.diff(data.X[data.pairs_test], axis=1)[:, 0]
    euclidean = roc_auc_score(data.y_test, -np.einsum("ti,ti->t", u, u))
    M = best_fixed(data.X[data.pairs], data.y).M
    batch = roc_auc_score(data.y_test, -np.einsum("ti,ij,tj->t", u, M, u))
    reached = itml.score(data.pairs_test, data.y_test)
    assert reached > euclidean + 0.15
    assert reached > batch - 0.04


def test_thresholds(itml, data):
    def accuracy():
        return accuracy_score(data.y_test, itml.predict(data.pairs_test))

    always_no = (data.y_test == -1).mean()
    assert accuracy() > always_no + 0.1  # with the threshold learned along
    itml.calibrate_threshold(data.pairs_valid, data.y_valid)
    assert accuracy() > always_no + 0.15
    alike = itml.pair_distance(data.pairs_test) <= itml.threshold_
    np.testing.assert_array_equal(itml.predict(data.pairs_test), np.where(alike, 1, -1))
    itml.calibrate_threshold(data.pairs_valid, data.y_valid, strategy="max_tpr", min_rate=0.99)
    assert (itml.predict(data.pairs_valid)[data.y_valid == -1] == -1).mean() >= 0.99
    said, alike = [], data.y_test == 1  # of which not all are nearer than all others
    for beta in (0.01, 100.0):  # all that counts is to be right, or to find all alike pairs
        itml.calibrate_threshold(data.pairs_test, data.y_test, strategy="f_beta", beta=beta)
        said.append(itml.predict(data.pairs_test) == 1)
    right, complete = said
    assert complete[alike].all()
    assert alike[right].mean() > alike[complete].mean()
    itml.set_threshold(0.0)
    assert (itml.predict(data.pairs_test) == -1).all()


def test_fit_with_calibration(ITML, data):
    itml = ITML(preprocessor=data.X, random_state=0)
    itml.fit(data.pairs, data.y, calibration_params={"strategy": "f_beta", "beta": 1.0})
    always_no = (data.y_test == -1).mean()
    assert accuracy_score(data.y_test, itml.predict(data.pairs_test)) > always_no + 0.1


def test_metric_in_nearest_neighbours(itml, data):
    X, labels, train, test = data.X, data.labels, data.train, data.test

    def accuracy(embed, **options):
        knn = KNeighborsClassifier(5, **options).fit(embed(X[train]), labels[train])
        return knn.score(embed(X[test]), labels[test])

    by_metric = accuracy(lambda points: points, metric=itml.get_metric())
    assert by_metric > 0.9
    assert by_metric > accuracy(lambda points: points)
    assert accuracy(itml.transform) == by_metric
    piped = make_pipeline(StandardScaler(), KNeighborsClassifier(metric=itml.get_metric()))
    assert piped.fit(data.raw[train], labels[train]).score(data.raw[test], labels[test]) > 0.9


def test_the_metric_and_its_factor(itml, data):
    M, L, X = itml.get_mahalanobis_matrix(), itml.components_, data.X
    n_features = X.shape[1]
    assert M.shape == (n_features, n_features)
    assert L.shape[1] == n_features
    np.testing.assert_allclose(M, L.T @ L, atol=1e-12)
    np.testing.assert_allclose(itml.transform(X), X @ L.T, atol=1e-10)
    np.testing.assert_allclose(itml.transform(np.arange(5)), X[:5] @ L.T, atol=1e-10)  # by row
    metric = itml.get_metric()
    u = X[3] - X[7]
    assert metric(X[3], X[7]) == pytest.approx(np.sqrt(u @ M @ u))
    assert metric(X[3], X[7], squared=True) == pytest.approx(u @ M @ u)
    assert itml.pair_distance([[3, 7]])[0] == pytest.approx(metric(X[3], X[7]))
    # The noise counts for little: 2.7 to 4.4 times less with six seeds of the data.
    assert np.diag(M)[:13].mean() > 2 * np.diag(M)[13:].mean()


def test_pairs_as_points(ITML, itml, data):
    same = ITML(random_state=0).fit(data.X[data.pairs], data.y)
    np.testing.assert_array_equal(
        same.pair_distance(data.X[data.pairs_test]), itml.pair_distance(data.pairs_test)
    )


@pytest.mark.parametrize(
    ("scoring", "least"),  # by chance: 0.5, 0.5, 0.34, 0.66, 0.5
    [(None, 0.9), ("roc_auc", 0.9), ("average_precision", 0.8), ("accuracy", 0.75), ("f1", 0.75)],
)
def test_cross_validation(ITML, data, scoring, least):
    itml = ITML(preprocessor=data.X, random_state=0)
    scores = cross_val_score(itml, data.pairs, data.y, scoring=scoring, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > least


def test_grid_search(ITML, data):
    """Which version of the features is best: the unscaled ones are mostly noise."""
    grid = {"preprocessor": [data.raw, data.X]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(ITML(random_state=0), grid, cv=folds).fit(data.pairs, data.y)
    assert search.best_params_["preprocessor"] is data.X
    assert search.score(data.pairs_test, data.y_test) > 0.9
    assert search.predict(data.pairs_test).shape == (500,)
    assert set(search.classes_) == {-1, 1}


@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (metrack.SADL(random_state=0), {"rho": [0.001, 10.0], "n_components": [None, 4]}),
        (metrack.COMID(), {"rho": [0.001, 10.0], "loss": ["hinge", "logistic"]}),
    ],
    ids=["SADL", "COMID"],
)
def test_grid_search_over_own_settings(learner, grid, data):
    search = GridSearchCV(learner.set_params(preprocessor=data.X), grid, cv=3, n_jobs=1)
    search.fit(data.pairs, data.y)
    assert search.best_params_["rho"] == 0.001
    assert search.score(data.pairs_test, data.y_test) > 0.9


def test_cloned_and_pickled(itml, data):
    again = clone(itml).fit(data.pairs, data.y)
    loaded = pickle.loads(pickle.dumps(itml))
    for other in (again, loaded):
        np.testing.assert_array_equal(
            other.pair_distance(data.pairs_test), itml.pair_distance(data.pairs_test)
        )
    assert set(itml.classes_) == {-1, 1}
