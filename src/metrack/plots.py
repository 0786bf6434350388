"""Figures from arrays. Needs the ``plots`` extra, and imports it only when a figure is drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = Sequence[tuple[int, str]]

# Okabe and Ito's colours, told apart by all eyes; grey is for what is not a contestant.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#555555"
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "color": "black"}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def check_available() -> None:
    """Raise an ImportError that says what to install, unless figures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'metrack[plots]'") from None


def tracking(
    path: Path,
    rates: Floats,
    steps: Ints,
    errors: Mapping[str, Floats],
    references: Mapping[str, Floats],
    marks: Marks,
) -> None:
    """Draw how fast the true metric changed, and how well each method kept up, and save it.

    Parameters
    ----------
    path : Path
        File to write; its ending decides the format.
    rates : array (n_steps,)
        Change of the true metric at each step.
    steps : array (n_evaluations,)
        When the methods were evaluated.
    errors : mapping from a method's name to an array (n_evaluations,)
    references : the same, for what does not learn
        Drawn in grey.
    marks : sequence of (step, name)
        Where segments start.
    """
    check_available()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 5), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1, 2.4])
        _draw_rates(top, bottom, rates, marks)
        _draw_errors(bottom, steps, errors, references)
        for axes in (top, bottom):
            _shade_segments(axes, marks, len(rates))
        _name_segments(top, marks, len(rates))
        _add_legend(figure, bottom)
        figure.savefig(path, dpi=160)


def _draw_rates(top: "Axes", bottom: "Axes", rates: Floats, marks: Marks) -> None:
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
        bottom.axvline(step, color="black", linewidth=0.8)
    top.set(ylim=(0, height), ylabel="change of the\ntrue metric per pair")


def _draw_errors(
    axes: "Axes", steps: Ints, errors: Mapping[str, Floats], references: Mapping[str, Floats]
) -> None:
    for (name, values), dash in zip(references.items(), ("--", ":", "-."), strict=False):
        axes.plot(steps, 100 * values, dash, color=GREY, linewidth=1.2, label=name)
    for i, (name, values) in enumerate(errors.items()):
        axes.plot(steps, 100 * values, color=COLOURS[i % len(COLOURS)], linewidth=1.8, label=name)
    axes.set(xlabel="pairs seen", ylabel="k-NN error (%)", ylim=(0, None))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


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


def _add_legend(figure: "Figure", axes: "Axes") -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4))
