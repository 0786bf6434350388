"""A driver that is killed and started again learns what one that was left alone does."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_killed_drivers_leave_no_trace():
    """The benchmark, small: it compares every state with that of a tracker of its own."""
    small = {"keys": 12, "pairs": 60, "per-batch": 10, "features": 4, "partitions": 3, "kills": 2}
    options = [f"--{name}={value}" for name, value in small.items()]
    command = [sys.executable, str(ROOT / "benchmarks" / "spark.py"), *options]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed after") == 2
    assert "720 of 720 pairs learned; 0 of 12 differ" in done.stdout
