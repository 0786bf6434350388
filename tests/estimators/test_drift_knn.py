"""DriftKNN: streams of all kinds, life in scikit-learn and in River, on disk and back."""

import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import metrack
from metrack import DriftKNN

ALL_CHECKS = """
import warnings
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator
from metrack import DriftKNN
warnings.simplefilter("ignore", SkipTestWarning)
results = check_estimator(DriftKNN())
missed = [each["check_name"] for each in results if each["status"] == "failed"]
skipped = [each["check_name"] for each in results if each["status"] == "skipped"]
assert not missed, missed
assert set(skipped) <= {"check_classifier_data_not_an_array"}, skipped  # needs pandas
assert results
"""


def test_scikit_learns_checks_pass_in_full(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    run = subprocess.run([sys.executable, "-c", ALL_CHECKS], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def drifting(n_points, n_features=6, n_classes=3, seed=0):
    """Classes lie apart in a feature, in the second half in another; units differ by far."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_points)
    X = rng.normal(size=(n_points, n_features))
    half = n_points // 2
    X[:half, 0] += 4.0 * y[:half]
    X[half:, 3] += 4.0 * y[half:]
    return X * 10.0 ** np.arange(-3, n_features - 3), y


def errors(model, X, y):
    return (model.observe(X, y) != y).astype(float)


def test_drift_is_followed_in_any_units():
    X, y = drifting(2000)
    wrong = errors(DriftKNN(random_state=0), X, y)
    assert wrong[800:1000].mean() < 0.12
    assert wrong[1000:1030].mean() > 0.3
    assert wrong[1800:].mean() < 0.12


def everything(model):
    """All that a model knows and puts out."""
    parts, metric = model.votes_.pack(), model.metric_
    arrays = [*parts.kept, *parts.trust, model.votes_.sight.images]
    buffer = metric.buffer_
    arrays += [
        buffer.points[: buffer.size],
        buffer.images[: buffer.size],
        buffer.labels,
        buffer.clock,
    ]
    arrays += [metric.components_]
    return [each.tobytes() for each in arrays], repr(buffer.rng.get_state()), model.labels()


@pytest.mark.parametrize("window", [30, 5000])
def test_any_cut_saved_and_resumed_is_the_same_bit_for_bit(window, tmp_path):
    X, y = drifting(700)
    names = np.array(["red", "green", "blue"])[y]
    whole = DriftKNN(window, random_state=0)
    expected = whole.observe(X, names)
    model, found = DriftKNN(window, random_state=0), []
    cuts = [0, 1, 2, 31, 32, 33, 100, 164, 500, 501, 700]
    for i, (start, stop) in enumerate(pairwise(cuts)):
        found += model.observe(X[start:stop], names[start:stop]).tolist()
        if i % 2:
            model.save(tmp_path / str(i))
            model = metrack.load(tmp_path / str(i))
    assert found == expected.tolist()
    assert everything(model) == everything(whole)
    assert (model.predict_proba(X) == whole.predict_proba(X)).all()
    assert model.drift_report().windows == whole.drift_report().windows
    assert model.get_params() == whole.get_params()


def test_fit_is_observe_from_the_start():
    X, y = drifting(300)
    model = DriftKNN(random_state=0)
    model.observe(X, y)
    again = clone(model).fit(X[:50], y[:50]).fit(X, y)
    assert everything(again) == everything(model)
    assert again.score(X[200:], y[200:]) > 0.8
    copied = pickle.loads(pickle.dumps(model))
    assert everything(copied.partial_fit(X, y)) == everything(model.partial_fit(X, y))


def test_what_is_observed_first_is_predicted_by_nobody():
    X, y = drifting(10)
    predicted = DriftKNN(random_state=0).observe(X, y)
    assert predicted[0] is None
    assert predicted[1] == y[0]
    known = DriftKNN(random_state=0).partial_fit(X[:1], y[:1])
    assert known.observe(X[1:], y[1:]).dtype == y.dtype


def test_classes_that_are_to_come():
    X, y = drifting(50, n_classes=2)
    model = DriftKNN(random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict_proba(X)[:, 2] == 0.0).all()
    model.partial_fit(X[:1], [7])
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.predict(X[:1]) in ([7], [y[0]])


@pytest.mark.parametrize("kind", [str, float, bool, int])
def test_labels_of_any_kind(kind):
    X, y = drifting(80, n_classes=2)
    named = y.astype(bool) if kind is bool else y.astype(kind)
    expected = DriftKNN(random_state=0).fit(X, y).predict(X)
    found = DriftKNN(random_state=0).fit(X, named).predict(X)
    assert found.tolist() == expected.astype(found.dtype).tolist()


def test_sorted_classes():
    """One after another: each is learned within a few points."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 200)
    X = rng.normal(size=(1000, 4)) + 4.0 * y[:, None]
    model = DriftKNN(random_state=0)
    assert errors(model, X, y).mean() < 0.05
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("window", [50, 5000])
def test_an_old_class_outlasts_a_burst_of_another(window):
    """When it comes back, trust returns to who still knows it after a mistake or two."""
    rng = np.random.default_rng(0)
    y = np.array([1, 0, 1]).repeat([30, 1000, 30])
    X = rng.normal(size=(len(y), 3)) + 5.0 * y[:, None]
    model = DriftKNN(window=window, random_state=0)
    assert errors(model, X, y)[-30:].sum() <= 3
    assert len(model.votes_.memory.codes) == window * 6 // 5


def test_a_single_class_for_long():
    X, _ = drifting(400)
    model = DriftKNN(window=100, random_state=0)
    assert errors(model, X, np.zeros(400)).sum() == 1
    assert (model.predict_proba(X) == 1.0).all()
    report = model.drift_report()
    assert sum(report.windows.values()) == pytest.approx(1.0)
    assert report.errors == {0.0: 0.0}


@pytest.mark.parametrize("value", [0.0, 1e30, -7.0])
def test_constant_features(value):
    X, y = drifting(600)
    model = DriftKNN(random_state=0)
    wrong = errors(model, np.hstack([X, np.full((600, 2), value)]), y)
    assert wrong[200:300].mean() < 0.15
    late = np.hstack([X, np.full((600, 1), value), X[:, 3:4]])  # they vary in the end
    assert np.isfinite(model.predict_proba(late)).all()
    errors(model, late, y)


def test_all_features_are_constant():
    model = DriftKNN(random_state=0).fit(np.ones((100, 3)), np.arange(100) % 2)
    assert np.isfinite(model.predict_proba(np.ones((2, 3)))).all()


def test_label_noise():
    X, y = drifting(3000)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(3000) < 0.3, rng.integers(3, size=3000), y)
    model = DriftKNN(random_state=0)
    assert (model.observe(X, noisy) != y)[1200:1500].mean() < 0.2


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_class_a_point():
    """Memory is bounded, also that for names."""
    X, _ = drifting(400)
    model = DriftKNN(window=10, random_state=0)
    for start in range(0, 400, 50):
        model.partial_fit(X[start : start + 50], np.arange(start, start + 50))
    assert len(model.classes_) <= 2 * 12 + 32 + 50
    assert set(model.votes_.memory.codes) <= set(range(len(model.classes_)))


def test_missing_batches():
    """Nothing is learned of an empty batch, and it is said so."""
    X, y = drifting(100)
    model = DriftKNN(random_state=0).fit(X, y)
    before = everything(model)
    with pytest.raises(ValueError, match="0 sample"):
        model.partial_fit(X[:0], y[:0])
    assert everything(model) == before
    assert model.partial_fit(X[50:], y[50:]).votes_.n_points == 150


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0, np.nan]], [0], "NaN"),
        ([[1.0, 1e200]], [0], "too large"),
        ([[1.0, 2.0]], None, "requires y"),
        ([[1.0, 2.0], [3.0, 4.0]], ["a", None], r"y\[1\] = None: the class label is missing"),
        ([[1.0, 2.0], [1.0, 2.0]], [0.5, 0.7], "continuous"),
        ([[1.0, 2.0, 3.0]], [0], "features"),
    ],
)
def test_bad_input_leaves_everything_as_it_was(X, y, words):
    good, labels = drifting(60, n_features=2 + 2)
    model = DriftKNN(random_state=0).fit(good[:, :2], labels)
    before = everything(model)
    for method in (model.partial_fit, model.observe):
        with pytest.raises(ValueError, match=words):
            method(X, y)
    assert everything(model) == before


