"""``metrack judge`` about records, field by field."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest

import metrack
from metrack.compare import Comparisons, catalogues
from metrack.storage import StateFolder
from metrack.tracking.record_judging import RecordJudging
from metrack.tracking.records import read_candidates, read_records
from tests.estimators.learners import state
from tests.tracking.test_commands import metrack_

LEFT, RIGHT, SAME = catalogues(30)
FILES = ["--left", "ours.csv", "--right", "theirs.jsonl", "--candidates", "near.csv"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(tmp_path / "ours.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["id", *LEFT[0]])
        table.writeheader()
        table.writerows({"id": f"o{i}", **record} for i, record in enumerate(LEFT))
    with open(tmp_path / "theirs.jsonl", "w", encoding="utf-8") as file:
        for i, record in enumerate(RIGHT):
            file.write(json.dumps({"id": i, **record}) + "\n")
    rows = [f"o{i},{j}\n" for i in range(30) for j in range(0, 30, 2)]
    (tmp_path / "near.csv").write_text("a,b\n" + "".join(rows))
    return tmp_path


def session(folder):
    left, right = (
        read_records(folder.path / "../ours.csv"),
        read_records(folder.path / "../theirs.jsonl"),
    )
    rows = read_candidates(folder.path / "../near.csv", left, right)
    return RecordJudging(folder, left, right, rows)


def judge(monkeypatch, keys, *args, code=0):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in keys)))
    return metrack_("judge", "state", *(args or FILES), code=code)


def test_records_are_shown_field_by_field_and_answers_learned(folder, monkeypatch):
    said = judge(monkeypatch, "yns?y").output
    assert "state: 3 pairs learned, 3 of them now" in said
    title, theirs = re.search(r"\n  title  (.*)\n         (.*)\n", said).groups()
    assert title in [record["title"] for record in LEFT]
    assert theirs in [record["title"] for record in RIGHT]
    assert metrack.load("state").n_pairs_seen_ == 3
    assert "state: 4 pairs learned, 1 of them now" in judge(monkeypatch, "y").output
    names = Comparisons.load("state").get_feature_names_out()
    assert metrack.load("state").feature_names_in_.tolist() == names.tolist()


def test_no_pair_is_asked_about_again_in_another_session(folder):
    asked = []
    for _ in range(3):
        with StateFolder(folder / "state") as states:
            own = session(states)
            for _ in range(5):
                asked.append(own.question())
                own.answer(asked[-1], [True, False, None][len(asked) % 3])
    assert len(set(asked)) == 15
    assert own.n_answers == metrack.load(folder / "state").n_pairs_seen_ == 10


def test_undo_is_exact(folder):
    with StateFolder(folder / "state") as states:
        own = session(states)
        assert own.undo() is None
        own.answer(own.question(), True)
        own.answer(own.question(), False)
        known, row = state(own.asker.tracker), own.question()
        own.answer(row, True)
        assert own.undo() == row
        assert state(own.asker.tracker) == known
        assert own.n_answers == 2
    assert state(metrack.load(folder / "state")) == known


def test_one_who_is_never_sure_can_go_on(folder, monkeypatch):
    assert "state: 0 pairs learned" in judge(monkeypatch, "ss").output
    assert "state: 1 pair learned" in judge(monkeypatch, "y").output


def test_all_are_asked_about_in_the_end(folder, monkeypatch):
    (folder / "near.csv").write_text("a,b\no0,1\no2,3\no0,1\n")
    said = judge(monkeypatch, "yny").output
    assert "All pairs have been asked about." in said
    assert "state: 2 pairs learned" in said


def test_comparisons_saved_with_their_tracker_go_on(folder, monkeypatch):
    compare = Comparisons().fit(LEFT, RIGHT)
    u = compare.transform(LEFT, RIGHT, SAME)
    tracker = metrack.MetricTracker().partial_fit(u, np.ones(len(SAME)))
    compare.save("state", tracker)
    judge(monkeypatch, "n")
    assert metrack.load("state").n_pairs_seen_ == len(SAME) + 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "give --items, or --left and --candidates"),
        (["--left", "ours.csv"], "--left needs --candidates"),
        ([*FILES[:4], "--candidates", "ours.csv"], "has no columns a and b; found id, title"),
        ([*FILES[:2], *FILES[4:]], "there is no record '0'"),
        (["--left", "twice.csv", "--candidates", "near.csv"], "id '1' is there twice"),
        (["--left", "bad.jsonl", "--candidates", "near.csv"], "bad.jsonl:1: list, and no record"),
    ],
)
def test_wrong_use_says_what_to_do(folder, monkeypatch, args, words):
    (folder / "twice.csv").write_text("id,t\n1,a\n1,b\n")
    (folder / "bad.jsonl").write_text("[1]\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    wrong = metrack_("judge", "state", *args, code=2)
    assert words in wrong.error
    assert not (folder / "state").exists()
