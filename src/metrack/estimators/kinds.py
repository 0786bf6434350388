"""Which learners there are by default: one table up to 64 features, one beyond.

A row is a learner (of moments two, one for each form). What its numbers mean is its kind's to say:

target      rate; memory: of how many of the last pairs some are replayed; pull: to plain distance,
            times 0.25 / width: a pair says something about one direction, the pull is in all
leading     the same on the leading directions of differences, if there are more features
additive    rate; memory: 1 / what is forgotten at each pair
moment      memory: of the covariances
gradient    rate; memory: of how many of the last pairs minibatches are drawn, 0: of all the past,
            half of them alike; mean: pairs over which the metric is averaged
plain       memory: of its scale

Learners see differences as they come, or features in their own units; they work on all features, or
on the first directions of a basis, as many as the width says.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from metrack.engine.ensemble.spaces import AS_THEY_COME, OWN
from metrack.estimators.bank_settings import (
    AdditiveLearner,
    AdditiveSettings,
    AlwaysOnSettings,
    GradientLearner,
    GradientSettings,
    LeadingSettings,
    Learner,
    MomentLearner,
    MomentSettings,
    PlainSettings,
)
from metrack.estimators.resolved import BankSettings, SpaceSettings

ALL = 0  # features; of the past
NONE = 0  # of the past


class Row(NamedTuple):
    """A learner."""

    kind: str
    view: str
    rate: float = 0.0
    memory: float = ALL
    pull: float = 0.0
    mean: float = 1.0
    width: int = ALL


LEADING = 12  # directions
WHOLE_UP_TO = 64  # features: beyond, most kinds work on directions of a basis
TABLE = (
    Row("target", AS_THEY_COME, 0.05, 256, 0.33),
    Row("target", AS_THEY_COME, 0.8, 48, 1.0),
    Row("target", AS_THEY_COME, 0.1, NONE),
    Row("leading", AS_THEY_COME, 0.1, 64, 0.33),
    Row("additive", AS_THEY_COME, 0.06, 1000),
    Row("moment", AS_THEY_COME, memory=200),
    Row("plain", AS_THEY_COME, memory=1000),
    Row("target", OWN, 0.2, 64, 0.7),
    Row("target", OWN, 0.1, 1024),
    Row("additive", OWN, 0.06, 125),
    Row("moment", OWN, memory=800),
    Row("gradient", OWN, 0.1, ALL, mean=1024),
    Row("plain", OWN, memory=1000),
)
WIDE_TABLE = (
    Row("gradient", AS_THEY_COME, 0.1, 256, mean=256, width=128),
    Row("gradient", AS_THEY_COME, 0.1, ALL, mean=1024),
    Row("plain", AS_THEY_COME, memory=1000),
    Row("target", AS_THEY_COME, 0.1, 64, 0.33, width=16),
    Row("target", AS_THEY_COME, 0.03, 256, 0.33, width=16),
    Row("target", AS_THEY_COME, 0.1, 1024, width=128),
    Row("target", AS_THEY_COME, 1.0, 64, width=176),  # what matters may have to grow a hundredfold
    Row("moment", AS_THEY_COME, memory=800, width=24),
    Row("gradient", OWN, 0.1, 256, mean=256, width=64),
    Row("plain", OWN, memory=1000, width=16),
)
FULL_UP_TO = 384  # features: beyond, no learner works on all of them
WIDEST = 176  # directions of a basis

# Pairs replayed after each by target learners. A step's cost grows with the square of directions:
# so many numbers may be gone through, if that makes no fewer than the least, nor more than these.
REPLAYED, LEAST_REPLAYS, MOST_REPLAYS, ON_BASIS = 6 * 64**2, 2, 16, 8
PULL = 0.25  # over n_features
FEW, OUTSIDE = 32, 0.25  # directions; weight of plain distance beyond so few, of target learners
PLAIN_START = 4.0
BLOCK, WIDE_BLOCK = 16, 64  # pairs between the steps of gradient learners ...
MINIBATCHES, WIDE_MINIBATCHES = 4, 1  # ... and how many of the past follow each block
RENEWED = 128  # pairs: metrics of moments on a basis are found anew after so many


def several_kinds(n_features: int) -> tuple[SpaceSettings, ...]:
    """The learners for so many features, space by space."""
    return spaces_of(TABLE if n_features <= WHOLE_UP_TO else WIDE_TABLE, n_features)


def spaces_of(table: Iterable[Row], n_features: int) -> tuple[SpaceSettings, ...]:
    """The learners of a table for so many features, space by space."""
    rows = [_fitted(row, n_features) for row in table]
    if n_features <= LEADING:
        rows = [row for row in rows if row.kind != "leading"]
    return tuple(
        SpaceSettings(view, on_basis, tuple(banks_of(own, n_features)))
        for (view, on_basis), own in _grouped(rows, lambda row: (row.view, row.width > 0))
    )


def _fitted(row: Row, n_features: int) -> Row:
    """The same for so many features: on a basis where there are too many."""
    if row.width == ALL and n_features > FULL_UP_TO:
        return row._replace(width=WIDEST)
    return row


def banks_of(rows: Iterable[Row], n_features: int) -> list[BankSettings]:
    """Learners of the same features: a bank for each kind and width."""
    return [
        BANKS[kind](own, width, n_features)
        for (kind, width), own in _grouped(rows, lambda row: (row.kind, row.width))
    ]


def _grouped(rows: Iterable[Row], key: Any) -> list[tuple[Any, list[Row]]]:
    """Rows by a key, in the order in which keys come first."""
    rows = list(rows)
    order = list(dict.fromkeys(map(key, rows)))
    return [(each, [row for row in rows if key(row) == each]) for each in order]


def _target(rows: list[Row], width: int, n_features: int) -> BankSettings:
    n = min(width or n_features, n_features)
    most = MOST_REPLAYS if width == ALL else ON_BASIS
    return AlwaysOnSettings("target", _learners(rows, n, most, ALL < width <= FEW), width)


def _leading(rows: list[Row], width: int, n_features: int) -> BankSettings:
    return LeadingSettings(_learners(rows, LEADING, ON_BASIS, True), LEADING, n_features)


def _learners(rows: list[Row], n: int, most_replays: int, few: bool) -> tuple[Learner, ...]:
    """Target learners on so many directions."""
    replays = min(max(LEAST_REPLAYS, round(REPLAYED / n**2)), most_replays)
    outside = OUTSIDE if few else 1.0
    return tuple(
        Learner(
            row.rate,
            row.pull * PULL / n,
            replays if row.memory else 0,
            max(int(row.memory), 1),
            outside,
        )
        for row in rows
    )


def _additive(rows: list[Row], width: int, n_features: int) -> BankSettings:
    return AdditiveSettings(
        tuple(AdditiveLearner(row.rate, 1.0 / row.memory) for row in rows), width
    )


def _moment(rows: list[Row], width: int, n_features: int) -> BankSettings:
    learners = tuple(MomentLearner(float(row.memory)) for row in rows)
    return MomentSettings(learners, width, RENEWED) if width else MomentSettings(learners)


def _gradient(rows: list[Row], width: int, n_features: int) -> BankSettings:
    few = n_features <= WHOLE_UP_TO
    replays = MINIBATCHES if few else WIDE_MINIBATCHES
    learners = tuple(
        GradientLearner(row.rate, int(row.memory), row.memory == ALL, float(row.mean), replays)
        for row in rows
    )
    return GradientSettings(learners, BLOCK if few else WIDE_BLOCK, width)


def _plain(rows: list[Row], width: int, n_features: int) -> BankSettings:
    return PlainSettings(float(rows[0].memory), PLAIN_START)


BANKS = {
    "target": _target,
    "leading": _leading,
    "additive": _additive,
    "moment": _moment,
    "gradient": _gradient,
    "plain": _plain,
}
