"""A first look: SADL and two fixed learning rates on the paper's drift, on one small stream."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from metrack import plots
from metrack.estimators.comid import COMID
from metrack.estimators.online import OnlineLearner
from metrack.estimators.sadl import SADL
from metrack.streams import DriftingClusters, paper_schedule
from metrack.streams.checks import Floats, Ints

EVERY = 50  # pairs between evaluations
N_TESTED = 500  # points whose neighbours are looked up
N_NEIGHBORS = 5


def run(out: Path, seed: int, n_pairs: int) -> None:
    """Track the paper's drift with SADL and two COMID rates; print a table, save a figure.

    Parameters
    ----------
    out : Path
        Folder for ``figure.png``; made if missing.
    seed : int
        Same seed, same results.
    n_pairs : int
        Length of the stream.
    """
    plots.check_available()
    stream = DriftingClusters(seed=seed, schedule=paper_schedule(n_pairs))
    _check_writable(out)
    console = Console()
    learners: dict[str, OnlineLearner] = {
        "SADL": SADL(),
        "COMID fast": COMID(learning_rate=1.0),
        "COMID slow": COMID(learning_rate=0.02),
    }
    steps = np.append(np.arange(EVERY, n_pairs, EVERY), n_pairs)
    errors = _track(stream, learners, steps, console)
    references = _references(stream, steps)
    console.print(_table(stream, steps, errors | references))
    figure = out / "figure.png"
    plots.tracking(figure, stream.rate_of_change(), steps, errors, references, stream.marks)
    console.print(f"Figure: {figure}", soft_wrap=True, highlight=False)


def _check_writable(out: Path) -> None:
    """Fail now rather than after the work."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out):
        pass


def _track(
    stream: DriftingClusters, learners: Mapping[str, OnlineLearner], steps: Ints, console: Console
) -> dict[str, Floats]:
    """Error of each learner's embedding after so many pairs."""
    errors = {name: np.empty(len(steps)) for name in learners}
    starts = [0, *steps[:-1].tolist()]
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        ranges = list(zip(starts, steps.tolist(), strict=True))
        for i, (start, stop) in enumerate(progress.track(ranges, description="Tracking")):
            pairs, y = stream.pairs(start, stop)
            points, labels = stream.points(stop - 1)[:N_TESTED], stream.labels(stop - 1)[:N_TESTED]
            for name, learner in learners.items():
                learner.partial_fit(pairs, y)
                errors[name][i] = _neighbour_error(learner.transform(points), labels)
    return errors


def _references(stream: DriftingClusters, steps: Ints) -> dict[str, Floats]:
    """Error without a metric and with the true one: the same throughout a partition."""
    asked = np.array([stream.partition(step - 1) for step in steps])
    raw, true = np.empty(len(steps)), np.empty(len(steps))
    for partition in set(asked.tolist()):
        here = asked == partition
        t = int(steps[here][0]) - 1
        points, labels = stream.points(t)[:N_TESTED], stream.labels(t)[:N_TESTED]
        raw[here] = _neighbour_error(points, labels)
        true[here] = _neighbour_error(points @ stream.components(t).T, labels)
    return {"raw": raw, "true metric": true}


def _neighbour_error(points: Floats, labels: Ints) -> float:
    """Share of points that their nearest neighbours, themselves left out, assign wrongly."""
    if points.shape[1] == 0:  # the zero metric: all points are one
        points = np.zeros((len(points), 1))
    classifier = KNeighborsClassifier(N_NEIGHBORS).fit(points, labels)
    return 1.0 - float(accuracy_score(labels, classifier.predict(None)))


def _table(stream: DriftingClusters, steps: Ints, errors: Mapping[str, Floats]) -> Table:
    table = Table(title="k-NN error (%), mean over each segment")
    for column in ("segment", "pairs", *errors):
        table.add_column(column, justify="left" if column == "segment" else "right")
    starts = [start for start, _ in stream.marks]
    segment = np.searchsorted(starts, steps - 1, side="right") - 1
    for i, part in enumerate(stream.schedule):
        means = [_mean(values[segment == i]) for values in errors.values()]
        table.add_row(part.name, f"{part.length:,}", *means)
    table.add_section()
    table.add_row("all", f"{len(stream):,}", *(_mean(values) for values in errors.values()))
    return table


def _mean(errors: Floats) -> str:
    return f"{100 * errors.mean():.1f}" if errors.size else "-"
