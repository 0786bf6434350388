"""Fill the tables of docs/linkage.md, and draw its figure, from linkage.json and few-alike.json.

    python -m docs.figures.make_linkage

``make bench-linkage`` measures, and then runs this.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

from benchmarks.families import ANSWERS, groups
from benchmarks.linkage import ITML_NAME, KERNEL_NAME, LOGISTIC, PLAIN, TRACKER_NAME, adam_name
from benchmarks.linkage_streams import TITLES
from benchmarks.tracking_tables import markdown_table
from docs.figures.blocks import fill, listed

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "linkage.md"
RESULTS, FIGURE = HERE / "linkage.json", HERE / "linkage.png"
FAMILIES = HERE / "few-alike.json"

IN_HINDSIGHT = {ITML_NAME: "rate", LOGISTIC: "penalty"}
RIVAL = adam_name(5)
BEHIND = 0.01  # AP: less is not worth a line
COLOURS = {
    TRACKER_NAME: "#0072B2",
    KERNEL_NAME: "#56B4E9",
    ITML_NAME: "#009E73",
    LOGISTIC: "#999999",
    adam_name(1): "#F0C987",
    RIVAL: "#D55E00",
    adam_name(20): "#8C3A00",
    PLAIN: "#555555",
}


def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def curves(found, name):
    """Lines by number of pairs of every method, Adam's too."""
    adam = {adam_name(p): lines for p, lines in found["adam"]["curves"][name].items()}
    return found["sets"][name]["curves"] | adam


def shown(method):
    """With what was chosen in hindsight."""
    return f"{method}, best {IN_HINDSIGHT[method]}" if method in IN_HINDSIGHT else method


def figure(values):
    return f"{np.mean(values):.3f}"


def percent(share):
    return f"{100 * share:.0f} %"


def curve_table(found, name):
    """AP by number of pairs; AUC, rate and time with all."""
    methods = curves(found, name)
    sizes = [line["pairs"] for line in methods[TRACKER_NAME]]
    rows = []
    for method in COLOURS:
        lines = methods[method]
        last = lines[-1]
        rate = f"{last['rate']:.3g}" if "rate" in last else ""
        seconds = "" if method == PLAIN else f"{np.mean(last['seconds']):.2f}"
        cells = [figure(line["ap"]) for line in lines]
        rows.append([method, *cells, figure(last["auc"]), rate, seconds])
    titles = ["AP after so many pairs", *(f"{size:,}" for size in sizes)]
    return markdown_table([*titles, "AUC, all", "rate, all", "seconds, all"], rows)


def sets(found):
    parts = []
    for name, title in TITLES.items():
        own = found["sets"][name]
        alike, test_alike = percent(own["alike"]), percent(own["test_alike"])
        parts.append(
            f"**{title[0].upper()}{title[1:]}**: {own['n_pairs']:,} pairs to learn from, "
            f"{alike} alike; {own['n_test']:,} to test on, {test_alike} alike; "
            f"{own['n_features']} features."
        )
        parts.append(curve_table(found, name))
    return "\n\n".join(parts)


def lead(ours, theirs):
    """Mean difference over orders, and half of its 95 % t interval."""
    each = np.array(ours) - np.array(theirs)
    if len(each) < 2:
        return float(each.mean()), 0.0
    half = scipy.stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
    return float(each.mean()), float(half)


def against_adam(found):
    rows = []
    for name in TITLES:
        methods = curves(found, name)
        for own, other in zip(methods[TRACKER_NAME], methods[RIVAL], strict=True):
            mean, half = lead(own["ap"], other["ap"])
            times = np.mean(own["seconds"]) / np.mean(other["seconds"])
            rows.append(
                [
                    TITLES[name].partition(" ")[0],
                    f"{own['pairs']:,}",
                    figure(own["ap"]),
                    figure(other["ap"]),
                    f"{other['rate']:g}",
                    f"{mean:+.3f} ± {half:.3f}",
                    f"{times:.2f}",
                ]
            )
    titles = ["set", "pairs", f"{TRACKER_NAME}, AP", f"{RIVAL}, AP", "its rate", "difference"]
    table = markdown_table([*titles, "time / its time"], rows)
    if found["adam"]["same_run"]:
        return f"{table}\n\nBoth were timed in the same run."
    return f"{table}\n\nThe figures of Adam are of an earlier run, so times compare roughly."


