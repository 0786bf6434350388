"""Online learners on disk: what was learned, as arrays and plain settings; never code.

The parts of an ensemble, of its banks and of the dense learners are records, whose fields declare
what they may hold; see `engine.numerics.records`. Here they are only walked. Names in the file are
those of the tables below, whatever Python calls them.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble import combine, mirror, page_hinkley, replay, scaler
from metrack.engine.numerics.records import (
    LARGEST_FLOAT,
    MOST,
    Array,
    Number,
    Sizes,
    declared,
    field_of,
    is_of,
)
from metrack.engine.online import oasis, targets
from metrack.engine.representations.protocol import REPRESENTATIONS
from metrack.estimators.inputs import check_preprocessor
from metrack.estimators.online import OnlineEmbedding, OnlineLearner
from metrack.storage import (
    WRONG,
    Arrays,
    CorruptStateError,
    ForeignStateError,
    State,
    StateError,
    StateFolder,
    read,
)

# What a manifest may name; nothing else is ever imported.
CLASSES = {
    "COMID": "metrack.estimators.comid",
    "FromLabels": "metrack.estimators.from_labels",
    "LEGO": "metrack.estimators.lego",
    "OASIS": "metrack.estimators.oasis",
    "OnlineITML": "metrack.estimators.online_itml",
    "POLA": "metrack.estimators.pola",
    "SADL": "metrack.estimators.sadl",
}
# Part in the file: attribute of what holds it, an ensemble, a bank or a dense learner. Others keep
# arrays in the same file: "recent" and "history" are of `metrack track`, "pairing" of FromLabels.
PARTS = {
    "combination": "combination",
    "counters": "counters",
    "scaler": "scaler",
    "detector": "detector",
    "experts": "experts",
    "replay": "recent",
    "rule": "rule",
    "ladder": "ladder",
    "rates": "rates",
    "learners": "learners",
    "generator": "generator",
}
FOLLOWS = {"n_features", "banks", "spread", "roster"}  # from settings and parts
# Kind of a bank in the file: its class.
BANKS = {"mirror": mirror.MirrorBank}
# Kind of a part in the file: the record that it becomes. Representations have names of their own.
RECORDS: dict[str, Any] = {
    "combination": combine.Combination,
    "counters": combine.COUNTERS,
    "scaler": scaler.SCALER,
    "page_hinkley": page_hinkley.PAGE_HINKLEY,
    "experts": combine.ExpertState,
    "replay_buffer": replay.ReplayBuffer,
    "mirror_descent": mirror.Rule,
    "ladder": mirror.Ladder,
    "rates": mirror.Rates,
    "generator": replay.GENERATOR,
    "target": targets.Target,
    "plain_counters": targets.COUNTERS,
    "dense_metric": targets.Metric,
    "passive_aggressive": oasis.PassiveAggressive,
    "similarity": oasis.Similarity,
}
NOT_SAVED = {"preprocessor", "random_state", "learner"}  # the data's; part of the generator; nested
GENERATOR_SIZE = 624  # numbers of a Mersenne twister
PAIRING = "pairing"  # part of the arrays' names that are of a FromLabels, and not of its learner


def save(learner: Any, path: str | Path) -> None:
    """Write a learner into a folder; see `OnlineEmbedding.save`."""
    state = pack(learner)
    with StateFolder(Path(path)) as folder:
        folder.write(state)


def load(path: str | Path, preprocessor: Any = None) -> Any:
    """A learner as it was saved, by its ``save`` or by ``metrack track``.

    It goes on exactly as the one that was saved would have.

    Parameters
    ----------
    path : path of a folder
    preprocessor : array, CSR matrix or callable, optional
        Points that pairs of row numbers refer to; they are not part of a saved state.

    Returns
    -------
    COMID, SADL, OnlineITML, LEGO, POLA, OASIS or FromLabels

    Raises
    ------
    FileNotFoundError
        Where there is no such folder.
    metrack.storage.StateError
        Where the state is damaged, cut short, not one of metrack, or written by a later metrack; or
        where it holds what no learner can have come to. It is a ValueError, and says which.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import metrack
    >>> pairs = np.random.default_rng(0).normal(size=(100, 2, 3))
    >>> tracker = metrack.COMID().fit(pairs, np.where(pairs[:, 0, 0] > 0, 1, -1))
    >>> folder = tempfile.TemporaryDirectory()
    >>> tracker.save(folder.name)
    >>> metrack.load(folder.name).n_pairs_seen_
    100
    """
    state = read(Path(path))
    return unpack(state, preprocessor, where=str(path))


def pack(learner: Any) -> State:
    """All that a fitted learner knows."""
    check_is_fitted(learner)
    arrays: Arrays = {}
    return State({"learner": _pack_any(learner, arrays)}, arrays)


def unpack(state: State, preprocessor: Any, where: str) -> Any:
    """The learner that a state describes."""
    points = check_preprocessor(preprocessor)
    try:
        learner = _unpack_any(state.content["learner"], state.arrays, where)
    except StateError:
        raise
    except (*WRONG, MemoryError) as error:
        why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise CorruptStateError(f"{where} describes no learner: {why}") from error
    if not isinstance(learner, OnlineEmbedding):
        if points is not None:
            raise ValueError(f"{where} holds a FromLabels, which has no preprocessor")
        return learner
    width = learner.n_features_in_
    if points is not None and not callable(points) and points.shape[1] != width:
        raise ValueError(
            f"preprocessor has {points.shape[1]} features, but the metric was learned on {width}"
        )
    learner.preprocessor, learner.preprocessor_ = preprocessor, points
    return learner


def _pack_any(learner: Any, arrays: Arrays) -> dict[str, Any]:
    name = type(learner).__name__
    if name not in CLASSES:
        raise TypeError(f"{name} cannot be saved; these can: {', '.join(CLASSES)}")
    described = {"class": name, "settings": _pack_settings(learner)}
    if isinstance(learner, OnlineEmbedding):
        return described | _pack_online(learner, arrays)
    return described | _pack_from_labels(learner, arrays)


def _unpack_any(described: Mapping[str, Any], arrays: Arrays, where: str) -> Any:
    name = described["class"]
    if name not in CLASSES:
        raise ForeignStateError(f"{where} holds a learner {name!r}, unknown here")
    learner = getattr(import_module(CLASSES[name]), name)(**described["settings"])
    if isinstance(learner, OnlineEmbedding):
        return _unpack_online(learner, described, arrays)
    return _unpack_from_labels(learner, described, arrays, where)


def _pack_settings(learner: Any) -> dict[str, Any]:
    settings = {k: v for k, v in learner.get_params(deep=False).items() if k not in NOT_SAVED}
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    """What JSON gives back as it was."""
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value, allow_nan=False)
    return value


def _pack_online(learner: OnlineEmbedding, arrays: Arrays) -> dict[str, Any]:
    return {
        "n_features": learner.n_features_in_,
        "parts": _pack_parts(learner.bank_, "", arrays),
        "banks": _pack_banks(learner.bank_, arrays),
        "threshold": learner._read.get("threshold"),
        "generator": _pack_generator(learner.random_state, learner.rng_, arrays, "generator"),
    }


def _unpack_online(
    learner: OnlineEmbedding, described: Mapping[str, Any], arrays: Arrays
) -> OnlineEmbedding:
    n_features = Number(1, MOST, whole=True).checked(described["n_features"], "n_features", {})
    bank = _smallest_bank(learner, described["settings"])
    _unpack_parts(bank, "", described["parts"], arrays, n_features)
    _unpack_banks(bank, described["banks"], arrays, n_features)
    for each in (described, *described["banks"]):
        _check_names(described["settings"], each["parts"])
    bank.check()
    learner.random_state, rng = _unpack_generator(described["generator"], arrays, "generator")
    learner._go_on(bank, rng, n_features, None)
    if described["threshold"] is not None:
        number = Number(-LARGEST_FLOAT)
        learner._read["threshold"] = number.checked(described["threshold"], "threshold", {})
    return learner


def _smallest_bank(learner: OnlineEmbedding, settings: Mapping[str, Any]) -> Any:
    """A bank of one feature, to be filled: it has checked the settings, and allocated nothing."""
    if settings.get("n_components") is not None:
        Number(1, MOST, whole=True).checked(settings["n_components"], "n_components", {})
        settings = {**settings, "n_components": None}
    return type(learner)(**settings)._make_bank(1)


def _pack_banks(holder: Any, arrays: Arrays) -> list[dict[str, Any]]:
    return [
        {"kind": _bank_kind(bank), "parts": _pack_parts(bank, f"banks.{i}.", arrays)}
        for i, bank in enumerate(getattr(holder, "banks", ()))
    ]


def _unpack_banks(holder: Any, packed: Any, arrays: Arrays, n_features: int) -> None:
    banks = getattr(holder, "banks", ())
    found, expected = [each["kind"] for each in packed], list(map(_bank_kind, banks))
    if found != expected:
        raise ValueError(f"banks are {found}, and of this learner {expected}")
    for i, bank in enumerate(banks):
        _unpack_parts(bank, f"banks.{i}.", packed[i]["parts"], arrays, n_features)


def _bank_kind(bank: Any) -> str:
    return next(name for name, kind in BANKS.items() if kind is type(bank))


def _pack_parts(holder: Any, where: str, arrays: Arrays) -> dict[str, Any]:
    held = vars(holder)
    forgotten = held.keys() - set(PARTS.values()) - FOLLOWS
    if forgotten:
        raise TypeError(f"{type(holder).__name__} has {forgotten}, which no state has a place for")
    return {
        part: _pack_record(held[name], f"{where}{part}", arrays)
        for part, name in PARTS.items()
        if name in held
    }


def _kinds() -> dict[str, Any]:
    return RECORDS | {each.name: each.kind for each in REPRESENTATIONS.values()}


def _pack_record(record: Any, part: str, arrays: Arrays) -> dict[str, Any]:
    """Its plain fields; arrays go to the others."""
    name, kind = next((name, kind) for name, kind in _kinds().items() if is_of(kind, record))
    plain: dict[str, Any] = {"record": name}
    for field, holds in declared(kind).items():
        if isinstance(holds, Array):
            arrays[f"{part}.{field}"] = np.ascontiguousarray(field_of(record, field))
        else:
            plain[field] = holds.plain(field_of(record, field))
    return plain


def _unpack_parts(
    holder: Any, where: str, parts: Mapping[str, Any], arrays: Arrays, n_features: int
) -> None:
    """Give an ensemble, or a bank, what was saved, where it is what such a one may hold."""
    sizes = {"n": n_features, "triangle": n_features * (n_features + 1) // 2}
    kinds = _kinds()
    for part, name in PARTS.items():
        if name not in vars(holder):
            continue
        found, own = parts[part]["record"], vars(holder)[name]
        if found not in kinds:
            raise ForeignStateError(f"{where}{part} is {found!r}, unknown here")
        kind = kinds[found]
        if not (is_of(kind, own) or {kind, type(own)} <= REPRESENTATIONS.keys()):
            raise ValueError(f"{where}{part} is {found!r}, which this learner has not")
        record = _unpack_record(kind, f"{where}{part}", parts[part], arrays, sizes)
        setattr(holder, name, record)
    holder.n_features = n_features


def _unpack_record(
    kind: Any, part: str, plain: Mapping[str, Any], arrays: Arrays, sizes: Sizes
) -> Any:
    found = {}
    for field, holds in declared(kind).items():
        name = f"{part}.{field}"
        value = arrays[name] if isinstance(holds, Array) else plain[field]
        found[field] = holds.checked(value, name, sizes)
    return kind(**found)


def _check_names(settings: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
    """Refuse parts that are not what their learner was asked for by name."""
    for part, plain in parts.items():
        for name in settings.keys() & plain.keys() - {"weight_loss"}:  # of "ader" it is its own
            asked = settings[name]
            if isinstance(asked, str) and asked not in ("auto", plain[name]):
                raise ValueError(
                    f"{name} is {plain[name]!r} in the {part}, and {asked!r} in the settings"
                )


def _pack_generator(seed: Any, generator: Any, arrays: Arrays, part: str) -> dict[str, Any] | None:
    """The state of the generator, unless it is numpy's own, which belongs to everyone."""
    if seed is None:
        return None
    _, key, position, has_gauss, gauss = generator.get_state()
    arrays[f"{part}.key"] = np.asarray(key, dtype=np.uint32)
    shared = isinstance(seed, np.random.RandomState)
    return {
        "random_state": None if shared else _plain(seed),
        "position": int(position),
        "has_gauss": int(has_gauss),
        "gauss": float(gauss),
    }


