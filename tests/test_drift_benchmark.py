import numpy as np
import pytest

pytest.importorskip("river")

from benchmarks import drift, drift_streams

TWO = {
    "records": {
        "here": {
            "a": {"error": 0.1, "microseconds": 10.0, "bytes": 2e6},
            "b": {"error": 0.2, "microseconds": 1000.0, "bytes": None},
        },
        "there": {"a": {"error": 0.4, "microseconds": 20.0, "bytes": 1e6}},
    }
}
MORE = {"records": {"there": {"b": {"error": 0.3, "microseconds": 500.0, "bytes": None}}}}


def test_the_table_has_all_and_the_least_in_bold():
    lines = drift.table(TWO, MORE).splitlines()
    assert lines[0] == "|  | here | there | points a second | memory, MB |"
    assert lines[2:] == [
        "| a | **10.00** | 40.00 | 50,000 - 100,000 | 1.0 - 2.0 |",
        "| b | 20.00 | **30.00** | 1,000 - 2,000 |  |",
    ]


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_streams_come_from_files(kind, tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array(["b", "a", "b"])
    file = tmp_path / f"mine.{kind}"
    if kind == "npz":
        np.savez(file, X=X, y=y)
    else:
        rows = [f"{a},{b},{label}" for (a, b), label in zip(X, y, strict=True)]
        file.write_text("\n".join(["one,two,class", *rows]))
    points = drift_streams.from_file(file)
    np.testing.assert_array_equal(points.X, X)
    assert points.y.tolist() == [1, 0, 1]


def test_classifiers_predict_before_they_learn():
    """Classes take turns: what comes next is never what came last."""
    X, y = np.arange(300.0)[:, None] % 2, np.arange(300) % 2
    points = drift_streams.Points(X, y)
    found = {
        name: drift.measure(make, points, as_they_are)
        for name, (make, as_they_are) in drift.METHODS.items()
        if "forest" not in name
    }
    assert found[drift.LAST]["error"] == 1.0
    assert found[drift.OURS]["error"] == found[drift.PLAIN]["error"] == 0.0
    assert all(record["bytes"] > 0 for record in found.values())


def test_clusters_drift():
    points = drift_streams.drifting_clusters()
    assert points.X.shape == (len(points.y), 25)
    assert np.bincount(points.y).min() > 100