def behind(found):
    """All places where another method has a larger AP by more than `BEHIND`."""
    lines = []
    for name, title in TITLES.items():
        for method, other in curves(found, name).items():
            worse = [
                f"{figure(theirs['ap'])} against {figure(ours['ap'])} after {ours['pairs']:,} pairs"
                for ours, theirs in zip(curves(found, name)[TRACKER_NAME], other, strict=True)
                if is_behind(ours["ap"], theirs["ap"])
            ]
            if worse:
                lines.append(f"- {title.partition(' ')[0]}, {shown(method)}: {listed(worse)}.")
    for title in found["changes"]:
        methods, (_, segments) = along_changes(found, title), thirds(found, title)
        for method, (_, values) in methods.items():
            ours = methods[TRACKER_NAME][1]
            worse = [
                f"{figure(values[segment])} against {figure(ours[segment])} in the {third} third"
                for third, segment in zip(("first", "second", "last"), segments, strict=True)
                if is_behind(ours[segment], values[segment])
            ]
            if worse:
                lines.append(
                    f"- {title}: {method}, best rate: {listed(worse)}.".replace(
                        f"{KERNEL_NAME}, best rate", KERNEL_NAME
                    )
                )
    if not lines:
        return f"Nowhere on this page is another method ahead by more than {BEHIND:g} AP."
    return f"Ahead of `MetricTracker()` by more than {BEHIND:g} AP:\n\n" + "\n".join(lines)


def is_behind(ours, theirs):
    return np.mean(theirs) - np.mean(ours) > BEHIND


def kernel(found):
    """What the kernel costs, or gains."""
    lines = []
    for name, title in TITLES.items():
        methods = curves(found, name)
        leads = {
            own["pairs"]: round(np.mean(other["ap"]) - np.mean(own["ap"]), 3)
            for own, other in zip(methods[TRACKER_NAME], methods[KERNEL_NAME], strict=True)
        }
        size = min(leads, key=leads.__getitem__)
        lines.append(
            f"- {title.partition(' ')[0]}: {leads[size] + 0.0:+.3f} at the worst, after "
            f"{size:,} pairs; {list(leads.values())[-1] + 0.0:+.3f} with all."
        )
    return "AP of `KernelTracker()` less that of `MetricTracker()`:\n\n" + "\n".join(lines)


def answers(found):
    rows = []
    for name, title in TITLES.items():
        for line in found["sets"][name]["answers"]:
            rows.append(
                [
                    title.partition(" ")[0],
                    f"{line['pairs']:,}",
                    figure(line["f1"]),
                    figure(line["best_f1"]),
                    figure(line["calibration"]),
                ]
            )
    titles = ["set", "pairs", 'F1, `threshold="f1"`', "F1, best threshold", "calibration error"]
    return markdown_table(titles, rows)


def along_changes(found, title):
    """AP along a stream by method: the mean over orders, by when it was looked at."""
    own, adam = found["changes"][title], found["adam"]["changes"][title]
    methods = own["methods"] | {f"{adam_name(p)} a block": run for p, run in adam.items()}
    return {
        method: (run.get("rate"), np.mean(run["ap"], axis=0)) for method, run in methods.items()
    }


