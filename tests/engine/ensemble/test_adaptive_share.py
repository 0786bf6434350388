"""The combiner that shares: to the textbook, and its regret on every interval."""

import numpy as np
import pytest

from metrack.engine.ensemble.combine import Combination, new_experts, weights
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.combiners.protocol import update
from metrack.engine.learners.mirror import CONSTANT, Ladder, MirrorBank, Rule
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.kernels import kernel
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.steps import IMPLICIT
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from tests.engine.ensemble.given import ensemble_of
from tests.reference import kinds as textbook

SHARE = COMBINERS["adaptive_share"]


@kernel
def one_round(record, statistics, p, losses):
    update(record, statistics, p.size, p, losses)


def rounds(losses):
    """Probabilities before each round, by the combiner."""
    n_rounds, n = losses.shape
    experts = new_experts(np.ones(n), SHARE.record)
    experts.statistics[:n, 0] = 1.0 / n
    found = np.empty((n_rounds, n))
    for t in range(n_rounds):
        weights(experts, Combination(HINGE, SHARE.record), t + 1, found[t])
        one_round(SHARE.record, experts.statistics, found[t], losses[t])
    return found


def hard_losses(n_rounds, n, seed):
    """Losses in [0, 1] whose best expert changes, sometimes every other round."""
    rng = np.random.default_rng(seed)
    losses = rng.random((n_rounds, n)) ** rng.choice([0.2, 1.0, 5.0])
    length = int(rng.integers(1, 200))
    best = np.arange(n_rounds) // length % n
    losses[np.arange(n_rounds), best] *= rng.random()
    return losses


@pytest.mark.parametrize("seed", range(4))
def test_adaptive_share_is_the_textbooks(seed):
    losses = hard_losses(300, 4, seed)
    book = textbook.AdaptiveShare(4, 300)
    for p, told in zip(rounds(losses), losses, strict=True):
        np.testing.assert_allclose(p, book.p(), rtol=1e-9, atol=1e-12)
        book.update(told)


@pytest.mark.parametrize("seed", range(6))
def test_regret_on_every_interval(seed):
    """Coin betting: a regret R on an interval needs a wealth that its prior and length bound.

    On an interval of the cover with prior pi, R <= sqrt(2 L (ln(1 / pi) + ln(2 L + 1))), where ln
    of 1 / pi is that of the interval's start and of the expert's share of the prior.
    """
    n_rounds, n = 1000, 5
    losses = hard_losses(n_rounds, n, seed)
    p = rounds(losses)
    regrets = np.cumsum((p * losses).sum(axis=1)[:, None] - losses, axis=0)
    regrets = np.vstack([np.zeros(n), regrets])
    for start, end in textbook.cover(n_rounds):
        stop = min(end, n_rounds)
        length = stop - start + 1
        prior = (1.0 - SHARE.record.prior) / n / (start**2 * (1 + np.floor(np.log2(start))))
        bound = np.sqrt(2.0 * length * (np.log(1.0 / prior) + np.log(2.0 * length + 1.0)))
        assert (regrets[stop] - regrets[start - 1]).max() <= bound


def test_it_is_for_experts_that_are_always_on():
    rule = Rule(HINGE, BURG, IMPLICIT, CONSTANT, 0.0, 4, 1)
    bank = MirrorBank(4, rule, Ladder(0.1), DENSE_FACTOR, 2)
    with pytest.raises(ValueError, match="always on"):
        ensemble_of(4, [bank])
