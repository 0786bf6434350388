"""Online learners on disk: what was learned, as arrays and plain settings; never code.

A state says what the learner's settings came to; see `estimators.resolved`. Its engine is built
from that, and then given the records of what was learned, whose fields declare what they may hold;
see `engine.numerics.records`. Here they are only walked. Names in the file are those of the tables
below, whatever Python calls them.
"""

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble import (
    additive,
    basis,
    calibration,
    combine,
    landmarks,
    leading,
    mirror,
    moments,
    page_hinkley,
    replay,
    scaler,
    similar,
)
from metrack.engine.numerics.records import (
    LARGEST_FLOAT,
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
from metrack.estimators.resolved import Engine, Resolved, from_plain, to_plain
from metrack.estimators.settings import Seed
from metrack.estimators.unlabelled import Moments, Neighbours, Points, Start, no_neighbours
from metrack.registry import ONLINE, PAIR_LEARNERS, SAVED, estimator
from metrack.storage import (
    WRONG,
    Arrays,
    CorruptStateError,
    ForeignStateError,
    State,
    StateError,
    StateFolder,
    from_bytes,
    read,
    to_bytes,
)

# Part in the file: attribute of what holds it, an ensemble, a bank or a dense learner. Others keep
# arrays in the same file: "recent" and "history" are of `metrack track`, "pairing" of FromLabels.
PARTS = {
    "counters": "counters",
    "scaler": "scaler",
    "detector": "detector",
    "experts": "experts",
    "replay": "recent",
    "rates": "rates",
    "learners": "learners",
    "generator": "generator",
    "calibration": "calibration",
    "similar": "similar",
    "basis": "basis",
    "directions": "directions",
    "landmarks": "landmarks",
}
# From what the settings came to.
FOLLOWS = {"n_features", "banks", "spread", "roster", "combination"}
FOLLOWS |= {"spaces"}  # which have parts of their own
FOLLOWS |= {"rule", "ladder", "kind", "pace", "memory"}  # of a bank
# Kind of a part in the file: the record that it becomes. Representations have names of their own.
RECORDS: dict[str, Any] = {
    "counters": combine.COUNTERS,
    "scaler": scaler.SCALER,
    "page_hinkley": page_hinkley.PAGE_HINKLEY,
    "experts": combine.ExpertState,
    "replay_buffer": replay.ReplayBuffer,
    "rates": mirror.Rates,
    "generator": replay.GENERATOR,
    "additive": additive.Additive,
    "covariances": moments.Covariances,
    "calibration": calibration.Calibration,
    "similar_pairs": similar.Similar,
    "basis": basis.Basis,
    "directions": leading.Directions,
    "landmarks": landmarks.Landmarks,
    "plain_counters": targets.COUNTERS,
    "dense_metric": targets.Metric,
    "similarity": oasis.Similarity,
    "unlabelled_points": Moments,
    "neighbours": Neighbours,
    "start": Start,
}
NOT_SAVED = {"preprocessor", "random_state", "learner"}  # the data's; part of the generator; nested
GENERATOR_SIZE = 624  # numbers of a Mersenne twister
PAIRING = "pairing"  # part of the arrays' names that are of a FromLabels, and not of its learner


class Online(Protocol):
    """What is asked of a learner; see `estimators.online`, which imports this module."""

    random_state: Seed
    resolved_: Resolved
    engine_: Any
    rng_: Any
    set_by_hand_: dict[str, Any]
    points_: Points | None

    def resolve(self, n_features: int) -> Resolved:
        """What the settings come to."""

    def restore(self, resolved: Resolved, engine: Engine, rng: Any) -> Any:
        """Go on from what an engine knows."""


def save(learner: Any, path: str | Path) -> None:
    """Write a learner into a folder; see `OnlineEmbedding.save`."""
    state = pack(learner)
    with StateFolder(Path(path)) as folder:
        folder.write(state)


def load(path: str | Path | bytes | bytearray | memoryview, preprocessor: Any = None) -> Any:
    """A learner as it was saved, by its ``save``, by ``metrack track`` or by `metrack.spark`.

    It goes on exactly as the one that was saved would have.

    Parameters
    ----------
    path : path of a folder or of a zip of one, or bytes
        A zip is what ``metrack serve`` exports; bytes, of such a zip, are what `metrack.spark`
        gives as states.
    preprocessor : array, CSR matrix or callable, optional
        Points that pairs of row numbers refer to; they are not part of a saved state.

    Returns
    -------
    COMID, SADL, KernelSADL, OnlineITML, LEGO, POLA, OASIS or FromLabels

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
    if isinstance(path, str | Path):
        return unpack(read(Path(path)), preprocessor, where=str(path))
    where = f"the state of {len(path):,} bytes"
    return unpack(from_bytes(path, where), preprocessor, where)


def dump(learner: Any, single: bool = False) -> bytes:
    """All that a fitted learner knows as bytes, which `load` reads.

    Parameters
    ----------
    learner : COMID, SADL, KernelSADL, OnlineITML, LEGO, POLA, OASIS or FromLabels
    single : bool
        In single precision: half the size. What is loaded then is the same metric but for
        rounding, and goes on almost as the learner would, but not bit for bit.
    """
    return to_bytes(pack(learner), single)


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
    if type(learner).__name__ not in ONLINE:
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
    if name not in SAVED:
        raise TypeError(f"{name} cannot be saved; these can: {', '.join(SAVED)}")
    described = {"class": name, "settings": _pack_settings(learner)}
    if name in ONLINE:
        return described | _pack_online(learner, arrays)
    return described | _pack_from_labels(learner, arrays)


def _unpack_any(described: Mapping[str, Any], arrays: Arrays, where: str) -> Any:
    name = described["class"]
    if name not in SAVED:
        raise ForeignStateError(f"{where} holds a learner {name!r}, unknown here")
    learner = estimator(name)(**described["settings"])
    if name in ONLINE:
        return _unpack_online(learner, described, arrays)
    return _unpack_from_labels(learner, described, arrays, where)


def _pack_settings(learner: Any) -> dict[str, Any]:
    kind: Any = type(learner)
    settings = {name: getattr(learner, name) for name in _saved_settings(kind)}
    for name, value in settings.items():
        if callable(value):
            raise TypeError(
                f"{name}={value!r} is a function, and a state holds no code: it cannot be saved; "
                f"use a {name} that has a name"
            )
    return {name: _plain(value) for name, value in settings.items()}


@cache  # a signature takes long
def _saved_settings(kind: Any) -> list[str]:
    """Names of the settings that go to a state."""
    return sorted(signature(kind).parameters.keys() - NOT_SAVED)


def _plain(value: Any) -> Any:
    """What JSON gives back as it was."""
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value, allow_nan=False)
    return value


def _pack_online(learner: Online, arrays: Arrays) -> dict[str, Any]:
    if "components" in learner.set_by_hand_:
        raise ValueError(
            "components_ was set by hand, and a state holds what was learned: keep that matrix "
            "yourself, and save before setting it or after learning more"
        )
    return {
        "resolved": to_plain(learner.resolved_),
        "parts": _pack_parts(learner.engine_, "", arrays),
        **{
            name: [_pack_parts(each, f"{name}.{i}.", arrays) for i, each in enumerate(inside)]
            for name, inside in _inside(learner.engine_).items()
        },
        **_pack_points(learner.points_, arrays),
        "threshold": learner.set_by_hand_.get("threshold"),
        "generator": _pack_generator(learner.random_state, learner.rng_, arrays, "generator"),
    }


def _unpack_online(learner: Online, described: Mapping[str, Any], arrays: Arrays) -> Online:
    resolved = from_plain(described["resolved"])
    learner.resolve(resolved.n_features)  # refuses settings that come to nothing
    _check_settings(described["settings"], described["resolved"])
    engine = _unpack_engine(resolved, described, arrays)
    learner.random_state, rng = _unpack_generator(described["generator"], arrays, "generator")
    learner.restore(resolved, engine, rng)
    learner.points_ = _unpack_points(described, arrays, resolved.n_features)
    if described["threshold"] is not None:
        number = Number(-LARGEST_FLOAT)
        threshold = number.checked(described["threshold"], "threshold", {})
        learner.set_by_hand_["threshold"] = threshold
    return learner


def _pack_points(points: Points | None, arrays: Arrays) -> dict[str, Any]:
    if points is None:
        return {"points": None}
    moments, neighbours, start = points
    return {
        "points": _pack_record(moments, "points", arrays),
        "neighbours": _pack_record(neighbours, "neighbours", arrays),
        "start": None if start is None else _pack_record(start, "start", arrays),
    }


def _unpack_points(described: Mapping[str, Any], arrays: Arrays, n_features: int) -> Points | None:
    """What is known of unlabelled points; states before there was such a part have none."""
    if (moments := described.get("points")) is None:
        return None
    sizes, neighbours, start = {"n": n_features}, no_neighbours(n_features), None
    if (found := described.get("neighbours")) is not None:
        neighbours = _unpack_record(Neighbours, "neighbours", found, arrays, sizes)
    if (found := described.get("start")) is not None:
        start = _unpack_record(Start, "start", found, arrays, sizes)
    return Points(_unpack_record(Moments, "points", moments, arrays, sizes), neighbours, start)


def _check_settings(settings: Mapping[str, Any], resolved: Mapping[str, Any]) -> None:
    """Refuse what does not follow from its learner's settings, where these have it by name."""
    for record in (resolved, *resolved.get("banks", ())):
        for name in settings.keys() & record.keys() - {"weight_loss"}:  # of "ader" it is its own
            asked = settings[name]
            if isinstance(asked, str) and asked not in ("auto", record[name]):
                raise ValueError(f"{name} is {record[name]!r} where the settings say {asked!r}")


def _unpack_engine(resolved: Resolved, described: Mapping[str, Any], arrays: Arrays) -> Engine:
    """The engine with what it had learned.

    Which parts there are is learned from the smallest such engine; the whole one is built when the
    file was found to have them: nothing is allocated for what a manifest only claims.
    """
    small = _smallest(resolved)
    found = [_unpack_parts(small, "", described["parts"], arrays, resolved.n_features)]
    sizes = {
        "banks": getattr(resolved, "dimensions", list),
        "spaces": getattr(resolved, "widths", list),
    }
    for name, own in _inside(small).items():
        saved = described[name]
        if len(saved) != len(own):
            raise ValueError(f"there are {len(saved)} {name}, and of this learner {len(own)}")
        found += [
            _unpack_parts(each, f"{name}.{i}.", parts, arrays, size)
            for i, (each, parts, size) in enumerate(zip(own, saved, sizes[name](), strict=True))
        ]
    engine: Any = resolved.build()
    holders = [engine, *(each for inside in _inside(engine).values() for each in inside)]
    for holder, records in zip(holders, found, strict=True):
        for name, record in records.items():
            setattr(holder, name, record)
    engine.check()
    return engine  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _smallest(resolved: Resolved) -> Any:
    """An engine to look at: states of many keys have the same settings."""
    return resolved.smallest().build()


def _inside(engine: Any) -> dict[str, tuple[Any, ...]]:
    """What an engine is made of, by the names that these have in it and in a state."""
    names = ["banks", "spaces"] if hasattr(engine, "spaces") else ["banks"]
    return {name: getattr(engine, name, ()) for name in names}


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


@cache  # states are written a thousand times a second
def _kind_of(kind: Any) -> tuple[str, Any]:
    """The name in the file of what has this type, or this dtype, and the record itself."""
    return next((name, of) for name, of in _kinds().items() if getattr(of, "dtype", of) == kind)


def _pack_record(record: Any, part: str, arrays: Arrays) -> dict[str, Any]:
    """Its plain fields; arrays go to the others."""
    own: Any = record.dtype if isinstance(record, np.ndarray) else type(record)
    name, kind = _kind_of(own)
    plain: dict[str, Any] = {"record": name}
    for field, holds in declared(kind).items():
        if isinstance(holds, Array):
            arrays[f"{part}.{field}"] = np.ascontiguousarray(field_of(record, field))
        else:
            plain[field] = holds.plain(field_of(record, field))
    return plain


def _unpack_parts(
    holder: Any, where: str, parts: Mapping[str, Any], arrays: Arrays, n_features: int
) -> dict[str, Any]:
    """By attribute, what was saved of an ensemble or a bank, where such a one may hold it."""
    sizes = {"n": n_features, "triangle": n_features * (n_features + 1) // 2}
    kinds, found = _kinds(), {}
    own = {part: name for part, name in PARTS.items() if name in vars(holder)}
    if parts.keys() - own.keys():
        raise ValueError(f"{where} has parts {list(parts)}, expected {list(own)}")
    for part, name in own.items():
        record = parts[part]["record"]
        if record not in kinds:
            raise ForeignStateError(f"{where}{part} is {record!r}, unknown here")
        if not is_of(kinds[record], vars(holder)[name]):
            raise ValueError(f"{where}{part} is {record!r}, which this learner has not")
        found[name] = _unpack_record(kinds[record], f"{where}{part}", parts[part], arrays, sizes)
    return found


def _unpack_record(
    kind: Any, part: str, plain: Mapping[str, Any], arrays: Arrays, sizes: Sizes
) -> Any:
    found = {}
    for field, holds in declared(kind).items():
        name = f"{part}.{field}"
        value = arrays[name] if isinstance(holds, Array) else plain[field]
        found[field] = holds.checked(value, name, sizes)
    return kind(**found)


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
    pairing, more = learner.buffer_.pack()
    arrays |= {f"{PAIRING}.{name}": array for name, array in more.items()}
    rng = learner.buffer_.rng
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
    if type(inside).__name__ not in PAIR_LEARNERS:
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
    learner.restore(inside, rng, described["pairing"], own, described["feature_names"])
    return learner
