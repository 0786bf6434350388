"""metrack serve under load: judgements acknowledged and learned, answers meanwhile, many metrics.

Everything runs on this machine: the server, and the clients as a process of their own each.

    python benchmarks/serve.py [--seconds 20] [--database postgresql://...]
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from metrack import Client

N_FEATURES, BATCH, N_SENDERS = 64, 100, 4
N_METRICS, SMALL_WIDTH, SMALL_PAIRS = 1000, 32, 40
ASKS_A_SECOND = 100
BURST = 4.0  # seconds in which more may be acknowledged than is learned
AT_LEAST = {"acknowledged": 20_000.0, "learned": 6000.0}
AT_MOST = {"p99": 10.0, "memory": 2048.0, "start": 10.0}


class Running:
    """A server process, of a folder or of a database."""

    def __init__(self, source, *options):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.start = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "metrack.cli",
            "serve",
            *(["--database", source] if isinstance(source, str) else [str(source)]),
            "--port",
            str(self.port),
            *options,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.client = Client(f"http://127.0.0.1:{self.port}")
        while True:
            try:
                Client(self.client.url, retries=0).request("GET", "/readyz")
                break
            except OSError:
                time.sleep(0.02)
        self.started = time.perf_counter() - self.start

    def memory(self):
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1024

    def processor_time(self):
        """Seconds so far."""
        used = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait()


def judged(rng, n_pairs, n_features):
    pairs = rng.normal(size=(n_pairs, 2, n_features))
    return pairs, np.where(np.abs(pairs[:, 0, :3] - pairs[:, 1, :3]).sum(axis=1) < 3, 1, -1)


def send(port, number, seconds, counts):
    """Send batches as fast as they are acknowledged; how many, and how many a second at first."""
    client = Client(f"http://127.0.0.1:{port}", retries=1000)
    rng = np.random.default_rng(number)
    batches = [judged(rng, BATCH, N_FEATURES) for _ in range(50)]
    start, sent, burst = time.monotonic(), 0, None
    while (passed := time.monotonic() - start) < seconds:
        if burst is None and passed >= min(BURST, seconds / 2):
            burst = sent * BATCH / passed
        client.feedback("m", *batches[sent % len(batches)])
        sent += 1
    counts.put((sent * BATCH, burst))


def ask(port, seconds, times):
    """Distances of one pair, some times a second."""
    client = Client(f"http://127.0.0.1:{port}")
    pair, found = np.random.default_rng(9).normal(size=(1, 2, N_FEATURES)), []
    end = time.monotonic() + seconds
    time.sleep(min(2.0, seconds / 4))  # the senders make their batches first
    while time.monotonic() < end:
        start = time.perf_counter()
        client.distance("m", pair)
        found.append(time.perf_counter() - start)
        time.sleep(max(0.0, 1.0 / ASKS_A_SECOND - found[-1]))
    times.put(found)


def load(seconds, database=None):
    """Judgements a second, acknowledged at first and learned; times of answers; processor time."""
    with tempfile.TemporaryDirectory() as folder:
        server = Running(database or Path(folder) / "data")
        server.client.create("m", N_FEATURES)
        # What is compiled at the first pairs is no part of the load.
        receipt = server.client.feedback("m", *judged(np.random.default_rng(0), 600, N_FEATURES))
        server.client.describe("m", min_sequence=receipt.sequence, timeout=60)
        counts, times = multiprocessing.Queue(), multiprocessing.Queue()
        start, used = time.perf_counter(), server.processor_time()
        workers = [
            multiprocessing.Process(target=send, args=(server.port, i, seconds, counts))
            for i in range(N_SENDERS)
        ]
        workers.append(multiprocessing.Process(target=ask, args=(server.port, seconds, times)))
        for worker in workers:
            worker.start()
        sent, bursts = zip(*(counts.get() for _ in range(N_SENDERS)), strict=True)
        total, acknowledged = sum(sent), sum(bursts)
        latencies = 1e3 * np.array(times.get())
        for worker in workers:
            worker.join()
        sequence = server.client.describe("m")["sequence"]
        while server.client.describe("m")["version"] < sequence:
            time.sleep(0.01)
        learned = total / (time.perf_counter() - start)
        each = 1e6 * (server.processor_time() - used) / total
        server.end()
    return acknowledged, learned, latencies, each


def many():
    """Megabytes with many metrics that are all at work; seconds of a start with them."""
    with tempfile.TemporaryDirectory() as folder:
        server = Running(Path(folder) / "data")
        rng = np.random.default_rng(0)
        names = [f"m{i}" for i in range(N_METRICS)]
        for name in names:
            server.client.create(name, SMALL_WIDTH)
            server.client.feedback(name, *judged(rng, SMALL_PAIRS, SMALL_WIDTH))
        for name in names:
            described = server.client.describe(name, min_sequence=SMALL_PAIRS, timeout=60)
            assert described["pairs"] == SMALL_PAIRS, described
        memory = server.memory()
        server.end()
        server = Running(Path(folder) / "data")
        listed = server.client.request("GET", "/v1/metrics")
        assert listed.count(b'"version": 40') == N_METRICS
        started, first = server.started, time.perf_counter()
        for name in names:
            server.client.distance(name, np.zeros((1, 2, SMALL_WIDTH)))
        loaded = time.perf_counter() - first
        again = server.memory()
        server.end()
    return max(memory, again), started, loaded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--database", help="measured beside SQLite, in schemas of their own")
    given = parser.parse_args()
    seconds = given.seconds
    acknowledged, learned, latencies, each = load(seconds)
    p50, p99 = np.percentile(latencies, [50, 99])
    memory, started, loaded = many()
    found = {"acknowledged": acknowledged, "learned": learned}
    found |= {"p99": p99, "memory": memory, "start": started}
    missed = [name for name, least in AT_LEAST.items() if found[name] < least]
    missed += [name for name, most in AT_MOST.items() if found[name] > most]
    print(
        f"{N_FEATURES} features, batches of {BATCH} as Arrow, {N_SENDERS} clients, {seconds:g} s:"
    )
    least = AT_LEAST
    print(
        f"  acknowledged      {acknowledged:9,.0f} a second   at least {least['acknowledged']:,.0f}"
    )
    print(f"  and learned       {learned:9,.0f} a second   at least {least['learned']:,.0f}")
    print(f"  distance p50      {p50:9.1f} ms of {len(latencies):,}")
    print(f"  distance p99      {p99:9.1f} ms   at most {AT_MOST['p99']:g}")
    print(f"  processor time    {each:9,.0f} us a judgement, of the server")
    print(f"{N_METRICS:,} metrics of {SMALL_WIDTH} features:")
    print(f"  memory            {memory:9,.0f} MB   at most {AT_MOST['memory']:,.0f}")
    print(f"  start             {started:9.1f} s    at most {AT_MOST['start']:g}")
    print(f"  all read once in  {loaded:9.1f} s")
    if given.database is not None:
        import serve_shared  # which takes its servers and clients from here

        missed += serve_shared.measured(given.database, seconds, learned)
    print("all bars are met" if not missed else f"missed: {', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
