"""The commands as users type them."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import metrack
from metrack import cli
from metrack.commands.settings import ESTIMATORS, settings, value_of
from tests.tracking.feedback import HEADER, make_feedback, wide_lines, write_csv

ITEMS, ROWS, Y = make_feedback()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with pairs and items."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "pairs.csv", wide_lines(ITEMS, ROWS, Y))
    rows = [f"i{i},{','.join(map(repr, row))}\n" for i, row in enumerate(ITEMS.tolist())]
    (tmp_path / "items.csv").write_text("id,0,1,2\n" + "".join(rows))
    ids = [f"i{a},i{b},{y}\n" for (a, b), y in zip(ROWS, Y, strict=True)]
    (tmp_path / "ids.csv").write_text("a,b,y\n" + "".join(ids))
    return tmp_path


def metrack_(*args, code=0):
    """Run a command in this process; returns its output."""
    found = CliRunner().invoke(cli.app, args)
    if code == 0:
        assert found.exit_code == 0, (found.output, found.exception)
    else:
        assert isinstance(found.exception, ValueError) or found.exit_code == code
    return found


def test_track_transform_distance_inspect(folder):
    said = metrack_("track", "pairs.csv", "--out", "state").output
    assert re.search(r"state: 300 pairs learned, 300 of them now \([\d,]+/s\); loss of late", said)
    tracker = metrack.load("state")
    metrack_("transform", "state", "items.csv", "--out", "embedded.npy")
    np.testing.assert_allclose(np.load("embedded.npy"), tracker.transform(ITEMS))
    text = metrack_("transform", "state", "items.csv").output.splitlines()
    assert text[0] == "id,e_1,e_2,e_3"
    assert text[1].startswith("i0,")
    for ending in ("npz", "parquet", "csv"):
        metrack_("transform", "state", "items.csv", "--out", f"e.{ending}")
        again = metrack.tracking.items.read_items(folder / f"e.{ending}")
        np.testing.assert_array_equal(again.points, np.load("embedded.npy"))
        assert again.ids[1] == "i1"
    lines = metrack_("distance", "state", "pairs.csv").output.splitlines()
    expected = tracker.pair_distance(ITEMS[ROWS])
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], expected)
    found = [int(line.split(",")[2]) for line in lines[1:]]
    np.testing.assert_array_equal(found, tracker.predict(ITEMS[ROWS]))
    metrack_("distance", "state", "ids.csv", "--items", "items.csv", "--out", "d.csv")
    first = (folder / "d.csv").read_text().splitlines()[1].split(",")
    assert first[:2] == [f"i{ROWS[0, 0]}", f"i{ROWS[0, 1]}"]
    assert float(first[2]) == pytest.approx(expected[0])
    seen = metrack_("inspect", "state", "--html", "page.html").output
    assert "300" in seen
    assert "Features that gained or lost" in seen
    page = (folder / "page.html").read_text(encoding="utf-8")
    for part in (
        "Loss over time",
        "Weights over scales",
        "Spectrum",
        "Embedding",
        "gained or lost",
    ):
        assert part in page
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="?http', page)


def test_ids_and_items_give_the_same(folder):
    metrack_("track", "pairs.csv", "--out", "wide")
    metrack_("track", "ids.csv", "--items", "items.csv", "--out", "ids")
    wide, ids = metrack.load("wide"), metrack.load("ids")
    np.testing.assert_array_equal(wide.components_, ids.components_)
    metrack_("inspect", "ids", "--items", "items.csv", "--html", "page.html")
    assert "i39" in (folder / "page.html").read_text(encoding="utf-8")


def test_settings_by_option_and_by_file(folder):
    (folder / "c.toml").write_text('estimator = "COMID"\nlearning-rate = 0.5\nbad_rows = "skip"\n')
    metrack_("track", "pairs.csv", "--out", "a", "--config", "c.toml", "--rho", "0.25")
    tracker = metrack.load("a")
    assert type(tracker) is metrack.COMID
    assert (tracker.learning_rate, tracker.rho) == (0.5, 0.25)
    metrack_("track", "pairs.csv", "--out", "a")  # goes on with its own settings
    wrong = metrack_("track", "pairs.csv", "--out", "a", "--rho", "0.5", code=2)
    assert "rho=0.25" in str(wrong.exception)
    (folder / "c.toml").write_text("rhoo = 1\n")
    wrong = metrack_("track", "pairs.csv", "--out", "b", "--config", "c.toml", code=2)
    assert "rhoo" in str(wrong.exception)


def test_every_setting_of_every_tracker_has_an_option():
    found = {setting.name: setting for setting in settings()}
    for name in ESTIMATORS:
        given = getattr(metrack, name)().get_params()
        for each in set(given) - {"preprocessor"}:
            assert found[each].defaults[name] == str(given[each])
            assert found[each].kind


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("0.5", 0.5), ("none", None), ("auto", "auto"), ("1e-3", 1e-3)]
)
def test_values_of_settings(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--estimator", "Nope"], "choose one of SADL"),
        (["--learning-rate", "1"], "no setting of SADL"),
        (["--loss", "nope"], "loss='nope'; choose one of"),
        (["--layout", "tall"], "choose one of auto, wide, ids"),
        (["--layout", "ids"], "--items FILE"),
        (["--format", "xml"], "choose one of auto, csv"),
        (["--columns", "a,b"], "7 columns, but 2 names"),
    ],
)
def test_wrong_use_says_what_to_do(folder, args, why):
    wrong = metrack_("track", "pairs.csv", "--out", "state", *args, code=2)
    assert why in str(wrong.exception)


def command(*args):
    return [sys.executable, "-m", "metrack.cli", *map(str, args)]


def test_exit_codes(folder, monkeypatch, capsys):
    def code(*args):
        monkeypatch.setattr(sys, "argv", ["metrack", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return stop.value.code

    (folder / "bad.csv").write_text("x_0,z_0,y\n1,2,3\n")
    assert code("track", "pairs.csv", "--out", "state") == 0
    assert code("track", "nowhere.csv", "--out", "state") == 1
    assert code("track", "pairs.csv", "--out", "pairs.csv") == 2
    assert code("track", "pairs.csv") == 2
    assert code("track", "bad.csv", "--out", "other") == 2
    assert code("inspect", "nowhere") == 2


def test_slow_pipe_is_learned_as_it_comes_and_saved_by_time(folder):
    """Behind tail -F: rows trickle, the state follows; SIGTERM ends it with everything saved."""
    lines = [",".join(HEADER) + "\n", *wide_lines(ITEMS, ROWS, Y)]
    process = subprocess.Popen(
        command("track", "-", "--out", "state", "--save-seconds", "0.1", "--estimator", "COMID"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for stop in (3, 8):
        process.stdin.writelines(lines[stop - 3 if stop == 3 else 3 : stop])
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if metrack.load("state").n_pairs_seen_ == stop - 1:
                    break
            except ValueError:
                pass
            time.sleep(0.05)
        else:
            pytest.fail("not learned in time")
    second = subprocess.run(
        command("track", "pairs.csv", "--out", "state"), capture_output=True, text=True
    )
    assert second.returncode == 2
    assert f"in use by process {process.pid}" in second.stderr
    process.stdin.write(lines[8])
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert metrack.load("state").n_pairs_seen_ == 8
    assert "8 pairs learned" in process.stdout.read()


@pytest.mark.parametrize("name", ["track", "transform", "distance", "inspect"])
def test_help_has_examples_and_exit_codes(name):
    text = " ".join(metrack_(name, "--help").output.split())
    assert f"metrack {name}" in text
    assert "Exit codes: 0 done, 1 failed" in text


def test_shell_completion():
    found = CliRunner().invoke(
        cli.app,
        [],
        prog_name="metrack",
        env={
            "_METRACK_COMPLETE": "complete_bash",
            "COMP_WORDS": "metrack track --rh",
            "COMP_CWORD": "2",
        },
    )
    assert "--rho" in found.output


def test_bad_rows_file_is_json_lines(folder):
    with (folder / "pairs.csv").open("a") as file:
        file.write("1,2\n")
    said = metrack_("track", "pairs.csv", "--out", "state", "--bad-rows", "bad.jsonl").output
    assert "1 bad rows left out" in said
    assert json.loads((folder / "bad.jsonl").read_text())["line"] == 302
