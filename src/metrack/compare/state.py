"""Comparisons on disk, alone or with the tracker that learns from them: JSON and arrays."""

from typing import Any, NamedTuple

import numpy as np

from metrack.compare.kinds import KINDS
from metrack.compare.texts import Text
from metrack.compare.values import Vector
from metrack.compare.vocabulary import Vocabulary
from metrack.engine.numerics.records import Flag, Number, Sizes, declared
from metrack.estimators.states.persistence import pack
from metrack.storage import (
    WRONG,
    Arrays,
    CorruptStateError,
    ForeignStateError,
    State,
)

PART = "comparisons"
VOCABULARIES = ("letters", "words")


class Learned(NamedTuple):
    """What comparisons know."""

    fields: str | dict[str, str]  # the settings
    steps: bool
    kinds: dict[str, str]  # of each field
    whole: list[str]  # fields that are all text
    compared: dict[str, Any]  # a Kind each


def packed(learned: Learned, learner: Any) -> State:
    """Comparisons, and a learner with them, as a state to write."""
    content, arrays = pack(learner) if learner is not None else ({}, {})
    kinds = [
        _pack_kind(kind, f"{PART}.{i}", arrays) for i, kind in enumerate(learned.compared.values())
    ]
    described = {
        "fields": learned.fields,
        "steps": learned.steps,
        "kinds": [list(each) for each in learned.kinds.items()],
        "all_text": learned.whole,
        "compared": [list(each) for each in zip(learned.compared, kinds, strict=True)],
    }
    return State({**content, PART: described}, arrays)


def unpacked(state: State, where: str) -> Learned:
    """What a state holds; ``where`` names it in errors."""
    described = state.content.get(PART)
    if described is None:
        raise ForeignStateError(f"{where} holds no comparisons")
    try:
        kinds = {name: str(kind) for name, kind in described["kinds"]}
        compared = {
            name: _unpack_kind(kinds.get(name), each, f"{PART}.{i}", state.arrays)
            for i, (name, each) in enumerate(described["compared"])
        }
        whole = [str(name) for name in described["all_text"]]
        fields = described["fields"] if described["fields"] == "auto" else dict(described["fields"])
        steps = Flag().checked(described["steps"], "steps", {})
    except WRONG as error:
        raise CorruptStateError(f"{where} describes no comparisons: {error}") from error
    return Learned(fields, steps, kinds, whole, compared)


def _pack_kind(kind: Any, part: str, arrays: Arrays) -> dict[str, Any]:
    if isinstance(kind, Vector):
        return {"width": kind.width}
    if not isinstance(kind, Text):
        return {}
    for name in VOCABULARIES:
        known = getattr(kind, name)._asdict()
        arrays |= {f"{part}.{name}.{field}": array for field, array in known.items()}
    return {"has_codes": kind.has_codes}


def _unpack_kind(name: str | None, described: dict[str, Any], part: str, arrays: Arrays) -> Any:
    kind = KINDS[name]() if name is not None else Text(whole=True)
    if isinstance(kind, Vector):
        kind.width = Number(0, 1 << 24, whole=True).checked(described["width"], "width", {})
    if isinstance(kind, Text):
        kind.has_codes = Flag().checked(described["has_codes"], "has_codes", {})
        for each in VOCABULARIES:
            setattr(kind, each, _unpack_vocabulary(f"{part}.{each}", arrays))
    return kind


def _unpack_vocabulary(part: str, arrays: Arrays) -> Vocabulary:
    sizes: Sizes = {}
    found = Vocabulary(
        **{
            field: holds.checked(arrays[f"{part}.{field}"], f"{part}.{field}", sizes)
            for field, holds in declared(Vocabulary).items()
        }
    )
    if (np.diff(found.keys) <= 0).any():
        raise ValueError(f"{part}.keys do not rise")
    return found
