"""Fill the tables of docs/how-to/label.md, and draw its figure, from docs/figures/active.json.

    python -m docs.figures.make_label_page

``make bench-active`` measures, and then runs this.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill, listed

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "how-to" / "label.md"
RESULTS, FIGURE = HERE / "active.json", HERE / "label.png"
ACTIVE = "ActiveTracker"
NAMES = {"suggest_pairs": "`suggest_pairs`", ACTIVE: "`ActiveTracker`"}
WORSE = 0.01  # AUC


def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def questions(found):
    """Name, number of seeds, and curves of each question."""
    for name, of_set in found["sets"].items():
        for question, curves in of_set["curves"].items():
            yield f"{name}, {question}", of_set["seeds"], curves


def needed(curve, goal, every):
    there = np.flatnonzero(np.array(curve) >= goal)
    return f"{every * (there[0] + 1):,}" if there.size else f"more than {every * len(curve):,}"


def saved(found):
    rows = []
    for name, seeds, curves in questions(found):
        goal = curves["random"][-1]
        each = [needed(curve, goal, found["every"]) for curve in curves.values()]
        rows.append([f"{name} ({seeds} seeds)", f"{goal:.3f}", *each])
    ways = [NAMES.get(way, way) for way in next(questions(found))[2]]
    return markdown_table(["question", "AUC", *ways], rows)


def later(found):
    """AUC after some numbers of answers."""
    at = (100, 250, 500, 1_500)
    rows = []
    for name, _, curves in questions(found):
        for way in ("random", "suggest_pairs", ACTIVE):
            aucs = [f"{curves[way][n // found['every'] - 1]:.3f}" for n in at]
            rows.append([f"{name}: {NAMES.get(way, way)}", *aucs])
    return markdown_table(["AUC after", *(f"{n:,} answers" for n in at)], rows)


def said(found):
    parts = []
    for name, of_set in found["sets"].items():
        for question, told in of_set["said"].items():
            if told["error"] is None:
                parts.append(f"{name}, {question}: nowhere, too few are alike")
            else:
                parts.append(
                    f"{name}, {question}: off by {told['error']:.3f} on average, told in "
                    f"{told['known']:.0%} of the cases"
                )
    second = [told for each in found["sets"].values() for told in list(each["said"].values())[1:]]
    noticed = [at for told in second for at in told["noticed"]]
    seen = [at for at in noticed if at is not None]
    wrong = sum(most > 2 for told in second for most in told["questions"])
    return (
        f"Its estimate of the AUC: {'; '.join(parts)}. The change of the question was noticed in "
        f"{len(seen)} of {len(noticed)} runs, within {max(seen)} answers, and where it was none in "
        f"{wrong}."
    )


def on_tables(found):
    tables = found["tables"]
    rows = []
    for way in next(iter(tables.values())):
        gains = np.array([each[way] - each["random"] for each in tables.values()])
        mean = np.mean([each[way] for each in tables.values()])
        counts = [f"{np.sum(gains < -WORSE)}", f"{np.sum(gains > WORSE)}"]
        rows.append(
            [NAMES.get(way, way), f"{mean:.3f}", *(counts if way != "random" else ["", ""])]
        )
    titles = ["worse than random by .01", "better by .01"]
    table = markdown_table(["300 answers", "mean AUC", *titles], rows)
    losses = sorted(
        (each[ACTIVE] - each["random"], name)
        for name, each in tables.items()
        if each[ACTIVE] - each["random"] < -WORSE
    )
    names = listed(f"{name} ({gain:+.3f})" for gain, name in losses[:5])
    worst = f" It loses most on {names}." if losses else ""
    return (
        f"On {len(tables)} public tables, standardised, on which 3,000 random pairs are worth .02 "
        f"AUC more than plain distance:\n\n{table}\n\n`ActiveTracker` is behind of random pairs by "
        f".01 on {len(losses)} of them.{worst}"
    )


BLOCKS = {"saved": saved, "later": later, "said": said, "on tables": on_tables}


def filled():
    """The page, with the figures that are kept."""
    found = measured()
    page = PAGE.read_text(encoding="utf-8")
    return fill(page, {name: block(found) for name, block in BLOCKS.items()})


def draw():
    found = measured()
    panels = list(questions(found))
    picture, axes = plt.subplots(1, len(panels), figsize=(13, 3.4), layout="constrained")
    for axis, (title, _, curves) in zip(axes, panels, strict=True):
        for way, curve in curves.items():
            answers = [found["every"] * (i + 1) for i in range(len(curve))]
            axis.plot(answers, curve, label=way, linewidth=1.4)
        axis.axhline(curves["random"][-1], color="gray", linewidth=0.7, linestyle=":")
        axis.set(title=title, xlabel="answers")
    axes[0].set_ylabel("AUC")
    axes[0].legend(fontsize=8, loc="lower right")
    picture.savefig(FIGURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
    draw()
