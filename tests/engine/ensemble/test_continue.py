"""A learner that was widened is one of its new width, with the metric that it had."""

import numpy as np
import pytest

import metrack
from metrack import COMID, SADL
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.diagonal import DIAGONAL
from metrack.engine.representations.elementwise import ELEMENTWISE
from metrack.engine.representations.spectral import SPECTRAL
from metrack.estimators.comid import learners_of
from metrack.estimators.resolved import auto
from tests.estimators.learners import make_stream, state

# Estimator, features before and after, the representation that the new width asks for.
WIDENED = {
    "SADL": (SADL(), 3, 120, SPECTRAL),
    "SADL-40": (SADL(), 40, 60, DENSE_FACTOR),
    "SADL-sample": (SADL(output="sample", random_state=0), 3, 120, SPECTRAL),
    "COMID": (COMID(), 3, 120, SPECTRAL),
    "COMID-burg": (COMID(divergence="burg", regularizer="nuclear", rho=0.01), 6, 30, SPECTRAL),
    "COMID-von_neumann": (COMID(divergence="von_neumann", n_components=3), 4, 40, SPECTRAL),
    "SADL-frame": (SADL(n_components=2), 4, 40, SPECTRAL),
    "SADL-frame-burg": (SADL(divergence="burg", rho=0.0, n_components=5), 6, 40, SPECTRAL),
    "COMID-l1": (COMID(regularizer="l1"), 6, 20, ELEMENTWISE),
    "COMID-l1-diagonal": (COMID(regularizer="l1", psd="diagonal"), 6, 20, DIAGONAL),
}


@pytest.mark.parametrize("name", WIDENED)
def test_a_wider_learner_is_one_of_its_width_with_the_metric_it_had(name):
    learner, n, wider, representation = WIDENED[name]
    stream = make_stream(n)
    learner.fit(stream.pairs, stream.y)
    M, mu, seen = learner.get_mahalanobis_matrix(), learner.mu_, learner.n_pairs_seen_
    weights, draws = learner.engine_.experts.weights, learner.rng_
    learner.widen(wider)

    new = type(learner)(**learner.get_params()).fit(np.eye(2, wider)[None], [1])
    assert learner.engine_.experts.combination == new.engine_.experts.combination
    bank, expected = learners_of(learner), learners_of(new)
    assert bank.representation is representation
    assert bank.rule == expected.rule
    for found, wanted in zip(bank.learners, expected.learners, strict=True):
        assert found.ndim == wanted.ndim
        assert all(a >= b for a, b in zip(found.shape[1:], wanted.shape[1:], strict=True))
    np.testing.assert_array_equal(bank.rates.rate[:2], expected.rates.rate[:2])
    np.testing.assert_array_equal(bank.rates.rho[:2], expected.rates.rho[:2])

    assert (learner.mu_, learner.n_pairs_seen_, learner.n_features_in_) == (mu, seen, wider)
    np.testing.assert_array_equal(learner.engine_.experts.weights, weights)
    assert learner.rng_ is draws
    now = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(now[:n, :n], M, atol=1e-10 * np.abs(M).max())
    assert not now[:n, n:].any() or np.abs(now[:n, n:]).max() < 1e-10 * np.abs(M).max()


@pytest.mark.parametrize("name", WIDENED)
def test_it_goes_on_and_is_saved_as_any_other(name, tmp_path):
    learner, n, wider, _ = WIDENED[name]
    first, then = make_stream(n), make_stream(wider, seed=1)
    learner.fit(first.pairs, first.y).widen(wider)
    learner.save(tmp_path)
    again = metrack.load(tmp_path)
    losses = learner.observe(then.pairs, then.y)
    np.testing.assert_array_equal(again.observe(then.pairs, then.y), losses)
    assert state(again) == state(learner)
    assert np.isfinite(losses).all()


def test_entries_become_weights_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(auto, "ENTRIES_UP_TO", 24)
    stream = make_stream(20)
    learner = COMID(regularizer="l1").fit(stream.pairs, stream.y)
    learners = learners_of(learner).learners
    entries, total = learners.lazy_values[0], learners.cumulative_threshold[0]
    on_diagonal = np.equal(*np.triu_indices(20))
    learner.widen(30)
    assert learners_of(learner).representation is DIAGONAL
    expected = np.maximum(entries[on_diagonal] - total, 0.0) / learner.engine_.spaces[0].unit
    assert expected.any()
    found = np.diag(learner.get_mahalanobis_matrix())
    np.testing.assert_allclose(found, np.append(expected, np.zeros(10)), rtol=1e-12)
