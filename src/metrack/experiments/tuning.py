"""``metrack reproduce synthetic-tuning``: settings of the drift study's methods, chosen as it says.

The paper sets the high rate by cross-validation under moderate drift, the low rate under none, and
all else by cross-validation. Here every candidate follows the same streams, whose seeds no study
uses, and the lowest mean k-NN error is chosen. SADL's default is not tuned.
"""

import functools
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from metrack.checks import whole
from metrack.experiments import runner
from metrack.experiments.drift import Study, run_trial, segment_weights
from metrack.experiments.report import Json, check_writable, versions, write_json
from metrack.streams import Segment, paper_schedule
from metrack.streams.schedule import MODERATE
from metrack.terminal import plain_console

SEED = 2**62  # away from seeds that people choose
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)
RHOS = (0.0003, 0.001, 0.003, 0.01)
PAPER = paper_schedule()
SCHEDULES: dict[str, tuple[Segment, ...]] = {
    "comid-high": (Segment("B moderate", "B", 3000, drift=MODERATE),),
    "comid-low": (Segment("A static", "A", 3000),),
}
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "sadl-published": {"eta0": (0.1, 0.3, 1.0, 3.0), "rho": RHOS},
    "comid-high": {"learning_rate": RATES, "rho": RHOS},
    "comid-low": {"learning_rate": RATES, "rho": RHOS},
    "lmnn": {"regularization": (0.01, 0.03, 0.1, 0.3)},
    "lmnn-window": {"window": (200, 400), "regularization": (0.01, 0.03, 0.1)},
    "online-itml": {
        "learning_rate": (0.03, 0.1, 0.3, 1.0),
        "upper": (0.25, 0.5, 0.7),
        "lower": (0.7, 1.0),
    },
}


def tune(out: Path, n_trials: int, n_jobs: int) -> None:
    """Try every candidate, and write the best of each method to ``tuned.json``.

    Parameters
    ----------
    out : Path
        Folder; made if missing. An interrupted run goes on where it stopped.
    n_trials : int
        Streams that each candidate follows.
    n_jobs : int
        Processes; -1 for one per core.
    """
    runner.check_available()
    n_trials = whole("trials", n_trials)
    check_writable(out)
    console = plain_console()
    candidates = {name: _candidates(grid) for name, grid in GRIDS.items()}
    settings = {"grids": GRIDS, "seed": SEED, "metrack": versions().get("metrack")}
    store = runner.TrialStore(out, settings)
    trials = runner.Trials(functools.partial(score_all, candidates), n_trials)
    runner.run_trials(trials, store, n_jobs, None, console)
    columns = store.load()
    found: dict[str, list[Json]] = {}
    for name, tried in candidates.items():
        here = (columns["method"] == name) & (columns["trial"] < n_trials)
        errors = columns["knn_error"][here].reshape(n_trials, len(tried)).mean(axis=0)
        ranked = np.argsort(errors, kind="stable")
        found[name] = [
            {"settings": tried[i], "knn_error": round(float(errors[i]), 5)} for i in ranked
        ]
        console.print(f"{name}: {found[name][0]}", highlight=False)
    write_json(
        out / "tuned.json",
        {
            "command": f"metrack reproduce synthetic-tuning --trials {n_trials}",
            "versions": versions(),
            "n_trials": n_trials,
            "settings": {"sadl": {}}
            | {name: tried[0]["settings"] for name, tried in found.items()},
            "candidates": found,
        },
    )
    console.print(f"Settings: {out / 'tuned.json'}", soft_wrap=True, highlight=False)


def _candidates(grid: Mapping[str, tuple[Any, ...]]) -> list[Json]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def score_all(candidates: Mapping[str, list[Json]], number: int) -> runner.Table:
    """Mean k-NN error of every candidate on one stream."""
    rows = [
        (name, i, score(name, settings, number))
        for name, tried in candidates.items()
        for i, settings in enumerate(tried)
    ]
    names, places, errors = zip(*rows, strict=True)
    return {
        "method": np.array(names),
        "candidate": np.array(places),
        "knn_error": np.array(errors),
    }


def score(name: str, settings: Json, number: int) -> float:
    """Mean k-NN error of one method with given settings over the stream it is tuned on."""
    segments = SCHEDULES.get(name, PAPER)
    length = sum(segment.length for segment in segments)
    study = Study((name,), SEED, length, {name: settings}, segments)
    return float(run_trial(study, number)[name][0] @ segment_weights(study)[-1])
