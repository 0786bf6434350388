import json

import numpy as np
import pytest

from metrack import LMNN, SADL
from metrack.evaluate import kmeans_nmi, leave_one_out_error
from metrack.experiments import tuning
from metrack.experiments.drift import REFERENCES, Study, run_trial, segment_weights
from metrack.experiments.methods import METHODS, TUNED, Follower, WholePast, check_methods, tuned
from metrack.experiments.summary import claims, mean_interval, summarise

SMALL = Study(n_pairs=60)


class Halver:
    """A user's method that knows nothing of scikit-learn."""

    def fit(self, pairs, y):
        self.n_seen = len(pairs)
        return self

    def transform(self, X):
        return X[:, : self.n_seen // 30]


@pytest.fixture(scope="module")
def trial():
    return run_trial(SMALL, 0)


def test_a_trial_is_a_function_of_seed_and_number(trial):
    again, other = run_trial(SMALL, 0), run_trial(SMALL, 1)
    assert all(np.array_equal(trial[name], again[name]) for name in trial)
    assert not any(np.array_equal(trial[name], other[name]) for name in trial)
    assert not np.array_equal(trial["sadl"], run_trial(Study(n_pairs=60, seed=1), 0)["sadl"])


def test_a_method_does_not_depend_on_the_others(trial):
    alone = run_trial(Study(("lmnn", "comid-low"), n_pairs=60), 0)
    assert list(alone) == [*REFERENCES, "lmnn", "comid-low"]
    assert all(np.array_equal(trial[name], alone[name]) for name in alone)


def test_a_trial_measures_what_a_user_would(trial):
    stream = SMALL.stream(0)
    tracker, start = SADL(random_state=0), 0
    for i, stop in enumerate(SMALL.steps().tolist()):
        tracker.partial_fit(*stream.pairs(start, stop))
        view = tracker.for_neighbours()
        X, labels = view.transform(stream.points(stop - 1)), stream.labels(stop - 1)
        assert trial["sadl"][0, i] == leave_one_out_error(X, labels, 5, n_tested=500)
        assert trial["sadl"][1, i] == kmeans_nmi(X, labels, random_state=0)
        start = stop


def test_references_turn_with_the_data(trial):
    stream, steps = SMALL.stream(0), SMALL.steps()
    for i in (0, len(steps) // 2, -1):
        t = int(steps[i]) - 1
        true = stream.points(t) @ stream.components(t).T
        assert trial["true metric"][0, i] == leave_one_out_error(true, stream.labels(t), 5, 500)


def test_evaluations_meet_segments_and_are_dense_after_switches():
    study = Study()
    steps, ends = study.steps(), np.cumsum([part.length for part in study.schedule])
    assert study.switches == [1500, 4500]
    assert set(ends) <= set(steps)
    assert {1550, 1600, 4550, 4600} <= set(steps)
    assert steps[-1] == 6000


@pytest.mark.parametrize("n_pairs", [5, 60, 6000])
def test_weights_are_the_pairs_each_evaluation_stands_for(n_pairs):
    study = Study(n_pairs=n_pairs)
    weights = segment_weights(study)
    assert all(w.sum() == pytest.approx(1.0) for w in weights)
    np.testing.assert_allclose(weights[-1] * n_pairs, np.diff(study.steps(), prepend=0))


def test_anybodys_estimator_is_followed():
    name = f"{__name__}:Halver"
    follower = Follower(name, {}, random_state=0)
    pairs, y = SMALL.stream(0).pairs()
    points, labels = np.ones((4, 25)), np.zeros((60, 2), dtype=int)
    assert follower.embed(points).shape == (4, 25)  # nothing learned yet
    follower.follow(pairs[:30], y[:30], labels[:30])
    assert follower.embed(points).shape == (4, 1)
    follower.follow(pairs[30:], y[30:], labels[30:])
    assert follower.embed(points).shape == (4, 2)  # fitted to all pairs so far


def test_an_estimator_of_points_is_given_points():
    follower = Follower(
        "sklearn.discriminant_analysis:LinearDiscriminantAnalysis", {}, random_state=0
    )
    stream = SMALL.stream(0)
    pairs, y = stream.pairs(0, 30)
    follower.follow(pairs, y, stream.labels(0)[stream.rows(0, 30)[0]])
    assert follower.embed(stream.points(0)).shape == (2000, 2)


def test_the_whole_past_is_an_even_sample():
    counts = np.zeros(200)
    for seed in range(300):
        past = WholePast(LMNN(), 20, every=10**9, random_state=seed)
        past.partial_fit(np.arange(200.0)[:, None], np.zeros(200, dtype=int))
        counts[np.ravel(past.points).astype(int)] += 1
    assert counts.sum() == 20 * 300
    assert np.abs(counts - 30).max() < 6 * np.sqrt(30)


def test_before_its_first_fit_a_batch_method_leaves_points_as_they_are(trial):
    assert np.array_equal(trial["lmnn"], trial["raw"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "unknown method 'nosuch'; known are sadl, "),
        ("no.such:Class", "cannot be imported"),
        ("math:nosuch", "cannot be imported"),
        ("math:pi", "must be a class"),
        (":", "cannot be imported|unknown method"),
    ],
)
def test_an_unknown_method_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        check_methods([name])


def test_what_cannot_learn_is_refused():
    with pytest.raises(ValueError, match="needs transform"):
        Follower("builtins:dict", {}, random_state=0)


def test_all_known_methods_have_tuned_settings_from_the_grid():
    assert set(tuned()) == set(METHODS)
    for name, grid in tuning.GRIDS.items():
        assert all(value in grid[key] for key, value in tuned()[name].items())
    file = json.loads(TUNED.read_text(encoding="utf-8"))
    for name, tried in file["candidates"].items():
        errors = [each["knn_error"] for each in tried]
        assert errors == sorted(errors)
        assert tried[0]["settings"] == tuned()[name]


def numbers(**errors):
    """Results of four trials whose methods have constant errors."""
    shape = (2, 4, len(SMALL.steps()))
    return {name: np.full(shape, value) for name, value in errors.items()}


def test_claims_follow_the_numbers():
    names = tuple(METHODS)
    for best in ("sadl", "comid-low"):
        errors = {name: 0.1 if name == best else 0.2 for name in names}
        results = summarise(SMALL, numbers(raw=0.3, **{"true metric": 0.0}, **errors))
        aims = [each for each in results["claims"] if each["source"] == "aim"]
        assert [each["held"] for each in aims] == [best == "sadl"] * 6
        low = next(e for e in results["claims"] if "low rate fails" in e["claim"])
        assert not low["held"]
        assert "comid-low 10.00 %" in low["evidence"] or best == "sadl"


def test_claims_are_only_about_methods_that_ran():
    results = summarise(SMALL, numbers(raw=0.3, **{"true metric": 0.0}, sadl=0.1))
    assert claims(results) == []


def test_recovery_is_the_median_time_down_to_half_way():
    values = numbers(raw=0.3, **{"true metric": 0.1}, sadl=0.1)
    after = SMALL.steps() > SMALL.switches[0]
    values["sadl"][0][:, after] = 0.5  # never back, in two trials of four
    values["sadl"][0, :2] = 0.15
    first, _second = summarise(SMALL, values)["methods"]["sadl"]["recovery"]
    assert first["median"] == SMALL.steps()[after][0] - SMALL.switches[0]
    assert first["high"] is None
    assert first["recovered"] == 0.5


def test_intervals_cover():
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.normal(size=8)) for _ in range(2000)]
    covered = np.mean([each["low"] <= 0 <= each["high"] for each in found])
    assert 0.93 < covered < 0.97
    assert mean_interval(np.ones(1)) == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_tuning_scores_the_stream_the_paper_names():
    assert [part.drift for part in tuning.SCHEDULES["comid-low"]] == [0.0]
    assert [part.drift for part in tuning.SCHEDULES["comid-high"]] == [0.03]
    sane, absurd = (
        tuning.score("comid-low", {"learning_rate": 0.003, "rho": rho}, 0) for rho in (0.003, 100.0)
    )
    assert sane < 0.1 < absurd
