"""What was judged of one question, and whether it is still the question.

Some of what is asked was known before: pairs that were judged, or whose judgement follows from
others. Where too many of those answers contradict what was known, either the question is another
one now, or alike is not transitive; which of the two, the pairs tell that had been judged
themselves. A single contradiction is taken for a mistake.

The test is Page's: the log of how much likelier answers are if every second one contradicts than
if one in ten does, summed from where that sum was least. Pairs known to be alike and others have
a sum each: a question may become wider, and leave all pairs alike that were so.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import counts, floats
from metrack.estimators.choosing import closure
from metrack.estimators.inputs import check_labels

MISTAKES, CHANGED = 0.1, 0.5  # shares of contradictions under the same question, and another
SURE = np.log(100.0)  # once in at least so many known answers, a change is seen where none is
SAME = -np.log(20.0)  # where pairs that were judged themselves say that the question is the same
CONTRADICTS, AGREES = np.log(CHANGED / MISTAKES), np.log((1.0 - CHANGED) / (1.0 - MISTAKES))
AUDITED = 0.2  # share of questions whose answers are known ...
SUSPICIOUS = 0.5  # ... and where much speaks for a change


class Judged(NamedTuple):
    """Answers in their order, of all questions so far."""

    rows: Annotated[Ints, counts("answers", 2)]
    y: Annotated[Floats, floats("answers", least=-1.0, most=1.0)]  # 0: unsure
    new: Annotated[Ints, counts("answers", most=1)]  # 1 where it was not known before
    start: Annotated[Ints, counts(3)]  # of this question; its number, from 0; 1: not transitive
    excess: Annotated[Floats, floats(2, least=0.0)]  # contradictions of others, of alike ones
    direct: Annotated[Floats, floats(2)]  # the part of it that is of pairs judged before
    starts: Annotated[Ints, counts(2)]  # the answers with which excess began


def nothing_judged() -> Judged:
    """Of a first question."""
    empty = np.empty((0, 2), np.int64), np.empty(0), np.empty(0, np.int64)
    return Judged(*empty, np.zeros(3, np.int64), np.zeros(2), np.zeros(2), np.zeros(2, np.int64))


class Known(NamedTuple):
    """What answers to the present question come to."""

    rows: Ints  # of answers that were sure and new
    y: Floats
    groups: closure.Groups
    in_classes: bool  # alike seems to mean the same class, of few


def known_of(judged: Judged) -> Known:
    """What is known of the present question."""
    start, _, not_transitive = judged.start.tolist()
    used = start + np.flatnonzero(judged.new[start:] * (judged.y[start:] != 0.0))
    rows, y = judged.rows[used], judged.y[used]
    in_classes = not not_transitive and closure.few_classes(rows, y)
    return Known(rows, y, closure.groups_of(rows, y), in_classes)


def relations(known: Known, rows: Ints) -> tuple[Floats, Floats]:
    """What is known of pairs: what was said of them, and what follows; 0 where it is unknown."""
    said = {_key(pair): label for pair, label in zip(known.rows, known.y, strict=True)}
    told = np.array([said.get(_key(pair), 0.0) for pair in rows])
    if not known.in_classes or not len(known.rows):
        return told, told
    points, group, _ = known.groups
    at = np.minimum(np.searchsorted(points, rows), len(points) - 1)
    one, two = group[at].T
    follows = np.where(one == two, 1.0, -closure.told_apart(known.groups, one, two).astype(float))
    follows[(points[at] != rows).any(axis=1)] = 0.0
    return told, np.where(told != 0.0, told, follows)


def _key(pair: Ints) -> tuple[int, int]:
    a, b = pair.tolist()
    return (a, b) if a < b else (b, a)


def take(judged: Judged, rows: Ints, y: Floats) -> Judged:
    """What was judged after more answers; a question that is another one begins anew."""
    known = known_of(judged)
    told, follows = relations(known, rows)
    before = len(judged.y)
    judged = judged._replace(
        rows=np.concatenate([judged.rows, rows]),
        y=np.concatenate([judged.y, y]),
        new=np.concatenate([judged.new, (follows == 0.0).astype(np.int64)]),
    )
    excess, direct = judged.excess.copy(), judged.direct.copy()
    starts = judged.starts.copy()
    for i in np.flatnonzero((follows != 0.0) & (y != 0.0)).tolist():
        side = int(follows[i] > 0.0)
        weight = AGREES if y[i] == follows[i] else CONTRADICTS
        if excess[side] == 0.0:
            starts[side] = before + i
        if excess[side] < SURE:
            excess[side] = min(max(excess[side] + weight, 0.0), SURE)
        if excess[side] == 0.0:
            direct[side] = 0.0
            continue
        direct[side] += weight if told[i] != 0.0 else 0.0
        if excess[side] == SURE and direct[side] > 0.0:
            new = judged.new.copy()
            new[starts[side] :] = 1
            return _settled(judged, [starts[side], judged.start[1] + 1, 0], new)
        if excess[side] == SURE and direct[side] < SAME:  # only what followed was wrong
            return _settled(judged, [*judged.start[:2], 1], judged.new)
    return judged._replace(excess=excess, direct=direct, starts=starts)


def _settled(judged: Judged, start: Sequence[int], new: Ints) -> Judged:
    began = np.array(start, np.int64)
    return judged._replace(start=began, new=new, excess=np.zeros(2), direct=np.zeros(2))


def audited(judged: Judged) -> float:
    """The share of questions whose answers should be known, by what speaks for a change."""
    suspicion = 1.0 - np.exp(-judged.excess.max())
    return float(AUDITED + (SUSPICIOUS - AUDITED) * suspicion)


def audits(judged: Judged, known: Known, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """Pairs whose judgement is known: half of them judged before, half by what follows.

    Those of the kind that was contradicted come more often; where it was contradicted enough,
    pairs that were judged before, which tell why.
    """
    others = int(rng.binomial(n_pairs, expit(judged.excess[0] - judged.excess[1])))
    found = [np.empty((0, 2), np.int64)]
    for label, n in ((-1.0, others), (1.0, n_pairs - others)):
        again = known.rows[known.y == label]
        both = known.in_classes and judged.excess[int(label > 0.0)] < SURE
        n_again = int(rng.binomial(n, 0.5)) if both else n
        found.append(again[rng.permutation(len(again))[:n_again]])
        if both and n > n_again:
            found.append(closure.following(known.groups, label, n - n_again, rng))
    return np.concatenate(found)


def check_answers(rows: ArrayLike, y: Any, n_points: int) -> tuple[Ints, Floats]:
    """Pairs of row numbers, and labels: 0 where an answer is None, which is unsure."""
    pairs = np.asarray(rows)
    given = [y] if pairs.ndim == 1 and pairs.size else y
    pairs = np.empty((0, 2), np.int64) if pairs.size == 0 else np.atleast_2d(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be row numbers of shape (n_pairs, 2); got {pairs.dtype} of shape "
            f"{pairs.shape}"
        )
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n_points)).any(axis=1))
    if wrong.size:
        at = wrong[0]
        raise ValueError(f"rows[{at}] = {pairs[at].tolist()}; rows of X are 0 to {n_points - 1}")
    if given is None:
        return pairs.astype(np.int64), np.zeros(len(pairs))
    answers = np.asarray(given, dtype=object)
    if answers.shape != (len(pairs),):
        raise ValueError(
            f"y must have one label per pair: {len(pairs)} pairs, but y has shape {answers.shape}"
        )
    sure = np.flatnonzero([each is not None for each in answers.tolist()])
    labels = np.zeros(len(pairs))
    if sure.size:
        labels[sure] = check_labels(answers[sure].tolist(), len(sure), sure.tolist())
    return pairs.astype(np.int64), labels
