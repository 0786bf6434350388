import json
import math

import numpy as np
import pytest

from metrack.experiments import tuning
from metrack.experiments.drift import SCHEDULES, Scale
from metrack.experiments.lattice import Axis, Problem, Search
from metrack.experiments.methods import METHODS, TUNED, tuned

SMALL = tuning.Course(Scale(120, 1.0))


@pytest.mark.parametrize(("gain", "n_choices"), [(0.02, 2), (0.002, 1)])
def test_clusters_have_settings_of_their_own_where_that_matters(gain, n_choices):
    search = Search(Problem("m", {"rate": Axis((-2, -1))}), "a test")
    search.add(
        {
            (-2,): {"knn_error": (0.1,), "nmi": (-0.5, -0.7)},
            (-1,): {"knn_error": (0.2,), "nmi": (-0.5 - gain, -0.7)},
        }
    )
    assert list(tuning.best(search).values()) == [{"rate": 0.1}, {"rate": 0.3}]
    assert len({each["rate"] for each in tuning.chosen(search).values()}) == n_choices
    assert tuning.chosen(search)["knn_error"] == {"rate": 0.1}


def test_single_rates_are_scored_once_they_have_converged():
    """A rate that is slow at first and good at the end is judged by the end."""
    study = tuning.Course(Scale(2400, 1.0), "static").study()
    assert [(part.drift, part.length) for part in study.segments] == [(0.0, 1200)]
    moderate = tuning.Course(Scale(2400, 0.25), "moderate").study()
    assert [(part.partition, part.drift) for part in moderate.segments] == [("B", 0.0075)]
    rate = ("comid-low", {"learning_rate": 0.001, "rho": 0.0003})
    late, whole = (
        tuning.score(tuning.Job(tuning.Course(Scale(2400, 1.0), stretch), 0, (rate,)))[0][0]
        for stretch in ("static", "all")
    )
    assert late < whole


def test_scores_are_kept_and_more_streams_go_on_from_fewer(tmp_path, monkeypatch):
    path, asked = tmp_path / "scores.json", [(SMALL, "online-itml", {"learning_rate": 0.1})] * 2
    jobs = []

    def counted(job, score=tuning.score):
        jobs.append(job.number)
        return score(job)

    monkeypatch.setattr(tuning, "score", counted)
    first = tuning.Scores(path, 1, n_jobs=1).find(asked)
    found = tuning.Scores(path, 3, n_jobs=1).find(asked)
    assert jobs == [0, 1, 2]
    assert tuning.Scores(path, 1, n_jobs=1).find(asked) == first
    assert tuning.Scores(path, 3, n_jobs=1).find(asked) == found == [found[0]] * 2
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"settings": {"seed": 1}}))
    with pytest.raises(ValueError, match="another version; delete it"):
        tuning.Scores(path, 1, n_jobs=1)


def test_a_candidate_does_not_depend_on_the_others():
    two = (("online-itml", {"learning_rate": 0.1}), ("lmnn", {"regularization": 0.1}))
    together = tuning.score(tuning.Job(SMALL, 0, two))
    alone = [tuning.score(tuning.Job(SMALL, 0, (each,)))[0] for each in two]
    assert together == alone


def test_tuning_writes_what_it_chose(tmp_path, monkeypatch, capsys):
    problem = Problem("online-itml", {"learning_rate": Axis((-2, -1))})
    monkeypatch.setattr(tuning, "PROBLEMS", (problem,))
    monkeypatch.setattr(tuning, "SCHEDULES", {"long": Scale(60, 0.25), "fast": Scale(60, 1.0)})

    def score(job):
        rates = [settings["learning_rate"] for _, settings in job.candidates]
        return [[abs(math.log10(rate)), rate < 1, rate] for rate in rates]

    monkeypatch.setattr(tuning, "score", score)
    tuning.tune(tmp_path, 2, 1)
    file = json.loads((tmp_path / "tuned.json").read_text())
    for schedule in SCHEDULES:
        assert file["settings"][schedule]["tracker"] == {"knn_error": {}, "nmi": {}}
        assert file["settings"][schedule]["online-itml"] == {
            "knn_error": {"learning_rate": 1.0},
            "nmi": {"learning_rate": 0.3},
        }
        tried = file["candidates"][schedule]["online-itml"]["tried"]
        assert tried[0]["settings"] == {"learning_rate": 1.0}
    assert "long, online-itml" in capsys.readouterr().out


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_tuned_settings_lie_inside_all_that_was_tried(schedule):
    assert set(tuned(schedule)) == set(METHODS)
    file = json.loads(TUNED.read_text(encoding="utf-8"))["candidates"][schedule]
    for problem in tuning.PROBLEMS:
        tried, choice = file[problem.method]["tried"], file[problem.method]["best"]
        assert tuned(schedule)[problem.method]["knn_error"] == choice["knn_error"]
        assert tuned(schedule)[problem.method]["nmi"] in choice.values()
        ranks = {"knn_error": lambda s: s["knn_error"], "nmi": lambda s: (-s["p_nmi"], -s["nmi"])}
        for measure, rank in ranks.items():
            best = min(map(rank, tried))
            assert choice[measure] in [each["settings"] for each in tried if rank(each) == best]
            for name, value in choice[measure].items():
                others = {each["settings"][name] for each in tried}
                inside = min(others) < value < max(others)
                assert inside or name in file[problem.method]["natural_bounds"][measure]
    errors = [each["knn_error"] for each in file["lmnn"]["tried"]]
    assert errors == sorted(errors)
    assert np.isfinite(errors).all()
