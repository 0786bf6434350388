"""How a long stream of pairs shows that it goes on."""

import io

import numpy as np
import pytest
from rich.console import Console

from metrack import COMID, KernelTracker
from metrack.estimators.bases import progress
from tests.estimators.learners import make_stream, state

STREAM = make_stream(4, 10_000)
ONLINE = {"COMID": COMID(), "KernelTracker": KernelTracker(n_landmarks=4)}


@pytest.fixture(params=ONLINE)
def learner(request):
    return ONLINE[request.param]


@pytest.fixture
def screen(monkeypatch):
    """A terminal, and no patience."""
    found = io.StringIO()
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(
        progress, "Console", lambda stderr: Console(file=found, force_terminal=True, width=120)
    )
    return found


def test_a_bar_where_it_is_asked_for_changes_nothing_of_what_is_learned(learner, screen):
    quiet = state(learner.fit(STREAM.pairs, STREAM.y))
    assert screen.getvalue() == ""
    assert state(learner.fit(STREAM.pairs, STREAM.y, verbose=1)) == quiet
    assert type(learner).__name__ in screen.getvalue()
    assert " 8192/10000" in screen.getvalue()


def test_lines(capfd):
    COMID().partial_fit(STREAM.pairs, STREAM.y, verbose=2)
    assert capfd.readouterr() == (
        "",
        "".join(f"[COMID] {done} of 10,000 pairs\n" for done in ("0", "4,096", "8,192")),
    )


def test_silent_without_a_terminal(capfd, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    COMID().partial_fit(STREAM.pairs, STREAM.y, verbose=1)
    assert capfd.readouterr() == ("", "")


def test_what_is_wrong_changes_nothing():
    learner = COMID().fit(STREAM.pairs, STREAM.y)
    before = state(learner)
    for method in learner.fit, learner.partial_fit, learner.observe:
        with pytest.raises(ValueError, match="verbose=-1; it must be a number >= 0"):
            method(STREAM.pairs[:5], np.ones(5), verbose=-1)
    assert state(learner) == before
