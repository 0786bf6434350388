"""An engine in a state: its records of what was learned, as arrays and plain numbers, and back.

Their fields declare what they may hold; see `engine.numerics.records`. Here they are only walked.
Names in the file are those of the tables below, whatever Python calls them.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from metrack.engine.ensemble import (
    basis,
    combine,
    landmarks,
    page_hinkley,
    scaler,
    scores,
    similar,
    units,
)
from metrack.engine.learners import additive, calibration, gradient, memory, mirror, moment, replay
from metrack.engine.numerics.records import Array, Sizes, declared, field_of, is_of
from metrack.engine.online import neighbour_votes, oasis, targets, votes
from metrack.engine.representations.protocol import REPRESENTATIONS
from metrack.estimators.bases.unlabelled import Moments, Neighbours, Start
from metrack.estimators.choosing.foretold import Foretold
from metrack.estimators.choosing.judged import Judged
from metrack.estimators.resolved.record import Engine, Resolved
from metrack.storage import Arrays, ForeignStateError

# Kind of a part in the file: the record that it becomes. Representations have names of their own.
RECORDS: dict[str, Any] = {
    "counters": combine.COUNTERS,
    "scaler": scaler.SCALER,
    "page_hinkley": page_hinkley.PAGE_HINKLEY,
    "experts": combine.ExpertState,
    "scores": scores.Scores,
    "replay_buffer": memory.ReplayBuffer,
    "past_pairs": memory.Past,
    "units": units.Units,
    "embeddings": gradient.Embeddings,
    "rates": mirror.Rates,
    "generator": replay.GENERATOR,
    "additive": additive.Additive,
    "covariances": moment.Covariances,
    "calibration": calibration.Calibration,
    "similar_pairs": similar.Similar,
    "directions": basis.Directions,
    "landmarks": landmarks.Landmarks,
    "plain_counters": targets.COUNTERS,
    "dense_metric": targets.Metric,
    "similarity": oasis.Similarity,
    "unlabelled_points": Moments,
    "neighbours": Neighbours,
    "start": Start,
    "neighbours_kept": neighbour_votes.Kept,
    "neighbours_trust": votes.Trust,
    "judged": Judged,
    "foretold": Foretold,
}


def pack_engine(engine: Engine, arrays: Arrays) -> dict[str, Any]:
    """What each of its holders has, by names; arrays go to the others."""
    return {
        name: {
            part: pack_record(getattr(holder, part), f"{name}.{part}", arrays)
            for part in holder.STATE
        }
        for name, holder in engine.holders().items()
    }


def unpack_engine(resolved: Resolved, described: Mapping[str, Any], arrays: Arrays) -> Engine:
    """The engine with what it had learned.

    Which parts there are is learned from the smallest such engine; the whole one is built when the
    file was found to have them: nothing is allocated for what a manifest only claims.
    """
    small, sizes = _smallest(resolved).holders(), resolved.sizes()
    if described.keys() != small.keys():
        raise ValueError(f"a state of {list(described)}, expected {list(small)}")
    found = {
        name: _unpack_parts(holder, name, described[name], arrays, _symbols(sizes.get(name)))
        for name, holder in small.items()
    }
    engine: Any = resolved.build()
    for name, holder in engine.holders().items():
        for part, record in found[name].items():
            setattr(holder, part, record)
    engine.check()
    return engine  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _smallest(resolved: Resolved) -> Any:
    """An engine to look at: states of many keys have the same settings."""
    return resolved.smallest().build()


def _symbols(n_features: int | None) -> Sizes:
    """The sizes that arrays of so many features have."""
    if n_features is None:
        return {}
    return {"n": n_features, "triangle": n_features * (n_features + 1) // 2}


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
    holder: Any, where: str, parts: Mapping[str, Any], arrays: Arrays, sizes: Sizes
) -> dict[str, Any]:
    """What was saved of a holder, where such a one may hold it."""
    kinds, found = _kinds(), {}
    if parts.keys() != set(holder.STATE):
        raise ValueError(f"{where} has parts {list(parts)}, expected {list(holder.STATE)}")
    for part in holder.STATE:
        record = parts[part]["record"]
        if record not in kinds:
            raise ForeignStateError(f"{where}.{part} is {record!r}, unknown here")
        if not is_of(kinds[record], getattr(holder, part)):
            raise ValueError(f"{where}.{part} is {record!r}, which this learner has not")
        found[part] = unpack_record(kinds[record], f"{where}.{part}", parts[part], arrays, sizes)
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
