"""No combiner: there is one expert, and it is trusted."""

from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import Combiner, make_known, nothing_to_activate
from metrack.engine.numerics.kernels import Floats, inner


class Alone(NamedTuple):
    """Has no parameters."""


@inner
def weigh(record: Alone, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """All of the trust."""
    p[0] = 1.0


@inner
def update(record: Alone, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """There is nothing to learn."""


ALONE = make_known("alone", Combiner(Alone(), nothing_to_activate, weigh, update, always_on=True))
