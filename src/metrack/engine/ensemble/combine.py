"""The pass that weighs: from what learners of all banks predicted to what the ensemble puts out.

A round is: experts activated -> probabilities -> prediction -> its loss, and whether losses have
risen -> what each expert lost -> weights. Experts are the learners of all banks, bank by bank, or
of one bank on the cover, level by level: there the active ones are the first, new levels come last.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble.combiners.alone import ALONE
from metrack.engine.ensemble.combiners.protocol import (
    Activation,
    activate,
    combiner_of,
    probabilities,
    update,
)
from metrack.engine.ensemble.page_hinkley import detect
from metrack.engine.ensemble.scores import Scores, record
from metrack.engine.learners.bank import FOREVER, Predictions
from metrack.engine.learners.cover import activated_levels, active_levels, time_on_cover
from metrack.engine.numerics.kernels import Floats, Record, fill, inner, kernel
from metrack.engine.numerics.losses import LOGISTIC, Kind, gradient, loss, shortfall
from metrack.engine.numerics.pairs import sign
from metrack.engine.numerics.records import Structure, counts, floats

AVERAGE, SAMPLE, BEST = range(3)
OUTPUTS = {"average": AVERAGE, "sample": SAMPLE, "best": BEST}

CAPPED, SQUASHED, LINEAR = range(3)
WEIGHT_LOSSES = {"capped": CAPPED, "logistic": SQUASHED, "linear": LINEAR}


class Combination(NamedTuple):
    """How experts are combined; by default there is one."""

    loss: Kind  # by which the ensemble's predictions are judged
    combiner: Any = ALONE.record
    output: int = AVERAGE
    weight_loss: int = CAPPED  # what the combiner is told
    cap: float = 2.0  # of losses that it is told


class Roster(NamedTuple):
    """Which experts there are."""

    first_interval: int  # of the dyadic cover; 0: all experts are always on
    n_always_on: int  # 0 on the cover


class ExpertState(NamedTuple):
    """What the combiner knows of each expert."""

    length: Annotated[Floats, floats("experts", least=1.0)]  # of its memory
    # A row each, and the combiner's own rows.
    statistics: Annotated[Floats, floats("rows", "statistics")]
    # Probabilities in the last round.
    p: Annotated[Floats, floats("experts", least=0.0, most=1.0)]
    # What the combiner was told in the last round.
    losses: Annotated[Floats, floats("experts", least=0.0, most=1.0)]


# How far the stream has come: pairs, and the expert that predicted in the last round; where experts
# are averaged, the most trusted one.
COUNTERS = Structure(pairs=counts(1), selected=counts(1))


class State(NamedTuple):
    """All that the pass changes."""

    experts: ExpertState
    counters: Record
    detector: Record
    scores: Scores


class Told(NamedTuple):
    """What the pass tells of each pair."""

    losses: Floats  # of the ensemble
    windows: Floats  # effective ones; empty where nobody asks
    scores: Floats  # what is put out, distance over threshold; empty where nobody asks


class Output(NamedTuple):
    """What the ensemble predicts."""

    q: float  # squared distance
    mu: float  # threshold


def new_experts(lengths: Floats, combiner: Any) -> ExpertState:
    """Experts that have not been activated yet."""
    n, kept = len(lengths), combiner_of(combiner)
    statistics = np.zeros((n + kept.own_rows, kept.n_statistics))
    return ExpertState(lengths, statistics, np.zeros(n), np.zeros(n))


@kernel
def combine(
    state: State,
    how: Combination,
    roster: Roster,
    predictions: Predictions,
    y: Floats,
    draws: Floats,
    told: Told,
) -> None:
    """Leave what is to be told of each pair in ``told``, and learn whom to trust.

    ``draws`` are uniform numbers, one a pair, for the output that samples.
    """
    experts, counters, p = state.experts, state.counters[0], state.experts.p
    weighing = roster.first_interval > 0 or roster.n_always_on > 1
    for row in range(y.size):
        weight = min(abs(y[row]), 1.0)
        counters.pairs += 1
        t = counters.pairs
        n = _activate(experts, how.combiner, roster, t)
        probabilities(how.combiner, experts.statistics, n, t, p)
        counters.selected = _select(p, n, how.output, draws[row] if draws.size else 0.0)
        said = Predictions(predictions.q[row], predictions.mu[row])
        output = _mean(said, p, n)
        if how.output != AVERAGE:
            output = Output(said.q[counters.selected], said.mu[counters.selected])
        suffered = loss(how.loss, shortfall(sign(y[row]), output.mu, output.q))
        told.losses[row] = abs(y[row]) * suffered
        if y[row] != 0.0:
            detect(state.detector, t, suffered)
            record(state.scores, t, y[row], output.q / output.mu)
        if told.scores.size > 0:
            told.scores[row] = output.q / output.mu
        if told.windows.size > 0:
            told.windows[row] = effective_window(experts.length, p, n)
        if weighing:
            _judge(experts, how, said, n, sign(y[row]) * weight, output)
            update(how.combiner, experts.statistics, n, p, experts.losses)


@inner
def effective_window(length: Floats, p: Floats, n: int) -> float:
    """The geometric mean of the experts' memory lengths; those that forget nothing do not count."""
    total = logs = 0.0
    for j in range(n):
        if length[j] < FOREVER:
            total += p[j]
            logs += p[j] * math.log2(length[j])
    return float(2.0 ** (logs / total)) if total > 0.0 else 1.0


