"""A learner that was widened is one of its new width, with the metric that it had."""

import numpy as np
import pytest

import metrack
from metrack import COMID, SADL
from metrack.engine import diagonal, elementwise, spectral, whole
from metrack.estimators import comid
from tests.estimators.learners import make_stream, state

# Estimator, features before and after, the form that the new width asks for.
WIDENED = {
    "SADL": (SADL(), 3, 120, spectral),
    "SADL-without-replays": (SADL(), 40, 60, whole),
    "SADL-sample": (SADL(output="sample", random_state=0), 3, 120, spectral),
    "COMID": (COMID(), 3, 120, spectral),
    "COMID-burg": (COMID(divergence="burg", rho=0.01), 6, 30, spectral),
    "COMID-von_neumann": (COMID(divergence="von_neumann", n_components=3), 4, 40, spectral),
    "SADL-frame": (SADL(n_components=2), 4, 40, spectral),
    "SADL-frame-burg": (SADL(divergence="burg", rho=0.0, n_components=5), 4, 40, spectral),
    "COMID-l1": (COMID(regularizer="l1"), 6, 20, elementwise),
    "COMID-l1-diagonal": (COMID(regularizer="l1", psd="diagonal"), 6, 20, diagonal),
}


@pytest.mark.parametrize("name", WIDENED)
def test_a_wider_learner_is_one_of_its_width_with_the_metric_it_had(name):
    learner, n, wider, form = WIDENED[name]
    stream = make_stream(n)
    learner.fit(stream.pairs, stream.y)
    M, mu, seen = learner.get_mahalanobis_matrix(), learner.mu_, learner.n_pairs_seen_
    weights, draws = learner.bank_.weights, learner.rng_
    learner._widen(wider)

    expected = type(learner)(**learner.get_params()).fit(np.eye(2, wider)[None], [1]).bank_
    bank = learner.bank_
    assert bank.form is form
    assert bank.rule == expected.rule
    assert len(bank.memory.y) == len(expected.memory.y)
    for found, wanted in zip(bank.learners, expected.learners, strict=True):
        assert found.ndim == wanted.ndim
        assert all(a >= b for a, b in zip(found.shape[1:], wanted.shape[1:], strict=True))
    np.testing.assert_array_equal(bank.trust.rate[:2], expected.trust.rate[:2])
    np.testing.assert_array_equal(bank.trust.rho[:2], expected.trust.rho[:2])

    assert (learner.mu_, learner.n_pairs_seen_, learner.n_features_in_) == (mu, seen, wider)
    np.testing.assert_array_equal(bank.weights, weights)
    assert learner.rng_ is draws
    now = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(now[:n, :n], M, atol=1e-10 * np.abs(M).max())
    assert not now[:n, n:].any() or np.abs(now[:n, n:]).max() < 1e-10 * np.abs(M).max()


@pytest.mark.parametrize("name", WIDENED)
def test_it_goes_on_and_is_saved_as_any_other(name, tmp_path):
    learner, n, wider, _ = WIDENED[name]
    first, then = make_stream(n), make_stream(wider, seed=1)
    learner.fit(first.pairs, first.y)._widen(wider)
    learner.save(tmp_path)
    again = metrack.load(tmp_path)
    losses = learner.observe(then.pairs, then.y)
    np.testing.assert_array_equal(again.observe(then.pairs, then.y), losses)
    assert state(again) == state(learner)
    assert np.isfinite(losses).all()


def test_entries_become_weights_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(comid, "ENTRIES_UP_TO", 24)
    stream = make_stream(20)
    learner = COMID(regularizer="l1").fit(stream.pairs, stream.y)
    entries, total = learner.bank_.learners.heights[0], learner.bank_.learners.total[0]
    on_diagonal = np.equal(*np.triu_indices(20))
    learner._widen(30)
    assert learner.bank_.form is diagonal
    expected = np.maximum(entries[on_diagonal] - total, 0.0) / learner.bank_.unit
    assert expected.any()
    found = np.diag(learner.get_mahalanobis_matrix())
    np.testing.assert_allclose(found, np.append(expected, np.zeros(10)), rtol=1e-12)
