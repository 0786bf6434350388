"""What people see of the drift study: tables, the paper's three panels, a page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from metrack import plots
from metrack.checks import Floats
from metrack.experiments import report
from metrack.experiments.drift import REFERENCES, Study
from metrack.experiments.report import Cells, Json
from metrack.pages import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as Interactive

MEASURES = {"knn_error": "k-NN error", "p_nmi": "P(NMI > 0.8)"}
DIGITS = {"knn_error": 1, "p_nmi": 0}  # of per cents: a terminal is narrow


def print_results(results: Json, console: Console) -> None:
    """The tables and claims, for a terminal."""
    tables = {
        f"{title} (%), mean over each segment": _by_segment(results, measure)
        for measure, title in MEASURES.items()
    }
    report.print_results(tables, results["claims"], console)


def draw(results: Json, rates: Floats) -> "Figure":
    """The paper's three panels."""
    panels = {
        title: {name: _band(each[measure]) for name, each in results["methods"].items()}
        for measure, title in MEASURES.items()
    }
    steps = np.array(results["steps"])
    errors = [MEASURES["knn_error"]]
    return plots.tracking(rates, steps, panels, REFERENCES, _marks(results), errors)


def page(results: Json, rates: Floats, versions: Mapping[str, str]) -> Page:
    """The report, interactive."""
    found = Page("Tracking a drifting metric")
    found.paragraph(
        f"{results['n_trials']:,} trials of {results['n_pairs']:,} judged pairs each, the "
        f"{results['schedule']} schedule, seed {results['seed']}. Shades and brackets are "
        f"{100 * results['confidence']:g} % intervals. "
        "k-NN: 5 neighbours, 500 points of 2,000, each left out in turn. Each measure is of the "
        "settings that were chosen by it. Click on a name to hide or show it."
    )
    found.figure(_interactive(results, rates))
    found.heading("What held")
    found.paragraph(
        "Each claim is a lead over the best of the others, trial by trial. It held where the "
        "interval of its mean lies above 0, it did not where it lies below; else it is open."
    )
    found.table(
        ["claim", "of", "verdict", "numbers"],
        [
            [each["claim"], each["source"], report.VERDICTS[each["held"]], each["evidence"]]
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
    settings = {name: _said_once(choice) for name, choice in results["settings"].items()}
    report.add_settings(found, results | {"settings": settings}, versions)
    return found


def _said_once(choice: Json) -> Json:
    """Settings by the measure they were chosen by; where they are the same, only once."""
    first, *others = choice.values()
    if all(each == first for each in others):
        return dict(first)
    return {
        f"{key} (by {measure})": value
        for measure, given in choice.items()
        for key, value in given.items()
    }


def _by_segment(results: Json, measure: str) -> Cells:
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


def _recovery_table(results: Json) -> Cells:
    learners = {k: v for k, v in results["methods"].items() if k not in REFERENCES}
    at = [each["switch"] for each in next(iter(learners.values()))["recovery"]]
    columns = ["method", *(f"switch at {step:,}" for step in at)]
    rows = [
        [name, *(_recovery_cell(part) for part in each["recovery"])]
        for name, each in learners.items()
    ]
    return columns, rows


def _recovery_cell(part: Json) -> str:
    words = ["never" if part[k] is None else f"{part[k]:.0f}" for k in ("median", "low", "high")]
    return f"{words[0]} [{words[1]}, {words[2]}], {100 * part['recovered']:.0f} %"


def _band(over_time: Mapping[str, Sequence[float]]) -> plots.Band:
    mean, low, high = (np.array(over_time[name]) for name in ("mean", "low", "high"))
    return mean, low, high


def _marks(results: Json) -> list[tuple[int, str]]:
    return [(part["start"], part["name"]) for part in results["segments"]]


def _interactive(results: Json, rates: Floats) -> "Interactive":
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
    _add_rates(figure, rates)
    for row, measure in enumerate(MEASURES, start=2):
        _add_methods(figure, row, results, measure)
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


def _add_rates(figure: "Interactive", rates: Floats) -> None:
    from plotly.graph_objects import Scatter

    # Some hundred steps are enough to see, and keep the page small.
    shown = np.arange(0, len(rates), max(len(rates) // 600, 1))
    usual = np.where(rates > 4 * np.median(rates[rates > 0]), np.nan, rates)[shown]
    line = Scatter(
        x=shown.tolist(),
        y=report.finite(usual),
        line_color=plots.GREY,
        line_width=1,
        showlegend=False,
        name="rate",
    )
    figure.add_trace(line, 1, 1)


def _add_methods(figure: "Interactive", row: int, results: Json, measure: str) -> None:
    """Methods in colours with their intervals; references as grey lines."""
    from plotly.graph_objects import Scatter

    steps, colours = results["steps"], iter(plots.COLOURS * 9)
    for name, each in results["methods"].items():
        band = report.band_of(each[measure])
        if name not in REFERENCES:
            report.add_band(figure, (row, 1), steps, band, name, next(colours))
        else:
            line = Scatter(
                x=steps,
                y=report.finite(band[0]),
                name=name,
                line_color=plots.GREY,
                line_dash="dash" if name == "raw" else "dot",
                legendgroup=name,
                showlegend=False,
            )
            figure.add_trace(line, row, 1)
        figure.data[-1].showlegend = row == 2


def rates_of(study: Study) -> Floats:
    """Change of the true metric at each step, in the first trial; others hardly differ."""
    return study.stream(0).rate_of_change()