def _unpack_generator(saved: Mapping[str, Any] | None, arrays: Arrays, part: str) -> Any:
    """The setting ``random_state``, and the generator."""
    if saved is None:
        return None, check_random_state(None)
    key = Array((GENERATOR_SIZE,), 0, 2**32 - 1, np.uint32)
    generator = np.random.RandomState()
    generator.set_state(
        (
            "MT19937",
            key.checked(arrays[f"{part}.key"], f"{part}.key", {}),
            Number(0, GENERATOR_SIZE, whole=True).checked(saved["position"], "position", {}),
            Number(0, 1, whole=True).checked(saved["has_gauss"], "has_gauss", {}),
            Number(-LARGEST_FLOAT).checked(saved["gauss"], "gauss", {}),
        )
    )
    seed = saved["random_state"]
    if seed is None:
        return generator, generator  # one that was passed in is its own setting
    return Number(0, 2**32 - 1, whole=True).checked(seed, "random_state", {}), generator


def _pack_from_labels(learner: Any, arrays: Arrays) -> dict[str, Any]:
    template = learner.learner
    if template is not None:
        seed = template.random_state
        if isinstance(seed, np.random.RandomState):
            raise TypeError("the learner's random_state is a generator; give a number to save it")
        settings = {**_pack_settings(template), "random_state": _plain(seed)}
        template = {"class": type(template).__name__, "settings": settings}
    pairing, more = learner.memory_.pack()
    arrays |= {f"{PAIRING}.{name}": array for name, array in more.items()}
    rng = learner.memory_.rng
    names = getattr(learner, "feature_names_in_", None)
    return {
        "template": template,
        "learner": _pack_any(learner.learner_, arrays),
        "pairing": pairing,
        "feature_names": None if names is None else names.tolist(),
        "generator": _pack_generator(learner.random_state, rng, arrays, f"{PAIRING}.generator"),
    }


def _unpack_from_labels(
    learner: Any, described: Mapping[str, Any], arrays: Arrays, where: str
) -> Any:
    inside = _unpack_any(described["learner"], arrays, where)
    if not isinstance(inside, OnlineLearner):
        raise ValueError(f"a FromLabels around {type(inside).__name__}")
    template = described["template"]
    if template is not None:
        if template["class"] != type(inside).__name__:
            raise ValueError(f"a {template['class']} in the settings, and not in the state")
        learner.learner = type(inside)(**template["settings"])
    part = f"{PAIRING}."
    own = {name.removeprefix(part): a for name, a in arrays.items() if name.startswith(part)}
    learner.random_state, rng = _unpack_generator(
        described["generator"], arrays, f"{PAIRING}.generator"
    )
    learner._go_on(inside, rng, described["pairing"], own, described["feature_names"])
    return learner
