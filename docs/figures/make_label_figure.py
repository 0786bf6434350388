"""Draw the curves of docs/how-to/label.md from what ``make bench-active`` has measured."""

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

here = Path(__file__).resolve().parent
measured = json.loads((here / "active.json").read_text(encoding="utf-8"))
panels = [
    (f"{name}, {question}", curves)
    for name, questions in measured["curves"].items()
    for question, curves in questions.items()
]
figure, axes = plt.subplots(1, len(panels), figsize=(13, 3.4), constrained_layout=True)
for axis, (title, curves) in zip(axes, panels, strict=True):
    for way, curve in curves.items():
        answers = [measured["every"] * (i + 1) for i in range(len(curve))]
        axis.plot(answers, curve, label=way, linewidth=1.4)
    axis.axhline(curves["random"][-1], color="gray", linewidth=0.7, linestyle=":")
    axis.set_title(title)
    axis.set_xlabel("answers")
axes[0].set_ylabel("AUC")
axes[0].legend(fontsize=8, loc="lower right")
figure.savefig(here / "label.png", dpi=110)
