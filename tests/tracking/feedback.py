"""A small stream in every form that ``metrack track`` reads, and comparison of states."""

import json

import numpy as np

from metrack import COMID
from metrack.storage import read
from metrack.tracking.loop import Run, track
from metrack.tracking.saving import SavePolicy

N_FEATURES = 3
HEADER = [*(f"x_{i}" for i in range(N_FEATURES)), *(f"z_{i}" for i in range(N_FEATURES)), "y"]


def make_feedback(n_pairs=300, seed=0):
    """Items, rows of pairs, and labels."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(40, N_FEATURES))
    rows = rng.integers(len(items), size=(n_pairs, 2))
    y = np.where(np.abs(items[rows[:, 0], 0] - items[rows[:, 1], 0]) < 0.7, 1, -1)
    return items, rows, y


def wide_lines(items, rows, y):
    """CSV text, a line a pair; without a header."""
    pairs = items[rows].reshape(len(rows), -1).tolist()
    return [",".join(map(repr, p)) + f",{label}\n" for p, label in zip(pairs, y, strict=True)]


def write_csv(path, lines, header=HEADER):
    path.write_text(",".join(header) + "\n" + "".join(lines), encoding="utf-8")


def jsonl(items, rows, y):
    records = [
        {"x": items[a].tolist(), "z": items[b].tolist(), "y": int(label)}
        for (a, b), label in zip(rows, y, strict=True)
    ]
    return "".join(json.dumps(record) + "\n" for record in records)


def learner():
    return COMID(divergence="burg", rho=0.0, random_state=0)


def run(source, out, every=10**9, **options):
    given = Run(str(source), out, learner(), saves=SavePolicy(every, 10**9), **options)
    return track(given)


def learned(out):
    """All that must not depend on interruptions: bytes of arrays, place, history."""
    state = read(out)
    arrays = {name: (a.shape, a.tobytes()) for name, a in state.arrays.items()}
    return state.content["learner"], state.content["tracking"], arrays
