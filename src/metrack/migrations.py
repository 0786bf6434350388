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

VERSION = 3  # of the format that is written


def migrated(version: int, content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """What a state of some format holds, in the present one."""
    for step in range(version, VERSION):
        content, arrays = STEPS[step](content, arrays)
    return content, arrays


def renamed(arrays: Arrays, names: Mapping[str, str | None]) -> Arrays:
    """Arrays whose part, or part and field, has another name: "trust" or "trust.memory".

    One whose new name is None is gone.
    """
    found: Arrays = {}
    for name, array in arrays.items():
        part, _, field = name.partition(".")
        new = names[name] if name in names else f"{names.get(part, part)}.{field}"
        if new is not None:
            found[new] = array
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
# It knew one bank and no ensemble, and called things by other names.
ARRAYS_1: dict[str, str | None] = {
    "clock.pairs": "counters.pairs",
    "clock.selected": "counters.selected",
    "clock.active": None,  # follows from the pairs
    "clock.moved": "scaler.moved",
    "clock.mean_square": "scaler.mean_square",
    "clock.usual": "detector.mean",
    "clock.excess": "detector.cusum",
    "clock.changed": "detector.changed",
    "trust": "experts",
    "trust.rate": "banks.0.rates.rate",
    "trust.rho": "banks.0.rates.rho",
    "trust.length": "banks.0.rates.length",
    "trust.memory": "experts.statistics",
    "memory": "replay",
    "memory.where": None,  # all features
    "memory.written": None,  # all pairs
    "memory.drawn": "banks.0.generator.state",
    "learners": "banks.0.learners",
    "learners.heights": "banks.0.learners.lazy_values",
    "learners.total": "banks.0.learners.cumulative_threshold",
    "learners.fresh": "banks.0.learners.initial_value",
}
PLAIN_ARRAYS_1 = {name: new for name, new in ARRAYS_1.items() if name.startswith("clock.")}
OF_A_BANK_1 = ("loss", "divergence", "step", "schedule", "rho", "capacity", "replays")
OF_A_COMBINATION_1 = ("loss", "combiner", "output", "weight_loss", "cap")
RENAMED_SETTINGS_1 = {"OASIS": {"C": "learning_rate"}}


def _by_names(content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """Settings and records by names; what settings came to, apart from what was learned."""
    learner = dict(content["learner"])
    bank, n_features = learner.pop("bank"), learner.pop("n_features")
    learner.pop("n_features_at_start")
    names = RENAMED_SETTINGS_1.get(learner["class"], {})
    learner["settings"] = {names.get(k, k): v for k, v in learner["settings"].items()}
    if "ladder" in bank:
        arrays = _arrays_1(bank, arrays)
        described = _ensemble_1(bank, learner["settings"], arrays)
    else:
        arrays = renamed(arrays, PLAIN_ARRAYS_1)
        described = _plain_1(bank)
    described["resolved"]["n_features"] = n_features
    content = {**content, "learner": {**learner, **described}}
    if "tracking" in content:
        content["tracking"] = {**content["tracking"], "items": None}
    return content, arrays


def _plain_1(bank: Content) -> Content:
    """Online ITML, LEGO and OASIS."""
    if "longest" in bank:
        scaled = bank["scaled"]
        resolved = {"kind": "similarity", "learning_rate": bank["longest"]}
    else:
        rule = {name: _named_1(name, value) for name, value in bank["rule"].items()}
        scaled = rule.pop("scaled")
        resolved = {"kind": "target", "learning_rate": rule.pop("rate"), **rule}
    parts = {
        "counters": {"record": "plain_counters"},
        "scaler": {"record": "scaler"},
        "learners": {"record": RECORDS_1[bank["learners"]]},
    }
    return {"resolved": {**resolved, "units": _units_1(scaled)}, "parts": parts, "banks": []}


def _units_1(scaled: Any) -> str:
    if not isinstance(scaled, bool):
        raise ValueError(f"scaled is {scaled!r}; it must be true or false")
    return "root_mean_square" if scaled else "data"


def _ensemble_1(bank: Content, settings: Content, arrays: Arrays) -> Content:
    """COMID, SADL and POLA: an ensemble of one bank."""
    rule = {name: _named_1(name, value) for name, value in bank["rule"].items()}
    n_learners = len(arrays["experts.p"])
    if n_learners == 1:
        rule["combiner"] = "alone"
    rate, first, ratio = bank["ladder"]
    representation = RECORDS_1[bank["learners"]]
    on_cover = rule["first_interval"] > 0
    at_identity = settings.get("init") == "identity" or rule["divergence"] != "frobenius"
    regularizer = settings.get("regularizer")  # POLA has none
    if regularizer == "auto":
        regularizer = "logdet" if representation == "dense_factor" else "nuclear"
    own = {
        "kind": "mirror",
        **{name: rule[name] for name in OF_A_BANK_1},
        "regularizer": regularizer,
        "learning_rate": rate,
        "representation": representation,
        "init": "identity" if at_identity else "zero",
        "first_interval": int(first),
        "length_ratio": ratio,
        "on_cover": on_cover,
        "n_learners": 2 if on_cover else n_learners,
    }
    resolved = {
        "kind": "ensemble",
        "units": _units_1(rule["scaled"]),
        **{name: rule[name] for name in OF_A_COMBINATION_1},
        "banks": [own],
    }
    parts = {
        "counters": {"record": "counters"},
        "scaler": {"record": "scaler"},
        "detector": {"record": "page_hinkley"},
        "experts": {"record": "experts"},
        "replay": {"record": "replay_buffer"},
    }
    learned = {
        "rates": {"record": "rates"},
        "learners": {"record": representation},
        "generator": {"record": "generator"},
    }
    return {"resolved": resolved, "parts": parts, "banks": [learned]}


def _arrays_1(bank: Content, arrays: Arrays) -> Arrays:
    arrays = renamed(arrays, ARRAYS_1)
    arrays["experts.length"] = arrays["banks.0.rates.length"].copy()
    if "banks.0.rates.rho" not in arrays:
        # The first states of format 1 had one strength for all learners, and no LogDet.
        n_learners = len(arrays["experts.length"])
        arrays["banks.0.rates.rho"] = np.full(n_learners, float(bank["rule"]["rho"]))
        if bank["learners"] == "Whole":
            arrays["banks.0.learners.steps"] = np.zeros(n_learners, np.int64)
    return arrays


def _named_1(setting: str, value: Any) -> Any:
    if setting not in SETTINGS_1:
        return value
    if type(value) is not int or not 0 <= value < len(SETTINGS_1[setting]):
        raise ValueError(f"{setting} is {value!r}, which stands for nothing")
    return SETTINGS_1[setting][value]


def _calibrated(content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """Kinds of experts are calibrated by means, margin learners too; SADL says which it has."""
    learner = _of_sadl(content["learner"], {"experts": "cover"})
    innermost = learner.get("learner", learner)  # FromLabels has one inside
    arrays = dict(arrays)
    for i, bank in enumerate(innermost["resolved"].get("banks", ())):
        part = f"banks.{i}.calibration"
        if f"{part}.slope" not in arrays:
            continue
        if bank.get("learns") == "margin":  # which predicted q, with a threshold of its own
            mu = arrays[f"banks.{i}.learners.mu"]
            known = {"slope": 2.0, "total": 600.0, "pairs": 300.0}
            arrays[f"{part}.threshold"] = mu.copy()
            arrays |= {f"{part}.{name}": np.full(mu.shape, v) for name, v in known.items()}
        now = arrays[f"{part}.threshold"], arrays[f"{part}.slope"]
        arrays[f"{part}.iterates"] = np.column_stack(now)
    return {**content, "learner": learner}, arrays


def _of_sadl(learner: Content, more: Content) -> Content:
    """A learner, with further settings where it is a SADL or has one inside."""
    found = dict(learner)
    if found["class"] == "SADL":
        found["settings"] = more | found["settings"]
    for inside in ("learner", "template"):
        if found.get(inside) is not None:
            found[inside] = _of_sadl(found[inside], more)
    return found


STEPS: dict[int, Callable[[Content, Arrays], tuple[Content, Arrays]]] = {
    1: _by_names,
    2: _calibrated,
}
