"""What the commands write: embedded items, and distances of pairs."""

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from metrack.tracking.columns import Columns, ReadSpec
from metrack.tracking.items import Items, read_items
from metrack.tracking.reader import Reader
from metrack.tracking.sources import SourceError, arrow
from metrack.tracking.state import Tracking

ENDINGS = (".csv", ".npy", ".npz", ".parquet")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a cell that a spreadsheet would run begins with

Row = Sequence[object]


def transform(state: Path, items: Path, out: Path | None, for_neighbours: bool = False) -> int:
    """Embed the items of a file; returns how many."""
    if out is not None and out.suffix not in ENDINGS:
        raise ValueError(f"{out}: the name must end in {', '.join(ENDINGS)}")
    tracking = Tracking.load(state)
    found = read_items(items, tracking.features)
    try:
        learner = tracking.learner
        view = learner.for_neighbours() if for_neighbours else learner
        embedded = view.transform(found.points)
    except ValueError as error:
        raise ValueError(f"{items}: {error}") from None
    names = [f"e_{i + 1}" for i in range(embedded.shape[1])]
    if out is None or out.suffix == ".csv":
        rows = zip(found.ids, embedded.tolist(), strict=True)
        write_csv(out, ["id", *names], ([[key, *row]] for key, row in rows))
    elif out.suffix == ".npy":
        np.save(out, embedded)
    elif out.suffix == ".npz":
        np.savez(out, X=embedded, ids=np.array(found.ids))
    else:
        pa = arrow("Parquet files")
        import pyarrow.parquet as pq

        columns = dict(zip(names, embedded.T, strict=True))
        pq.write_table(pa.table({"id": found.ids, **columns}), out)
    return len(found.ids)


def distance(
    state: Path,
    source: str,
    items: Items | None,
    out: Path | None,
    layout: str = "auto",
    format_: str = "auto",
    columns: Columns | None = None,
) -> int:
    """Score the pairs of a source as CSV, in bounded memory; returns how many."""
    tracking = Tracking.load(state, items)
    known = items.rows if items else None
    named = columns or Columns()
    spec = ReadSpec(layout, known, labelled=False, features=tracking.features, columns=named)
    names = ["a", "b"] if items else ["row"]
    told = ["distance", "alike", "probability"] if _knows(tracking) else ["distance", "alike"]
    scored = _scored(Reader(source, spec, format_), tracking)
    return write_csv(out, [*names, *told], scored)


def _knows(tracking: Tracking) -> bool:
    """Whether the learner tells how likely pairs are alike."""
    return hasattr(tracking.learner, "likelihood")


def _scored(reader: Reader, tracking: Tracking) -> Iterator[list[Row]]:
    """A row for each pair, batch by batch."""
    n_pairs, items = 0, tracking.items
    for batch in reader.batches():
        for bad in batch.bad:
            raise SourceError(f"{bad.file}:{bad.line}: {bad.why}")
        rows = batch.rows
        if not len(rows.y):
            continue
        distances = tracking.learner.pair_distance(rows.keys if items else rows.pairs(None))
        alike = np.where(distances <= tracking.learner.threshold_, 1, -1)
        if items:
            left: Sequence[Row] = [[items.ids[i] for i in row] for row in rows.keys]
        else:
            left = [[n_pairs + i + 1] for i in range(len(distances))]
        told = [distances.tolist(), alike.tolist()]
        if _knows(tracking):
            told.append(tracking.learner.likelihood()(distances**2).tolist())
        yield [[*first, *scored] for first, *scored in zip(left, *told, strict=True)]
        n_pairs += len(distances)


def write_csv(out: Path | None, header: Row, batches: Iterator[list[Row]]) -> int:
    """Write CSV; returns how many rows. What fails before the first row leaves nothing behind."""
    first = next(batches, [])
    n_rows = 0
    with _open(out) as file:
        # With this line break, which _Lines takes back, the module quotes "\r" as well as "\n".
        writer = csv.writer(_Lines(file), lineterminator="\r\n")
        writer.writerow(header)
        for rows in chain([first], batches):
            writer.writerows([_shown(cell) for cell in row] for row in rows)
            n_rows += len(rows)
        file.flush()
    return n_rows


def _open(out: Path | None) -> AbstractContextManager[IO[str]]:
    if out is None:
        return nullcontext(sys.stdout)
    return open(out, "w", newline="", encoding="utf-8")


class _Lines:
    """A file of text whose rows end in a line feed alone."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, row: str) -> None:
        self.file.write(row.removesuffix("\r\n") + "\n")


def _shown(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: an apostrophe makes it text."""
    if not (isinstance(cell, str) and cell.startswith(FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
