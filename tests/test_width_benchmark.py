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