@pytest.mark.parametrize("window", [0, 2.5, "all"])
def test_bad_windows(window):
    with pytest.raises(ValueError, match="window="):
        DriftKNN(window=window).fit([[0.0], [1.0]], [0, 1])


def test_reports_have_names():
    pandas = pytest.importorskip("pandas")
    X, y = drifting(2000)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = DriftKNN(random_state=0).fit(frame[:1000], np.array(["x", "y", "z"])[y[:1000]])
    before = model.metric_.learner_.get_metric()
    assert model.drift_report().features[0] == "a"
    model.partial_fit(frame[1000:], np.array(["x", "y", "z"])[y[1000:]])
    report = model.drift_report(since=before)
    assert set(report.features[:2]) == {"a", "d"}
    assert set(report.errors) == {"x", "y", "z"}


def test_reports_tell_what_changed():
    X, y = drifting(3000)
    model = DriftKNN(random_state=0).fit(X[:1500], y[:1500])
    before = model.metric_.learner_.get_metric()
    model.partial_fit(X[1500:], y[1500:])
    report = model.drift_report(since=before)
    assert set(report.features[:2].tolist()) == {0, 3}
    assert dict(zip(report.features.tolist(), report.change > 0, strict=True))[3]
    assert 1000 < report.points_since_change <= 1500
    for trust in (report.windows, report.neighbours, report.metrics):
        assert sum(trust.values()) == pytest.approx(1.0)
    assert list(report.windows) == [8, 40, 200, 1000, 5000, "all"]
    history = model.trust_history()
    assert history.stops[-1] == 3000
    assert len(history.stops) <= 256
    assert history.changes.sum() >= 1
    np.testing.assert_allclose(sum(history.windows.values()), 1.0)


def test_trust_as_a_plot():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    X, y = drifting(400)
    model = DriftKNN(random_state=0).fit(X, y)
    axes = model.plot_trust()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(names) == {"8", "40", "200", "1000", "5000", "all"}
    given = Figure().subplots()
    assert model.plot_trust(given) is given


def test_saved_labels_must_be_text_or_numbers(tmp_path):
    river = pytest.importorskip("metrack.river")
    model = river.DriftKNN(seed=0)
    model.learn_one({"a": 1.0}, ("x", 1))
    with pytest.raises(TypeError, match="text or numbers"):
        model.model.save(tmp_path)


def test_classes_of_several_types_are_reported():
    river = pytest.importorskip("metrack.river")
    model = river.DriftKNN(seed=0)
    for i in range(30):
        model.learn_one({"a": float(i % 3)}, 1 if i % 3 else "x")
    assert set(model.model.drift_report().errors) == {1, "x"}
