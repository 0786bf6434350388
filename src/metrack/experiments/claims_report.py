"""What people see of the map of claims: where each holds, by how much, and who is best."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from metrack import plots
from metrack.experiments import report
from metrack.experiments.report import Cells, Json
from metrack.experiments.verdicts import MEASURES
from metrack.pages import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as Interactive

COLUMNS = 4  # of panels
ACROSS, DOWN = "drift per pair (moderate)", "pairs of a segment of B"


def print_results(results: Json, console: Console) -> None:
    """In how many cells each claim held, for a terminal."""
    report.print_results({"Cells of the map": _counts(results)}, [], console)


def draw(results: Json) -> "Figure":
    """A map for each claim, and one of the best method's value for each measure."""
    return plots.maps(_panels(results), *_axes(results), COLUMNS)


def page(results: Json, versions: Mapping[str, str]) -> Page:
    """The report, interactive."""
    found = Page("Where the claims hold")
    found.paragraph(
        f"The paper's schedule at {len(results['cells'])} combinations of length and drift, "
        f"{results['n_trials']} trials each, seed {results['seed']}. Numbers are leads in "
        "percentage points, trial by trial; a question mark: their "
        f"{100 * results['confidence']:g} % interval has 0 in it. Blue: the claim "
        "holds; red: it does not."
    )
    found.figure(_interactive(results))
    found.heading("In how many cells")
    found.table(*_counts(results))
    found.heading("By cell")
    names = results["methods"]
    for measure, title in MEASURES.items():
        rows = [
            [
                f"{cell['segment']:,}",
                f"{cell['drift']:g}",
                *(f"{100 * cell['methods'][name][measure]['mean']:.2f}" for name in names),
            ]
            for cell in results["cells"]
        ]
        found.table([DOWN, ACROSS, *names], rows, caption=f"{title} (%)")
    found.paragraph("Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + ".")
    return found


def _counts(results: Json) -> Cells:
    cells = results["cells"]
    rows = []
    for i, claim in enumerate(cells[0]["claims"]):
        verdicts = [cell["claims"][i]["held"] for cell in cells]
        counts = [str(verdicts.count(verdict)) for verdict in report.VERDICTS]
        rows.append([claim["name"], *counts])
    return ["claim", *report.VERDICTS.values()], rows


def _axes(results: Json) -> tuple[tuple[str, list[str]], tuple[str, list[str]]]:
    drifts = list(dict.fromkeys(f"{cell['drift']:g}" for cell in results["cells"]))
    lengths = list(dict.fromkeys(f"{cell['segment']:,}" for cell in results["cells"]))
    return (ACROSS, drifts), (DOWN, lengths)


def _panels(results: Json) -> list[plots.Map]:
    cells, (_, (_, lengths)) = results["cells"], _axes(results)
    panels = []
    for i, claim in enumerate(cells[0]["claims"]):
        found = [cell["claims"][i] for cell in cells]
        values = [100 * each["margin"]["mean"] for each in found]
        texts = [
            f"{value:+.1f}" + ("?" if each["held"] is None else "")
            for value, each in zip(values, found, strict=True)
        ]
        panels.append((claim["name"], values, texts, True))
    for measure, title in MEASURES.items():
        best = [cell["best"][measure] for cell in cells]
        values = [
            100 * cell["methods"][name][measure]["mean"]
            for cell, name in zip(cells, best, strict=True)
        ]
        texts = [f"{value:.1f}\n{name}" for value, name in zip(values, best, strict=True)]
        panels.append((f"best {title} (%)", values, texts, False))
    return [
        plots.Map(
            title,
            np.reshape(values, (len(lengths), -1)),
            np.reshape(texts, (len(lengths), -1)).tolist(),
            signed,
        )
        for title, values, texts, signed in panels
    ]


def _interactive(results: Json) -> "Interactive":
    from plotly.graph_objects import Heatmap
    from plotly.subplots import make_subplots

    panels, ((across, drifts), (down, lengths)) = _panels(results), _axes(results)
    n_rows = -(-len(panels) // COLUMNS)
    figure = make_subplots(n_rows, COLUMNS, subplot_titles=[panel.title for panel in panels])
    for i, panel in enumerate(panels):
        most = float(np.abs(panel.values).max()) or 1.0
        colours = {"colorscale": "RdBu", "zmid": 0.0, "zmin": -most, "zmax": most}
        heat = Heatmap(
            x=drifts,
            y=lengths,
            z=panel.values.tolist(),
            text=[[text.replace("\n", "<br>") for text in row] for row in panel.texts],
            texttemplate="%{text}",
            showscale=False,
            **(colours if panel.signed else {"colorscale": "Blues", "zmin": 0.0}),
        )
        figure.add_trace(heat, i // COLUMNS + 1, i % COLUMNS + 1)
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="category")
    for i in range(COLUMNS):
        figure.update_xaxes(title_text=across, row=n_rows, col=i + 1)
    for row in range(n_rows):
        figure.update_yaxes(title_text=down, row=row + 1, col=1)
    figure.update_layout(height=330 * n_rows, template="plotly_white", font_size=11)
    return figure
