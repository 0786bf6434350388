"""An engine in a state: its records of what was learned, as arrays and plain numbers, and back.

Their fields declare what they may hold; see `engine.numerics.records`. Here they are only walked.
Names in the file are those of the tables below, whatever Python calls them.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from metrack.engine.ensemble import (
    additive,
    basis,
    calibration,
    combine,
    gradient,
    landmarks,
    leading,
    mirror,
    moments,
    page_hinkley,
    replay,
    scaler,
    scores,
    similar,
    units,
)
from metrack.engine.numerics.records import Array, Sizes, declared, field_of, is_of
from metrack.engine.online import neighbour_votes, oasis, targets
from metrack.engine.representations.protocol import REPRESENTATIONS
from metrack.estimators.resolved import Engine, Resolved
from metrack.estimators.unlabelled import Moments, Neighbours, Start
from metrack.storage import Arrays, ForeignStateError

# Part in the file: attribute of what holds it, an ensemble, a bank or a dense learner. Others keep
# arrays in the same file: "recent" and "history" are of `metrack track`, "pairing" of FromLabels.
PARTS = {
    "counters": "counters",
    "scaler": "scaler",
    "detector": "detector",
    "experts": "experts",
    "scores": "scores",
    "replay": "recent",
    "past": "past",
    "units": "units",
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
FOLLOWS |= {"spaces", "views"}  # the former have parts of their own
FOLLOWS |= {"rule", "ladder", "kind", "pace", "memory", "every"}  # of a bank
# Kind of a part in the file: the record that it becomes. Representations have names of their own.
RECORDS: dict[str, Any] = {
    "counters": combine.COUNTERS,
    "scaler": scaler.SCALER,
    "page_hinkley": page_hinkley.PAGE_HINKLEY,
    "experts": combine.ExpertState,
    "scores": scores.Scores,
    "replay_buffer": replay.ReplayBuffer,
    "past_pairs": replay.Past,
    "units": units.Units,
    "embeddings": gradient.Embeddings,
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
    "neighbours_kept": neighbour_votes.Kept,
    "neighbours_trust": neighbour_votes.Trust,
}


def pack_engine(engine: Engine, arrays: Arrays) -> dict[str, Any]:
    """What it is made of, by names; arrays go to the others."""
    return {
        "parts": _pack_parts(engine, "", arrays),
        **{
            name: [_pack_parts(each, f"{name}.{i}.", arrays) for i, each in enumerate(inside)]
            for name, inside in _inside(engine).items()
        },
    }


def unpack_engine(resolved: Resolved, described: Mapping[str, Any], arrays: Arrays) -> Engine:
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
        part: pack_record(held[name], f"{where}{part}", arrays)
        for part, name in PARTS.items()
        if name in held
    }


def _kinds() -> dict[str, Any]:
    return RECORDS | {each.name: each.kind for each in REPRESENTATIONS.values()}


@cache  # states are written a thousand times a second
def _kind_of(kind: Any) -> tuple[str, Any]:
    """The name in the file of what has this type, or this dtype, and the record itself."""
    return next((name, of) for name, of in _kinds().items() if getattr(of, "dtype", of) == kind)


def pack_record(record: Any, part: str, arrays: Arrays) -> dict[str, Any]:
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
        found[name] = unpack_record(kinds[record], f"{where}{part}", parts[part], arrays, sizes)
    return found


def unpack_record(
    kind: Any, part: str, plain: Mapping[str, Any], arrays: Arrays, sizes: Sizes
) -> Any:
    """The record, if its fields hold what they declare."""
    found = {}
    for field, holds in declared(kind).items():
        name = f"{part}.{field}"
        value = arrays[name] if isinstance(holds, Array) else plain[field]
        found[field] = holds.checked(value, name, sizes)
    return kind(**found)
