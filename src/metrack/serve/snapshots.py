"""A metric as it was published: what readers are answered from, here and in other processes."""

from typing import Any, NamedTuple

import numpy as np

from metrack.estimators.bases.linear import StaticEmbedding
from metrack.estimators.reading.probability import Curve
from metrack.estimators.states.persistence import unpack as unpack_learner
from metrack.serve.course import Marked
from metrack.serve.kinds.reading import Reading
from metrack.serve.kinds.table import kind_of
from metrack.storage import Arrays, State, from_bytes

MATRICES = ("metric", "embedding", "neighbours")


class Snapshot(NamedTuple):
    """A metric as it was published; it never changes."""

    version: int  # sequence of the last judgement behind it
    estimator: str
    reading: Reading
    whole: bytes | None  # the learner, where what is read is a copy of it
    summary: dict[str, Any]
    course: dict[str, Any]  # how it went, for the page
    before: Marked | None  # for neighbours, before the last change


def pack(snapshot: Snapshot) -> State:
    """All of it."""
    if snapshot.whole is None:
        arrays = _matrices(snapshot.reading)
    else:
        arrays = {"whole": np.frombuffer(snapshot.whole, dtype=np.uint8)}
    before = snapshot.before
    if before is not None:
        arrays["before"] = before.components
    content = {
        "version": snapshot.version,
        "estimator": snapshot.estimator,
        "n_features": snapshot.reading.metric.n_features_in_,
        "summary": snapshot.summary,
        "course": snapshot.course,
        "before": None if before is None else before.pairs,
    }
    return State({"snapshot": content}, arrays)


def _matrices(reading: Reading) -> Arrays:
    """What is read where it is all matrices."""
    embeddings: dict[str, Any] = {name: getattr(reading, name) for name in MATRICES}
    if reading.embedding is reading.metric:
        del embeddings["embedding"]
    arrays = {name: each.components_ for name, each in embeddings.items()}
    if reading.threshold is not None:
        arrays["threshold"] = np.array([reading.threshold])
    if reading.likelihood is not None:
        arrays["likelihood"] = np.array(reading.likelihood)
    return arrays


def unpack(state: State) -> Snapshot:
    """The inverse of `pack`."""
    content, arrays = state.content["snapshot"], state.arrays
    whole = arrays["whole"].tobytes() if "whole" in arrays else None
    before = content["before"]
    return Snapshot(
        content["version"],
        content["estimator"],
        _read(arrays) if whole is None else _read_whole(content, whole),
        whole,
        content["summary"],
        content["course"],
        None if before is None else Marked(before, arrays["before"]),
    )


def _read(arrays: Arrays) -> Reading:
    metric = StaticEmbedding(arrays["metric"])
    own = arrays.get("embedding")
    return Reading(
        metric,
        metric if own is None else StaticEmbedding(own),
        StaticEmbedding(arrays["neighbours"]),
        float(arrays["threshold"][0]) if "threshold" in arrays else None,
        Curve(*arrays["likelihood"].tolist()) if "likelihood" in arrays else None,
    )


def _read_whole(content: dict[str, Any], whole: bytes) -> Reading:
    learner = unpack_learner(from_bytes(whole, "the snapshot"), None, "the snapshot")
    return kind_of(content["estimator"]).read(learner, content["n_features"])
