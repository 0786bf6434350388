"""What follows from answers, where alike is transitive."""

import numpy as np
import pytest

from metrack import SADL, implied_pairs
from metrack.estimators.closure import groups_of, next_questions

RNG = np.random.default_rng(3)
LABELS = RNG.integers(4, size=300)
POINTS = RNG.normal(size=(300, 5))
POINTS[:, :2] += 4.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[LABELS]


def judged(rows):
    return np.where(LABELS[rows[:, 0]] == LABELS[rows[:, 1]], 1.0, -1.0)


def test_all_that_is_implied_is_true_and_half_is_alike():
    rows = RNG.integers(300, size=(400, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    found, y = implied_pairs(rows, judged(rows), 2000, random_state=0)
    np.testing.assert_array_equal(y, judged(found))
    assert np.sum(y > 0) == np.sum(y < 0) == 1000
    assert (found[:, 0] != found[:, 1]).all()
    known = {tuple(sorted(row)) for row in rows.tolist()}
    assert len({tuple(sorted(row)) for row in found.tolist()} - known) > 500
    again, _ = implied_pairs(rows, judged(rows), 2000, random_state=0)
    np.testing.assert_array_equal(found, again)


def test_nothing_follows_from_answers_of_one_kind():
    found, y = implied_pairs([[0, 1], [2, 3]], [-1, -1], 10, random_state=0)
    assert set(y) == {-1.0}
    assert {tuple(sorted(row)) for row in found.tolist()} == {(0, 1), (2, 3)}
    found, y = implied_pairs([[0, 1], [1, 2]], [1, 1], 60, random_state=0)
    assert set(y) == {1.0}
    assert {tuple(sorted(row)) for row in found.tolist()} == {(0, 1), (1, 2), (0, 2)}


def test_answers_that_contradict_groups_are_left_out():
    found = groups_of(np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), np.array([1.0, 1, -1, -1]))
    np.testing.assert_array_equal(found.group[:3], found.group[0])
    assert found.apart.nnz == 2


def test_questions_compare_points_of_no_class_with_classes_that_may_be_theirs():
    # Classes {0, 1} and {2, 3}; 4 was refused by the first; all others are new.
    rows = np.array([[0, 1], [2, 3], [0, 2], [4, 1]])
    known = groups_of(rows, np.array([1.0, 1, -1, -1]))
    asked = next_questions(POINTS[:20], 30, np.eye(5), known, np.random.RandomState(0))
    assert asked[0, 0] == 4
    assert asked[0, 1] in (2, 3)
    assert sorted(asked[1:, 0]) == list(range(5, 20))
    assert set(asked[:, 1]) <= {0, 1, 2, 3}
    nearest = [
        min((np.linalg.norm(POINTS[i] - POINTS[c].mean(axis=0)), c) for c in ([0, 1], [2, 3]))[1]
        for i in asked[1:, 0]
    ]
    same = [j in near for j, near in zip(asked[1:, 1], nearest, strict=True)]
    assert np.mean(same) >= 0.8  # centres are means of members drawn at random


def test_many_classes_are_not_asked_through():
    first, second = np.triu_indices(13, 1)
    known = groups_of(np.stack([first, second], axis=1), np.full(len(first), -1.0))
    asked = next_questions(POINTS, 5, np.eye(5), known, np.random.RandomState(0))
    assert asked.shape == (0, 2)


def test_a_session_with_what_is_implied_labels_most_points_of_few_answers():
    tracker, rows = SADL(experts="kinds", preprocessor=POINTS), np.empty((0, 2), int)
    for i in range(12):
        given = (rows, judged(rows)) if len(rows) else None
        asked = tracker.suggest_pairs(POINTS, 10, random_state=i, judged=given)
        assert asked.shape == (10, 2)
        rows = np.concatenate([rows, asked])
        tracker.observe(asked, judged(asked))
        tracker.observe(*implied_pairs(rows, judged(rows), 40, random_state=i))
    known = groups_of(rows, judged(rows))
    four = np.sort(np.bincount(known.group))[-4:].sum()
    assert four > 60  # of 120 answers


def test_bad_input_is_refused():
    for rows, y, says in [
        ([[0, 1]], [1, 1], "one label per pair"),
        ([[0.5, 1.0]], [1], r"row numbers of shape \(n_pairs, 2\); got float64"),
        ([0, 1], [1, 1], r"shape \(2,\)"),
        ([[0, 1]], [2], "labels are"),
    ]:
        with pytest.raises(ValueError, match=says):
            implied_pairs(rows, y, 3)
    with pytest.raises(ValueError, match="n_pairs=0; it must be a whole number >= 1"):
        implied_pairs([[0, 1]], [1], 0)
    tracker = SADL().fit(POINTS[:2][None], [1])
    with pytest.raises(ValueError, match="row numbers outside of 0 to 299"):
        tracker.suggest_pairs(POINTS, 3, judged=([[0, 300]], [1]))
    with pytest.raises(ValueError, match="return_weights with judged"):
        tracker.suggest_pairs(POINTS, 3, judged=([[0, 3]], [1]), return_weights=True)
