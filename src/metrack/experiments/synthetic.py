"""``metrack reproduce synthetic``: the drift study from its trials to its report."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metrack.checks import whole
from metrack.experiments import drift_report, orchestrator
from metrack.experiments.drift import MEASURES, REFERENCES, Contestant, Study, run_trial
from metrack.experiments.methods import check_methods
from metrack.experiments.report import Json, versions
from metrack.experiments.runner import Table, Trials
from metrack.experiments.summary import Numbers, summarise
from metrack.experiments.verdicts import claims

WARM_UP = 60  # pairs of the trial that compiles everything, before workers need it


def reproduce(
    out: Path,
    n_trials: int,
    methods: Sequence[str] = (),
    seed: int = 0,
    schedule: str = "long",
    n_pairs: int = 0,
    n_jobs: int = -1,
    cluster: str | None = None,
    anew: bool = False,
) -> Json:
    """Run the trials that are missing, then write and print all there is to see.

    Parameters
    ----------
    out, n_jobs, cluster, anew
        As `orchestrator.carry_out` takes them.
    n_trials : int
    methods : sequence of str
        Names, or ``package.module:Class``; by default all known ones.
    seed : int
    schedule : str
        One of `drift.SCHEDULES`.
    n_pairs : int
        Length of each trial's stream; 0 is the schedule's own.

    Returns
    -------
    dict
        The content of ``results.json``.
    """
    orchestrator.check_available()
    n_trials = whole("trials", n_trials)
    study = Study(check_methods(methods), seed, schedule, n_pairs)
    for name in study.methods:  # an estimator that cannot be made or used is refused now
        Contestant(name, study.choice(name), random_state=0)
    small = Study(study.methods, schedule=schedule, n_pairs=WARM_UP)
    trials = Trials(
        functools.partial(trial_columns, study),
        n_trials,
        warm_up=functools.partial(run_trial, small, 0),
    )
    plan = orchestrator.Plan(study.describe(), trials, functools.partial(report, study, n_trials))
    return orchestrator.carry_out(plan, out, n_jobs, cluster, anew)


def trial_columns(study: Study, number: int) -> Table:
    """A trial's numbers, a row for each method and evaluation."""
    found, steps = run_trial(study, number), study.steps()
    columns: Table = {
        "method": np.repeat(list(found), len(steps)),
        "step": np.tile(steps, len(found)),
    }
    for i, measure in enumerate(MEASURES):
        columns[measure] = np.concatenate([values[i] for values in found.values()])
    return columns


def report(study: Study, n_trials: int, columns: Table) -> orchestrator.Report:
    """What the trials say together."""
    numbers = numbers_of(study, columns, n_trials)
    results = summarise(study, numbers)
    results["claims"] = [claim.as_json() for claim in claims(study, numbers)]
    rates = drift_report.rates_of(study)
    return orchestrator.Report(
        results,
        drift_report.draw(results, rates),
        drift_report.page(results, rates, versions()),
        functools.partial(drift_report.print_results, results),
    )


def numbers_of(study: Study, columns: Table, n_trials: int) -> Numbers:
    """The trials' numbers, by method."""
    names, n_steps = (*REFERENCES, *study.methods), len(study.steps())
    shape = (n_trials, len(names), n_steps)
    arrays = [columns[measure].reshape(shape) for measure in MEASURES]
    return {name: np.stack([each[:, i] for each in arrays]) for i, name in enumerate(names)}
