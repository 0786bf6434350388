import subprocess
import sys

import numpy as np
import pytest

from metrack import plots
from metrack.experiments.demo import run

PNG = b"\x89PNG\r\n\x1a\n"


def demo(*args):
    command = [sys.executable, "-m", "metrack.cli", "demo", *args]
    return subprocess.run(command, capture_output=True, text=True)


def test_prints_the_table_and_saves_the_figure(tmp_path, capsys):
    run(out=tmp_path / "new" / "folder", seed=0, n_pairs=300)
    printed = capsys.readouterr().out
    for name in ["A static", "B fast", "A slow", "true metric"]:
        assert name in printed
    figure = tmp_path / "new" / "folder" / "figure.png"
    assert printed.splitlines()[-1] == f"Figure: {figure}"
    assert figure.read_bytes().startswith(PNG)
    assert "Tracking" not in printed  # no progress bar in a file


def test_same_seed_same_table(tmp_path, capsys):
    tables = []
    for seed in (1, 1, 2):
        run(out=tmp_path, seed=seed, n_pairs=120)
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1] != tables[2]


def test_the_shortest_stream(tmp_path, capsys):
    run(out=tmp_path, seed=0, n_pairs=5)
    assert "A slow" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "code"),
    [(["--out", "file/sub"], 1), (["--out", "file"], 2), (["--pairs", "3"], 2)],
)
def test_what_cannot_be_done_ends_without_traceback(args, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    done = demo(*args)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if args[-1] != "file":  # typer's own message, in a box
        assert len(done.stderr.splitlines()) == 1


def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'metrack\[plots\]'"):
        run(out=tmp_path / "demo", seed=0, n_pairs=100)
    assert not (tmp_path / "demo").exists()


def test_a_figure_of_a_stream_without_drift(tmp_path):
    steps, errors = np.array([5, 10]), {"a": np.array([0.2, 0.1])}
    plots.tracking(tmp_path / "f.png", np.zeros(10), steps, errors, {}, [(0, "only")])
    assert (tmp_path / "f.png").read_bytes().startswith(PNG)
