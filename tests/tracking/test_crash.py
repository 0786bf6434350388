"""A run that is killed at any moment, and started again, ends like one that was not."""

import errno
import os
import random
import signal
import time
from types import SimpleNamespace

import pytest

from metrack import files, storage
from metrack.tracking import sources
from tests.tracking.feedback import learned, make_feedback, run, wide_lines, write_csv

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

AT_RANDOM_TIMES, INSIDE_SAVES, FULL_DISK = 100, 60, 40
EVERY = 40  # pairs between saves


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file of 240 pairs that is read some 8 at a time."""
    monkeypatch.setattr(sources, "BLOCK", 1024)
    path = tmp_path / "feedback.csv"
    write_csv(path, wide_lines(*make_feedback(240)))
    return path


@pytest.fixture
def uninterrupted(source, tmp_path):
    run(source, tmp_path / "whole", every=EVERY)
    return learned(tmp_path / "whole")


def in_child(work):
    """Run in a forked process; returns its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except OSError as error:
            code = 28 if error.errno == errno.ENOSPC else 1
        finally:
            os._exit(code)
    return child


def ended(child):
    return os.waitpid(child, 0)[1]


def check_resumed(source, out, uninterrupted):
    run(source, out, every=EVERY)
    assert learned(out) == uninterrupted
    assert not [name for name in os.listdir(out) if name.startswith(storage.PREFIX)]


def test_killed_at_random_times(source, tmp_path, uninterrupted):
    start = time.perf_counter()
    assert ended(in_child(lambda: run(source, tmp_path / "timed", every=EVERY))) == 0
    lasts = time.perf_counter() - start
    chance, killed, i = random.Random(0), 0, 0
    while killed < AT_RANDOM_TIMES:
        i += 1
        out = tmp_path / f"state-{i}"
        child = in_child(lambda out=out: run(source, out, every=EVERY))
        time.sleep(chance.uniform(0, lasts))
        os.kill(child, signal.SIGKILL)
        if os.WIFSIGNALED(ended(child)):
            killed += 1
        else:  # it had ended: they run faster than the first, or than when others are at work
            lasts *= 0.8
        check_resumed(source, out, uninterrupted)


class Faulty(SimpleNamespace):
    """The system's file operations, of which the n-th goes wrong."""

    NAMES = ("open", "write", "fsync", "mkdir", "rename", "close", "listdir")

    def __init__(self, nth, fault):
        left = [nth]

        def wrap(function):
            def counted(*args, **kwargs):
                left[0] -= 1
                if left[0] == 0:
                    fault(function, args)
                return function(*args, **kwargs)

            return counted

        plain = {name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
        super().__init__(**plain | {name: wrap(plain[name]) for name in self.NAMES})


def kill_now(function, args):
    if function is os.write:  # half of it gets to the disk
        os.write(args[0], args[1][: len(args[1]) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def no_space(function, args):
    if function is os.write:
        os.write(args[0], args[1][: len(args[1]) // 2])
    raise OSError(errno.ENOSPC, "No space left on device")


def run_faulty(source, out, nth, fault):
    def work():
        storage.os = files.os = Faulty(nth, fault)  # in the child alone
        run(source, out, every=EVERY)

    return ended(in_child(work))


def operations_of_a_run(source, tmp_path):
    """How many file operations of the state there are, found by bisection."""
    low, high = 1, 4096
    while low < high:
        middle = (low + high) // 2
        if run_faulty(source, tmp_path / f"count-{middle}", middle, kill_now):
            low = middle + 1
        else:
            high = middle
    return low - 1


def test_killed_inside_a_save(source, tmp_path, uninterrupted):
    n_operations = operations_of_a_run(source, tmp_path)
    assert n_operations > 50
    chance = random.Random(1)
    for i in range(INSIDE_SAVES):
        out = tmp_path / f"state-{i}"
        status = run_faulty(source, out, chance.randint(1, n_operations), kill_now)
        assert os.WTERMSIG(status) == signal.SIGKILL
        check_resumed(source, out, uninterrupted)


def test_full_disk(source, tmp_path, uninterrupted):
    chance = random.Random(2)
    for i in range(FULL_DISK):
        out = tmp_path / f"state-{i}"
        status = run_faulty(source, out, chance.randint(1, 60), no_space)
        assert os.WEXITSTATUS(status) == 28
        check_resumed(source, out, uninterrupted)


def test_full_disk_leaves_the_last_state_and_no_rubbish(source, tmp_path):
    out = tmp_path / "state"
    run(source, out, every=EVERY)
    before = learned(out)
    with source.open("a") as file:
        file.writelines(wide_lines(*make_feedback(50, seed=1)))
    for nth in range(8, 20):
        if run_faulty(source, out, nth, no_space) == 0:
            break
        assert not [name for name in os.listdir(out) if name.startswith(storage.PREFIX)]
        assert learned(out)[0]["class"] == before[0]["class"]
