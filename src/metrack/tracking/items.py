"""Files of items: a point for each id, dense or sparse."""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metrack.estimators.inputs import Points, check_points
from metrack.tracking.columns import ReadSpec, item_layout, numbered
from metrack.tracking.layouts import Layout
from metrack.tracking.reader import Reader
from metrack.tracking.sources import SourceError, format_of

ENDINGS = "let it end in .csv, .tsv, .jsonl, .parquet, .arrow, .npy or .npz"


class Items(NamedTuple):
    """Points by id."""

    ids: list[str]
    points: Points
    features: list[str]

    @property
    def rows(self) -> dict[str, int]:
        """Row of each id."""
        return {key: i for i, key in enumerate(self.ids)}


class Mark(NamedTuple):
    """What a state keeps of its items: how many there were, and their fingerprint."""

    n_items: int
    fingerprint: str

    @classmethod
    def of(cls, items: Items, n_items: int | None = None) -> "Mark":
        """Ids and values of the first so many items, or of all; in whatever order they come."""
        n_items = len(items.ids) if n_items is None else n_items
        total = 0
        for key, (where, values) in zip(
            items.ids[:n_items], _sparse_rows(items.points), strict=False
        ):
            digest = hashlib.sha256(key.encode(errors="surrogatepass") + b"\0")
            digest.update(where.astype(np.int64).tobytes())
            digest.update(values.tobytes())
            total += int.from_bytes(digest.digest(), "big")
        return cls(n_items, f"{total % (1 << 256):064x}")


def _sparse_rows(points: Points) -> Iterator[tuple[Any, Any]]:
    """Where each point is not 0, and its values there: the same for all kinds of files."""
    if sp.issparse(points):
        for start, stop in pairwise(points.indptr):
            values = points.data[start:stop]
            yield points.indices[start:stop][values != 0.0], values[values != 0.0]
    else:
        for row in points:
            where = np.flatnonzero(row)
            yield where, row[where]


def check_unchanged(items: Items, mark: Mark | None, where: str) -> None:
    """Refuse items that are not those a state was learned with; there may be more after them."""
    if mark is None or Mark.of(items, mark.n_items) == mark:
        return
    raise ValueError(
        f"the items are not those that {where} was learned with: of {mark.n_items:,} items then "
        f"and {len(items.ids):,} now, some are gone or have other values. Give the earlier items, "
        "new ones after them; or --new-items to go on with what there is now"
    )


def check_features(items: Items, known: Sequence[str] | None, where: str) -> None:
    """Refuse items with other features than a state was learned on, and name the difference."""
    if known is None or items.features == list(known):
        return
    gone = [name for name in known if name not in set(items.features)]
    new = [name for name in items.features if name not in set(known)]
    if gone or new:
        lists = [("lack", gone), ("have", new)]
        what = " and ".join(f"{verb} {_some(names)}" for verb, names in lists if names)
    else:
        i = next(i for i, (a, b) in enumerate(zip(items.features, known, strict=True)) if a != b)
        what = f"have {items.features[i]!r} where {known[i]!r} was"
    raise ValueError(
        f"the items {what}: {where} was learned on {len(known)} features, in their order"
    )


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def read_items(path: Path, features: Sequence[str] | None = None) -> Items:
    """The items of a file.

    CSV, JSON Lines, Parquet and Arrow have a column ``id`` (else rows are numbered from 0) and a
    column for each feature, or a column ``embedding`` of lists; ``.npy`` is a matrix; ``.npz`` a
    CSR matrix as scipy saves it, or arrays ``X`` and, if ids are not row numbers, ``ids``.

    Parameters
    ----------
    path : Path
    features : sequence of str, optional
        The features to take from named columns, in this order.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix in (".npy", ".npz"):
        found = _from_arrays(path, features)
    else:
        found = _from_rows(path, features)
    seen: set[str] = set()
    for key in found.ids:
        if key in seen:
            raise SourceError(f"{path}: id {key!r} is there twice")
        seen.add(key)
    return found


def _from_rows(path: Path, features: Sequence[str] | None) -> Items:
    # By the name alone: there is no option for the format of items.
    format_ = format_of(path, "auto", ENDINGS) if path.is_file() else "auto"
    reader = Reader(str(path), ReadSpec(features=features), format_, find_layout=_layout)
    batches = list(reader.batches())
    for batch in batches:
        for row in batch.bad:
            raise SourceError(f"{row.file}:{row.line}: {row.why}")
    if not sum(len(batch.rows.y) for batch in batches):
        raise SourceError(f"{path} holds no items")
    points = np.concatenate([batch.rows.points[:, 0] for batch in batches])
    keys = np.concatenate([batch.rows.keys for batch in batches])
    ids = keys[:, 0].tolist() if keys.shape[1] else _row_numbers(len(points))
    return Items(ids, points, list(batches[0].features or numbered(points.shape[1])))


def _layout(
    columns: Sequence[str], example: Mapping[str, object], spec: ReadSpec
) -> tuple[Layout, list[str]]:
    return item_layout(columns, example, spec.features)


def _from_arrays(path: Path, features: Sequence[str] | None) -> Items:
    try:
        loaded = np.load(path, allow_pickle=False)  # a pickle could run anything
        if path.suffix == ".npy":
            points, ids = loaded, None
        else:
            points, ids = _from_archive(path, loaded)
        checked = check_points(points, "items")
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: {error}") from None
    n_points, width = checked.shape
    names = _row_numbers(n_points) if ids is None else [str(each) for each in ids.tolist()]
    if len(names) != n_points:
        raise SourceError(f"{path}: {len(names)} ids for {n_points} points")
    if features is not None and len(features) != width:
        raise SourceError(f"{path}: {width} features, but the state was learned on {len(features)}")
    return Items(names, checked, list(features or numbered(width)))


def _from_archive(path: Path, loaded: Any) -> tuple[Any, Any]:
    ids = loaded["ids"] if "ids" in loaded.files else None
    if {"data", "indices", "indptr", "shape"} <= set(loaded.files):
        parts = loaded["data"], loaded["indices"], loaded["indptr"]
        matrix = sp.csr_array(parts, shape=tuple(loaded["shape"].tolist()))
        matrix.check_format(full_check=True)
        return matrix, ids
    if "X" not in loaded.files:
        raise ValueError("expected a CSR matrix as scipy saves it, or an array X")
    return loaded["X"], ids


def _row_numbers(n_rows: int) -> list[str]:
    return [str(i) for i in range(n_rows)]
