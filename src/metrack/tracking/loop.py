"""The loop behind ``metrack track``: read, learn, save; and go on where the last run stopped."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metrack.estimators.bases.online import OnlineLearner
from metrack.storage import StateFolder, has_state
from metrack.tracking.columns import Columns, ReadSpec
from metrack.tracking.history import effective_window, last_change
from metrack.tracking.items import Items, Mark, check_unchanged
from metrack.tracking.pieces import Pace, Piece, pieces
from metrack.tracking.prefetch import prefetch
from metrack.tracking.quarantine import Quarantine
from metrack.tracking.reader import Reader
from metrack.tracking.saving import SavePolicy, Saver
from metrack.tracking.signals import Stop
from metrack.tracking.sources import SourceError
from metrack.tracking.state import Tracking


class Progress(NamedTuple):
    """What a run tells while it goes on."""

    pairs: int  # learned in this run
    seen: int  # learned in all
    bad: int  # rows that could not be used, in this run
    loss: float  # of late


class Run(NamedTuple):
    """What to track, and how."""

    source: str
    out: Path
    learner: OnlineLearner
    settings: Mapping[str, object] = {}  # those that were asked for
    items: Items | None = None
    layout: str = "auto"
    format_: str = "auto"
    columns: Columns = Columns()
    bad_rows: str = "stop"  # "stop", "skip", or a file
    new_source: bool = False
    new_items: bool = False
    saves: SavePolicy = SavePolicy()


def track(
    run: Run,
    show: Callable[[Progress], None] = lambda progress: None,
    log: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Learn all rows of a source that are not learned yet, saving as it goes.

    Every 256 pairs, or 0.1 seconds of learning, it looks whether to save or to end.

    Parameters
    ----------
    run : Run
    show : callable
        Told how far it has come, as often.
    log : callable
        Told in a line when a change is noticed.
    clock : callable
        Seconds since some moment.

    Raises
    ------
    BadRowError
        At the first bad row, if these stop; all before it is learned and saved.
    """
    with StateFolder(run.out) as folder, Stop() as stop:
        tracking = _begin(run)
        quarantine = Quarantine(run.bad_rows, tracking)
        saver = Saver(run.saves, folder, tracking, quarantine, clock)
        watch, learned, bad = Watch(tracking, log), 0, 0
        try:
            for piece in _learn(run, tracking, Pace(clock), stop):
                if piece is not None:
                    learned += piece.n_pairs
                    bad += len(piece.bad)
                    saver.count(piece)
                    watch.look()
                    show(_progress(tracking, learned, bad))
                saver.save_if_due()
        except SourceError:
            saver.save()  # what came before is good
            raise
        saver.save()
        quarantine.check()
        return _progress(tracking, learned, bad)


def _begin(run: Run) -> Tracking:
    if not has_state(run.out):
        run.learner.preprocessor = run.items.points if run.items else None
        tracking = Tracking(run.learner, run.items)
        tracking.mark = Mark.of(run.items) if run.items else None
        if run.items is not None and run.learner.takes_points(run.items.points.shape[1]):
            run.learner.observe_points(run.items.points)
        return tracking
    tracking = Tracking.load(run.out, run.items)
    if run.items is not None:
        if not run.new_items:
            check_unchanged(run.items, tracking.mark, str(run.out))
        tracking.mark = Mark.of(run.items)
    learner = tracking.learner
    if type(learner) is not type(run.learner) and "estimator" in run.settings:
        raise ValueError(
            f"{run.out} holds {type(learner).__name__}, not {type(run.learner).__name__}; leave "
            "--estimator out to go on with it, or give another folder"
        )
    now = learner.get_params()
    for name, value in run.settings.items():
        if name in now and now[name] != value:
            raise ValueError(
                f"{run.out} was learned with {name}={now[name]!r}, not {value!r}; leave it out to "
                "go on, or give another folder"
            )
    if run.new_source:
        tracking.checkpoint = None
    return tracking


def _learn(run: Run, tracking: Tracking, pace: Pace, stop: Stop) -> Iterator[Piece | None]:
    """Learn piece by piece; None where there is nothing to learn for a moment."""
    known = run.items.rows if run.items else None
    spec = ReadSpec(run.layout, known, features=tracking.features, columns=run.columns)
    reader = Reader(run.source, spec, run.format_, stop=run.bad_rows == "stop")
    for batch in prefetch(reader.batches(tracking.checkpoint, tracking.columns), stop):
        if batch is None:
            yield None
            continue
        tracking.features, tracking.columns = batch.features, batch.columns
        for piece in pieces(batch, tracking, pace):
            yield piece
            if stop.asked.is_set():
                return


def _progress(tracking: Tracking, learned: int, bad: int) -> Progress:
    if tracking.history is None:
        return Progress(learned, 0, bad, float("nan"))
    return Progress(learned, tracking.learner.n_pairs_seen_, bad, tracking.history.latest())


class Watch:
    """Writes a line when a change is noticed."""

    def __init__(self, tracking: Tracking, log: Callable[[str], None]) -> None:
        self.tracking, self.log = tracking, log
        self.changed = last_change(tracking.learner)

    def look(self) -> None:
        """Compare with the last look."""
        changed = last_change(self.tracking.learner)
        if not changed or changed == self.changed:
            return
        window, seen = effective_window(self.tracking.learner), self.tracking.learner.n_pairs_seen_
        trusted = "" if np.isnan(window) else f"; the metric rests on the last {window:,.0f} pairs"
        self.log(f"pair {changed:,}: a change was noticed{trusted} (at pair {seen:,})")
        self.changed = changed
