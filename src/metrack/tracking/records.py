"""Files of records, and of pairs of them."""

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrack.checks import Ints
from metrack.tracking.sources import SourceError

Record = dict[str, Any]


class Records(NamedTuple):
    """Records of a file, and the id of each."""

    ids: list[str]
    records: list[Record]


def read_records(path: Path) -> Records:
    """The records of a CSV, JSON Lines or Parquet file; without a column ``id`` they are numbered.

    What is empty is missing. An id is not compared.
    """
    rows = _rows(path)
    if not rows:
        raise SourceError(f"{path} holds no records")
    ids = [str(row.pop("id", i)) for i, row in enumerate(rows)]
    if len(set(ids)) < len(ids):
        twice = next(key for i, key in enumerate(ids) if key in ids[:i])
        raise SourceError(f"{path}: id {twice!r} is there twice")
    return Records(ids, rows)


def read_candidates(path: Path, left: Records, right: Records) -> Ints:
    """Rows of pairs of records, of a file with columns a and b: ids of the first and the second."""
    rows_of = [{key: i for i, key in enumerate(side.ids)} for side in (left, right)]
    found = []
    for number, row in enumerate(_rows(path), 1):
        if not {"a", "b"} <= row.keys():
            raise SourceError(f"{path} has no columns a and b; found {', '.join(row)}")
        for known, side in zip(rows_of, "ab", strict=True):
            if str(row[side]) not in known:
                raise SourceError(f"{path}: pair {number}: there is no record {row[side]!r}")
        found.append([known[str(row[side])] for known, side in zip(rows_of, "ab", strict=True)])
    if not found:
        raise SourceError(f"{path} holds no pairs")
    return np.unique(np.array(found, np.int64), axis=0)


def _rows(path: Path) -> list[Record]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table: list[Record] = pq.read_table(path).to_pylist()
        return table
    with open(path, newline="", encoding="utf-8-sig") as file:
        if path.suffix != ".jsonl":
            return [dict(row) for row in csv.DictReader(file, restval="")]
        return [_object(path, i, line) for i, line in enumerate(file, 1) if line.strip()]


def _object(path: Path, number: int, line: str) -> Record:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise SourceError(f"{path}:{number}: {error}") from None
    if not isinstance(found, dict):
        raise SourceError(f"{path}:{number}: {type(found).__name__}, and no record: an object")
    return found
