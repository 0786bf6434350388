"""Saving, stopping and telling between small pieces; by a clock that moves as pairs are learned."""

import json
import signal
from itertools import pairwise

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from metrack import COMID
from metrack.storage import read
from metrack.tracking.loop import Run, track
from metrack.tracking.quarantine import BadRowError
from metrack.tracking.saving import SavePolicy
from tests.tracking.feedback import (
    HEADER,
    learned,
    learner,
    make_feedback,
    wide_lines,
    write_csv,
)

ITEMS, ROWS, Y = make_feedback(600)
NEVER = 10**9


@pytest.fixture
def clock(monkeypatch):
    """A clock by which a pair takes 40 ms to learn, and nothing else takes any time."""
    now = [0.0]

    def slow(self, pairs, y, observe=COMID.observe):
        now[0] += 0.04 * len(y)
        return observe(self, pairs, y)

    monkeypatch.setattr(COMID, "observe", slow)
    return lambda: now[0]


def table(bad=()):
    pairs = ITEMS[ROWS].reshape(len(ROWS), -1)
    columns = dict(zip(HEADER, [*pairs.T.tolist(), Y.tolist()], strict=True))
    for row in bad:
        columns["x_1"][row] = None
    return pa.table(columns)


def write_bad_csv(path):
    """Bad rows and blank lines at the ends of pieces, and within."""
    lines = wide_lines(ITEMS, ROWS, Y)
    for i in (0, 1, 77, 300, 301, 599):
        lines[i] = f"1,2\n\r\n{lines[i]} \n"
    write_csv(path, [*lines, "3,4\n", "\n"])


def write_bad_jsonl(path):
    lines = [json.dumps(row) + "\n" for row in table((3, 4, 255)).to_pylist()]
    path.write_text("".join(["\n", *lines[:200], "null\n\n", *lines[200:]]))


SOURCES = {
    "w.csv": lambda p: write_csv(p, wide_lines(ITEMS, ROWS, Y)),
    "bad.csv": write_bad_csv,
    "bad.jsonl": write_bad_jsonl,
    "w.parquet": lambda p: pq.write_table(table(), p),
    "bad.feather": lambda p: pa.feather.write_feather(table((0, 90, 91, 599)), p),
}


def run(source, out, every=NEVER, seconds=NEVER, show=None, clock=None, **options):
    given = Run(str(source), out, learner(), saves=SavePolicy(every, seconds), **options)
    more = {} if clock is None else {"clock": clock}
    return track(given, show or (lambda progress: None), **more)


class Killed(Exception):
    pass


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("every", [1, 60])
def test_killed_within_a_block_and_resumed(name, every, tmp_path):
    """A block holds all rows; the state ends like that of a run that nobody killed."""
    SOURCES[name](tmp_path / name)
    aside = tmp_path / "bad.rows"
    run(tmp_path / name, tmp_path / "whole", bad_rows=str(aside))
    expected, rows = learned(tmp_path / "whole"), aside.read_bytes()
    aside.unlink()
    n_kills = 0

    def kill(progress):
        if progress.pairs > 200:
            raise Killed

    for _ in range(20):
        try:
            run(tmp_path / name, tmp_path / "state", every, show=kill, bad_rows=str(aside))
            break
        except Killed:
            n_kills += 1
    assert n_kills >= 2
    assert learned(tmp_path / "state") == expected
    assert aside.read_bytes() == rows


def test_saved_by_time_within_a_block(tmp_path, clock):
    SOURCES["w.csv"](tmp_path / "w.csv")

    def kill(progress):
        if progress.pairs >= 200:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path / "w.csv", tmp_path / "state", seconds=2.0, show=kill, clock=clock)
    saved = read(tmp_path / "state").content["tracking"]["place"]["lines"] - 1  # the header
    assert 200 - 2.2 / 0.04 <= saved < 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_is_obeyed_within_a_block(number, tmp_path, clock):
    SOURCES["w.csv"](tmp_path / "w.csv")
    asked = []

    def ask(progress):
        if progress.pairs >= 60 and not asked:
            asked.append((progress.pairs, clock()))
            signal.raise_signal(number)

    done = run(tmp_path / "w.csv", tmp_path / "state", show=ask, clock=clock)
    assert clock() - asked[0][1] <= 0.2
    assert done.pairs - asked[0][0] <= 5
    run(tmp_path / "w.csv", tmp_path / "state")
    run(tmp_path / "w.csv", tmp_path / "whole")
    assert learned(tmp_path / "state") == learned(tmp_path / "whole")


def test_counts_are_shown_from_the_first_pairs_on(tmp_path, clock):
    SOURCES["w.csv"](tmp_path / "w.csv")
    shown = [(0, 0.0)]
    run(
        tmp_path / "w.csv",
        tmp_path / "state",
        show=lambda progress: shown.append((progress.pairs, clock())),
        clock=clock,
    )
    assert shown[-1][0] == len(Y)
    assert max(b - a for (_, a), (_, b) in pairwise(shown)) <= 0.2


def test_pieces_of_quick_pairs_are_bounded(tmp_path):
    """Where the clock does not move, there are 256 pairs at most between two looks at signals."""
    SOURCES["w.parquet"](tmp_path / "w.parquet")
    shown = [0]
    run(
        tmp_path / "w.parquet",
        tmp_path / "state",
        show=lambda progress: shown.append(progress.pairs),
        clock=lambda: 0.0,
    )
    steps = [b - a for a, b in pairwise(shown)]
    assert max(steps) <= 256
    assert len(steps) < 20  # they double


def test_a_bad_row_that_was_not_reached_is_not_told(tmp_path):
    """A signal ends the run before the row that would stop it."""
    lines = wide_lines(ITEMS, ROWS, Y)
    write_csv(tmp_path / "w.csv", [*lines, "1,2\n"])

    def ask(progress):
        if 10 < progress.pairs < 100:
            signal.raise_signal(signal.SIGTERM)

    assert run(tmp_path / "w.csv", tmp_path / "state", show=ask).bad == 0
    with pytest.raises(BadRowError, match=r"w\.csv:602: 2 columns"):
        run(tmp_path / "w.csv", tmp_path / "state")
