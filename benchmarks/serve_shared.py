"""metrack serve on PostgreSQL: beside SQLite, with readers of their own, and with many metrics.

Part of ``benchmarks/serve.py --database``; it takes schemas of its own, and removes them.
"""

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import psycopg
from serve import (
    BATCH,
    N_FEATURES,
    N_METRICS,
    SMALL_PAIRS,
    SMALL_WIDTH,
    Running,
    ask,
    judged,
    load,
)

from metrack import Client

RATIO, P99 = 0.5, 10.0  # at least, of SQLite's judgements a second; milliseconds, at most
FED = 10  # batches a second, while readers are asked
N_PROCESSES = 3
FENCES = "SELECT sum(fence) FROM slots"  # grows by one with every slot that changes hands


@contextlib.contextmanager
def schema(url, name):
    """The address of an empty schema, which is gone after."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}".encode())
        try:
            yield f"{url}?options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def one(url, query):
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchone()[0]


def feed(port, seconds):
    """Judgements at a steady pace, for the learner to be at work."""
    client, rng = Client(f"http://127.0.0.1:{port}"), np.random.default_rng(1)
    batches = [judged(rng, BATCH, N_FEATURES) for _ in range(20)]
    end, i = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        start = time.monotonic()
        client.feedback("m", *batches[i % 20])
        i += 1
        time.sleep(max(0.0, 1.0 / FED - (time.monotonic() - start)))


def with_readers(url, n_readers, seconds):
    """Times of answers by readers, while another process learns; and how far they lag behind."""
    with schema(url, "metrack_bench") as own:
        learner = Running(own)
        learner.client.create("m", N_FEATURES)
        receipt = learner.client.feedback("m", *judged(np.random.default_rng(0), 600, N_FEATURES))
        learner.client.describe("m", min_sequence=receipt.sequence, timeout=60)
        readers = [Running(own, "--reader") for _ in range(n_readers)]
        for reader in readers:
            reader.client.describe("m", min_sequence=receipt.sequence, timeout=60)
        times = multiprocessing.Queue()
        workers = [
            multiprocessing.Process(target=ask, args=(reader.port, seconds, times))
            for reader in readers
        ]
        workers.append(multiprocessing.Process(target=feed, args=(learner.port, seconds)))
        for worker in workers:
            worker.start()
        found = np.concatenate([times.get() for _ in readers])
        for worker in workers:
            worker.join()
        for server in [learner, *readers]:
            server.end()
    return 1e3 * found


def processor_time(url):
    """Seconds that the database's processes on this machine have taken so far."""
    with psycopg.connect(url) as connection:
        pids = [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity").fetchall()]
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            total += sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return total


def spent(url, servers):
    return np.array([sum(s.processor_time() for s in servers), processor_time(url)])


def many(url):
    """What many metrics cost, shared by some processes."""
    found = {}
    with schema(url, "metrack_bench") as own:
        servers = [Running(own) for _ in range(N_PROCESSES)]
        empty, rng, names = servers[0].memory(), np.random.default_rng(0), range(N_METRICS)
        for i in names:
            servers[i % N_PROCESSES].client.create(f"m{i}", SMALL_WIDTH)
        time.sleep(3.0)  # shares are taken
        found["megabytes of a process that knows them all, each"] = (
            max(s.memory() for s in servers) - empty
        ) / N_METRICS
        before, start = spent(url, servers), time.perf_counter()
        for i in names:
            pairs, y = judged(rng, SMALL_PAIRS, SMALL_WIDTH)
            servers[i % N_PROCESSES].client.feedback(f"m{i}", pairs, y)
        wait_for_all(servers[0], SMALL_PAIRS)
        found["seconds until all of a first batch were learned"] = time.perf_counter() - start
        each = 1e3 * (spent(url, servers) - before) / N_METRICS
        found["milliseconds of servers, a metric's first batch of 40"] = each[0]
        found["milliseconds of the database, the same batch"] = each[1]
        before, start = spent(url, servers), time.perf_counter()
        for i in names:
            pairs, y = judged(rng, 1, SMALL_WIDTH)
            servers[i % N_PROCESSES].client.feedback(f"m{i}", pairs, y)
        wait_for_all(servers[0], SMALL_PAIRS + 1)
        each = 1e3 * (spent(url, servers) - before) / N_METRICS
        found["milliseconds of servers, a request of one judgement"] = each[0]
        found["milliseconds of the database, the same request"] = each[1]
        found["megabytes of a process that learns a third, each of these"] = (
            3 * (max(s.memory() for s in servers) - empty) / N_METRICS
        )
        before = spent(url, servers)
        time.sleep(21.0)  # two looks at everything
        each = (spent(url, servers) - before) / 21.0
        found["processors taken by a server at rest"] = each[0] / N_PROCESSES
        found["processors taken by the database at rest"] = each[1]
        fourth = Running(own)
        found["seconds of a start"] = fourth.started
        fourth.end()
        time.sleep(3.0)  # the others take its share back
        fences, start = one(own, FENCES), time.perf_counter()
        servers[2].process.send_signal(signal.SIGKILL)
        while one(own, FENCES) < fences + N_METRICS // N_PROCESSES:
            time.sleep(0.02)
        found["seconds until a dead process's share was taken over"] = time.perf_counter() - start
        for server in servers[:2]:
            server.end()  # which saves all that it has learned
        for table in ("states", "snapshots", "judgements"):
            size = f"SELECT pg_total_relation_size('{table}')"
            found[f"kilobytes of {table}, a metric"] = one(own, size) / N_METRICS / 1024
    return found


def wait_for_all(server, version):
    wanted = b'"version": %d' % version
    while server.client.request("GET", "/v1/metrics").count(wanted) < N_METRICS:
        time.sleep(0.1)


def measured(url, seconds, sqlite):
    """Prints all of it; returns what missed its bar."""
    with schema(url, "metrack_bench") as own:
        acknowledged, learned, latencies, each = load(seconds, own)
    missed = [] if learned >= RATIO * sqlite else ["ratio"]
    print("the same on PostgreSQL, with one process:")
    print(f"  acknowledged      {acknowledged:9,.0f} a second")
    print(f"  and learned       {learned:9,.0f} a second")
    print(f"  against SQLite    {learned / sqlite:9.2f}      at least {RATIO:g}")
    print(f"  distance p50, p99 {np.median(latencies):9.1f}, {np.percentile(latencies, 99):.1f} ms")
    print(f"  processor time    {each:9,.0f} us a judgement, of the server")
    print(
        f"distance by readers, asked 100 times a second each, {FED * BATCH:,} judgements a second:"
    )
    for n_readers in (1, 2, 3):
        found = with_readers(url, n_readers, seconds)
        p50, p99 = np.percentile(found, [50, 99])
        print(f"  {n_readers} readers: p50 {p50:.1f}, p99 {p99:.1f} ms, at most {P99:g}")
        missed += [] if p99 <= P99 else [f"p99 of {n_readers} readers"]
    print(f"{N_METRICS:,} metrics of {SMALL_WIDTH} features, {N_PROCESSES} processes:")
    for name, value in many(url).items():
        print(f"  {name:60} {value:10.3g}")
    return missed
