"""The meta bound on every interval of the cover; the trace against the tracker."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack import COMID, SADL
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.evaluate import interval_regret, meta_regret, trace
from metrack.streams import DriftingClusters, paper_schedule
from tests.estimators.learners import state
from tests.reference.sadl import cover

ON_COVER = ["sadl", "cbce", "adanormalhedge"]


def switching(rng, n_pairs, n=3):
    pairs = rng.normal(size=(n_pairs, 2, n))
    which = (np.arange(n_pairs) >= n_pairs // 2).astype(int)
    gap = np.abs(pairs[:, 0] - pairs[:, 1])[np.arange(n_pairs), which]
    return pairs, np.where(gap < 1, 1, -1)


@pytest.mark.parametrize("n_before", [0, 1, 7, 64])
@pytest.mark.parametrize("first_interval", [1, 3, 4, 16])
@pytest.mark.parametrize("combiner", ON_COVER)
def test_intervals_and_sums_are_those_of_brute_force(combiner, first_interval, n_before):
    pairs, y = switching(np.random.default_rng(0), n_before + 150)
    tracker = SADL(combiner=combiner, first_interval=first_interval)
    if n_before:
        tracker.partial_fit(pairs[:n_before], y[:n_before])
    seen = trace(tracker, pairs[n_before:], y[n_before:])
    result = meta_regret(seen)

    expected = {}
    offset = n_before + first_interval  # the cover's time at round 0
    for start, end in cover(offset + 149, first_interval):
        if start < offset:
            continue
        length = end - start + 1
        j = int(np.log2(length / first_interval))
        rounds = range(start - offset, min(end - offset + 1, 150))
        regret = 0.0
        for t in rounds:
            n = seen.active[t]
            p, losses = seen.p[t, :n], seen.learner_losses[t, :n]
            regret += sum(p * losses) - losses[j]
        last = n_before + rounds[-1] + 1
        bound = 5 * np.log(last + 1) * np.sqrt(length)
        expected[rounds[0], length] = rounds[-1] + 1, regret, bound
    found = {
        (start, length): rest
        for start, length, *rest in zip(
            result.start, result.length, result.stop, result.regret, result.bound, strict=True
        )
    }
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, atol=1e-9, err_msg=str(key))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(["random", "drifting", "adversarial", "constant"]),
    eta0=st.sampled_from([0.1, 1.0, 5.0]),
    first_interval=st.sampled_from([1, 2, 5, 16]),
    weight_loss=st.sampled_from(["capped", "logistic"]),
)
def test_meta_bound_holds_on_every_interval(seed, kind, eta0, first_interval, weight_loss):
    pairs, y = labelled(np.random.default_rng(seed), kind)
    tracker = SADL.as_published(
        eta0=eta0, first_interval=first_interval, weight_loss=weight_loss, random_state=0
    )
    if kind == "adversarial":
        y = adversary(tracker, pairs)
    result = meta_regret(trace(tracker, pairs, y))
    assert result.holds
    assert result.within.all()


def labelled(rng, kind):
    if kind == "drifting":
        schedule = paper_schedule(300)
        seed = int(rng.integers(100))
        return DriftingClusters(
            n_points=60, n_features=8, schedule=schedule, random_state=seed
        ).pairs()
    pairs, y = switching(rng, 300)
    return pairs, {"random": rng.choice([-1, 1], 300), "constant": np.ones(300, int)}.get(kind, y)


def adversary(tracker, pairs):
    """Labels that a tracker with these settings never foresees."""
    twin = SADL(**tracker.get_params())
    y = [1]
    twin.observe(pairs[:1], y)
    for t in range(1, len(pairs)):
        y.append(-int(twin.predict(pairs[t : t + 1])[0]))
        twin.observe(pairs[t : t + 1], y[-1:])
    return np.array(y)


def test_a_broken_bound_is_seen():
    pairs, y = switching(np.random.default_rng(0), 100)
    seen = trace(SADL(combiner="sadl"), pairs, y)
    worst = seen.learner_losses.copy()
    worst[:, 0] = 1e3
    wrong = type(seen)(**{**vars(seen), "learner_losses": worst, "p": 0 * seen.p})
    wrong.p[:, 0] = 1.0  # all trust in the worst: regret against every other one
    assert not meta_regret(wrong).holds


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("output", ["average", "sample", "best"])
def test_tracing_changes_nothing(combiner, output):
    pairs, y = switching(np.random.default_rng(1), 200)
    settings = {"combiner": combiner, "output": output, "random_state": 0}
    plain, traced = SADL(**settings), SADL(**settings)
    losses = plain.observe(pairs, y)
    seen = trace(traced, pairs, y)
    assert state(traced) == state(plain)
    assert np.array_equal(seen.losses, losses)
    np.testing.assert_array_equal(seen.scales, plain.scales_)
    np.testing.assert_allclose(seen.p.sum(axis=1), 1)
    asleep = np.arange(seen.p.shape[1]) >= seen.active[:, None]
    assert np.array_equal(np.isnan(seen.regret), asleep)
    assert (seen.p[asleep] == 0).all()
    # Drawn by p, a learner has no regret on average.
    np.testing.assert_allclose((seen.p * np.nan_to_num(seen.regret)).sum(axis=1), 0, atol=1e-12)


def test_trace_of_row_numbers():
    rng = np.random.default_rng(2)
    points, rows = rng.normal(size=(40, 5)), rng.integers(40, size=(80, 2))
    y = rng.choice([-1, 1], 80)
    by_rows = trace(SADL(preprocessor=points), rows, y)
    by_points = trace(SADL(), points[rows], y)
    assert np.array_equal(by_rows.losses, by_points.losses)


def test_always_on_learners_have_no_cover_but_any_interval():
    pairs, y = switching(np.random.default_rng(3), 100)
    seen = trace(SADL(combiner="fixed_share"), pairs, y)
    with pytest.raises(ValueError, match="always on"):
        meta_regret(seen)
    regret = interval_regret(seen.expected, seen.learner_losses.T, [(0, 50), (50, 100)])
    np.testing.assert_allclose(regret[1], seen.regret[50:].sum(axis=0).max())


@pytest.mark.parametrize("past", [0, 5])
def test_bad_input_names_the_row_and_changes_nothing(past):
    pairs, y = switching(np.random.default_rng(4), 20)
    tracker = SADL()
    if past:
        tracker.partial_fit(pairs[:past], y[:past])
        before = state(tracker)
    bad = pairs.copy()
    bad[13, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"pairs\[13, 1\] contains NaN"):
        trace(tracker, bad, y)
    with pytest.raises(ValueError, match="one label per pair"):
        trace(tracker, pairs, y[:-1])
    if past:
        assert state(tracker) == before
    else:
        assert not hasattr(tracker, "engine_")
    with pytest.raises(ValueError, match="needs a SADL"):
        trace(COMID(), pairs, y)
