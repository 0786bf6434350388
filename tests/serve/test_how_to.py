"""docs/how-to/serve.md works as it is written, but for the port."""

import os
import re
import shutil
import subprocess
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import metrack
from metrack import Client
from metrack.serve.doctor import examined
from tests.serve.servers import Server, free_port, sqlite_only

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serve.md"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@sqlite_only
def test_page_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    port = str(free_port())
    started, asked, *_ = (block.replace("8000", port) for block in blocks("console"))
    (command,) = re.findall(r"^\$ (metrack serve .*)$", started, re.MULTILINE)
    process = subprocess.Popen(command.split(), stderr=subprocess.DEVNULL)
    server = Server(process.pid, int(port), tmp_path / "data")
    try:
        server.wait()
        namespace = {}
        for block in blocks("python"):
            exec(textwrap.dedent(block).replace("8000", port), namespace)
        for line in re.findall(r"^\$ (.*)$", asked, re.MULTILINE):
            subprocess.run(f"{line} --fail --silent", shell=True, check=True, capture_output=True)
    finally:
        process.terminate()
        process.wait()
    assert metrack.load("films.zip").n_pairs_seen_ == 2
    assert pq.read_table("films.parquet")["id"].to_pylist() == ["click-17", "click-18"]


@sqlite_only
def test_a_log_that_was_copied_while_it_grew_is_a_back_up(spawner, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(400, 2, 3)), rng.choice([-1, 1], size=400)
    server = spawner.start(tmp_path / "data", save_work=0.0).wait()
    with Client(server.url) as client:
        client.create("m", 3)
        client.feedback("m", pairs[:300], y[:300])
        client.describe("m", min_sequence=300, timeout=60)
        monkeypatch.chdir(tmp_path)
        exec(blocks("python")[-1])
        client.feedback("m", pairs[300:], y[300:])
    server.end()
    (tmp_path / "other").mkdir()
    (tmp_path / "backup.db").rename(tmp_path / "other" / "log.db")
    server = spawner.start(tmp_path / "other").wait()
    with Client(server.url) as client:
        assert client.describe("m", min_sequence=300, timeout=60)["pairs"] == 300
        expected = (
            metrack.MetricTracker(random_state=0).fit(pairs[:300], y[:300]).pair_distance(pairs)
        )
        np.testing.assert_array_equal(client.distance("m", pairs), expected)
    server.end()


@sqlite_only
def test_states_that_were_copied_before_the_log_restore_what_was_cut_off(
    spawner, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(600, 2, 3)), rng.choice([-1, 1], size=600)
    server = spawner.start(tmp_path / "data", save_work=0.0).wait()
    with Client(server.url) as client:
        client.create("m", 3)
        client.feedback("m", pairs[:300], y[:300])
        client.describe("m", min_sequence=300, timeout=60)
        client.request("DELETE", "/v1/metrics/m/log?upto=250")
        (tmp_path / "other").mkdir()
        shutil.copytree(tmp_path / "data" / "states", tmp_path / "other" / "states")
        client.feedback("m", pairs[300:400], y[300:400])  # what comes between is in the log
        monkeypatch.chdir(tmp_path)
        exec(blocks("python")[-1])
        client.feedback("m", pairs[400:500], y[400:500])  # ... and what comes later, lost
    server.end()
    (tmp_path / "backup.db").rename(tmp_path / "other" / "log.db")
    assert {each.level for each in examined(tmp_path / "other")} == {"ok"}
    server = spawner.start(tmp_path / "other").wait()
    with Client(server.url) as client:
        assert client.describe("m", min_sequence=400, timeout=60)["pairs"] == 400
        receipt = client.feedback("m", pairs[500:], y[500:])
        assert receipt.sequence == 500
        client.describe("m", min_sequence=500, timeout=60)
        tracker = metrack.MetricTracker(random_state=0).fit(pairs[:400], y[:400])
        tracker.partial_fit(pairs[500:], y[500:])
        np.testing.assert_array_equal(client.distance("m", pairs), tracker.pair_distance(pairs))
    server.end()
