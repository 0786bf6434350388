"""The benchmark by width, on streams so short that they show only that it runs."""

import numpy as np

from benchmarks import width


def test_it_runs(tmp_path):
    records = [width.measure(n, question=250) for n in (8, 70)]
    assert [each["n"] for each in records] == [8, 70]
    numbers = [value for each in records for value in each.values()]
    assert np.isfinite(numbers).all()
    assert all(each["auc"] > each["plain_auc"] for each in records)
    assert width.table(records).count("\n") == 3
    width.draw(records, tmp_path / "width.png")
    assert (tmp_path / "width.png").stat().st_size > 1000


def test_a_question_in_small_directions():
    """Plain distance knows nothing of it; the table has a line for each kind."""
    table = width.measure_small(
        ((0.1, 6.0),), seeds=(1,), rates=(0.3, 1.2), first=20, after=(10, 400)
    )
    *_, line = table.splitlines()
    spread, apart, _, late = (cell.strip() for cell in line.strip("|").split("|"))
    assert (spread, apart) == ("0.1", "6")
    assert all(0.5 < float(each) <= 1.0 for each in late.split("/"))


def test_sentences_make_a_table():
    found = {"MetricTracker()": {"auc": 0.9}, "itml": {"auc": 0.8, "rate": 0.1}}
    records = [{"n": n, "seed": seed, "found": found} for n in (256, 512) for seed in (1, 2)]
    lines = width.banking_table(records).splitlines()
    assert len(lines) == 2 + 2 * 3
    assert lines[-1].split() == ["|", "512", "|", "mean", "|", "0.9000", "|", "0.8000", "|"]
