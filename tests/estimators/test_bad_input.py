"""Bad input raises a ValueError that says where and what to do, and changes nothing."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.estimators.learners import LEARNERS, has_matrix, make_stream, read_outs, state

N = 5  # pairs in a bad batch; row 3 is the bad one

# All come in by the same door: one setting of each class, and one that differs inside.
FIRST_OF_CLASS = [
    name
    for i, (name, (learner, _)) in enumerate(LEARNERS.items())
    if type(learner) not in {type(other) for other, _ in [*LEARNERS.values()][:i]}
]
on_some = pytest.mark.parametrize("learner", [*FIRST_OF_CLASS, "COMID-burg"], indirect=True)


def settings_with(name):
    """Run a check only on the learners that have a setting."""
    chosen = [each for each in FIRST_OF_CLASS if name in LEARNERS[each][0].get_params()]
    return pytest.mark.parametrize("learner", chosen, indirect=True)


def put(value, dtype=float):
    """Pairs with one entry replaced."""

    def change(pairs):
        pairs = pairs.astype(dtype)
        pairs[3, 1, 0] = value
        return pairs

    return change


def ragged(pairs):
    rows = pairs.tolist()
    rows[3][1].pop()
    return rows


# What is wrong with pairs of points: what to do to good ones, and what the error must say.
BAD_PAIRS = {
    "NaN": (put(np.nan), r"pairs\[3, 1\] contains NaN; drop or impute"),
    "infinity": (put(np.inf), r"pairs\[3, 1\] contains infinity; drop or impute"),
    "minus infinity": (put(-np.inf), r"pairs\[3, 1\] contains infinity; drop or impute"),
    "None": (put(None, object), r"pairs\[3, 1\] contains NaN; drop or impute"),
    "huge": (put(-1e200), r"pairs\[3, 1\] contains -1e\+200, too large to square; rescale"),
    "text": (put("a", object), r"pairs row 3 is not numbers .*; encode text first"),
    "number as text": (put("1", object), r"pairs row 3 is not numbers .*; encode text first"),
    "text array": (lambda pairs: pairs.astype(str), r"pairs row 0 is not numbers .*; encode"),
    "dict": (put({}, object), r"pairs row 3 is not numbers .*; encode"),
    "dates": (lambda pairs: pairs.astype("M8[s]"), r"pairs row 0 is not numbers .*; encode"),
    "complex": (lambda pairs: pairs + 1j, r"Complex data not supported: pairs must be real"),
    "ragged": (ragged, r"pairs row 3 does not have the shape of the others; give every"),
    "fewer features": (
        lambda pairs: pairs[:, :, 1:],
        r"pairs has \d+ features, but the metric was learned on \d+; pass .* or call fit",
    ),
    "no features": (lambda pairs: pairs[:, :, :0], r"pairs has 0 feature\(s\); a minimum of 1"),
    "no pairs": (lambda pairs: pairs[:0], r"pairs is empty \(shape .*\); pass at least one pair"),
    "empty list": (lambda pairs: [], r"pairs is empty \(shape .*\); pass at least one pair"),
    "triplets": (lambda pairs: pairs[:, [0, 1, 0]], r"must have shape \(n_pairs, 2, n_features\)"),
    "one point each": (lambda pairs: pairs[:, 0], r"got \(5, \d+\); for pairs of row numbers"),
    "four dimensions": (lambda pairs: pairs[None], r"pairs must have shape .*, got \(1, 5, 2,"),
    "a number": (lambda pairs: 1.0, r"pairs must have shape .*, got \(\)"),
    "nothing": (lambda pairs: None, r"pairs must have shape .*, got \(\)"),
    "sparse": (
        lambda pairs: sp.csr_array(pairs[:, 0]),
        r"pairs is a sparse matrix; pass .* as pre",
    ),
    "sparse rows": (
        lambda pairs: [[sp.csr_array(x[None]), sp.csr_array(z[None])] for x, z in pairs],
        r"pairs row 0 .*; (give every point|encode)",
    ),
    "rows without points": (
        lambda pairs: np.zeros((N, 2), int),
        r"got \(5, 2\); for pairs of row numbers, pass the points they refer to as preprocessor",
    ),
    "ids without points": (
        lambda pairs: np.full((N, 2), "a.png"),
        r"pairs has ids that are text: pass a callable as preprocessor",
    ),
}

GOOD_Y = np.array([1, -1, 1, -1, 1])


def label(value):
    """Labels with one replaced."""
    labels = GOOD_Y.tolist()
    labels[3] = value
    return labels


BAD_Y = {
    "0 and -1": (
        label(0),
        r"y\[3\] = 0, but y\[1\] = -1: not alike is either -1 or 0",
    ),
    "0.0 and -1": ([0.0, 1.0, -1.0, 1.0, 1.0], r"y\[2\] = -1, but y\[0\] = 0: not alike is"),
    "false and -1": ([False, -1, 1, 1, 1], r"y\[1\] = -1, but y\[0\] = 0: not alike is"),
    "true and None": ([True, None, True, True, True], r"y\[1\] = None; labels are"),
    "2": (label(2), r"y\[3\] = 2; labels are"),
    "0.5": (label(0.5), r"y\[3\] = 0.5; labels are"),
    "NaN": (label(np.nan), r"y\[3\] = nan; labels are"),
    "infinity": (label(np.inf), r"y\[3\] = inf; labels are"),
    "None": (label(None), r"y\[3\] = None; labels are"),
    "text": (["a", *GOOD_Y[1:]], r"y\[0\] = 'a'; labels are"),
    "numbers as text": (GOOD_Y.astype(str), r"y\[0\] = '1'; labels are"),
    "number as text": (np.array(label("-1"), object), r"y\[[03]\] = '-?1'; labels are"),
    "complex": (GOOD_Y + 0j, r"y\[0\] = \(1\+0j\); labels are"),
    "no labels": (None, r"requires y to be passed, but the target y is None"),
    "too few": (GOOD_Y[1:], r"one label per pair: 5 pairs, but y has shape \(4,\)"),
    "too many": ([*GOOD_Y, 1], r"one label per pair: 5 pairs, but y has shape \(6,\)"),
    "column": (GOOD_Y[:, None], r"one label per pair: 5 pairs, but y has shape \(5, 1\)"),
    "one number": (1, r"one label per pair: 5 pairs, but y has shape \(\)"),
    "ragged": ([[1], [1, 1], 1, 1, 1], r"y must have one label per pair"),
    "sparse": (sp.csr_array(GOOD_Y[:, None]), r"y must have one label per pair"),
}

N_POINTS = 100

BAD_ROWS = {
    "too large": (3, N_POINTS, r"\[3.*\] = 100 is out of range: .* 100 points, numbered 0 to 99"),
    "negative": (3, -N_POINTS - 1, r"\[3.*\] = -101 is out of range: .*or from the end -1 to -100"),
    "unsigned": (3, np.uint64(2**64 - 1), r"\[3.*\] = 18446744073709551615 is out of range"),
    "float": (3, 0.5, r"of indices must be integers; cast them with .astype\(int\)"),
    "text": (3, "a", r"has ids that are text: pass a callable as preprocessor"),
}


def bad_rows(kind, shape):
    i, value, words = BAD_ROWS[kind]
    rows = np.zeros(shape, np.asarray(value).dtype)
    rows[(i, *(1,) * (len(shape) - 1))] = value
    return rows, words


@pytest.fixture
def known(fitted):
    """A fitted learner with a threshold of its own."""
    return fitted.set_threshold(0.75)


def refuses(words, learner, method, *arguments):
    before = state(learner)
    with pytest.raises(ValueError, match=words) as caught:
        getattr(learner, method)(*arguments)
    assert type(caught.value) is ValueError
    assert state(learner) == before
    assert learner.threshold_ == 0.75


LEARN = ["fit", "observe", "partial_fit"]
READ = ["pair_distance", "pair_score", "decision_function", "predict"]
USE_LABELS = ["score", "calibrate_threshold"]


@pytest.mark.parametrize("kind", BAD_PAIRS)
@on_some
def test_pairs(known, stream, kind):
    change, words = BAD_PAIRS[kind]
    pairs = change(stream.pairs[:N])
    for method in LEARN + USE_LABELS:
        if (kind, method) != ("fewer features", "fit"):  # fit starts anew
            refuses(words, known, method, pairs, GOOD_Y)
    for method in READ:
        refuses(words, known, method, pairs)


@pytest.mark.parametrize("kind", BAD_Y)
@on_some
def test_labels(known, stream, kind):
    y, words = BAD_Y[kind]
    for method in LEARN + USE_LABELS:
        refuses(words, known, method, stream.pairs[:N], y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", BAD_ROWS)
@on_some
def test_row_numbers(learner, stream, kind, sparse):
    assert len(stream.points) == N_POINTS
    points = sp.csr_array(stream.points) if sparse else stream.points
    learner.set_params(preprocessor=points).fit(stream.rows, stream.y).set_threshold(0.75)
    rows, words = bad_rows(kind, (N, 2))
    for method in LEARN + USE_LABELS:
        refuses("pairs.*" + words, learner, method, rows, GOOD_Y)
    for method in READ:
        refuses("pairs.*" + words, learner, method, rows)
    rows, words = bad_rows(kind, (N,))
    refuses("X.*" + words, learner, "transform", rows)
    refuses("pairs is empty", learner, "observe", stream.rows[:0], [])
    refuses("X is empty", learner, "transform", stream.rows[:0, 0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([np.nan] * 6, [0] * 6, 1), r"pairs\[0, 0\] contains NaN"),
        (([0] * 6, [np.inf] * 6, 1), r"pairs\[0, 1\] contains infinity"),
        (([0] * 5, [0] * 5, 1), r"pairs has 5 features, but the metric was learned on 6"),
        (([0] * 6, [0] * 5, 1), r"pairs row 0 does not have the shape of the others"),
        ((["a"] * 6, [0] * 6, 1), r"pairs row 0 is not numbers"),
        (([], [], 1), r"pairs has 0 feature\(s\)"),
        ((0, 1, 1), r"for pairs of row numbers, pass the points"),
        ((None, None, 1), r"pairs must have shape"),
        (([0] * 6, [0] * 6, "1"), r"y\[0\] = '1'; labels are"),
        (([0] * 6, [0] * 6, None), r"y\[0\] = None; labels are"),
        (([0] * 6, [0] * 6, [1]), r"one label per pair: 1 pairs, but y has shape \(1, 1\)"),
    ],
)
@on_some
def test_learn_one(known, arguments, words):
    refuses(words, known, "learn_one", *arguments)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: np.where(np.arange(6)[:, None] == 3, np.nan, X[:6]), "X row 3 contains NaN"),
        (lambda X: np.where(np.arange(6)[:, None] == 3, np.inf, X[:6]), "X row 3 contains infin"),
        (lambda X: sp.csr_array(np.diag([1, 1, 1, np.nan, 1, 1])), "X row 3 contains NaN; drop"),
        (lambda X: sp.csr_array(np.eye(6) * 1j), "Complex data not supported: X"),
        (lambda X: sp.coo_array(np.ones(6)), "X must be 2-D, one point a row; got 1"),
        (lambda X: X[:, 1:], "X has 5 features, but the metric was learned on 6; pass points"),
        (lambda X: sp.csr_array(X[:, 1:]), "X has 5 features, but the metric was learned on 6"),
        (lambda X: X[0], r"got a 1-D array. Reshape your data using array.reshape\(1, -1\)"),
        (lambda X: X[None], "X must be 2-D, one point a row; got 3 dimensions"),
        (lambda X: X[:0], "X has 0 rows; pass at least one point"),
        (lambda X: sp.csr_array((0, 6)), "X has 0 rows; pass at least one point"),
        (lambda X: X[:, :0], r"X has 0 feature\(s\); a minimum of 1 is required"),
        (lambda X: X.astype(str), "X row 0 is not numbers .*; encode text first"),
        (lambda X: [[1.0] * 6, [1.0] * 5], "X row 1 does not have the shape of the others"),
        (lambda X: X + 1j, "Complex data not supported: X"),
        (lambda X: None, "X must be 2-D"),
    ],
)
@on_some
def test_points(known, stream, change, words):
    refuses(words, known, "transform", change(stream.points))


def test_bad_last_row_of_many(known, stream):
    n = 2 * 4096 + 3  # more than is handed to the engine at a time
    many = np.resize(stream.pairs, (n, *stream.pairs.shape[1:])).copy()
    y = np.resize(stream.y, n).copy()
    many[-1, 0, -1] = np.nan
    for method in LEARN:
        refuses(rf"pairs\[{n - 1}, 0\] contains NaN", known, method, many, y)
    many[-1], y[-1] = 0.0, 7
    for method in LEARN:
        refuses(rf"y\[{n - 1}\] = 7", known, method, many, y)


# Preprocessors

BAD_POINTS = {
    "NaN": (lambda X: np.vstack([X[:7], np.nan * X]), "preprocessor row 7 contains NaN; drop"),
    "sparse NaN": (
        lambda X: sp.csr_array(np.vstack([X[:7], np.nan * X])),
        "preprocessor row 7 contains NaN; drop",
    ),
    "text": (lambda X: X.astype(str), "preprocessor row 0 is not numbers"),
    "1-D": (lambda X: X[:, 0], "preprocessor must be 2-D"),
    "empty": (lambda X: X[:0], "preprocessor has 0 rows"),
    "complex": (lambda X: sp.csr_array(X + 1j), "Complex data not supported: preprocessor"),
    "too few": (lambda X: lambda rows: X[:2], r"gave 2 points for \d+ indices; it must return"),
    "unknown": (lambda X: lambda rows: X[rows + 99], "pairs has an index that .* refuses: index"),
    "NaN by call": (lambda X: lambda rows: X[rows] * np.nan, r"preprocessor\(indices\) row 0 con"),
    "1-D by call": (lambda X: lambda rows: X[rows, 0], r"preprocessor\(indices\) must be 2-D"),
}


@pytest.mark.parametrize("kind", BAD_POINTS)
@on_some
def test_preprocessor(known, stream, kind):
    change, words = BAD_POINTS[kind]
    known.set_params(preprocessor=change(stream.points))
    refuses(words, known, "fit", stream.rows, stream.y)
    fresh = clone(known)
    with pytest.raises(ValueError, match=words):
        fresh.partial_fit(stream.rows, stream.y)
    assert set(vars(fresh)) == set(fresh.get_params())


# Settings

WORDS = ("", "Hinge", 1, ["hinge"], True)
NOT_POSITIVE = (-1.0, np.nan, np.inf, "1", None, True, 1j, [1.0])
NOT_WHOLE = (0, -1, 1.5, 2.0, "2", True, np.nan)
BAD_SETTINGS = {
    "loss": (*WORDS, None),
    "divergence": (*WORDS, None),
    "regularizer": (*WORDS, "l2"),
    "schedule": (*WORDS, None),
    "step": (*WORDS, None),
    "init": (*WORDS, None),
    "threshold": (*WORDS, None, {"precision": 2.0}, {}),
    "psd": (*WORDS, None),
    "scale": (*WORDS, 1.0),
    "rho": NOT_POSITIVE,
    "learning_rate": (0.0, *NOT_POSITIVE),
    "n_components": NOT_WHOLE,
    "random_state": (-1, "a", 0.5),
    "eta0": (0.0, *NOT_POSITIVE),
    "first_interval": NOT_WHOLE,
    "combiner": (*WORDS, None),
    "output": (*WORDS, None),
    "weight_loss": (*WORDS, "linear"),
    "cap": (0.0, *NOT_POSITIVE),
    "upper": (0.0, 10.0, *NOT_POSITIVE),  # 10 is above lower
    "lower": (0.0, *NOT_POSITIVE),
    "n_landmarks": (*NOT_WHOLE, 4097),
    "kernel": (*WORDS, None),
    "gamma": (0.0, *NOT_POSITIVE[:-1]),
    "degree": NOT_WHOLE,
    "coef0": NOT_POSITIVE,
}


@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [
        (each, name, value)
        for each in FIRST_OF_CLASS
        for name in LEARNERS[each][0].get_params()
        for value in BAD_SETTINGS.get(name, ())
    ],
    indirect=["learner"],
)
def test_settings(known, stream, name, value):
    before, own = state(known), known.get_params()[name]
    known.set_params(**{name: value})
    words = f"^{name}={re.escape(repr(value))}; (choose one of .*|it must be .*)"
    if name == "random_state":  # scikit-learn's words
        words = f"{re.escape(repr(value))} cannot be used to seed|Seed must be between 0 and"
    with pytest.raises(ValueError, match=words):
        known.fit(stream.pairs, stream.y)
    assert state(known.set_params(**{name: own})) == before
    fresh = clone(known.set_params(**{name: value}))
    with pytest.raises(ValueError, match=words):
        fresh.observe(stream.pairs, stream.y)
    assert set(vars(fresh)) == set(fresh.get_params())


def test_every_setting_is_refused_something(learner):
    assert set(learner.get_params()) <= {*BAD_SETTINGS, "preprocessor"}


@pytest.mark.parametrize("divergence", ["von_neumann", "burg"])
@pytest.mark.parametrize("learner", ["COMID", "SADL"], indirect=True)
def test_a_start_that_cannot_be_left(known, stream, divergence):
    known.set_params(init="zero", divergence=divergence)
    refuses("init='zero' with .* use init='identity' or 'auto'", known, "fit", *stream[2:])


@pytest.mark.parametrize("value", [np.nan, "1", None, True, [1.0], 1j])
@on_some
def test_threshold(known, value):
    refuses("threshold must be a number, a distance; got", known, "set_threshold", value)


@settings_with("n_components")
def test_more_components_than_features(learner, stream):
    if not has_matrix(learner):
        pytest.skip("there are more features by the kernel")
    learner.fit(stream.pairs, stream.y).set_threshold(0.75)
    width = stream.pairs.shape[2]
    learner.set_params(n_components=width + 1)
    words = f"n_components={width + 1}; there are only {width} features: choose 1 to {width}"
    refuses(words, learner, "fit", stream.pairs, stream.y)
    with pytest.raises(ValueError, match=words):
        clone(learner).partial_fit(stream.pairs, stream.y)
    learner.set_params(n_components=width).fit(stream.pairs, stream.y)


@on_some
def test_components_set_by_hand(known, stream):
    if not has_matrix(known):
        pytest.skip("no matrix is put out")
    for value in np.eye(stream.pairs.shape[2] + 1), [np.nan] * stream.pairs.shape[2], "a", None:
        before = state(known)
        with pytest.raises(ValueError, match=r"components_ must be .*shape|could not convert"):
            known.components_ = value
        assert state(known) == before


# Unfitted

USES = {
    "transform": lambda learner, stream: learner.transform(stream.points),
    "score": lambda learner, stream: learner.score(stream.pairs, stream.y),
    "calibrate": lambda learner, stream: learner.calibrate_threshold(stream.pairs, stream.y),
    "set_threshold": lambda learner, stream: learner.set_threshold(1.0),
    "get_metric": lambda learner, stream: learner.get_metric(),
} | {name: lambda learner, stream, name=name: getattr(learner, name)(stream.pairs) for name in READ}


@pytest.mark.parametrize("use", USES)
def test_unfitted_use(learner, stream, use):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        USES[use](learner, stream)


def test_unfitted_matrix(learner):
    with pytest.raises(NotFittedError if has_matrix(learner) else AttributeError):
        learner.get_mahalanobis_matrix()


def test_unfitted_attributes(learner):
    names = read_outs(learner)
    assert {"mu_", "threshold_", "n_pairs_seen_", "classes_"} <= {*names}
    assert ({"components_", "rank_"} <= {*names}) == has_matrix(learner)
    for name in names:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(learner, name)
        assert not hasattr(learner, name)


def test_good_input_is_not_refused():
    """The tables' own pairs and labels are fine where nothing is done to them."""
    stream = make_stream(6)
    for learner, _ in LEARNERS.values():
        clone(learner).set_params(preprocessor=stream.points).fit(stream.rows[:N], label(-1))
        clone(learner).fit(put(0.0)(stream.pairs[:N]), label(-1.0)).predict(stream.pairs[:N])
