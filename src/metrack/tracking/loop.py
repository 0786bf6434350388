"""The loop behind ``metrack track``: read, learn, save; and go on where the last run stopped."""

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from metrack.estimators.online import OnlineLearner
from metrack.estimators.persistence import pack, unpack
from metrack.storage import CorruptStateError, State, StateFolder, has_state, read
from metrack.tracking.columns import Columns, Wanted
from metrack.tracking.formats import BadRow
from metrack.tracking.history import History, memory_of
from metrack.tracking.items import Items
from metrack.tracking.layouts import Rows
from metrack.tracking.reader import Batch, Reader
from metrack.tracking.sources import SourceError

AHEAD = 4  # batches that wait to be learned
WAIT = 0.2  # seconds to wait for rows between looks at the clock and at signals ...
LOOK_PAIRS, LOOK_SECONDS = 256, 0.1  # ... and at most so much learning
RECENT = 200  # pairs kept for a look at the embedding ...
RECENT_BYTES = 1 << 22  # ... or so many bytes of them
MOST_HELD = 10_000  # bad rows that wait to be written

Floats = NDArray[np.float64]


class BadRowError(ValueError):
    """A row that cannot be used, where such rows stop everything."""


class Progress(NamedTuple):
    """What a run tells while it goes on."""

    pairs: int  # learned in this run
    seen: int  # learned in all
    bad: int  # rows that could not be used, in this run
    loss: float  # of late


