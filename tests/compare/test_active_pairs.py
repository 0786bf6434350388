"""Questions about candidate pairs."""

import numpy as np
import pytest

from metrack import Differences, MetricTracker
from metrack.compare import ActivePairs


def candidates(n=400):
    u = np.random.default_rng(0).random((n, 3))
    return Differences(u, ["a", "b", "c"]), u[:, 0] < 0.1


def asked_and_taught(n_calls=15, seed=0):
    pairs, alike = candidates()
    asker = ActivePairs(MetricTracker(), pairs, random_state=seed)
    asked = []
    for _ in range(n_calls):
        rows = asker.query(10)
        asked += rows.tolist()
        asker.teach(rows, alike[rows])
    return asker, asked, alike


def test_no_pair_is_asked_about_twice_and_answers_are_learned():
    asker, asked, alike = asked_and_taught()
    assert len(set(asked)) == len(asked) == asker.n_answers == asker.tracker.n_pairs_seen_ == 150
    assert np.array_equal(asker.answers_[asked] > 0, alike[asked])
    assert asker.tracker.feature_names_in_.tolist() == ["a", "b", "c"]


def test_questions_find_those_that_are_alike():
    """A tenth is alike: of 150 random pairs 15 would be, and hardly ever 25."""
    for seed in range(3):
        asker, _, alike = asked_and_taught(seed=seed)
        assert np.sum(asker.answers_ > 0) > 25 > 1.5 * 150 * alike.mean()


def test_the_same_answers_give_the_same_questions():
    assert asked_and_taught(5)[1] == asked_and_taught(5)[1]
    assert asked_and_taught(5)[1] != asked_and_taught(5, seed=1)[1]


def test_all_are_asked_about_in_the_end():
    pairs, _ = candidates(25)
    asker = ActivePairs(MetricTracker(), pairs)
    assert [len(asker.query(10)) for _ in range(4)] == [10, 10, 5, 0]
    asker.teach([0, 1], [True, False])
    assert asker.query(10).tolist() == []


def test_who_is_unsure_teaches_nothing_and_is_not_asked_again():
    pairs, _ = candidates(12)
    asker = ActivePairs(MetricTracker(), pairs).teach([3, 4], [None, True]).teach(5, None)
    assert asker.n_answers == asker.tracker.n_pairs_seen_ == 1
    assert set(asker.query(12).tolist()) == set(range(12)) - {3, 4, 5}


def test_a_tracker_that_has_learned_is_asked_at_once():
    pairs, alike = candidates()
    tracker = MetricTracker().partial_fit(pairs, np.where(alike, 1, -1))
    asked = ActivePairs(tracker, pairs).query(60)
    doubt = tracker.informativeness(pairs)
    assert doubt[asked].mean() > 1.5 * doubt.mean()


@pytest.mark.parametrize(
    ("rows", "y", "words"),
    [
        ([12], [1], "there is no candidate 12: there are 12"),
        ([-1], [1], "there is no candidate -1"),
        ([0.5], [1], "row numbers of the candidates"),
        ([0, 1], [1], "one label a pair: 2, but has 1"),
        ([0], [3], r"y\[0\] = 3"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_learned(rows, y, words):
    asker = ActivePairs(MetricTracker(), candidates(12)[0])
    with pytest.raises(ValueError, match=words):
        asker.teach(rows, y)
    assert asker.n_answers == 0
    assert not hasattr(asker.tracker, "engine_")


def test_candidates_are_differences():
    with pytest.raises(ValueError, match="must be Differences"):
        ActivePairs(MetricTracker(), np.zeros((3, 2)))
    with pytest.raises(TypeError, match="tracker is a type; ActivePairs teaches learners of pairs"):
        ActivePairs(MetricTracker, candidates(3)[0])
