"""What people see of the review study: tables, a figure, a page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from metrack import plots
from metrack.checks import Ints
from metrack.experiments import report
from metrack.experiments.report import Cells, Json
from metrack.pages import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as Interactive

Picture = Mapping[str, NDArray[Any]]  # "learned" and "PCA" in two dimensions, and "labels"
Pictures = Mapping[str, Picture]  # by question
FEATURES = {"counts": "counts", "unit": "log1p"}
STATIC_TITLE = "k-NN error (%), each review left out in turn"
CHANGE_TITLE = "After a change: final k-NN error (%), pairs to within a point of it"
N_SHOWN = 3000  # points of a scatter plot: more hide one another
SIDES = (plots.COLOURS[0], plots.COLOURS[1])
CLASSES = {"type": ("books", "electronics"), "sentiment": ("negative", "positive")}
PUBLISHED = {  # the paper's k-NN errors: before, PCA-2, learned in 2 dimensions
    "type": (15.3, 20.4, 11.3),
    "sentiment": (35.7, 41.9, 23.5),
}


def print_results(results: Json, console: Console) -> None:
    """The tables and claims, for a terminal."""
    console.print(f"{results['n_reviews']:,} reviews, {results['n_words']:,} words\n")
    tables = {STATIC_TITLE: static_table(results), CHANGE_TITLE: change_table(results)}
    report.print_results(tables, results["claims"], console)


def static_table(results: Json) -> Cells:
    """Errors of the static embeddings."""
    columns = ["question", "rows", "method", "all", "2-D", "5-D"]
    columns += ["unseen 2-D", "5-D", "words", "≠ 0"]
    rows = []
    for row in results["static"]:
        density = row.get("nonzero_entries")
        rows.append(
            [
                row["question"],
                FEATURES[row["features"]],
                row["method"],
                *(_per_cent(row["error"].get(n)) for n in ("all", "2", "5")),
                *(_per_cent(row["held_out"].get(n)) for n in ("2", "5")),
                f"{row['words']:,}" if "words" in row else "",
                "" if density is None else f"{100 * density:.0f}%",
            ]
        )
    return columns, rows


def change_table(results: Json) -> Cells:
    """How soon each method recovered."""
    columns = ["change", "method", "final", "pairs to it", "to oracle's"]
    rows = [
        [
            change,
            name,
            _interval(method["final"], 100.0, 2),
            _interval(method["pairs_to_own_final"]),
            _interval(method["pairs_to_oracle_final"]),
        ]
        for change, each in results["changes"].items()
        for name, method in each["methods"].items()
    ]
    return columns, rows


def _per_cent(error: float | None) -> str:
    return "" if error is None else f"{100 * error:.2f}"


def _interval(found: Json, factor: float = 1.0, digits: int = 0) -> str:
    if found["mean"] is None:
        return f"not in all runs ({found['reached']})"
    mean, low, high = (factor * found[key] for key in ("mean", "low", "high"))
    return f"{mean:,.{digits}f} ± {(high - low) / 2:,.{digits}f}"


def draw(results: Json, pictures: Pictures) -> "Figure":
    """The embeddings above, the changes below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(11, 7), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.15])
        above, below = parts
        panels = iter(above.subplots(1, 4))
        for question, shown in pictures.items():
            for kind in ("learned", "PCA"):
                _scatter(next(panels), question, kind, shown, _error(results, question, kind))
        for axes, (change, each) in zip(
            below.subplots(1, 2, sharey=True), results["changes"].items(), strict=True
        ):
            _lines(axes, results["steps"], change, each["methods"])
    return figure


def _error(results: Json, question: str, kind: str) -> float:
    method = "PCA" if kind == "PCA" else "COMID"
    for row in results["static"]:
        if (row["question"], row["features"], row["method"]) == (question, "unit", method):
            return float(row["error"]["2"])
    raise KeyError(question)


def _shown(n_points: int) -> Ints:
    return np.random.default_rng(0).permutation(n_points)[:N_SHOWN]


def _scatter(axes: "Axes", question: str, kind: str, picture: Picture, error: float) -> None:
    shown = _shown(len(picture["labels"]))
    points, labels = picture[kind][shown], picture["labels"][shown]
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=3,
        c=[SIDES[label] for label in labels],
        alpha=0.5,
        linewidths=0,
        rasterized=True,
    )
    for name, colour in zip(CLASSES[question], SIDES, strict=True):
        axes.scatter([], [], s=12, c=colour, label=name)
    low, high = np.percentile(points, [0.5, 99.5], axis=0)
    margin = 0.08 * (high - low)
    axes.set(
        title=f"{question}, {kind}: {100 * error:.1f} %",
        xticks=[],
        yticks=[],
        xlim=(low[0] - margin[0], high[0] + margin[0]),
        ylim=(low[1] - margin[1], high[1] + margin[1]),
    )
    axes.legend(loc="upper right", fontsize=7, handletextpad=0.1, borderpad=0.1)


