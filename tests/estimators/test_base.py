"""The embedding as scikit-learn has it: names, data frames, widths and types, of every learner."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA

from metrack import (
    COMID,
    ITML,
    LEGO,
    LMNN,
    MMC,
    OASIS,
    POLA,
    SADL,
    FromLabels,
    FromTransformer,
    MetricTracker,
    OnlineITML,
    SlidingWindow,
)
from tests.estimators.learners import make_stream

STREAM = make_stream(6)
LABELS = (STREAM.points[:, 0] > 0).astype(int)
TRIPLETS = STREAM.points[np.random.default_rng(0).integers(100, size=(50, 3))]
PAIRS = STREAM.pairs, STREAM.y
POINTS = STREAM.points, LABELS

EMBEDDINGS = {
    "SADL": (MetricTracker(), PAIRS),
    "COMID": (COMID(), PAIRS),
    "OnlineITML": (OnlineITML(), PAIRS),
    "LEGO": (LEGO(), PAIRS),
    "POLA": (POLA(), PAIRS),
    "ITML": (ITML(), PAIRS),
    "MMC": (MMC(), PAIRS),
    "OASIS": (OASIS(), (TRIPLETS,)),
    "LMNN": (LMNN(), POINTS),
    "FromLabels": (FromLabels(random_state=0), POINTS),
    "FromTransformer": (FromTransformer(PCA(3)), POINTS),
    "SlidingWindow of pairs": (SlidingWindow(LEGO(), every=50), PAIRS),
    "SlidingWindow of points": (SlidingWindow(LMNN(), every=50), POINTS),
}


@pytest.fixture(params=EMBEDDINGS)
def fitted(request):
    learner, data = EMBEDDINGS[request.param]
    return clone(learner).fit(*data)


def test_names_of_columns(fitted):
    prefix = type(fitted).__name__.lower()
    names = fitted.get_feature_names_out()
    width = fitted.transform(STREAM.points).shape[1]
    assert names.tolist() == [f"{prefix}{i}" for i in range(width)]


def test_it_is_a_linear_layer(fitted):
    if not hasattr(fitted, "to_linear"):
        assert isinstance(fitted, FromLabels)  # what it puts out is its learner's
        fitted = fitted.learner_.for_neighbours()
    weight, bias = fitted.to_linear()
    expected = fitted.transform(STREAM.points)
    assert bias.shape == (expected.shape[1],)
    assert_allclose(STREAM.points @ weight.T + bias, expected, atol=1e-10)
    weight[:] = 0.0  # a copy
    assert_array_equal(fitted.transform(STREAM.points), expected)


def test_the_layer_has_the_columns_that_were_asked_for():
    stream = make_stream(66)
    for learner in MetricTracker(n_components=2), MetricTracker(), POLA(n_components=3):
        fitted = learner.fit(stream.pairs, stream.y)
        weight, bias = fitted.to_linear()
        expected = fitted.transform(stream.points)
        assert weight.shape == (expected.shape[1], 66)
        assert_allclose(stream.points @ weight.T + bias, expected, atol=1e-8)


def test_data_frames(fitted):
    """Where pandas is not installed, scikit-learn says so: it is what wraps the result."""
    expected = fitted.transform(STREAM.points)
    fitted.set_output(transform="pandas")
    try:
        import pandas as pd
    except ImportError:
        with pytest.raises(ImportError, match="requires pandas to be installed"):
            fitted.transform(STREAM.points)
        return
    index = [f"row {i}" for i in range(len(STREAM.points))]
    frame = fitted.transform(pd.DataFrame(STREAM.points, index=index))
    assert_array_equal(frame.to_numpy(), expected)
    assert frame.index.tolist() == index
    assert frame.columns.tolist() == fitted.get_feature_names_out().tolist()


def test_fit_transform_where_fit_takes_points():
    for name, (learner, data) in EMBEDDINGS.items():
        assert hasattr(learner, "fit_transform") == (data is POINTS), name
        if data is POINTS:
            there = clone(learner).fit_transform(*data)
            assert_allclose(there, clone(learner).fit(*data).transform(data[0]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_float32_in_float32_out(fitted, kind):
    expected = fitted.transform(STREAM.points)
    assert expected.dtype == np.float64
    for dtype, out in (np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64):
        points = kind(np.rint(8 * STREAM.points).astype(dtype))  # the same in all types
        there = fitted.transform(points)
        assert there.dtype == out
        assert_allclose(there, fitted.transform(points.astype(np.float64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("learner", [LEGO(), ITML(), LMNN()], ids=str)
def test_rows_of_float32_points(learner):
    learner.set_params(preprocessor=STREAM.points.astype(np.float32))
    if isinstance(learner, LMNN):
        learner.fit(np.arange(100), LABELS)
    else:
        learner.fit(STREAM.rows, STREAM.y)
    assert learner.transform(np.arange(9)).dtype == np.float32


# Widths

WIDTHS = [
    MetricTracker(n_components=2),
    SADL(n_components=2, divergence="burg"),
    SADL(n_components=4, regularizer="l1", rho=1.0),  # of low rank
    COMID(n_components=2),
    COMID(n_components=2, divergence="burg"),
    COMID(n_components=2, divergence="von_neumann"),
    COMID(n_components=2, init="identity"),
    COMID(n_components=6, regularizer="nuclear", divergence="frobenius", rho=1.0),
    COMID(n_components=3, regularizer="l1", psd="diagonal", init="identity"),
    POLA(n_components=3),
    LMNN(n_components=2),
]


@pytest.mark.parametrize("learner", WIDTHS, ids=str)
def test_as_many_columns_as_components(learner):
    width = learner.n_components
    fitted = clone(learner).fit(*(POINTS if isinstance(learner, LMNN) else PAIRS))
    embedded = fitted.transform(STREAM.points)
    assert embedded.shape == (100, width)
    assert len(fitted.get_feature_names_out()) == width
    # What is left out are the directions that matter least; nothing else differs.
    sizes = np.linalg.norm(fitted.components_, axis=1)
    kept = STREAM.points @ fitted.components_[:width].T
    if len(sizes) <= width or sizes[width] < 0.999 * sizes[width - 1]:
        assert_allclose(embedded[:, : kept.shape[1]], kept, atol=1e-9)
        assert not embedded[:, kept.shape[1] :].any()
    window = SlidingWindow(learner, window=100, every=50)
    window.fit(*(POINTS if isinstance(learner, LMNN) else PAIRS))
    assert window.transform(STREAM.points).shape == (100, width)


def test_widths_while_nothing_is_learned():
    learner = COMID(n_components=3, divergence="frobenius").partial_fit(PAIRS[0][:1], [-1])
    learner.observe(np.zeros((1, 2, 6)), [1])
    assert learner.transform(STREAM.points).shape == (100, 3)
    assert MetricTracker(n_components=2).partial_fit(PAIRS[0][:1], [1]).transform(
        PAIRS[0][0]
    ).shape == (
        2,
        2,
    )


@pytest.mark.parametrize("points", [STREAM.points, sp.csr_array(STREAM.points)])
def test_repr_does_not_print_the_points(points):
    shape = r"<\w+ of 100 x 6>"
    tracker = MetricTracker(preprocessor=points, random_state=3)
    assert re.fullmatch(rf"MetricTracker\(preprocessor={shape}, random_state=3\)", repr(tracker))
    window = SlidingWindow(ITML(preprocessor=points), every=7)
    assert re.fullmatch(
        rf"SlidingWindow\(every=7, learner=ITML\(preprocessor={shape}\)\)", repr(window)
    )
    assert tracker.preprocessor is points
    assert len(tracker._repr_html_()) < len(MetricTracker()._repr_html_()) + 2000


def test_repr_of_the_rest_is_scikit_learns():
    assert (
        repr(MetricTracker(preprocessor=abs))
        == "MetricTracker(preprocessor=<built-in function abs>)"
    )
    assert repr(FromLabels(COMID(rho=0.5))) == "FromLabels(learner=COMID(rho=0.5))"
    assert (
        repr(MetricTracker(preprocessor=[[1, 2], [3, 4]]))
        == "MetricTracker(preprocessor=<list of 2>)"
    )
