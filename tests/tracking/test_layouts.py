"""The fast way agrees with the judge, row for row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack.tracking import formats
from metrack.tracking.columns import ReadSpec, pair_layout
from metrack.tracking.formats import CsvFormat, JsonFormat, parse
from metrack.tracking.layouts import RowError, label_of

HEADER = ["x_0", "z_0", "y", "note"]
NUMBERS = st.floats(allow_nan=True).map(repr) | st.sampled_from(
    ["1", "-0", "+1", " 2 ", "1e5", "1E-3", ".5", "5.", "", "NA", "null", "1_0", "0x1", "inf",
     "-inf", "Infinity", "1e400", "1e41", "1,5", "\u0661", "\x00", "--1", '"1"', "1\t"]
)  # fmt: skip
LABELS = st.sampled_from(
    [
        "1",
        "-1",
        "0",
        "+1",
        "true",
        "FALSE",
        "same",
        "Different",
        "1.0",
        "2",
        "",
        "yes",
        "nan",
        " 1 ",
    ]
)
# At all of these ``str.splitlines`` breaks a line, at the first two ``bytes.splitlines``.
BREAKS = ["\r", "\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
NOTES = st.text(max_size=5) | st.sampled_from(
    ['"', '""', 'a"b', "a,b", '"a,b"', "\udcff", '"a\rb"', "\r1,1,1,", "a\r", *BREAKS]
)
FULL = st.tuples(NUMBERS, NUMBERS, LABELS, NOTES).map(",".join)
ROWS = st.lists(FULL | st.sampled_from(["", " ", *BREAKS]), max_size=12)


def judged(format_, layout, lines):
    """What `Layout.row` says of each line."""
    points, y, bad = [], [], []
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            point, _, label = layout.row(format_.values(line))
        except RowError:
            bad.append(i)
        else:
            points.append(point)
            y.append(label)
    return np.array(points).reshape(-1, 2, 1), np.array(y), bad


def compare(format_, layout, data):
    points, y, bad = judged(format_, layout, data.split(b"\n"))
    found = parse(format_, layout, data)
    assert [i for i, _ in found.bad] == bad
    np.testing.assert_array_equal(found.rows.points, points)
    np.testing.assert_array_equal(found.rows.y, y)


@settings(max_examples=200, deadline=None)
@given(rows=ROWS)
def test_csv(rows):
    text = "".join(f"{row}\n" for row in rows)
    data = text.encode("utf-8", "surrogateescape")
    format_ = CsvFormat(HEADER, ",")
    compare(format_, pair_layout(HEADER, {}, ReadSpec())[0], data)


VALUES = st.floats(allow_nan=True) | st.integers() | st.text(max_size=3) | st.booleans() | st.none()


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"x_0": VALUES, "z_0": st.floats(-1, 1), "y": st.sampled_from([1, 0, True, "same", 7])},
            optional={"note": st.text(max_size=4), "x_1": VALUES, "more": st.lists(VALUES)},
        ),
        max_size=8,
    ),
    space=st.sampled_from(["", " ", *BREAKS]),
    between=st.lists(st.sampled_from(["\n", "", "\r", "\r\n", "\n\n", "\n\r\n"]), min_size=8),
    torn=st.booleans(),
)  # fmt: skip
def test_json(rows, space, between, torn):
    import json

    separators = (f",{space}", f":{space}")
    lines = [json.dumps(row, ensure_ascii=False, separators=separators) for row in rows]
    if torn and lines:
        lines[0] = lines[0][:-3]
    example = {"x_0": 1.0, "z_0": 1.0, "y": 1}
    layout = pair_layout(list(example), example, ReadSpec())[0]
    text = "".join(line + after for line, after in zip(lines, between, strict=False)) + "\n"
    compare(JsonFormat(example), layout, text.encode())


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_rows_or_bad_rows(data):
    layout = pair_layout(HEADER, {}, ReadSpec())[0]
    compare(CsvFormat(HEADER, ","), layout, data + b"\n")


ROW = '{"x_0": 1.0, "z_0": 2.0, "y": 1}'
TORN = ROW.replace(" ", "\n", 1)


@pytest.mark.parametrize(
    "text", [f"{ROW}{ROW}\n\n", f"{TORN}{ROW}\n", f"{ROW}\r{ROW}\n\r\n", f"{TORN}\n{ROW}{ROW}\n"]
)
def test_as_many_objects_as_lines_are_not_one_each(text):
    example = {"x_0": 1.0, "z_0": 1.0, "y": 1}
    layout = pair_layout(list(example), example, ReadSpec())[0]
    compare(JsonFormat(example), layout, text.encode())


def test_a_carriage_return_ends_no_row():
    layout = pair_layout(HEADER, {}, ReadSpec())[0]
    compare(CsvFormat(HEADER, ","), layout, b"1,2,1,a\r3,4,1,b\n\n")


def test_fast_way_is_taken(monkeypatch):
    def forbidden(*args):
        raise AssertionError("row by row")

    monkeypatch.setattr(formats, "_one", forbidden)
    layout = pair_layout(HEADER, {}, ReadSpec())[0]
    found = parse(CsvFormat(HEADER, ","), layout, b"1,2,same,\n" * 100)
    assert len(found.rows.y) == 100
    example = {"x_0": 1.0, "z_0": 1.0, "y": True}
    layout = pair_layout(list(example), example, ReadSpec())[0]
    found = parse(JsonFormat(example), layout, b'{"x_0": 1, "z_0": 2.5, "y": false}\n' * 100)
    assert (found.rows.y == -1.0).all()


@pytest.mark.parametrize("value", ["1", "+1", 1, 1.0, True, "true", "TRUE", "same", " Same "])
def test_alike(value):
    assert label_of(value) == 1.0


@pytest.mark.parametrize("value", ["-1", -1, "0", 0, 0.0, False, "false", "different"])
def test_not_alike(value):
    assert label_of(value) == -1.0


@pytest.mark.parametrize("value", ["", None, "2", 0.5, "yes", float("nan"), [1]])
def test_no_label(value):
    with pytest.raises(RowError):
        label_of(value)
