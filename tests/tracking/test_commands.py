"""The commands as users type them."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import metrack
from metrack import cli
from metrack.commands.settings import settings, value_of
from metrack.registry import PAIR_LEARNERS
from tests.estimators.learners import state
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
    """Run a command in this process; returns what it wrote: output, error."""
    output, error = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["metrack", *map(str, args)]),
        redirect_stdout(output),
        redirect_stderr(error),
        pytest.raises(SystemExit) as stop,
    ):
        cli.main()
    assert (stop.value.code or 0) == code, error.getvalue()
    assert "Traceback" not in error.getvalue()
    return SimpleNamespace(output=output.getvalue(), error=error.getvalue())


def test_track_transform_distance_inspect(folder):
    said = metrack_("track", "pairs.csv", "--out", "state").output
    assert re.search(r"state: 300 pairs learned, 300 of them now \([\d,]+/s\); loss of late", said)
    tracker = metrack.load("state")
    metrack_("transform", "state", "items.csv", "--out", "embedded.npy")
    np.testing.assert_allclose(np.load("embedded.npy"), tracker.transform(ITEMS))
    metrack_("transform", "state", "items.csv", "--out", "near.npy", "--for-neighbours")
    expected = tracker.for_neighbours().transform(ITEMS)
    np.testing.assert_allclose(np.load("near.npy"), expected)
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
    assert re.search(r"pairs learned\W+300\b", seen)
    assert re.search(r"source\W+pairs\.csv, 301 lines read", seen)
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
    # Items are points without judgements, too: they have a small say as long as pairs are few.
    pairs = np.stack([ITEMS[:-1], ITEMS[1:]], axis=1)
    expected = wide.pair_distance(pairs)
    np.testing.assert_allclose(ids.pair_distance(pairs), expected, atol=0.05 * expected.mean())
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
    assert "rho=0.25" in wrong.error
    (folder / "c.toml").write_text("rhoo = 1\n")
    wrong = metrack_("track", "pairs.csv", "--out", "b", "--config", "c.toml", code=2)
    assert "rhoo" in wrong.error


def test_every_setting_of_every_tracker_has_an_option():
    found = {(setting.estimator, setting.name): setting for setting in settings()}
    for name in PAIR_LEARNERS:
        given = getattr(metrack, name)().get_params()
        for each in set(given) - {"preprocessor"}:
            setting = found.pop((name, each))
            assert setting.default == str(given[each])
            assert setting.described.kind
            assert len(setting.described.text) > 5
            assert "As in" not in setting.help
    assert not found


def test_help_tells_settings_estimator_by_estimator(monkeypatch):
    """Each with the meaning that it has there, and with the default."""
    monkeypatch.setenv("COLUMNS", "100")
    text = " ".join(re.sub("[│╭╰─╮╯]", " ", metrack_("track", "--help").output).split())
    told = dict(re.findall(r"Settings of (\w+) (.*?)(?=Settings of|Examples:)", text))
    assert list(told) == list(PAIR_LEARNERS)
    for setting in settings():
        option = f"--{setting.name.replace('_', '-')} VALUE"
        about = told[setting.estimator].partition(option)[2].partition(" --")[0]
        assert f"[default: {setting.default}]" in about
        assert setting.described.text in about or "As for" in about
    assert "landmarks" in told["KernelTracker"].partition("--n-components")[2]
    assert "landmarks" not in told["MetricTracker"]


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("0.5", 0.5), ("none", None), ("auto", "auto"), ("1e-3", 1e-3)]
)
def test_values_of_settings(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--estimator", "Nope"], "choose one of MetricTracker"),
        (["--learning-rate", "1"], "no setting of MetricTracker"),
        (["--estimator", "COMID", "--loss", "nope"], "loss='nope'; choose one of"),
        (["--layout", "tall"], "choose one of auto, wide, ids"),
        (["--layout", "ids"], "--items FILE"),
        (["--format", "xml"], "choose one of auto, csv"),
        (["--columns", "a,b"], "7 columns, but 2 names"),
        (["--columns", "id_a=a"], "'id_a=a' is not ROLE=COLUMN, as in a=id_a"),
        (["--columns", "a=p,b"], "'b' is not ROLE=COLUMN"),
        (["--columns", "a=p,b=p"], "p is there twice"),
        (["--columns", "y=label"], "no column label for y; found x_0"),
    ],
)
def test_wrong_use_says_what_to_do(folder, args, why):
    wrong = metrack_("track", "pairs.csv", "--out", "state", *args, code=2)
    assert why in wrong.error


def command(*args):
    return [sys.executable, "-m", "metrack.cli", *map(str, args)]


def test_exit_codes(folder):
    (folder / "bad.csv").write_text("x_0,z_0,y\n1,2,3\n")
    metrack_("track", "pairs.csv", "--out", "state")
    metrack_("track", "nowhere.csv", "--out", "state", code=1)
    metrack_("track", "pairs.csv", "--out", "pairs.csv", code=2)
    metrack_("track", "pairs.csv", code=2)
    metrack_("track", "bad.csv", "--out", "other", code=2)
    (folder / "empty").mkdir()
    metrack_("inspect", "empty", code=2)
    assert "is a file that holds no state" in metrack_("inspect", "pairs.csv", code=2).error
    assert "pairs.csv is a file; give a folder" in metrack_("serve", "pairs.csv", code=2).error


def test_json_lines_of_a_pipe_are_known_by_a_first_line_that_is_a_list(folder):
    found = subprocess.run(
        command("track", "-", "--out", "state"), input="[1, 2]\n", capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "-:1: not a JSON object" in found.stderr


def test_slow_pipe_is_learned_as_it_comes_and_saved_by_time(folder):
    """Behind tail -F: rows trickle, the state follows; SIGTERM ends it with everything saved."""
    lines = [",".join(HEADER) + "\n", *wide_lines(ITEMS, ROWS, Y)]
    process = subprocess.Popen(
        command("track", "-", "--out", "state", "--save-seconds", "0.1", "--estimator", "COMID"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for start, stop in ((0, 3), (3, 8)):
        write(process, lines[start:stop])
        wait_for(stop - 1)
    second = subprocess.run(
        command("track", "pairs.csv", "--out", "state"), capture_output=True, text=True
    )
    assert second.returncode == 2
    assert f"in use by process {process.pid}" in second.stderr
    write(process, lines[8:9])
    wait_for(8)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert metrack.load("state").n_pairs_seen_ == 8
    assert "state: 8 pairs learned, 8 of them now" in process.stdout.read()


def write(process, lines):
    process.stdin.writelines(lines)
    process.stdin.flush()


def wait_for(n_pairs, patience=300):
    """Until so many pairs are saved; the patience is for a machine that has stopped."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            if metrack.load("state").n_pairs_seen_ == n_pairs:
                return
        except (ValueError, FileNotFoundError):
            pass  # nothing saved yet
        time.sleep(0.05)
    pytest.fail(f"{n_pairs} pairs were not learned and saved")


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


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 2), ("no,such,columns\n1,2,3\n", 2), ("x_0,z_0,y\n1,2,7\n", 2), ("x_0,z_0,y\n", 0)],
)
def test_a_first_run_that_learns_nothing_leaves_nothing(folder, text, code):
    (folder / "wrong.csv").write_text(text)
    metrack_("track", "wrong.csv", "--out", "state", code=code)
    metrack_("track", "nowhere.csv", "--out", "state", code=1)
    assert not (folder / "state").exists()


