"""Pairs per second of `metrack.spark` on a stream, against bare trackers in one process.

Feedback of many keys lies in files, one for each micro-batch. A driver in local mode on two cores
streams them; killed on the way as often as asked (SIGKILL, with its Java), it is started again with
its checkpoint. Then the same pairs are learned by one tracker after another in this process, in
calls of as many pairs as in a micro-batch, and every state is compared, bit for bit. The first
micro-batch, in which workers start and load compiled code, is not timed. Run it on a quiet machine
with two free cores.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from metrack.estimators.states.persistence import dump
from metrack.registry import estimator

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "metric string, sequence bigint, x array<double>, z array<double>, y int"


def pairs_of(key, asked):
    """All pairs of a key, and their labels; alike are points close in three features."""
    rng = np.random.default_rng(key)
    pairs = rng.normal(size=(asked.pairs, 2, asked.features))
    apart = np.linalg.norm((pairs[:, 0] - pairs[:, 1])[:, :3], axis=1)
    return pairs, np.where(apart < 2.4, 1, -1)


def write_feedback(folder, asked):
    """A Parquet file for each micro-batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    n_batches = asked.pairs // asked.per_batch
    points = pa.list_(pa.float64(), asked.features)
    columns = [("metric", pa.string()), ("sequence", pa.int64())]
    columns += [("x", points), ("z", points), ("y", pa.int32())]
    writers = [
        pq.ParquetWriter(folder / f"{i:06d}.parquet", pa.schema(columns)) for i in range(n_batches)
    ]
    for key in range(asked.keys):
        pairs, y = pairs_of(key, asked)
        for i, writer in enumerate(writers):
            rows = slice(i * asked.per_batch, (i + 1) * asked.per_batch)
            x, z = (
                pa.FixedSizeListArray.from_arrays(pairs[rows, side].ravel(), asked.features)
                for side in (0, 1)
            )
            sequence = np.arange(rows.start, rows.stop)
            found = [[f"key-{key}"] * len(sequence), sequence, x, z, y[rows].astype(np.int32)]
            names = [name for name, _ in columns]
            writer.write_table(pa.table(dict(zip(names, found, strict=True)), pa.schema(columns)))
    for i, writer in enumerate(writers):
        writer.close()
        os.utime(folder / f"{i:06d}.parquet", (i, i))  # the order in which Spark takes them
    return n_batches


def session(partitions):
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", partitions)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", True)
        .config("spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows", False)
        .config("spark.sql.streaming.minBatchesToRetain", 2)
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 2_000)
        .config("spark.python.unix.domain.socket.enabled", True)
        .config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", False)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def drive(asked):
    """The driver: stream all files that are there, and say how long it took."""
    from metrack.spark import track

    folder = Path(asked.drive)
    spark = session(asked.partitions)
    feedback = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "feedback"))
    )
    events = track(
        feedback, settings=asked.settings, estimator=asked.estimator, states_every=asked.pairs
    )
    query = (
        events.writeStream.option("path", str(folder / "events"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = [each.batchDuration / 1000 for each in query.recentProgress]
    (folder / "seconds.json").write_text(json.dumps(seconds))


def stream(folder, asked, n_batches):
    """Seconds of each micro-batch of the last driver, after some were killed."""
    command = [sys.executable, __file__, "--drive", str(folder), *sys.argv[1:]]
    env = os.environ | {"PYSPARK_PYTHON": sys.executable}
    commits = folder / "checkpoint" / "commits"
    # In the middle of a micro-batch: half a second after some other one was finished.
    for done in np.linspace(1, n_batches - 1, asked.kills, dtype=int):
        process = subprocess.Popen(
            command, env=env, start_new_session=True, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and finished(commits) < done:
            time.sleep(0.05)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"killed after {finished(commits)} of {n_batches} micro-batches", flush=True)
    subprocess.run(command, env=env, check=True, stderr=subprocess.DEVNULL)
    return json.loads((folder / "seconds.json").read_text())


def finished(commits):
    """Micro-batches; Spark removes the oldest commits."""
    names = [each.name for each in commits.iterdir()] if commits.exists() else []
    return max((int(name) + 1 for name in names if name.isdigit()), default=0)


def read_states(folder, asked):
    """By key, its newest state; and the bytes that are kept of each."""
    from metrack.spark import latest

    spark = session(asked.partitions)
    events = spark.read.parquet(str(folder / "events"))
    kept = events.agg({"state_bytes": "max", "pairs": "sum"}).first()
    states = {row.metric: bytes(row.state) for row in latest(events).toLocalIterator()}
    found = kept["max(state_bytes)"], kept["sum(pairs)"]
    spark.stop()
    return states, *found


def bare(asked, states):
    """Seconds of trackers one after another; every state is compared."""
    make = estimator(asked.estimator)
    warm, y = pairs_of(0, asked)
    make(**asked.settings).observe(warm[:64], y[:64])  # compiles
    seconds, differing = 0.0, 0
    for key in range(asked.keys):
        pairs, y = pairs_of(key, asked)
        tracker = make(**asked.settings)
        start = time.perf_counter()
        for at in range(0, asked.pairs, asked.per_batch):
            tracker.observe(pairs[at : at + asked.per_batch], y[at : at + asked.per_batch])
        seconds += time.perf_counter() - start
        differing += states is not None and dump(tracker) != states.get(f"key-{key}")
    return seconds, differing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=1000, help="of each key")
    parser.add_argument("--per-batch", type=int, default=100, help="of each key in a micro-batch")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--estimator", default="MetricTracker")
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        drive(asked)
        return
    folder = Path(tempfile.mkdtemp(prefix="metrack-spark-"))
    try:
        n_batches = write_feedback(folder / "feedback", asked)
        print(
            f"{asked.estimator}({asked.settings}), n = {asked.features}: {asked.keys:,} keys x "
            f"{asked.pairs:,} pairs in {n_batches} micro-batches, {asked.partitions} partitions",
            flush=True,
        )
        seconds = stream(folder, asked, n_batches)
        states, kept, learned = read_states(folder, asked)
        alone, differing = bare(asked, states)
        n_pairs = asked.keys * asked.pairs
        print(f"{learned:,} of {n_pairs:,} pairs learned; {differing} of {asked.keys:,} differ")
        print(f"{kept:,} bytes a key are kept; a state is up to {max(map(len, states.values())):,}")
        print(f"bare {n_pairs / alone:,.0f} pairs/s", end="")
        if len(timed := seconds[1:]):
            speed = asked.keys * asked.per_batch * len(timed) / sum(timed)
            print(f"; Spark {speed:,.0f}; ratio {speed * alone / n_pairs:.2f}", end="")
        print(f"; seconds of micro-batches: {', '.join(f'{each:.1f}' for each in seconds)}")
        sys.exit(differing or learned != n_pairs)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
