"""What follows from answers, where alike is transitive."""

import numpy as np
import pytest

from metrack import implied_pairs
from metrack.estimators.choosing.closure import few_classes, groups_of, next_questions

RNG = np.random.default_rng(3)
LABELS = RNG.integers(4, size=300)
POINTS = RNG.normal(size=(300, 5))
POINTS[:, :2] += 4.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[LABELS]


def judged(rows):
    return np.where(LABELS[rows[:, 0]] == LABELS[rows[:, 1]], 1.0, -1.0)


def everything_implied(rows, y):
    """Brute force: pairs that follow and were not judged, by walking from answer to answer."""
    group = {int(i): {int(i)} for i in rows.ravel()}
    for (a, b), each in zip(rows.tolist(), y, strict=True):
        if each > 0 and group[a] is not group[b]:
            group[a] |= group[b]
            for member in group[b]:
                group[member] = group[a]
    judged_ = {frozenset(row) for row in rows.tolist()}
    alike = {frozenset((a, b)) for a, of in group.items() for b in of if a != b} - judged_
    apart = set()
    for (a, b), each in zip(rows.tolist(), y, strict=True):
        if each < 0:
            apart |= {frozenset((c, d)) for c in group[a] for d in group[b]}
    return alike, apart - judged_


@pytest.mark.parametrize("n_judged", [5, 20, 60, 400])
def test_what_is_drawn_follows_and_was_not_judged(n_judged):
    rows = RNG.integers(40, size=(n_judged, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    found, y = implied_pairs(rows, judged(rows), 600, random_state=0)
    alike, apart = everything_implied(rows, judged(rows))
    drawn = {side: [frozenset(row) for row in found[y == side].tolist()] for side in (1, -1)}
    assert set(drawn[1]) <= alike
    assert set(drawn[-1]) <= apart
    assert len(drawn[1]) == len(drawn[-1]) == len(set(drawn[1])) == len(set(drawn[-1]))
    # 300 draws of each kind find most of few pairs, and repeat some of many.
    assert len(drawn[1]) >= 0.5 * min(len(alike), len(apart), 300)
    again, _ = implied_pairs(rows, judged(rows), 600, random_state=0)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("y", [[-1, -1], [1, 1]])
def test_nothing_is_drawn_of_answers_of_one_kind(y):
    found, signs = implied_pairs([[0, 1], [1, 2]], y, 60, random_state=0)
    assert found.shape == (0, 2)
    assert signs.shape == (0,)


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
    """Point 0 is compared with one after the other: 30 refusals are bad luck, 31 are too many."""
    rows = np.array([(0, i) for i in range(1, 60)])
    y = np.full(59, -1.0)
    assert few_classes(rows[:31], y[:31])  # of which the first is about no point judged before
    assert not few_classes(rows[:32], y[:32])
    y[32:] = 1.0
    assert not few_classes(rows, y)  # it is decided
    assert implied_pairs(rows, y, 10, random_state=0)[0].shape == (0, 2)
    y[:] = -1.0
    y[9::10] = 1.0
    assert few_classes(rows, y)


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
