"""Several kinds of experts: which there are, at which paces."""

from typing import TypeAlias

from metrack.estimators.bank_settings import (
    AdditiveLearner,
    AdditiveSettings,
    AlwaysOnSettings,
    LeadingSettings,
    Learner,
    MomentLearner,
    MomentSettings,
    PlainSettings,
)
from metrack.estimators.resolved import BankSettings

# Pairs replayed after each. A step's cost grows with the square of directions: so many numbers may
# be gone through, if that makes no fewer than the least, nor more than these.
REPLAYED = 6 * 64**2
LEAST_REPLAYS, REPLAYS, WHOLE_REPLAYS = 2, 8, 16
PULL = 0.25  # over n_features: a pair says something about one direction, the pull is in all

WHOLE_UP_TO = 64  # features: beyond, all learners work on directions of a basis
LEADING = 12  # directions that some learners work on beside whole matrices
NARROW, WIDE = 16, 176  # directions of a basis: few are learned fast, many hold more
OF_MOMENTS, RENEWED = 24, 128  # those whose covariances are known; every so many pairs anew
OUTSIDE = 0.25  # weight of plain distance where learners of few directions have none

# Rate, share of the pull to plain distance, and how many of the last pairs are replayed; 0: none.
Rows: TypeAlias = tuple[tuple[float, float, int], ...]
# On all features, the faster the stronger the pull: what a pair says of one direction must not stay
# in all others.
STEADY_TARGET: Rows = ((0.2, 0.7, 64), (0.1, 0.5, 96), (0.05, 0.33, 256))
FREE_TARGET: Rows = ((0.1, 0.0, 0), (0.1, 0.0, 1024))
OUTER_TARGET: Rows = ((0.8, 1.0, 48), (0.5, 0.7, 48), (0.03, 0.33, 512))  # fastest and slowest
# On few directions.
FEW_TARGET: Rows = ((0.3, 0.33, 64), (0.1, 0.33, 64), (0.03, 0.33, 256))
# On a basis. Where a question is hard, replays learn its noise: one learner has none. What matters
# may have to grow a hundredfold: another is fast.
WIDE_TARGET: Rows = ((0.15, 0.0, 0), (0.1, 0.0, 1024))
FAST_TARGET: Rows = ((1.0, 0.0, 64),)

# The first finds what many pairs agree on, at any width. The others follow what moves, and are for
# few features: with many, they forget before they have seen enough.
ADDITIVE = (AdditiveLearner(0.3, 0.0003),)
FORGETFUL = (AdditiveLearner(0.06, 0.001), AdditiveLearner(0.06, 0.008))
MOMENT = (MomentLearner(200.0), MomentLearner(800.0))
PLAIN = PlainSettings(memory=1000.0, start=4.0)  # it does not move: its scale may be learned longer


def several_kinds(n_features: int) -> tuple[BankSettings, ...]:
    """Target learners, some on leading directions; plain distance; additive and moment learners."""
    return _on_basis(n_features) if n_features > WHOLE_UP_TO else _on_features(n_features)


def _on_basis(n_features: int) -> tuple[BankSettings, ...]:
    wide = min(WIDE, n_features)
    return (
        targets(FEW_TARGET, NARROW, OUTSIDE),
        targets(WIDE_TARGET, wide),
        targets(FAST_TARGET, wide),
        PLAIN,
        AdditiveSettings(ADDITIVE, wide),
        MomentSettings(MOMENT, OF_MOMENTS, RENEWED),
    )


def _on_features(n_features: int) -> tuple[BankSettings, ...]:
    steady, free, outer = (
        AlwaysOnSettings("target", _learners(rows, n_features, WHOLE_REPLAYS))
        for rows in (STEADY_TARGET, FREE_TARGET, OUTER_TARGET)
    )
    few = _learners(FEW_TARGET, LEADING, REPLAYS, OUTSIDE)
    leading = [LeadingSettings(few, LEADING, n_features)] if n_features > LEADING else []
    additive = AdditiveSettings(ADDITIVE), AdditiveSettings(FORGETFUL)
    # With more features, the first two go on as narrow and as wide ones.
    return steady, free, outer, *leading, PLAIN, *additive, MomentSettings(MOMENT)


def targets(rows: Rows, width: int, outside: float = 1.0) -> AlwaysOnSettings:
    """Target learners on so many directions of a basis."""
    return AlwaysOnSettings("target", _learners(rows, width, REPLAYS, outside), width)


def _learners(
    rows: Rows, n_directions: int, most_replays: int, outside: float = 1.0
) -> tuple[Learner, ...]:
    """Learners at these paces."""
    replays = min(max(LEAST_REPLAYS, round(REPLAYED / n_directions**2)), most_replays)
    return tuple(
        Learner(rate, pull * PULL / n_directions, replays if window else 0, max(window, 1), outside)
        for rate, pull, window in rows
    )
