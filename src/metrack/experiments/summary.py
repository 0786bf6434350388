"""What many trials say together: means with intervals, and recovery times."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.special import ndtri, stdtrit

from metrack.checks import Bools, Floats
from metrack.evaluate import time_to_recover, wilson_interval
from metrack.experiments.drift import LEVEL, REFERENCES, Study, segment_weights
from metrack.experiments.report import Json

CONFIDENCE = 0.95
DIGITS = 6

Numbers = Mapping[str, Floats]  # by method: (2, n_trials, n_steps), k-NN error and NMI


def summarise(study: Study, numbers: Numbers) -> Json:
    """All results but the claims, as JSON; docs/reproduce-synthetic.md documents it."""
    ends = np.cumsum([segment.length for segment in study.segments])
    n_trials = next(iter(numbers.values())).shape[1]
    results: Json = {
        "format": 2,
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
            for end, part in zip(ends, study.segments, strict=True)
        ],
        "steps": study.steps().tolist(),
    }
    results["methods"] = {name: _method(study, values, numbers) for name, values in numbers.items()}
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
            _recovery(study.switches[i], recovery_times(study, values, numbers, i))
            for i in range(len(study.switches))
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


def recovery_times(study: Study, values: Floats, numbers: Numbers, switch: int) -> Floats:
    """In each trial, the pairs from a switch until the error is down to the level."""
    at, steps = [*study.switches, study.n_pairs], study.steps()
    return np.array(
        [
            time_to_recover(steps, row, at[switch], level, until=at[switch + 1])
            for row, level in zip(values[0], _levels(numbers, switch), strict=True)
        ]
    )


def _recovery(switch: int, times: Floats) -> Json:
    """Their median over trials."""
    times = np.sort(times)
    low, high = _median_ranks(len(times))
    return {
        "switch": switch,
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
