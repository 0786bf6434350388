"""Fill the tables of docs/tables.md, and draw its figure, from docs/figures/tables.json.

    python -m docs.figures.make_tables_page

``make bench-tables`` measures, and then runs this.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.tables import BATCH, EVEN, LEARNERS, LOGISTIC, PLAIN, RAW, to_report
from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill, listed

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "tables.md"
RESULTS, FIGURE = HERE / "tables.json", HERE / "tables.png"

WORSE, MUCH = 0.01, 0.02  # AUC
TRACKER_NAME, KERNEL_NAME = "`MetricTracker()`", "`KernelTracker()`"
METHODS = [PLAIN, *LEARNERS, LOGISTIC]
IN_CLUSTERS = [
    f"{PLAIN}, {RAW}",
    f"{PLAIN}, {EVEN}",
    f"{TRACKER_NAME}, {RAW}",
    f"{TRACKER_NAME}, {EVEN}",
    *(f"{name}, {EVEN}" for name in BATCH),
]


def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def halves(found):
    """Tables by names: those that were chosen on, and those that were not."""
    tables = found["tables"]
    return {
        "a to m, chosen on": {k: v for k, v in tables.items() if not to_report(k)},
        "n to z, reported": {k: v for k, v in tables.items() if to_report(k)},
    }


def aucs(tables, method, units):
    """By table; None where the method has no figures in these units."""
    name = f"{method}, {units}"
    if name not in next(iter(tables.values()))["methods"]:
        return None
    return np.array([record["methods"][name]["auc"] for record in tables.values()])


def mean(values):
    return "" if values is None else f"{np.mean(values):.3f}"


def overall(found):
    parts = []
    for title, tables in halves(found).items():
        rows = []
        for method in METHODS:
            raw, even = (aucs(tables, method, units) for units in (RAW, EVEN))
            row = [method, mean(raw), mean(even)]
            for values, units in ((raw, RAW), (even, EVEN)):
                if values is None or method == PLAIN:
                    row += ["", ""]
                    continue
                lead = values - aucs(tables, PLAIN, units)
                row += [f"{np.sum(lead < -WORSE)}", f"{np.sum(lead > WORSE)}"]
            rows.append(row)
        titles = [f"mean AUC, names from {title}", RAW, EVEN]
        for units in (RAW, EVEN):
            titles += [f"worse than plain distance, {units}", f"better, {units}"]
        parts.append(f"Names from {title}: {len(tables)} tables.")
        parts.append(markdown_table(titles, rows))
    return "\n\n".join(parts)


def units(found):
    """What standardising is worth."""
    rows = []
    for title, tables in halves(found).items():
        for method in (PLAIN, *LEARNERS):
            gain = aucs(tables, method, EVEN) - aucs(tables, method, RAW)
            rows.append(
                [
                    f"{method}, {title.partition(',')[0]}",
                    f"{gain.mean():+.3f}",
                    f"{np.sum(gain > MUCH)}",
                    f"{np.sum(gain < -MUCH)}",
                ]
            )
    titles = ["AUC standardised - AUC raw", "mean", f"tables above {MUCH:g}"]
    table = markdown_table([*titles, f"below -{MUCH:g}"], rows)
    gains = {
        name: tuple(record["methods"][f"{TRACKER_NAME}, {where}"]["auc"] for where in (RAW, EVEN))
        for name, record in found["tables"].items()
    }
    costly = sorted(
        (name for name, (raw, even) in gains.items() if even - raw > MUCH),
        key=lambda name: gains[name][0] - gains[name][1],
    )
    if not costly:
        return f"{table}\n\nRaw units cost `MetricTracker()` nowhere more than {MUCH:g}."
    names = listed(f"{name} ({gains[name][0]:.3f}, {gains[name][1]:.3f})" for name in costly)
    costs = f"Raw units cost `MetricTracker()` more than {MUCH:g} on (raw, standardised): {names}."
    return f"{table}\n\n{costs}"


def worst(found):
    """Tables on which a tracker is behind of plain distance, in the same units."""
    lines = []
    for method in (TRACKER_NAME, KERNEL_NAME):
        for where in (RAW, EVEN):
            behind = [
                (plain["auc"] - own["auc"], f"{name} ({plain['auc']:.3f} to {own['auc']:.3f})")
                for name, record in found["tables"].items()
                if to_report(name)
                and (plain := record["methods"][f"{PLAIN}, {where}"])
                and (own := record["methods"][f"{method}, {where}"])
                and plain["auc"] - own["auc"] > WORSE
            ]
            names = [text for _, text in sorted(behind, reverse=True)]
            lines.append(f"- {method}, {where}: {listed(names) if names else 'none'}.")
    return "\n".join(lines)


def clusters(found):
    rows = []
    for method in IN_CLUSTERS:
        records = [record[method] for record in found["clusters"].values()]
        rows.append([method, *(f"{np.mean([r[k] for r in records]):.3f}" for k in ("nmi", "knn"))])
    titles = [f"means over {len(found['clusters'])} tables", "NMI of k-means", "5-NN error"]
    lines = [markdown_table(titles, rows), ""]
    own = f"{TRACKER_NAME}, {EVEN}"
    for method in IN_CLUSTERS[-len(BATCH) :]:
        leads = [each[method]["nmi"] - each[own]["nmi"] for each in found["clusters"].values()]
        ahead, behind = (int(np.sum(np.array(leads) * sign > WORSE)) for sign in (1, -1))
        lines.append(
            f"- {method}: NMI larger than that of {own} by more than {WORSE:g} on {ahead} tables, "
            f"smaller on {behind}."
        )
    return "\n".join(lines)


def each_cluster(found):
    rows = [
        [name, *(f"{record[method]['nmi']:.3f}" for method in IN_CLUSTERS)]
        for name, record in found["clusters"].items()
    ]
    return markdown_table(["NMI of k-means", *IN_CLUSTERS], rows)


BLOCKS = {
    "overall": overall,
    "units": units,
    "worst": worst,
    "clusters": clusters,
    "each table's clusters": each_cluster,
}


def filled():
    """The page, with the figures that are kept."""
    found = measured()
    page = PAGE.read_text(encoding="utf-8")
    return fill(page, {name: block(found) for name, block in BLOCKS.items()})


def draw():
    found = measured()
    picture, axes = plt.subplots(1, 3, figsize=(12.5, 4.5), layout="constrained", sharey=True)
    for axis, method in zip(axes, (PLAIN, "`OnlineITML()`", TRACKER_NAME), strict=True):
        axis.plot([0.3, 1.0], [0.3, 1.0], color="black", linewidth=0.7)
        for (title, tables), colour in zip(
            halves(found).items(), ("#999999", "#0072B2"), strict=True
        ):
            raw, even = (aucs(tables, method, where) for where in (RAW, EVEN))
            label = f"names from {title}"
            axis.scatter(raw, even, s=17, color=colour, alpha=0.75, linewidths=0, label=label)
        axis.set_title(method.replace("`", ""))
        axis.set(xlabel="AUC, raw units", xlim=(0.4, 1.01), ylim=(0.4, 1.01), aspect="equal")
    axes[0].set_ylabel("AUC, standardised")
    axes[0].legend(fontsize=8, frameon=False, loc="lower right")
    picture.savefig(FIGURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
    draw()
