"""Every form of source gives the same state."""

import io
import json
import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from metrack.tracking import sources
from metrack.tracking.columns import Columns
from metrack.tracking.sources import SourceError
from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    HEADER,
    N_FEATURES,
    jsonl,
    learned,
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
    check,
    wide_table,
)


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("block", [sources.BLOCK, 700])
def test_wide_sources(name, block, tmp_path, expected, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", block)
    WIDE[name](tmp_path / name)
    done = run(tmp_path / name, tmp_path / "state")
    assert (done.pairs, done.bad) == (len(Y), 0)
    check(tmp_path / "state", expected)
    assert run(tmp_path / name, tmp_path / "state").pairs == 0
    check(tmp_path / "state", expected)


def test_without_pyarrow_text_is_read_all_the_same(tmp_path, expected, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for name in ("w.csv", "w.jsonl", "flat.jsonl"):
        WIDE[name](tmp_path / name)
        run(tmp_path / name, tmp_path / f"state-{name}")
        check(tmp_path / f"state-{name}", expected)


def test_columns_may_stand_in_any_order(tmp_path, expected):
    table = wide_table().append_column("when", [["12:00"] * len(Y)])
    table = table.select(["y", *HEADER[N_FEATURES:-1], "when", *HEADER[:N_FEATURES]])
    pq.write_table(table, tmp_path / "w.parquet")
    run(tmp_path / "w.parquet", tmp_path / "state")
    check(tmp_path / "state", expected)
    # A second file in another order goes on with the same features.
    reverse = wide_table().select(HEADER[::-1])
    text = io.BytesIO()
    pa.csv.write_csv(reverse, text)
    (tmp_path / "more.csv").write_bytes(text.getvalue())
    run(tmp_path / "more.csv", tmp_path / "state", new_source=True)
    twice = learner()
    twice.observe(ITEMS[ROWS], Y)
    twice.observe(ITEMS[ROWS], Y)
    found = Tracking.load(tmp_path / "state").learner
    np.testing.assert_array_equal(found.components_, twice.components_)


def test_folder_in_the_order_of_names(tmp_path, expected):
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / ".hidden").write_text("")
    lines = wide_lines(ITEMS, ROWS, Y)
    write_csv(folder / "day-1.csv", lines[:100])
    (folder / "day-2.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in wide_table().slice(100, 100).to_pylist())
    )
    assert run(folder, tmp_path / "state").pairs == 200
    pq.write_table(wide_table().slice(200), folder / "day-3.parquet")
    assert run(folder, tmp_path / "state").pairs == 100
    check(tmp_path / "state", expected)
    write_csv(folder / "day-0.csv", lines)
    with pytest.raises(SourceError, match="sort after"):
        run(folder, tmp_path / "state")


def test_old_files_of_a_folder_may_go(tmp_path, expected):
    folder = tmp_path / "days"
    folder.mkdir()
    lines = wide_lines(ITEMS, ROWS, Y)
    write_csv(folder / "1.csv", lines[:100])
    write_csv(folder / "2.csv", lines[100:200])
    run(folder, tmp_path / "state")
    (folder / "1.csv").unlink()
    (folder / "2.csv").unlink()
    write_csv(folder / "3.csv", lines[200:])
    run(folder, tmp_path / "state")
    check(tmp_path / "state", expected)


def test_file_that_grows(tmp_path, expected):
    source, lines = tmp_path / "w.csv", wide_lines(ITEMS, ROWS, Y)
    write_csv(source, lines[:50])
    for start in range(50, 300, 50):
        run(source, tmp_path / "state")
        with source.open("a") as file:
            file.writelines(lines[start : start + 50])
    run(source, tmp_path / "state")
    check(tmp_path / "state", expected)


def through_pipe(data, tmp_path, piece=None, **options):
    """Write bytes to a FIFO, piece by piece, while they are tracked."""
    fifo = tmp_path / "fifo"
    if not fifo.exists():
        os.mkfifo(fifo)

    def write():
        try:
            with open(fifo, "wb", buffering=0) as file:
                for i in range(0, len(data), piece or len(data)):
                    file.write(data[i : i + (piece or len(data))])
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return run(fifo, tmp_path / "state", **options)
    finally:
        writer.join()


def arrow_stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=64)
    return sink.getvalue()


@pytest.mark.parametrize("piece", [None, 77])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow"])
def test_pipes_and_their_resumption(kind, piece, tmp_path, expected):
    lines = [",".join(HEADER) + "\n", *wide_lines(ITEMS, ROWS, Y)]
    whole, part = {
        "csv": ("".join(lines).encode(), "".join(lines[:151]).encode()),
        "jsonl": (jsonl(ITEMS, ROWS, Y).encode(), jsonl(ITEMS, ROWS[:150], Y[:150]).encode()),
        "arrow": (arrow_stream(wide_table()), arrow_stream(wide_table().slice(0, 150))),
    }[kind]
    assert through_pipe(part, tmp_path, piece).pairs == 150
    assert through_pipe(whole, tmp_path, piece).pairs == 150  # the first 150 are skipped
    check(tmp_path / "state", expected)
    with pytest.raises(SourceError, match="not the source"):
        through_pipe(part, tmp_path)


def test_pipe_of_new_rows_only_needs_no_header(tmp_path, expected):
    lines = wide_lines(ITEMS, ROWS, Y)
    head = ",".join(HEADER) + "\n"
    through_pipe((head + "".join(lines[:100])).encode(), tmp_path)
    through_pipe("".join(lines[100:200]).encode(), tmp_path, new_source=True)
    through_pipe((head + "".join(lines[200:])).encode(), tmp_path, new_source=True)
    check(tmp_path / "state", expected)


def test_csv_without_header(tmp_path, expected):
    (tmp_path / "w.csv").write_text("".join(wide_lines(ITEMS, ROWS, Y)))
    run(tmp_path / "w.csv", tmp_path / "state", columns=Columns(HEADER))
    check(tmp_path / "state", expected)


@pytest.mark.parametrize("name", ["w.csv", "w.csv.gz", "w.jsonl", "w.parquet", "w.feather"])
def test_changed_source_is_noticed(name, tmp_path, monkeypatch):
    WIDE[name](tmp_path / name)
    run(tmp_path / name, tmp_path / "state")
    before = learned(tmp_path / "state")
    monkeypatch.setattr("tests.tracking.forms.ROWS", ROWS[::-1])
    WIDE[name](tmp_path / name)
    with pytest.raises(SourceError, match="not the source that the state was learned from"):
        run(tmp_path / name, tmp_path / "state")
    assert learned(tmp_path / "state") == before
