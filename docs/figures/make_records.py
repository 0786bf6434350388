"""Fill the tables by fields of docs/linkage.md, and draw their figure, from records.json.

    python -m docs.figures.make_records

``make bench-linkage`` measures, and then runs this.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.linkage_streams import TITLES
from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill, listed
from docs.figures.make_linkage import PAGE, figure, percent
from docs.figures.make_linkage import measured as embedded

HERE = Path(__file__).resolve().parent
RESULTS, FIGURE = HERE / "records.json", HERE / "records.png"

TRACKERS = ("`MetricTracker()`", "`KernelTracker()`")
BATCH = ("logistic regression", "random forest")
BY_FIELD, IN_STEPS = "`Comparisons()`", "`Comparisons(steps=True)`"
UNTOLD = ("all", "last 1,000")  # pairs that models are fitted to by those who know of no change
BACK = 0.02  # AP below what new pairs alone lead to
NEARLY_ALL = 0.02  # AP below what all pairs lead to
COLOURS = {TRACKERS[0]: "#0072B2", TRACKERS[1]: "#56B4E9", BATCH[0]: "#999999", BATCH[1]: "#D55E00"}
LINES = {"all": "-", "last 1,000": "--"}


def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def short(name):
    return TITLES[name].partition(" ")[0]


def fields(found):
    """AP by set, method and comparisons."""
    parts = []
    for name, own in found["sets"].items():
        features = own["features"]
        rows = [
            [
                method,
                *(figure(features[BY_FIELD]["methods"][method][each]) for each in ("ap", "f1")),
                *(figure(features[IN_STEPS]["methods"][method][each]) for each in ("ap", "f1")),
                f"{np.mean(features[BY_FIELD]['methods'][method]['seconds']):.2f}",
            ]
            for method in (*TRACKERS, *BATCH)
        ]
        rows.append(["plain distance", figure(features[BY_FIELD]["plain"]), "", "", "", ""])
        text = embedded()["sets"][name]["curves"][TRACKERS[0]][-1]["ap"]
        rows.append([f"{TRACKERS[0]} on text embeddings, as above", figure(text), "", "", "", ""])
        counts = [features[each]["n_features"] for each in (BY_FIELD, IN_STEPS)]
        parts.append(
            f"**{short(name).capitalize()}**: {own['n_pairs']:,} pairs to learn from, "
            f"{percent(own['alike'])} alike; {counts[0]} comparisons, {counts[1]} in steps, made "
            f"in {features[BY_FIELD]['seconds']:.1f} s."
        )
        titles = ["", "AP", "best F1", "AP, in steps", "best F1, in steps", "seconds to learn"]
        parts.append(markdown_table(titles, rows))
    return "\n\n".join(parts)


def behind(found):
    """How far the trackers are from the batch models."""
    lines = []
    for name, own in found["sets"].items():
        for title in (BY_FIELD, IN_STEPS):
            methods = own["features"][title]["methods"]
            for tracker in TRACKERS:
                gaps = [np.mean(methods[tracker]["ap"]) - np.mean(methods[b]["ap"]) for b in BATCH]
                lines.append(
                    f"- {short(name)}, {title}: {tracker} {gaps[0]:+.3f} beside logistic "
                    f"regression, {gaps[1]:+.3f} beside the forest."
                )
    return "\n".join(lines)


def products(found):
    rows = []
    for name, own in found["sets"].items():
        few, many = [each for each in own["features"] if each not in (BY_FIELD, IN_STEPS)]
        for method in (*TRACKERS, *BATCH):
            aps = [figure(own["features"][each]["methods"][method]["ap"]) for each in (few, many)]
            rows.append([short(name), method, *aps])
    return markdown_table(["set", "AP", few, many], rows)


def after_change(runs):
    """For each method AP at each look: the mean over orders."""
    return {method: np.mean(own, axis=0) for method, own in runs.items()}


def reference(methods, method):
    """What so many new pairs alone lead to."""
    alone = f"{method}, new pairs alone"
    if alone in methods:
        return float(methods[alone])
    return float(methods[f"{method.split(',')[0]}, last 2,000"][-1])


def answers_to_be_back(methods, method, every):
    enough = np.flatnonzero(methods[method] >= reference(methods, method) - BACK)
    return (
        f"{every * enough[0]:,}" if enough.size else f"over {every * (len(methods[method]) - 1):,}"
    )


def best_window(methods, batch):
    """The refitted model of largest mean AP after the change: its name."""
    windows = [each for each in methods if each.startswith(f"{batch}, ")]
    return max(windows, key=lambda each: methods[each][1:].mean())


def changes(found):
    every, parts = found["every"], []
    for name, own in found["changes"].items():
        for title, runs in own.items():
            methods = after_change(runs)
            rows = []
            for method in (*TRACKERS, *(f"{b}, {each}" for b in BATCH for each in UNTOLD)):
                rows.append(_row(method, methods, method, every))
            for batch in BATCH:
                best = best_window(methods, batch)
                rows.append(
                    _row(f"{batch}, best window: {best[len(batch) + 2 :]}", methods, best, every)
                )
            heads = [
                "AP",
                "at the change",
                "mean over 2,000 pairs",
                "after 2,000",
                "answers to be back",
            ]
            parts += [f"**{short(name).capitalize()}: {title}**", markdown_table(heads, rows)]
    return "\n\n".join(parts)


def _row(shown, methods, method, every):
    values = methods[method]
    cells = [figure(values[0]), figure(values[1:]), figure(values[-1])]
    return [shown, *cells, answers_to_be_back(methods, method, every)]


def verdict(found):
    """In how many of the changes the tracker is where it should be."""
    ahead, near, gaps = {b: [] for b in BATCH}, {b: [] for b in BATCH}, []
    for name, own in found["changes"].items():
        for title, runs in own.items():
            methods = after_change(runs)
            ours = methods[TRACKERS[0]][1:].mean()
            told = []
            for batch in BATCH:
                untold = max(methods[f"{batch}, {each}"][1:].mean() for each in UNTOLD)
                best = methods[best_window(methods, batch)][1:].mean()
                ahead[batch].append(ours > untold)
                near[batch].append(ours >= best - 0.01)
                told.append(f"{ours - untold:+.3f} and {ours - best:+.3f} beside {batch}")
            gaps.append(f"- {short(name)}, {title}: {listed(told)}.")
    n = len(gaps)
    counts = [
        f"above every refitted {batch} that is told nothing after {sum(ahead[batch])} of {n} "
        f"changes, and at most .01 below its best window after {sum(near[batch])}"
        for batch in BATCH
    ]
    head = f"Mean AP of {TRACKERS[0]} over the next 2,000 pairs is {listed(counts)}. In full, "
    return (
        f"{head}less the better of those told nothing, and less the best window:\n\n"
        + "\n".join(gaps)
    )


def asking(found):
    rows, notes = [], []
    for name, own in found["asking"].items():
        ways = {
            "`ActivePairs`": (own["asked"], found["looks"]),
            "random candidates": (own["random"], found["looks"]),
            "dedupe": (found["dedupe"]["sets"][name], found["dedupe"]["looks"]),
        }
        whole = np.mean(found["sets"][name]["features"][BY_FIELD]["methods"][TRACKERS[0]]["ap"])
        for way, (run, looks) in ways.items():
            values = dict(zip(looks, np.mean(run["ap"], axis=0), strict=True))
            cells = [f"{values[each]:.3f}" if each in values else "" for each in found["looks"]]
            enough = [look for look, value in values.items() if value >= whole - NEARLY_ALL]
            needed = f"{enough[0]:,}" if enough else f"over {looks[-1]:,}"
            rows.append([short(name), way, *cells, needed])
        yes = [np.mean(own[way]["yes"]) for way in ("asked", "random")]
        notes.append(
            f"Of {found['looks'][-1]:,} answers about {short(name)} {yes[0]:.0f} were yes, and "
            f"{yes[1]:.0f} about random candidates; all pairs lead to {whole:.3f}."
        )
    titles = ["set", "AP after so many answers", *(f"{each:,}" for each in found["looks"])]
    table = markdown_table([*titles, "answers needed"], rows)
    return f"{table}\n\n{' '.join(notes)}"


def speed(found):
    own = found["speed"]
    told = [f"{own[tracker]:,.0f} with {tracker}" for tracker in TRACKERS]
    return (
        f"Pairs compared and learned in a second, on one thread: {listed(told)}. Records have a "
        f"title of eight words and two more fields; there are {own['vocabulary']:,} trigrams."
    )


BLOCKS = {
    "by fields": fields,
    "by fields, behind": behind,
    "by fields, products": products,
    "by fields, changes": changes,
    "by fields, verdict": verdict,
    "by fields, asking": asking,
    "by fields, speed": speed,
}


def filled():
    """The page, with the figures that are kept."""
    found = measured()
    page = PAGE.read_text(encoding="utf-8")
    return fill(page, {name: block(found) for name, block in BLOCKS.items()})


def draw():
    found = measured()
    every = found["every"]
    picture, axes = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained", sharex=True)
    for row, (name, own) in zip(axes, found["changes"].items(), strict=True):
        for axis, (title, runs) in zip(row, own.items(), strict=True):
            methods = after_change(runs)
            looks = every * np.arange(len(methods[TRACKERS[0]]))
            for tracker in TRACKERS:
                label = tracker.replace("`", "")
                axis.plot(
                    looks, methods[tracker], color=COLOURS[tracker], linewidth=2.4, label=label
                )
            for batch in BATCH:
                for window, line in LINES.items():
                    values = methods[f"{batch}, {window}"]
                    label = f"{batch}, {window}"
                    axis.plot(looks, values, line, color=COLOURS[batch], linewidth=1.3, label=label)
            axis.set_title(f"{short(name)}: {title}", fontsize=9)
        row[0].set_ylabel("AP on test pairs that changed, too")
    for axis in axes[1]:
        axis.set_xlabel("answers after the change")
    lines, names = axes[0][0].get_legend_handles_labels()
    picture.legend(lines, names, fontsize=8, frameon=False, loc="outside lower center", ncols=6)
    picture.savefig(FIGURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
    draw()
