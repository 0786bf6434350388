"""Questions about items, and answers that are kept."""

import csv
import io
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import metrack
from metrack import MetricTracker
from metrack.storage import StateFolder
from metrack.tracking.items import read_items
from metrack.tracking.judging import Judging
from tests.estimators.learners import state
from tests.tracking.test_commands import metrack_

ITEMS = np.random.default_rng(4).normal(size=(60, 3))
COMMAND = [sys.executable, "-c", "from metrack.cli import main; main()"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"i{i},{','.join(map(repr, row))}\n" for i, row in enumerate(ITEMS.tolist())]
    (tmp_path / "items.csv").write_text("id,0,1,2\n" + "".join(rows))
    texts = [f'i{i},"item, number {i}"\n' for i in range(60)]
    (tmp_path / "texts.csv").write_text("".join(texts))
    return tmp_path


def judge(monkeypatch, keys, *args, code=0):
    """Judge with keys, one a line; returns what was written."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in keys)))
    return metrack_("judge", "state", "--items", "items.csv", *args, code=code).output


def suggested(*args):
    return list(csv.reader(io.StringIO(metrack_("suggest", *args).output)))


def alike(a, b):
    return "y" if abs(ITEMS[a, 0] - ITEMS[b, 0]) < 0.5 else "n"


def test_suggestions_are_pairs_of_ids(folder, monkeypatch):
    header, *rows = suggested("state", "--items", "items.csv", "--n", "7")
    assert header == ["a", "b", "informativeness", "weight"]
    assert len(rows) == 7
    assert not (folder / "state").exists()
    judge(monkeypatch, "yn")
    again = suggested("state", "--items", "items.csv", "--n", "7")
    assert again == suggested("state", "--items", "items.csv", "--n", "7")
    for a, b, worth, weight in again[1:]:
        assert a != b
        assert re.fullmatch(r"i\d+", a)
        assert 0.0 <= float(worth) <= 1.0
        assert 0.0 < float(weight) <= 10.0
    judge(monkeypatch, "n")
    assert suggested("state", "--items", "items.csv", "--n", "7") != again


def test_suggestions_that_were_judged_can_be_tracked(folder):
    rows = suggested("state", "--items", "items.csv", "--n", "9")[1:]
    judged = [
        [*row[:2], {"y": "1", "n": "-1"}[alike(int(row[0][1:]), int(row[1][1:]))]] for row in rows
    ]
    with open("judged.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "y"], *judged])
    metrack_("track", "judged.csv", "--items", "items.csv", "--out", "state")
    assert metrack.load("state").n_pairs_seen_ == 9
    metrack_("suggest", "state", "--items", "items.csv", "--out", "more.csv", "--n", "3")
    assert len((folder / "more.csv").read_text().splitlines()) == 4


def test_answers_are_learned(folder, monkeypatch):
    said = judge(monkeypatch, "yns?y", "--texts", "texts.csv")
    assert "state: 3 pairs learned, 3 of them now" in said
    assert "skipped" in said
    asked = re.findall(r"item, number (\d+)", said)
    # The pair at the unknown key is shown again, and the last one at the end of the input.
    pairs = np.array(asked, dtype=int).reshape(-1, 2)[[0, 1, 4]]
    expected = MetricTracker(random_state=0).observe_points(ITEMS)
    for pair, y in zip(pairs, [1, -1, 1], strict=True):
        expected.observe(ITEMS[pair][None], [y])
    assert state(metrack.load("state")) == state(expected)
    assert "state: 4 pairs learned, 1 of them now" in judge(monkeypatch, "y")


def test_one_answer_is_one_pair(folder, monkeypatch):
    assert "state: 1 pair learned, 1 of them now" in judge(monkeypatch, "y")
    said = metrack_("suggest", "state", "--items", "items.csv", "--out", "q.csv", "--n", "1").output
    assert said == "q.csv: 1 pair to judge\n"


def test_undo_is_exact(folder, monkeypatch):
    with StateFolder(folder / "state") as states:
        session = Judging(states, read_items(folder / "items.csv"))
        assert session.undo() is None
        known = []
        for _ in range(4):
            known.append(state(session.tracking.learner))
            session.answer(session.question(), True)
        pairs = [session.undo() for _ in range(4)]
        assert len(set(pairs)) == 4
        assert state(session.tracking.learner) == known[0]
        session.answer(pairs[-1], True)
        assert state(session.tracking.learner) == known[1]
    assert state(metrack.load(folder / "state")) == known[1]
    said = judge(monkeypatch, "uyyun")
    assert "there is nothing to undo" in said
    assert "state: 3 pairs learned, 2 of them now" in said


def test_every_pair_is_asked_about_once(folder, monkeypatch):
    (folder / "items.csv").write_text("id,p\n" + "".join(f"{i},{i}\n" for i in range(4)))
    said = judge(monkeypatch, "y" * 20)
    assert "All pairs have been asked about." in said
    assert "state: 6 pairs learned" in said


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_confirmed_answers_survive_a_kill(folder):
    for kept in (1, 4):
        process = subprocess.Popen(
            [*COMMAND, "judge", "state", "--items", "items.csv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        for _ in range(kept):
            process.stdin.write("y\n")
            for line in process.stdout:
                if "kept)" in line:
                    confirmed = int(re.search(r"\((\d+) kept\)", line)[1])
                    break
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        assert metrack.load("state").n_pairs_seen_ == confirmed
    assert confirmed == 5


def test_wrong_use_is_one_line(folder, monkeypatch):
    said = metrack_("suggest", "state", "--items", "items.csv", "--n", "9999", code=2).error
    assert "n_pairs=9999: 60 points have 1770 pairs; ask for fewer" in said
    judge(monkeypatch, "y")
    (folder / "items.csv").write_text("id,0,1,2\ni0,1,2,3\ni1,1,2,4\n")
    said = metrack_("judge", "state", "--items", "items.csv", code=2).error
    assert "the items are not those that state was learned with" in said
    (folder / "texts.csv").write_text("i0\n")
    said = metrack_("judge", "state", "--items", "items.csv", "--texts", "texts.csv", code=2).error
    assert "texts.csv: row 1 has no text; give two columns, id and text" in said
