"""Online learners on disk: what was learned, as arrays and plain settings; never code.

A state says what the learner's settings came to; see `estimators.resolved`. Its engine is built
from that, and then given what was learned; see `engine_state`.
"""

import json
from collections.abc import Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.records import LARGEST_FLOAT, MOST, Array, Number
from metrack.engine.online.neighbour_votes import Kept, Parts
from metrack.engine.online.votes import Trust
from metrack.estimators.bases.unlabelled import Moments, Neighbours, Points, Start, no_neighbours
from metrack.estimators.inputs import check_preprocessor, restore_names, take_names
from metrack.estimators.resolved.record import from_plain, to_plain
from metrack.estimators.states.engine_state import (
    pack_engine,
    pack_record,
    unpack_engine,
    unpack_record,
)
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

if TYPE_CHECKING:
    from metrack.estimators.bases.online_embedding import OnlineEmbedding

NOT_SAVED = {"preprocessor", "random_state", "learner"}  # the data's; part of the generator; nested
GENERATOR_SIZE = 624  # numbers of a Mersenne twister
PAIRING = "pairing"  # part of the arrays' names that are of a FromLabels, and not of its learner


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
    COMID, MetricTracker, KernelTracker, OnlineITML, LEGO, POLA, OASIS, FromLabels or DriftKNN

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
    learner : COMID, MetricTracker, KernelTracker, OnlineITML, LEGO, POLA, OASIS, FromLabels or
    DriftKNN single : bool
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
            kind = type(learner).__name__
            raise ValueError(f"{where} holds a {kind}, which has no preprocessor")
        return learner
    width = learner.n_features_in_
    if points is not None and not callable(points) and points.shape[1] != width:
        raise ValueError(
            f"preprocessor has {points.shape[1]} features, but the metric was learned on {width}"
        )
    take_names(learner, preprocessor, reset=not hasattr(learner, "feature_names_in_"))
    learner.preprocessor, learner.preprocessor_ = preprocessor, points
    return learner


def _pack_any(learner: Any, arrays: Arrays) -> dict[str, Any]:
    name = type(learner).__name__
    if name not in SAVED:
        raise TypeError(f"{name} cannot be saved; these can: {', '.join(SAVED)}")
    described = {"class": name, "settings": _pack_settings(learner)}
    if name in ONLINE:
        return described | _pack_online(learner, arrays)
    if name == "DriftKNN":
        return described | _pack_drift_knn(learner, arrays)
    return described | _pack_from_labels(learner, arrays)


def _unpack_any(described: Mapping[str, Any], arrays: Arrays, where: str) -> Any:
    name = described["class"]
    if name not in SAVED:
        raise ForeignStateError(f"{where} holds a learner {name!r}, unknown here")
    learner = estimator(name)(**described["settings"])
    if name in ONLINE:
        return _unpack_online(learner, described, arrays)
    if name == "DriftKNN":
        return _unpack_drift_knn(learner, described, arrays, where)
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


def _pack_online(learner: "OnlineEmbedding", arrays: Arrays) -> dict[str, Any]:
    if "components" in learner.set_by_hand_:
        raise ValueError(
            "components_ was set by hand, and a state holds what was learned: keep that matrix "
            "yourself, and save before setting it or after learning more"
        )
    return {
        "resolved": to_plain(learner.resolved_),
        "engine": pack_engine(learner.engine_, arrays),
        **_pack_points(learner.points_, arrays),
        "threshold": learner.set_by_hand_.get("threshold"),
        **_pack_names(learner),
        "generator": _pack_generator(learner.random_state, learner.rng_, arrays, "generator"),
    }


def _unpack_online(
    learner: "OnlineEmbedding", described: Mapping[str, Any], arrays: Arrays
) -> "OnlineEmbedding":
    resolved = from_plain(described["resolved"])
    learner.resolve(resolved.n_features)  # refuses settings that come to nothing
    _check_settings(described["settings"], described["resolved"])
    engine = unpack_engine(resolved, described["engine"], arrays)
    learner.random_state, rng = _unpack_generator(described["generator"], arrays, "generator")
    learner.restore(resolved, engine, rng)
    learner.points_ = _unpack_points(described, arrays, resolved.n_features)
    restore_names(learner, described.get("feature_names"), resolved.n_features)
    if described["threshold"] is not None:
        number = Number(-LARGEST_FLOAT)
        threshold = number.checked(described["threshold"], "threshold", {})
        learner.set_by_hand_["threshold"] = threshold
    return learner


def _pack_names(learner: Any) -> dict[str, Any]:
    names = getattr(learner, "feature_names_in_", None)
    return {"feature_names": None if names is None else names.tolist()}


def _pack_points(points: Points | None, arrays: Arrays) -> dict[str, Any]:
    if points is None:
        return {"points": None}
    parts = zip(("points", "neighbours", "start"), points, strict=True)
    return {name: part and pack_record(part, name, arrays) for name, part in parts}


def _unpack_points(described: Mapping[str, Any], arrays: Arrays, n_features: int) -> Points | None:
    """What is known of unlabelled points, if any were shown."""
    if (moments := described.get("points")) is None:
        return None
    sizes, neighbours, start = {"n": n_features}, no_neighbours(n_features), None
    if (found := described.get("neighbours")) is not None:
        neighbours = unpack_record(Neighbours, "neighbours", found, arrays, sizes)
    if (found := described.get("start")) is not None:
        start = unpack_record(Start, "start", found, arrays, sizes)
    return Points(unpack_record(Moments, "points", moments, arrays, sizes), neighbours, start)


def _check_settings(settings: Mapping[str, Any], resolved: Mapping[str, Any]) -> None:
    """Refuse what does not follow from its learner's settings, where these have it by name."""
    own = resolved.get("learners")
    for record in (resolved, *([own] if isinstance(own, dict) else [])):
        for name in settings.keys() & record.keys() - {"weight_loss"}:  # of "ader" it is its own
            asked = settings[name]
            if isinstance(asked, str) and asked not in ("auto", record[name]):
                raise ValueError(f"{name} is {record[name]!r} where the settings say {asked!r}")


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
    return {
        "template": template,
        "learner": _pack_any(learner.learner_, arrays),
        "pairing": pairing,
        **_pack_names(learner),
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


def _pack_drift_knn(learner: Any, arrays: Arrays) -> dict[str, Any]:
    parts = learner.votes_.pack()._asdict()
    return {
        "metric": _pack_any(learner.metric_, arrays),
        "labels": [_plain(label) for label in learner.labels()],
        "n_points": learner.votes_.n_points,
        "parts": {name: pack_record(part, f"votes.{name}", arrays) for name, part in parts.items()},
        **_pack_names(learner),
    }


def _unpack_drift_knn(
    learner: Any, described: Mapping[str, Any], arrays: Arrays, where: str
) -> Any:
    metric = _unpack_any(described["metric"], arrays, where)
    if type(metric).__name__ != "FromLabels":
        raise ValueError(f"a DriftKNN around {type(metric).__name__}")
    saved, sizes = described["parts"], {"n": metric.n_features_in_}
    kept = unpack_record(Kept, "votes.kept", saved["kept"], arrays, sizes)
    parts = Parts(kept, unpack_record(Trust, "votes.trust", saved["trust"], arrays, {}))
    n_points = Number(0, MOST, whole=True).checked(described["n_points"], "n_points", {})
    learner.random_state = metric.random_state
    return learner.restore(metric, parts, n_points, described["labels"], described["feature_names"])
