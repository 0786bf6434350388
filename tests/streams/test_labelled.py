import numpy as np
import pytest
import scipy.sparse as sp

from metrack.streams import LabelledStream, Segment, abrupt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
COLOUR = RNG.choice(["red", "green", "blue"], 60)
SIZE = RNG.integers(0, 2, 60)


def test_pairs_are_row_numbers_judged_by_equal_labels():
    stream = LabelledStream(X, COLOUR, n_pairs=500, random_state=3)
    pairs, y = stream.pairs()
    assert pairs.shape == (500, 2)
    assert pairs.dtype == np.int64
    assert np.array_equal(y, np.where(COLOUR[pairs[:, 0]] == COLOUR[pairs[:, 1]], 1, -1))
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_random_access_is_iteration():
    stream = LabelledStream(X, COLOUR, n_pairs=1500, similar=0.5, label_noise=0.1, random_state=3)
    pairs, y = stream.pairs()
    assert [(int(i), int(j), k) for i, j, k in stream] == [
        (i, j, k) for (i, j), k in zip(pairs.tolist(), y.tolist(), strict=True)
    ]
    again = LabelledStream(X, COLOUR, n_pairs=1500, similar=0.5, label_noise=0.1, random_state=3)
    assert np.array_equal(again.pairs(1000, 1100)[0], pairs[1000:1100])


def test_sparse_points_stay_sparse_and_give_the_same_pairs():
    dense = LabelledStream(X, COLOUR, n_pairs=200)
    sparse = LabelledStream(sp.csr_array(X), COLOUR, n_pairs=200)
    assert sp.issparse(sparse.preprocessor)
    assert np.array_equal(dense.pairs()[0], sparse.pairs()[0])


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (np.column_stack([np.unique(COLOUR, return_inverse=True)[1], SIZE]), [0, 1]),
        ({"colour": COLOUR, "size": SIZE}, ["colour", "size"]),
    ],
)
def test_several_questions_follow_one_another(labels, names):
    stream = LabelledStream(X, labels, n_pairs=301)
    assert stream.marks == [(0, str(names[0])), (150, str(names[1]))]
    pairs, y = stream.pairs(150)
    assert np.array_equal(y, np.where(SIZE[pairs[:, 0]] == SIZE[pairs[:, 1]], 1, -1))
    assert stream.partition(0) == names[0]
    assert np.array_equal(stream.labels(300), SIZE)


def test_data_frames_and_series_are_labels_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": COLOUR, "size": SIZE})
    assert LabelledStream(X, frame, n_pairs=10).marks == [(0, "colour"), (5, "size")]
    assert len(LabelledStream(X, frame["colour"], n_pairs=10).marks) == 1


def test_a_schedule_chooses_and_repeats_questions():
    labels = {"colour": COLOUR, "size": SIZE}
    stream = LabelledStream(X, labels, schedule=abrupt("size", "colour", "size", length=40))
    assert len(stream) == 120
    assert stream.switches == [40, 80]
    assert np.array_equal(stream.points(119), X)


def test_lists_will_do():
    pairs, y = LabelledStream([[0.0], [1.0]], ["a", "b"], n_pairs=3).pairs()
    assert sorted(pairs[0].tolist()) == [0, 1]
    assert y.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("args", "settings", "message"),
    [
        ((X, COLOUR), {}, "either n_pairs or a schedule"),
        ((X, COLOUR), {"n_pairs": 5, "schedule": abrupt(0, length=5)}, "either n_pairs or"),
        ((X, COLOUR), {"n_pairs": 0}, "n_pairs is 0"),
        ((X, COLOUR[:50]), {"n_pairs": 5}, r"60 points, but the labels have shape \(50,\)"),
        ((X, {"a": COLOUR[:5]}), {"n_pairs": 5}, "column 'a' of labels must have one label"),
        ((X, {}), {"n_pairs": 5}, "labels is empty"),
        ((X, np.empty((60, 0))), {"n_pairs": 5}, "labels is empty"),
        ((X, np.where(np.arange(60) == 7, np.nan, 1.0)), {"n_pairs": 5}, "row 7 is NaN"),
        ((X, np.array([None, "a"] * 30)), {"n_pairs": 5}, "cannot be sorted"),
        ((X[0], COLOUR), {"n_pairs": 5}, "X must be 2-D"),
        ((X[:1], COLOUR[:1]), {"n_pairs": 5}, "at least two points"),
        ((X, np.arange(60)), {"n_pairs": 5, "similar": 0.5}, "no class has two points"),
        ((X, np.zeros(60)), {"n_pairs": 5, "similar": 0.5}, "only one class"),
        ((X, COLOUR), {"schedule": [Segment("x", 0, 5, drift=0.1)]}, "has drift 0.1"),
        ((X, COLOUR), {"schedule": abrupt("size", length=5)}, "names partition 'size'"),
    ],
)
def test_bad_input_is_a_value_error(args, settings, message):
    with pytest.raises(ValueError, match=message):
        LabelledStream(*args, **settings)
