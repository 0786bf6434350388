"""Online learners on disk: what was learned, as arrays and plain settings; never code.

A bank is walked by its attributes: tuples of arrays are its state, all else its settings. So no
field of any form of storage is named here.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrack.estimators.inputs import check_preprocessor
from metrack.estimators.online import OnlineEmbedding
from metrack.storage import (
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
    "LEGO": "metrack.estimators.lego",
    "OASIS": "metrack.estimators.oasis",
    "OnlineITML": "metrack.estimators.online_itml",
    "POLA": "metrack.estimators.pola",
    "SADL": "metrack.estimators.sadl",
}
NOT_SAVED = {"preprocessor", "random_state"}  # the data's own; and part of the generator
GENERATOR = "generator.key"
# What entries that are not what they should be lead to.
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def save(learner: OnlineEmbedding, path: str | Path) -> None:
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
    COMID, SADL, OnlineITML, LEGO, POLA or OASIS

    Raises
    ------
    metrack.storage.StateError
        Where the state is damaged, cut short, not one of metrack, or written by a later metrack.
        It is a ValueError, and says which.

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


def pack(learner: OnlineEmbedding) -> State:
    """All that a fitted learner knows."""
    check_is_fitted(learner)
    name = type(learner).__name__
    if name not in CLASSES:
        raise TypeError(f"{name} cannot be saved; these can: {', '.join(CLASSES)}")
    arrays, rest = _pack_bank(learner.bank_)
    learned = {
        "class": name,
        "settings": _pack_settings(learner),
        "n_features": learner.n_features_in_,
        "n_features_at_start": learner._n_features_at_start,
        "bank": rest,
        "threshold": learner._read.get("threshold"),
        "generator": _pack_generator(learner, arrays),
    }
    return State({"learner": learned}, arrays)


def unpack(state: State, preprocessor: Any, where: str) -> OnlineEmbedding:
    """The learner that a state describes."""
    points = check_preprocessor(preprocessor)
    try:
        learner = _unpack(state, where)
    except StateError:
        raise
    except (*WRONG, MemoryError) as error:
        raise CorruptStateError(
            f"{where} describes no learner: {type(error).__name__}: {error}"
        ) from error
    width = learner.n_features_in_
    if points is not None and not callable(points) and points.shape[1] != width:
        raise ValueError(
            f"preprocessor has {points.shape[1]} features, but the metric was learned on {width}"
        )
    learner.preprocessor, learner.preprocessor_ = preprocessor, points
    return learner


def _unpack(state: State, where: str) -> OnlineEmbedding:
    learned, arrays = state.content["learner"], state.arrays
    if learned["class"] not in CLASSES:
        raise ForeignStateError(f"{where} holds a learner {learned['class']!r}, unknown here")
    kind = getattr(import_module(CLASSES[learned["class"]]), learned["class"])
    learner: OnlineEmbedding = kind(**learned["settings"])
    width, start = learned["n_features"], learned["n_features_at_start"]
    if not (0 < start <= width <= max(array.size for array in arrays.values())):
        # Before anything is allocated for them.
        raise CorruptStateError(f"{where} describes {width} features, but its arrays have others")
    learner._start(start, None)
    if width != start:
        learner.bank_.widen(width, width)
    learner.n_features_in_ = width
    _unpack_bank(learner.bank_, learned["bank"], arrays, where)
    _unpack_generator(learner, learned["generator"], arrays)
    if learned["threshold"] is not None:
        learner._read["threshold"] = float(learned["threshold"])
    return learner


def _pack_settings(learner: OnlineEmbedding) -> dict[str, Any]:
    settings = {k: v for k, v in learner.get_params().items() if k not in NOT_SAVED}
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    """What JSON gives back as it was."""
    value = value.item() if isinstance(value, np.generic) else value
    json.dumps(value, allow_nan=False)
    return value


def _pack_bank(bank: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {}
    rest: dict[str, Any] = {}
    for part, value in _parts(bank).items():
        if _is_state(value):
            arrays.update({f"{part}.{field}": a for field, a in value._asdict().items()})
            rest[part] = type(value).__name__
        elif hasattr(value, "_asdict"):
            rest[part] = {field: _plain(each) for field, each in value._asdict().items()}
        else:
            rest[part] = _plain(value)
    return arrays, rest


def _unpack_bank(bank: Any, rest: dict[str, Any], arrays: Arrays, where: str) -> None:
    """Give a new bank what was saved, where it is what such a bank may hold."""
    for part, value in _parts(bank).items():
        saved = rest[part]
        if _is_state(value):
            if saved != type(value).__name__:
                raise ForeignStateError(
                    f"{where} keeps its {part} as {saved}, and this version of metrack as "
                    f"{type(value).__name__}; load it with the version that its manifest names"
                )
            fields = {k: _checked(arrays, f"{part}.{k}", v) for k, v in value._asdict().items()}
            setattr(bank, part, value._replace(**fields))
        elif hasattr(value, "_asdict"):
            plain = {field: _same_type(saved[field], v) for field, v in value._asdict().items()}
            setattr(bank, part, value._replace(**plain))
        else:
            setattr(bank, part, _same_type(saved, value))


def _same_type(saved: Any, fresh: Any) -> Any:
    """A plain value, where it is of the expected type; JSON makes lists of tuples."""
    if isinstance(fresh, tuple):
        return tuple(_same_type(a, b) for a, b in zip(saved, fresh, strict=True))
    if type(saved) is not type(_plain(fresh)):
        raise TypeError(f"{saved!r} in the place of {fresh!r}")
    return saved


def _checked(arrays: Arrays, name: str, fresh: Any) -> Any:
    array = arrays[name]
    if array.dtype != fresh.dtype or array.ndim != fresh.ndim:
        raise CorruptStateError(
            f"{name} is {array.dtype} with {array.ndim} dimensions; expected {fresh.dtype} with "
            f"{fresh.ndim}"
        )
    if any(
        a < b for a, b in zip(array.shape, fresh.shape, strict=True)
    ):  # arrays grow with the stream, along any axis, and never shrink
        raise CorruptStateError(f"{name} has shape {array.shape}, at least {fresh.shape} expected")
    return array


def _parts(bank: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(bank).items() if not name.startswith("_")}


def _is_state(value: Any) -> bool:
    return hasattr(value, "_asdict") and all(isinstance(each, np.ndarray) for each in value)


def _pack_generator(learner: OnlineEmbedding, arrays: Arrays) -> dict[str, Any] | None:
    """The state of the generator, unless it is numpy's own, which belongs to everyone."""
    if learner.random_state is None:
        return None
    _, key, position, has_gauss, gauss = learner.rng_.get_state()
    arrays[GENERATOR] = np.asarray(key, dtype=np.uint32)
    seed = learner.random_state
    shared = isinstance(seed, np.random.RandomState)
    return {
        "random_state": None if shared else _plain(seed),
        "position": int(position),
        "has_gauss": int(has_gauss),
        "gauss": float(gauss),
    }


def _unpack_generator(
    learner: OnlineEmbedding, saved: dict[str, Any] | None, arrays: Arrays
) -> None:
    if saved is None:
        return
    generator = np.random.RandomState()
    generator.set_state(
        ("MT19937", arrays[GENERATOR], saved["position"], saved["has_gauss"], saved["gauss"])
    )
    learner.rng_ = generator
    # A generator that was passed in is its own setting.
    learner.random_state = generator if saved["random_state"] is None else saved["random_state"]
