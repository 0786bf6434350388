"""A metric as it was published: what readers are answered from, here and in other processes."""

from typing import Any, NamedTuple

import numpy as np

from metrack.estimators.base import StaticEmbedding
from metrack.estimators.probability import Curve
from metrack.serve.course import Marked
from metrack.storage import State

MATRICES = ("metric", "embedding", "neighbours")


class Snapshot(NamedTuple):
    """A metric as it was published; it never changes."""

    version: int  # sequence of the last judgement behind it
    pairs: int  # that were learned
    metric: StaticEmbedding
    embedding: StaticEmbedding  # as the learner's own transform
    neighbours: StaticEmbedding
    threshold: float
    likelihood: Curve | None  # by squared distance; some learners tell none
    summary: dict[str, Any]
    course: dict[str, Any]  # how it went, for the page
    before: Marked | None  # for neighbours, before the last change


def pack(snapshot: Snapshot) -> State:
    """All of it."""
    arrays = {name: getattr(snapshot, name).components_ for name in MATRICES}
    if snapshot.embedding is snapshot.metric:
        del arrays["embedding"]
    arrays["threshold"] = np.array([snapshot.threshold])
    if snapshot.likelihood is not None:
        arrays["likelihood"] = np.array(snapshot.likelihood)
    before = snapshot.before
    if before is not None:
        arrays["before"] = before.components
    content = {
        "version": snapshot.version,
        "pairs": snapshot.pairs,
        "summary": snapshot.summary,
        "course": snapshot.course,
        "before": None if before is None else before.pairs,
    }
    return State({"snapshot": content}, arrays)


def unpack(state: State) -> Snapshot:
    """The inverse of `pack`."""
    content, arrays = state.content["snapshot"], state.arrays
    metric = StaticEmbedding(arrays["metric"])
    own = arrays.get("embedding")
    before = content["before"]
    return Snapshot(
        content["version"],
        content["pairs"],
        metric,
        metric if own is None else StaticEmbedding(own),
        StaticEmbedding(arrays["neighbours"]),
        float(arrays["threshold"][0]),
        Curve(*arrays["likelihood"].tolist()) if "likelihood" in arrays else None,
        content["summary"],
        content["course"],
        None if before is None else Marked(before, arrays["before"]),
    )
