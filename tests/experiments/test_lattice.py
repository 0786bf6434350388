import json
import math

import pytest

from metrack.experiments.lattice import MAX_EXTENSIONS, MEASURES, Axis, Problem, Search, search_all

RATE, RHO = Axis((-2, -1)), Axis((-7, -6), zero=-9)


def searched(problem, **losses):
    """A search in which each measure is a function of the settings."""
    search, asked = Search(problem, "a test"), []

    def score(wanted):
        for _, place in wanted:
            settings = problem.settings(place)
            asked.append(settings)
            yield {measure: (losses[measure](settings),) for measure in MEASURES}

    search_all([search], score)
    return search, asked


def distance_to(**best):
    """Lowest where each setting has its best value, in logarithms."""
    return lambda settings: sum(
        abs(math.log(settings[name] + 1e-9) - math.log(value + 1e-9))
        for name, value in best.items()
    )


def test_a_grid_grows_until_the_best_of_each_measure_is_inside():
    problem = Problem("m", {"rate": RATE, "rho": RHO})
    search, asked = searched(
        problem,
        knn_error=distance_to(rate=0.003, rho=0.001),
        nmi=distance_to(rate=10.0, rho=0.0003),
    )
    found = {each: problem.settings(search.best(each)) for each in MEASURES}
    assert found == {
        "knn_error": {"rate": 0.003, "rho": 0.001},
        "nmi": {"rate": 10.0, "rho": 0.0003},
    }
    for measure in MEASURES:
        best = search.best(measure)
        assert set(problem.around(best)) <= set(search.scores)
        assert problem.ends(best) == []
    assert len(asked) == len({json.dumps(each) for each in asked})  # none is tried twice


def test_a_setting_may_end_at_zero():
    problem = Problem("m", {"rho": RHO})
    downhill = {measure: lambda settings: settings["rho"] for measure in MEASURES}
    search, _ = searched(problem, **downhill)
    assert [search.best(each) for each in MEASURES] == [(RHO.zero,)] * 2
    assert problem.ends(search.best("nmi")) == ["rho"]


def test_what_is_not_allowed_is_not_tried():
    problem = Problem("m", {"a": RATE, "b": RATE}, allowed=lambda s: s["a"] <= s["b"])
    towards = distance_to(a=10.0, b=0.1)
    search, asked = searched(problem, knn_error=towards, nmi=towards)
    assert all(each["a"] <= each["b"] for each in asked)
    best = search.best("nmi")
    assert problem.ends(best) == ["a", "b"]


def test_a_search_without_end_fails_and_says_where():
    forever = {measure: lambda settings: -settings["rate"] for measure in MEASURES}
    with pytest.raises(ValueError, match=r"a test: after 12 extensions .* on the edge .*rate"):
        searched(Problem("m", {"rate": RATE}), **forever)
    assert MAX_EXTENSIONS == 12


def test_a_plateau_is_no_reason_to_go_on():
    flat = {measure: lambda settings: 0.0 for measure in MEASURES}
    search, asked = searched(Problem("m", {"rate": RATE}), **flat)
    assert search.problem.settings(search.best("nmi")) == asked[0]
    assert len(asked) == 3  # the grid, and one below


def test_values_of_an_axis():
    assert [Axis((), zero=-11).value(k) for k in (-11, -10, -7, -1, 0, 1)] == [
        0.0,
        1e-5,
        0.0003,
        0.3,
        1.0,
        3.0,
    ]
    assert [Axis((), ratio=2).value(k) for k in (6, 9)] == [64, 512]
