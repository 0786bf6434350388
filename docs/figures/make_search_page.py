"""Fill the table of docs/how-to/search.md from docs/figures/search.json.

    python -m docs.figures.make_search_page

``benchmarks/search.py`` measures.
"""

import json
from pathlib import Path

import numpy as np

from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "how-to" / "search.md"


def figures():
    measured = json.loads((HERE / "search.json").read_text(encoding="utf-8"))
    n_seeds = len(next(iter(measured.values())))
    rows = [
        [name, *(f"{mean:.3f}" for mean in np.mean(each, axis=0))]
        for name, each in measured.items()
    ]
    titles = [f"nDCG, means of {n_seeds} seeds", "topic, before", "after 6,000 results"]
    return markdown_table([*titles, "kind, then", "after 6,000 more"], rows)


def filled():
    """The page, with the figures that are kept."""
    return fill(PAGE.read_text(encoding="utf-8"), {"figures": figures()})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
