"""Pairs of ids, and the items that they name."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from metrack.tracking.items import read_items
from metrack.tracking.quarantine import BadRowError
from metrack.tracking.sources import SourceError
from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    learned,
    learner,
    run,
)
from tests.tracking.forms import (
    ITEMS,
    ROWS,
    Y,
    check,
)


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
def test_pairs_of_ids(name, tmp_path):
    write_id_csv(tmp_path / "pairs.csv")
    ITEM_FILES[name](tmp_path / name)
    items = read_items(tmp_path / name)
    run(tmp_path / "pairs.csv", tmp_path / "state", items=items)
    check(tmp_path / "state", learner().observe_points(ITEMS).partial_fit(ITEMS[ROWS], Y))


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


def test_pairs_of_row_numbers_with_sparse_items(tmp_path):
    sp.save_npz(tmp_path / "i.npz", sp.csr_array(ITEMS))
    rows = [{"a": int(a), "b": int(b), "y": bool(y > 0)} for (a, b), y in zip(ROWS, Y, strict=True)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(tmp_path / "p.jsonl", tmp_path / "state", items=read_items(tmp_path / "i.npz"))
    bare = learner().set_params(preprocessor=sp.csr_array(ITEMS))
    bare.observe_points(np.arange(len(ITEMS))).observe(ROWS, Y)
    check(tmp_path / "state", bare)


def test_unknown_id(tmp_path):
    ITEM_FILES["i.csv"](tmp_path / "i.csv")
    (tmp_path / "p.csv").write_text("a,b,y\nitem 1,item 2,1\nitem 1,item 99,1\n")
    with pytest.raises(BadRowError, match=r"p\.csv:3: b = 'item 99' is not among the items"):
        run(tmp_path / "p.csv", tmp_path / "state", items=read_items(tmp_path / "i.csv"))


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
