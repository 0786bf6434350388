"""What was asked and judged, beside the tracker that learned it: in memory, and in a state."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from metrack.engine.numerics.records import MOST, Number
from metrack.estimators.bases.linear import FrozenMetric
from metrack.estimators.choosing.foretold import Foretold, nothing_foretold
from metrack.estimators.choosing.judged import Judged, nothing_judged
from metrack.estimators.states.engine_state import pack_record, unpack_record
from metrack.storage import WRONG, Arrays, CorruptStateError

PART = "asking"  # of the arrays' names


class Moment(NamedTuple):
    """A metric after so many answers."""

    answers: int
    metric: FrozenMetric


class Asking(NamedTuple):
    """All that asking keeps."""

    judged: Judged = nothing_judged()
    foretold: Foretold = nothing_foretold()
    moments: tuple[Moment, ...] = ()  # of the present question
    n_implied: int = 0  # pairs that were learned because they followed from answers


class Progress(NamedTuple):
    """How far asking has come.

    Attributes
    ----------
    answers : int
        Sure ones, to the question of today.
    alike : int
        Of these.
    unsure : int
        Answers "unsure", to the question of today.
    question : int
        Which one it is: 1 at first, and one more with each change that was noticed.
    auc : float or None
        What pairs drawn at random should have, by what the metric said of them before it learned
        their answers; of the later half of all answers. None where it is too early to say.
    ahead : float or None
        Of the judgements "alike", what as many answers again will change at most; see
        `MetricTracker.change_since`. None before the 20th answer, and with `KernelTracker`.
    stop : bool
        Whether that is little: at most ``at_most``.
    """

    answers: int
    alike: int
    unsure: int
    question: int
    auc: float | None
    ahead: float | None
    stop: bool


def pack(asking: Asking, arrays: Arrays) -> dict[str, Any]:
    """What JSON can say; arrays go to the others."""
    for i, each in enumerate(asking.moments):
        arrays[f"{PART}.moments.{i}"] = each.metric.components
    return {
        "judged": pack_record(asking.judged, f"{PART}.judged", arrays),
        "foretold": pack_record(asking.foretold, f"{PART}.foretold", arrays),
        "moments": [
            {"answers": each.answers, "threshold": each.metric.threshold} for each in asking.moments
        ],
        "implied": asking.n_implied,
    }


def unpack(
    saved: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...], where: str
) -> tuple[Asking, int]:
    """The inverse of `pack`, for points of such a shape; and the random state."""
    try:
        seed = Number(0, 2**32 - 1, whole=True).checked(saved["random_state"], "random_state", {})
        found = _unpacked(saved, arrays, shape[1])
    except WRONG as error:
        raise CorruptStateError(f"{where} describes no answers: {error}") from error
    for rows in (found.judged.rows, found.foretold.rows):
        if rows.size and rows.max() >= shape[0]:
            raise ValueError(
                f"{where} has judgements of row {rows.max()}, and X has {shape[0]} rows: give the "
                "earlier points, new ones after them"
            )
    return found, seed


def _unpacked(saved: Mapping[str, Any], arrays: Arrays, n_features: int) -> Asking:
    judged = unpack_record(Judged, f"{PART}.judged", saved["judged"], arrays, {})
    foretold = unpack_record(Foretold, f"{PART}.foretold", saved["foretold"], arrays, {})
    if judged.start[0] > len(judged.y):
        raise ValueError(f"a question began at answer {judged.start[0]} of {len(judged.y)}")
    moments = []
    for i, each in enumerate(saved["moments"]):
        components = arrays[f"{PART}.moments.{i}"]
        if components.ndim != 2 or components.shape[1] != n_features:
            raise ValueError(f"a metric of {n_features} features has shape {components.shape}")
        n_answers = Number(1, MOST, whole=True).checked(each["answers"], "answers", {})
        threshold = Number().checked(each["threshold"], "threshold", {})
        moments.append(Moment(n_answers, FrozenMetric(components, threshold)))
    n_implied = Number(0, MOST, whole=True).checked(saved["implied"], "implied", {})
    return Asking(judged, foretold, tuple(moments), n_implied)
