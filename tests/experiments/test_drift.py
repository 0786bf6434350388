import numpy as np
import pytest

from metrack import LMNN, MetricTracker
from metrack.evaluate import kmeans_nmi, leave_one_out_error
from metrack.experiments.drift import (
    MEASURES,
    REFERENCES,
    Contestant,
    Study,
    run_trial,
    segment_weights,
)
from metrack.experiments.methods import METHODS, Follower, Refitted, check_methods
from metrack.experiments.summary import mean_interval, summarise
from metrack.experiments.verdicts import Lead, claims

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
    assert not np.array_equal(trial["tracker"], run_trial(Study(n_pairs=60, seed=1), 0)["tracker"])


def test_a_method_does_not_depend_on_the_others(trial):
    alone = run_trial(Study(("lmnn", "comid-low"), n_pairs=60), 0)
    assert list(alone) == [*REFERENCES, "lmnn", "comid-low"]
    assert all(np.array_equal(trial[name], alone[name]) for name in alone)


def test_a_trial_measures_what_a_user_would(trial):
    stream = SMALL.stream(0)
    tracker, start = MetricTracker(random_state=0), 0
    for i, stop in enumerate(SMALL.steps().tolist()):
        tracker.partial_fit(*stream.pairs(start, stop))
        view = tracker.for_neighbours()
        X, labels = view.transform(stream.points(stop - 1)), stream.labels(stop - 1)
        assert trial["tracker"][0, i] == leave_one_out_error(X, labels, 5, n_tested=500)
        assert trial["tracker"][1, i] == kmeans_nmi(X, labels, random_state=0)
        start = stop


def test_references_turn_with_the_data(trial):
    stream, steps = SMALL.stream(0), SMALL.steps()
    for i in (0, len(steps) // 2, -1):
        t = int(steps[i]) - 1
        true = stream.points(t) @ stream.components(t).T
        assert trial["true metric"][0, i] == leave_one_out_error(true, stream.labels(t), 5, 500)


@pytest.mark.parametrize(
    ("schedule", "switches", "drift"),
    [("long", [6000, 18_000], 0.0075), ("fast", [1500, 4500], 0.03)],
)
def test_evaluations_meet_segments_and_are_dense_after_switches(schedule, switches, drift):
    study = Study(schedule=schedule)
    steps, ends = study.steps(), np.cumsum([part.length for part in study.segments])
    assert study.segments[1].drift == pytest.approx(drift)
    assert study.switches == switches
    assert set(ends) <= set(steps)
    assert {switch + after for switch in switches for after in (50, 100, 200, 400, 800)} <= set(
        steps
    )
    assert steps[-1] == study.n_pairs
    assert study.describe()["schedule"] == schedule


def test_another_length_leaves_the_drift():
    assert [part.drift for part in Study(n_pairs=600).segments] == [
        part.drift for part in Study().segments
    ]


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match="unknown schedule 'slow'; known: long, fast"):
        Study(schedule="slow")


def test_each_measure_is_of_the_settings_that_were_chosen_by_it():
    gentle, quick = {"learning_rate": 0.001}, {"learning_rate": 0.3}
    both = {"knn_error": gentle, "nmi": quick}
    found = {
        name: run_trial(Study(("online-itml",), n_pairs=60, settings={"online-itml": choice}), 0)[
            "online-itml"
        ]
        for name, choice in {
            "both": both,
            "gentle": dict.fromkeys(MEASURES, gentle),
            "quick": dict.fromkeys(MEASURES, quick),
        }.items()
    }
    assert np.array_equal(found["both"][0], found["gentle"][0])
    assert np.array_equal(found["both"][1], found["quick"][1])
    assert not np.array_equal(found["both"], found["gentle"])
    assert len(Contestant("online-itml", both, 0).followers) == 2
    assert len(Contestant("online-itml", dict.fromkeys(MEASURES, gentle), 0).followers) == 1


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
        past = Refitted(LMNN(), 20, random_state=seed)
        for part in np.split(np.arange(200.0), [7, 50, 51]):  # as it comes
            past.partial_fit(part[:, None], np.zeros(len(part), dtype=int))
        counts[np.ravel(past.points).astype(int)] += 1
    assert counts.sum() == 20 * 300
    assert np.abs(counts - 30).max() < 6 * np.sqrt(30)


