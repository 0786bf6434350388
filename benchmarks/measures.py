"""How well distances and probabilities tell which pairs are alike, where few are."""

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve

BINS = 10


def average_precision(distances, alike):
    """Mean precision over all ranks at which an alike pair is found, the nearest pairs first."""
    return float(average_precision_score(alike, -np.asarray(distances)))


def f1(called, alike):
    """Harmonic mean of precision and recall of what is called alike."""
    right = np.count_nonzero(called & alike)
    total = np.count_nonzero(called) + np.count_nonzero(alike)
    return 2.0 * right / total if total else 0.0


def best_f1(distances, alike):
    """The largest F1 of any threshold, chosen on these very pairs."""
    precision, recall, _ = precision_recall_curve(alike, -np.asarray(distances))
    return float(np.max(2.0 * precision * recall / np.maximum(precision + recall, 1e-12)))


def calibration_error(probabilities, alike, bins=BINS):
    """Expected calibration error: mean gap between probability and share, in equal bins."""
    which = np.minimum((np.asarray(probabilities) * bins).astype(int), bins - 1)
    gaps = np.bincount(which, probabilities - alike.astype(float), minlength=bins)
    return float(np.abs(gaps).sum() / len(alike))


def along(run, value, rates, factor=3.0, more=4):
    """Runs by rate, and at most ``more`` beyond either end while the one of largest value is there.

    ``value(run)`` may be several numbers, each of which has a best rate of its own.
    """
    runs = {rate: run(rate) for rate in rates}
    least, largest = min(rates) / factor ** (more + 0.5), max(rates) * factor ** (more + 0.5)
    while True:
        values = {rate: np.atleast_1d(value(each)) for rate, each in runs.items()}
        first, last = min(runs), max(runs)
        grid = sorted(runs)
        best = {grid[i] for i in np.argmax([values[rate] for rate in grid], axis=0)}
        ends = {first: first / factor, last: last * factor}
        beyond = [new for end, new in ends.items() if end in best and least <= new <= largest]
        if not beyond:
            return runs
        runs |= {rate: run(rate) for rate in beyond}
