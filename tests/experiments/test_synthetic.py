import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from metrack import cli
from metrack.experiments import runner
from metrack.experiments.drift import REFERENCES
from metrack.experiments.synthetic import reproduce
from tests.figures import figures

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "new" / "folder"
    return out, reproduce(out, 2, n_pairs=60, n_jobs=1)


def test_everything_is_there(study):
    out, results = study
    assert (out / "figure.png").read_bytes().startswith(PNG)
    assert (out / "figure.pdf").read_bytes().startswith(PDF)
    assert json.loads((out / "results.json").read_text()) == results
    run = json.loads((out / "run.json").read_text())
    assert run["versions"]["numpy"]
    raw = pq.read_table(out / "raw").to_pydict()
    assert set(raw) == {"trial", "method", "step", "knn_error", "nmi"}
    assert set(raw["method"]) == {*REFERENCES, *results["settings"]}
    assert set(raw["trial"]) == {0, 1}


def test_results_are_means_of_the_raw_numbers(study):
    out, results = study
    raw = pq.read_table(out / "raw").to_pylist()
    for name, method in results["methods"].items():
        for i, step in enumerate(results["steps"]):
            here = [row for row in raw if (row["method"], row["step"]) == (name, step)]
            error = sum(row["knn_error"] for row in here) / 2
            share = sum(row["nmi"] > 0.8 for row in here) / 2
            assert method["knn_error"]["mean"][i] == pytest.approx(error, abs=1e-6)
            assert method["p_nmi"]["mean"][i] == pytest.approx(share, abs=1e-6)


def test_the_report_stands_alone(study):
    page = (study[0] / "report.html").read_text(encoding="utf-8")
    assert page.count("plotly.js v") >= 1
    assert 'src="http' not in page
    for claim in study[1]["claims"]:
        assert claim["evidence"].split(",")[0].replace(">", "&gt;") in page
    assert "±" in page


def test_names_of_segments_stand_below_the_title(study):
    [(_, layout)] = figures((study[0] / "report.html").read_text(encoding="utf-8"))
    title, *others = layout["annotations"]
    names = [each for each in others if each.get("yref") == "y domain"]
    assert [each["text"] for each in names] == [part["name"] for part in study[1]["segments"]]
    for name in names:  # both stand on the panel's upper edge
        assert (title["y"], title["yanchor"]) == (name["y"], name["yanchor"]) == (1.0, "bottom")
        assert title["yshift"] > 1.3 * name["font"]["size"]
    assert layout["margin"]["t"] > title["yshift"] + 1.3 * title["font"]["size"]


def test_a_users_method_from_the_working_directory(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Raw:\n"
        "    def partial_fit(self, pairs, y): return self\n"
        "    def transform(self, X): return X\n"
    )
    args = ["--method", "mine:Raw", "--trials", "2", "--pairs", "30", "--jobs", "2"]
    command = [sys.executable, "-m", "metrack.cli", "reproduce", "synthetic", "--out", "out"]
    done = subprocess.run([*command, *args], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "results.json").read_text())["methods"]
    assert found["mine:Raw"]["knn_error"] == found["raw"]["knn_error"]
    last = done.stdout.splitlines()[-4:]
    assert last[0] == "Figure: out/figure.png"
    assert last[1] == "Report: out/report.html"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--trials", "0"], "--trials"),
        (["--pairs", "3"], "n_pairs is 3"),
        (["--schedule", "slow"], "unknown schedule 'slow'; known: long, fast"),
        (["--method", "nosuch"], "unknown method 'nosuch'"),
        (["--method", "builtins:dict"], "needs transform"),
        (["--out", "file/sub"], "cannot write in file/sub"),
        (["--cluster", "127.0.0.1:1"], "no Dask scheduler answers"),
    ],
)
def test_a_bad_argument_ends_at_once(args, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["metrack", "reproduce", "synthetic", *args])
    monkeypatch.setattr(runner.TrialStore, "add", None)  # no trial is to be run
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
    if args[0] != "--trials":  # typer's own message, in a box
        assert len(printed.err.splitlines()) == 1
