"""Fill the tables of docs/reproduce-synthetic.md with the numbers of the studies beside this file.

python docs/studies/make_tables.py
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "reproduce-synthetic.md"
REFERENCES = {"raw": "raw points", "true metric": "true metric"}
VERDICTS = {True: "held", False: "not held", None: "open"}
SCHEDULES = {"long": "synthetic", "fast": "synthetic-fast"}


def results(folder):
    return json.loads((HERE / folder / "results.json").read_text(encoding="utf-8"))


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def by_segment(found, measure, digits, references):
    """Means over segments and the whole stream, the best method first."""
    methods = sorted(
        (name for name in found["methods"] if name not in REFERENCES),
        key=lambda name: found["methods"][name]["whole"][measure]["mean"],
        reverse=measure == "p_nmi",
    )
    names = {**(REFERENCES if references else {}), **{name: f"`{name}`" for name in methods}}
    for name, shown in names.items():
        own = found["methods"][name]
        cells = [each[measure] for each in (*own["segments"], own["whole"])]
        halves = [(each["high"] - each["low"]) / 2 for each in cells]
        yield row(
            shown,
            *(
                f"{100 * each['mean']:.{digits}f} ± {100 * half:.{digits}f}"
                for each, half in zip(cells, halves, strict=True)
            ),
        )


def recovery(studies):
    """Pairs to recover, by schedule and switch; the first to recover first."""
    first = studies["long"]["methods"]
    names = [name for name in first if name not in REFERENCES]
    for name in sorted(names, key=lambda name: first[name]["recovery"][0]["median"] or 1e9):
        switches = [
            each for found in studies.values() for each in found["methods"][name]["recovery"]
        ]
        if all(each["median"] is None for each in switches):
            yield row(f"`{name}`", *(["never"] * len(switches)))
        else:
            yield row(
                f"`{name}`",
                *(f"{e['median']:.0f} ({e['low']:.0f}-{e['high']:.0f})" for e in switches),
            )


def claims(studies, cells):
    """Each claim's lead on both schedules, and in how many cells of the map it holds."""
    for both in zip(*(found["claims"] for found in studies.values()), strict=True):
        shown = []
        for claim in both:
            lead = {key: f"{100 * value:+.2f}" for key, value in claim["margin"].items()}
            shown.append(f"{lead['mean']} ({lead['low']} to {lead['high']})")
            shown.append(VERDICTS[claim["held"]])
        held = [c["held"] for cell in cells for c in cell["claims"] if c["name"] == both[0]["name"]]
        counts = " / ".join(str(held.count(verdict)) for verdict in VERDICTS) if held else ""
        yield row(both[0]["claim"], *shown, counts)


def fill(page, after, rows):
    """Put rows in place of those of the first table after a line that starts like this."""
    table = re.compile(
        rf"(^{re.escape(after)}.*?^\| [^\n]+\n\| ---[^\n]+\n)(?:^\|[^\n]*\n)+", re.M | re.S
    )
    filled, n = table.subn(lambda found: found[1] + "\n".join(rows) + "\n", page, count=1)
    if n == 0:
        raise ValueError(f"no table after {after!r}")
    return filled


def filled():
    """The page, with the studies' numbers in all tables."""
    studies = {name: results(folder) for name, folder in SCHEDULES.items()}
    page = PAGE.read_text(encoding="utf-8")
    for name, found in studies.items():
        before, title, here = page.partition(f"### The {name} schedule\n")
        here = fill(here, "k-NN error in %", by_segment(found, "knn_error", 2, references=True))
        here = fill(here, "P(NMI > 0.8) in %", by_segment(found, "p_nmi", 1, references=False))
        page = before + title + here
    page = fill(page, "### Recovery", recovery(studies))
    return fill(page, "### Which claims held", claims(studies, results("claims")["cells"]))


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
