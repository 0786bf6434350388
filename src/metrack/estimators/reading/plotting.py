"""Pictures of a tracker: axes of matplotlib in, the same axes out.

Matplotlib is of the ``plots`` extra, and imported only when something is drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metrack.checks import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by all eyes; grey is for what is not a contestant.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
GREY = "#555555"
MOST_NAMED = 12  # kinds of points in a legend


def check_available() -> None:
    """Raise an ImportError that says what to install, unless figures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'metrack[plots]'") from None


def axes(given: "Axes | None") -> "Axes":
    """Given ones, or those of a new figure."""
    check_available()
    if given is not None:
        return given
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def flat(points: Floats) -> Floats:
    """Points in the two directions in which they are spread most."""
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred.T @ centred, hermitian=True)
    found = centred @ directions[:2].T
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def loss(ax: "Axes", ends: Floats, losses: Floats, changes: Floats) -> "Axes":
    """Draw a curve of losses, and changes that were noticed."""
    ax.plot(ends, losses, color=COLOURS[0], linewidth=1.5)
    for at in changes:
        ax.axvline(at, color=GREY, linewidth=0.8, linestyle="--")
    ax.set(xlabel="pairs learned", ylabel="mean loss", ylim=(0.0, None))
    return ax


def trust(ax: "Axes", ends: Floats, shares: Floats, names: Sequence[str]) -> "Axes":
    """Draw shares of the trust, one above the other, from short memories to long ones."""
    from matplotlib import colormaps

    used = np.flatnonzero(shares.max(axis=0) > 0.0).tolist()
    colours = colormaps["viridis_r"](np.linspace(0.05, 1.0, len(names)))
    ax.stackplot(
        ends, shares[:, used].T, colors=colours[used], labels=[names[i] for i in used], step="pre"
    )
    ax.set(xlabel="pairs learned", ylabel="share of the trust", ylim=(0.0, 1.0))
    ax.set_xlim(ends[0] if len(ends) > 1 else 0.0, ends[-1])
    ax.legend(title="memory", fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def drift(ax: "Axes", changes: Sequence[tuple[Any, float]], window: float) -> "Axes":
    """Draw changes of features' shares as bars, the largest on top."""
    names = [str(name) for name, _ in changes]
    grown = np.array([change for _, change in changes])
    colours = [COLOURS[0] if each >= 0.0 else COLOURS[1] for each in grown]
    ax.barh(range(len(names)), 100.0 * grown, color=colours)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set(xlabel="share of the metric (points of a hundred)")
    ax.set_title(f"rests on the latest {window:,.0f} pairs")
    return ax


def scatter(ax: "Axes", points: Floats, kinds: Any) -> "Axes":
    """Draw points, in colours of their kinds; many kinds of numbers as a scale."""
    found = np.empty(0) if kinds is None else np.unique(kinds)
    size = float(np.clip(4000.0 / max(len(points), 1), 4.0, 30.0))
    across, up = points.T
    if len(found) > MOST_NAMED:
        numbers = np.searchsorted(found, kinds)
        ax.scatter(across, up, c=numbers, cmap="viridis", s=size, linewidths=0)
    elif kinds is None:
        ax.scatter(across, up, color=COLOURS[0], s=size, linewidths=0)
    else:
        from matplotlib import colormaps

        colours = COLOURS if len(found) <= len(COLOURS) else colormaps["Paired"].colors  # type: ignore[attr-defined]
        for kind, colour in zip(found, colours, strict=False):
            of = kinds == kind
            ax.scatter(across[of], up[of], color=colour, s=size, linewidths=0, label=kind)
        ax.legend(fontsize="small", markerscale=1.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.set(xticks=[], yticks=[], aspect="equal")
    return ax
