"""Target learners: ITML's squared loss on fixed targets (Davis, Kulis, Jain, Sra, Dhillon, 2007).

A similar pair is to have a squared distance of at most ``upper``, another of at least ``lower``.
The threshold does not move, so all of a correction goes into the metric.
"""

from typing import Annotated, NamedTuple

from metrack.engine.ensemble.kinds.protocol import Asked, Kind, Question, register
from metrack.engine.numerics.kernels import inner
from metrack.engine.numerics.records import TINY, Number


class Target(NamedTuple):
    """The targets, in units of the mean |u|^2."""

    upper: Annotated[float, Number(TINY)] = 0.25
    lower: Annotated[float, Number(TINY)] = 1.75
    unit: Annotated[float, Number(TINY)] = 2.0  # the mean |u|^2 of the pairs as they come


@inner
def asked(record: Target, question: Question) -> Asked:
    """A gradient step of (q - g)^2, cut where q would more than double."""
    q = question.q / record.unit
    g = record.upper if question.y > 0.0 else record.lower
    if (q <= g) if question.y > 0.0 else (q >= g):
        return Asked(0.0, question.mu)
    step = max(2.0 * question.rate * (q - g) * q, -0.5)  # b q, whatever the units
    return Asked(step / question.q, question.mu) if question.q > 0.0 else Asked(0.0, question.mu)


TARGET = register(Kind("target", Target(), asked))
