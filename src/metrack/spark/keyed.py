"""The tracker of one key: rows in, an event and what is kept of it out. It knows no Spark.

What is learned depends on the rows and their sequence numbers alone: not on the order in which they
come within a call, nor on how they were cut into calls, as long as none comes after a later one.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from metrack.checks import Floats
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.states.persistence import dump, load, pack, unpack
from metrack.registry import estimator
from metrack.spark.texts import Text, from_text, to_text
from metrack.tracking.history import effective_window, last_change
from metrack.tracking.layouts import Layout, RowError, list_of

NO_SEQUENCE = -(1 << 63)  # stands for a missing number: pandas would make floats of all others
RECENT = 256  # rows that are known again when they come again
RECENT_TYPE = np.dtype([("sequence", np.int64), ("digest", np.uint64)])


class Recipe(NamedTuple):
    """How trackers are made, and what they are asked for; it travels to the workers."""

    estimator: str = "MetricTracker"
    settings: Mapping[str, Any] = {}
    start: bytes | None = None  # the state with which a new key starts
    key: str = "metric"
    order: str = "sequence"
    states_every: int = 1  # pairs
    single: bool = False  # precision of the states that are handed out
    max_features: int = 4096


class Kept(NamedTuple):
    """What is kept of a key from call to call."""

    header: str  # these three are the state, see `Text`
    low: str
    high: str
    last: int  # the highest sequence number learned
    recent: bytes  # sequence numbers and digests of the last rows learned

    @property
    def n_bytes(self) -> int:
        """How many it takes."""
        return len(self.header) + len(self.low) + len(self.high) + len(self.recent)


class BadRow(NamedTuple):
    """A row that was not learned, and why."""

    sequence: int | None
    why: str
    row: str  # JSON


class Event(NamedTuple):
    """What happened to a key in one call."""

    pairs: int  # learned
    loss: float | None  # mean
    window: float | None  # effective one
    change: int | None  # the pair at which one was noticed in this call
    version: int  # pairs learned in all
    last: int | None  # sequence number
    repeated: int  # rows that had been learned before
    bad: list[BadRow]
    state_bytes: int
    state: bytes | None


class Columns(NamedTuple):
    """The rows of a key, column by column."""

    sequence: Sequence[int]
    x: Sequence[Any]
    z: Sequence[Any]
    y: Sequence[Any]
    ids: Sequence[tuple[Any, Any]] | None = None  # where points come from items

    def values(self, i: int) -> dict[str, Any]:
        """One row, as `Layout.row` takes it."""
        x, z, y = self.x[i], self.z[i], self.y[i]
        return {
            "x": None if x is None else list(x),
            "z": None if z is None else list(z),
            "y": y if isinstance(y, str) else "",
        }

    def bad(self, i: int, why: str) -> BadRow:
        """One row, set aside."""
        number, row = int(self.sequence[i]), self.values(i)
        if self.ids is not None:
            row = {"a": self.ids[i][0], "b": self.ids[i][1], "y": row["y"]}
        return BadRow(None if number == NO_SEQUENCE else number, why, json.dumps(_plain(row)))

    def digest(self, i: int) -> int:
        """A number that tells one row from another with the same sequence number."""
        x, z = (b"" if p is None else np.asarray(p).tobytes() for p in (self.x[i], self.z[i]))
        text = f"{len(x)},{self.y[i]},{self.ids[i] if self.ids else ''},".encode(errors="replace")
        return int.from_bytes(hashlib.blake2b(text + x + z, digest_size=8).digest(), "little")


def learn(rows: Columns, kept: Kept | None, recipe: Recipe) -> tuple[Event, Kept | None]:
    """Learn the rows of a key that are new, in order; all others are set aside.

    Parameters
    ----------
    rows : Columns
        In any order.
    kept : Kept, optional
        What the last call for this key returned.
    recipe : Recipe

    Returns
    -------
    event : Event
    kept : Kept or None
        None as long as no row could be learned.
    """
    _one_thread()
    learner = _tracker(kept, recipe)
    before, changed = _seen(learner), _changed(learner)
    fresh, aside, repeated = _sift(rows, kept, recipe)
    good, losses, bad = _observe(learner, rows, fresh, recipe)
    if good:
        kept = _keep(learner, rows, good, kept)
    version, now = _seen(learner), _changed(learner)
    window = effective_window(learner) if version else math.nan
    asked = version // recipe.states_every > before // recipe.states_every
    event = Event(
        pairs=len(good),
        loss=float(losses.mean()) if good else None,
        window=None if math.isnan(window) else window,
        change=now if now and now != changed else None,
        version=version,
        last=kept.last if kept else None,
        repeated=repeated,
        bad=sorted(aside + bad, key=_place),
        state_bytes=kept.n_bytes if kept else 0,
        state=dump(learner, recipe.single) if asked else None,
    )
    return event, kept


def without_key(rows: Columns, recipe: Recipe) -> Event:
    """What happens to rows that have no key: nothing."""
    why = f"{recipe.key} is empty"
    bad = [rows.bad(i, why) for i in range(len(rows.y))]
    return Event(0, None, None, None, 0, None, 0, bad, 0, None)


@cache
def _one_thread() -> None:
    """One BLAS thread in this process: there is one for each core, and results are the same."""
    threadpool_limits(1)


def _tracker(kept: Kept | None, recipe: Recipe) -> OnlineLearner:
    found: OnlineLearner
    if kept is not None:
        found = unpack(from_text(Text(*kept[:3])), None, "what is kept of a key")
    elif recipe.start is not None:
        found = load(recipe.start)
    else:
        found = estimator(recipe.estimator)(**recipe.settings)
    return found


def _seen(learner: OnlineLearner) -> int:
    return learner.n_pairs_seen_ if hasattr(learner, "engine_") else 0


def _changed(learner: OnlineLearner) -> int | None:
    return last_change(learner) if hasattr(learner, "engine_") else None


def _recent(kept: Kept | None) -> dict[int, int]:
    """Digests of the last rows learned, by sequence number."""
    return {} if kept is None else dict(np.frombuffer(kept.recent, RECENT_TYPE).tolist())


def _keep(learner: OnlineLearner, rows: Columns, good: Sequence[int], kept: Kept | None) -> Kept:
    """What to keep after some rows, in order, have been learned."""
    latest = ((int(rows.sequence[i]), rows.digest(i)) for i in good[-RECENT:])
    recent = [*_recent(kept).items(), *latest][-RECENT:]
    text = to_text(pack(learner))
    return Kept(*text, recent[-1][0], np.array(recent, RECENT_TYPE).tobytes())


def _place(row: BadRow) -> tuple[int, str, str]:
    """Where a row stands among others, however they came."""
    return NO_SEQUENCE if row.sequence is None else row.sequence, row.why, row.row


def _sift(rows: Columns, kept: Kept | None, recipe: Recipe) -> tuple[list[int], list[BadRow], int]:
    """Rows not learned yet, in order; those set aside; how many had been learned before."""
    fresh: list[int] = []
    bad: list[BadRow] = []
    recent, last = _recent(kept), NO_SEQUENCE if kept is None else kept.last
    for number, same in _by_sequence(rows.sequence):
        others = same
        if number == NO_SEQUENCE:
            why = f"{recipe.order} is empty"
        elif number in recent:
            others = [i for i in same if rows.digest(i) != recent[number]]
            why = f"{recipe.order} {number} was learned before, with other values"
        elif number <= last:
            why = f"{recipe.order} {number} is late: {last} was learned before"
        elif len(same) > 1 and len({rows.digest(i) for i in same}) > 1:
            why = f"{recipe.order} {number} is there with different values"
        else:
            fresh.append(same[0])
            continue
        bad += [rows.bad(i, why) for i in others]
    return fresh, bad, len(rows.y) - len(fresh) - len(bad)


def _by_sequence(sequence: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Rows with the same number, in its order."""
    numbers = np.asarray(sequence, np.int64)
    order = np.argsort(numbers, kind="stable").tolist()
    for number, same in groupby(order, key=numbers.tolist().__getitem__):
        yield number, list(same)


