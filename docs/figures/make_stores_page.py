"""Fill the tables of docs/how-to/stores.md, and draw its figure, from docs/figures/stores.json.

    python -m docs.figures.make_stores_page

``make bench-stores`` measures, and then runs this.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "how-to" / "stores.md"
RESULTS, FIGURE = HERE / "stores.json", HERE / "stores.png"


def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def what(found):
    first, second, former = found["recall"].values()
    times = found["candidates"]
    five = times.index(5)
    return (
        f"{found['items']:,} items of {found['features']} features, made of 6,000 questions to a "
        f'bank; {found["pairs"]:,} judgements of the question "same group", then as many of '
        '"same intent", then of "same group" again. With five times as many candidates as are '
        f"asked for, plain vectors have {first[five]:.3f} of the ten nearest after the first "
        f"switch, and {second[five]:.3f} after the second, when the metric is further from plain "
        f"distance: with {times[-1]} times as many it is {second[-1]:.3f}. Vectors that were "
        f"embedded by the former question have {former[five]:.3f} after the first switch."
    )


def stores(found):
    rows = []
    for name, each in found["stores"].items():
        rerank, refresh = each["rerank"], each["refresh"]
        rows.append(
            [
                f"{name} ({each['version']})",
                f"{each['add']:.0f} s",
                f"{rerank['recall']:.3f}",
                f"{rerank['ms']:.1f} ms",
                f"{refresh['recall']:.4f}",
                f"{refresh['ms']:.1f} ms",
                f"{refresh['meanwhile'][1]:.0f} ms",
                f"{refresh['seconds']:.0f} s",
            ]
        )
    titles = ["store", f"{found['items']:,} added", "rerank", "a query", "refresh", "a query"]
    return markdown_table([*titles, "meanwhile", "embedding anew"], rows)


BLOCKS = {"what": what, "stores": stores}


def filled():
    """The page, with the figures that are kept."""
    found = measured()
    page = PAGE.read_text(encoding="utf-8")
    return fill(page, {name: block(found) for name, block in BLOCKS.items()})


def draw():
    found = measured()
    picture, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    times = found["candidates"]
    for (name, curve), colour in zip(
        found["recall"].items(), ("#0072B2", "#56B4E9", "#D55E00"), strict=True
    ):
        left.plot(times, curve, "o-", color=colour, label=name, linewidth=1.5, markersize=4)
    left.axhline(1.0, color="#009E73", linewidth=1.5, label="embedded anew")
    left.set(xscale="log", xlabel="candidates for each item that is asked for")
    left.set(ylabel="recall of the ten nearest", ylim=(None, 1.02))
    left.set_xticks(times, [str(each) for each in times])
    left.minorticks_off()
    left.legend(fontsize=8, frameon=False, loc="lower right")
    each = found["stores"]
    bars = {
        "rerank": [store["rerank"]["ms"] for store in each.values()],
        "refresh": [store["refresh"]["ms"] for store in each.values()],
        "slowest in a hundred, meanwhile": [s["refresh"]["meanwhile"][1] for s in each.values()],
    }
    for i, ((name, heights), colour) in enumerate(
        zip(bars.items(), ("#0072B2", "#009E73", "#999999"), strict=True)
    ):
        right.bar(np.arange(len(each)) + 0.27 * (i - 1), heights, 0.25, label=name, color=colour)
    right.set(yscale="log", ylabel="ms of a query")
    right.set_xticks(range(len(each)), [name.replace(", ", "\n") for name in each], fontsize=8)
    right.legend(fontsize=8, frameon=False)
    picture.savefig(FIGURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
    draw()