def thirds(found, title):
    own = found["changes"][title]
    looks = own["every"] * np.arange(1, own["marks"][-1] // own["every"] + 1)
    which = np.searchsorted(own["marks"], looks)
    return looks, [which == i for i in range(len(own["marks"]))]


def changes(found):
    parts = []
    for title, own in found["changes"].items():
        looks, segments = thirds(found, title)
        back = own["marks"][-2] + own["every"]
        rows = []
        for method, (rate, values) in along_changes(found, title).items():
            means = [values[segment] for segment in segments]
            cells = [figure(each) for each in (*means, values[looks == back], values)]
            rows.append([method, "" if rate is None else f"{rate:.3g}", *cells])
        plain = np.array(own["plain"])
        rows.append([PLAIN, "", *(figure(each) for each in (*plain, plain[-1], plain))])
        names = title.split(", ")
        titles = ["mean AP", "best rate", *names[:2], f"{names[2]}, again"]
        parts.append(f"**{title[0].upper()}{title[1:]}**; {listed(shares(own))} alike.")
        parts.append(
            markdown_table([*titles, f"{own['every']} pairs after the return", "all"], rows)
        )
    return "\n\n".join(parts)


def shares(own):
    return [percent(share) for share in own["shares"]]


def families(_):
    """Made-up streams with few alike pairs, and with units of their own: means over seeds."""
    records = json.loads(FAMILIES.read_text(encoding="utf-8"))["records"]
    rows, behind = [], []
    for family, own in groups(records, "family").items():
        for name, some in groups(own, "name").items():
            lead = np.mean([record["ap"] - record["ap_best"] for record in some])
            if lead < 0.0:
                behind.append(f"{family}, {name} (by {-lead:.3f})")
            best = ", ".join(sorted({record["best_by_ap"] for record in some}))
            cells = [figure([record[each] for record in some]) for each in ANSWERS]
            rows.append([f"{family}, {name}", *cells[:3], best, *cells[3:]])
    titles = ["stream", "AP", "plain distance's", "best single's", "which"]
    table = markdown_table([*titles, "F1", "best threshold's", "calibration error"], rows)
    if not behind:
        return f"{table}\n\nAP is above the best single learner's on all of these."
    return f"{table}\n\nAP is below the best single learner's on {'; '.join(behind)}."


BLOCKS = {
    "families": families,
    "sets": sets,
    "against Adam": against_adam,
    "behind": behind,
    "kernel": kernel,
    "answers": answers,
    "changes": changes,
}


def filled():
    """The page, with the figures that are kept."""
    found = measured()
    page = PAGE.read_text(encoding="utf-8")
    return fill(page, {name: block(found) for name, block in BLOCKS.items()})


def draw():
    found = measured()
    picture, axes = plt.subplots(2, 2, figsize=(11, 7.4), layout="constrained")
    for axis, (name, title) in zip(axes[0], TITLES.items(), strict=True):
        for method, lines in curves(found, name).items():
            sizes = [line["pairs"] for line in lines]
            own = method == TRACKER_NAME
            axis.plot(
                sizes,
                [np.mean(line["ap"]) for line in lines],
                color=COLOURS[method],
                linestyle="--" if method == PLAIN else "-",
                linewidth=2.6 if own else 1.3,
                marker="o",
                markersize=4.5 if own else 3,
                zorder=3 if own else 2,
                label=shown(method).replace("`", ""),
            )
        axis.set_xscale("log")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        axis.minorticks_off()
        axis.set(title=title, xlabel="judgements")
    axes[0][0].set_ylabel("AP on the test pairs")
    axes[0][1].legend(fontsize=7.5, frameon=False, loc="upper left")
    for axis, title in zip(axes[1], found["changes"], strict=False):
        own = found["changes"][title]
        looks, segments = thirds(found, title)
        for method, (_, values) in along_changes(found, title).items():
            base, label = method.removesuffix(" a block"), method.replace("`", "")
            for segment, plain in zip(segments, own["plain"], strict=True):
                axis.plot(
                    looks[segment],
                    values[segment] - plain,
                    color=COLOURS[base],
                    linewidth=2.6 if base == TRACKER_NAME else 1.3,
                    zorder=3 if base == TRACKER_NAME else 2,
                    label=label,
                )
                label = None
        axis.axhline(0.0, color=COLOURS[PLAIN], linestyle="--", linewidth=1.3, label=PLAIN)
        for mark in own["marks"][:-1]:
            axis.axvline(mark, color="black", linewidth=0.6, linestyle=":")
        axis.set_title(title, fontsize=10)
        axis.set(xlabel="judgements")
    axes[1][0].set_ylabel("AP less plain distance's")
    axes[1][1].legend(fontsize=7.5, frameon=False, loc="upper right")
    if len(found["changes"]) < 2:
        axes[1][1].set_visible(False)
    picture.savefig(FIGURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
    draw()
