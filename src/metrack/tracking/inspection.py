"""What a state tells: for the terminal as tables, and as a page with figures."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metrack.checks import Floats
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.weighed import Expert, WeighedLearner
from metrack.estimators.kernel_tracker import KernelTracker
from metrack.estimators.resolved.record import rows as rows_of
from metrack.pages import Page, figure_text
from metrack.tracking.history import History, last_change, shares_of
from metrack.tracking.state import Tracking

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


N_FEATURES = 12  # that gained or lost most ...
LEAST_CHANGE = 0.01  # ... and so much of the metric: less is no news of a feature
MOST = 0.9  # of the metric: the directions that hold it are those that matter
N_NAMED = 40  # bars that each have room for a name
N_LANDMARKS, N_UNUSUAL = 10, 3  # that are shown; features of each that are named
N_SMOOTHED = 9  # blocks whose median window is shown
N_POINTS = 2000  # of an embedding plot
BLUE, ORANGE, PALE = "#0072B2", "#D55E00", "#9ec7e0"


class Section(NamedTuple):
    """A table of what a state tells, and a line below it; either may be empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Change(NamedTuple):
    """Features' shares of the metric, now and before."""

    since: str
    before: Floats
    now: Floats


def sections(path: Path, tracking: Tracking) -> list[Section]:
    """Everything there is to say in words and numbers."""
    found = [Section(f"State {path}", ["", ""], list(_summary(tracking)))]
    learner = tracking.learner
    if isinstance(learner, WeighedLearner):
        trust = [
            (_kind(each), _pairs(each.memory), f"{each.learning_rate:.3g}", f"{each.weight:.3f}")
            for each in learner.experts_
        ]
        columns = ["learners", "last pairs", "rate", "weight"]
        found.append(Section("Trust in experts", columns, trust))
    found.append(Section("Settings in use", ["", ""], rows_of(learner.resolved_)))
    if isinstance(learner, KernelTracker):
        found.append(_landmarks(learner, feature_names(tracking)))
    else:
        found.append(_features(tracking))
    return found


def _kind(expert: Expert) -> str:
    """And its space, where that is not the points' own."""
    return expert.kind if expert.space == "linear" else f"{expert.kind}, {expert.space}"


def _landmarks(learner: KernelTracker, names: Sequence[str]) -> Section:
    """The points that the metric tells most from others."""
    points = learner.landmarks_
    spread, middle = points.std(axis=0) if len(points) else 1.0, np.median(points, axis=0)
    rows = []
    for point, share in learner.top_landmarks(N_LANDMARKS):
        apart = (point - middle) / np.where(spread > 0.0, spread, 1.0)
        order = np.argsort(-np.abs(apart), kind="stable")[:N_UNUSUAL]
        unusual = ", ".join(f"{names[i]} {point[i]:.4g}" for i in order)
        rows.append((unusual, f"{share:.1%}"))
    note = f"{len(points):,} landmarks tell points apart; the share is of their spread."
    title = "Landmarks that matter"
    return Section(title, ["its most unusual features", "share"], rows, note)


def _pairs(memory: float) -> str:
    return f"{memory:,.0f}" if np.isfinite(memory) else "all"


def _names(experts: Sequence[Expert]) -> list[str]:
    """Memory lengths; where there are several kinds, also kinds and rates."""
    if len({each.kind for each in experts}) == 1:
        return [_pairs(each.memory) for each in experts]
    return [f"{_kind(each)} {_pairs(each.memory)}, {each.learning_rate:.3g}" for each in experts]


def _features(tracking: Tracking) -> Section:
    change, names = feature_change(tracking), feature_names(tracking)
    gained = change.now - change.before
    order = np.argsort(-np.abs(gained), kind="stable")[:N_FEATURES]
    rows = [
        (names[i], f"{change.before[i]:.1%}", f"{change.now[i]:.1%}", f"{gained[i]:+.1%}")
        for i in order
        if abs(gained[i]) >= LEAST_CHANGE
    ]
    moved = f"In all, {0.5 * np.abs(gained).sum():.1%} of the metric moved between features"
    note = f"{moved}." if rows else f"{moved}, none of which gained or lost {LEAST_CHANGE:.0%}."
    title = f"Features that gained or lost {change.since}"
    return Section(title, ["feature", "share then", "now", "change"], rows, note)


