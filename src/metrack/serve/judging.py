"""Answers of people: what they were, how far judges agree, and where they do not."""

import time
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from metrack.serve import log
from metrack.serve.databases.database import Connection
from metrack.serve.limits import Refused
from metrack.serve.log import Batch, Receipt

MOST = 20_000  # of the last answers that are looked at

STANDING = (  # not corrected since
    "AND NOT EXISTS (SELECT 1 FROM judgements c WHERE c.metric = j.metric "
    "AND c.corrects = j.sequence)"
)


class Answer(NamedTuple):
    """What somebody has said of two items."""

    sequence: int
    time: float
    judge: str
    a: str
    b: str
    y: int
    corrects: int | None


def answers(
    connection: Connection, metric: int, judge: str | None, before: int, n: int
) -> list[Answer]:
    """Of a judge or of all, those that stand, the last first."""
    whose = "j.judge IS NOT NULL" if judge is None else "j.judge = ?"
    rows = connection.execute(
        "SELECT sequence, time, judge, a, b, y, corrects FROM judgements j WHERE metric = ? "
        f"AND {whose} AND a IS NOT NULL AND b IS NOT NULL AND sequence < ? {STANDING} "
        "ORDER BY sequence DESC LIMIT ?",
        (metric, *(() if judge is None else (judge,)), before, n),
    )
    return [Answer(*row) for row in rows]


def correct(
    connection: Connection,
    metric: int,
    n_features: int,
    sequence: int,
    given: tuple[int, str | None, str | None],
) -> Receipt:
    """Put another answer in the place of an earlier one: its label, its judge, its id."""
    y, judge, key = given
    row = connection.execute(
        "SELECT a, b, points FROM judgements WHERE metric = ? AND sequence = ?",
        (metric, sequence),
    ).fetchone()
    if row is None:
        raise Refused(404, f"there is no judgement {sequence} in the log")
    later = connection.execute(
        "SELECT sequence, id FROM judgements WHERE metric = ? AND corrects = ?", (metric, sequence)
    ).fetchone()
    if later is not None and (key is None or later[1] != key):
        raise Refused(409, f"judgement {sequence} was corrected already, by {later[0]}")
    a, b, points = row
    pair = np.frombuffer(points).reshape(1, 2, n_features)
    batch = Batch(pair, np.array([y]), [key], [judge], [a], [b], [None], [sequence], [time.time()])
    return log.append(connection, metric, batch)


def shared(connection: Connection, metric: int, judge: str) -> list[tuple[str, str]]:
    """Pairs that other judges have answered lately."""
    rows = connection.execute(
        "SELECT a, b FROM judgements WHERE metric = ? AND judge IS NOT NULL AND judge <> ? "
        "AND a IS NOT NULL AND b IS NOT NULL ORDER BY sequence DESC LIMIT 1000",
        (metric, judge),
    )
    return list(dict.fromkeys((a, b) for a, b in rows))


class Agreement(NamedTuple):
    """How far two judges agree on the pairs that both have answered, by their first answers.

    Attributes
    ----------
    judges : list of str
    pairs : int
    share : float
        Of these pairs, those with the same answer.
    kappa : float or None
        Cohen's: 1 where all answers are the same, 0 where no more are than by chance; None where
        both have always given one and the same answer.
    """

    judges: list[str]
    pairs: int
    share: float
    kappa: float | None


def agreements(connection: Connection, metric: int) -> list[Agreement]:
    """Of any two judges, those with the most pairs in common first."""
    rows = connection.execute(
        "SELECT judge, a, b, y FROM judgements WHERE metric = ? AND judge IS NOT NULL AND "
        "a IS NOT NULL AND b IS NOT NULL AND corrects IS NULL ORDER BY sequence DESC LIMIT ?",
        (metric, MOST),
    )
    by_judge: defaultdict[str, dict[frozenset[str], int]] = defaultdict(dict)
    for judge, a, b, y in rows:
        by_judge[judge][frozenset((a, b))] = y  # the first answer is the last that comes here
    found = []
    for one, other in combinations(sorted(by_judge), 2):
        both = by_judge[one].keys() & by_judge[other].keys()
        if both:
            said = [(by_judge[one][pair], by_judge[other][pair]) for pair in both]
            found.append(Agreement([one, other], len(both), *_kappa(said)))
    return sorted(found, key=lambda each: -each.pairs)


def _kappa(said: list[tuple[int, int]]) -> tuple[float, float | None]:
    """Share of the same answers, and Cohen's kappa."""
    share = sum(x == z for x, z in said) / len(said)
    counts = [Counter(column) for column in zip(*said, strict=True)]
    chance = sum(counts[0][y] * counts[1][y] for y in counts[0]) / len(said) ** 2
    return share, None if chance == 1.0 else (share - chance) / (1.0 - chance)


def disagreements(connection: Connection, metric: int, n: int) -> tuple[list[list[Answer]], int]:
    """Answers to the same pair of which some say alike and some not; and how many such pairs."""
    by_pair: defaultdict[frozenset[str], list[Answer]] = defaultdict(list)
    for each in answers(connection, metric, None, 1 << 62, MOST):
        by_pair[frozenset((each.a, each.b))].append(each)
    found = [some for some in by_pair.values() if {1, -1} <= {each.y for each in some}]
    return found[:n], len(found)


def described(answer: Answer) -> dict[str, Any]:
    """For a client: null where it was unsure."""
    return {**answer._asdict(), "y": answer.y or None}
