"""What a metric could reach on a stream of benchmarks/families.py, by knowing or computing more.

possible   For each question the metric and threshold with the least expected hinge loss, told how
           points turn: found on other pairs of the same points, judged on the stream's own. No
           learner that predicts by one metric at a time can be much below.
refitted   All pairs of the question so far, refitted every 100 pairs: told which question is asked,
           also when it comes back, and how points turn. M is pulled to a multiple of I, at the best
           of some strengths in hindsight. What is above "possible" is the price of few pairs.
windowed   The last pairs, refitted every 100: told nothing, and by far more work than a learner of
           a stream can do. The length of the window and the strength are the best in hindsight.

The hinge loss is convex in M and mu. Its minimum is found on a square factor L, M = L'L, where
every local minimum is a global one, with the kink of the hinge rounded more and more narrowly.
"""

import numpy as np
from scipy.optimize import minimize

from metrack.streams import LabelledStream

N_OTHERS = 40_000  # pairs of a question
ROUNDED = (0.5, 0.1, 0.02)  # widths of the hinge's kink
MOST_STEPS = 200
EVERY = 100
WINDOWS = (125, 250, 500, 1_000, 2_000, 8_000)  # the last: all pairs
PULLS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # without end: plain distance


def possible(stream):
    """Mean hinge loss of the best metric of each question; None where questions blend."""
    if any(segment.blend for segment in stream.schedule):
        return None
    points, u, y, asked = at_rest(stream)
    losses = np.empty(len(y))
    for question in dict.fromkeys(asked):
        chosen = asked == question
        labels = stream.labels(int(np.argmax(chosen)))
        others = LabelledStream(
            points, labels, n_pairs=N_OTHERS, similar=stream.similar, random_state=1
        )
        rows, judged = others.pairs()
        fitted = unchanged(u)
        for width in ROUNDED:
            fitted = fit(points[rows[:, 0]] - points[rows[:, 1]], judged, fitted, width)
        losses[chosen] = hinge(u[chosen], y[chosen], fitted)
    return float(losses.mean())


def refitted(stream):
    """Mean hinge loss of a metric that is refitted; None where questions blend."""
    if any(segment.blend for segment in stream.schedule):
        return None
    return min(_refitted(stream, pull) for pull in PULLS)


def _refitted(stream, pull):
    _, u, y, asked = at_rest(stream)
    losses, found = np.empty(len(y)), {}
    for start in range(0, len(y), EVERY):
        new, question = slice(start, start + EVERY), asked[start]
        before = found.get(question, unchanged(u))
        losses[new] = hinge(u[new], y[new], before)
        seen = np.flatnonzero(asked[: start + EVERY] == question)
        found[question] = fit(u[seen], y[seen], before, ROUNDED[1], pull / len(seen))
    return float(losses.mean())


def windowed(u, y):
    """Mean hinge loss of a metric that is refitted on the last pairs."""
    return min(_windowed(u, y, window, pull) for window in WINDOWS for pull in PULLS)


def _windowed(u, y, window, pull):
    losses, fitted = np.empty(len(y)), unchanged(u)
    for start in range(0, len(y), EVERY):
        end = start + EVERY
        losses[start:end] = hinge(u[start:end], y[start:end], fitted)
        seen = slice(max(0, end - window), end)
        fitted = fit(u[seen], y[seen], fitted, ROUNDED[1], pull / len(y[seen]))
    return float(losses.mean())


def at_rest(stream):
    """Points as they were first, differences of pairs of them, judgements, and questions."""
    points = stream.points(0)
    rows, y = stream.rows()
    asked = np.array([stream.partition(t) for t in range(len(stream))])
    return points, points[rows[:, 0]] - points[rows[:, 1]], y, asked


def unchanged(u):
    """Plain distance, 2 on average, and a threshold of 2: L, mu, and the multiple of I."""
    n = u.shape[1]
    scale = 2.0 / np.mean(np.sum(u**2, axis=1))
    return np.concatenate([np.sqrt(scale) * np.eye(n).ravel(), [2.0, scale]])


def hinge(u, y, fitted):
    """Losses of a metric."""
    n = u.shape[1]
    q = np.sum((u @ fitted[:-2].reshape(n, n).T) ** 2, axis=1)
    return np.maximum(0.0, 1.0 - y * (fitted[-2] - q))


def fit(u, y, start, width, pull=0.0):
    """L, mu and the multiple s of I: least mean loss + pull mean(|u|^2)^2 |M - sI|^2 / 2."""
    n = u.shape[1]
    pull = pull * np.mean(np.sum(u**2, axis=1)) ** 2

    def objective(x):
        L, mu, s = x[:-2].reshape(n, n), x[-2], x[-1]
        v = u @ L.T
        lacking = 1.0 - y * (mu - np.sum(v * v, axis=1))
        slope = np.clip(lacking / width, 0.0, 1.0)
        losses = slope * (lacking - 0.5 * width * slope)  # the hinge, its kink rounded
        by_q = slope * y / len(y)
        off = L.T @ L - s * np.eye(n)
        value = losses.mean() + 0.5 * pull * np.sum(off * off)
        by_L = 2.0 * (v.T * by_q) @ u + 2.0 * pull * L @ off
        return value, np.concatenate([by_L.ravel(), [-by_q.sum(), -pull * np.trace(off)]])

    options = {"maxiter": MOST_STEPS}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
