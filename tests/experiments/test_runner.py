"""The same numbers from any number of workers, on any engine, whatever is killed on the way."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import distributed
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from metrack.experiments import claims, reviews, runner, synthetic
from metrack.experiments.report import check_writable, write_json
from tests.streams.reviews_data import write_folder

METHODS = ("tracker", "online-itml")
N_TRIALS, N_PAIRS = 30, 12


def square(number):
    return {"value": np.array([number**2, -number])}


@pytest.fixture
def cluster(tmp_path_factory):
    """A real scheduler and two worker processes."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    with contextlib.ExitStack() as stack:

        def start(*command):
            command = [sys.executable, "-m", "dask", *command, *common]
            process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start("scheduler", "--port", "0")
        deadline = time.time() + 60
        while not (file.exists() and file.read_text().endswith("}")):  # all of it is written
            assert time.time() < deadline, "the scheduler did not start"
            time.sleep(0.1)
        workers = [start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]
        yield json.loads(file.read_text())["address"], workers


class Synthetic:
    """A small drift study, in a folder and from the command line."""

    def __init__(self, folder):
        self.folder = folder
        self.words = ["synthetic", "--trials", str(N_TRIALS), "--pairs", str(N_PAIRS)]
        self.words += [word for name in METHODS for word in ("--method", name)]

    def reproduce(self, out, **where):
        synthetic.reproduce(out, N_TRIALS, METHODS, n_pairs=N_PAIRS, **where)
        return (out / "results.json").read_bytes()


class Reviews:
    """A small study of reviews, likewise."""

    def __init__(self, folder):
        self.data = write_folder(folder, n_reviews=240)
        self.words = ["reviews", "--runs", "2", "--pairs", "100", "--data", str(self.data)]

    def reproduce(self, out, **where):
        reviews.reproduce(self.data, out, n_runs=2, n_pairs=100, **where)
        return (out / "results.json").read_bytes()


class Claims:
    """A map of one small cell, likewise."""

    def __init__(self, folder):
        self.words = ["claims", "--trials", str(N_TRIALS), "--length", "12", "--speed", "1"]

    def reproduce(self, out, **where):
        claims.reproduce(out, N_TRIALS, lengths=(12,), speeds=(1.0,), **where)
        return (out / "results.json").read_bytes()


@pytest.fixture(scope="module", params=[Synthetic, Reviews, Claims])
def study(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def expected(study, tmp_path_factory):
    return study.reproduce(tmp_path_factory.mktemp("one-job"), n_jobs=1)


def test_two_jobs(study, tmp_path, expected):
    assert study.reproduce(tmp_path, n_jobs=2) == expected


def test_a_cluster_that_loses_a_worker(study, tmp_path, expected, cluster, monkeypatch):
    address, workers = cluster
    with runner.connect(address) as client:
        client.wait_for_workers(2, timeout=30)
    add = runner.TrialStore.add

    def kill_one_and_add(store, trials):
        workers[0].kill()  # some trials are done, others are under way
        workers[0].wait()
        add(store, trials)

    monkeypatch.setattr(runner.TrialStore, "add", kill_one_and_add)
    assert study.reproduce(tmp_path, cluster=address) == expected
    assert workers[0].returncode == -signal.SIGKILL
    assert workers[1].poll() is None


def test_a_killed_run_goes_on_where_it_stopped(study, tmp_path, expected):
    command = [sys.executable, "-m", "metrack.cli", "reproduce", *study.words]
    process = subprocess.Popen(
        [*command, "--jobs", "1", "--out", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    deadline = time.time() + 300  # rates are chosen first
    while not list((tmp_path / "raw").glob("*.parquet")):
        assert process.poll() is None
        assert time.time() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not (tmp_path / "results.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "raw").glob("*.parquet")}
    assert study.reproduce(tmp_path, n_jobs=1) == expected
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def test_more_trials_go_on_from_fewer_and_fewer_use_the_first(tmp_path):
    store = runner.TrialStore(tmp_path, {"seed": 0})
    for n_trials in (3, 45, 10):
        runner.run_trials(runner.Trials(square, n_trials), store, n_jobs=1)
    found = store.load()
    assert found["trial"].tolist() == np.repeat(np.arange(45), 2).tolist()
    assert found["value"][::2].tolist() == [i**2 for i in range(45)]


def test_half_a_file_is_no_file(tmp_path):
    store = runner.TrialStore(tmp_path, {})
    runner.run_trials(runner.Trials(square, 20), store, n_jobs=1)
    whole = next(store.raw.glob("*.parquet"))
    whole.rename(whole.with_suffix(".writing"))  # as a crash during writing leaves it
    assert store.finished() == set()
    runner.run_trials(runner.Trials(square, 20), store, n_jobs=1)
    assert store.finished() == set(range(20))


def test_other_settings_are_refused(tmp_path):
    runner.TrialStore(tmp_path, {"seed": 0, "n_pairs": 60})
    with pytest.raises(ValueError, match=r"another seed \(0, not 1\)"):
        runner.TrialStore(tmp_path, {"seed": 1, "n_pairs": 60})


def test_an_error_in_a_trial_is_the_runs_error(tmp_path):
    with pytest.raises(ZeroDivisionError):
        runner.run_trials(runner.Trials(divmod_zero, 3), runner.TrialStore(tmp_path, {}), n_jobs=1)


def divmod_zero(number):
    return number / 0


@pytest.mark.parametrize("address", ["127.0.0.1:1", "tcp://127.0.0.1:1", "no such address"])
def test_a_cluster_that_does_not_answer_is_refused_soon(address, monkeypatch):
    patience = []

    class Client(distributed.Client):
        def __init__(self, address, timeout):
            patience.append(timeout)
            super().__init__(address, timeout=timeout)

    monkeypatch.setattr(distributed, "Client", Client)
    with pytest.raises(ValueError, match="no Dask scheduler answers"), runner.connect(address):
        pass
    assert patience == [runner.PATIENCE]


def test_threads_of_the_caller_stay(tmp_path):
    """A trial has one BLAS thread; the process that runs it has as many as before."""
    with threadpool_limits(2, "blas"):
        before = blas_threads()  # a library that is loaded later is not among them
        store = runner.TrialStore(tmp_path, {})
        runner.run_trials(runner.Trials(threads_of_a_trial, 3), store, n_jobs=1)
        after = blas_threads()
    assert set(store.load()["threads"]) == {1}
    assert {library: after[library] for library in before} == before
    assert 2 in before.values()


def threads_of_a_trial(number):
    return {"threads": np.array(list(blas_threads().values()))}


def blas_threads():
    """Threads of each BLAS library that is loaded."""
    libraries = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return {each["filepath"]: each["num_threads"] for each in libraries}


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write in .*file.*; choose another folder"):
        check_writable(tmp_path / "file" / "sub")


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())
