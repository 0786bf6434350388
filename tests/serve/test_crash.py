"""Servers that are killed at any moment: nothing acknowledged is lost, nothing is learned twice."""

import json
import os
import random
import signal
import threading
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from metrack import Client
from metrack.client import ServeError
from metrack.serve.learning import Config, Learning
from metrack.storage import read
from tests.serve.servers import judged, keep, sqlite_only, stretch_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KILLS, N_CLIENTS, BATCH = 100, 4, 10


class Sender(threading.Thread):
    """A client that sends batch after batch, each again until it is acknowledged."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.number, self.acknowledged, self.accepted, self.stopping = number, [], 0, False
        self.port, self.failure = None, None

    def run(self):
        try:
            self._send_all()
        except BaseException as error:
            self.failure = error
            raise

    def _send_all(self):
        batch = 0
        while not self.stopping:
            pairs, y = judged(BATCH, seed=1000 * self.number + batch)
            ids = [f"{self.number}-{batch}-{i}" for i in range(BATCH)]
            receipt = self._until_acknowledged(lambda c, p=(pairs, y, ids): c.feedback("m", *p))
            assert receipt.accepted + receipt.duplicates == BATCH
            self.acknowledged += ids
            if batch % 5 == 0 and receipt.accepted == BATCH:  # all were written at once
                self._correct(receipt.sequence, int(-y[-1]))
            batch += 1

    def _correct(self, sequence, y):
        """The last one was wrong."""
        key = f"{self.number}-corrects-{sequence}"
        body = json.dumps({"sequence": sequence, "y": y, "judge": "ann", "id": key}).encode()
        path = "/v1/metrics/m/corrections"
        self._until_acknowledged(lambda client: client.request("POST", path, body))
        self.acknowledged.append(key)

    def _until_acknowledged(self, send):
        while True:
            try:
                with Client(f"http://127.0.0.1:{self.port}", retries=0) as client:
                    return send(client)
            except Exception as error:
                if isinstance(error, ServeError) and error.status != 503:
                    raise
                time.sleep(0.005)


def quiet(log):
    """State of a learner that was given the log at once, in memory."""
    n_features = 3
    points = np.stack(
        [np.stack([log[f"{s}_{i + 1}"] for i in range(n_features)], axis=1) for s in "xz"], axis=1
    )
    learning = Learning.new(Config(n_features, "MetricTracker", {}, None))
    stretch = stretch_of(log["sequence"], points, log["y"].astype(int), log["time"])
    corrects = np.nan_to_num(log["corrects"].astype(float)).astype(int)
    learning.learn(stretch._replace(corrects=corrects))
    return learning


def content_of(path):
    """All that a state says, but for the versions of packages."""
    state = read(path)
    arrays = {name: (a.dtype, a.shape, a.tobytes()) for name, a in state.arrays.items()}
    return {k: v for k, v in state.content.items() if k != "packages"}, arrays


def exported(server, tmp_path, name="m"):
    zipped, log = tmp_path / "state.zip", tmp_path / "log.parquet"
    zipped.write_bytes(server.ask("GET", f"/v1/metrics/{name}/export").body)
    log.write_bytes(server.ask("GET", f"/v1/metrics/{name}/log").body)
    table = pq.read_table(log)
    return zipped, {key: table[key].to_numpy(zero_copy_only=False) for key in table.column_names}


@sqlite_only
def test_killed_at_random_times_under_load(spawner, tmp_path):
    chance, data = random.Random(0), tmp_path / "data"
    server = spawner.start(data, save_work=0.005).wait()
    with Client(server.url) as client:
        client.create("m", n_features=3)
    senders = [Sender(i) for i in range(N_CLIENTS)]
    for sender in senders:
        sender.port = server.port
        sender.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.0, 0.25))
        server.end(signal.SIGKILL)
        server = spawner.start(data, save_work=0.005)
        for sender in senders:
            sender.port = server.port
        if chance.random() < 0.7:  # else it may be killed while it starts
            server.wait()
    server.wait()
    for sender in senders:
        sender.stopping = True
    for sender in senders:
        sender.join(60)
        assert sender.failure is None
    acknowledged = [key for sender in senders for key in sender.acknowledged]
    assert sum("corrects" in key for key in acknowledged) > 10
    check_log_and_state(server, tmp_path, acknowledged)
    server.end()


def check_log_and_state(server, tmp_path, acknowledged):
    with Client(server.url) as client:
        described = client.describe("m", min_sequence=len(acknowledged), timeout=60)
    sequence = described["sequence"]
    assert described["pairs"] == described["version"] == sequence == len(acknowledged)
    zipped, log = exported(server, tmp_path)
    assert sorted(log["id"]) == sorted(acknowledged)
    assert log["sequence"].tolist() == list(range(1, sequence + 1))
    keep(quiet(log), tmp_path / "quiet")
    assert content_of(zipped) == content_of(tmp_path / "quiet")


@sqlite_only
def test_states_are_used_and_do_not_show(spawner, tmp_path):
    """One that ends by a signal has saved; one that goes on from there is like a quiet one."""
    data = tmp_path / "data"
    pairs, y = judged(700)
    for start in range(0, 700, 140):
        server = spawner.start(data).wait()
        with Client(server.url) as client:
            client.create("m", n_features=3)
            client.feedback("m", pairs[start : start + 140], y[start : start + 140])
            client.describe("m", min_sequence=start + 140, timeout=60)  # all is learned
        server.end()
        saved = read(data / "states" / "1").content["serve"]["sequence"]
        assert saved == start + 140
    server = spawner.start(data).wait()
    zipped, log = exported(server, tmp_path)
    keep(quiet(log), tmp_path / "quiet")
    assert content_of(zipped) == content_of(tmp_path / "quiet")
    server.end()


@sqlite_only
def test_damaged_state_is_learned_again_from_the_log(spawner, tmp_path):
    data = tmp_path / "data"
    pairs, y = judged(300)
    server = spawner.start(data).wait()
    with Client(server.url) as client:
        client.create("m", n_features=3)
        client.feedback("m", pairs, y)
    server.end()
    (arrays,) = (data / "states" / "1").glob("*/arrays.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-8])
    server = spawner.start(data).wait()
    zipped, log = exported(server, tmp_path)
    with Client(server.url) as client:
        assert client.describe("m", min_sequence=300, timeout=60)["pairs"] == 300
    zipped, log = exported(server, tmp_path)
    keep(quiet(log), tmp_path / "quiet")
    assert content_of(zipped) == content_of(tmp_path / "quiet")
    server.end()


@sqlite_only
def test_full_disk(spawner, tmp_path):
    """What finds no room is refused, not acknowledged; what was acknowledged is there."""
    data = tmp_path / "data"
    server = spawner.start(data, largest_file=400_000).wait()
    acknowledged = []
    with Client(server.url, retries=0) as client:
        client.create("m", n_features=3)

        def send_on():
            for batch in range(1000):
                ids = [f"{batch}-{i}" for i in range(BATCH)]
                client.feedback("m", *judged(BATCH, seed=batch), ids)
                acknowledged.extend(ids)

        with pytest.raises(ServeError, match="503: the server cannot write to its disk"):
            send_on()
        assert client.describe("m")["sequence"] == len(acknowledged) > BATCH
    server.end()
    server = spawner.start(data).wait()
    check_log_and_state(server, tmp_path, acknowledged)
    server.end()


@sqlite_only
def test_one_server_per_folder(spawner, tmp_path):
    first = spawner.start(tmp_path / "data").wait()
    second = spawner.start(tmp_path / "data")
    while second.is_alive():
        time.sleep(0.01)
    assert "in use by another server" in second.log.read_text()
    assert first.is_alive()
    first.end()
