"""The same stream in every form of source, and what it must lead to."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    HEADER,
    jsonl,
    make_feedback,
    wide_lines,
    write_csv,
)

ITEMS, ROWS, Y = make_feedback()


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