class Tracking:
    """A learner, its place in a source, and how it went: all that a state folder holds.

    Parameters
    ----------
    learner : OnlineLearner
        Fitted or not.
    items : Items, optional
        Points that ids refer to.
    """

    def __init__(self, learner: OnlineLearner, items: Items | None) -> None:
        self.learner, self.items = learner, items
        self.place: dict[str, Any] | None = None
        self.features: list[str] | None = items.features if items else None
        self.columns: list[str] | None = None
        self.bad_rows = 0
        self.aside: dict[str, Any] = {}  # the file of bad rows, and its size
        self.history: History | None = None
        self.recent: Floats | None = None  # the last pairs, (n, 2, n_features), and their labels
        self.recent_y: Floats = np.empty(0)

    def learn(self, rows: Rows, start: int, most: int) -> int:
        """Learn some rows, from ``start`` on and at most so many; returns how many."""
        if start == len(rows.y):
            return 0
        # The first pair alone tells how many features there are.
        room = 1 if self.history is None else self.history.room
        piece = slice(start, start + min(most, room))
        given = rows.keys if self.items is not None else rows.points
        losses = self.learner.observe(given[piece], rows.y[piece])
        if self.history is None:
            self.history = History(self.learner.n_features_in_)
        self.history.add(losses, self.learner)
        if self.items is None:
            self._remember(rows.points[piece], rows.y[piece])
        return len(losses)

    def _remember(self, pairs: Floats, y: Floats) -> None:
        most = max(1, min(RECENT, RECENT_BYTES // (16 * pairs.shape[2])))
        if self.recent is not None and len(y) < most:
            pairs = np.concatenate([self.recent, pairs])
            y = np.concatenate([self.recent_y, y])
        self.recent, self.recent_y = pairs[-most:].copy(), y[-most:].copy()

    def pack(self) -> State:
        """The state to write."""
        content, arrays = pack(self.learner)
        tracking: dict[str, Any] = {
            "place": self.place,
            "features": self.features,
            "columns": self.columns,
            "bad_rows": self.bad_rows,
            "aside": self.aside,
        }
        if self.history is not None:
            tracking["history"], more = self.history.pack()
            arrays |= more
        if self.recent is not None:
            arrays |= {"recent.pairs": self.recent, "recent.y": self.recent_y}
        return State({**content, "tracking": tracking}, arrays)

    @classmethod
    def load(cls, path: Path, items: Items | None = None) -> Self:
        """What a state folder holds; also one that a learner's ``save`` made."""
        state = read(path)
        learner = unpack(state, items.points if items else None, where=str(path))
        if not isinstance(learner, OnlineLearner):
            raise ValueError(f"{path} holds {type(learner).__name__}, which learns no pairs")
        found = cls(learner, items)
        saved = state.content.get("tracking")
        if saved is None:
            return found
        try:
            found.place, found.columns = saved["place"], saved["columns"]
            found.features, found.bad_rows = saved["features"], int(saved["bad_rows"])
            found.aside = dict(saved["aside"])
            if "history" in saved:
                found.history = History.unpack(saved["history"], state.arrays)
            found.recent = state.arrays.get("recent.pairs")
            found.recent_y = state.arrays.get("recent.y", found.recent_y)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CorruptStateError(f"{path} describes no tracking: {error}") from error
        if items is not None and items.features != found.features:
            raise ValueError(
                f"the items do not have the features that {path} was learned on, in their order"
            )
        return found


class Every(NamedTuple):
    """When to save: after so many pairs, or seconds, whichever comes first."""

    pairs: int = 1_000_000
    seconds: float = 30.0


class Run(NamedTuple):
    """What to track, and how."""

    source: str
    out: Path
    learner: OnlineLearner
    settings: Mapping[str, Any] = {}  # those that were asked for
    items: Items | None = None
    layout: str = "auto"
    format_: str = "auto"
    columns: Columns = Columns()
    bad_rows: str = "stop"  # "stop", "skip", or a file
    new_source: bool = False
    every: Every = Every()


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
        bad_rows = BadRows(run.bad_rows, tracking)
        saver = Saver(run.every, folder, tracking, bad_rows, clock)
        return _loop(run, tracking, saver, Pace(clock), stop, show, log)


def _begin(run: Run) -> Tracking:
    if not has_state(run.out):
        run.learner.preprocessor = run.items.points if run.items else None
        return Tracking(run.learner, run.items)
    tracking = Tracking.load(run.out, run.items)
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
        tracking.place = None
    return tracking


def _loop(
    run: Run,
    tracking: Tracking,
    saver: "Saver",
    pace: "Pace",
    stop: "Stop",
    show: Callable[[Progress], None],
    log: Callable[[str], None],
) -> Progress:
    known = run.items.rows if run.items else None
    wanted = Wanted(run.layout, known, features=tracking.features, columns=run.columns)
    reader = Reader(run.source, wanted, run.format_, stop=run.bad_rows == "stop")
    watch = Watch(tracking, log)
    learned, bad = 0, 0
    refused: BadRow | None = None
    try:
        for batch in ahead(reader.batches(tracking.place, tracking.columns), stop):
            if batch is None:
                saver.save_if_due()
                continue
            tracking.features, tracking.columns = reader.features, reader.columns
            for piece in pieces(batch, tracking, pace):
                learned += piece.n_pairs
                bad += len(piece.bad)
                if run.bad_rows != "stop":
                    tracking.bad_rows += len(piece.bad)
                elif piece.bad:  # not counted: it is read again, mended or not
                    refused = piece.bad[0]
                saver.count(piece)
                watch.look()
                show(_progress(tracking, learned, bad))
                saver.save_if_due()
                if stop.asked.is_set():
                    break
    except SourceError:
        saver.save()  # what came before is good
        raise
    saver.save()
    if refused is not None:
        raise BadRowError(
            f"{refused.file}:{refused.line}: {refused.why}. All rows before it are learned; mend "
            "the row and run again, or pass --bad-rows skip or a file for such rows"
        )
    return _progress(tracking, learned, bad)


class Piece(NamedTuple):
    """What was learned between two looks at the clock."""

    n_pairs: int
    bad: list[BadRow]  # up to the end of it
    batch: Batch
    end: int  # pairs of the batch that are learned now


def pieces(batch: Batch, tracking: Tracking, pace: "Pace") -> Iterator[Piece]:
    """Learn a batch piece by piece; at least one, since it may hold bad rows alone."""
    end, n_bad = 0, 0
    while True:
        n_pairs = pace.timed(partial(tracking.learn, batch.rows, end))
        end += n_pairs
        bad = batch.bad[n_bad : batch.n_bad(end)]
        n_bad += len(bad)
        yield Piece(n_pairs, bad, batch, end)
        if end == len(batch.rows.y):
            return


class Pace:
    """How many pairs to learn before the next look at the clock and at signals.

    Parameters
    ----------
    clock : callable
        Seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.pairs = clock, 1

    def timed(self, learn: Callable[[int], int]) -> int:
        """Learn as many pairs as are right now; returns how many there were."""
        start = self.clock()
        n_pairs = learn(self.pairs)
        seconds = self.clock() - start
        # At most twice as many: the first pairs, with few learners at work, are the quickest.
        in_time = n_pairs * LOOK_SECONDS / seconds if seconds > 0.0 else LOOK_PAIRS
        self.pairs = max(1, int(min(in_time, 2 * self.pairs, LOOK_PAIRS)))
        return n_pairs


def _progress(tracking: Tracking, learned: int, bad: int) -> Progress:
    if tracking.history is None:
        return Progress(learned, 0, bad, float("nan"))
    return Progress(learned, tracking.learner.n_pairs_seen_, bad, tracking.history.latest())


class Saver:
    """Saves when it is time, if there is anything new."""

    def __init__(
        self,
        every: Every,
        folder: StateFolder,
        tracking: Tracking,
        bad_rows: "BadRows",
        clock: Callable[[], float],
    ) -> None:
        self.every, self.folder, self.clock = every, folder, clock
        self.tracking, self.bad_rows = tracking, bad_rows
        self.last: Piece | None = None  # where there is anything new
        self.pairs, self.since = 0, clock()

    def count(self, piece: Piece) -> None:
        """Take note of what was learned."""
        self.last = piece
        self.pairs += piece.n_pairs
        self.bad_rows.hold(piece.bad)

    def save_if_due(self) -> None:
        """Save after enough pairs, bad rows or seconds."""
        late = self.clock() - self.since >= self.every.seconds
        if late or self.pairs >= self.every.pairs or self.bad_rows.is_full():
            self.save()

    def save(self) -> None:
        """Save now, if there is anything new."""
        if self.last is None:
            return
        batch, end = self.last.batch, self.last.end
        self.tracking.place = {**batch.place(end).as_dict(), "before": batch.before}
        self.bad_rows.write()
        if self.tracking.history is not None:  # else no pair was learned yet
            self.folder.write(self.tracking.pack())
        self.last, self.pairs, self.since = None, 0, self.clock()


class Watch:
    """Writes a line when a change is noticed."""

    def __init__(self, tracking: Tracking, log: Callable[[str], None]) -> None:
        self.tracking, self.log = tracking, log
        self.changed = self._changed()

    def _changed(self) -> int:
        bank = getattr(self.tracking.learner, "bank_", None)
        changed = getattr(getattr(bank, "clock", None), "changed", None)
        return 0 if changed is None else int(changed[0])

    def look(self) -> None:
        """Compare with the last look."""
        if self.tracking.history is None:
            return
        changed = self._changed()
        if changed == self.changed:
            return
        memory, seen = memory_of(self.tracking.learner), self.tracking.learner.n_pairs_seen_
        trusted = "" if np.isnan(memory) else f"; the metric rests on the last {memory:,.0f} pairs"
        self.log(f"pair {changed:,}: a change was noticed{trusted} (at pair {seen:,})")
        self.changed = changed


class Stop:
    """Signals that ask to end: the piece is finished and the state saved first."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked.is_set():  # the second time: at once, with the last state that was saved
            raise KeyboardInterrupt
        self.asked.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def ahead(batches: Generator[Batch, None, None], stop: Stop) -> Iterator[Batch | None]:
    """Batches, read in a thread while others are learned; None when there is none for a moment."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(AHEAD)
    over = threading.Event()

    def put(entry: Batch | BaseException | None) -> bool:
        while not over.is_set():
            try:
                ready.put(entry, timeout=WAIT)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            with closing(batches):
                for batch in batches:
                    if not put(batch):
                        return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=work, daemon=True, name="metrack-reader").start()
    try:
        while not stop.asked.is_set():
            try:
                entry = ready.get(timeout=WAIT)
            except queue.Empty:
                yield None
                continue
            if entry is None:
                return
            if isinstance(entry, BaseException):
                raise entry
            yield entry
    finally:
        over.set()


class BadRows:
    """Where rows that cannot be used go: a file, JSON a line, if one was asked for.

    They are written just before a state is, which remembers how long the file is: after a crash
    between the two, no row stands there twice.

    Parameters
    ----------
    policy : str
        "stop", "skip", or the path of a file.
    tracking : Tracking
    """

    def __init__(self, policy: str, tracking: Tracking) -> None:
        self.path = None if policy in ("stop", "skip") else Path(policy)
        self.tracking = tracking
        self._held: list[BadRow] = []
        if self.path is not None:
            self._check()

    def _check(self) -> None:
        """Open the file once, to fail now rather than after the work; drop what is too much."""
        assert self.path is not None
        with open(self.path, "ab") as file:
            known = self.tracking.aside
            if known.get("file") == str(self.path) and file.tell() > known["size"]:
                file.truncate(known["size"])

    def hold(self, rows: Sequence[BadRow]) -> None:
        """Keep rows until the next save."""
        if self.path is not None:
            self._held += rows

    def is_full(self) -> bool:
        """Whether it is time to write."""
        return len(self._held) >= MOST_HELD

    def write(self) -> None:
        """Append the rows, and force them to the disk."""
        if self.path is None or not self._held:
            return
        with open(self.path, "ab") as file:
            for row in self._held:
                line = {"file": row.file, "line": row.line, "why": row.why, "row": row.text}
                file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self.tracking.aside = {"file": str(self.path), "size": file.tell()}
        self._held = []
