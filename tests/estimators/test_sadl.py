"""SADL as published, against the textbook; what every combiner must keep."""

import copy

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack import SADL, KernelTracker, MetricTracker
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.learners import cover as engine_cover
from metrack.engine.numerics.pairs import Pairs
from metrack.streams import DriftingClusters, paper_schedule
from tests.reference.sadl import DenseSADL, cover


@numba.njit
def active_levels(tau, first_interval):
    return engine_cover.active_levels(tau, first_interval)


def stream(rng, n_pairs, n):
    """Pairs whose meaning of alike moves from the first feature to the second half-way."""
    pairs = rng.normal(size=(n_pairs, 2, n)) / np.sqrt(n)
    which = (np.arange(n_pairs) >= n_pairs // 2).astype(int)
    gap = np.abs(pairs[:, 0] - pairs[:, 1])[np.arange(n_pairs), which]
    return pairs, np.where(gap < 0.5, 1, -1)


@pytest.mark.parametrize("first_interval", [1, 4, 16])
def test_as_published_is_the_textbook(first_interval):
    """Active intervals, weights, drawn scale, metric and mu of every learner, at every step."""
    pairs, y = stream(np.random.default_rng(0), 3000, 5)
    options = {"eta0": 0.5, "rho": 0.01, "first_interval": first_interval}
    tracker = SADL.as_published(random_state=7, **options)
    textbook = DenseSADL(5, rng=np.random.RandomState(7), **options)
    for t, (pair, label) in enumerate(zip(pairs, y, strict=True)):
        suffered = tracker.observe(pair[None], [label])[0]
        assert suffered == pytest.approx(textbook.observe(pair[0] - pair[1], label), abs=1e-8), t
        bank, n = tracker.engine_, len(textbook.levels)
        assert tracker.scales_.tolist() == [first_interval * 2**j for j in textbook.levels], t
        expected = textbook.weights / textbook.weights.sum()
        np.testing.assert_allclose(tracker.weights_, expected, rtol=1e-8, err_msg=str(t))
        assert tracker.selected_scale_ == first_interval * 2**textbook.drawn, t
        np.testing.assert_allclose(bank.mu[:n], [each.mu for each in textbook.learners], rtol=1e-8)
        for j in range(n):
            M = textbook.learners[j].M
            assert np.abs(bank.metric(j).matrix() - M).max() < 1e-8, (t, j)
        drawn = textbook.learners[textbook.drawn]
        assert np.abs(tracker.get_mahalanobis_matrix() - drawn.M).max() < 1e-8, t
        assert tracker.mu_ == pytest.approx(drawn.mu, rel=1e-8), t


@pytest.mark.parametrize("first_interval", [1, 3, 16])
def test_cover_is_that_of_brute_force(first_interval):
    until = 10_000
    count = np.zeros(until + 1, dtype=int)
    for start, end in cover(until, first_interval):
        count[start : end + 1] += 1
    for tau in range(first_interval, until + 1):
        assert active_levels(tau, first_interval) == count[tau]
        assert count[tau] == np.floor(np.log2(tau / first_interval)) + 1


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("output", ["average", "sample", "best"])
def test_weights_are_probabilities(combiner, output):
    pairs, y = stream(np.random.default_rng(1), 700, 4)
    tracker = SADL(combiner=combiner, output=output, first_interval=2, random_state=0)
    for t in range(len(y)):
        losses = tracker.observe(pairs[t : t + 1], y[t : t + 1])
        weights = tracker.weights_
        assert np.isfinite(losses).all()
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()
        assert len(weights) == len(tracker.scales_)
        if COMBINERS[combiner].always_on:
            assert len(weights) == 12
        else:
            assert len(weights) == np.floor(np.log2((t + 2) / 2)) + 1
        assert tracker.selected_scale_ in tracker.scales_


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_average_is_never_worse_than_a_draw_on_average(combiner, loss):
    """Jensen: the convex loss of the mean is at most the mean loss, round by round."""
    pairs, y = stream(np.random.default_rng(2), 500, 4)
    tracker = SADL(combiner=combiner, loss=loss)
    tracker.observe(pairs[:1], y[:1])
    for t in range(1, len(y)):
        mean_of_losses = expected_loss(tracker, pairs[t], y[t], loss)
        assert tracker.observe(pairs[t : t + 1], y[t : t + 1])[0] <= mean_of_losses + 1e-9


def expected_loss(tracker, pair, label, loss):
    """What a learner drawn by the weights of the coming round would lose, on average."""
    twin, said = copy.deepcopy(tracker).engine_, []
    u = pair[0] - pair[1]
    given = Pairs(u, np.arange(u.size), np.empty(0, np.int64), np.array([float(label)]))
    twin.observe(given, np.empty(0), said)
    q, mu = (np.concatenate([bank[part][0] for bank in said[0]]) for part in (0, 1))
    m = label * (mu - q)
    losses = {
        "hinge": np.maximum(0.0, 1 - m),
        "squared_hinge": np.maximum(0.0, 1 - m) ** 2 / 2,
        "logistic": np.logaddexp(0, -m),
    }[loss]
    return twin.experts.known.p[: twin.experts.n_active] @ losses


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["random", "drifting", "adversarial"]))
def test_meta_bound_holds_on_every_interval(seed, kind):
    """sum of r_t(I) <= 5 ln(s + 1) sqrt(|I|), surely."""
    rng = np.random.default_rng(seed)
    pairs, y = stream(rng, 300, 3)
    tracker = SADL.as_published(eta0=rng.choice([0.1, 1.0, 5.0]), random_state=0)
    running: dict[int, float] = {}
    for t in range(len(y)):
        if kind == "random":
            label = rng.choice([-1, 1])
        elif kind == "adversarial" and t:  # whatever the present prediction is not
            label = -int(tracker.predict(pairs[t : t + 1])[0])
        else:
            label = y[t]
        tracker.observe(pairs[t : t + 1], [label])
        experts, n = tracker.engine_.experts.known, tracker.engine_.experts.n_active
        regret = experts.p[:n] @ experts.losses[:n] - experts.losses[:n]
        for j in range(n):
            length, tau = 2**j, t + 1
            running[j] = regret[j] + (0.0 if tau % length == 0 else running[j])
            assert running[j] <= 5 * np.log(tau + 1) * np.sqrt(length) + 1e-12


