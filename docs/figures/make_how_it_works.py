"""Make the three figures of docs/how-it-works.md: one stream, seen from inside the tracker.

python docs/figures/make_how_it_works.py
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from metrack import MetricTracker
from metrack.plots import COLOURS, GREY, STYLE

HERE = Path(__file__).parent
N_FEATURES, N_PAIRS, STEP, SMOOTH = 12, 6_000, 25, 300
# What counts: feature 0 and 1, then 2 alone, then slowly from 2 to 3.
FIRST, SECOND = 2_000, 4_000


def counting(t):
    """How much each feature counts in the judgement of pair t."""
    weight = np.zeros(N_FEATURES)
    if t < FIRST:
        weight[:2] = 0.5
    elif t < SECOND:
        weight[2] = 1.0
    else:
        share = (t - SECOND) / (N_PAIRS - SECOND)
        weight[2], weight[3] = 1.0 - share, share
    return weight


def stream(seed=0):
    """Pairs whose question switches once, and then turns."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(N_PAIRS, 2, N_FEATURES))
    squares = (pairs[:, 0] - pairs[:, 1]) ** 2
    asked = np.array([counting(t) @ squares[t] for t in range(N_PAIRS)])
    y = np.where(asked < np.median(asked), 1, -1)
    return pairs, np.where(rng.random(N_PAIRS) < 0.03, -y, y)


def follow(pairs, y):
    """The tracker's losses, weights and metric, every STEP pairs."""
    tracker, losses, weights, counts = MetricTracker(), [], [], []
    for begin in range(0, N_PAIRS, STEP):
        part = slice(begin, begin + STEP)
        losses.append(tracker.observe(pairs[part], y[part]))
        weights.append(tracker.weights_)
        diagonal = np.diag(tracker.get_mahalanobis_matrix())
        counts.append(diagonal / diagonal.sum())
    return tracker, np.concatenate(losses), np.array(weights), np.array(counts)


def smooth(values, width):
    """The mean of the last values."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - width, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def marked(axes):
    for at in (FIRST, SECOND):
        axes.axvline(at, color=GREY, lw=0.8, ls=":")
    axes.set_xlim(0, N_PAIRS)
    axes.set_xlabel("pairs")


def draw_losses(losses, alone):
    figure, axes = plt.subplots(figsize=(7.5, 3.2))
    for (name, each), colour in zip(alone.items(), COLOURS[1:], strict=False):
        axes.plot(smooth(each, SMOOTH), color=colour, lw=1.2, label=name)
    axes.plot(smooth(losses, SMOOTH), color=COLOURS[0], lw=2.0, label="the tracker")
    axes.set_ylabel(f"hinge loss, mean of {SMOOTH} pairs")
    axes.legend(frameon=False, fontsize=8)
    marked(axes)
    return figure


def draw_trust(tracker, weights):
    figure, axes = plt.subplots(figsize=(7.5, 3.2))
    groups = ("up to 256 pairs", "more", "all the past", "plain distance")
    shares = np.zeros((len(groups), len(weights)))
    for j, expert in enumerate(tracker.experts_):
        forgets = 2 if np.isinf(expert.memory) else int(expert.memory > 256)
        shares[3 if expert.kind == "plain" else forgets] += weights[:, j]
    at = np.arange(1, len(weights) + 1) * STEP
    axes.stackplot(at, shares, labels=groups, colors=COLOURS[: len(groups)], lw=0)
    axes.set_ylabel("trust, by memory")
    axes.set_ylim(0, 1)
    axes.legend(frameon=True, fontsize=8, loc="lower right")
    marked(axes)
    return figure


def draw_metric(counts):
    figure, axes = plt.subplots(figsize=(7.5, 3.2))
    at = np.arange(1, len(counts) + 1) * STEP
    truth = np.array([counting(t) for t in range(N_PAIRS)])
    for j in range(4):
        axes.plot(truth[:, j], color=COLOURS[j], lw=0.8, ls="--")
        axes.plot(at, counts[:, j], color=COLOURS[j], lw=1.8, label=f"feature {j}")
    axes.set_ylabel("share of the metric")
    axes.legend(frameon=False, fontsize=8, ncol=4, loc="upper center")
    axes.set_ylim(0, 1.15)
    marked(axes)
    return figure


def main():
    pairs, y = stream()
    tracker, losses, weights, counts = follow(pairs, y)
    alone = {
        f"one learner, {name}": single(rate).observe(pairs, y)
        for name, rate in (("slow", 0.02), ("fast", 0.5))
    }
    with plt.rc_context(STYLE):
        for name, figure in (
            ("losses", draw_losses(losses, alone)),
            ("trust", draw_trust(tracker, weights)),
            ("metric", draw_metric(counts)),
        ):
            figure.savefig(HERE / f"how-{name}.png", dpi=150, bbox_inches="tight")
            plt.close(figure)


def single(rate):
    """What one would take without a tracker: a learner of one rate."""
    from metrack import COMID

    return COMID(divergence="burg", learning_rate=rate)


if __name__ == "__main__":
    main()
