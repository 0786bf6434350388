"""``metrack reproduce reviews``: the study of reviews from its trials to its report."""

import functools
import json
from pathlib import Path

import numpy as np

from metrack.checks import whole
from metrack.experiments import orchestrator, reviews_report
from metrack.experiments.report import Json, versions
from metrack.experiments.reviews_summary import summarise
from metrack.experiments.reviews_trials import Study, run_trial
from metrack.experiments.runner import Table, Trials
from metrack.streams import load_reviews

WARM_UP = 200  # reviews of the study that compiles everything, before workers need it


def reproduce(
    data: Path | None,
    out: Path,
    n_runs: int = 20,
    n_pairs: int = 20_000,
    seed: int = 0,
    n_jobs: int = -1,
    cluster: str | None = None,
) -> Json:
    """Run the trials that are missing, then write and print all there is to see.

    Parameters
    ----------
    data : Path or None
        As `load_reviews` takes it.
    out, n_jobs, cluster
        As `orchestrator.carry_out` takes them.
    n_runs : int
        Runs of each change.
    n_pairs : int
        Pairs before a change, and after it; a static embedding gets 15 times as many.
    seed : int

    Returns
    -------
    dict
        The content of ``results.json``.
    """
    orchestrator.check_available()
    study = Study(
        load_reviews(data),
        whole("seed", seed, least=0),
        whole("runs", n_runs),
        whole("pairs", n_pairs, least=100),
    )
    trials = Trials(
        functools.partial(trial_columns, study),
        study.n_trials,
        warm_up=functools.partial(_warm_up, study),
        per_file=1,  # a trial may take a minute
    )
    plan = orchestrator.Plan(study.describe(), trials, functools.partial(report, study))
    return orchestrator.carry_out(plan, out, n_jobs, cluster)


def trial_columns(study: Study, number: int) -> Table:
    """A trial's kind, and its result as JSON: a row."""
    kind, result = run_trial(study, number)
    return {"kind": np.array([kind]), "result": np.array([json.dumps(result, allow_nan=False)])}


def report(study: Study, columns: Table) -> orchestrator.Report:
    """What the trials say together."""
    done = list(zip(columns["kind"], map(json.loads, columns["result"]), strict=True))
    results = summarise(study, done)
    pictures = {
        question: {name: np.array(each) for name, each in shown.items()}
        for kind, result in done
        if kind == "picture"
        for question, shown in result.items()
    }
    return orchestrator.Report(
        results,
        reviews_report.draw(results, pictures),
        reviews_report.page(results, pictures, versions()),
        functools.partial(reviews_report.print_results, results),
    )


def _warm_up(study: Study) -> None:
    n_reviews = min(WARM_UP, study.corpus.counts.shape[0])
    small = Study(study.corpus.take(np.arange(n_reviews)), n_runs=1, n_pairs=100)
    for number in range(small.n_trials):
        run_trial(small, number)
