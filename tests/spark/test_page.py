"""The page on Spark runs as it stands; in a process of its own, since Java keeps its folder."""

import subprocess
import sys
from pathlib import Path

from tests.test_examples import BLOCK, SPARK

SRC = Path(__file__).parents[2] / "src"


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    blocks = [
        each for each in BLOCK.finditer(SPARK.read_text(encoding="utf-8")) if not each["skip"]
    ]
    code = "\n".join(each["code"] for each in blocks if each["kind"] == "python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (printed,) = (each["code"] for each in blocks if each["kind"] == "text")
    assert printed in done.stdout
