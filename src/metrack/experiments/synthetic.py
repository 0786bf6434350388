"""``metrack reproduce synthetic``: the drift study from its trials to its report."""

import functools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from metrack import pages, plots
from metrack.checks import whole
from metrack.experiments import drift_report, runner
from metrack.experiments.drift import MEASURES, REFERENCES, Study, run_trial
from metrack.experiments.methods import Follower, check_methods
from metrack.experiments.report import check_writable, versions, write_json
from metrack.experiments.summary import Numbers, summarise
from metrack.terminal import plain_console

WARM_UP = 60  # pairs of the trial that compiles everything, before workers need it


def reproduce(
    out: Path,
    n_trials: int,
    methods: Sequence[str] = (),
    seed: int = 0,
    n_pairs: int = 6000,
    n_jobs: int = -1,
    cluster: str | None = None,
    anew: bool = False,
) -> dict[str, Any]:
    """Run the trials that are missing, then write and print all there is to see.

    Parameters
    ----------
    out : Path
        Folder for the results; made if missing. One that holds part of the same study is continued.
    n_trials : int
    methods : sequence of str
        Names, or ``package.module:Class``; by default all known ones.
    seed : int
    n_pairs : int
        Length of each trial's stream.
    n_jobs : int
        Processes; -1 for one a core.
    cluster : str, optional
        Address of a Dask scheduler that runs the trials in their place.
    anew : bool
        Forget what the folder holds.

    Returns
    -------
    dict
        The content of ``results.json``.
    """
    plots.check_available()
    pages.check_available()
    runner.check_available()
    n_trials = whole("trials", n_trials)
    study = Study(check_methods(methods), seed=seed, n_pairs=n_pairs)
    for name in study.methods:  # an estimator that cannot be made or used is refused now
        Follower(name, dict(study.settings.get(name, {})), random_state=0)
    check_writable(out)
    console, started = plain_console(), time.time()
    if anew:
        _forget(out)
    store = runner.TrialStore(out, {**study.describe(), "metrack": versions().get("metrack")})
    _run(study, n_trials, store, n_jobs, cluster, console)
    results = summarise(study, numbers_of(study, store.load(), n_trials))
    rates = drift_report.rates_of(study)
    write_json(out / "results.json", results)
    write_json(out / "run.json", _provenance(n_jobs, cluster, started))
    drift_report.draw(results, rates, out)
    drift_report.page(results, rates, versions()).write(out / "report.html")
    drift_report.print_results(results, console)
    _say_where(out, console)
    return results


def _run(
    study: Study,
    n_trials: int,
    store: runner.TrialStore,
    n_jobs: int,
    cluster: str | None,
    console: Console,
) -> None:
    if cluster is None:
        with console.status("Compiling, once ..."):
            run_trial(Study(study.methods, n_pairs=WARM_UP, settings=study.settings), 0)
    trial = functools.partial(trial_columns, study)
    runner.run_trials(trial, n_trials, store, n_jobs, cluster, console)


def trial_columns(study: Study, number: int) -> runner.Table:
    """A trial's numbers, a row for each method and evaluation."""
    found, steps = run_trial(study, number), study.steps()
    columns: runner.Table = {
        "method": np.repeat(list(found), len(steps)),
        "step": np.tile(steps, len(found)),
    }
    for i, measure in enumerate(MEASURES):
        columns[measure] = np.concatenate([values[i] for values in found.values()])
    return columns


def numbers_of(study: Study, columns: runner.Table, n_trials: int) -> Numbers:
    """The first trials' numbers, by method."""
    names, n_steps = (*REFERENCES, *study.methods), len(study.steps())
    shape = (n_trials, len(names), n_steps)
    kept = columns["trial"] < n_trials
    arrays = [columns[measure][kept].reshape(shape) for measure in MEASURES]
    return {name: np.stack([each[:, i] for each in arrays]) for i, name in enumerate(names)}


def _forget(out: Path) -> None:
    for path in (out / "settings.json", *(out / "raw").glob("trials-*.parquet")):
        path.unlink(missing_ok=True)


def _provenance(n_jobs: int, cluster: str | None, started: float) -> dict[str, Any]:
    """What the numbers do not depend on: when and how this run was made."""
    return {
        "command": " ".join(["metrack", *sys.argv[1:]]),
        "versions": versions(),
        "cpus": os.cpu_count(),
        "n_jobs": n_jobs,
        "cluster": cluster is not None,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.time() - started, 1),
    }


def _say_where(out: Path, console: Console) -> None:
    for title, name in (
        ("Figure", "figure.png"),
        ("Report", "report.html"),
        ("Results", "results.json"),
        ("Raw numbers", "raw"),
    ):
        console.print(f"{title}: {out / name}", soft_wrap=True, highlight=False)
