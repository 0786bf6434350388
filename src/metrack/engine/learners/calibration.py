"""Squared distances of learners on different scales, made comparable: a scale and a threshold each.

A learner says q on a scale of its own. Its margin is y (a - c q / m), where m is the mean of its q
of late; a and c take gradient steps of the hinge loss, each in units of the root of its own squared
gradients of late (AdaGrad with forgetting), and no further than the pair asks. What is predicted is
c q / m and the threshold a, with the means of a and c of late: so steps may be long.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.learners.bank import Predictions
from metrack.engine.numerics.kernels import Floats, inner, kernel
from metrack.engine.numerics.pairs import sign
from metrack.engine.numerics.records import TINY, floats

RATE = 2.0
MEMORY = 300.0  # pairs, where nothing else is said
START = 2.0  # a and c, where nothing else is said
LEAST = 1e-3  # of c: distances must not count the other way round
NONE = 1e-300  # a mean below this is none


class Calibration(NamedTuple):
    """What is known of each learner's scale."""

    threshold: Annotated[Floats, floats("J", least=1.0)]  # mean of a
    slope: Annotated[Floats, floats("J", least=LEAST)]  # mean of c
    # a and c themselves.
    iterates: Annotated[Floats, floats("J", 2, least=LEAST)]
    total: Annotated[Floats, floats("J", least=0.0)]  # of q, forgetting
    pairs: Annotated[Floats, floats("J", least=0.0)]  # of pairs, forgetting
    # Of the gradients with regard to a and c, forgetting.
    squares: Annotated[Floats, floats("J", 2, least=TINY)]


def new_calibration(n_learners: int, start: float = START) -> Calibration:
    """A margin of a - a q / m, a the start: half way between q = 0 and twice the mean."""
    J = n_learners
    return Calibration(
        np.full(J, start),
        np.full(J, start),
        np.full((J, 2), start),
        np.zeros(J),
        np.zeros(J),
        np.full((J, 2), 1e-8),
    )


def scales(calibration: Calibration) -> Floats:
    """By how much each learner's squared distances are multiplied now; 1 where nothing was seen."""
    seen = calibration.total > NONE
    mean = np.where(seen, calibration.total, 1.0) / np.where(seen, calibration.pairs, 1.0)
    return np.where(seen, calibration.slope / mean, 1.0)


@kernel
def calibrate(calibration: Calibration, predictions: Predictions, y: Floats, memory: float) -> None:
    """Replace what learners said by what it means, and learn that pair by pair."""
    q, mu = predictions.q, predictions.mu
    kept = 1.0 - 1.0 / memory
    for j in range(q.shape[1]):
        for row in range(y.size):
            said = q[row, j]
            mean = calibration.total[j] / max(calibration.pairs[j], 1.0)
            if calibration.total[j] <= NONE:
                mean = said if said > NONE else 1.0
            x = said / mean
            mu[row, j] = calibration.threshold[j]
            q[row, j] = calibration.slope[j] * x
            iterates = calibration.iterates[j]
            _take_step(iterates, calibration.squares[j], y[row], x, kept)
            # The first steps count alike, so that the start is soon forgotten.
            share = max(1.0 / memory, 1.0 / (calibration.pairs[j] + 2.0))
            calibration.threshold[j] += share * (iterates[0] - calibration.threshold[j])
            calibration.slope[j] += share * (iterates[1] - calibration.slope[j])
            calibration.total[j] = kept * calibration.total[j] + max(said, 0.0)
            calibration.pairs[j] = kept * calibration.pairs[j] + 1.0


@inner
def _take_step(iterates: Floats, squares: Floats, y: float, x: float, kept: float) -> None:
    a, c = iterates[0], iterates[1]
    lacking = 1.0 - sign(y) * (a - c * x)
    squares[0] *= kept
    squares[1] *= kept
    if lacking <= 0.0 or y == 0.0:
        return
    squares[0] += 1.0
    squares[1] += x * x
    up, down = 1.0 / math.sqrt(squares[0]), x / math.sqrt(squares[1])
    step = sign(y) * min(RATE * abs(y), lacking / (up + down * x))
    iterates[0] = max(a + step * up, 1.0)
    iterates[1] = max(c - step * down, LEAST)
