"""The benchmark on images, with scikit-learn's digits and so few pairs that it only runs."""

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import images


def test_it_makes_a_table(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "images.npz", X=X, y=y)
    given = images.images(tmp_path / "images.npz")
    np.testing.assert_array_equal(given[0], X)
    records = {n: [images.measure(images.stream(*given, n, 1, 250), (0.1,))] for n in (8, 64)}
    for [found] in records.values():
        assert next(iter(found)) == "plain distance"
        assert all(0.5 < auc <= 1.0 for auc, _ in found.values())
    lines = images.table(records).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["8", "64"]
