"""A folder's metrics in a database: the same to the last bit, once, and whole or not at all."""

import subprocess
import sysconfig
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest

import metrack
from metrack import Client
from metrack.serve.databases.sqlite import SQLite
from metrack.serve.items import NewItems
from metrack.serve.limits import Limits
from metrack.serve.registry import Registry
from metrack.serve.server import copy
from tests.serve.servers import judged, url_of
from tests.serve.test_registry import CONFIG, batch_of, wait_until

METRACK = Path(sysconfig.get_path("scripts")) / "metrack"


@pytest.fixture
def folder(tmp_path):
    """Two metrics, one with items and with a log that was cut."""
    registry = Registry(SQLite(made(tmp_path / "data")), Limits(), n_threads=1)
    for name in ("shop", "films"):
        metric, _ = registry.make(name, CONFIG)
        pairs, y = judged(200)
        batch = batch_of(pairs, y)._replace(ids=[f"{name}-{i}" for i in range(200)])
        registry.append(metric, batch).result()
        wait_until(lambda metric=metric: metric.version == 200)
    items = NewItems(
        [f"i{i}" for i in range(30, 0, -1)], pairs[:30, 0], ["text"] * 30, *[[None] * 30] * 2
    )
    registry.put_items(metric, items)
    registry.cut(metric, 150)
    registry.close()
    return tmp_path / "data"


def made(path):
    path.mkdir()
    return path


def test_command_copies_what_learns_on(folder, spawner, tmp_path):
    url = url_of(tmp_path)
    command = [METRACK, "serve", folder, "--copy-to", url]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "copied: shop, films\n"
    server = spawner.start(tmp_path / "server", database=url).wait()
    pairs, y = judged(200)
    more, labels = judged(100, seed=1)
    expected = metrack.COMID(random_state=0).fit(pairs, y).partial_fit(more, labels)
    with Client(server.url) as client:
        assert client.describe("films")["log_starts"] == 151
        for name in ("shop", "films"):
            assert client.feedback(name, pairs[:9], y[:9], [f"{name}-{i}" for i in range(9)]) == (
                *(0, 9),
                200,
            )
            client.feedback(name, more, labels)
            assert client.describe(name, min_sequence=300, timeout=60)["pairs"] == 300
            np.testing.assert_array_equal(client.distance(name, more), expected.pair_distance(more))
        np.testing.assert_array_equal(
            client.transform("films", ["i30", "i1"]), expected.transform(pairs[[0, 29], 0])
        )
    server.end()
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2
    assert "another metric 'shop', with 300 judgements and not 200" in again.stderr


def test_copying_twice_changes_nothing(folder, tmp_path):
    assert copy(folder, url_of(tmp_path)) == ["shop", "films"]
    assert copy(folder, url_of(tmp_path)) == []


def test_a_metric_is_copied_whole_or_not_at_all(folder, tmp_path):
    with closing(SQLite(folder)) as source:
        spoil = "UPDATE items SET text = ? WHERE id = 'i1'"
        source.submit(lambda c: c.execute(spoil, ("\x00",)).rowcount).result()
    url = url_of(tmp_path)
    with pytest.raises(ValueError, match=r"'films' was not copied: .*0x00"):
        copy(folder, url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT name FROM metrics").fetchall() == [("shop",)]
        assert connection.execute("SELECT DISTINCT metric FROM judgements").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either a folder or --database"),
        (["data", "--database", "postgresql://x"], "give either a folder or --database"),
        (["--database", "nonsense"], "give an address such as"),
        (["nowhere", "--copy-to", "postgresql://x"], "no such folder"),
        (["--database", "postgresql://x", "--copy-to", "postgresql://y"], "of a folder"),
    ],
)
def test_wrong_use_is_told(arguments, words, tmp_path):
    run = subprocess.run(
        [METRACK, "serve", *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode in (1, 2)
    assert words in run.stderr
    assert not list(tmp_path.iterdir())
