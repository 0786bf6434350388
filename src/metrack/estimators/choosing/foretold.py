"""What a metric said of pairs before their answers were learned: an AUC that nothing flatters.

Where alike means the same class, of few, every new point is compared with some that were judged
before; what they are to each other, its answers tell sooner or later. Points come up at random, so
these pairs are a random sample. Elsewhere it is the pairs that were asked about, by the weights
with which they were drawn.
"""

from typing import Annotated, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import counts, floats
from metrack.estimators.choosing.active import EXPLORED
from metrack.estimators.choosing.judged import Known, relations

MET = 16  # judged points that a new one is compared with
KEPT = 16_384  # pairs
ENOUGH = 10  # of each kind, for an estimate


class Foretold(NamedTuple):
    """Pairs, and what was said of them."""

    rows: Annotated[Ints, counts("foretold", 2)]
    ratio: Annotated[Floats, floats("foretold", least=0.0)]  # squared distance over the threshold's
    weight: Annotated[Floats, floats("foretold", least=0.0)]  # 0: of a new point and a judged one
    answer: Annotated[Ints, counts("foretold")]  # how many answers came before


def nothing_foretold() -> Foretold:
    """Of nothing."""
    none = np.empty(0)
    return Foretold(np.empty((0, 2), np.int64), none, none, np.empty(0, np.int64))


def take(foretold: Foretold, rows: Ints, ratio: Floats, weight: Floats, answer: int) -> Foretold:
    """The same and some more; the first are dropped where there are too many."""
    more = Foretold(rows, ratio, weight, np.full(len(rows), answer))
    joined = (np.concatenate(both)[-KEPT:] for both in zip(foretold, more, strict=True))
    return Foretold(*joined)


def meetings(known: Known, rows: Ints, rng: np.random.RandomState) -> Ints:
    """Pairs of points that were never judged, and some that were."""
    judged = known.groups.points
    fresh = np.setdiff1d(rows, judged)
    n_met = min(MET, len(judged))
    met = [rng.choice(judged, n_met, replace=False) for _ in fresh]
    pairs: Ints = np.stack([np.repeat(fresh, n_met), np.ravel(met).astype(np.int64)], axis=1)
    return pairs


def auc(foretold: Foretold, known: Known, since: int) -> float | None:
    """Of what was said after so many answers; None where too little is known."""
    late = foretold.answer >= since
    drawn = foretold.weight > 0.0
    chosen = late & (~drawn if known.in_classes else drawn)
    labels = relations(known, foretold.rows[chosen])[1]
    told = labels != 0.0
    y, scores = labels[told], -foretold.ratio[chosen][told]
    weights = np.ones(len(y)) if known.in_classes else foretold.weight[chosen][told]
    # Of pairs that are drawn least often, each stands for most: there must be room for several.
    most = 1.0 if known.in_classes else 1.0 / EXPLORED
    if min(np.sum(weights[y > 0.0]), np.sum(weights[y < 0.0])) < ENOUGH * most:
        return None
    return float(roc_auc_score(y, scores, sample_weight=weights))
