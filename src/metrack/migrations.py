"""States of earlier formats, made into those of the next: one step a format, on names and arrays.

Nothing here knows a class, so that a step says for ever what it said when it was written. A new
format has the next number, a step from the one before it in `STEPS`, and states of its own in the
tests. A part or field that only gets another name is a line in a table for `renamed`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Content = dict[str, Any]

VERSION = 2  # of the format that is written


def migrated(version: int, content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """What a state of some format holds, in the present one."""
    for step in range(version, VERSION):
        content, arrays = STEPS[step](content, arrays)
    return content, arrays


def renamed(arrays: Arrays, names: Mapping[str, str]) -> Arrays:
    """Arrays whose part, or part and field, has another name: "trust" or "trust.memory"."""
    found: Arrays = {}
    for name, array in arrays.items():
        part, _, field = name.partition(".")
        found[names.get(name) or f"{names.get(part, part)}.{field}"] = array
    return found


# Format 1 kept settings by number, and records by the names of their classes.
SETTINGS_1 = {
    "loss": ("hinge", "squared_hinge", "logistic", "exponential", "least_squares"),
    "divergence": ("frobenius", "von_neumann", "burg"),
    "step": ("explicit", "implicit"),
    "schedule": ("constant", "invsqrt"),
    "combiner": ("sadl", "cbce", "adanormalhedge", "fixed_share", "ader"),
    "output": ("average", "sample", "best"),
    "weight_loss": ("capped", "logistic", "linear"),
    "method": ("itml", "lego"),
}
RECORDS_1 = {
    "Spectral": "spectral",
    "Whole": "dense_factor",
    "Cone": "cone",
    "Elementwise": "elementwise",
    "Diagonal": "diagonal",
    "Metric": "dense_metric",
    "Similarity": "similarity",
}
PARTS_1 = {"trust": "experts", "memory": "replay"}


def _by_names(content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """Settings and records by names; what was kept twice, once."""
    learner = dict(content["learner"])
    bank = learner.pop("bank")
    learner.pop("n_features_at_start")
    arrays = renamed(arrays, PARTS_1)
    parts: Content = {"learners": {"record": RECORDS_1[bank["learners"]]}}
    if "longest" in bank:
        rule = {"longest": bank["longest"], "scaled": bank["scaled"]}
        parts |= {"rule": {"record": "passive_aggressive", **rule}}
    else:
        rule = {name: _named_1(name, value) for name, value in bank["rule"].items()}
        parts |= {"rule": {"record": "target" if "method" in rule else "rule", **rule}}
    if "ladder" in bank:
        rate, first, ratio = bank["ladder"]
        parts |= {
            "ladder": {"record": "ladder", "rate": rate, "first": first, "ratio": ratio},
            "clock": {"record": "clock"},
            "experts": {"record": "experts"},
            "replay": {"record": "replay"},
        }
        _add_regulariser(parts, arrays)
    else:
        parts |= {"clock": {"record": "plain_clock"}}
    content = {**content, "learner": {**learner, "parts": parts}}
    if "tracking" in content:
        content["tracking"] = {**content["tracking"], "items": None}
    return content, arrays


def _named_1(setting: str, value: Any) -> Any:
    if setting not in SETTINGS_1:
        return value
    if type(value) is not int or not 0 <= value < len(SETTINGS_1[setting]):
        raise ValueError(f"{setting} is {value!r}, which stands for nothing")
    return SETTINGS_1[setting][value]


def _add_regulariser(parts: Content, arrays: Arrays) -> None:
    """The first states of format 1 had one strength for all learners, and no LogDet."""
    n_learners = len(arrays["learners.mu"])
    if "experts.rho" not in arrays:
        arrays["experts.rho"] = np.full(n_learners, float(parts["rule"]["rho"]))
        if parts["learners"]["record"] == "dense_factor":
            arrays["learners.steps"] = np.zeros(n_learners, np.int64)


STEPS: dict[int, Callable[[Content, Arrays], tuple[Content, Arrays]]] = {1: _by_names}
