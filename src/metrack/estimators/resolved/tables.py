"""The tables of learners: which there are by default, for so many features.

A row is a learner (of moments two, one for each form). What its numbers mean is its kind's to say:

target      rate; memory: of how many of the last pairs some are replayed; pull: to plain distance,
            times 0.25 / width: a pair says something about one direction, the pull is in all
additive    rate; memory: 1 / what is forgotten at each pair
moment      memory: of the covariances
gradient    rate; memory: of how many of the last pairs minibatches are drawn, 0: of all the past,
            half of them alike; mean: pairs over which the metric is averaged
plain       memory: of its scale

Learners see differences as they come, or features in their own units; they work on all features, or
on the first directions of a basis, as many as the width says.

The tables were selected by ``make bench-select``, and are the only place where learners are chosen.
"""

from collections.abc import Sequence

from metrack.engine.ensemble.views import AS_THEY_COME, OWN
from metrack.engine.learners.bank import ALL, Row

NONE = 0  # of the past
WHOLE_UP_TO = 64  # features: the first table's
TABLE = (
    Row("plain", AS_THEY_COME, memory=1000),
    Row("target", OWN, 0.05, 256, 0.33),
    Row("moment", AS_THEY_COME, memory=400),
    Row("gradient", OWN, 0.05, ALL, mean=1024),
    Row("target", OWN, 0.1, 64, 0.33, width=12),
    Row("target", OWN, 0.02, 4096),
    Row("additive", OWN, 0.06, 125),
    Row("additive", AS_THEY_COME, 0.2, 1000),
    Row("target", AS_THEY_COME, 0.1, NONE),
    Row("target", OWN, 0.4, 64, 0.33),
)
WIDE_TABLE = (
    Row("plain", AS_THEY_COME, memory=1000),
    Row("moment", AS_THEY_COME, memory=800, width=24),
    Row("target", OWN, 0.1, 256, 0.33, width=16),
    Row("gradient", AS_THEY_COME, 0.8, ALL, mean=1024),
    Row("target", AS_THEY_COME, 0.3, 1024, width=64),
    Row("target", OWN, 0.3, 256, 0.33, width=64),
    Row("target", OWN, 0.6, 64, 0.33, width=16),
    Row("gradient", AS_THEY_COME, 0.4, 256, mean=256),
    Row("gradient", OWN, 0.4, ALL, mean=1024),
)
BASIS = 64  # directions at least; those on which learners work are the first of these
FULL_UP_TO = 384  # features: beyond, no learner works on all of them
WIDEST = 176  # directions of a basis

KERNEL = "kernel {}"  # what learners see: the features of the kernel of the i-th gamma
NARROW, WIDE = 32, 192  # directions of a basis; the latter for the first gamma alone
KERNEL_TABLE = (
    Row("target", KERNEL, 0.3, 64, 0.33, width=NARROW),
    Row("target", KERNEL, 0.1, 64, 0.33, width=NARROW),
    Row("target", KERNEL, 0.03, 256, 0.33, width=NARROW),
    Row("target", KERNEL, 0.15, NONE, width=WIDE),
    Row("target", KERNEL, 0.1, 1024, width=WIDE),
    Row("target", KERNEL, 1.0, 64, width=WIDE),
    Row("plain", KERNEL, memory=1000, width=NARROW),
)


def learners_for(n_features: int, table: Sequence[Row] | None = None) -> tuple[Row, ...]:
    """The learners of a table, by default the one for so many features, as they work on these."""
    if table is None:
        table = TABLE if n_features <= WHOLE_UP_TO else WIDE_TABLE
    widest = WIDEST if n_features > FULL_UP_TO else ALL
    return tuple(row._replace(width=row.width or widest) for row in table)


def kernel_learners(n_landmarks: int, n_gammas: int) -> tuple[Row, ...]:
    """Learners on the features of a kernel, for each of its gammas."""
    return tuple(
        row._replace(view=KERNEL.format(i), width=min(row.width, n_landmarks))
        for i in range(n_gammas)
        for row in KERNEL_TABLE
        if i == 0 or row.width < WIDE
    )
