"""Every form of source gives the same state; every malformed one stops with file and line."""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from metrack.storage import CorruptStateError, State, StateFolder, read
from metrack.tracking import sources
from metrack.tracking.columns import Columns, ReadSpec
from metrack.tracking.items import read_items
from metrack.tracking.quarantine import BadRowError
from metrack.tracking.reader import Reader
from metrack.tracking.sources import SourceError
from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    HEADER,
    N_FEATURES,
    jsonl,
    learned,
    learner,
    make_feedback,
    run,
    wide_lines,
    write_csv,
)

ITEMS, ROWS, Y = make_feedback()


@pytest.fixture(scope="module")
def expected():
    """What a bare `observe` learns."""
    found = learner()
    found.observe(ITEMS[ROWS], Y)
    return found


def check(out, expected):
    tracking = Tracking.load(out)
    np.testing.assert_array_equal(tracking.learner.components_, expected.components_)
    assert tracking.learner.mu_ == expected.mu_
    assert tracking.learner.n_pairs_seen_ == len(Y)


def wide_table():
    pairs = ITEMS[ROWS].reshape(len(ROWS), -1)
    return pa.table(dict(zip(HEADER, [*pairs.T, Y], strict=True)))


def list_table():
    return pa.table({"y": Y > 0, "x": list(ITEMS[ROWS[:, 0]]), "z": list(ITEMS[ROWS[:, 1]])})


def write_wide_csv(path):
    write_csv(path, wide_lines(ITEMS, ROWS, Y))


def packed(path, opener):
    plain = path.with_name("plain.csv")
    write_wide_csv(plain)
    with opener(path, "wb") as file:
        file.write(plain.read_bytes())


def write_flat_json(path):
    rows = wide_table().to_pylist()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


WIDE = {
    "w.csv": write_wide_csv,
    "w.csv.gz": lambda p: packed(p, gzip.open),
    "w.csv.bz2": lambda p: packed(p, bz2.open),
    "w.csv.xz": lambda p: packed(p, lzma.open),
    "w.csv.zst": lambda p: packed(p, lambda f, m: pa.output_stream(str(f), compression="zstd")),
    "w.tsv": lambda p: p.write_text(
        "".join(
            ["\t".join(HEADER) + "\n"] + [s.replace(",", "\t") for s in wide_lines(ITEMS, ROWS, Y)]
        )
    ),
    "crlf.csv": lambda p: p.write_bytes(
        b"\xef\xbb\xbf"
        + ("\r\n".join([",".join(HEADER), *map(str.strip, wide_lines(ITEMS, ROWS, Y))])).encode()
    ),
    "w.jsonl": lambda p: p.write_text(jsonl(ITEMS, ROWS, Y)),
    "bom.jsonl": lambda p: p.write_bytes(b"\xef\xbb\xbf" + jsonl(ITEMS, ROWS, Y).encode()),
    "cr.jsonl": lambda p: p.write_bytes(jsonl(ITEMS, ROWS, Y).replace(" ", "\r").encode()),
    "flat.jsonl": write_flat_json,
    "w.parquet": lambda p: pq.write_table(wide_table(), p, row_group_size=70),
    "lists.parquet": lambda p: pq.write_table(list_table(), p, row_group_size=70),
    "w.feather": lambda p: pa.feather.write_feather(wide_table(), p, chunksize=50),
    "lists.arrow": lambda p: pa.feather.write_feather(list_table(), p, chunksize=50),
}


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


def write_id_csv(path):
    labels = ["same" if label > 0 else "different" for label in Y]
    rows = [f"item {a},item {b},{label}\n" for (a, b), label in zip(ROWS, labels, strict=True)]
    path.write_text("a,b,y\n" + "".join(rows))


NAMES = [f"item {i}" for i in range(len(ITEMS))]
ITEM_FILES = {
    "i.csv": lambda p: p.write_text(
        "id,p,q,r\n"
        + "".join(
            f"{n},{','.join(map(repr, row))}\n"
            for n, row in zip(NAMES, ITEMS.tolist(), strict=True)
        )
    ),
    "embedding.csv": lambda p: p.write_text(
        "id,embedding\n"
        + "".join(f'{n},"{row}"\n' for n, row in zip(NAMES, ITEMS.tolist(), strict=True))
    ),
    "i.jsonl": lambda p: p.write_text(
        "".join(
            json.dumps({"id": n, "embedding": row}) + "\n"
            for n, row in zip(NAMES, ITEMS.tolist(), strict=True)
        )
    ),
    "i.parquet": lambda p: pq.write_table(pa.table({"id": NAMES, "embedding": list(ITEMS)}), p),
    "i.npz": lambda p: np.savez(p, X=ITEMS, ids=np.array(NAMES)),
}


