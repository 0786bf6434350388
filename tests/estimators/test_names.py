"""Names of features: of the columns of any DataFrame, kept wherever the features go."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

import metrack
from metrack import (
    COMID,
    ITML,
    LMNN,
    OASIS,
    FromLabels,
    FromTransformer,
    KernelTracker,
    MetricTracker,
    SlidingWindow,
)
from metrack.tracking.inspection import sections
from metrack.tracking.state import Tracking

NAMES = ["price", "brand", "colour"]
POINTS = np.random.default_rng(0).normal(size=(60, 3))
ROWS = np.random.default_rng(1).integers(60, size=(200, 2))
Y = np.where(np.abs(POINTS[ROWS[:, 0], 1] - POINTS[ROWS[:, 1], 1]) < 0.7, 1, -1)
CLASSES = (POINTS[:, 1] > 0).astype(int)
FRAMES = {
    "pyarrow": lambda pa, columns: pa.table(columns),
    "pandas": lambda pd, columns: pd.DataFrame(columns),
    "polars": lambda pl, columns: pl.DataFrame(columns),
}


@pytest.fixture(params=FRAMES)
def make(request):
    """Makes a DataFrame of columns by name."""
    package = pytest.importorskip(request.param)
    return lambda columns: FRAMES[request.param](package, columns)


@pytest.fixture
def frame(make):
    return make(dict(zip(NAMES, POINTS.T, strict=True)))


@pytest.mark.parametrize(
    "learner",
    [
        MetricTracker(),
        COMID(),
        KernelTracker(n_landmarks=8),
        ITML(),
        SlidingWindow(MetricTracker(), 100, 50),
    ],
)
def test_columns_of_the_preprocessor_name_the_features(learner, frame):
    learner = clone(learner)
    inner = getattr(learner, "learner", learner)
    inner.set_params(preprocessor=frame)
    learner.fit(ROWS, Y)
    assert learner.feature_names_in_.tolist() == NAMES
    plain = clone(learner)
    getattr(plain, "learner", plain).set_params(preprocessor=POINTS)
    plain.fit(ROWS, Y)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_array_equal(learner.pair_distance(ROWS), plain.pair_distance(ROWS))
    names = learner.get_feature_names_out()
    assert len(names) == learner.transform([0, 1]).shape[1]
    assert names[0].startswith(type(learner).__name__.lower())


def test_other_learners_know_them_too(frame):
    triplets = np.random.default_rng(2).integers(60, size=(50, 3))
    assert OASIS(preprocessor=frame).fit(triplets).feature_names_in_.tolist() == NAMES
    for learner in LMNN(), FromTransformer(PCA()), FromLabels(MetricTracker()), FromLabels(ITML()):
        assert learner.fit(frame, CLASSES).feature_names_in_.tolist() == NAMES
    lmnn = LMNN(preprocessor=frame).fit(np.arange(60), CLASSES)
    assert lmnn.feature_names_in_.tolist() == NAMES
    window = SlidingWindow(LMNN(), 60, 30).partial_fit(frame, CLASSES)
    assert window.feature_names_in_.tolist() == NAMES


def test_reports_tell_features_by_name(frame, tmp_path):
    tracker = MetricTracker(preprocessor=frame).partial_fit(ROWS, Y)
    assert tracker.top_features(n=1)[0][0] == "brand"
    assert tracker.for_neighbours().top_features(n=1)[0][0] == "brand"
    report = tracker.drift_report()
    assert sorted(report.features) == sorted(NAMES)
    (name, change), *others = report.most_changed()
    assert (name, change) == (report.features[0], report.change[NAMES.index(name)])
    assert len(others) == 2
    assert tracker.drift_report(names=["a", "b", "c"]).features[0] in "abc"
    with pytest.raises(ValueError, match="names has 2 names for 3 features; give one each"):
        tracker.drift_report(names=["a", "b"])
    inside = FromLabels(MetricTracker(), random_state=0).fit(frame, CLASSES).learner_
    assert sorted(inside.drift_report().features) == sorted(NAMES)
    numbered = MetricTracker(preprocessor=POINTS).fit(ROWS, Y).drift_report()
    assert sorted(numbered.features.tolist()) == [0, 1, 2]


def test_points_without_judgements_name_the_features(frame):
    tracker = MetricTracker().observe_points(frame)
    assert tracker.feature_names_in_.tolist() == NAMES
    assert tracker.top_features(n=1)[0][0] in NAMES
    assert not hasattr(MetricTracker().observe_points(POINTS), "feature_names_in_")


def test_names_are_saved(frame, tmp_path):
    learners = (
        MetricTracker(preprocessor=frame).fit(ROWS, Y),
        FromLabels(MetricTracker()).fit(frame, CLASSES),
    )
    for i, learner in enumerate(learners):
        learner.save(tmp_path / str(i))
        loaded = metrack.load(tmp_path / str(i))
        assert loaded.feature_names_in_.tolist() == NAMES
        assert getattr(loaded, "learner_", loaded).drift_report().features[0] in NAMES


def test_inspect_tells_them(frame, tmp_path):
    MetricTracker(preprocessor=frame).fit(ROWS, Y).save(tmp_path / "state")
    told = sections(tmp_path / "state", Tracking.load(tmp_path / "state"))
    assert "brand" in {row[0] for row in told[-1].rows}


def test_columns_must_be_the_same(make, frame, tmp_path):
    turned = make(dict(zip(NAMES[::-1], POINTS.T[::-1], strict=True)))
    tracker = MetricTracker(preprocessor=frame).fit(ROWS, Y)
    np.testing.assert_array_equal(tracker.transform(frame), tracker.transform(POINTS))
    kernel = KernelTracker(n_landmarks=8, preprocessor=frame).fit(ROWS, Y)
    takes = tracker.observe_points, lambda X: tracker.suggest_pairs(X, 3), kernel.transform
    for method in tracker.transform, *takes:
        with pytest.raises(ValueError, match="feature names should match"):
            method(turned)
    tracker.save(tmp_path / "state")
    with pytest.raises(ValueError, match="feature names should match"):
        metrack.load(tmp_path / "state", preprocessor=turned)
    assert metrack.load(tmp_path / "state", preprocessor=POINTS).feature_names_in_.tolist() == NAMES


def test_names_go_when_learning_starts_anew_or_features_are_added(frame):
    tracker = MetricTracker(preprocessor=frame).fit(ROWS, Y)
    assert not hasattr(
        clone(tracker).set_params(preprocessor=POINTS).fit(ROWS, Y), "feature_names_in_"
    )
    assert tracker.set_params(preprocessor=POINTS).fit(ROWS, Y).n_features_in_ == 3
    assert not hasattr(tracker, "feature_names_in_")
    tracker = MetricTracker(preprocessor=frame).fit(ROWS, Y).widen(5)
    assert not hasattr(tracker, "feature_names_in_")
    assert tracker.drift_report().features.dtype.kind == "i"


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_set_output(package):
    module = pytest.importorskip(package)
    frame = module.DataFrame(dict(zip(NAMES, POINTS.T, strict=True)))
    tracker = MetricTracker(preprocessor=frame).fit(ROWS, Y).set_output(transform=package)
    found = tracker.transform([3, 4])
    assert type(found) is module.DataFrame
    assert list(found.columns) == tracker.get_feature_names_out().tolist()
