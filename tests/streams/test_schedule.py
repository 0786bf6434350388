import numpy as np
import pytest

from metrack.streams import LabelledStream, Segment, abrupt, gradual, paper_schedule, recurring

# All points are one class by column 0, all different by column 1: y tells which was asked.
POINTS = np.zeros((50, 1))
LABELS = np.column_stack([np.zeros(50), np.arange(50)])


def new_share(schedule, seeds=400):
    """Share of seeds in which column 1 judges, at each step."""
    streams = (
        LabelledStream(POINTS, LABELS, schedule=schedule, random_state=s) for s in range(seeds)
    )
    return np.mean([stream.pairs()[1] == -1 for stream in streams], axis=0)


def test_an_abrupt_change_is_between_two_pairs():
    assert new_share(abrupt(0, 1, length=10), seeds=3).tolist() == [0.0] * 10 + [1.0] * 10


@pytest.mark.parametrize("blend", [40, 41, 100])
def test_a_gradual_change_rises_evenly_around_the_segments_start(blend):
    share = new_share(gradual(0, 1, length=50, blend=blend))
    wanted = np.clip((np.arange(100) + 0.5 - 50) / blend + 0.5, 0, 1)
    assert np.abs(share - wanted).max() < 0.1
    assert np.abs(share - wanted).mean() < 0.02
    assert set(share[wanted == 0]) <= {0.0}
    assert set(share[wanted == 1]) <= {1.0}


def test_within_a_blend_labels_are_those_of_the_likelier_partition():
    stream = LabelledStream(POINTS, LABELS, schedule=gradual(0, 1, length=50, blend=40))
    assert [stream.partition(t) for t in (31, 49, 50, 69)] == [0, 0, 1, 1]
    assert stream.switches == [50]


def test_recurring_partitions_come_back():
    schedule = recurring("A", "B", length=10, cycles=3, blend=4, drift=0.1)
    assert [segment.partition for segment in schedule] == ["A", "B"] * 3
    assert [segment.blend for segment in schedule] == [0, 4, 4, 4, 4, 4]
    assert {segment.drift for segment in schedule} == {0.1}
    share = new_share(recurring(0, 1, length=10, cycles=2), seeds=2)
    assert share.tolist() == ([0.0] * 10 + [1.0] * 10) * 2


@pytest.mark.parametrize("n_pairs", [5, 6, 7, 100, 3001])
def test_the_papers_schedule_has_any_length(n_pairs):
    schedule = paper_schedule(n_pairs)
    assert sum(segment.length for segment in schedule) == n_pairs
    assert "".join(segment.partition for segment in schedule) == "ABBBA"
    static, moderate, fast, again, slow = (segment.drift for segment in schedule)
    assert static == 0 < slow < moderate == again < fast


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Segment("x", "A", 0), "length of segment 'x' is 0"),
        (lambda: Segment("x", "A", 1.5), "length of segment 'x' is 1.5"),
        (lambda: Segment("x", "A", 1, drift=-0.1), "drift of segment 'x' is -0.1"),
        (lambda: Segment("x", "A", 1, drift=np.inf), "drift of segment 'x' is inf"),
        (lambda: Segment("x", "A", 1, blend=-1), "blend of segment 'x' is -1"),
        (lambda: recurring("A", length=1, cycles=0), "cycles is 0"),
        (lambda: paper_schedule(4), "n_pairs is 4; it must be a whole number >= 5"),
    ],
)
def test_bad_segments_are_value_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([Segment("x", 0, 10, blend=2)], "nothing to blend from"),
        ([Segment("x", 0, 10), Segment("y", 0, 10, blend=2)], "into itself"),
        (gradual(0, 1, length=10, blend=21), "'0' has 10 pairs, but .* take 10.5"),
        (recurring(0, 1, length=10, cycles=2, blend=12), "'1' has 10 pairs, but .* take 12"),
    ],
)
def test_blends_that_do_not_fit_are_value_errors(schedule, message):
    with pytest.raises(ValueError, match=message):
        LabelledStream(POINTS, LABELS, schedule=schedule)
