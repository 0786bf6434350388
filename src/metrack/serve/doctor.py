"""What is well with a server's folder, and what is not: log, states, disk, clock. Changes nothing.

The server may be running meanwhile: what is newer than what was read first is not looked at.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from metrack.serve import metric_rows
from metrack.serve.databases import schema
from metrack.serve.learning import Learning
from metrack.serve.metric_rows import Row
from metrack.storage import WRONG, has_state, read

SPARE = 1 << 28  # bytes of a disk that shall be free ...
TIMES = 2.0  # ... and times the log's own: a back-up is as large again
AHEAD = 60.0  # seconds that a judgement may be from the future
MEGABYTE = 1 << 20


class Finding(NamedTuple):
    """What was looked at, and how it is."""

    level: Literal["ok", "watch", "wrong"]
    what: str
    text: str


def examined(folder: Path) -> Iterator[Finding]:
    """Look at all of it, one thing after another."""
    file = folder / "log.db"
    if not file.is_file():
        raise FileNotFoundError(f"{folder} holds no log.db; give the folder of metrack serve")
    try:
        # As it is: a connection that may write would make or change files.
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as log:
            yield from _log(log, folder)
    except sqlite3.Error as error:
        yield Finding("wrong", "log", f"{file} cannot be read: {error}; restore a back-up")
    yield _rights(folder)
    yield _disk(folder, file)


def _log(log: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    (version,) = log.execute("PRAGMA user_version").fetchone()
    newest = max(schema.scripts("sqlite"))
    if version != newest:
        remedy = "upgrade metrack" if version > newest else "a start of the server brings it up"
        level: Literal["watch", "wrong"] = "wrong" if version > newest else "watch"
        yield Finding(level, "log", f"its tables are of version {version}, not {newest}: {remedy}")
        return
    (told,) = log.execute("PRAGMA quick_check(1)").fetchone()
    if told != "ok":
        yield Finding("wrong", "log", f"the file is damaged: {told}; restore a back-up")
        return
    log.execute("BEGIN")  # one moment of it all
    rows = metric_rows.read(log)  # type: ignore[arg-type]
    n_judgements = sum(row.sequence - row.cut for row in rows)
    yield Finding("ok", "log", f"whole; {len(rows):,} metrics, {n_judgements:,} judgements")
    yield _clock(log)
    for row in rows:
        yield _metric(log, row, folder / "states" / str(row.number))


def _clock(log: sqlite3.Connection) -> Finding:
    (latest,) = log.execute("SELECT max(time) FROM judgements").fetchone()
    ahead = (latest or 0.0) - time.time()
    if ahead > AHEAD:
        text = (
            f"the latest judgement is {ahead:,.0f} seconds from now: set the clock, such as by NTP"
        )
        return Finding("wrong", "clock", text)
    return Finding("ok", "clock", "no judgement is from the future")


def _metric(log: sqlite3.Connection, row: Row, states: Path) -> Finding:
    """Whether all can be learned: from the log, or from a state and the rest of it."""
    what = f"metric {row.name}"
    size = 8 * row.config.kind.members * row.config.n_features
    first, last, n_rows, n_whole = log.execute(
        "SELECT min(sequence), max(sequence), count(*), count(CASE WHEN length(points) = ? THEN 1 "
        "END) FROM judgements WHERE metric = ? AND sequence > ?",
        (size, row.number, row.cut),
    ).fetchone()
    wanted = row.sequence - row.cut
    if n_rows and (n_rows, n_whole, first, last) != (wanted, wanted, row.cut + 1, row.sequence):
        text = f"{wanted - min(n_rows, n_whole):,} judgements are missing or cut short"
        return Finding("wrong", what, f"{text}: restore log.db from a back-up")
    if wanted and not n_rows:
        return Finding("wrong", what, "its judgements are gone: restore log.db from a back-up")
    if not has_state(states):
        if row.cut:
            text = f"no state, and the log begins after judgement {row.cut:,}"
            return Finding("wrong", what, f"{text}: restore states/{row.number} from a back-up")
        return Finding("ok", what, f"{row.sequence:,} judgements, no state yet")
    try:
        learned = Learning.of_state(row.config, read(states)).sequence
    except WRONG as error:
        if row.cut:
            return Finding("wrong", what, f"{error}; restore states/{row.number} from a back-up")
        return Finding("watch", what, f"{error}; the next start learns all of the log again")
    if learned < row.cut:
        text = f"its state ends at {learned:,}, and the log begins after {row.cut:,}"
        return Finding("wrong", what, f"{text}: restore states/{row.number} from a later back-up")
    if learned > row.sequence and not _is_newer(log, row, learned):
        text = f"its state has learned {learned:,} judgements, and the log has {row.sequence:,}"
        return Finding("wrong", what, f"{text}: restore both from the same back-up")
    return Finding("ok", what, f"{row.sequence:,} judgements, {learned:,} in its state")


def _is_newer(log: sqlite3.Connection, row: Row, learned: int) -> bool:
    """Whether the log has come as far by now: the server is running."""
    log.execute("COMMIT")
    log.execute("BEGIN")
    found = log.execute("SELECT sequence FROM metrics WHERE id = ?", (row.number,)).fetchone()
    return found is None or found[0] >= learned


def _rights(folder: Path) -> Finding:
    wanted = [folder, folder / "log.db", *(folder / "states").glob("*")]
    wrong = [each for each in wanted if not os.access(each, os.W_OK)]
    if wrong:
        text = f"{wrong[0]} may not be written by this user, and {len(wrong)} such in all"
        return Finding("watch", "rights", f"{text}: run this as the server's user, or give rights")
    return Finding("ok", "rights", "all may be written")


def _disk(folder: Path, file: Path) -> Finding:
    free, own = shutil.disk_usage(folder).free, file.stat().st_size
    text = f"{free // MEGABYTE:,} MB free; log.db has {own / MEGABYTE:,.1f}"
    if free < SPARE + TIMES * own:
        more = "give it room, or cut off logs: DELETE /v1/metrics/NAME/log?upto=N"
        return Finding("watch", "disk", f"{text}: {more}")
    return Finding("ok", "disk", text)