def test_bad_rows_file_is_json_lines(folder):
    with (folder / "pairs.csv").open("a") as file:
        file.write("1,2\n")
    said = metrack_("track", "pairs.csv", "--out", "state", "--bad-rows", "bad.jsonl").output
    assert "300 pairs learned, 300 of them now" in said
    assert "1 bad row left out" in said
    assert json.loads((folder / "bad.jsonl").read_text())["line"] == 302


def test_one_of_anything_is_in_the_singular(folder):
    write_csv(folder / "one.csv", wide_lines(ITEMS, ROWS[:1], Y[:1]))
    assert (
        "one: 1 pair learned, 1 of them now" in metrack_("track", "one.csv", "--out", "one").output
    )
    said = metrack_("distance", "one", "one.csv", "--out", "d.csv").output
    assert said == "d.csv: 1 pair scored\n"
    (folder / "item.csv").write_text("id,0,1,2\ni,1,2,3\n")
    said = metrack_("transform", "one", "item.csv", "--out", "e.csv").output
    assert said == "e.csv: 1 item embedded\n"


def test_columns_with_other_names(folder):
    """What people have: id_a, id_b, label; here beside a column that is called y."""
    text = (folder / "ids.csv").read_text().splitlines()[1:]
    rows = [line.split(",") for line in text]
    named = [{"y": "no", "id_a": a, "label": int(y), "id_b": b} for a, b, y in rows]
    (folder / "named.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    (folder / "named.csv").write_text(
        "y;id_a;label;id_b\n" + "".join(";".join(map(str, row.values())) + "\n" for row in named)
    )
    pa.parquet.write_table(pa.Table.from_pylist(named), folder / "named.parquet")
    metrack_("track", "ids.csv", "--items", "items.csv", "--out", "plain")
    expected = metrack.load("plain").components_
    names = ["--columns", "a=id_a, b=id_b, y=label", "--items", "items.csv"]
    for ending in ("jsonl", "csv", "parquet"):
        metrack_("track", f"named.{ending}", "--out", ending, *names)
        np.testing.assert_array_equal(metrack.load(ending).components_, expected)
    metrack_("distance", "csv", "named.csv", "--out", "d.csv", *names)
    metrack_("distance", "plain", "ids.csv", "--items", "items.csv", "--out", "same.csv")
    assert (folder / "d.csv").read_text() == (folder / "same.csv").read_text()
    (folder / "bare.csv").write_text("id_a,id_b\ni0,i1\n")  # no label, and none needed
    metrack_("distance", "csv", "bare.csv", *names)
    (folder / "wrong.csv").write_text("id_a,id_b,label\ni0,i99,1\n")
    said = metrack_("track", "wrong.csv", "--out", "wrong", *names, code=2).error
    assert "wrong.csv:2: id_b = 'i99' is not among the items" in said
    said = metrack_("track", "named.csv", "--out", "x", "--items", "items.csv", code=2).error
    assert "as in a=id_a,b=id_b,y=label" in said
    said = metrack_("track", "ids.csv", "--out", "x", *names, code=2).error
    assert "there is no column id_a for a; found a, b, y" in said


def test_columns_of_points_with_other_names(folder):
    write_csv(
        folder / "named.csv",
        wide_lines(ITEMS, ROWS, Y),
        ["l0", "x_1", "x_2", "r0", "z_1", "z_2", "same"],
    )
    names = ["--columns", "x_0=l0,z_0=r0,y=same"]
    metrack_("track", "named.csv", "--out", "named", *names)
    metrack_("track", "pairs.csv", "--out", "plain")
    expected = metrack.load("plain").components_
    np.testing.assert_array_equal(metrack.load("named").components_, expected)
    lists = [
        {"left": ITEMS[a].tolist(), "right": ITEMS[b].tolist(), "y": int(y)}
        for (a, b), y in zip(ROWS, Y, strict=True)
    ]
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists))
    metrack_("track", "lists.jsonl", "--out", "lists", "--columns", "x=left,z=right")
    np.testing.assert_array_equal(metrack.load("lists").components_, expected)


@pytest.mark.parametrize("source", ["nowhere.csv", "bad.csv", "short.csv"])
@pytest.mark.parametrize("out", [[], ["--out", "d.csv"]])
def test_distance_that_fails_writes_nothing(source, out, folder):
    metrack_("track", "pairs.csv", "--out", "state")
    (folder / "bad.csv").write_text((folder / "pairs.csv").read_text() + "1,2\n")
    (folder / "short.csv").write_text("x_0,z_0\n1,2\n")
    code = 1 if source == "nowhere.csv" else 2
    assert metrack_("distance", "state", source, *out, code=code).output == ""
    assert not (folder / "d.csv").exists()


def test_distance_of_no_pairs_is_a_header(folder):
    metrack_("track", "pairs.csv", "--out", "state")
    write_csv(folder / "none.csv", [])
    assert metrack_("distance", "state", "none.csv").output == "row,distance,alike,probability\n"


def test_transform_advises_no_option_that_it_lacks(folder):
    metrack_("track", "pairs.csv", "--out", "state")
    (folder / "items.docx").write_text("id,0,1,2\n")
    said = metrack_("transform", "state", "items.docx", code=2).error
    assert "cannot tell the format from the name; let it end in .csv" in said
    assert "--" not in said


def test_csv_holds_no_formulas(folder):
    """Text from data that a spreadsheet would run is marked as text; numbers stay numbers."""
    metrack_("track", "pairs.csv", "--out", "state")
    ids = ["=1+1", "+x", "-x", "@x", "\tx", "\r=x", "a\r=x", "-5", "+1e3", "a=b", "'=x", ""]
    np.savez("items.npz", X=ITEMS[: len(ids)], ids=np.array(ids))
    metrack_("transform", "state", "items.npz", "--out", "e.csv")
    with open("e.csv", newline="", encoding="utf-8") as file:
        found = [row[0] for row in csv.reader(file)][1:]
    assert found == [f"'{name}" for name in ids[:6]] + ids[6:]
    text = (folder / "e.csv").read_bytes()
    assert b'"a\r=x"' in text  # quoted: no row begins there
    assert b"\r\n" not in text
    (folder / "p.csv").write_text("a,b\n=1+1,-5\n")
    lines = metrack_("distance", "state", "p.csv", "--items", "items.npz").output.splitlines()
    assert lines[1].startswith("'=1+1,-5,")


def test_a_kernel_is_tracked_and_inspected(folder):
    kernel = "--estimator", "KernelTracker", "--n-landmarks", "16"
    metrack_("track", "pairs.csv", "--out", "whole", *kernel)
    lines = Path("pairs.csv").read_text().splitlines(keepends=True)
    Path("growing.csv").write_text("".join(lines[:100]))
    metrack_("track", "growing.csv", "--out", "state", *kernel)
    Path("growing.csv").write_text("".join(lines))
    metrack_("track", "growing.csv", "--out", "state", *kernel)
    assert state(metrack.load("state")) == state(metrack.load("whole"))
    said = metrack_("inspect", "state", "--html", "page.html").output
    assert "trust in own" in said
    assert "Landmarks that matter" in said
    assert "Landmarks that matter" in Path("page.html").read_text(encoding="utf-8")
    assert metrack_("distance", "state", "pairs.csv").output.count("\n") == 301
    assert metrack_("transform", "state", "items.csv").output.startswith("id,e_1,")
