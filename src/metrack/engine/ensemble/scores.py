"""What the ensemble said of the last pairs before learning them, and what they turned out to be.

Kept are squared distances over the threshold, of the last pairs that were alike and of the last
others: as many of each, so that rare ones are known as well. From these follow probabilities and
thresholds. Nothing else tells honestly how sure a metric is: of pairs that were learned, even of
those that were learned long ago, it knows too much.
"""

from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, inner
from metrack.engine.numerics.records import counts, floats

KEPT = 512  # pairs of each kind
MEMORY = 2048.0  # pairs that the share of alike ones rests on
SMALLEST, LARGEST = 1e-9, 1e9  # ratios


class Scores(NamedTuple):
    """The last ratios, a row for alike pairs, one for others: the k-th is in place k mod KEPT."""

    ratio: Annotated[Floats, floats(2, KEPT, least=0.0, most=LARGEST)]
    seen: Annotated[Ints, counts(2)]
    share: Annotated[Floats, floats(1, least=0.0, most=1.0)]  # of alike pairs, forgetting


def new_scores() -> Scores:
    """Nothing said yet."""
    return Scores(np.zeros((2, KEPT)), np.zeros(2, np.int64), np.full(1, 0.5))


@inner
def record(scores: Scores, t: int, y: float, ratio: float) -> None:
    """Keep what was said of pair t (counted from 1)."""
    kind = 0 if y > 0.0 else 1
    scores.ratio[kind, scores.seen[kind] % KEPT] = min(max(ratio, SMALLEST), LARGEST)
    scores.seen[kind] += 1
    weight = max(1.0 / (t + 1.0), 1.0 / MEMORY)
    scores.share[0] += weight * ((1.0 - kind) - scores.share[0])
