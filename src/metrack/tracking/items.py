"""Files of items: a point for each id, dense or sparse."""

import zipfile
from collections.abc import Mapping, Sequence
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
    columns: Sequence[str], example: Mapping[str, Any], spec: ReadSpec
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
