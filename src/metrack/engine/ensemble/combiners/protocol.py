"""What a combiner is: how much each expert is trusted, from the losses it has suffered.

A combiner is a NamedTuple class of its parameters, if any, and three compiled functions. It keeps
some numbers an expert, a row of ``statistics``, and perhaps rows of its own after those. Losses of
experts are in [0, 1]; the instantaneous regret is r_j = sum_i p_i l_i - l_j.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from metrack.engine.numerics.dispatch import by_type
from metrack.engine.numerics.kernels import Floats, inner

Record: TypeAlias = tuple[Any, ...]  # of a combiner's parameters


class Activation(NamedTuple):
    """An expert that starts anew."""

    length: float  # of its interval
    tau: float  # when it starts, on the cover's clock
    n_experts: int  # active ones


@dataclass(frozen=True)
class Combiner:
    """A combiner; its functions do what those of this module of the same names say."""

    record: Any  # its class tells the combiner from others, its fields are parameters
    activate: Any
    weigh: Any
    update: Any
    always_on: bool = False  # experts are all active from the first pair on, not on the cover
    linearised: bool = False  # it is told losses linearised at the ensemble's own prediction
    n_statistics: int = 4  # numbers that it keeps of an expert
    own_rows: int = 0  # of statistics after the experts'; for experts that are always on


COMBINERS: dict[str, Combiner] = {}  # that a user may choose
RECORDS: dict[str, Record] = {}  # of all, by the names under which they are saved
_BY_TYPE: dict[type, Combiner] = {}


def register(name: str, combiner: Combiner) -> Combiner:
    """Make a combiner known by a name, and give it back."""
    COMBINERS[name] = make_known(name, combiner)
    return combiner


def make_known(name: str, combiner: Combiner) -> Combiner:
    """Make a combiner known to compiled code and to saved states alone, and give it back."""
    RECORDS[name] = combiner.record
    _BY_TYPE[type(combiner.record)] = combiner
    return combiner


def combiner_of(record: Any) -> Combiner:
    """The combiner whose parameters these are."""
    return _BY_TYPE[type(record)]


@by_type(_BY_TYPE)
def activate(record: Record, statistics: Floats, start: Activation) -> None:
    """Fill the row of an expert that starts anew; it is 0."""
    raise NotImplementedError


@by_type(_BY_TYPE)
def weigh(record: Record, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """Leave the weights of the n active experts before round t (counted from 1) in p."""
    raise NotImplementedError


@by_type(_BY_TYPE)
def update(record: Record, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Learn from the losses that the n active experts have suffered."""
    raise NotImplementedError


@inner
def probabilities(record: Record, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """Normalised weights of the n active experts before round t (counted from 1)."""
    weigh(record, statistics, n, t, p)
    total = 0.0
    for j in range(n):
        total += p[j]
    for j in range(n):
        p[j] = p[j] / total if total > 0.0 else 1.0 / n


@inner
def mean_loss(n: int, p: Floats, losses: Floats) -> float:
    """What an expert drawn by p loses on average."""
    expected = 0.0
    for j in range(n):
        expected += p[j] * losses[j]
    return expected


@inner
def nothing_to_activate(record: Record, statistics: Floats, start: Activation) -> None:
    """An expert's statistics start at 0."""


@inner
def weigh_by_first(record: Record, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """Weights that are the statistics' first column."""
    for j in range(n):
        p[j] = statistics[j, 0]
