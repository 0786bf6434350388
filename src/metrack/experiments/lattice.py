"""Settings searched on lattices that grow until the best lies inside, for every measure.

A setting's values are whole steps of a fixed ratio. A first grid is tried; then, as often as it
takes, all neighbours of the best so far. So in the end the best has been tried against one step up
and one step down in each of its settings, unless a setting ends there by its nature.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from metrack.experiments.report import Json

MAX_EXTENSIONS = 12
MEASURES = ("knn_error", "nmi")  # that settings are chosen by

Place = tuple[int, ...]  # on the lattice, a step count for each setting
Score = tuple[float, ...]  # less is better, and what comes first counts most


class Axis(NamedTuple):
    """The values of one setting: powers of a ratio, rounded to some digits; of a whole one exact.

    Attributes
    ----------
    first : tuple of int
        Powers of the first grid.
    ratio : float
    digits : int
        Significant ones.
    zero : int, optional
        The power that stands for 0, where the setting ends by its nature.

    Examples
    --------
    >>> rates = Axis((-5, -4, -3), zero=-8)
    >>> [rates.value(power) for power in (-8, *rates.first)]
    [0.0, 0.003, 0.01, 0.03]
    """

    first: tuple[int, ...]
    ratio: float = math.sqrt(10.0)
    digits: int = 1
    zero: int | None = None

    def value(self, power: int) -> float:
        """The setting itself."""
        if power == self.zero:
            return 0.0
        if isinstance(self.ratio, int):
            return int(self.ratio**power)
        return float(f"{self.ratio**power:.{self.digits}g}")


class Problem(NamedTuple):
    """What is to be chosen.

    Attributes
    ----------
    method : str
    axes : mapping from a setting to its Axis
    fixed : mapping, optional
        Settings that stay.
    allowed : callable, optional
        Whether settings can be had at all.
    """

    method: str
    axes: Mapping[str, Axis]
    fixed: Mapping[str, float] = {}
    allowed: Callable[[Json], bool] = lambda _settings: True

    def settings(self, place: Place) -> Json:
        """The settings at a place."""
        values = {
            name: axis.value(power)
            for (name, axis), power in zip(self.axes.items(), place, strict=True)
        }
        return {**self.fixed, **values}

    def exists(self, place: Place) -> bool:
        """Whether a place is within the natural bounds."""
        inside = all(
            axis.zero is None or power >= axis.zero
            for axis, power in zip(self.axes.values(), place, strict=True)
        )
        return inside and self.allowed(self.settings(place))

    def grid(self) -> list[Place]:
        """The places that are tried first."""
        return [p for p in product(*(axis.first for axis in self.axes.values())) if self.exists(p)]

    def around(self, place: Place) -> list[Place]:
        """The places one step away in one setting."""
        moved = (
            (*place[:i], place[i] + step, *place[i + 1 :])
            for i in range(len(place))
            for step in (-1, 1)
        )
        return [place for place in moved if self.exists(place)]

    def ends(self, place: Place) -> list[str]:
        """Settings that end there by their nature."""
        around = self.around(place)
        return [
            name
            for i, name in enumerate(self.axes)
            if {p[i] for p in around if p[i] != place[i]} != {place[i] - 1, place[i] + 1}
        ]


class Search:
    """The search for one problem: what to try next, and what was best.

    Parameters
    ----------
    problem : Problem
    name : str
        For messages.
    """

    def __init__(self, problem: Problem, name: str) -> None:
        self.problem = problem
        self.name = name
        self.scores: dict[Place, dict[str, Score]] = {}
        self.n_rounds = 0

    def wanted(self) -> list[Place]:
        """Places to try next; none when the best by each measure lies inside."""
        if not self.scores:
            return self.problem.grid()
        around = {p for measure in MEASURES for p in self.problem.around(self.best(measure))}
        return sorted(around - set(self.scores))

    def add(self, scores: Mapping[Place, Mapping[str, Score]]) -> None:
        """Take scores of the places that were wanted; fails when there is no end to it."""
        self.scores.update({place: dict(found) for place, found in scores.items()})
        self.n_rounds += 1
        if self.n_rounds > MAX_EXTENSIONS and self.wanted():
            best = {measure: self.problem.settings(self.best(measure)) for measure in MEASURES}
            raise ValueError(
                f"{self.name}: after {MAX_EXTENSIONS} extensions the best settings are still on "
                f"the edge of what was tried ({json.dumps(best)}); start its grid nearer to them, "
                "or give a setting its natural bound"
            )

    def best(self, measure: str) -> Place:
        """The best place by a measure; on a plateau the one that was tried first."""
        return min(self.scores, key=lambda place: self.scores[place][measure])


def search_all(
    searches: Sequence[Search],
    score: Callable[[Sequence[tuple[Search, Place]]], Iterable[Mapping[str, Score]]],
) -> None:
    """Carry all searches to their ends, round by round, so that many places are tried at once.

    Parameters
    ----------
    searches : sequence of Search
    score : callable
        From the places that are wanted, each with its search, to their scores by each measure.
    """
    while asked := [(search, place) for search in searches for place in search.wanted()]:
        found = list(score(asked))
        for search in searches:
            new = {p: s for (of, p), s in zip(asked, found, strict=True) if of is search}
            if new:
                search.add(new)
