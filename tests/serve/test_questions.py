"""What judges are asked, and when it is enough: as `ActiveTracker` has it, from the log alone."""

import numpy as np
import pytest

from metrack import ActiveTracker, Client, MetricTracker
from metrack.serve import questions
from metrack.serve.items import Items, NewItems
from metrack.serve.learning import Config, Learning
from metrack.serve.log import Told
from metrack.serve.questions import Questions, standing
from tests.serve.servers import stretch_of
from tests.serve.test_api import refused

N = 40
IDS = [f"i{i}" for i in range(N)]
POINTS = np.random.default_rng(3).normal(size=(N, 3))
KIND = (POINTS[:, 0] > 0).astype(int)
CONFIG = Config(3, "MetricTracker", {}, None)


@pytest.fixture
def items():
    nothing = [None] * N
    return Items(3).with_more(NewItems(IDS, POINTS, nothing, nothing, nothing))


def told(rows, first=1, judge="ann", y=None, corrects=None):
    """What the log has of pairs of items, right unless it is said."""
    labels = [1 if KIND[a] == KIND[b] else -1 for a, b in rows] if y is None else y
    return [
        Told(first + k, judge, IDS[a], IDS[b], label, POINTS[[a, b]].tobytes(), corrects)
        for k, ((a, b), label) in enumerate(zip(rows, labels, strict=True))
    ]


def random_rows(n, seed=0):
    pairs = np.stack(np.triu_indices(N, 1), axis=1)
    return np.random.default_rng(seed).permutation(pairs)[:n].tolist()


def test_answers_are_taught_as_an_active_tracker_is(items):
    rows = random_rows(60)
    found, asker = Questions(CONFIG, items), ActiveTracker(MetricTracker(random_state=0), POINTS)
    for start in range(0, 60, 10):
        some = told(rows[start : start + 10], start + 1)
        found.follow(some)
        asker.teach(rows[start : start + 10], [each.y for each in some])
    assert found.progress() == asker.progress()
    assert found.next(5, set()) == [(IDS[i], IDS[j]) for i, j in asker.query(5).tolist()]


def test_what_names_no_judge_is_learned_and_no_answer(items):
    rows = random_rows(80)
    found = Questions(CONFIG, items)
    found.follow([*told(rows[:40], judge=None), *told(rows[40:], 41)])
    assert found.progress().answers == 40
    assert found.asker.tracker.n_pairs_seen_ == 80 + found.asker.n_implied


def test_long_logs_are_known_and_their_end_is_taught(items, monkeypatch):
    rows = random_rows(100)
    whole, found = Questions(CONFIG, items), Questions(CONFIG, items)
    whole.follow(told(rows))
    monkeypatch.setattr(questions, "TAUGHT", 30)
    found.follow(told(rows))
    assert found.progress().answers == 100
    assert found.progress().ahead is not None
    assert 0 < found.asker.n_implied < whole.asker.n_implied
    known = {frozenset(pair) for pair in rows}
    new = [frozenset(IDS.index(key) for key in pair) for pair in found.next(200, set())]
    audits = sum(pair in known for pair in new)
    assert audits < len(new)


def test_a_correction_takes_the_place_of_what_was_said():
    rows = random_rows(4)
    some = told(rows, y=[1, 1, -1, 1])
    (again,) = told(rows[1:2], 5, judge="bob", y=[-1], corrects=2)
    (once_more,) = told(rows[1:2], 6, y=[0], corrects=5)
    (older,) = told(rows[:1], 7, corrects=-3)  # of what is not read any more
    found = standing([*some, again, once_more, older])
    assert [(each.sequence, each.judge, each.y) for each in found] == [
        *((1, "ann", 1), (2, "ann", 0), (3, "ann", -1), (4, "ann", 1)),
    ]


def test_judges_who_disagree_do_not_make_it_another_question(items):
    rows = random_rows(80)
    both, alone = Questions(CONFIG, items), Questions(CONFIG, items)
    alone.follow(told(rows))
    both.follow(told(rows))
    contrary = [-each.y for each in told(rows)]
    both.follow(told(rows, 81, judge="bob", y=contrary))
    assert both.progress().question == 1
    assert both.progress().answers == alone.progress().answers == 80
    alone.follow(told(rows, 81, y=contrary))  # the same judge means something else by now
    assert alone.progress().question == 2


def test_pairs_that_nobody_answered_come_again_when_there_are_no_others(items):
    found = Questions(CONFIG, items)
    n_all = N * (N - 1) // 2
    first = {frozenset(pair) for pair in found.next(n_all, set())}
    assert len(first) == n_all
    again = {frozenset(pair) for pair in found.next(10, set())}
    assert len(again) == 10
    done = first - set(list(first)[:3])
    assert {frozenset(pair) for pair in found.next(10, done)} == first - done


def test_a_log_that_was_cut_off_is_known_by_what_was_learned(items):
    rows = random_rows(50)
    learned = Learning.new(CONFIG)
    labels = np.array([each.y for each in told(rows)])
    learned.learn(stretch_of(np.arange(1, 51), POINTS[np.array(rows)], labels))
    found = Questions(CONFIG, items, learned)
    found.recall(told(rows)[30:])
    assert (found.sequence, found.progress().answers) == (50, 20)
    pairs = POINTS[np.array(rows)]
    own, copy = learned.learner, found.asker.tracker
    np.testing.assert_array_equal(copy.pair_distance(pairs), own.pair_distance(pairs))
    found.follow(told(random_rows(10, seed=1), 51))
    assert learned.learner.n_pairs_seen_ == 50  # it is a copy


def test_judging_goes_on_after_a_kill_as_if_there_had_been_none(spawner, tmp_path):
    server = spawner.start(tmp_path / "data").wait()
    with Client(server.url) as client:
        client.create("m", 3)
        refused(client, 409, "put two at least", client.suggest, "m")
        client.put_items("m", IDS, POINTS)
        rows = random_rows(60)
        pairs = [(IDS[a], IDS[b]) for a, b in rows]
        client.feedback("m", pairs, [each.y for each in told(rows)], judge="ann")
        before = client.progress("m")
        assert before["answers"] == 60
        assert before["ahead"] is not None
        assert before["stop"] == (before["ahead"] <= 0.1)
    server.end(9)
    server = spawner.start(tmp_path / "data").wait()
    with Client(server.url) as client:
        assert client.progress("m") == before
        client.correct("m", 1, -told(rows)[0].y, judge="ann")
        corrected = client.progress("m")
        assert corrected["answers"] == 60
        assert corrected["alike"] == before["alike"] - told(rows)[0].y
        client.request("DELETE", "/v1/metrics/m/log?upto=30")
        client.feedback("m", [(IDS[0], IDS[1])], [1], judge="ann")
        assert client.progress("m")["answers"] == 61  # as long as it runs
        asked = client._json("POST", client._path("m", "suggest"), {"n": 3, "judge": "bob"})
        assert asked["progress"]["answers"] == 61
        assert len(asked["pairs"]) == 3
    server.end()


@pytest.mark.parametrize("name", ["KernelTracker", "OnlineITML", "SADL"])
def test_any_learner_of_pairs_asks(items, name):
    found = Questions(Config(3, name, {}, None), items)
    found.follow(told(random_rows(30)))
    assert len(found.next(4, set())) == 4
    assert found.progress().answers == 30
