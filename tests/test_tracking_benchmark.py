"""The tracking benchmark, on streams so short that they show only that it runs."""

import numpy as np
import pytest
from rich.console import Console

from benchmarks import tracking, tracking_ablations, tracking_streams, tracking_tables

CASES = {
    "main": [
        tracking_streams.Case("static", n_seeds=2),
        tracking_streams.Case("recurring", n_seeds=2),
    ],
    "sweep": [tracking_streams.Case("recurring", "badly scaled", 10, badly_scaled=True, n_seeds=1)],
}


@pytest.fixture(scope="module")
def results():
    console = Console(quiet=True)
    return tracking.benchmark(
        console, CASES, 240, tracking_streams.DEVELOPMENT_SEEDS, tracking.RATES[::5]
    )


def test_every_case_is_measured_on_its_seeds(results):
    assert [len(results[part]) for part in ("main", "sweep")] == [4, 1]
    for record in results["main"] + results["sweep"]:
        assert np.isfinite([record[name] for name in ("hinge", "error", "knn", "trace")]).all()
        assert record["hinge_oracle"] <= record["hinge_best"] + 1e-12
        assert record["knn_least"] <= record["knn_best"]
        assert len(record["recovery"]) == (7 if record["profile"] == "recurring" else 0)


def test_tables_tell_which_bars_hold(results):
    console = Console(record=True, quiet=True, width=200)
    tracking_tables.show(console, results)
    page = tracking_tables.markdown(results)
    assert page.count("\n| n = 25, ") == 2
    assert "| badly scaled, recurring |" in page
    assert set(tracking_tables.bars(results)) == set(tracking_tables.BARS)


def test_ablations_know_the_hinge_of_other_losses():
    margins = np.array([-2.0, 0.0, 0.5])
    hinge = 1.0 - margins
    np.testing.assert_allclose(tracking_ablations.HINGE_OF["squared_hinge"](0.5 * hinge**2), hinge)
    logistic = np.log1p(np.exp(-margins))
    np.testing.assert_allclose(tracking_ablations.HINGE_OF["logistic"](logistic), hinge)
    variants = {"base": {}, "logistic": {"loss": "logistic"}}
    cases = CASES["main"][:1]
    found = tracking_ablations.ablate(Console(quiet=True), cases, (1001,), 100, variants)
    assert [row[0] for row in tracking_ablations.ablation_rows(found)] == ["base", "logistic"]


def test_development_and_test_seeds_are_apart():
    assert not set(tracking_streams.DEVELOPMENT_SEEDS) & set(tracking_streams.TEST_SEEDS)
    assert len(tracking_streams.PROFILES) >= 10
    assert len(tracking.RATES) >= 12
