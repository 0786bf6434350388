"""One learner a metric, spread evenly; and who comes or goes moves its share."""

import contextlib
import os
import struct
from functools import partial

import psycopg
import pytest

from metrack.serve import metric_rows
from metrack.serve.databases.connections import connected, with_defaults
from metrack.serve.databases.database import Fenced, Saved
from metrack.serve.databases.postgres import Postgres, keep_state
from metrack.serve.databases.shares import share_of
from metrack.serve.limits import Limits
from metrack.serve.registry import Registry
from metrack.storage import State
from tests.serve.servers import judged, url_of
from tests.serve.test_registry import CONFIG, batch_of, wait_until

N_METRICS = 31


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)


@pytest.fixture
def join(url):
    """Makes one more process of the same database; in threads of this one."""
    joined = []

    def start(**options):
        joined.append(Registry(Postgres(url, **options), Limits(), n_threads=1))
        return joined[-1]

    yield start
    for registry in joined:
        with contextlib.suppress(Exception):  # some were closed by the test
            registry.close()


def held(registry):
    return set(registry.database.held)


def are_even(registries):
    """Whether all slots are held, once each, and no share is larger than another by more than 1."""
    slots = [held(each) for each in registries]
    counts = [len(each) for each in slots]
    whole = len(set.union(*slots)) == sum(counts) == N_METRICS
    return whole and max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("n_members", "n_slots"), [(1, 5), (3, 10), (4, 3), (7, 1024), (2, 0)])
def test_shares_are_even_and_make_up_the_whole(n_members, n_slots):
    shares = [share_of(rank, n_members, n_slots) for rank in range(n_members)]
    assert sum(shares) == n_slots
    assert max(shares) - min(shares) <= 1


def test_who_joins_or_leaves_moves_its_share_alone(join):
    first = join()
    for i in range(N_METRICS):
        first.make(f"m{i}", CONFIG)
    wait_until(lambda: are_even([first]))
    second = join()
    wait_until(lambda: are_even([first, second]))
    before = {id(each): held(each) for each in (first, second)}
    third = join()
    three = [first, second, third]
    wait_until(lambda: are_even(three))
    moved = sum(len(before[id(each)] - held(each)) for each in (first, second))
    assert moved == len(held(third))
    before = {id(each): held(each) for each in (first, second)}
    third.close()
    wait_until(lambda: are_even([first, second]))
    assert all(before[id(each)] <= held(each) for each in (first, second))


def test_readers_take_no_share(join):
    learner, reader = join(), join(learns=False)
    learner.make("m", CONFIG)
    wait_until(lambda: held(learner) == {1})
    assert not reader.database.learns
    reader.append(reader_metric(reader, "m"), batch_of(*judged(50))).result()
    wait_until(lambda: reader.get("m").version == 50)
    assert reader.get("m").learning is None


def reader_metric(registry, name):
    wait_until(lambda: name in registry.metrics)
    return registry.get(name)


def test_a_metric_that_another_has_made_unheard_of_is_found(join):
    first, second = join(), join()
    second.database._following.close()
    made, new = first.make("m", CONFIG)
    found, new_again = second.make("m", CONFIG)
    assert (new, new_again, found.number) == (True, False, made.number)


def test_who_wakes_up_late_cannot_overwrite(join):
    """Its number is an earlier one by then, whatever it believes."""
    first = join()
    metric, _ = first.make("m", CONFIG)
    wait_until(lambda: first.database.fence(1) is not None)
    first.append(metric, batch_of(*judged(50))).result()

    def published():
        with first.database.reading() as connection:
            return connection.execute("SELECT sequence FROM snapshots").fetchall() == [(50,)]

    wait_until(published)  # in the table, too: that comes after the process itself has it
    earlier = first.database.fence(1)
    first.database.submit(lambda c: c.execute("UPDATE slots SET fence = fence + 1").rowcount)
    old = Saved(49, "{}", State({}, {}))
    with pytest.raises(Fenced):
        first.database.save(1, earlier, old)
    with pytest.raises(Fenced):
        first.database.publish(1, earlier, old).result()
    with first.database.reading() as connection:
        assert connection.execute("SELECT fence, sequence FROM snapshots").fetchall() == [
            (earlier, 50)
        ]


def test_a_state_of_a_deleted_metric_is_not_written(join):
    first = join()
    metric, _ = first.make("m", CONFIG)
    wait_until(lambda: first.database.fence(1) is not None)
    fence = first.database.fence(1)
    first.delete(metric)
    with pytest.raises(Exception, match="deleted meanwhile"):
        first.database.submit(partial(keep_state, 1, fence, 0, b"")).result()
    with first.database.reading() as connection:
        assert connection.execute("SELECT * FROM states").fetchall() == []
        assert metric_rows.read(connection) == []


def test_a_process_that_was_stopped_within_a_statement_holds_nobody_up(join):
    """Its session waits for the rest, with what it has locked: others end it."""
    first = join()
    metric, _ = first.make("m", CONFIG)
    silent = connected(with_defaults(first.database.url))
    silent.execute("BEGIN")
    silent.execute("SELECT * FROM metrics FOR UPDATE")
    begun = b"\0SELECT 1\0\0\0"  # of a message that asks for no answer yet
    os.write(silent.pgconn.socket, b"P" + struct.pack("!I", 4 + len(begun)) + begun)
    assert first.append(metric, batch_of(*judged(5))).result(timeout=60).sequence == 5
    with pytest.raises(psycopg.OperationalError):
        silent.execute("SELECT 1")


def test_a_lost_session_loses_the_right_and_another_one_learns(join, url):
    first = join()
    metric, _ = first.make("m", CONFIG)
    wait_until(lambda: first.database.fence(1) is not None)
    first.append(metric, batch_of(*judged(50))).result()
    wait_until(lambda: metric.version == 50)
    earlier = first.database.fence(1)
    second = join()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid = "
    pid = first.database._shares._connection.info.backend_pid
    with second.database.reading() as connection:
        connection.execute(f"{ended}{pid}")
    wait_until(lambda: held(first) | held(second) == {1})
    wait_until(lambda: (first.database.fence(1) or second.database.fence(1) or 0) > earlier)
    second.append(reader_metric(second, "m"), batch_of(*judged(50, seed=1))).result()
    for each in (first, second):
        wait_until(lambda each=each: each.get("m").version == 100)
