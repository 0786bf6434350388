"""``metrack reproduce synthetic-tuning``: settings of the drift study's methods, chosen as it says.

The paper sets the high rate by cross-validation under moderate drift, the low rate under none, and
all else by cross-validation. Here every candidate follows the same streams, whose seeds no study
uses: the two single rates a stretch of moderate drift and of none, where only the second half
counts, once they have converged; all others the whole schedule. Chosen is the best by k-NN error,
and for clusters the best by the share of evaluations with an NMI above 0.8, if that is higher by a
point or more. MetricTracker's default is not tuned.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from metrack.checks import whole
from metrack.experiments import runner
from metrack.experiments.drift import (
    LEVEL,
    N_EVEN,
    SCHEDULES,
    Contestant,
    Scale,
    Study,
    segment_weights,
    track,
)
from metrack.experiments.lattice import MEASURES, Axis, Place, Problem, Score, Search, search_all
from metrack.experiments.methods import Choice
from metrack.experiments.report import Json, check_writable, versions, write_json
from metrack.streams import Segment, paper_schedule
from metrack.streams.schedule import MODERATE
from metrack.terminal import plain_console

SEED = 2**62  # away from seeds that people choose
DIGITS = 6
MATTERS = 0.01  # of P(NMI > 0.8), for which settings of its own are run
ALONG = {"comid-high": "moderate", "comid-low": "static"}  # what a method is tuned on; else all
RATES = Axis((-6, -5, -4))  # 0.001 to 0.01
RHOS = Axis((-7, -6, -5), zero=-11)  # 0.0003 to 0.003; 0.00001 is followed by 0
ROOT = math.sqrt(2.0)  # ratio of the targets
PULLS = Axis((-5, -4, -3))  # LMNN's pull against its push


def _is_share(settings: Json) -> bool:
    return bool(settings["regularization"] < 1.0)


PROBLEMS = (
    Problem("sadl-published", {"eta0": Axis((-4, -3, -2, -1)), "rho": RHOS}),
    Problem("comid-high", {"learning_rate": RATES, "rho": RHOS}),
    Problem("comid-low", {"learning_rate": RATES, "rho": RHOS}),
    Problem("lmnn", {"regularization": PULLS}, allowed=_is_share),
    Problem(
        "lmnn-window",
        {"window": Axis((7, 8, 9), ratio=2), "regularization": PULLS},
        allowed=_is_share,
    ),
    Problem(
        "online-itml",
        {
            "learning_rate": Axis((-2, -1)),
            "upper": Axis((-3, -2, -1), ROOT, digits=2),
            "lower": Axis((0, 1), ROOT, digits=2),
        },
        allowed=lambda settings: settings["upper"] <= settings["lower"],
    ),
)


class Course(NamedTuple):
    """What candidates are tried on: a length and speed, all of the schedule or one stretch."""

    scale: Scale
    stretch: str = "all"
    n_even: int = 2 * N_EVEN  # evaluations; tuning streams are few

    def study(self) -> Study:
        """A study of this course, without methods."""
        n_pairs, speed = self.scale
        stretches = {
            "all": paper_schedule(n_pairs, speed),
            "moderate": (Segment("B moderate", "B", n_pairs // 2, drift=speed * MODERATE),),
            "static": (Segment("A static", "A", n_pairs // 2),),
        }
        segments = stretches[self.stretch]
        return Study((), SEED, settings={}, segments=segments, n_even=self.n_even)


class Job(NamedTuple):
    """Candidates, each a method with its settings, that follow one stream of a course."""

    course: Course
    number: int
    candidates: tuple[tuple[str, Json], ...]


def score(job: Job) -> list[list[float]]:
    """For each candidate its k-NN error, share of NMI above the level, and NMI; all are means."""
    study = job.course.study()
    steps, weights = study.steps(), segment_weights(study)[-1]
    if job.course.stretch != "all":
        late = steps > study.n_pairs // 2
        steps, weights = steps[late], weights[late] / weights[late].sum()
    contestants = {
        i: Contestant(name, dict.fromkeys(MEASURES, settings), job.number)
        for i, (name, settings) in enumerate(job.candidates)
    }
    found = track(study.stream(job.number), steps, contestants, job.number)
    return [
        [float(values @ weights) for values in (error, nmi > LEVEL, nmi)]
        for error, nmi in found.values()
    ]


class Scores:
    """Means of all candidates that were tried, kept in a file; none is tried twice.

    Parameters
    ----------
    path : Path
    n_trials : int
        Streams that each candidate follows.
    where : dict
        ``n_jobs`` and ``cluster``, as `runner.run_each` takes them.
    """

    def __init__(self, path: Path, n_trials: int, **where: object) -> None:
        self.path = path
        self.n_trials = n_trials
        self.where = where
        self.settings = {"seed": SEED, "metrack": versions().get("metrack")}
        self.known: dict[str, list[list[float]]] = {}  # by candidate, for each stream
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["settings"] != self.settings:
                raise ValueError(f"{path} holds scores of another version; delete it to start anew")
            self.known = kept["scores"]

    def find(self, asked: Sequence[tuple[Course, str, Json]]) -> list[list[float]]:
        """Means over streams of what `score` gives, for each method with its settings."""
        names = [_name(*each) for each in asked]
        jobs = list(self._missing(asked, names))
        done = runner.run_each(score, jobs, **self.where)  # type: ignore[arg-type]
        for job, found in zip(jobs, done, strict=True):
            for (method, settings), values in zip(job.candidates, found, strict=True):
                self.known.setdefault(_name(job.course, method, settings), []).append(values)
            write_json(self.path, {"settings": self.settings, "scores": self.known})
        means = (np.mean(self.known[name][: self.n_trials], axis=0) for name in names)
        return [[round(value, DIGITS) for value in each.tolist()] for each in means]

    def _missing(
        self, asked: Sequence[tuple[Course, str, Json]], names: Sequence[str]
    ) -> Iterator[Job]:
        """A job for each stream: all candidates that have not followed it share its pairs."""
        by_stream: dict[tuple[int, Course], list[tuple[str, Json]]] = {}
        once = dict(zip(names, asked, strict=True))
        for name, (course, method, settings) in once.items():
            for number in range(len(self.known.get(name, [])), self.n_trials):
                by_stream.setdefault((number, course), []).append((method, settings))
        for number, course in sorted(by_stream):
            yield Job(course, number, tuple(by_stream[number, course]))


def _name(course: Course, method: str, settings: Json) -> str:
    where = f"{course.scale.n_pairs} pairs, speed {course.scale.speed:g}, {course.stretch}"
    return f"{where}: {method} {json.dumps(settings)}"


def choose(searches: Mapping[Search, Course], scores: Scores, console: Console) -> None:
    """Carry searches to their ends, each on its course."""

    def score_places(asked: Sequence[tuple[Search, Place]]) -> Iterator[dict[str, Score]]:
        console.print(f"Trying {len(asked)} settings ...", highlight=False)
        found = scores.find(
            [
                (searches[search], search.problem.method, search.problem.settings(place))
                for search, place in asked
            ]
        )
        for error, share, nmi in found:
            yield {"knn_error": (error,), "nmi": (-share, -nmi)}

    search_all(list(searches), score_places)


def best(search: Search) -> Choice:
    """The best settings by each measure."""
    return {measure: search.problem.settings(search.best(measure)) for measure in MEASURES}


def chosen(search: Search) -> Choice:
    """The settings to run by: the best by each measure, or one for both where that costs little."""
    found = best(search)
    shares = [-search.scores[search.best(measure)]["nmi"][0] for measure in MEASURES]
    if shares[1] - shares[0] < MATTERS:
        return dict.fromkeys(MEASURES, found["knn_error"])
    return found


def tune(out: Path, n_trials: int, n_jobs: int) -> None:
    """Try candidates until the best lies inside all that was tried; write ``tuned.json``.

    Parameters
    ----------
    out : Path
        Folder; made if missing. An interrupted run goes on where it stopped.
    n_trials : int
        Streams that each candidate follows.
    n_jobs : int
        Processes; -1 for one per core.
    """
    n_trials = whole("trials", n_trials)
    check_writable(out)
    console = plain_console()
    scores = Scores(out / "scores.json", n_trials, n_jobs=n_jobs)
    searches = {
        Search(problem, f"{schedule}, {problem.method}"): Course(
            scale, ALONG.get(problem.method, "all")
        )
        for schedule, scale in SCHEDULES.items()
        for problem in PROBLEMS
    }
    choose(searches, scores, console)
    by_schedule = {
        schedule: [search for search in searches if search.name.startswith(f"{schedule},")]
        for schedule in SCHEDULES
    }
    default: Choice = {measure: {} for measure in MEASURES}
    write_json(
        out / "tuned.json",
        {
            "command": f"metrack reproduce synthetic-tuning --trials {n_trials}",
            "versions": versions(),
            "n_trials": n_trials,
            "settings": {
                schedule: {"tracker": default}
                | {search.problem.method: chosen(search) for search in group}
                for schedule, group in by_schedule.items()
            },
            "candidates": {
                schedule: {search.problem.method: _tried(search) for search in group}
                for schedule, group in by_schedule.items()
            },
        },
    )
    for search in searches:
        words = f"{search.name}: {json.dumps(chosen(search))}"
        console.print(words, soft_wrap=True, highlight=False)
    console.print(f"Settings: {out / 'tuned.json'}", soft_wrap=True, highlight=False)


def _tried(search: Search) -> Json:
    """All candidates, the best by k-NN error first, and where a choice is a natural bound."""
    ranked = sorted(search.scores.items(), key=lambda each: each[1]["knn_error"])
    return {
        "best": best(search),
        "natural_bounds": {
            measure: search.problem.ends(search.best(measure)) for measure in MEASURES
        },
        "tried": [
            {
                "settings": search.problem.settings(place),
                "knn_error": found["knn_error"][0],
                "p_nmi": -found["nmi"][0],
                "nmi": -found["nmi"][1],
            }
            for place, found in ranked
        ],
    }
