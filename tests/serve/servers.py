"""Servers to test against, as processes of their own."""

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from metrack.serve.databases.sqlite import SQLite
from metrack.serve.log import Stretch
from metrack.storage import StateFolder

ROOT = Path(__file__).parents[2]
DATABASE = os.environ.get("METRACK_TEST_DATABASE")  # where the same tests run on PostgreSQL
sqlite_only = pytest.mark.skipif(
    DATABASE is not None, reason="of SQLite's files; tests/postgres has its like"
)


class Spawner:
    """A process that forks servers."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.serve.spawner"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"

    def start(self, path, **options):
        port = free_port()
        arguments = {"path": str(path), "port": port, **options}
        if DATABASE is not None:
            arguments.setdefault("database", url_of(path))
        self.process.stdin.write(json.dumps(arguments, default=str) + "\n")
        self.process.stdin.flush()
        return Server(int(self.process.stdout.readline()), port, Path(path))

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


class Server:
    """A running server."""

    def __init__(self, pid, port, path):
        self.pid, self.port, self.path = pid, port, path
        self.url = f"http://127.0.0.1:{port}"
        self.log = path.with_suffix(".log")

    def wait(self):
        """Until it answers."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/healthz").status == 200:
                    return self
            assert self.is_alive(), self.log.read_text()
            time.sleep(0.01)
        raise AssertionError(self.log.read_text())

    def is_alive(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self, how=signal.SIGTERM):
        """Send a signal, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
        end = time.monotonic() + 30
        while self.is_alive():
            assert time.monotonic() < end, "it does not end"
            time.sleep(0.002)

    def ask(self, method, path, body=None, headers=None):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"content-type": "application/json"} if body is not None else {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            connection.request(method, path, body, given | (headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def keep(learning, path):
    """All of it, in a folder."""
    with StateFolder(path) as folder:
        folder.write(learning.pack())


def open_database(path):
    """The database of a folder, of the kind that is tested."""
    if DATABASE is None:
        path.mkdir(parents=True, exist_ok=True)
        return SQLite(path)
    from metrack.serve.databases.postgres import Postgres

    return Postgres(url_of(path))


def url_of(path, url=DATABASE):
    """Address of a schema that stands for a folder; made if missing."""
    import psycopg

    schema = f"t{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    return f"{url}?options=-csearch_path%3D{schema}"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def stretch_of(sequences, points, y, times=None):
    """A stretch of the log, of pairs."""
    nothing = [None] * len(y)
    times = np.zeros(len(y)) if times is None else times
    return Stretch(sequences, points, y, times, nothing, np.zeros(len(y), int))


def judged(n_pairs, n_features=3, seed=0):
    """Pairs and labels; halfway, another feature begins to count."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n_pairs, 2, n_features))
    apart = np.abs(pairs[:, 0] - pairs[:, 1])
    half = n_pairs // 2
    return pairs, np.where(np.append(apart[:half, 0], apart[half:, 1]) < 1, 1, -1)
