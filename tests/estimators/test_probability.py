"""How likely pairs are alike, and where the line is drawn: against other ways to find the same."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import metrack
from metrack import KernelTracker, MetricTracker, OnlineITML
from metrack.engine.ensemble.scores import KEPT, new_scores
from metrack.estimators.reading.probability import Curve, check_goal, curve, cut, sample, sample_of


def scored(n_alike=300, n_others=200, share=0.1, seed=0):
    """Scores of overlapping kinds: logarithms of ratios are normal."""
    rng = np.random.default_rng(seed)
    scores = new_scores()
    for kind, (n, mean) in enumerate([(n_alike, -1.0), (n_others, 0.6)]):
        scores.ratio[kind, :n] = np.exp(rng.normal(mean, 0.8, size=n))
        scores.seen[kind] = n
    scores.share[0] = share
    return scores


def judgements(n_pairs, share=0.2, seed=0, n=6, units=1.0):
    """Pairs alike in their first feature, but for some that are judged at random."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n_pairs, 2, n))
    apart = np.abs(pairs[:, 0, 0] - pairs[:, 1, 0])
    noisy = apart * np.exp(0.5 * rng.normal(size=n_pairs))
    return pairs * units, np.where(noisy < np.quantile(noisy, share), 1, -1)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_the_curve_is_a_weighted_logistic_regression(share):
    found = sample(scored(share=share))
    weights = found.alike + found.others
    assert weights.sum() == pytest.approx(1.0)
    assert found.alike.sum() == pytest.approx(share)
    log = np.log(found.ratio)[:, None]
    other = LogisticRegression(C=1e9, tol=1e-12, max_iter=10_000)
    other.fit(log, found.alike > 0, sample_weight=weights * len(weights))
    expected = other.predict_proba(log)[:, 1]
    np.testing.assert_allclose(curve(found)(found.ratio), expected, atol=1e-3)


def test_a_curve_of_squares():
    ratio = np.geomspace(0.01, 100.0, 7)
    of_ratio = Curve(0.3, 1.7)
    np.testing.assert_allclose(of_ratio.of_squares(2.5)(2.5 * ratio), of_ratio(ratio))


def test_kinds_that_nobody_mistakes_have_a_curve():
    found = sample_of(np.array([0.1, 0.2, 5.0, 6.0]), np.array([True, True, False, False]))
    p = curve(found)(found.ratio)
    assert np.isfinite(p).all()
    assert (p[:2] > 0.9).all()
    assert (p[2:] < 0.1).all()


def test_before_both_kinds_are_known():
    assert curve(sample(new_scores()))(np.array([1.0]))[0] == 0.5
    likely = curve(sample(scored(n_alike=8, n_others=0)))(np.array([1.0]))[0]
    assert likely == pytest.approx(9 / 10)
    unlikely = curve(sample(scored(n_alike=0, n_others=8)))(np.array([1.0]))[0]
    assert unlikely == pytest.approx(1 / 10)


@pytest.mark.parametrize(("goal", "least"), [("f1", 0.0), ("precision", 0.7), ("recall", 0.9)])
def test_the_line_is_the_best_of_all(goal, least):
    """Brute force over all places, with how likely each pair is by half of both says."""
    found = sample(scored())
    likely = 0.5 * found.alike + 0.5 * (found.alike + found.others) * curve(found)(found.ratio)
    called = found.alike + found.others
    best, expected = -1.0, None
    for ratio in found.ratio:
        inside = found.ratio <= ratio
        hits, precision = likely[inside].sum(), likely[inside].sum() / called[inside].sum()
        recall = hits / likely.sum()
        value = {
            "f1": 2.0 / (1.0 / precision + 1.0 / recall),
            "precision": recall if precision >= least else -1.0,
            "recall": 2.0 - ratio / found.ratio[-1] if recall >= least else -1.0,
        }[goal]
        if value > best:
            best, expected = value, ratio
    assert cut(found, goal, least) == expected


def test_a_precision_that_no_line_reaches_calls_nothing():
    found = sample_of(np.array([1.0, 2.0, 3.0]), np.array([False, False, True]))
    assert cut(found, "precision", 0.99) < 1.0


@pytest.mark.parametrize(
    "goal", ["f2", {"precision": 1.5}, {"recall": "much"}, {}, {"recall": 0.9, "precision": 0.9}, 3]
)
def test_other_goals_are_refused(goal):
    with pytest.raises(ValueError, match="it must be 'accuracy', 'f1'"):
        check_goal(goal)
    pairs, y = judgements(50)
    with pytest.raises(ValueError, match="threshold="):
        MetricTracker(threshold=goal).fit(pairs, y)


