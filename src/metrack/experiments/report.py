"""What every study leaves behind: files, tables and claims, bands in figures, versions."""

import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from metrack import plots
from metrack.checks import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as Interactive

    from metrack.pages import Page

Json = dict[str, Any]  # an object of JSON: its values are of many kinds, one within another
Cells = tuple[list[str], list[list[str]]]  # a table's columns and rows

VERDICTS = {True: "held", False: "not held", None: "open"}  # of claims
PACKAGES = ("metrack", "numpy", "scipy", "scikit-learn", "numba", "joblib")


def check_writable(out: Path) -> None:
    """Make the folder; refuse one that cannot be written, now rather than after the work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write in {out}: {reason}; choose another folder") from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write JSON; equal content gives equal bytes. There is no NaN in JSON: give None."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def save_figure(figure: "Figure", out: Path, name: str = "figure") -> list[Path]:
    """Save a matplotlib figure as PNG and as PDF; equal figures give equal bytes."""
    paths = [out / f"{name}.png", out / f"{name}.pdf"]
    figure.savefig(paths[0], dpi=160)
    figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths


def versions() -> dict[str, str]:
    """Python's version and those of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout that was not installed
            continue
    return found


def print_results(tables: Mapping[str, Cells], claims: Sequence[Json], console: Console) -> None:
    """Tables by their titles, and which claims held, for a terminal."""
    for title, (columns, rows) in tables.items():
        table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
        for i, column in enumerate(columns):
            figures = any(row[i][:1].isdigit() for row in rows)
            table.add_column(column, justify="right" if figures else "left", no_wrap=i == 0)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for claim in claims:
        verdict = f"{VERDICTS[claim['held']]:8}"
        source = f"({claim['source']}) " if "source" in claim else ""
        console.print(f"{verdict} {source}{claim['claim']}", highlight=False, soft_wrap=True)
    console.print("The numbers behind each stand in the report.\n")


def add_settings(page: "Page", results: Json, versions: Mapping[str, str]) -> None:
    """End a page with what its numbers depend on."""
    page.heading("Settings")
    page.table(
        ["method", "settings"],
        [
            [name, ", ".join(f"{key}={value}" for key, value in given.items()) or "defaults"]
            for name, given in results["settings"].items()
        ],
    )
    page.paragraph("Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + ".")


def band_of(over_time: Mapping[str, Sequence[float]]) -> plots.Band:
    """Means with the bounds of their intervals, in per cent."""
    mean, low, high = (100 * np.array(over_time[name]) for name in ("mean", "low", "high"))
    return mean, low, high


def add_band(
    figure: "Interactive",
    panel: tuple[int, int],
    steps: Sequence[int],
    band: plots.Band,
    name: str,
    colour: str,
) -> None:
    """A line with its interval, in a row and column of an interactive figure."""
    from plotly.graph_objects import Scatter

    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    mean, low, high = map(finite, band)
    for bound, fill in ((high, None), (low, "tonexty")):
        edge = Scatter(
            x=steps,
            y=bound,
            line_width=0,
            fill=fill,
            fillcolor=f"rgba({red},{green},{blue},0.18)",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
        )
        figure.add_trace(edge, *panel)
    line = Scatter(
        x=steps, y=mean, name=name, line_color=colour, legendgroup=name, showlegend=False
    )
    figure.add_trace(line, *panel)


def finite(values: Floats) -> list[float | None]:
    """Numbers for JSON, with gaps where there are none."""
    return [None if np.isnan(value) else round(float(value), 6) for value in values]
