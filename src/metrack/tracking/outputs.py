"""What the commands write: embedded items, and distances of pairs."""

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from metrack.tracking.columns import Wanted
from metrack.tracking.items import Items, read_items
from metrack.tracking.loop import Tracking
from metrack.tracking.reader import Reader
from metrack.tracking.sources import SourceError, arrow

ENDINGS = (".csv", ".npy", ".npz", ".parquet")


def transform(state: Path, items: Path, out: Path | None) -> int:
    """Embed the items of a file; returns how many."""
    if out is not None and out.suffix not in ENDINGS:
        raise ValueError(f"{out}: the name must end in {', '.join(ENDINGS)}")
    tracking = Tracking.load(state)
    found = read_items(items, tracking.features)
    try:
        embedded = tracking.learner.transform(found.points)
    except ValueError as error:
        raise ValueError(f"{items}: {error}") from None
    names = [f"e_{i + 1}" for i in range(embedded.shape[1])]
    if out is None or out.suffix == ".csv":
        rows = ([key, *row] for key, row in zip(found.ids, embedded.tolist(), strict=True))
        with _csv(out, ["id", *names]) as writer:
            writer.writerows(rows)
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
) -> int:
    """Score the pairs of a source as CSV, in bounded memory; returns how many."""
    tracking = Tracking.load(state, items)
    known = items.rows if items else None
    reader = Reader(
        source, Wanted(layout, known, labelled=False, features=tracking.features), format_
    )
    n_pairs = 0
    names = ["a", "b"] if items else ["row"]
    with _csv(out, [*names, "distance", "alike"]) as writer:
        for batch in reader.batches():
            rows = batch.rows
            if len(rows.y):
                pairs = rows.keys if items else rows.points
                distances = tracking.learner.pair_distance(pairs)
                alike = np.where(distances <= tracking.learner.threshold_, 1, -1)
                if items:
                    left: Sequence[Any] = [[items.ids[i] for i in row] for row in rows.keys]
                else:
                    left = [[n_pairs + i + 1] for i in range(len(distances))]
                scored = zip(left, distances.tolist(), alike.tolist(), strict=True)
                writer.writerows([*first, d, y] for first, d, y in scored)
                n_pairs += len(distances)
            for bad in batch.bad:
                raise SourceError(f"{bad.file}:{bad.line}: {bad.why}")
    return n_pairs


@contextmanager
def _csv(out: Path | None, header: Sequence[str]) -> Iterator[Any]:
    if out is None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(header)
        yield writer
        sys.stdout.flush()
        return
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        yield writer
