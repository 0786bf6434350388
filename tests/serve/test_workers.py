"""Turns: one thread at a time for each, none forgotten, none before its time."""

import threading
import time

from metrack.serve.workers import Workers


class Pupil:
    def __init__(self):
        self.due, self.busy, self.turns, self.inside = None, False, 0, 0
        self.most = 0
        self.changed = threading.Condition()

    def wait(self, turns):
        with self.changed:
            assert self.changed.wait_for(lambda: self.turns >= turns, timeout=30)


def turn(pupil):
    pupil.inside += 1
    pupil.most = max(pupil.most, pupil.inside)
    time.sleep(0.001)
    pupil.inside -= 1
    with pupil.changed:
        pupil.turns += 1
        pupil.changed.notify_all()


def test_each_has_one_thread_at_a_time_and_none_is_forgotten():
    workers, pupils = Workers(4, turn), [Pupil() for _ in range(5)]
    for _ in range(20):
        for pupil in pupils:
            workers.wake(pupil)
        time.sleep(0.001)
    for pupil in pupils:
        seen = pupil.turns
        workers.wake(pupil)
        pupil.wait(seen + 1)
    workers.close()
    assert {pupil.most for pupil in pupils} == {1}


def test_a_turn_may_ask_for_another():
    def again(pupil):
        turn(pupil)
        return 0.0 if pupil.turns < 10 else None

    workers, pupil = Workers(2, again), Pupil()
    workers.wake(pupil)
    pupil.wait(10)
    workers.close()
    assert pupil.turns == 10


def test_what_is_wanted_earlier_comes_earlier():
    workers, pupil = Workers(1, turn), Pupil()
    workers.wake(pupil, seconds=1000.0)
    workers.wake(pupil)
    pupil.wait(1)
    workers.close()
    assert pupil.turns == 1


def test_who_is_wanted_during_a_turn_has_another():
    inside, go = threading.Event(), threading.Event()

    def slow(pupil):
        inside.set()
        assert go.wait(30)
        turn(pupil)

    workers, pupil = Workers(1, slow), Pupil()
    workers.wake(pupil)
    inside.wait(30)
    workers.wake(pupil)
    go.set()
    pupil.wait(2)
    workers.close()


def test_a_turn_that_fails_ends_no_thread():
    def failing(pupil):
        turn(pupil)
        raise RuntimeError

    workers, pupil = Workers(1, failing), Pupil()
    for i in range(3):
        workers.wake(pupil)
        pupil.wait(i + 1)
    workers.close()
