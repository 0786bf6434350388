"""The tracker of one key, without Spark."""

import json

import numpy as np
import pytest

import metrack
from metrack.estimators.states.persistence import dump, unpack
from metrack.spark.keyed import NO_SEQUENCE, RECENT, Columns, Recipe, learn, without_key
from metrack.spark.texts import Text, from_text
from tests.spark.feedback import pairs_of

N = 60


def columns(pairs, y, sequence=None):
    sequence = np.arange(len(y)) if sequence is None else np.asarray(sequence)
    return Columns(sequence, list(pairs[:, 0]), list(pairs[:, 1]), [str(each) for each in y])


def some(rows, which):
    return Columns(*([column[i] for i in which] for column in rows[:4]))


@pytest.fixture(scope="module")
def rows():
    return columns(*pairs_of(0, N))


@pytest.fixture(scope="module")
def whole(rows):
    return learn(rows, None, Recipe())


def state_of(kept):
    """As a tracker hands it out."""
    return dump(unpack(from_text(Text(*kept[:3])), None, "it"))


def replaced(rows, i, **values):
    """The rows with other values in one of them."""
    changed = {name: list(column) for name, column in rows._asdict().items() if column is not None}
    for name, value in values.items():
        changed[name][i] = value
    return Columns(**changed)


def test_it_is_one_tracker(rows, whole):
    event, kept = whole
    pairs, y = pairs_of(0, N)
    tracker = metrack.MetricTracker()
    losses = tracker.observe(pairs, y)
    assert state_of(kept) == event.state == dump(tracker)
    assert (event.pairs, event.version, event.last) == (N, N, N - 1)
    assert event.loss == pytest.approx(losses.mean())
    assert event.window == tracker.effective_window_
    assert event.bad == []
    assert event.repeated == 0
    assert event.state_bytes == len("".join(kept[:3])) + len(kept.recent)


@pytest.mark.parametrize("cuts", [[1], [7, 8, 40], list(range(1, N))], ids=str)
def test_cuts_and_order_within_a_call_do_not_show(rows, whole, cuts):
    rng = np.random.default_rng(len(cuts))
    kept, events = None, []
    for start, end in zip([0, *cuts], [*cuts, N], strict=True):
        event, kept = learn(some(rows, start + rng.permutation(end - start)), kept, Recipe())
        events.append(event)
    assert kept == whole[1]
    assert sum(event.pairs for event in events) == N
    losses = np.average([e.loss for e in events], weights=[e.pairs for e in events])
    assert losses == pytest.approx(whole[0].loss)


def test_rows_that_come_again_are_not_learned_twice(rows, whole):
    kept = learn(some(rows, range(40)), None, Recipe())[1]
    event, kept = learn(some(rows, [*range(30, N), N - 1, N - 1]), kept, Recipe())
    assert (event.pairs, event.repeated, event.bad) == (N - 40, 12, [])
    assert kept == whole[1]
    event, again = learn(rows, kept, Recipe())
    assert (event.pairs, event.repeated, event.bad) == (0, N, [])
    assert event.version == N
    assert event.state is None
    assert again is kept


def test_late_rows_are_set_aside(rows):
    later = [i for i in range(N) if i not in (10, 11)]
    kept = learn(some(rows, later), None, Recipe())[1]
    event, again = learn(some(rows, [11, 10]), kept, Recipe(order="offset"))
    assert again is kept
    assert [(row.sequence, row.why) for row in event.bad] == [
        (10, f"offset 10 is late: {N - 1} was learned before"),
        (11, f"offset 11 is late: {N - 1} was learned before"),
    ]
    row = json.loads(event.bad[0].row)
    np.testing.assert_array_equal(row["x"], rows.x[10])
    assert row["y"] == rows.y[10]


def test_rows_older_than_what_is_remembered_are_late():
    pairs, y = pairs_of(0, RECENT + 2)
    rows = columns(pairs, y)
    kept = learn(rows, None, Recipe(estimator="COMID"))[1]
    event, _ = learn(some(rows, [1, 2]), kept, Recipe(estimator="COMID"))
    assert event.repeated == 1
    assert [row.sequence for row in event.bad] == [1]


def test_contradictory_rows_are_set_aside(rows):
    """Together neither can be believed; later the one that was learned stays."""
    other = replaced(rows, 5, y="-1" if rows.y[5] == "1" else "1")
    both = Columns(*([*a, b[5]] for a, b in zip(rows[:4], other[:4], strict=True)))
    expected = learn(some(rows, [i for i in range(N) if i != 5]), None, Recipe())[1]
    for order in (list(range(N + 1)), list(range(N, -1, -1))):
        event, kept = learn(some(both, order), None, Recipe())
        assert kept == expected
        assert {row.why for row in event.bad} == {"sequence 5 is there with different values"}
        assert len(event.bad) == 2
    kept = learn(rows, None, Recipe())[1]
    event, again = learn(some(other, [4, 5]), kept, Recipe())
    assert again is kept
    assert event.repeated == 1
    assert event.bad[0].why == "sequence 5 was learned before, with other values"


