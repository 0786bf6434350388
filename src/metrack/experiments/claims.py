"""``metrack reproduce claims``: where the paper's claims hold, by time scale and speed of drift.

The paper gives neither. Here its schedule is stretched to several lengths, each with several speeds
of drift, and every combination is a cell: a study of its own with few trials. In each cell the
rates of all methods are chosen anew, on streams of their own, so that each is at its best there.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metrack.checks import whole
from metrack.experiments import claims_report, orchestrator
from metrack.experiments.drift import LEVEL, N_EVEN, SCHEDULES, Scale, Study, run_trial
from metrack.experiments.lattice import Axis, Problem, Search
from metrack.experiments.methods import Choice, tuned
from metrack.experiments.report import Json, check_writable, versions
from metrack.experiments.runner import Table, Trials
from metrack.experiments.summary import CONFIDENCE, mean_interval
from metrack.experiments.synthetic import WARM_UP, numbers_of, trial_columns
from metrack.experiments.tuning import ALONG, RATES, Course, Scores, choose, chosen
from metrack.experiments.verdicts import MEASURES, OURS, PAIRS_ONLY, PUBLISHED, Field, claims
from metrack.streams import paper_schedule
from metrack.streams.schedule import MODERATE
from metrack.terminal import plain_console

METHODS = (OURS, *PUBLISHED)
LENGTHS = (3000, 6000, 12_000, 24_000)
SPEEDS = (0.125, 0.25, 0.5, 1.0)
N_TUNING = 4  # streams that a rate is tried on
# What is chosen in each cell; all other settings are those of the long schedule.
FREE = {
    "sadl-published": ("eta0", Axis((-4, -3, -2))),
    "comid-high": ("learning_rate", RATES),
    "comid-low": ("learning_rate", RATES),
    "online-itml": ("learning_rate", Axis((-3, -2, -1))),
}


def reproduce(
    out: Path,
    n_trials: int,
    seed: int = 0,
    lengths: Sequence[int] = LENGTHS,
    speeds: Sequence[float] = SPEEDS,
    n_jobs: int = -1,
    cluster: str | None = None,
) -> Json:
    """Choose rates, run the trials that are missing, then write and print all there is to see.

    Parameters
    ----------
    out, n_jobs, cluster
        As `orchestrator.carry_out` takes them.
    n_trials : int
        Trials of each cell.
    seed : int
    lengths : sequence of int
        Pairs of a trial's stream, for each time scale.
    speeds : sequence of float
        Drift per pair, in units of `paper_schedule`'s.

    Returns
    -------
    dict
        The content of ``results.json``.
    """
    orchestrator.check_available()
    n_trials = whole("trials", n_trials)
    whole("seed", seed, least=0)
    scales = [
        Scale(n_pairs, speed) for n_pairs in sorted(set(lengths)) for speed in sorted(set(speeds))
    ]
    for scale in scales:
        paper_schedule(*scale)  # refuses a length that is too short
    check_writable(out)
    settings = choose_rates(out, scales, n_jobs, cluster)
    cells = [
        Study(METHODS, seed, settings=each, segments=paper_schedule(*scale))
        for scale, each in zip(scales, settings, strict=True)
    ]
    small = Study(METHODS, n_pairs=WARM_UP)
    trials = Trials(
        functools.partial(run_cell, cells),
        n_trials * len(cells),
        warm_up=functools.partial(run_trial, small, 0),
    )
    described = {"seed": seed, "cells": [scale._asdict() for scale in scales], "settings": settings}
    plan = orchestrator.Plan(described, trials, functools.partial(report, scales, cells, n_trials))
    return orchestrator.carry_out(plan, out, n_jobs, cluster)


def choose_rates(
    out: Path, scales: Sequence[Scale], n_jobs: int, cluster: str | None
) -> list[dict[str, Choice]]:
    """Each method's settings in each cell; what was tried is kept in ``tuning.json``."""
    known = tuned("long")
    by_cell: list[dict[str, Search]] = []
    searches: dict[Search, Course] = {}
    for scale in scales:
        found = {}
        for method, (free, axis) in FREE.items():
            fixed = {k: v for k, v in known[method]["knn_error"].items() if k != free}
            search = Search(Problem(method, {free: axis}, fixed), f"{scale}, {method}")
            stretch = ALONG.get(method, "all")
            # Where nothing drifts its speed does not matter.
            on = Scale(scale.n_pairs, 0.0) if stretch == "static" else scale
            searches[search] = Course(on, stretch, N_EVEN)
            found[method] = search
        by_cell.append(found)
    scores = Scores(out / "tuning.json", N_TUNING, n_jobs=n_jobs, cluster=cluster)
    choose(searches, scores, plain_console())
    rest = {name: known[name] for name in METHODS if name not in FREE}
    return [rest | {name: chosen(search) for name, search in found.items()} for found in by_cell]


def run_cell(cells: Sequence[Study], number: int) -> Table:
    """A trial of one cell: they take turns, so that more trials go on from fewer."""
    trial, cell = divmod(number, len(cells))
    return trial_columns(cells[cell], trial)


def report(
    scales: Sequence[Scale], cells: Sequence[Study], n_trials: int, columns: Table
) -> orchestrator.Report:
    """What the trials say together."""
    results: Json = {
        "format": 1,
        "study": "claims",
        "methods": list(METHODS),
        "seed": cells[0].seed,
        "n_trials": n_trials,
        "confidence": CONFIDENCE,
        "nmi_level": LEVEL,
        "schedules": {name: scale._asdict() for name, scale in SCHEDULES.items()},
        "cells": [],
    }
    for i, (scale, study) in enumerate(zip(scales, cells, strict=True)):
        here = columns["trial"] % len(cells) == i
        own = {name: column[here] for name, column in columns.items()}
        results["cells"].append(_cell(scale, study, own, n_trials))
    return orchestrator.Report(
        results,
        claims_report.draw(results),
        claims_report.page(results, versions()),
        functools.partial(claims_report.print_results, results),
    )


def _cell(scale: Scale, study: Study, columns: Table, n_trials: int) -> Json:
    numbers = numbers_of(study, columns, n_trials)
    field = Field(study, numbers)
    return {
        "n_pairs": scale.n_pairs,
        "speed": scale.speed,
        "segment": study.segments[1].length,
        "drift": scale.speed * MODERATE,
        "settings": study.settings,
        "methods": {
            name: {measure: _whole(field, name, measure) for measure in MEASURES}
            for name in METHODS
        },
        "best": {measure: field.best(METHODS, measure, field.whole) for measure in MEASURES},
        "claims": [
            claim.as_json()
            for claim in claims(study, numbers)
            if not claim.name.endswith(PAIRS_ONLY)
        ],
    }


def _whole(field: Field, name: str, measure: str) -> dict[str, float]:
    values = np.asarray(field.mean(name, measure, field.whole))
    return mean_interval(values)
