"""What a kind of learner is: the step that a pair asks for, in the LogDet geometry.

A kind is a NamedTuple class of its parameters and one compiled function. M^-1 moves by b uu', so
that the pair's squared distance q becomes q / (1 + b q).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from metrack.engine.numerics.dispatch import by_type

Record: TypeAlias = tuple[Any, ...]  # of a kind's parameters


class Question(NamedTuple):
    """A pair, put to a learner."""

    rate: float
    y: float
    q: float  # its squared distance
    mu: float  # the learner's threshold


class Asked(NamedTuple):
    """What it asks for."""

    b: float
    mu: float  # the threshold afterwards


@dataclass(frozen=True)
class Kind:
    """A kind of learner; every field is required of it.

    Attributes
    ----------
    name : str
    record : NamedTuple
        Its class tells the kind from others, its fields are parameters.
    asked : compiled function
        What the function of this module of the same name says.
    """

    name: str
    record: Any
    asked: Any


KINDS: dict[str, Kind] = {}
_BY_TYPE: dict[type, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a kind known by its name, and to compiled code, and give it back."""
    KINDS[kind.name] = _BY_TYPE[type(kind.record)] = kind
    return kind


def kind_of(record: Any) -> Kind:
    """The kind whose parameters these are."""
    return _BY_TYPE[type(record)]


@by_type(_BY_TYPE)
def asked(record: Record, question: Question) -> Asked:
    """The step that a pair asks for, and the threshold after it."""
    raise NotImplementedError
