"""Clusters from scored pairs, and the made-up records they are tried on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrack.compare import catalogues, clusters

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.floats(0.0, 1.0)), max_size=15)


@given(PAIRS, st.floats(0.0, 1.0))
def test_links_are_the_likeliest_and_as_many_as_may_be(pairs, precision):
    rows = np.array([each[:2] for each in pairs], np.int64).reshape(-1, 2)
    p = np.array([each[2] for each in pairs])
    found = clusters(rows, p, 6, 5, precision)
    means = [np.sort(p)[::-1][:k].mean() for k in range(1, len(p) + 1)]
    most = max((k + 1 for k, mean in enumerate(means) if mean >= precision), default=0)
    assert abs(found.n_links - most) <= sum(abs(m - precision) < 1e-12 for m in means)
    groups = _joined(rows[np.argsort(-p, kind="stable")[: found.n_links]])
    labels = np.concatenate([found.left, found.right])
    assert [[labels[i] == labels[j] for j in range(11)] for i in range(11)] == [
        [groups[i] == groups[j] for j in range(11)] for i in range(11)
    ]


def _joined(rows):
    """Groups by naive merging; the right records come after the six left ones."""
    groups = list(range(11))
    for i, j in rows.tolist():
        a, b = groups[i], groups[6 + j]
        groups = [a if each == b else each for each in groups]
    return groups


def test_one_table_links_its_own_records():
    found = clusters([[0, 1], [1, 2]], [0.99, 0.97], 4)
    assert found.left.tolist() == [0, 0, 0, 1]
    assert found.right.size == 0


def test_without_a_pair_that_is_likely_enough_all_are_alone():
    found = clusters([[0, 1]], [0.2], 3)
    assert found.n_links == 0
    assert found.likelihood == np.inf
    assert found.left.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([[0, 9]], [0.5], 3), r"rows\[0, 1\] = 9; right has 3 records"),
        (([[0, 1]], [1.5], 3), r"likelihood\[0\] = 1.5"),
        (([[0, 1]], [np.nan], 3), r"likelihood\[0\] = nan"),
        (([[0, 1]], [[0.5, 0.5]], 3), "take the second column"),
        (([[0.5, 1]], [0.5], 3), "whole numbers"),
        (([[0, 1]], [0.5], 3, None, 2.0), "precision is 2.0"),
    ],
)
def test_what_cannot_be_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        clusters(*given)


def test_catalogues_are_the_same_again_and_others_by_seed():
    first, again, other = catalogues(30), catalogues(30), catalogues(30, random_state=1)
    assert first.left == again.left
    assert first.right == again.right
    assert first.left != other.left
    assert len(np.unique(first.same[:, 0])) == len(np.unique(first.same[:, 1])) == 20
