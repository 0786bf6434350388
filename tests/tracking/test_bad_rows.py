"""Every malformed source stops with file and line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from metrack.tracking.quarantine import BadRowError
from metrack.tracking.sources import SourceError
from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    HEADER,
    N_FEATURES,
    jsonl,
    learner,
    run,
    wide_lines,
    write_csv,
)
from tests.tracking.forms import (
    ITEMS,
    ROWS,
    WIDE,
    Y,
    wide_table,
)

GOOD = wide_lines(ITEMS, ROWS, Y)[:9]


BAD = {
    "1,2,3,4,5,6\n": "6 columns, expected 7",
    "1,2,3,4,5,6,1,9\n": "8 columns, expected 7",
    "1,2,3,4,5,,1\n": "z_2 is empty",
    "1,nan,3,4,5,6,1\n": "x_1 is NaN",
    "1,inf,3,4,5,6,1\n": "x_1 is infinite",
    "1,1e41,3,4,5,6,1\n": "x_1 is 1e+41, too large",
    "1,one,3,4,5,6,1\n": "x_1 is not a number: 'one'",
    "1,2,3,4,5,6,2\n": "label '2'; labels are",
    "1,2,3,4,5,6,\n": "the label is empty",
    "1,2,3,4,5,\xff,1\n": "not UTF-8",
    '1,2,3,4,5,"6,1\n': "not CSV",
    "1,1_0,3,4,5,6,1\n": "x_1 is not a number",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_row_of_csv_stops_with_file_and_line(line, tmp_path):
    source = tmp_path / "w.csv"
    text = ",".join(HEADER) + "\n" + "".join([*GOOD[:5], "\n", line, *GOOD[5:]])
    source.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadRowError, match=r"w\.csv:8: ") as error:
        run(source, tmp_path / "state")
    assert BAD[line] in str(error.value)
    assert Tracking.load(tmp_path / "state").learner.n_pairs_seen_ == 5
    # Mended, it goes on.
    source.write_bytes(text.replace(line, "1,2,3,4,5,6,1\n").encode("latin-1"))
    assert run(source, tmp_path / "state").pairs == 5


def test_bad_rows_skipped_or_set_aside(tmp_path):
    lines = [x for i, bad in enumerate(BAD) for x in (GOOD[i % 9], bad)]
    source = tmp_path / "w.csv"
    source.write_bytes((",".join(HEADER) + "\n" + "".join(lines)).encode("latin-1"))
    done = run(source, tmp_path / "state", bad_rows="skip")
    assert (done.pairs, done.bad) == (len(BAD), len(BAD))
    bare = learner()
    bare.observe(*_parsed(lines[::2]))
    tracked = Tracking.load(tmp_path / "state")
    np.testing.assert_array_equal(tracked.learner.components_, bare.components_)
    assert tracked.bad_rows == len(BAD)

    with pytest.raises(BadRowError):
        run(source, tmp_path / "stopped")
    run(source, tmp_path / "stopped", bad_rows="skip")
    assert Tracking.load(tmp_path / "stopped").bad_rows == len(BAD)  # the first but once

    aside = tmp_path / "bad.jsonl"
    run(source, tmp_path / "other", bad_rows=str(aside))
    found = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [row["line"] for row in found] == list(range(3, 3 + 2 * len(BAD), 2))
    assert all(why in row["why"] for row, why in zip(found, BAD.values(), strict=True))
    assert found[0]["row"] + "\n" == next(iter(BAD))
    aside.write_text(aside.read_text() + "what a crash left behind\n")
    run(source, tmp_path / "other", bad_rows=str(aside))
    assert len(aside.read_text().splitlines()) == len(BAD)


def _parsed(lines):
    rows = np.array([[float(field) for field in line.split(",")] for line in lines])
    return rows[:, :-1].reshape(-1, 2, N_FEATURES), rows[:, -1]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"x": [1, 2, 3], "z": [1, 2], "y": 1}', "z has 2 numbers, expected 3"),
        ('{"x": [1, 2, null], "z": [1, 2, 3], "y": 1}', "x[2] is empty"),
        ('{"x": [1, 2, "a"], "z": [1, 2, 3], "y": 1}', "x[2] is not a number"),
        ('{"x": 7, "z": [1, 2, 3], "y": 1}', "x is not a list"),
        ('{"x": [1, 2, 3], "z": [1, 2, 3]}', "label None"),
        ('{"x": [1, 2, 3], "z": [1, 2, 3], "y": 1, "y": 1}', "twice"),
        ('{"x": [1, 2, 3], "z": [1, 2, 3], "y": "maybe"}', "label 'maybe'"),
    ],
)
def test_bad_row_of_json(line, why, tmp_path):
    good = jsonl(ITEMS, ROWS[:4], Y[:4])
    (tmp_path / "w.jsonl").write_text(good + line + "\n" + good)
    with pytest.raises(BadRowError, match=r"w\.jsonl:5: ") as error:
        run(tmp_path / "w.jsonl", tmp_path / "state")
    assert why in str(error.value)


def test_no_row_is_learned_twice_where_lines_hold_carriage_returns(tmp_path):
    good = jsonl(ITEMS, ROWS[:6], Y[:6]).replace(" ", "\r")
    text = good + "{\r\n" + good
    (tmp_path / "w.jsonl").write_bytes(text.encode())
    with pytest.raises(BadRowError, match=r"w\.jsonl:7: not JSON"):
        run(tmp_path / "w.jsonl", tmp_path / "state")
    (tmp_path / "w.jsonl").write_bytes(text.replace("{\r\n", "\n").encode())
    assert run(tmp_path / "w.jsonl", tmp_path / "state").pairs == 6
    assert Tracking.load(tmp_path / "state").learner.n_pairs_seen_ == 12


def test_bad_first_row_of_json(tmp_path):
    (tmp_path / "w.jsonl").write_text('{"x": [1,\n' + jsonl(ITEMS, ROWS[:4], Y[:4]))
    with pytest.raises(BadRowError, match=r"w\.jsonl:1: not JSON"):
        run(tmp_path / "w.jsonl", tmp_path / "state")
    assert run(tmp_path / "w.jsonl", tmp_path / "state", bad_rows="skip").pairs == 4


def test_mixed_labels_of_json(tmp_path):
    labels = [1, -1, 0, True, False, "same", "different", "1", "-1", 1.0]
    rows = [{"x": [1.5, 0], "z": [0, i], "y": y} for i, y in enumerate(labels)]
    (tmp_path / "w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(tmp_path / "w.jsonl", tmp_path / "state").pairs == len(labels)


def test_bad_rows_of_tables(tmp_path):
    table = wide_table().to_pylist()
    table[7]["x_1"] = None
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "w.parquet")
    with pytest.raises(BadRowError, match=r"w\.parquet:8: x_1 is empty"):
        run(tmp_path / "w.parquet", tmp_path / "state")
    assert run(tmp_path / "w.parquet", tmp_path / "state", bad_rows="skip").pairs == len(Y) - 8


@pytest.mark.parametrize("cut", [10, 200, -4])
def test_truncated_gzip(cut, tmp_path):
    WIDE["w.csv.gz"](tmp_path / "w.csv.gz")
    data = (tmp_path / "w.csv.gz").read_bytes()
    (tmp_path / "w.csv.gz").write_bytes(data[:cut])
    with pytest.raises(SourceError, match=r"w\.csv\.gz:\d+: .*(damaged|cut short|empty)"):
        run(tmp_path / "w.csv.gz", tmp_path / "state")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("w.csv", "", r"w\.csv:1: empty"),
        ("w.csv", "\n\n", r"w\.csv:1: empty"),
        ("w.csv", "a,a,y\n", "'a' is there twice"),
        ("w.csv", "x_0,z_0\n", "no column y"),
        ("w.csv", "x_0,x_1,z_0,y\n", "no column z_1"),
        ("w.csv", "a,b,y\n", "--items"),
        ("w.csv", "p,q,y\n", "no columns of pairs; found p, q, y"),
        ("w.csv", "1.0,2.0,1\n", "no column y"),
        ("w.jsonl", "nonsense\n", r"w\.jsonl:1: not JSON"),
        ("w.parquet", "nonsense", "not parquet"),
        ("w.feather", "nonsense", "not arrow"),
        ("w.docx", "", "--format"),
    ],
)
def test_source_that_is_none(name, text, why, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=why):
        run(tmp_path / name, tmp_path / "state")


def test_header_alone_is_no_pairs_yet(tmp_path):
    write_csv(tmp_path / "w.csv", [])
    assert run(tmp_path / "w.csv", tmp_path / "state").pairs == 0
    write_csv(tmp_path / "w.csv", GOOD)
    assert run(tmp_path / "w.csv", tmp_path / "state").pairs == 9


def test_half_a_row_is_never_learned(tmp_path):
    """The last line has no line break: whole if the label comes last, else nobody knows."""
    write_csv(tmp_path / "w.csv", [*GOOD[:3], GOOD[3].rstrip("\n")])
    assert run(tmp_path / "w.csv", tmp_path / "state").pairs == 4
    with (tmp_path / "w.csv").open("a") as file:
        file.writelines(["\n", *GOOD[4:]])
    assert run(tmp_path / "w.csv", tmp_path / "state").pairs == 5
    first = ",".join([HEADER[-1], *HEADER[:-1]])
    (tmp_path / "first.csv").write_text(f"{first}\n1,1,2,3,4,5,6\n1,1,2,3,4,5,6.5")
    with pytest.raises(BadRowError, match=r"first\.csv:3: the file ends within this line"):
        run(tmp_path / "first.csv", tmp_path / "other")
    with (tmp_path / "first.csv").open("a") as file:
        file.write("25\n")
    assert run(tmp_path / "first.csv", tmp_path / "other").pairs == 1