def _summary(tracking: Tracking) -> Iterable[tuple[str, str]]:
    learner, history = tracking.learner, tracking.history
    yield "learner", _described(learner)
    yield "pairs learned", f"{learner.n_pairs_seen_:,}"
    yield "bad rows", f"{tracking.bad_rows:,}"
    yield "features", f"{learner.n_features_in_:,}"
    matter = directions_that_matter(spectrum(learner))
    yield "directions that matter", f"{matter:,} hold {MOST:.0%} of the metric"
    if isinstance(learner, KernelTracker):
        for space, weight in trusted_spaces(learner):
            yield f"trust in {space}", f"{weight:.1%}"
    else:
        yield "rank of the metric", f"{learner.rank_:,}"
    yield "threshold on the distance", f"{learner.threshold_:.4g}"
    if history is not None:
        yield "loss of late", f"{history.latest():.4g}"
    changed = last_change(tracking.learner)
    if changed is not None:
        yield "last change noticed", f"at pair {changed:,}" if changed else "none"
    if tracking.checkpoint is not None:
        yield (
            "source",
            f"{tracking.checkpoint['file']}, {tracking.checkpoint['lines']:,} lines read",
        )


def _described(learner: OnlineLearner) -> str:
    default = type(learner)().get_params()
    given = [
        f"{name}={value!r}"
        for name, value in learner.get_params().items()
        if name != "preprocessor" and value != default[name]
    ]
    return f"{type(learner).__name__}({', '.join(given)})"


def spectrum(learner: OnlineLearner) -> Floats:
    """Eigenvalues of the metric, the largest first; of a kernel's, the landmarks' spread."""
    if isinstance(learner, KernelTracker):
        embedded = learner.transform(learner.landmarks_)
        singular = np.linalg.svd(embedded - embedded.mean(axis=0), compute_uv=False)
        return singular[: learner.landmarks_.shape[0]] ** 2
    values: Floats = np.einsum("ij,ij->i", learner.components_, learner.components_)
    return np.sort(values)[::-1]


def trusted_spaces(learner: KernelTracker) -> list[tuple[str, float]]:
    """Weight of the experts of each space: the points' own, and a kernel's."""
    found: dict[str, float] = {}
    for each in learner.experts_:
        found[each.space] = found.get(each.space, 0.0) + each.weight
    return list(found.items())


def directions_that_matter(values: Floats) -> int:
    """How many of the largest eigenvalues make up most of their sum."""
    total = np.cumsum(values)
    return int(np.searchsorted(total, MOST * total[-1])) + 1 if values.any() else 0


def feature_names(tracking: Tracking) -> list[str]:
    """Names, or numbers for features that have none."""
    n_features = tracking.learner.n_features_in_
    names = tracking.features or getattr(tracking.learner, "feature_names_in_", [])
    return list(names) if len(names) == n_features else [str(i) for i in range(n_features)]


def feature_change(tracking: Tracking) -> Change:
    """Shares now, and just before the last change that was noticed, or early on."""
    now, history = shares_of(tracking.learner), tracking.history
    if history is None or len(history.losses) < 2:
        return Change("against equal shares", np.full(len(now), 1.0 / len(now)), now)
    ends = history.ends()
    block = max(0, int(np.searchsorted(ends, last_change(tracking.learner) or 0, side="right")) - 1)
    return Change(f"since pair {ends[block]:,.0f}", history.shares[block], now)


def page(path: Path, tracking: Tracking) -> Page:
    """A self-contained page: the tables, and how it went."""
    found = Page(f"Metric in {path}")
    tables = sections(path, tracking)
    found.table(["", ""], tables[0].rows)
    history = tracking.history
    if history is not None:
        _add_history(found, history, tracking)
    if isinstance(tracking.learner, WeighedLearner):
        found.heading("Weights over scales")
        names = _names(tracking.learner.experts_)
        found.figure(
            _bars(names, tracking.learner.weights_, "experts by memory length (pairs)", "weight")
        )
    found.heading("Spectrum")
    found.paragraph(
        "Eigenvalues of the metric, or, with a kernel, the landmarks' spread: how many directions "
        "matter, and how much."
    )
    values = spectrum(tracking.learner)
    ranks = [str(i + 1) for i in range(len(values))]
    found.figure(_bars(ranks, values, "direction", "eigenvalue"))
    _add_embedding(found, tracking)
    found.heading(tables[-1].title)
    if tables[-1].rows:
        found.table(tables[-1].columns, tables[-1].rows)
    found.paragraph(tables[-1].note)
    found.heading(tables[-2].title).table(["", ""], tables[-2].rows)
    return found


