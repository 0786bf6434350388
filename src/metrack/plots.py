"""Figures from arrays. Needs the ``plots`` extra, and imports it only when a figure is drawn."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metrack.checks import Floats, Ints
from metrack.estimators.reading.plotting import COLOURS as COLOURS
from metrack.estimators.reading.plotting import GREY as GREY
from metrack.estimators.reading.plotting import check_available as check_available

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Marks = Sequence[tuple[int, str]]
Band = tuple[Floats, Floats, Floats]  # mean, low, high

SHADE, PALER = 0.2, 3.0  # of an interval: its opacity, less where all cover a third of a panel
NAME_HEIGHT = 0.075  # of a panel: the room that a name takes
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "color": "black"}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


class Map(NamedTuple):
    """A value for each combination of two things.

    Attributes
    ----------
    title : str
    values : array (n_rows, n_columns)
    texts : list of lists of str
        What is written in each cell.
    signed : bool
        Whether the sign is what matters.
    """

    title: str
    values: Floats
    texts: list[list[str]]
    signed: bool


def tracking(
    rates: Floats,
    steps: Ints,
    panels: Mapping[str, Mapping[str, Band]],
    references: Sequence[str],
    marks: Marks,
    logarithmic: Sequence[str] = (),
) -> "Figure":
    """Draw how fast the true metric changed and, below, how well each method kept up.

    Parameters
    ----------
    rates : array (n_steps,)
        Change of the true metric at each step.
    steps : array (n_evaluations,)
        When the methods were evaluated.
    panels : mapping from a measure to a mapping from a method's name to (mean, low, high)
        Arrays (n_evaluations,) each; a panel for each measure, in per cent. The first method that
        is no reference is drawn on top.
    references : sequence of str
        Methods that do not learn: drawn in grey, without an interval.
    marks : sequence of (step, name)
        Where segments start.
    logarithmic : sequence of str
        Measures with a logarithmic axis.
    """
    check_available()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 2.0 + 2.8 * len(panels)), layout="constrained")
        top, *rest = figure.subplots(
            1 + len(panels), 1, sharex=True, height_ratios=[1] + [2.6] * len(panels)
        )
        _draw_rates(top, rest, rates, marks)
        for axes, (measure, methods) in zip(rest, panels.items(), strict=True):
            _draw_measure(axes, steps, methods, references, measure in logarithmic)
            axes.set(ylabel=f"{measure} (%)")
        rest[-1].set(xlabel="pairs seen")
        for axes in (top, *rest):
            _shade_segments(axes, marks, len(rates))
        _name_segments(top, marks, len(rates))
    return figure


def _draw_rates(top: "Axes", rest: Sequence["Axes"], rates: Floats, marks: Marks) -> None:
    """The rate of drift; steps at which everything changes leave the panel, as an arrow says."""
    starts = [start for start, _ in marks]
    height = 1.6 * float(np.delete(rates, starts).max(initial=0.0)) or 1.0
    jumps = [start for start in starts if rates[start] > height]
    shown = rates.copy()
    shown[jumps] = np.nan
    top.plot(shown, color=GREY, linewidth=0.7)
    for step in jumps:
        top.annotate("", (step, height), (step, 0), arrowprops=ARROW)
        top.text(step, 0.96 * height, f"  switch: {rates[step]:.2f}", va="top", fontsize=8)
        for axes in rest:
            axes.axvline(step, color="black", linewidth=0.8)
    top.set(ylim=(0, height), ylabel="change of the\ntrue metric per pair")


def _draw_measure(
    axes: "Axes",
    steps: Ints,
    methods: Mapping[str, Band],
    references: Sequence[str],
    logarithmic: bool,
) -> None:
    dashes, colours = iter(("--", ":", "-.")), iter(COLOURS * 9)
    learners = [name for name in methods if name not in references]
    shade = _shade([methods[name] for name in learners])
    for name, (mean, low, high) in methods.items():
        if name in references:
            axes.plot(steps, 100 * mean, next(dashes), color=GREY, linewidth=1.2, label=name)
            continue
        first, behind = name == learners[0], learners.index(name) / len(learners)
        colour, width = next(colours), 2.6 if first else 1.4
        axes.plot(steps, 100 * mean, color=colour, linewidth=width, label=name, zorder=3.0 - behind)
        axes.fill_between(steps, 100 * low, 100 * high, color=colour, alpha=shade, linewidth=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    if logarithmic:
        means = 100 * np.concatenate([mean for mean, _, _ in methods.values()])
        shown = means[means > 0.0]
        axes.set(yscale="log", ylim=(0.7 * shown.min(initial=100.0), 1.4 * shown.max(initial=0.1)))
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set(ylim=(0, None))
    _name_lines(axes)


def _name_lines(axes: "Axes") -> None:
    """Write names at the ends of lines, moved apart where they would cover each other."""
    to_height = axes.transData + axes.transAxes.inverted()
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    ends = np.array([np.asarray(line.get_xydata())[-1] for line in lines])
    heights = to_height.transform(ends)[:, 1]
    order = np.lexsort((-np.arange(len(lines)), heights))  # of equal ones the first on top
    free = -np.inf
    for i in order:
        heights[i] = free = max(free + NAME_HEIGHT, heights[i])
    most = 1.0 + NAME_HEIGHT  # a little above the axes is room
    for i in order[::-1]:
        heights[i] = most = min(heights[i], most - NAME_HEIGHT)
    for line, height in zip(lines, heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            (1.01, height),
            xycoords="axes fraction",
            va="center",
            color=line.get_color(),
            weight="bold" if line.get_linewidth() > 2.0 else "normal",
            annotation_clip=False,
        )


def _shade(bands: Sequence[Band]) -> float:
    """How dark intervals are: the paler, the more often they would cover the panel together.

    Of few trials they are wide, and lines could not be told from the shades.
    """
    height = max((float(np.nanmax(high)) for _, _, high in bands), default=0.0)
    covered = sum(float(np.nanmedian(high - low)) for _, low, high in bands)
    return SHADE / max(1.0, PALER * covered / height) if height > 0.0 else SHADE


def _shade_segments(axes: "Axes", marks: Marks, end: int) -> None:
    axes.set_xlim(0, end)
    for i, (start, _) in enumerate(marks):
        stop = marks[i + 1][0] if i + 1 < len(marks) else end
        if i % 2:
            axes.axvspan(start, stop, color="#f2f2f2", zorder=0, linewidth=0)


def _name_segments(axes: "Axes", marks: Marks, end: int) -> None:
    stops = [*(start for start, _ in marks[1:]), end]
    for (start, name), stop in zip(marks, stops, strict=True):
        middle = (start + stop) / 2
        axes.text(
            middle, 1.03, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom"
        )


def maps(
    panels: Sequence[Map],
    across: tuple[str, Sequence[str]],
    down: tuple[str, Sequence[str]],
    n_columns: int,
) -> "Figure":
    """Draw maps over the same two things, side by side.

    Parameters
    ----------
    panels : sequence of Map
    across, down : (name, labels)
        What columns and rows of the maps are.
    n_columns : int
        Panels in a row.
    """
    check_available()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    n_rows = -(-len(panels) // n_columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.8 * n_columns, 2.5 * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
        for ax in axes.flat[len(panels) :]:
            ax.axis("off")
        for ax, panel in zip(axes.flat, panels, strict=False):
            _draw_map(ax, panel)
            ax.set_xticks(range(len(across[1])), across[1])
            ax.set_yticks(range(len(down[1])), down[1])
        figure.supxlabel(across[0])
        figure.supylabel(down[0])
    return figure


def _draw_map(axes: "Axes", panel: Map) -> None:
    most = float(np.abs(panel.values).max()) or 1.0
    colours, least = ("RdBu", -1.4 * most) if panel.signed else ("Blues", 0.0)
    axes.imshow(
        panel.values, cmap=colours, vmin=least, vmax=1.4 * most, aspect="auto", origin="lower"
    )
    for row, texts in enumerate(panel.texts):
        for column, text in enumerate(texts):
            axes.text(column, row, text, ha="center", va="center", fontsize=7)
    axes.set_title(panel.title, fontsize=9)
