"""Target learners: ITML's squared loss on fixed targets (Davis, Kulis, Jain, Sra, Dhillon, 2007).

A similar pair is to have a squared distance of at most ``upper``, another of at least ``lower``.
The threshold does not move, so all of a correction goes into the metric.

A gradient step e of (q - g)^2 multiplies what q lacks of its target by about 1 - 2 e g^2: beyond
e = 1 / g^2 each step goes too far by more than was lacking, and rounding errors grow with it. So
no step goes further than to its target.
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
    """A gradient step of (q - g)^2, at most to g, and cut where q would more than double."""
    q = question.q / record.unit
    g = record.upper if question.y > 0.0 else record.lower
    if q <= 0.0 or ((q <= g) if question.y > 0.0 else (q >= g)):
        return Asked(0.0, question.mu)
    step, to_target = 2.0 * question.rate * (q - g) * q, q / g - 1.0  # b q, whatever the units
    step = min(step, to_target) if question.y > 0.0 else max(step, to_target, -0.5)
    return Asked(step / question.q, question.mu)


TARGET = register(Kind("target", Target(), asked))