def _add_history(found: Page, history: History, tracking: Tracking) -> None:
    ends, losses, windows = history.curves(tracking.learner)
    found.heading("Loss over time")
    last = f" (the last point: of {history.pairs:,})" if history.pairs else ""
    found.paragraph(
        f"Mean loss of {history.width:,} pairs each{last}, suffered before they were learned from."
    )
    found.figure(_lines(ends, losses, "mean loss", tracking))
    if np.isnan(windows).all():
        return
    found.paragraph(
        "The effective window: how many of the latest pairs the metric rested on. The thin line is "
        "the moment at which each point above ends: a few pairs that fit badly shorten it, and it "
        f"is back soon after. The thick line is the median of {N_SMOOTHED} such moments; it drops "
        "where things have changed."
    )
    figure = _lines(ends, windows, "effective window (pairs)", tracking)
    figure.update_traces(line={"color": PALE, "width": 1}, marker={"size": 4})
    figure.add_scatter(x=ends.tolist(), y=running_median(windows).tolist(), line={"color": BLUE})
    found.figure(figure.update_yaxes(**_log_axis(windows)))


def running_median(values: Floats) -> Floats:
    """The median around each value; near the ends, of those that there are."""
    reach = N_SMOOTHED // 2
    around = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    return np.array([np.median(each) for each in around])


def _log_axis(values: Floats) -> dict[str, Any]:
    """Whole decades, with every number written out."""
    low, high = int(np.floor(np.log10(values.min()))), int(np.ceil(np.log10(values.max())))
    high = max(high, low + 1)
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    ticks = [step * 10.0**k for k in range(low, high + 1) for step in steps]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [f"{tick:,.0f}" for tick in ticks],
    }


def _add_embedding(found: Page, tracking: Tracking) -> None:
    learner = tracking.learner
    if tracking.items is not None:
        some = np.unique(np.linspace(0, len(tracking.items.ids) - 1, N_POINTS).astype(int))
        points = tracking.items.points[some]
        names = [figure_text(tracking.items.ids[i]) for i in some]
        title = (
            "Items where Euclidean distance is the learned one: the two directions that matter "
            "most."
        )
    elif tracking.recent is not None:
        points = tracking.recent.reshape(-1, tracking.recent.shape[2])
        labels = np.where(tracking.recent_y > 0, "alike", "not alike")
        names = [f"pair {i // 2 + 1}: {labels[i // 2]}" for i in range(len(points))]
        title = (
            f"The points of the last {len(labels)} pairs, where Euclidean distance is the learned "
            "one: the two directions that matter most. Lines join pairs that are alike."
        )
    else:
        found.heading("Embedding").paragraph("Pass --items to see the items embedded.")
        return
    embedded = np.zeros((points.shape[0], 2))
    image = learner.transform(points)
    embedded[:, : min(2, image.shape[1])] = image[:, :2]
    found.heading("Embedding").paragraph(title)
    found.figure(_scatter(embedded, names, tracking))


def _scatter(embedded: Floats, names: list[str], tracking: Tracking) -> "Figure":
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    if tracking.items is None:
        alike = np.flatnonzero(tracking.recent_y > 0)
        # None between two points ends a line.
        x = [v for i in alike for v in (*embedded[2 * i : 2 * i + 2, 0].tolist(), None)]
        y = [v for i in alike for v in (*embedded[2 * i : 2 * i + 2, 1].tolist(), None)]
        lines = {"color": "#bbbbbb", "width": 1}
        figure.add_trace(Scatter(x=x, y=y, mode="lines", line=lines, hoverinfo="skip"))
    figure.add_trace(
        Scatter(
            x=embedded[:, 0].tolist(),
            y=embedded[:, 1].tolist(),
            mode="markers",
            marker={"size": 5, "color": BLUE},
            text=names,
            hoverinfo="text",
        )
    )
    figure.update_yaxes(scaleanchor="x")
    return _styled(figure, "first direction", "second direction")


def _lines(x: Floats, y: Floats, y_name: str, tracking: Tracking) -> "Figure":
    from plotly.graph_objects import Figure, Scatter

    figure = Figure(Scatter(x=x.tolist(), y=y.tolist(), line={"color": BLUE}))
    changed = last_change(tracking.learner)
    if changed:
        label = {"text": "last change noticed", "font": {"color": ORANGE}}
        line = {"color": ORANGE, "dash": "dash"}
        figure.add_vline(changed, line=line, annotation=label, annotation_position="top")
    return _styled(figure, "pairs", y_name)


def _bars(names: list[str], values: Floats, x_name: str, y_name: str) -> "Figure":
    from plotly.graph_objects import Bar, Figure

    figure = Figure(Bar(x=names, y=values.tolist(), marker={"color": BLUE}))
    figure.update_xaxes(type="category" if len(names) <= N_NAMED else "linear", tickangle=0)
    return _styled(figure, x_name, y_name)


def _styled(figure: "Figure", x_name: str, y_name: str) -> "Figure":
    figure.update_layout(
        template="plotly_white",
        height=380,
        showlegend=False,
        margin={"l": 60, "r": 20, "t": 30, "b": 50},
        xaxis_title=x_name,
        yaxis_title=y_name,
    )
    return figure
