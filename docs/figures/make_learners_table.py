"""Put the tables of learners into docs/tracking.md, as they are in `estimators/resolved/tables.py`.

python docs/figures/make_learners_table.py
"""

import re
from pathlib import Path

from metrack.engine.learners.bank import ALL
from metrack.estimators.resolved.tables import TABLE, WIDE_TABLE

PAGE = Path(__file__).parents[1] / "tracking.md"
TITLES = ("kind", "units", "rate", "memory", "pull", "mean over", "directions")


def memory_of(row):
    """Of how many pairs; plain distance learns of none but its scale."""
    if row.kind == "plain":
        return ""
    if row.memory:
        return f"{row.memory:,}"
    return "all" if row.kind == "gradient" else "none"


def cells(row):
    """What a row says; empty where its kind has no such number."""
    return [
        row.kind,
        row.view,
        f"{row.rate:g}" if row.rate else "",
        memory_of(row),
        f"{row.pull:g}" if row.pull else "",
        f"{row.mean:,}" if row.kind == "gradient" else "",
        f"{row.width}" if row.width != ALL and row.kind != "plain" else "",
    ]


def table(rows):
    """As Markdown."""
    lines = [TITLES, ["---"] * len(TITLES), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled():
    """The page, with the tables of today."""
    page = PAGE.read_text(encoding="utf-8")
    for name, rows in (("narrow", TABLE), ("wide", WIDE_TABLE)):
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
        page = re.sub(pattern, rf"\g<1>{table(rows)}\g<2>", page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
