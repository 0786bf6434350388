"""What `metrack doctor` sees of a folder, whole and damaged, and that it changes nothing."""

import os
import shutil
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

from metrack import Client
from metrack.serve import doctor
from metrack.serve.doctor import examined
from tests.serve.servers import judged, sqlite_only
from tests.serve.test_auth import metrack_command

pytestmark = sqlite_only


@pytest.fixture(scope="module")
def made(spawner, tmp_path_factory):
    """A folder of two metrics, one of which has a log that was cut off."""
    folder = tmp_path_factory.mktemp("doctor") / "data"
    server = spawner.start(folder).wait()
    with Client(server.url) as client:
        for name in ("whole", "cut"):
            client.create(name, 3)
            client.feedback(name, *judged(300))
            client.describe(name, min_sequence=300, timeout=60)
        client.request("DELETE", "/v1/metrics/cut/log?upto=200")
        running = list(examined(folder))  # while it is in use
    server.end()
    assert levels(running) == {"ok"}
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "data")


def levels(found):
    return {each.level for each in found}


def worst(folder):
    return [each for each in examined(folder) if each.level != "ok"]


def number_of(folder, name):
    with closing(sqlite3.connect(folder / "log.db")) as log:
        return log.execute("SELECT id FROM metrics WHERE name = ?", (name,)).fetchone()[0]


def change(folder, sql, *parameters):
    with closing(sqlite3.connect(folder / "log.db")) as log:
        log.execute(sql, parameters)
        log.commit()


def test_a_whole_folder_is_well_and_stays_as_it_is(folder):
    def contents():
        files = [each for each in folder.rglob("*") if each.is_file()]
        files = [each for each in files if not each.name.endswith("-shm")]  # SQLite's locks
        return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}

    before = contents()
    done = metrack_command("doctor", folder)
    assert done.returncode == 0, done.stdout
    assert "whole; 2 metrics, 400 judgements" in done.stdout
    assert "metric cut: 300 judgements, 300 in its state" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * 6
    assert contents() == before


def test_judgements_that_are_missing(folder):
    change(folder, "DELETE FROM judgements WHERE metric = ? AND sequence = 250", 1)
    (found,) = worst(folder)
    assert (found.level, found.what) == ("wrong", "metric whole")
    assert "1 judgements are missing" in found.text
    done = metrack_command("doctor", folder)
    assert done.returncode == 1
    assert "wrong metric whole" in done.stdout


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE judgements SET points = x'00' WHERE metric = 1 AND sequence = 3", "cut short"),
        ("DELETE FROM judgements WHERE metric = 1", "are gone"),
        ("UPDATE metrics SET sequence = 310 WHERE id = 1", "10 judgements are missing"),
    ],
)
def test_rows_that_were_changed(folder, sql, words):
    change(folder, sql)
    (found,) = worst(folder)
    assert found.level == "wrong"
    assert words in found.text


@pytest.mark.parametrize(("name", "level"), [("whole", "watch"), ("cut", "wrong")])
def test_a_damaged_state_is_grave_where_the_log_was_cut_off(folder, name, level):
    (arrays,) = (folder / "states" / str(number_of(folder, name))).rglob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-8])
    (found,) = worst(folder)
    assert (found.level, found.what) == (level, f"metric {name}")


def test_no_state_is_grave_where_the_log_was_cut_off(folder):
    shutil.rmtree(folder / "states")
    (found,) = worst(folder)
    assert (found.level, found.what) == ("wrong", "metric cut")
    assert "no state, and the log begins after judgement 200" in found.text


def test_a_log_older_than_its_state(folder):
    change(folder, "DELETE FROM judgements WHERE metric = 1 AND sequence > 100")
    change(folder, "UPDATE metrics SET sequence = 100 WHERE id = 1")
    (found,) = worst(folder)
    assert "has learned 300 judgements, and the log has 100" in found.text


def test_a_clock_that_was_ahead(folder):
    change(folder, "UPDATE judgements SET time = ? WHERE sequence = 300", time.time() + 7200)
    (found,) = worst(folder)
    assert (found.level, found.what) == ("wrong", "clock")


def test_a_full_disk(folder, monkeypatch):
    usage = shutil.disk_usage(folder)._replace(free=1000)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    (found,) = worst(folder)
    assert (found.level, found.what) == ("watch", "disk")


def test_a_damaged_file(folder):
    data = bytearray((folder / "log.db").read_bytes())
    data[8192:] = np.random.default_rng(0).bytes(len(data) - 8192)
    (folder / "log.db").write_bytes(data)
    assert any(each.what == "log" and each.level == "wrong" for each in examined(folder))


def test_tables_of_other_versions(folder):
    change(folder, "PRAGMA user_version = 99")
    assert any("upgrade metrack" in each.text for each in worst(folder))
    change(folder, "PRAGMA user_version = 1")
    assert [each.level for each in worst(folder)] == ["watch"]


def test_what_is_no_folder_of_a_server(tmp_path):
    done = metrack_command("doctor", tmp_path)
    assert done.returncode == 1
    assert "no log.db" in done.stderr
    assert os.listdir(tmp_path) == []
