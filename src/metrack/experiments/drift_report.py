"""What people see of the drift study: tables, the paper's three panels, a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from metrack import plots
from metrack.checks import Floats
from metrack.experiments.drift import REFERENCES, Study
from metrack.experiments.report import save_figure
from metrack.pages import Page

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MEASURES = {"knn_error": "k-NN error", "p_nmi": "P(NMI > 0.8)"}
DIGITS = {"knn_error": 1, "p_nmi": 0}  # of per cents: a terminal is narrow


def print_results(results: Mapping[str, Any], console: Console) -> None:
    """The tables and claims, for a terminal."""
    for measure, title in MEASURES.items():
        table = Table(
            title=f"{title} (%), mean over each segment",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            title_justify="left",
        )
        columns, rows = _by_segment(results, measure)
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=i == 0)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for claim in results["claims"]:
        verdict = "held    " if claim["held"] else "not held"
        words = f"{verdict} ({claim['source']}) {claim['claim']}"
        console.print(words, highlight=False, soft_wrap=True)
    console.print("The numbers behind each stand in the report.\n")


def draw(results: Mapping[str, Any], rates: Floats, out: Path) -> list[Path]:
    """``figure.png`` and ``figure.pdf``."""
    panels = {
        title: {name: _band(each[measure]) for name, each in results["methods"].items()}
        for measure, title in MEASURES.items()
    }
    steps = np.array(results["steps"])
    return save_figure(plots.tracking(rates, steps, panels, REFERENCES, _marks(results)), out)


def page(results: Mapping[str, Any], rates: Floats, versions: Mapping[str, str]) -> Page:
    """The report, interactive."""
    found = Page("Tracking a drifting metric")
    found.paragraph(
        f"{results['n_trials']:,} trials of {results['n_pairs']:,} judged pairs each, seed "
        f"{results['seed']}. Shades and brackets are {100 * results['confidence']:g} % intervals. "
        "k-NN: 5 neighbours, 500 points of 2,000, each left out in turn. Click on a name to hide "
        "or show it."
    )
    found.figure(_interactive(results, rates))
    found.heading("What held")
    found.table(
        ["claim", "of", "held", "numbers"],
        [
            [each["claim"], each["source"], "yes" if each["held"] else "no", each["evidence"]]
            for each in results["claims"]
        ],
    )
    for measure, title in MEASURES.items():
        columns, rows = _by_segment(results, measure)
        found.heading(f"{title} (%)")
        found.table(columns, rows)
    found.heading("Recovery")
    found.paragraph(
        "Pairs from a switch until the k-NN error is half way from that of the raw points to that "
        "of the true metric: median over trials, its interval, and the share of trials that came "
        "there before the next switch."
    )
    found.table(*_recovery_table(results))
    found.heading("Settings")
    found.table(
        ["method", "settings"],
        [[name, _settings(given)] for name, given in results["settings"].items()],
    )
    found.paragraph("Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + ".")
    return found


def _settings(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items()) or "defaults"


def _by_segment(results: Mapping[str, Any], measure: str) -> tuple[list[str], list[list[str]]]:
    columns = ["method", *(part["name"] for part in results["segments"]), "all"]
    rows = [
        [
            name,
            *(_cell(part[measure], DIGITS[measure]) for part in (*each["segments"], each["whole"])),
        ]
        for name, each in results["methods"].items()
    ]
    return columns, rows


def _cell(interval: Mapping[str, float], digits: int) -> str:
    half = 50 * (interval["high"] - interval["low"])
    return f"{100 * interval['mean']:.{digits}f}±{half:.{digits}f}"


def _recovery_table(results: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    learners = {k: v for k, v in results["methods"].items() if k not in REFERENCES}
    at = [each["switch"] for each in next(iter(learners.values()))["recovery"]]
    columns = ["method", *(f"switch at {step:,}" for step in at)]
    rows = [
        [name, *(_recovery_cell(part) for part in each["recovery"])]
        for name, each in learners.items()
    ]
    return columns, rows


def _recovery_cell(part: Mapping[str, Any]) -> str:
    words = ["never" if part[k] is None else f"{part[k]:.0f}" for k in ("median", "low", "high")]
    return f"{words[0]} [{words[1]}, {words[2]}], {100 * part['recovered']:.0f} %"


def _band(over_time: Mapping[str, Sequence[float]]) -> plots.Band:
    mean, low, high = (np.array(over_time[name]) for name in ("mean", "low", "high"))
    return mean, low, high


def _marks(results: Mapping[str, Any]) -> list[tuple[int, str]]:
    return [(part["start"], part["name"]) for part in results["segments"]]


def _interactive(results: Mapping[str, Any], rates: Floats) -> "Figure":
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    titles = ("Change of the true metric per pair", *(f"{t} (%)" for t in MEASURES.values()))
    figure = make_subplots(
        3,
        1,
        shared_xaxes=True,
        subplot_titles=titles,
        row_heights=[0.2, 0.4, 0.4],
        vertical_spacing=0.06,
    )
    # Every tenth step is enough to see, and keeps the page small.
    shown = np.arange(0, len(rates), 10)
    usual = np.where(rates > 4 * np.median(rates[rates > 0]), np.nan, rates)[shown]
    figure.add_trace(
        Scatter(
            x=shown.tolist(),
            y=_plain(usual),
            line_color=plots.GREY,
            line_width=1,
            showlegend=False,
            name="rate",
        ),
        1,
        1,
    )
    colours = iter(plots.COLOURS * 9)
    for name, each in results["methods"].items():
        reference = name in REFERENCES
        colour = plots.GREY if reference else next(colours)
        for row, measure in enumerate(MEASURES, start=2):
            mean, low, high = _band(each[measure])
            common = {"legendgroup": name, "x": results["steps"]}
            if not reference:
                for bound, fill in ((high, None), (low, "tonexty")):
                    figure.add_trace(
                        Scatter(
                            y=_plain(100 * bound),
                            line_width=0,
                            fill=fill,
                            hoverinfo="skip",
                            fillcolor=_faint(colour),
                            showlegend=False,
                            **common,
                        ),
                        row,
                        1,
                    )
            dash = ("dash" if name == "raw" else "dot") if reference else "solid"
            figure.add_trace(
                Scatter(
                    y=_plain(100 * mean),
                    name=name,
                    line_color=colour,
                    line_dash=dash,
                    showlegend=row == 2,
                    **common,
                ),
                row,
                1,
            )
    figure.layout.annotations[0].yshift = 16  # the first title; segments' names stand below it
    for start, name in _marks(results):
        figure.add_vline(x=start, line_width=0.7, line_color="#999999")
        figure.add_annotation(
            x=start,
            y=1.0,
            yref="y domain",
            text=name,
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font_size=11,
        )
    figure.update_layout(
        height=900,
        margin={"l": 50, "r": 20, "t": 60, "b": 40},
        template="plotly_white",
        hovermode="x unified",
    )
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(title_text="pairs seen", row=3, col=1)
    return figure


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def rates_of(study: Study) -> Floats:
    """Change of the true metric at each step, in the first trial; others hardly differ."""
    return study.stream(0).rate_of_change()
