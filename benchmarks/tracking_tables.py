"""What records of the tracking benchmark say together: lines, bars and tables."""

import numpy as np
import scipy.stats
from rich.table import Table

# The bars of the table: name, value at most.
BARS = {"rate": 1.00, "worst": 1.05, "sweep": 1.05, "oracle": 1.05, "knn": 1.00, "recovery": 0.8}


def directions(tracker):
    """How many eigenvectors hold 95 % of the metric's trace."""
    spectrum = np.linalg.svd(tracker.components_, compute_uv=False) ** 2
    shares = np.cumsum(spectrum) / max(spectrum.sum(), 1e-300)
    return min(int(np.searchsorted(shares, 0.95) + 1), len(spectrum))


def log_ratio(records, ours, theirs):
    """Log of the ratio of each record's two measures; no measure is taken for less than 0.001."""
    return np.array([np.log(max(r[ours], 1e-3) / max(r[theirs], 1e-3)) for r in records])


def interval(logs):
    """Geometric mean and its 95 % t interval."""
    mean = logs.mean()
    if len(logs) < 2:
        return [float(np.exp(mean))] * 3
    half = scipy.stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return [float(np.exp(each)) for each in (mean, mean - half, mean + half)]


RATIOS = {
    "hinge": ("hinge", "hinge_best"),
    "oracle": ("hinge", "hinge_oracle"),
    "error": ("error", "error_best"),
    "knn": ("knn", "knn_best"),
    "knn_least": ("knn", "knn_least"),
}


def recovery_ratio(record):
    """Rounds to recover, all switches of a stream together, against the best rate's."""
    return sum(record["recovery"]) / sum(record["recovery_best"])


def summarise(records):
    """A line for each kind of stream."""
    lines = []
    for what, profile in dict.fromkeys((r["what"], r["profile"]) for r in records):
        own = [r for r in records if (r["what"], r["profile"]) == (what, profile)]
        line = {"what": what, "profile": profile, "n_seeds": len(own)}
        for name in ("hinge", "hinge_best", "error", "error_best", "knn", "knn_best", "rank"):
            line[f"mean_{name}"] = float(np.mean([r[name] for r in own]))
        for name, (ours, theirs) in RATIOS.items():
            line[name] = interval(log_ratio(own, ours, theirs))
        line["best"] = ", ".join(sorted({r["best"] for r in own}))
        line["directions"] = float(np.median([r["directions"] for r in own]))
        if own[0]["recovery"]:
            line["recovery"] = float(np.median([recovery_ratio(r) for r in own]))
            line["rounds"] = float(np.median([t for r in own for t in r["recovery"]]))
            line["rounds_best"] = float(np.median([t for r in own for t in r["recovery_best"]]))
        lines.append(line)
    return lines


def overall(records):
    """Geometric means over the profiles, seed by seed, with intervals over the seeds."""
    found = {}
    seeds = dict.fromkeys(r["seed"] for r in records)
    for name, (ours, theirs) in RATIOS.items():
        logs = [
            log_ratio([r for r in records if r["seed"] == seed], ours, theirs).mean()
            for seed in seeds
        ]
        found[name] = interval(np.array(logs))
    found["worst"] = max(line["hinge"][0] for line in summarise(records))
    switched = [recovery_ratio(r) for r in records if r["recovery"]]
    found["recovery"] = float(np.median(switched)) if switched else None
    return found


def bars(results):
    """Each bar: what was found, and what it may be at most."""
    found = overall(results["main"])
    swept = [line["hinge"][0] for line in summarise(results["sweep"])]
    values = {
        "rate": found["hinge"][0],
        "worst": found["worst"],
        "sweep": max(swept, default=None),
        "oracle": found["oracle"][0],
        "knn": found["knn"][0],
        "recovery": found["recovery"],
    }
    return {name: (values[name], BARS[name]) for name in BARS if values[name] is not None}


BAR_NAMES = {
    "rate": "hinge / best rate, geometric mean over profiles",
    "worst": "hinge / best rate, worst profile",
    "sweep": "hinge / best rate, worst of the sweep",
    "oracle": "hinge / oracle of the segments, geometric mean",
    "knn": "k-NN error / best rate's, geometric mean",
    "recovery": "rounds to recover / best rate's, median",
}


def show_ratio(three):
    return f"{three[0]:.3f} ({three[1]:.3f}-{three[2]:.3f})"


COLUMNS = [
    ("stream", lambda s: f"{s['what']}, {s['profile']}"),
    ("hinge", lambda s: f"{s['mean_hinge']:.3f}"),
    ("/ best rate", lambda s: show_ratio(s["hinge"])),
    ("/ oracle", lambda s: f"{s['oracle'][0]:.3f}"),
    ("0-1 loss", lambda s: f"{s['mean_error']:.3f}"),
    ("/ best rate's", lambda s: f"{s['error'][0]:.3f}"),
    ("k-NN error", lambda s: f"{s['mean_knn']:.3f}"),
    ("/ best rate's", lambda s: f"{s['knn'][0]:.3f}"),
    ("/ least", lambda s: f"{s['knn_least'][0]:.3f}"),
    ("rounds to recover", lambda s: f"{s['rounds']:.0f}" if "rounds" in s else ""),
    ("best rate's", lambda s: f"{s['rounds_best']:.0f}" if "rounds" in s else ""),
    ("ratio", lambda s: f"{s['recovery']:.2f}" if "rounds" in s else ""),
    ("rank", lambda s: f"{s['mean_rank']:.0f}"),
    ("directions", lambda s: f"{s['directions']:.0f}"),
]


def table_rows(records):
    return [[show(line) for _, show in COLUMNS] for line in summarise(records)]


def show(console, results):
    """The results as tables."""
    for title, records in (("Drift profiles", results["main"]), ("Sweep", results["sweep"])):
        if not records:
            continue
        table = Table(title=title)
        for i, (name, _) in enumerate(COLUMNS):
            table.add_column(name, justify="right" if i else "left")
        for cells in table_rows(records):
            table.add_row(*cells)
        console.print(table)
    for name, (value, bar) in bars(results).items():
        verdict = "holds" if value <= bar else "missed"
        console.print(f"{BAR_NAMES[name]}: {value:.3f}, at most {bar:.2f}: {verdict}")


def markdown_table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def markdown(results):
    """The tables of docs/tracking.md."""
    titles = [name for name, _ in COLUMNS]
    parts = []
    found = bars(results)
    verdicts = [
        [
            BAR_NAMES[name],
            f"{value:.3f}",
            f"{bar:.2f}",
            "holds" if value <= bar else "**missed**",
        ]
        for name, (value, bar) in found.items()
    ]
    parts.append(markdown_table(["bar", "found", "at most", ""], verdicts))
    parts += [markdown_table(titles, table_rows(results[part])) for part in ("main", "sweep")]
    return "\n\n".join(parts)
