"""What many trials say together: means with intervals, recovery times, and the paper's claims."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from metrack.checks import Bools, Floats
from metrack.evaluate import time_to_recover, wilson_interval
from metrack.experiments.drift import REFERENCES, Study, segment_weights
from metrack.experiments.report import Json

LEVEL = 0.8  # of the NMI
CONFIDENCE = 0.95
DIGITS = 6
LABELLED = ("lmnn", "lmnn-window")  # are given the classes of points, not judgements of pairs
PUBLISHED = ("sadl-published", "comid-high", "comid-low", "lmnn", "online-itml")

Numbers = Mapping[str, Floats]  # by method: (2, n_trials, n_steps), k-NN error and NMI


def summarise(study: Study, numbers: Numbers) -> Json:
    """All results as JSON; docs/reproduce-synthetic.md documents it."""
    ends = np.cumsum([segment.length for segment in study.schedule])
    n_trials = next(iter(numbers.values())).shape[1]
    results: Json = {
        "format": 1,
        "study": "synthetic",
        **study.describe(),
        "n_trials": n_trials,
        "confidence": CONFIDENCE,
        "nmi_level": LEVEL,
        "segments": [
            {
                "name": part.name,
                "partition": part.partition,
                "start": int(end - part.length),
                "stop": int(end),
                "drift": part.drift,
            }
            for end, part in zip(ends, study.schedule, strict=True)
        ],
        "steps": study.steps().tolist(),
    }
    results["methods"] = {name: _method(study, values, numbers) for name, values in numbers.items()}
    results["claims"] = [claim._asdict() for claim in claims(results)]
    return results


def _method(study: Study, values: Floats, numbers: Numbers) -> Json:
    errors, above = values[0], values[1] > LEVEL
    weights = segment_weights(study)
    *segments, whole = (
        {"knn_error": mean_interval(errors @ w), "p_nmi": mean_interval(above @ w)} for w in weights
    )
    return {
        "knn_error": _over_time(mean_interval(column) for column in errors.T),
        "p_nmi": _over_time(share_interval(column) for column in above.T),
        "segments": segments,
        "whole": whole,
        "recovery": [
            _recovery(study, errors, _levels(numbers, i), i) for i in range(len(study.switches))
        ],
    }


def mean_interval(values: Floats) -> dict[str, float]:
    """Mean over trials and its interval by Student's t; of a single trial the mean alone."""
    mean, n = float(values.mean()), len(values)
    half = 0.0
    if n > 1:
        t = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2))
        half = t * float(values.std(ddof=1)) / np.sqrt(n)
    return _rounded(mean=mean, low=mean - half, high=mean + half)


def share_interval(hits: Bools) -> dict[str, float]:
    """Share of trials and Wilson's interval."""
    share, low, high = wilson_interval(int(np.count_nonzero(hits)), len(hits), CONFIDENCE)
    return _rounded(mean=share, low=low, high=high)


def _over_time(intervals: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    found = list(intervals)
    return {name: [each[name] for each in found] for name in ("mean", "low", "high")}


def _rounded(**values: float) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in values.items()}


def _levels(numbers: Numbers, switch: int) -> Floats:
    """Each trial's level to come back to: half way from no metric to the true one."""
    # The references are constant within a partition; the last step has A, a middle one B.
    at = -1 if switch else numbers["raw"].shape[2] // 2
    levels: Floats = sum(numbers[name][0, :, at] for name in REFERENCES) / 2  # type: ignore[assignment]
    return levels


