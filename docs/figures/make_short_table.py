"""Put the short table into README.md: real data, and what people would use instead.

python -m docs.figures.make_short_table

Figures are those of `make bench-linkage`, `bench-tables`, `bench-drift` and `bench-drift-moa`.
"""

import json
from pathlib import Path

import numpy as np

from docs.figures.blocks import fill

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[2] / "README.md"
OURS, CLUSTERED = "`MetricTracker()`", "`MetricTracker()`, raw"
LINKED = {"dblp": "publications", "amazon": "products"}


def read(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def linkage():
    """Average precision of pairs of records that people judged, after all judgements."""
    found = read("linkage")
    for name, records in LINKED.items():
        own = found["sets"][name]
        curves = own["curves"]
        adam = found["adam"]["curves"][name]["5"]

        def mean(curve):
            return f"{np.mean(curve[-1]['ap']):.3f}"

        yield (
            f"Linking {records}, {own['n_pairs']:,} judgements: average precision",
            mean(curves["plain distance"]),
            f"{mean(adam)}, five passes of Adam",
            f"**{mean(curves[OURS])}**, one pass",
        )


def clusters():
    """NMI of k-means on rows that no judgement was about."""
    found = read("tables")["clusters"].values()

    def mean(method):
        return np.mean([table[method]["nmi"] for table in found])

    yield (
        f"Clusters of {len(found)} public tables, 1,000 judgements: NMI on the other rows",
        f"{mean('plain distance, raw'):.2f}",
        f"{mean('`ITML()`, standardised'):.2f}, ITML, standardised",
        f"**{mean(CLUSTERED):.2f}**, units as they come",
    )


def drift():
    """Errors of streaming classifiers on real drift."""
    ours, others = read("drift")["records"], read("drift-moa")["records"]
    for name, what in (("gas", "Gas sensors that age"), ("weather", "Weather, 8,000 days")):
        rivals = {
            method: record["error"]
            for method, record in (ours[name] | others[name]).items()
            if method.startswith(("River", "MOA"))
        }
        best = min(rivals, key=rivals.get)
        yield (
            f"{what}: errors of classification, point by point",
            f"{ours[name]['plain windows x k']['error']:.1%}",
            f"{rivals[best]:.1%}, {best}, the best of {len(rivals)}",
            f"**{ours[name]['`DriftKNN()`']['error']:.1%}**, `DriftKNN()`",
        )


def table():
    """As Markdown."""
    lines = [
        ("", "plain distance", "what one would take instead", "metrack, nothing tuned"),
        ("---", "---", "---", "---"),
        *linkage(),
        *clusters(),
        *drift(),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled():
    """The page, with the figures of the last runs."""
    return fill(PAGE.read_text(encoding="utf-8"), {"short table": table()})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
