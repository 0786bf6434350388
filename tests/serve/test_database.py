"""One writer, in groups: what is acknowledged is on the disk, what fails takes nothing along."""

import sqlite3
import threading

import pytest

from metrack.serve.database import Database


@pytest.fixture
def database(tmp_path):
    found = Database(tmp_path / "log.db")
    yield found
    found.close()


def insert(name):
    return lambda c: (
        c.execute(
            "INSERT INTO metrics (name, n_features, estimator, settings, created) "
            "VALUES (?, 1, 'SADL', '{}', 0)",
            (name,),
        ).lastrowid
    )


def names(database):
    return [name for (name,) in database.reading.execute("SELECT name FROM metrics ORDER BY id")]


def test_what_is_done_can_be_read(database):
    assert database.submit(insert("a")).result() == 1
    assert names(database) == ["a"]


def test_a_job_that_fails_is_undone_alone(database):
    hold = threading.Event()
    first = database.submit(lambda c: hold.wait())  # those that follow are one group

    def half(connection):
        insert("half")(connection)
        raise ValueError("no more")

    jobs = [database.submit(each) for each in (insert("a"), half, insert("a"), insert("b"))]
    hold.set()
    first.result()
    assert jobs[0].result()
    with pytest.raises(ValueError, match="no more"):
        jobs[1].result()
    with pytest.raises(sqlite3.IntegrityError):
        jobs[2].result()
    assert jobs[3].result()
    assert names(database) == ["a", "b"]


def test_a_full_disk_acknowledges_nothing_and_what_follows_is_written(database):
    hold = threading.Event()
    database.submit(lambda c: hold.wait())

    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    lost = [database.submit(each) for each in (insert("a"), full, insert("b"))]
    hold.set()
    for job in lost:
        with pytest.raises(sqlite3.OperationalError, match="full"):
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


def test_tables_of_a_later_version_are_refused(tmp_path):
    Database(tmp_path / "log.db").close()
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="upgrade metrack"):
        Database(tmp_path / "log.db")