def _recovery(study: Study, errors: Floats, levels: Floats, switch: int) -> Json:
    """Median over trials of the pairs from a switch until the error is down to the level."""
    at = [*study.switches, study.n_pairs]
    steps = study.steps()
    times = np.sort(
        [
            time_to_recover(steps, row, at[switch], level, until=at[switch + 1])
            for row, level in zip(errors, levels, strict=True)
        ]
    )
    low, high = _median_ranks(len(times))
    return {
        "switch": at[switch],
        "median": _finite(float(times[(len(times) - 1) // 2])),
        "low": _finite(float(times[low])),
        "high": _finite(float(times[high])),
        "recovered": round(float(np.isfinite(times).mean()), DIGITS),
    }


def _median_ranks(n: int) -> tuple[int, int]:
    """Places, among n sorted values, of an interval for their median."""
    half = float(ndtri(0.5 + CONFIDENCE / 2)) * np.sqrt(n) / 2
    return max(int(np.floor(n / 2 - half)), 0), min(int(np.ceil(n / 2 + half)), n - 1)


def _finite(value: float) -> float | None:
    return round(value, 1) if np.isfinite(value) else None


class Claim(NamedTuple):
    """A statement, whether it held here, and the numbers."""

    source: str
    claim: str
    held: bool
    evidence: str


def claims(results: Json) -> list[Claim]:
    """The paper's claims about its own five methods, and this library's aims for its default.

    Those about methods that were not run are left out.
    """
    methods = {k: v for k, v in results["methods"].items() if k not in REFERENCES}
    found = []
    if set(PUBLISHED) <= set(methods):
        found += _published(results, {name: methods[name] for name in PUBLISHED})
    if "sadl" in methods and len(methods) > 1:
        found += _aims(results, methods)
    return found


def _published(results: Json, methods: Json) -> list[Claim]:
    sadl = methods["sadl-published"]
    after = slice(1, None)  # segments after the first switch

    def later(name: str) -> float:
        return _mean_of(results, methods[name], after)

    def fails(name: str, claim: str) -> Claim:
        return Claim(
            "paper",
            claim,
            later(name) > later("sadl-published"),
            f"k-NN error after the first switch: {name} {_percent(later(name))}, "
            f"COMID-SADL {_percent(later('sadl-published'))}",
        )

    best = min(methods, key=lambda name: _whole(methods[name]))
    itml = methods["online-itml"]
    high = methods["comid-high"]
    return [
        Claim(
            "paper",
            "COMID-SADL as published tracks best of the paper's five methods",
            best == "sadl-published",
            "k-NN error over the whole stream: " + _ranking(methods),
        ),
        Claim(
            "paper",
            "COMID at a high rate recovers more slowly from both switches than COMID-SADL",
            all(_time(high, i) > _time(sadl, i) for i in (0, 1)),
            _recoveries({"comid-high": high, "COMID-SADL": sadl}),
        ),
        fails("comid-low", "COMID at a low rate fails to adapt"),
        fails("lmnn", "The batch method fails to adapt"),
        Claim(
            "paper",
            "Online ITML fails: its clusters are found less often than COMID-SADL's",
            itml["whole"]["p_nmi"]["mean"] < sadl["whole"]["p_nmi"]["mean"],
            f"P(NMI > {LEVEL}) over the whole stream: online-itml "
            f"{_percent(itml['whole']['p_nmi']['mean'])}, COMID-SADL "
            f"{_percent(sadl['whole']['p_nmi']['mean'])}",
        ),
    ]


def _aims(results: Json, methods: Json) -> list[Claim]:
    found = []
    pairs_only = {name: each for name, each in methods.items() if name not in LABELLED}
    groups = {"all methods": methods, "those that learn from pairs": pairs_only}
    for words, group in groups.items():
        if len(group) < 2 or (group is pairs_only and len(group) == len(methods)):
            continue
        best = min(group, key=lambda name: _whole(group[name]))
        found.append(
            Claim(
                "aim",
                f"SADL's default has the lowest error of {words}",
                best == "sadl",
                "k-NN error over the whole stream: " + _ranking(group),
            )
        )
        found.append(_near_best(results, group, words))
        first = [min(group, key=lambda name: _time(group[name], i)) for i in (0, 1)]
        found.append(
            Claim(
                "aim",
                f"SADL's default recovers first of {words} from both switches",
                all(_time(group["sadl"], i) <= _time(group[first[i]], i) < np.inf for i in (0, 1)),
                _recoveries(group),
            )
        )
    return found


def _near_best(results: Json, group: Json, words: str) -> Claim:
    parts, held = [], True
    for i, segment in enumerate(results["segments"]):
        errors = {name: each["segments"][i]["knn_error"]["mean"] for name, each in group.items()}
        best = min(errors, key=lambda name: errors[name])
        held = held and errors["sadl"] <= 1.1 * errors[best]
        parts.append(
            f"{segment['name']} {_percent(errors['sadl'])} (best: {best} {_percent(errors[best])})"
        )
    return Claim(
        "aim",
        f"SADL's default is within 10 % of the best of {words} in every segment",
        held,
        "k-NN error: " + ", ".join(parts),
    )


def _whole(method: Json) -> float:
    error: float = method["whole"]["knn_error"]["mean"]
    return error


def _mean_of(results: Json, method: Json, which: slice) -> float:
    lengths = [part["stop"] - part["start"] for part in results["segments"]][which]
    errors = [part["knn_error"]["mean"] for part in method["segments"]][which]
    return float(np.average(errors, weights=lengths))


def _time(method: Json, switch: int) -> float:
    median = method["recovery"][switch]["median"]
    return float("inf") if median is None else float(median)


def _recoveries(methods: Json) -> str:
    def words(name: str) -> str:
        times = (_time(methods[name], i) for i in (0, 1))
        return f"{name} " + " and ".join("never" if t == np.inf else f"{t:.0f}" for t in times)

    order = sorted(methods, key=lambda name: (_time(methods[name], 0), _time(methods[name], 1)))
    return "median pairs to recover: " + ", ".join(map(words, order))


def _ranking(methods: Json) -> str:
    order: Sequence[str] = sorted(methods, key=lambda name: _whole(methods[name]))
    return ", ".join(f"{name} {_percent(_whole(methods[name]))}" for name in order)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