def _lines(axes: "Axes", steps: Sequence[int], change: str, methods: Json) -> None:
    for colour, (name, method) in zip(plots.COLOURS, methods.items(), strict=False):
        mean, low, high = report.band_of(method["error"])
        axes.plot(steps, mean, color=colour, linewidth=1.6, label=name)
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("symlog", linthresh=max(steps[1], 1))
    axes.set(
        title=change,
        xlabel="pairs after the change",
        ylabel="k-NN error in 5 dimensions (%)",
        xlim=(0, steps[-1]),
        ylim=(0, 1.3 * _top(methods)),
    )
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(loc="upper right")


def _top(methods: Json) -> float:
    """The largest error among those that know something: a learner at its start knows nothing."""
    return 100 * float(max(max(method["error"]["mean"][1:]) for method in methods.values()))


def page(results: Json, pictures: Pictures, versions: Mapping[str, str]) -> Page:
    """The report, interactive."""
    found = Page("Amazon reviews: two questions, and a change between them")
    static = results["n_pairs_static"]
    found.paragraph(
        f"{results['n_reviews']:,} reviews as counts of {results['n_words']:,} words. Learned from "
        f"pairs that say whether two reviews are alike: {static['comid']:,} for a static "
        f"embedding ({static['l1']:,} with L1), {results['n_pairs']:,} before a change and as many "
        f"after it. k-NN: {results['n_neighbors']} neighbours, each review left out in turn. "
        f"{results['n_runs']} runs of each change; shades and ± are 95 % intervals; seed "
        f"{results['seed']}."
    )
    found.heading("What held")
    found.table(
        ["claim", "held", "numbers"],
        [
            [claim["claim"], "yes" if claim["held"] else "no", claim["evidence"]]
            for claim in results["claims"]
        ],
    )
    _add_static(found, results, pictures)
    _add_changes(found, results)
    report.add_settings(found, results, versions)
    return found


def _add_static(found: Page, results: Json, pictures: Pictures) -> None:
    found.heading("Each question for itself")
    found.paragraph(
        "k-NN error (%) among the reviews as they are (all dimensions), in the first principal "
        "components, and in learned embeddings. Unseen: learned from pairs of one half of the "
        "reviews, judged on the other. log1p: log(1 + count), rows of length 1. ≠ 0: share of "
        "the learned metric's entries. The paper, on raw counts, prints before / PCA-2 / learned: "
        + "; ".join(
            f"{name} {before} / {pca} / {learned}"
            for name, (before, pca, learned) in PUBLISHED.items()
        )
        + "."
    )
    found.table(*static_table(results))
    found.figure(_scatters(pictures))


def _add_changes(found: Page, results: Json) -> None:
    found.heading("A question that changes")
    found.figure(_changes(results))
    found.paragraph(
        "Final error (%): the mean of the last four evaluations. Pairs to it: until the error is "
        "within one percentage point of a method's own final error, and of that of the oracle, the "
        "learner that is reinitialised at the change."
    )
    found.table(*change_table(results))
    found.heading("The words that matter")
    found.paragraph("The first two directions of SADL's metric, and the words on either side.")
    for change, each in results["changes"].items():
        rows = [
            [when, number + 1, ", ".join(sides["one"]), ", ".join(sides["other"])]
            for when, directions in each["words"].items()
            for number, sides in enumerate(directions)
        ]
        found.table(["", "direction", "one side", "other side"], rows, caption=change)


def _scatters(pictures: Pictures) -> "Interactive":
    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    kinds = ("learned", "PCA")
    titles = [f"{question}, {kind}" for question in pictures for kind in kinds]
    figure = make_subplots(2, 2, subplot_titles=titles, vertical_spacing=0.1)
    for row, (question, picture) in enumerate(pictures.items(), start=1):
        shown = _shown(len(picture["labels"]))
        for column, kind in enumerate(kinds, start=1):
            for label, name in enumerate(CLASSES[question]):
                points = picture[kind][shown][picture["labels"][shown] == label]
                figure.add_trace(
                    Scattergl(
                        x=points[:, 0].round(4).tolist(),
                        y=points[:, 1].round(4).tolist(),
                        mode="markers",
                        marker={"size": 3, "color": SIDES[label], "opacity": 0.5},
                        name=name,
                        legendgroup=name,
                        showlegend=column == 1,
                    ),
                    row,
                    column,
                )
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    figure.update_layout(height=800, template="plotly_white", margin={"t": 40, "b": 20})
    return figure


def _changes(results: Json) -> "Interactive":
    from plotly.subplots import make_subplots

    changes, steps = results["changes"], results["steps"]
    figure = make_subplots(1, len(changes), subplot_titles=list(changes), shared_yaxes=True)
    for column, each in enumerate(changes.values(), start=1):
        for colour, (name, method) in zip(plots.COLOURS, each["methods"].items(), strict=False):
            band = report.band_of(method["error"])
            report.add_band(figure, (1, column), steps, band, name, colour)
            figure.data[-1].showlegend = column == 1
    top = max(_top(each["methods"]) for each in changes.values())
    figure.update_yaxes(range=[0, 1.3 * top])
    figure.update_yaxes(title_text="k-NN error in 5 dimensions (%)", col=1)
    figure.update_xaxes(title_text="pairs after the change")
    figure.update_layout(
        height=480, template="plotly_white", hovermode="x unified", margin={"t": 40, "b": 40}
    )
    return figure