@inner
def _activate(experts: ExpertState, combiner: Any, roster: Roster, t: int) -> int:
    """Start experts whose time has come; returns how many are active."""
    n, started, tau = roster.n_always_on, roster.n_always_on if t == 1 else 0, t
    if roster.first_interval > 0:
        tau = time_on_cover(t, roster.first_interval)
        n = active_levels(tau, roster.first_interval)
        started = activated_levels(tau, roster.first_interval)
    for j in range(started):
        fill(experts.statistics[j], 0.0, experts.statistics.shape[1])
        activate(combiner, experts.statistics[j], Activation(experts.length[j], tau, n))
    return n


@inner
def _select(p: Floats, n: int, output: int, draw: float) -> int:
    """The expert that is drawn, or the most trusted."""
    best = 0
    if output == SAMPLE:
        below = p[0]
        while below <= draw and best < n - 1:
            best += 1
            below += p[best]
        return best
    for j in range(n):
        if p[j] > p[best]:
            best = j
    return best


@inner
def _mean(said: Predictions, p: Floats, n: int) -> Output:
    """The weighted mean of what the experts said."""
    q = mu = 0.0
    for j in range(n):
        q += p[j] * said.q[j]
        mu += p[j] * said.mu[j]
    return Output(q, mu)


@inner
def _judge(
    experts: ExpertState, how: Combination, said: Predictions, n: int, y: float, output: Output
) -> None:
    """What the combiner is told of each expert's prediction, in [0, 1].

    A pair of weight below 1 counts for less.
    """
    label, weight = sign(y), abs(y)
    asked = label * gradient(how.loss, shortfall(label, output.mu, output.q))
    for j in range(n):
        lacking = shortfall(label, said.mu[j], said.q[j])
        if how.weight_loss == CAPPED:
            experts.losses[j] = min(how.cap, loss(how.loss, lacking)) / how.cap
        elif how.weight_loss == SQUASHED:
            experts.losses[j] = gradient(LOGISTIC, lacking)  # 1 / (1 + exp(m))
        else:  # the loss linearised at the ensemble's own prediction
            linear = asked * ((said.q[j] - output.q) - (said.mu[j] - output.mu))
            experts.losses[j] = 0.5 + 0.5 * min(max(linear / how.cap, -1.0), 1.0)
        experts.losses[j] *= weight


@kernel
def weights(experts: ExpertState, combination: Combination, t: int, p: Floats) -> None:
    """Leave the normalised weights of the first experts before round t in p."""
    probabilities(combination.combiner, experts.statistics, p.size, t, p)
