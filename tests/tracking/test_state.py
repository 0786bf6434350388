"""What a state holds, whatever the batches were."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from metrack.migrations import VERSION
from metrack.storage import CorruptStateError, State, StateFolder, read
from metrack.tracking import sources
from metrack.tracking.columns import ReadSpec
from metrack.tracking.items import read_items
from metrack.tracking.reader import Reader
from metrack.tracking.state import Tracking
from tests.tracking.feedback import (
    HEADER,
    N_FEATURES,
    learned,
    learner,
    run,
    wide_lines,
    write_csv,
)
from tests.tracking.forms import (
    ITEMS,
    ROWS,
    Y,
    write_wide_csv,
)


@pytest.mark.parametrize(
    "change",
    [
        lambda t, a: t["history"].update(width=0),
        lambda t, a: t["history"].update(pairs=256),
        lambda t, a: t["history"].update(pairs=255),
        lambda t, a: t["history"].update(total=-1.0),
        lambda t, a: a.update({"history.losses": np.zeros(9)}),
        lambda t, a: a.update({"history.shares": np.zeros((1, 4))}),
        lambda t, a: a.update({"recent.pairs": np.zeros((9, 2, 4))}),
        lambda t, a: a.update({"recent.y": np.zeros(9)}),
        lambda t, a: t.update(features=["p"]),
        lambda t, a: t.update(features=[1, 2, 3]),
        lambda t, a: t.update(columns=7),
        lambda t, a: t.update(bad_rows=-1),
        lambda t, a: t.update(items={"n_items": "3", "fingerprint": ""}),
        lambda t, a: t.update(aside={"file": "a"}),
        lambda t, a: t["place"].update(offset=-1),
        lambda t, a: t["place"].pop("tail"),
        lambda t, a: t["place"].update(file=3),
        lambda t, a: t.pop("place"),
    ],
)
def test_states_that_no_tracking_leads_to(change, tmp_path):
    write_csv(tmp_path / "p.csv", wide_lines(ITEMS, ROWS, Y))
    run(tmp_path / "p.csv", tmp_path / "state")
    content, arrays = read(tmp_path / "state")
    change(content["tracking"], arrays)
    plain = {name: content[name] for name in ("learner", "tracking")}
    with StateFolder(tmp_path / "state") as folder:
        folder.write(State(plain, arrays))
    with pytest.raises(CorruptStateError, match="describes no tracking"):
        Tracking.load(tmp_path / "state")


def test_golden_tracking_goes_on(tmp_path):
    """A state of ``metrack track`` of 300 pairs of ids."""
    folder = tmp_path / "golden"
    shutil.copytree(Path(__file__).with_name("golden") / f"v{VERSION}", folder)
    items, pairs, out = read_items(folder / "items.csv"), folder / "pairs.csv", folder / "tracked"
    assert run(pairs, out, items=items).pairs == 0
    with pairs.open("a") as file:
        file.write("p0,p1,1\n")
    assert run(pairs, out, items=items).seen == 301
    changed = items._replace(points=items.points + 1.0)
    with pytest.raises(ValueError, match="--new-items"):
        run(pairs, out, items=changed)


def test_batching_does_not_matter(tmp_path, monkeypatch):
    write_wide_csv(tmp_path / "w.csv")
    run(tmp_path / "w.csv", tmp_path / "whole")
    for block in (100, 333, 4000):
        monkeypatch.setattr(sources, "BLOCK", block)
        run(tmp_path / "w.csv", tmp_path / f"state-{block}", every=7)
        assert learned(tmp_path / f"state-{block}") == learned(tmp_path / "whole")


def test_history_is_bounded_and_exact(tmp_path, monkeypatch):
    from metrack.tracking import history

    monkeypatch.setattr(history, "FIRST_WIDTH", 4)
    monkeypatch.setattr(history, "MOST_BLOCKS", 8)
    write_wide_csv(tmp_path / "w.csv")
    run(tmp_path / "w.csv", tmp_path / "state")
    found = Tracking.load(tmp_path / "state").history
    losses = learner().observe(ITEMS[ROWS], Y)
    n_blocks = len(Y) // found.width
    means = losses[: n_blocks * found.width].reshape(n_blocks, -1).mean(axis=1)
    np.testing.assert_allclose(found.losses, means, rtol=1e-12)
    assert len(found.losses) < 8
    assert read(tmp_path / "state").arrays["history.losses"].shape == (n_blocks,)


def test_batches_carry_what_was_known_when_they_were_read(tmp_path):
    """A reader may be files ahead of the batch that is saved."""
    for name, header in [("1.csv", HEADER), ("2.csv", [*HEADER[::-1]])]:
        write_csv(tmp_path / name, [",".join(["1"] * len(header)) + "\n"], header)
    first, second = Reader(str(tmp_path), ReadSpec()).batches()
    assert (first.columns, second.columns) == (HEADER, HEADER[::-1])
    assert first.features == second.features == [str(i) for i in range(N_FEATURES)]
