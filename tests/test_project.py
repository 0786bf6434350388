import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("metrack", {"numba", "matplotlib", "plotly", "river", "dask"}),
        ("metrack.cli", {"numba", "matplotlib", "plotly", "river", "dask", "sklearn"}),
    ],
)
def test_import_leaves_slow_packages_for_later(module, slow):
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert not slow & set(run.stdout.split())


def test_without_spark_the_remedy_is_named():
    code = "import sys; sys.modules['pyspark'] = None; import metrack.spark"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert 'pip install "metrack[spark]"' in run.stderr


def test_installed_version_is_that_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert importlib.metadata.version("metrack") == project["version"]


def test_no_tracked_file_names_a_path_of_this_machine():
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    private = {str(path) for path in (ROOT.parent, Path.home())} - {"/"}
    # Only where a path begins: "x/home/" is not one.
    path = re.compile(rf"(?<![\w./~-])(?:{'|'.join(map(re.escape, private))})[/\\]".encode())
    files = (ROOT / name for name in listing.split("\0") if name)
    found = [
        f"{file.relative_to(ROOT)}: {match[0].decode()}"
        for file in files
        if file.is_file() and (match := path.search(file.read_bytes()))
    ]
    assert not found