BAD = {
    "NaN": ({"x": np.array([0.0, np.nan, 1.0, 2.0])}, r"x\[1\] is NaN"),
    "infinity": ({"z": np.array([0.0, 1.0, -np.inf, 2.0])}, r"z\[2\] is infinite"),
    "too large": ({"z": np.array([0.0, 1.0, 1e41, 2.0])}, r"z\[2\] is 1e\+41, too large"),
    "missing": ({"x": None}, "x is not a list of numbers: None"),
    "no numbers": ({"x": np.empty(0)}, "x has 0 numbers"),
    "dimension": ({"x": np.zeros(3), "z": np.zeros(3)}, "x has 3 numbers, expected 4"),
    "two dimensions": ({"z": np.zeros(5)}, "z has 5 numbers, expected 4"),
    "label": ({"y": "maybe"}, "label 'maybe'; labels are"),
    "no label": ({"y": None}, "the label is empty"),
    "no number": ({"sequence": NO_SEQUENCE}, "sequence is empty"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("at", [0, 20])
def test_bad_rows_are_set_aside_and_all_others_learned(rows, name, at):
    if at == 0 and name == "dimension":
        pytest.skip("the first row tells how many features there are")
    values, why = BAD[name]
    event, kept = learn(replaced(rows, at, **values), None, Recipe())
    assert kept == learn(some(rows, [i for i in range(N) if i != at]), None, Recipe())[1]
    (row,) = event.bad
    assert event.pairs == N - 1
    assert row.sequence == (None if name == "no number" else at)
    json.loads(row.row, parse_constant=pytest.fail)  # it knows no NaN
    with pytest.raises(ValueError, match=why):
        raise ValueError(row.why)


def test_bad_rows_alone_leave_nothing_behind(rows):
    bad = Columns([0, 1], [None, np.array([np.nan])], [None, np.array([1.0])], ["1", "1"])
    event, kept = learn(bad, None, Recipe())
    assert kept is None
    assert (event.pairs, event.version, event.loss, event.last) == (0, 0, None, None)
    assert [row.why for row in event.bad] == ["x is not a list of numbers: None", "x[0] is NaN"]
    assert learn(rows, kept, Recipe())[0].pairs == N


def test_a_mended_row_is_learned_if_it_is_not_late(rows, whole):
    kept = learn(replaced(rows, N - 1, y="?"), None, Recipe())[1]
    event, kept = learn(some(rows, [N - 1]), kept, Recipe())
    assert event.pairs == 1
    assert kept == whole[1]


def test_a_key_may_cost_so_much_and_no_more(rows):
    event, kept = learn(rows, None, Recipe(max_features=3))
    assert kept is None
    assert {row.why for row in event.bad} == {"x has 4 numbers; a point has 1 to max_features=3"}


def test_settings_that_do_not_suit_a_key_set_its_rows_aside(rows):
    event, kept = learn(rows, None, Recipe(settings={"n_components": 9}))
    assert kept is None
    assert len(event.bad) == N
    assert "n_components" in event.bad[0].why


def test_a_new_key_starts_from_what_it_is_given(rows):
    pairs, y = pairs_of(1, 200)
    shared = metrack.SADL(rho=0.1).fit(pairs, y)
    event, kept = learn(some(rows, range(20)), None, Recipe(start=dump(shared)))
    event, kept = learn(some(rows, range(20, N)), kept, Recipe(start=dump(shared)))
    own, labels = pairs_of(0, N)
    shared.observe(own, labels)
    assert state_of(kept) == dump(shared)
    assert event.version == 200 + N


def test_states_are_handed_out_as_often_as_asked(rows):
    kept, had = None, []
    for start in range(0, N, 10):
        piece = some(rows, range(start, start + 10))
        event, kept = learn(piece, kept, Recipe(states_every=25))
        had.append(event.state is not None)
    assert had == [False, False, True, False, True, False]


def test_single_precision_is_handed_out_and_not_kept(rows, whole):
    event, kept = learn(rows, None, Recipe(single=True))
    assert kept == whole[1]
    assert len(event.state) < len(state_of(kept))
    M = metrack.load(state_of(kept)).get_mahalanobis_matrix()
    rounded = metrack.load(event.state).get_mahalanobis_matrix()
    np.testing.assert_allclose(rounded, M, rtol=0, atol=1e-5 * np.abs(M).max())


def test_a_change_is_told_once():
    pairs, y = pairs_of(0, 1200)
    y[600:] *= -1
    rows, kept, told = columns(pairs, y), None, []
    for start in range(0, 1200, 20):
        event, kept = learn(some(rows, range(start, start + 20)), kept, Recipe())
        told.append(event.change)
    tracker = metrack.MetricTracker().fit(pairs, y)
    assert tracker.last_change_ > 600
    changes = [change for change in told if change is not None]
    assert tracker.last_change_ in changes
    assert len(set(changes)) == len(changes)


def test_learners_without_a_window():
    event, _ = learn(columns(*pairs_of(0, 20)), None, Recipe(estimator="OnlineITML"))
    assert event.pairs == 20
    assert event.window is None
    assert event.change is None


def test_unknown_items_are_named(rows):
    ids = [("p", "q")] * N
    found = replaced(rows._replace(ids=ids), 3, x=None)
    found = replaced(found, 4, x=None, ids=(None, "q"))
    found = replaced(found, 7, z=None, ids=("p", "gone"))
    event, _ = learn(found, None, Recipe())
    assert [(row.sequence, row.why) for row in event.bad] == [
        (3, "a = 'p' is not an item"),
        (4, "a is empty"),
        (7, "b = 'gone' is not an item"),
    ]
    assert json.loads(event.bad[2].row)["b"] == "gone"


def test_rows_without_a_key(rows):
    event = without_key(rows, Recipe(key="tenant"))
    assert event.pairs == 0
    assert {row.why for row in event.bad} == {"tenant is empty"}
    assert len(event.bad) == N