def test_the_latest_points_are_a_window():
    window = Refitted(LMNN(), 20, latest=True)
    for part in np.split(np.arange(200.0), [7, 50, 51]):
        window.partial_fit(part[:, None], part.astype(int))
    assert np.ravel(window.points).tolist() == window.labels.tolist() == list(range(180, 200))


def test_a_batch_method_is_as_fresh_at_every_evaluation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += 4 * y
    window = Refitted(LMNN(), 40, latest=True)
    assert window.partial_fit(X[:1], y[:1]).transform(X) is X  # nothing to tell apart yet
    window.partial_fit(X[1:], y[1:])
    expected = LMNN().fit(X[20:], y[20:]).transform(X)
    for _ in range(2):  # asking again changes nothing
        np.testing.assert_array_equal(window.transform(X), expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "unknown method 'nosuch'; known are tracker, "),
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


def numbers(**errors):
    """Results of four trials whose methods have constant errors."""
    shape = (2, 4, len(SMALL.steps()))
    return {name: np.full(shape, value) for name, value in errors.items()}


def test_claims_follow_the_numbers():
    names = tuple(METHODS)
    for best in ("tracker", "comid-low"):
        values = {name: 0.1 if name == best else 0.2 for name in names}
        given = numbers(raw=0.3, **{"true metric": 0.0}, **values)
        for name in names:  # clusters are found by the best alone
            given[name][1] = 0.9 if name == best else 0.5
        found = {each.name: each for each in claims(SMALL, given)}
        aims = [each.held for each in found.values() if each.source == "aim"]
        assert aims == [best == "tracker"] * 8
        low = found["low rate fails"]
        assert low.held is (None if best == "tracker" else False)
        assert low.margin.mean == pytest.approx(0.0 if best == "tracker" else -0.1)
        assert "comid-low 10.00 %" in low.evidence or best == "tracker"


def test_a_claim_is_open_where_its_interval_has_zero_in_it():
    assert Lead(0.1, 0.05, 0.15).held() is True
    assert Lead(-0.1, -0.15, -0.05).held() is False
    assert Lead(0.1, -0.05, 0.25).held() is None
    assert (Lead(0, 0, 0).held(), Lead(0, 0, 0).held(ties=True)) == (None, True)


def test_claims_compare_within_trials():
    """Methods that differ little, but in every trial, on streams that differ much."""
    given = numbers(raw=0.9, **{"true metric": 0.0}, tracker=0.1, **{"online-itml": 0.1})
    hardness = np.array([0.0, 0.1, 0.2, 0.4])[:, None]
    for name in ("tracker", "online-itml"):
        given[name][0] += hardness
    given["online-itml"][0] += 0.01
    first = claims(SMALL, given)[0]
    assert first.held
    assert first.margin == pytest.approx((0.01, 0.01, 0.01))


def test_claims_are_only_about_methods_that_ran():
    assert claims(SMALL, numbers(raw=0.3, **{"true metric": 0.0}, tracker=0.1)) == []


def test_recovery_is_the_median_time_down_to_half_way():
    values = numbers(raw=0.3, **{"true metric": 0.1}, tracker=0.1)
    after = SMALL.steps() > SMALL.switches[0]
    values["tracker"][0][:, after] = 0.5  # never back, in two trials of four
    values["tracker"][0, :2] = 0.15
    first, _second = summarise(SMALL, values)["methods"]["tracker"]["recovery"]
    assert first["median"] == SMALL.steps()[after][0] - SMALL.switches[0]
    assert first["high"] is None
    assert first["recovered"] == 0.5


def test_intervals_cover():
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.normal(size=8)) for _ in range(2000)]
    covered = np.mean([each["low"] <= 0 <= each["high"] for each in found])
    assert 0.93 < covered < 0.97
    assert mean_interval(np.ones(1)) == {"mean": 1.0, "low": 1.0, "high": 1.0}