def _observe(
    learner: OnlineLearner, rows: Columns, fresh: Sequence[int], recipe: Recipe
) -> tuple[list[int], Floats, list[BadRow]]:
    """Learn the rows that can be; returns which, what was lost on each, and those set aside."""
    width = getattr(learner, "n_features_in_", None)
    if width is None:
        width = _width(rows, fresh, recipe.max_features)
    # Without a width no row is good, and each will be told what is wrong with it.
    pairs = _layout(width or 1).batch(_table(rows, fresh if width else ()))
    good = [fresh[at] for at in np.flatnonzero(pairs.good).tolist()]
    taken = set(good)
    bad = [rows.bad(i, _why(rows, i, width, recipe.max_features)) for i in fresh if i not in taken]
    if not good:
        return [], np.empty(0), bad
    try:
        return good, learner.observe(pairs.points, pairs.y), bad
    except ValueError as error:  # settings that do not suit so many features
        return [], np.empty(0), bad + [rows.bad(i, str(error)) for i in good]


def _table(rows: Columns, which: Sequence[int]) -> Any:
    """Some rows, as `Layout.batch` takes them."""
    import pyarrow as pa

    numbers = pa.list_(pa.float64())
    return pa.table(
        {
            "x": pa.array([rows.x[i] for i in which], numbers),
            "z": pa.array([rows.z[i] for i in which], numbers),
            "y": pa.array([rows.y[i] for i in which], pa.string(), from_pandas=True),
        }
    )


def _layout(width: int) -> Layout:
    return Layout((("x",), ("z",)), width, lists=True, label="y")


def _width(rows: Columns, which: Sequence[int], most: int) -> int:
    """How many features a key has: the first row that is good in itself tells; 0 if none is."""
    for i in which:
        width = 0 if rows.x[i] is None else len(rows.x[i])
        try:
            if 1 <= width <= most:
                _layout(width).row(rows.values(i))
                return width
        except RowError:
            continue
    return 0


def _why(rows: Columns, i: int, width: int, most: int) -> str:
    """What is wrong with a row."""
    if rows.ids is not None:
        for name, key, point in zip("ab", rows.ids[i], (rows.x[i], rows.z[i]), strict=True):
            if point is None:
                return f"{name} is empty" if key is None else f"{name} = {key!r} is not an item"
    values = rows.values(i)
    try:
        own = len(list_of(values["x"], "x"))
        if not 1 <= own <= most:
            return f"x has {own} numbers; a point has 1 to max_features={most}"
        _layout(width or own).row(values)
    except RowError as error:
        return str(error)
    return "it is no pair of points with a label"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can say: it knows no NaN."""
    return {
        name: [str(v) if not math.isfinite(v) else v for v in value]
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }
