"""Make docs/real-drift.md: its figures, its table and what it says in numbers.

    python docs/figures/make_real_drift.py           follow the real streams anew, then all else
    python docs/figures/make_real_drift.py --drawn   from the numbers of the last time

The table is that of `make bench-drift` and `make bench-drift-moa`. gas.npz and weather.npz are
looked for in the folder METRACK_DRIFT.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from metrack.plots import COLOURS, GREY, STYLE

HERE = Path(__file__).parent
PAGE, SERIES = HERE.parent / "real-drift.md", HERE / "real-drift.json"
RESULTS = HERE / "drift.json", HERE / "drift-moa.json"
STRIDE = 200  # points that an error is the mean of
N_SENSORS, PER_SENSOR = 16, 8  # features of the gas sensors
TOLD = 3  # sensors


def results():
    return [json.loads(file.read_text(encoding="utf-8")) for file in RESULTS if file.exists()]


def follow(X, y, model, other):
    """What happened along a stream, in numbers."""
    wrong = np.empty(len(y), bool)
    shares, start = [], None
    for begin in range(0, len(y), STRIDE):
        part = slice(begin, begin + STRIDE)
        wrong[part] = model.observe(X[part], y[part]) != y[part]
        learner = model.metric_.learner_
        start = start or learner.get_metric()
        by_feature = learner.drift_report()
        shares.append((by_feature.change + 1 / X.shape[1]).tolist())
    plain = other.observe(X, y) != y
    history, report = model.trust_history(), model.drift_report(since=start)
    return {
        "n_points": len(y),
        "error": float(wrong[STRIDE:].mean()),
        "errors": _by_stride(wrong),
        "plain": _by_stride(plain),
        "changes": history.stops[history.changes > 0].tolist(),
        "stops": history.stops.tolist(),
        "windows": {
            str(name): np.round(each, 4).tolist() for name, each in history.windows.items()
        },
        "shares": np.round(shares, 5).tolist(),
        "report": {
            "windows": {str(name): each for name, each in report.windows.items()},
            "neighbours": {str(name): each for name, each in report.neighbours.items()},
            "metrics": report.metrics,
            "points_since_change": report.points_since_change,
        },
    }


def _by_stride(wrong):
    return [float(wrong[i : i + STRIDE].mean()) for i in range(0, len(wrong), STRIDE)]


def measured():
    """Both real streams, followed."""
    from benchmarks.drift import PlainWindows
    from benchmarks.drift_streams import LONGEST, REAL, folder, from_file
    from metrack import DriftKNN

    found = {}
    for name in REAL:
        points = from_file(folder() / f"{name}.npz")
        found[name] = follow(*points, DriftKNN(random_state=0), PlainWindows())
        with np.load(folder() / f"{name}.npz") as file:
            batch = file["batch"][:LONGEST] if "batch" in file else np.zeros(1)
        found[name]["batches"] = (np.flatnonzero(np.diff(batch)) + 1).tolist()
    return found


def sensor_shares(series):
    """How much each gas sensor counts, by time."""
    shares = np.array(series["gas"]["shares"])
    return shares.reshape(len(shares), N_SENSORS, PER_SENSOR).sum(axis=2)


def draw_errors(series):
    figure, panels = plt.subplots(len(series), 1, figsize=(8, 4.6), layout="constrained")
    for panel, (name, own) in zip(panels, series.items(), strict=True):
        at = np.minimum(np.arange(1, len(own["errors"]) + 1) * STRIDE, own["n_points"])
        panel.plot(at, 100 * np.array(own["plain"]), "--", color=GREY, label="plain windows x k")
        panel.plot(at, 100 * np.array(own["errors"]), color=COLOURS[0], label="DriftKNN")
        for i, point in enumerate(own["changes"]):
            panel.axvline(
                point, color=COLOURS[1], lw=0.8, label=None if i else "losses of the metric rose"
            )
        for i, point in enumerate(own["batches"]):
            label = None if i else "next batch of measurements"
            panel.axvline(point, color="#bbbbbb", ls=":", label=label)
        panel.set(ylabel=f"{name}: error (%)", ylim=(0, None), xlim=(0, own["n_points"]))
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(handles[0]))
    panels[-1].set(xlabel="points")
    figure.savefig(HERE / "drift-errors.png", dpi=120)


def draw_sensors(series):
    shares = 100 * sensor_shares(series).T
    figure, panel = plt.subplots(figsize=(8, 3.6), layout="constrained")
    end = series["gas"]["n_points"]
    image = panel.imshow(
        shares, aspect="auto", cmap="Blues", vmin=0, extent=(0, end, N_SENSORS + 0.5, 0.5)
    )
    for point in series["gas"]["batches"]:
        panel.axvline(point, color=GREY, ls=":", lw=0.8)
    panel.set(xlabel="points", ylabel="gas sensor", yticks=range(1, N_SENSORS + 1))
    panel.tick_params(axis="y", labelsize=7)
    figure.colorbar(image, label="share of the metric (%)")
    figure.savefig(HERE / "drift-sensors.png", dpi=120)


def draw_trust(series):
    figure, panels = plt.subplots(len(series), 1, figsize=(8, 4.6), layout="constrained")
    shades = mpl.colormaps["viridis"]
    for panel, (name, own) in zip(panels, series.items(), strict=True):
        stops, windows = np.array([0, *own["stops"]]), own["windows"]
        trusts = np.array([[each[0], *each] for each in windows.values()])
        colours = [shades(i / (len(windows) - 1)) for i in range(len(windows))]
        panel.stackplot(stops, trusts, labels=list(windows), colors=colours)
        panel.set(ylabel=f"{name}: trust", ylim=(0, 1), xlim=(0, own["n_points"]))
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside right center", title="window"
    )
    panels[-1].set(xlabel="points")
    figure.savefig(HERE / "drift-trust.png", dpi=120)


def leading(trust, unit):
    """The two that are trusted most, in words."""
    first, second = sorted(trust, key=trust.__getitem__, reverse=True)[:2]
    return f"{unit(first)} has {trust[first]:.0%} of the trust, {unit(second)} {trust[second]:.0%}"


def window(name):
    return "all that is remembered" if name == "all" else f"the window of {int(name):,} points"


def report_in_words(series):
    """What `drift_report` says about the gas sensors."""
    own, shares = series["gas"], sensor_shares(series)
    report, gained = own["report"], shares[-1] - shares[0]
    order = np.argsort(-gained)
    up, down = order[:TOLD], order[::-1][:TOLD]
    metrics = {name: f"distance in {name}" for name in report["metrics"]}
    metrics["tracked"] = "the tracked metric"
    lines = [
        f"After {own['n_points']:,} points, {leading(report['windows'], window)}.",
        f"Of the numbers of neighbours, {leading(report['neighbours'], lambda k: f'k = {k}')}.",
        f"Of the metrics, {leading(report['metrics'], metrics.__getitem__)}.",
        f"The metric's losses rose {len(own['changes'])} times, the last time "
        f"{report['points_since_change']:,} points ago.",
        f"Since the first {STRIDE} points, {sensors(up, gained)} have gained most of the "
        f"metric, and {sensors(down, gained)} have lost most (percentage points).",
    ]
    return "\n".join(f"- {line}" for line in lines)


def sensors(which, gained):
    named = [f"{i + 1} ({100 * gained[i]:+.1f})" for i in which]
    return f"sensors {', '.join(named[:-1])} and {named[-1]}"


def made_with():
    own, *others = (each["versions"] for each in results())
    names = {"river": "River", "capymoa": "CapyMOA", "java": "Java", "python": "Python"}
    found = {name: each for of in (own, *others) for name, each in of.items()}
    if "java" in found:
        found["java"] = re.findall(r'"(.+)"', found["java"])[0]
    return ", ".join(f"{names[key]} {found[key]}" for key in names if key in found) + "."


def standing():
    """On how many streams ours has the fewest errors, and where it has not."""
    from benchmarks.drift import OURS, methods

    records = methods(*results())
    best = {
        stream: min(own, key=lambda name, own=own: own[name]["error"])
        for stream, own in records.items()
    }
    won = [stream for stream, name in best.items() if name == OURS]
    behind = [
        f"on {stream} behind {name} ({100 * records[stream][name]['error']:.2f} % against "
        f"{100 * records[stream][OURS]['error']:.2f} %)"
        for stream, name in best.items()
        if name != OURS
    ]
    said = f"`DriftKNN()` has the fewest errors of all on {len(won)} of {len(best)} streams"
    return f"{said}{'; it is ' + ', '.join(behind) if behind else ''}."


def filled():
    """The page, with all that is measured."""
    from benchmarks.drift import table

    series = json.loads(SERIES.read_text(encoding="utf-8"))
    parts = {
        "table": table(*results()),
        "standing": standing(),
        "report": report_in_words(series),
        "versions": made_with(),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, text in parts.items():
        page, n = re.subn(
            rf"(<!-- {name} -->\n).*?(\n<!-- end -->)",
            lambda found, text=text: f"{found[1]}{text}{found[2]}",
            page,
            flags=re.DOTALL,
        )
        if n != 1:
            raise ValueError(f"{PAGE.name} has {n} places for {name}")
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drawn", action="store_true", help="from the numbers of the last time")
    if not parser.parse_args().drawn:
        SERIES.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    series = json.loads(SERIES.read_text(encoding="utf-8"))
    with mpl.rc_context(STYLE):
        for draw in (draw_errors, draw_sensors, draw_trust):
            draw(series)
    PAGE.write_text(filled(), encoding="utf-8")


if __name__ == "__main__":
    main()
