"""What a metric could reach: by convexity, and against losses that are known."""

import numpy as np

from benchmarks import family_oracle, family_streams

N = 4


def sample(seed=0, n_pairs=3_000):
    """Pairs that are alike where the first two features are near, with some noise."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, N))
    y = np.where(u[:, 0] ** 2 + 0.5 * u[:, 1] ** 2 + 0.3 * rng.normal(size=n_pairs) < 1.0, 1, -1)
    return u, y


def objective(u, y, M, mu, s, pull):
    q = np.einsum("ij,jk,ik->i", u, M, u)
    scale = np.mean(np.sum(u**2, axis=1)) ** 2
    penalty = 0.5 * pull * scale * np.sum((M - s * np.eye(N)) ** 2)
    return np.maximum(0.0, 1.0 - y * (mu - q)).mean() + penalty


def test_no_other_metric_is_better():
    """The loss is convex: were there a better one, all on the way to it would be better, too."""
    u, y = sample()
    rng = np.random.default_rng(1)
    for pull in (0.0, 0.1):
        fitted = family_oracle.unchanged(u)
        for width in family_oracle.ROUNDED:
            fitted = family_oracle.fit(u, y, fitted, width, pull)
        L, mu, s = fitted[:-2].reshape(N, N), fitted[-2], fitted[-1]
        least = objective(u, y, L.T @ L, mu, s, pull)
        for way in (0.01, 0.1, 1.0):
            for _ in range(200):
                A = rng.normal(size=(N, N))
                M = L.T @ L + way * (A.T @ A / N - L.T @ L)
                other = objective(u, y, M, mu + way * rng.normal(), s + way * rng.normal(), pull)
                assert other > least - family_oracle.ROUNDED[-1] / 2  # by how much rounding is off


def test_a_question_that_a_metric_answers_costs_nothing():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(500, N))
    y = np.where(rng.random(500) < 0.5, 1, -1)
    u[:, 0] = np.where(y > 0, 0.0, 3.0)
    fitted = family_oracle.unchanged(u)
    for width in family_oracle.ROUNDED:
        fitted = family_oracle.fit(u, y, fitted, width)
    assert family_oracle.hinge(u, y, fitted).mean() < 0.02
    assert family_oracle.hinge(u, y, family_oracle.unchanged(u)).mean() > 0.1


def test_turning_is_undone_and_blends_are_left_out():
    still, turning = (family_streams.steady(1, 100, drift=drift, n=12) for drift in (0.0, 0.01))
    for one, other in zip(
        family_oracle.at_rest(still), family_oracle.at_rest(turning), strict=True
    ):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, atol=1e-9)
        else:
            assert (one == other).all()
    blended = family_streams.fading(1, 100)
    assert family_oracle.possible(blended) is None
    assert family_oracle.refitted(blended) is None


def test_who_is_told_less_loses_more(monkeypatch):
    """A metric of the question at hand, and one that has seen nothing for the first pairs."""
    monkeypatch.setattr(family_oracle, "N_OTHERS", 4_000)
    monkeypatch.setattr(family_oracle, "PULLS", (1.0,))
    stream = family_streams.switching(1, 200, n=18)
    best, refitted = family_oracle.possible(stream), family_oracle.refitted(stream)
    _, u, y, _ = family_oracle.at_rest(stream)
    assert best < refitted < family_oracle.hinge(u, y, family_oracle.unchanged(u)).mean()


def test_a_window_with_all_of_one_question_is_what_is_refitted(monkeypatch):
    monkeypatch.setattr(family_oracle, "PULLS", (1.0, 3.0))
    stream = family_streams.steady(1, 200, n=8)
    _, u, y, _ = family_oracle.at_rest(stream)
    monkeypatch.setattr(family_oracle, "WINDOWS", (8_000,))
    assert family_oracle.windowed(u, y) == family_oracle.refitted(stream)
    monkeypatch.setattr(family_oracle, "WINDOWS", (100, 8_000))
    assert family_oracle.windowed(u, y) <= family_oracle.refitted(stream)
