"""What the service asks of a kind of learner."""

from typing import Any, NamedTuple, Protocol

from metrack.checks import Floats, Ints
from metrack.serve.kinds.reading import Reading
from metrack.serve.series import Outcome


class Examples(NamedTuple):
    """Judgements that are learned from, one after another.

    Attributes
    ----------
    points : array (n, members, n_features)
    y : array
        1 alike, -1 not alike; 1 for triplets and for points with classes.
    labels : list of str or None
        Classes.
    """

    points: Floats
    y: Ints
    labels: list[str | None]

    def part(self, start: int, stop: int) -> "Examples":
        """Some of them."""
        rows = slice(start, stop)
        return Examples(self.points[rows], self.y[rows], self.labels[rows])


class Kind(Protocol):
    """How a kind of learner learns, and what can be read of it.

    Attributes
    ----------
    example : str
        What it learns from, as bodies name it.
    members : int
        Points of an example.
    sides : tuple of str
        Their names.
    by_copy : bool
        Whether what is read must be a copy of the learner.
    in_their_units : bool
        Whether the inner learner sees features in the units in which they come.
    """

    example: str
    members: int
    sides: tuple[str, ...]
    by_copy: bool
    in_their_units: bool

    def learn(self, learner: Any, some: Examples, room: int) -> tuple[int, Outcome]:
        """Learn the first of some examples.

        Returns
        -------
        int
            How many were learned; which does not depend on how many there are beyond ``room``.
        Outcome
            What was predicted, of each pair that was learned, at most ``room`` or those of one.
        """

    def forget(self, learner: Any, points: Floats) -> None:
        """Rest no more on judgements of these points."""

    def inner(self, learner: Any) -> Any:
        """The learner whose metric is told of."""

    def counted(self, learner: Any) -> int:
        """How many pairs, triplets or points it has learned."""

    def threshold(self, learner: Any) -> float | None:
        """Distance up to which a pair is called alike, where there is such a thing."""

    def read(self, learner: Any, n_features: int) -> Reading:
        """What can be read of it."""
