"""The benchmark of KernelTracker, on streams so short that they show only that it runs."""

from benchmarks import kernel


def test_it_runs():
    found = kernel.quality({"rings": kernel.rings}, question=250)
    assert [len(row) for row in found] == [len(kernel.QUALITY_TITLES)]
    assert float(found[0][2]) > float(found[0][1])
    moved = kernel.drifting({"clusters": kernel.clusters_below}, n_pairs=250)
    assert [len(row) for row in moved] == [len(kernel.DRIFT_TITLES)]