def test_recovers_after_a_switch_and_says_so():
    pairs, y = stream(np.random.default_rng(3), 6000, 5)
    tracker = MetricTracker()
    tracker.observe(pairs[:3000], y[:3000])
    before = tracker.get_metric()
    calm = tracker.drift_report()
    losses = tracker.observe(pairs[3000:], y[3000:])
    report = tracker.drift_report(since=before)
    assert losses[-500:].mean() < 0.6 * losses[:100].mean()
    assert report.change[1] > 0 > report.change[0]
    assert set(report.features[:2]) == {0, 1}
    assert calm.effective_window > 1
    assert 2000 < report.pairs_since_change <= 3000


@pytest.mark.parametrize("make", [SADL, SADL.as_published, KernelTracker])
def test_the_effective_window_holds_no_pairs_that_were_not_learned(make):
    pairs, y = np.random.default_rng(0).normal(size=(3, 2, 4)), [1, -1, 1]
    tracker = make()
    for seen in range(1, 4):
        tracker.partial_fit(pairs[seen - 1 : seen], y[seen - 1 : seen])
        assert 1.0 <= tracker.effective_window_ <= seen


def test_published_settings_can_be_overridden():
    tracker = SADL.as_published(eta0=0.3, output="best")
    assert (tracker.eta0, tracker.output, tracker.step) == (0.3, "best", "explicit")
    assert tracker.combiner == "sadl"
    assert tracker.scale is None


def clusters(**settings):
    """Pairs of a stream that switches and drifts, three features of 25 at a time."""
    return DriftingClusters(random_state=3, **settings).pairs()


def test_units_and_order_of_features_change_nothing():
    pairs, y = clusters(schedule=paper_schedule(2000))
    tracker = MetricTracker().fit(pairs, y)
    losses, judged = MetricTracker().observe(pairs, y), tracker.predict(pairs)
    order = np.random.default_rng(0).permutation(pairs.shape[2])
    for other in (1e3 * pairs, 1e-3 * pairs, pairs[:, :, order]):
        np.testing.assert_allclose(MetricTracker().observe(other, y), losses, atol=1e-7)
        assert (MetricTracker().fit(other, y).predict(other) == judged).all()


def test_the_regulariser_pays_under_drift():
    """Directions that are not shrunk to nothing turn sooner, here with a loss lower by 4 %."""
    pairs, y = clusters(schedule=paper_schedule(4000))
    plain, regularised = (SADL(rho=rho).observe(pairs, y).mean() for rho in (0.0, "auto"))
    assert regularised < 0.98 * plain


@pytest.mark.parametrize("settings", [{"label_noise": 0.3}, {"similar": 0.05}])
def test_noise_and_rare_similar_pairs_degrade_and_break_nothing(settings):
    pairs, y = clusters(schedule=paper_schedule(4000), **settings)
    tracker = MetricTracker()
    losses = tracker.observe(pairs, y)
    assert np.isfinite(losses).all()
    assert np.isfinite(tracker.components_).all()
    unlearned = np.maximum(0.0, 1.0 - y * (1.0 - ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(axis=1)))
    assert losses.mean() < unlearned.mean()
    assert np.trace(tracker.get_mahalanobis_matrix()) > 1e-3  # no collapse to M = 0
    assert tracker.score(pairs[-300:], y[-300:]) > 0.6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"divergence": "frobenius"}, "known for 'burg' alone"),
        ({"n_components": 2}, "keeps full rank"),
    ],
)
def test_logdet_refuses_what_it_cannot_keep(wrong, message):
    with pytest.raises(ValueError, match=message):
        SADL(regularizer="logdet", **wrong).fit(np.eye(4).reshape(2, 2, 4), [1, -1])


def test_a_first_interval_has_an_end():
    """Doubled again and again, a longer one would overflow, and learning never end."""
    pairs, y = np.eye(2)[None], [1]
    tracker = SADL(first_interval=2**40).fit(pairs, y).partial_fit(pairs, y)
    assert tracker.scales_.tolist() == [2.0**40]
    with pytest.raises(ValueError, match=r"first_interval=\d+; .* <= 1099511627776"):
        SADL(first_interval=2**40 + 1).fit(pairs, y)
