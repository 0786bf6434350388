"""Pairs per second through a pipe, against a bare `observe` on arrays; and memory on the way.

A process writes N pairs (n = 25) to the pipe of ``metrack track``, as CSV or as an Arrow stream.
`observe` learns the same pairs, in batches that are there already. Run it on a quiet machine with
two free cores or more: one writes, one reads and learns.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import io
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from metrack import MetricTracker

N_FEATURES = 25
BLOCK = 20_000  # different pairs; they come again and again
HEADER = [f"{side}_{i}" for side in "xz" for i in range(N_FEATURES)] + ["y"]


def make_pairs():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(BLOCK, 2, N_FEATURES))
    apart = np.linalg.norm((pairs[:, 0] - pairs[:, 1])[:, :3], axis=1)
    return pairs, np.where(apart < 2.4, 1, -1)


def bare(pairs, y, n_pairs):
    """Pairs per second of `observe`."""
    tracker = MetricTracker(random_state=0)
    tracker.observe(pairs[:64], y[:64])  # compiles
    tracker = MetricTracker(random_state=0)
    start = time.perf_counter()
    for _ in range(n_pairs // BLOCK):
        tracker.observe(pairs, y)
    return n_pairs / (time.perf_counter() - start)


def pieces(pairs, y, kind, n_pairs):
    """Bytes to write."""
    if kind == "csv":
        yield (",".join(HEADER) + "\n").encode()
        rows = zip(pairs.reshape(BLOCK, -1).tolist(), y, strict=True)
        block = "".join(",".join(map(repr, row)) + f",{label}\n" for row, label in rows).encode()
        for _ in range(n_pairs // BLOCK):
            yield block
        return
    import pyarrow as pa

    sink = io.BytesIO()
    columns = dict(zip(HEADER, [*pairs.reshape(BLOCK, -1).T, y], strict=True))
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        yield sink.getvalue()
        for _ in range(n_pairs // BLOCK):
            sink.seek(0)
            sink.truncate()
            stream.write_table(table, max_chunksize=4096)
            yield sink.getvalue()
        sink.seek(0)
        sink.truncate()
    yield sink.getvalue()


def piped(pairs, y, kind, n_pairs):
    """Pairs per second from the first byte to the saved state, and memory (MB) on the way."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "metrack.cli", "track", "-", "--out", folder + "/state"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        memory = []
        watch = threading.Thread(target=watch_memory, args=(process, memory), daemon=True)
        watch.start()
        start = time.perf_counter()
        for piece in pieces(pairs, y, kind, n_pairs):
            process.stdin.write(piece)
        process.stdin.close()
        said = process.stdout.read().decode().strip()
        assert process.wait() == 0, said
        return n_pairs / (time.perf_counter() - start), memory, said


def watch_memory(process, memory):
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None and status.exists():
        found = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
        if found:
            memory.append(int(found[0].split()[1]) / 1024)
        time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--kinds", default="csv,arrow")
    asked = parser.parse_args()
    pairs, y = make_pairs()
    print(f"{asked.pairs:,} pairs, n = {N_FEATURES}, MetricTracker with default settings")
    for kind in asked.kinds.split(","):
        before = bare(pairs, y, asked.pairs // 10)
        speed, memory, said = piped(pairs, y, kind, asked.pairs)
        after = bare(pairs, y, asked.pairs // 10)
        floor = 0.5 * (before + after)  # what else the machine does may change meanwhile
        tenth = max(1, len(memory) // 10)
        early = max(memory[: 2 * tenth])
        print(
            f"{kind:6} {speed:9,.0f} pairs/s; bare observe {floor:9,.0f}; "
            f"ratio {speed / floor:.2f}; memory {early:.0f} MB early, {max(memory):.0f} MB at most"
        )
        print(f"       {said}")


if __name__ == "__main__":
    main()