@pytest.mark.parametrize("make", [MetricTracker, KernelTracker])
def test_probabilities_are_calibrated(make):
    """The mean over fresh pairs is the share of alike ones, at the top and at the bottom too."""
    pairs, y = judgements(9000, share=0.2)
    tracker = make().fit(pairs[:6000], y[:6000])
    p = tracker.predict_proba(pairs[6000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    alike, fresh = p[:, 1], y[6000:] > 0
    # 3,000 pairs: a share has a standard deviation of .008; the sample of 1,024 one of .02.
    assert alike.mean() == pytest.approx(fresh.mean(), abs=0.08)
    sure = alike > np.quantile(alike, 0.8)
    assert alike[sure].mean() == pytest.approx(fresh[sure].mean(), abs=0.15)
    assert alike[~sure].mean() == pytest.approx(fresh[~sure].mean(), abs=0.08)
    # The nearer, the likelier.
    order = np.argsort(tracker.pair_distance(pairs[6000:]))
    assert (np.diff(alike[order]) <= 1e-12).all()


def test_goals_are_followed():
    pairs, y = judgements(9000, share=0.1)
    found = {}
    for goal in ("accuracy", "f1", {"precision": 0.9}, {"recall": 0.9}):
        tracker = MetricTracker(threshold=goal).fit(pairs[:6000], y[:6000])
        called, fresh = tracker.predict(pairs[6000:]) > 0, y[6000:] > 0
        hits = np.sum(called & fresh)
        found[str(goal)] = f1_score(fresh, called), hits / called.sum(), hits / fresh.sum()
    best, _, _ = found["f1"]
    assert all(f1 <= best + 0.03 for f1, _, _ in found.values())
    # Of 300 alike pairs a rate has a standard deviation of .02, of the sample another .02.
    assert found["{'precision': 0.9}"][1] > 0.75
    assert found["{'recall': 0.9}"][2] > 0.75
    assert found["{'recall': 0.9}"][2] > found["{'precision': 0.9}"][2]


def test_the_usual_threshold_is_the_learned_one():
    pairs, y = judgements(500)
    tracker = MetricTracker().fit(pairs, y)
    assert tracker.threshold_ == pytest.approx(np.sqrt(tracker.mu_))
    tracker.set_threshold(0.5)
    assert tracker.threshold_ == 0.5


def test_calibrating_by_the_same_goals():
    pairs, y = judgements(3000)
    learner = OnlineITML().fit(pairs[:2000], y[:2000])
    rest = pairs[2000:], y[2000:]
    f1 = learner.calibrate_threshold(*rest, strategy="f1").threshold_
    assert f1 == learner.calibrate_threshold(*rest, strategy="f_beta", beta=1.0).threshold_
    strict = learner.calibrate_threshold(*rest, strategy={"precision": 0.8}).threshold_
    loose = learner.calibrate_threshold(*rest, strategy={"recall": 0.95}).threshold_
    assert strict < loose
    with pytest.raises(ValueError, match="strategy="):
        learner.calibrate_threshold(*rest, strategy={"speed": 0.8})


def test_scores_are_saved(tmp_path):
    pairs, y = judgements(3000)
    tracker = MetricTracker(threshold="f1").fit(pairs[:1500], y[:1500])
    tracker.save(tmp_path)
    again = metrack.load(tmp_path)
    for each in (tracker, again):
        each.observe(pairs[1500:], y[1500:])
    np.testing.assert_array_equal(
        tracker.predict_proba(pairs[:50]), again.predict_proba(pairs[:50])
    )
    assert tracker.threshold_ == again.threshold_
    assert (tracker.engine_.experts.scores.seen > 0).all()
    assert tracker.engine_.experts.scores.ratio.shape == (2, KEPT)


@pytest.mark.parametrize("factor", [1e8, 1e-8])
def test_a_feature_of_huge_numbers_drowns_no_other(factor):
    """Metrics are read in the user's units, however far these are apart."""
    units = np.array([1.0, factor, 1.0, 1e3, 1.0, 1e-3])
    pairs, y = judgements(3000, units=units)
    plainly, _ = judgements(3000)
    raw = MetricTracker().fit(pairs[:2000], y[:2000])
    even = MetricTracker().fit(plainly[:2000], y[:2000])
    assert raw.score(pairs[2000:], y[2000:]) > even.score(plainly[2000:], y[2000:]) - 0.02
    # What was read predicts as what was learned.
    before = raw.pair_distance(pairs[2000:2001])[0] ** 2
    mu, label = raw.mu_, y[2000]
    suffered = raw.observe(pairs[2000:2001], y[2000:2001])[0]
    assert suffered == pytest.approx(max(0.0, 1.0 - label * (mu - before)), rel=1e-4, abs=1e-4)


def test_a_feature_times_a_thousand_changes_nothing_in_own_units():
    pairs, y = judgements(600)
    found = []
    for factor in (1.0, 1024.0):
        tracker = MetricTracker().fit(pairs * [1, factor, 1, 1, 1, 1], y)
        own = tracker.engine_.spaces[1].banks
        records = [getattr(bank, part) for bank in own for part in bank.STATE]
        found.append([array for record in records for array in record])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
