"""How likely a pair is alike, and where to draw the line, by what was said of the last pairs.

The sample has as many of the last alike pairs as of the last others; each kind counts as much as it
has a share in the stream.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from metrack.checks import Bools
from metrack.engine.ensemble.scores import KEPT, SMALLEST, Scores
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.inputs.settings import is_number

Goal: TypeAlias = str | Mapping[str, float]
GOALS = ("accuracy", "f1")
RATES = ("precision", "recall")
STEPS, RIDGE, CLOSE = 100, 1e-6, 1e-10  # of Newton's method


class Sample(NamedTuple):
    """Squared distances over the threshold, by size, with weights that sum to 1."""

    ratio: Floats
    alike: Floats  # weights of alike pairs, 0 for others
    others: Floats


class Curve(NamedTuple):
    """The probability of a ratio r, or a square: 1 / (1 + exp(-(intercept - slope log r)))."""

    intercept: float
    slope: float

    def __call__(self, ratio: Floats) -> Floats:
        """Probabilities that pairs of these ratios are alike."""
        found: Floats = expit(self.intercept - self.slope * np.log(np.maximum(ratio, SMALLEST)))
        return found

    def of_squares(self, mu: float) -> "Curve":
        """The same of squared distances, whose ratio is to the squared threshold ``mu``."""
        return Curve(self.intercept + self.slope * float(np.log(mu)), self.slope)


def check_goal(goal: Any, name: str = "threshold") -> tuple[str, float]:
    """What a threshold is to reach: its name, and the rate asked for, if any."""
    if isinstance(goal, str) and goal in GOALS:
        return goal, 0.0
    if isinstance(goal, Mapping) and len(goal) == 1:
        ((rate, least),) = goal.items()
        if rate in RATES and is_number(least) and 0.0 <= least <= 1.0:
            return str(rate), float(least)
    raise ValueError(
        f"{name}={goal!r}; it must be 'accuracy', 'f1', {{'precision': 0.95}} or "
        "{'recall': 0.9}, with any rate from 0 to 1"
    )


def sample_of(ratio: Floats, alike: Any) -> Sample:
    """Pairs that count alike."""
    order, each = np.argsort(ratio, kind="stable"), 1.0 / len(ratio)
    return Sample(ratio[order], each * alike[order], each * ~alike[order])


def sample(scores: Scores) -> Sample:
    """The last pairs of each kind."""
    known = np.minimum(scores.seen, KEPT)
    ratio = np.concatenate([scores.ratio[kind, :n] for kind, n in enumerate(known)])
    share = float(scores.share[0]) if known.all() else float(known[0] > 0)
    each = np.array([share, 1.0 - share]) / np.maximum(known, 1)
    alike = np.repeat([each[0], 0.0], known)
    others = np.repeat([0.0, each[1]], known)
    order = np.argsort(ratio, kind="stable")
    return Sample(ratio[order], alike[order], others[order])


def latest_ratios(scores: Scores, alike: Bools) -> Floats:
    """What was said of the pairs learned last, `alike` or not, in their order: at most 512."""
    found = np.empty(len(alike))
    for kind, own in enumerate((alike, ~alike)):
        n = int(own.sum())
        places = np.arange(scores.seen[kind] - n, scores.seen[kind]) % KEPT
        found[own] = scores.ratio[kind, places]
    return found


def curve(found: Sample) -> Curve:
    """Platt's calibration: a logistic regression of what pairs were on what was said of them."""
    if not (found.alike.any() and found.others.any()):
        return Curve(0.0, 0.0) if found.ratio.size == 0 else _of_one_kind(found)
    log = np.log(np.maximum(found.ratio, SMALLEST))
    weight = found.alike + found.others
    centre = float(weight @ log)
    spread = float(np.sqrt(weight @ (log - centre) ** 2)) or 1.0
    features = np.column_stack([np.ones(log.size), (log - centre) / spread])
    theta = np.zeros(2)
    for _ in range(STEPS):
        p = expit(features @ theta)
        gradient = features.T @ (found.alike - weight * p) - RIDGE * theta
        curvature = (features * (weight * p * (1.0 - p))[:, None]).T @ features
        step = np.linalg.solve(curvature + RIDGE * np.eye(2), gradient)
        # No step is so long that the next one would be longer.
        theta += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < CLOSE:
            break
    slope = max(-float(theta[1]) / spread, 0.0)
    return Curve(float(theta[0]) + slope * centre, slope)


def _of_one_kind(found: Sample) -> Curve:
    """Laplace's rule: so many pairs of one kind, and none of the other."""
    odds = np.log(found.ratio.size + 1.0)
    return Curve(float(odds if found.alike.any() else -odds), 0.0)


def cut(found: Sample, goal: str, least: float) -> float:
    """The ratio up to which pairs are called alike: the best on the sample, by what is asked for.

    "precision": as many as can be where so many of those called alike are; "recall": as few as can
    be where so many of the alike ones are called so. What pairs were is noisy, and the curve may
    have another shape: so both have half a say in how likely a pair of the sample is alike.
    """
    weight = found.alike + found.others
    hits = np.cumsum(0.5 * found.alike + 0.5 * weight * curve(found)(found.ratio))
    called, all_alike = np.cumsum(weight), hits[-1]
    if goal == "f1":
        best = int(np.argmax(hits / (called + all_alike)))
    elif goal == "recall":
        best = int(np.searchsorted(hits, least * all_alike * (1.0 - CLOSE)))
    else:
        enough = np.flatnonzero(hits >= least * called)
        if enough.size == 0:
            return 0.5 * float(found.ratio[0])
        best = int(enough[-1])
    return float(found.ratio[best])
