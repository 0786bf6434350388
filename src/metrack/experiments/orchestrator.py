"""Every study of ``metrack reproduce``, from its trials to its report.

A study says what a trial is and what trials say together. Here they are run where they are missing,
and all there is to see is written and printed. The same call later goes on where it stopped.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from metrack import pages, plots
from metrack.experiments import runner
from metrack.experiments.report import Json, check_writable, save_figure, versions, write_json
from metrack.terminal import plain_console

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Report(NamedTuple):
    """What a study found, in every form that it takes.

    Attributes
    ----------
    results : JSON object
        All numbers; the same bytes from every run with the same settings.
    figure : matplotlib Figure
    page : Page
    show : callable
        Prints tables and claims.
    """

    results: Json
    figure: "Figure"
    page: pages.Page
    show: Callable[[Console], None]


class Plan(NamedTuple):
    """A study, as far as carrying it out goes.

    Attributes
    ----------
    settings : JSON object
        All that a trial's numbers depend on.
    trials : Trials
    report : callable
        From the columns of the trials, in their order, to the report.
    """

    settings: Mapping[str, object]
    trials: runner.Trials
    report: Callable[[runner.Table], Report]


def check_available() -> None:
    """Raise an ImportError that says what to install, unless studies can be carried out."""
    plots.check_available()
    pages.check_available()
    runner.check_available()


def carry_out(
    plan: Plan, out: Path, n_jobs: int = -1, cluster: str | None = None, anew: bool = False
) -> Json:
    """Run the trials that are missing, then write and print all there is to see.

    Parameters
    ----------
    plan : Plan
    out : Path
        Folder for the results; made if missing. One that holds part of the same study is continued.
    n_jobs : int
        Processes; -1 for one per core.
    cluster : str, optional
        Address of a Dask scheduler that runs the trials in their place.
    anew : bool
        Forget what the folder holds.

    Returns
    -------
    dict
        The content of ``results.json``.
    """
    check_writable(out)
    console, started = plain_console(), time.time()
    if anew:
        _forget(out)
    settings = {**plan.settings, "metrack": versions().get("metrack")}
    store = runner.TrialStore(out, settings)
    runner.run_trials(plan.trials, store, n_jobs, cluster, console)
    report = plan.report(_first(store.load(), plan.trials.n))
    write_json(out / "results.json", report.results)
    write_json(out / "run.json", _provenance(n_jobs, cluster, started))
    save_figure(report.figure, out)
    report.page.write(out / "report.html")
    report.show(console)
    _say_where(out, console)
    return report.results


def _first(columns: runner.Table, n_trials: int) -> runner.Table:
    """The first trials: an earlier run may have had more."""
    kept = columns["trial"] < n_trials
    return {name: column[kept] for name, column in columns.items()}


def _forget(out: Path) -> None:
    for path in (out / "settings.json", *(out / "raw").glob("trials-*.parquet")):
        path.unlink(missing_ok=True)


def _provenance(n_jobs: int, cluster: str | None, started: float) -> Json:
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
