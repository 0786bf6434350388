"""Judged pairs of several keys, and what one tracker after another learns from them."""

import json

import numpy as np

import metrack
from metrack.estimators.states.persistence import dump

SCHEMA = "metric string, sequence bigint, x array<double>, z array<double>, y int"


def pairs_of(seed, n_pairs, n_features=4):
    """Pairs and labels; alike are points close in one feature, which depends on the key."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n_pairs, 2, n_features))
    apart = np.abs(pairs[:, 0] - pairs[:, 1])[:, seed % n_features]
    return pairs, np.where(apart < 1, 1, -1)


def feedback(n_keys, n_pairs, n_features=4):
    """Rows of all keys, keys in turn."""
    keys = {f"key-{i}": pairs_of(i, n_pairs, n_features) for i in range(n_keys)}
    return [
        (key, t, pairs[t, 0].tolist(), pairs[t, 1].tolist(), int(y[t]))
        for t in range(n_pairs)
        for key, (pairs, y) in keys.items()
    ]


def alone(rows, make=metrack.MetricTracker):
    """By key, the state of a tracker of its own."""
    keys = sorted({row[0] for row in rows})
    found = {}
    for key in keys:
        own = sorted((row for row in rows if row[0] == key), key=lambda row: row[1])
        tracker = make()
        tracker.observe([[x, z] for _, _, x, z, _ in own], [y for *_, y in own])
        found[key] = dump(tracker)
    return found


def write(rows, file):
    """A file of JSON lines."""
    names = ("metric", "sequence", "x", "z", "y")
    lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    file.write_text("\n".join(lines) + "\n")