@pytest.mark.parametrize("name", ITEM_FILES)
def test_pairs_of_ids(name, tmp_path, expected):
    write_id_csv(tmp_path / "pairs.csv")
    ITEM_FILES[name](tmp_path / name)
    items = read_items(tmp_path / name)
    run(tmp_path / "pairs.csv", tmp_path / "state", items=items)
    check(tmp_path / "state", expected)


def write_items(path, points, names, features="pqr"):
    rows = (
        f"{n},{','.join(map(repr, row))}\n" for n, row in zip(names, points.tolist(), strict=True)
    )
    path.write_text(f"id,{','.join(features)}\n" + "".join(rows))
    return read_items(path)


def test_items_that_changed_under_the_same_ids_are_noticed(tmp_path):
    write_id_csv(tmp_path / "pairs.csv")
    out, file = tmp_path / "state", tmp_path / "items.csv"
    run(tmp_path / "pairs.csv", out, items=write_items(file, ITEMS, NAMES))
    before = learned(out)
    changed = ITEMS.copy()
    changed[3, 1] += 1e-9
    for points, names in ((changed, NAMES), (ITEMS[:-1], NAMES[:-1]), (ITEMS, NAMES[::-1])):
        items = write_items(file, points, names)
        with pytest.raises(ValueError, match=r"not those that .*state was .*40 items.*--new-items"):
            run(tmp_path / "pairs.csv", out, items=items)
    assert learned(out) == before
    # In another order, in another format, and with more of them, they are the same.
    order = np.random.default_rng(0).permutation(len(ITEMS))
    run(tmp_path / "pairs.csv", out, items=write_items(file, ITEMS[order], np.take(NAMES, order)))
    sparse = tmp_path / "i.npz"
    np.savez(sparse, **sparse_parts(ITEMS), ids=np.array(NAMES))
    run(tmp_path / "pairs.csv", out, items=read_items(sparse, ["p", "q", "r"]))
    more = write_items(file, np.vstack([ITEMS, ITEMS[:1]]), [*NAMES, "new"])
    with (tmp_path / "pairs.csv").open("a") as pairs:
        pairs.write(f"new,{NAMES[1]},1\n")
    run(tmp_path / "pairs.csv", out, items=more)
    with pytest.raises(ValueError, match="41 items then and 40 now"):
        run(tmp_path / "pairs.csv", out, items=write_items(file, ITEMS, NAMES))
    # And there is a way to go on with others.
    with (tmp_path / "pairs.csv").open("a") as pairs:
        pairs.write(f"{NAMES[0]},{NAMES[1]},1\n")
    items = write_items(file, changed, NAMES)
    run(tmp_path / "pairs.csv", out, items=items, new_items=True)
    run(tmp_path / "pairs.csv", out, items=items)
    assert Tracking.load(out).learner.n_pairs_seen_ == len(Y) + 2


def sparse_parts(points):
    matrix = sp.csr_array(points)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return parts | {"shape": np.array(matrix.shape)}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("pqs", r"the items lack 'r' and have 's'"),
        ("qpr", r"the items have 'q' where 'p' was"),
    ],
)
def test_features_that_differ_are_named(features, message, tmp_path):
    write_id_csv(tmp_path / "pairs.csv")
    file = tmp_path / "items.csv"
    run(tmp_path / "pairs.csv", tmp_path / "state", items=write_items(file, ITEMS, NAMES))
    items = write_items(file, ITEMS, NAMES, features)
    with pytest.raises(ValueError, match=f"{message}: .*state was learned on 3 features"):
        run(tmp_path / "pairs.csv", tmp_path / "state", items=items, new_items=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda t, a: t["history"].update(width=0),
        lambda t, a: t["history"].update(pairs=256),
        lambda t, a: t["history"].update(pairs=255),
        lambda t, a: t["history"].update(total=-1.0),
        lambda t, a: a.update({"history.losses": np.zeros(9)}),
        lambda t, a: a.update({"history.shares": np.zeros((1, 4))}),
        lambda t, a: a.update({"recent.pairs": np.zeros((9, 2, 4))}),
        lambda t, a: a.update({"recent.y": np.zeros(9)}),
        lambda t, a: t.update(features=["p"]),
        lambda t, a: t.update(features=[1, 2, 3]),
        lambda t, a: t.update(columns=7),
        lambda t, a: t.update(bad_rows=-1),
        lambda t, a: t.update(items={"n_items": "3", "fingerprint": ""}),
        lambda t, a: t.update(aside={"file": "a"}),
        lambda t, a: t["place"].update(offset=-1),
        lambda t, a: t["place"].pop("tail"),
        lambda t, a: t["place"].update(file=3),
        lambda t, a: t.pop("place"),
    ],
)
def test_states_that_no_tracking_leads_to(change, tmp_path):
    write_csv(tmp_path / "p.csv", wide_lines(ITEMS, ROWS, Y))
    run(tmp_path / "p.csv", tmp_path / "state")
    content, arrays = read(tmp_path / "state")
    change(content["tracking"], arrays)
    plain = {name: content[name] for name in ("learner", "tracking")}
    with StateFolder(tmp_path / "state") as folder:
        folder.write(State(plain, arrays))
    with pytest.raises(CorruptStateError, match="describes no tracking"):
        Tracking.load(tmp_path / "state")


