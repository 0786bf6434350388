"""One writer, in groups: what is acknowledged is on the disk, what fails takes nothing along."""

import sqlite3
import threading

import pytest

from metrack.serve import log, metric_rows
from metrack.serve.databases.database import Unavailable
from metrack.serve.databases.schema import scripts
from metrack.serve.databases.sqlite import SQLite
from metrack.serve.learning import Config
from tests.serve.servers import open_database, sqlite_only


@pytest.fixture
def database(tmp_path):
    found = open_database(tmp_path)
    yield found
    found.close()


def insert(name):
    return lambda c: metric_rows.insert(c, name, Config(1, "MetricTracker", {}, None))


def names(database):
    with database.reading() as connection:
        rows = metric_rows.read(connection)
    return [row.name for row in sorted(rows)]


def test_what_is_done_can_be_read(database):
    assert database.submit(insert("a")).result() == 1
    assert names(database) == ["a"]


def test_a_job_that_fails_is_undone_alone(database):
    hold = threading.Event()
    first = database.submit(lambda c: hold.wait())  # those that follow are one group

    def half(connection):
        insert("half")(connection)
        raise ValueError("no more")

    def wrong(connection):
        connection.execute("INSERT INTO metrics (name) VALUES (?)", ("no width",))

    jobs = [database.submit(each) for each in (insert("a"), half, wrong, insert("b"))]
    hold.set()
    first.result()
    assert jobs[0].result()
    with pytest.raises(ValueError, match="no more"):
        jobs[1].result()
    with pytest.raises(Exception, match="n_features"):
        jobs[2].result()
    assert jobs[3].result()
    assert names(database) == ["a", "b"]


@sqlite_only
def test_a_full_disk_acknowledges_nothing_and_what_follows_is_written(database):
    hold = threading.Event()
    database.submit(lambda c: hold.wait())

    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    lost = [database.submit(each) for each in (insert("a"), full, insert("b"))]
    hold.set()
    for job in lost:
        with pytest.raises(Unavailable, match="cannot write"):
            job.result()
    assert names(database) == []
    assert database.failing
    database.probe().result()
    assert not database.failing
    assert database.submit(insert("c")).result()
    assert names(database) == ["c"]


def test_who_went_away_before_it_was_written_is_left_out(database):
    hold = threading.Event()
    first = database.submit(lambda c: hold.wait())
    gone = database.submit(insert("gone"))
    assert gone.cancel()
    hold.set()
    first.result()
    database.submit(insert("a")).result()
    assert names(database) == ["a"]


def test_a_name_is_given_once(database):
    assert database.submit(insert("a")).result()
    assert database.submit(insert("a")).result() is None


@sqlite_only
def test_tables_of_a_later_version_are_refused(tmp_path):
    SQLite(tmp_path).close()
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="upgrade metrack"):
        SQLite(tmp_path)


@sqlite_only
def test_tables_of_an_earlier_version_are_brought_up(tmp_path):
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.executescript(scripts("sqlite")[1] + "PRAGMA user_version = 1;")
        file.execute(
            "INSERT INTO metrics (name, n_features, estimator, settings, created) "
            "VALUES ('a', 1, 'MetricTracker', '{}', 0)"
        )
        file.execute("INSERT INTO items VALUES (7, 'left', x'00', NULL, NULL)")
    database = SQLite(tmp_path)
    assert names(database) == ["a"]
    while database.submit(log.sweep).result():
        continue
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM items").fetchall() == []
    database.close()
