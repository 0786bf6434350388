"""Draw the figure of docs/kernel.md: a question that a linear metric cannot answer."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from metrack import KernelTracker, MetricTracker

N_PAIRS = 4_000

X, digit = load_digits(return_X_y=True)
below = digit < 5
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
seen, fresh = order[: len(X) // 2], order[len(X) // 2 :]


def judged(rows, n_pairs):
    pairs = rng.choice(rows, size=(n_pairs, 2))
    return X[pairs], np.where(below[pairs[:, 0]] == below[pairs[:, 1]], 1, -1)


pairs, y = judged(seen, N_PAIRS)
others, alike = judged(fresh, N_PAIRS)
figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for panel, learner in zip(
    panels, (MetricTracker(n_components=2), KernelTracker(n_components=2)), strict=True
):
    learner.fit(pairs, y)
    embedded = learner.transform(X[fresh])
    for which, colour, name in ((True, "#0072B2", "below 5"), (False, "#D55E00", "5 or more")):
        some = below[fresh] == which
        panel.scatter(*embedded[some].T, s=7, c=colour, label=name, alpha=0.7, linewidths=0)
    area = type(learner)().fit(pairs, y).score(others, alike)
    panel.set(title=f"{type(learner).__name__}: AUC {area:.2f}", xticks=[], yticks=[])
panels[0].legend(frameon=False)
figure.savefig(Path(__file__).parent / "kernel.png", dpi=120)
