"""Margin learners: the implicit hinge step on M and mu together, as in COMID with Burg."""

from typing import NamedTuple

from metrack.engine.ensemble.kinds.protocol import Asked, Kind, Question, register
from metrack.engine.numerics.divergences import BURG, LARGEST, gain
from metrack.engine.numerics.kernels import inner
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.steps import IMPLICIT, Way, signed_step
from metrack.engine.numerics.steps import Question as StepQuestion


class Margin(NamedTuple):
    """Has no parameters."""


@inner
def asked(record: Margin, question: Question) -> Asked:
    """No further than to a margin of 1."""
    rate, y, q, mu = question
    b = signed_step(Way(IMPLICIT, HINGE, BURG), StepQuestion(rate, y, q, mu, 1.0))
    return Asked(b, min(max(mu + gain(BURG, mu, b), 1.0), LARGEST))


MARGIN = register(Kind("margin", Margin(), asked))