def test_golden_tracking_goes_on(tmp_path):
    """A state of ``metrack track`` in format 1, of 300 pairs of ids; it had no fingerprint."""
    golden = Path(__file__).with_name("golden") / "v1"
    shutil.copytree(golden, tmp_path / "v1")
    items = read_items(tmp_path / "v1" / "items.csv")
    pairs, out = tmp_path / "v1" / "pairs.csv", tmp_path / "v1" / "tracked"
    assert run(pairs, out, items=items).pairs == 0
    with pairs.open("a") as file:
        file.write("p0,p1,1\n")
    assert run(pairs, out, items=items).seen == 301
    changed = items._replace(points=items.points + 1.0)
    with pytest.raises(ValueError, match="--new-items"):
        run(pairs, out, items=changed)


def test_pairs_of_row_numbers_with_sparse_items(tmp_path):
    sp.save_npz(tmp_path / "i.npz", sp.csr_array(ITEMS))
    rows = [{"a": int(a), "b": int(b), "y": bool(y > 0)} for (a, b), y in zip(ROWS, Y, strict=True)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(tmp_path / "p.jsonl", tmp_path / "state", items=read_items(tmp_path / "i.npz"))
    bare = learner().set_params(preprocessor=sp.csr_array(ITEMS))
    bare.observe(ROWS, Y)
    check(tmp_path / "state", bare)


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
    monkeypatch.setattr("tests.tracking.test_sources.ROWS", ROWS[::-1])
    WIDE[name](tmp_path / name)
    with pytest.raises(SourceError, match="not the source that the state was learned from"):
        run(tmp_path / name, tmp_path / "state")
    assert learned(tmp_path / "state") == before


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


def test_unknown_id(tmp_path):
    ITEM_FILES["i.csv"](tmp_path / "i.csv")
    (tmp_path / "p.csv").write_text("a,b,y\nitem 1,item 2,1\nitem 1,item 99,1\n")
    with pytest.raises(BadRowError, match=r"p\.csv:3: b = 'item 99' is not among the items"):
        run(tmp_path / "p.csv", tmp_path / "state", items=read_items(tmp_path / "i.csv"))


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


def test_items_are_checked(tmp_path):
    for text, why in [
        ("id,p\n1,2\n1,3\n", "'1' is there twice"),
        ("id,p\n1,x\n", r"i\.csv:2: p is not a number"),
        ("id\n1\n", "no columns of features"),
        ("id,p\n", "no items"),
    ]:
        (tmp_path / "i.csv").write_text(text)
        with pytest.raises(SourceError, match=why):
            read_items(tmp_path / "i.csv")
    np.save(tmp_path / "i.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(SourceError, match="pickle"):
        read_items(tmp_path / "i.npy")


def test_batching_does_not_matter(tmp_path, monkeypatch):
    write_wide_csv(tmp_path / "w.csv")
    run(tmp_path / "w.csv", tmp_path / "whole")
    for block in (100, 333, 4000):
        monkeypatch.setattr(sources, "BLOCK", block)
        run(tmp_path / "w.csv", tmp_path / f"state-{block}", every=7)
        assert learned(tmp_path / f"state-{block}") == learned(tmp_path / "whole")


def test_history_is_bounded_and_exact(tmp_path, monkeypatch):
    from metrack.tracking import history

    monkeypatch.setattr(history, "FIRST_WIDTH", 4)
    monkeypatch.setattr(history, "MOST_BLOCKS", 8)
    write_wide_csv(tmp_path / "w.csv")
    run(tmp_path / "w.csv", tmp_path / "state")
    found = Tracking.load(tmp_path / "state").history
    losses = learner().observe(ITEMS[ROWS], Y)
    n_blocks = len(Y) // found.width
    means = losses[: n_blocks * found.width].reshape(n_blocks, -1).mean(axis=1)
    np.testing.assert_allclose(found.losses, means, rtol=1e-12)
    assert len(found.losses) < 8
    assert read(tmp_path / "state").arrays["history.losses"].shape == (n_blocks,)


def test_batches_carry_what_was_known_when_they_were_read(tmp_path):
    """A reader may be files ahead of the batch that is saved."""
    for name, header in [("1.csv", HEADER), ("2.csv", [*HEADER[::-1]])]:
        write_csv(tmp_path / name, [",".join(["1"] * len(header)) + "\n"], header)
    first, second = Reader(str(tmp_path), ReadSpec()).batches()
    assert (first.columns, second.columns) == (HEADER, HEADER[::-1])
    assert first.features == second.features == [str(i) for i in range(N_FEATURES)]
