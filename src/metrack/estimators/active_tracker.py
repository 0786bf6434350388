"""ActiveTracker: asks for the judgements that a metric needs most, and learns what they imply."""

from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.choosing import active, asking_state, closure, foretold, judged
from metrack.estimators.choosing.asking_state import Asking, Moment
from metrack.estimators.choosing.asking_state import Progress as Progress
from metrack.estimators.choosing.foretold import Foretold
from metrack.estimators.inputs import (
    PairBatch,
    Points,
    PointsLike,
    check_points,
    points_for,
    take_names,
)
from metrack.estimators.inputs.settings import whole
from metrack.estimators.states.persistence import pack, unpack
from metrack.storage import Arrays, State, StateFolder, read

UNDOABLE = 20  # calls of `teach`
ATTEMPTS = 5  # to find pairs that were not asked about
FINER = 1.25  # times as many answers between metrics that are kept, to compare with


class _Before(NamedTuple):
    """All that a call of `teach` changes."""

    rows: Ints
    tracker: dict[str, Any]
    asking: Asking


class ActiveTracker:
    """Asks about pairs of points, and teaches a tracker what the answers say and imply.

    Before the first answer the tracker is shown the points. Questions are then those from which
    most is to be learned. As long as alike seems to mean the same class, and few classes come up,
    a question compares a new point with the class that is nearest to it: as many pairs whose
    judgement follows as there are points that were judged, up to 192, are learned beside the
    answer, with little weight. Otherwise pairs are drawn by the doubt of the tracker's experts.

    A fifth of the questions, a tenth where nothing follows, are about what is known; answers that
    repeat one have little weight, too. By these a change of the question is noticed: what was
    judged before it then counts no more, and the tracker, which follows changes by itself, goes on.
    They also tell where alike is not transitive; nothing is then taken to follow.

    Parameters
    ----------
    tracker : MetricTracker, KernelTracker or any other online learner of pairs
        It may have learned; it goes on learning here, and can be used meanwhile.
    X : array, CSR matrix or DataFrame (n_points, n_features)
        The points to ask about.
    random_state : int
        The same number, and the same answers, give the same questions.

    Attributes
    ----------
    tracker
        The tracker.
    losses_ : array
        Of the sure answers of the last `teach`, each before it was learned.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from metrack import ActiveTracker, MetricTracker
    >>> X, kind = load_iris(return_X_y=True)
    >>> asker = ActiveTracker(MetricTracker(), X)
    >>> for _ in range(12):
    ...     rows = asker.query(10)
    ...     asker = asker.teach(rows, kind[rows[:, 0]] == kind[rows[:, 1]])
    >>> asker.progress().answers > 100
    True
    >>> rows = np.random.default_rng(0).integers(len(X), size=(1000, 2))
    >>> y = np.where(kind[rows[:, 0]] == kind[rows[:, 1]], 1, -1)
    >>> asker.tracker.score(X[rows], y) > 0.95
    True
    """

    def __init__(self, tracker: OnlineLearner, X: PointsLike, random_state: int = 0) -> None:
        if not isinstance(tracker, OnlineLearner):
            raise TypeError(
                f"tracker is a {type(tracker).__name__}; ActiveTracker teaches learners of pairs, "
                "such as MetricTracker()"
            )
        self.random_state = whole("random_state", random_state, or_zero=True, most=2**32 - 1)
        known = hasattr(tracker, "engine_")
        self._points: Points = points_for(tracker, X) if known else check_points(X)
        if self._points.shape[0] < 2:
            raise ValueError("X has 1 point; pairs need 2 or more")
        if not known:
            _show(tracker, X, self._points)
        self.tracker = tracker
        self._asking = Asking()
        self._forget_session()

    def _forget_session(self) -> None:
        """What is not part of a state: what was asked, and how to go back."""
        self._n_queries = 0
        self._asked: dict[tuple[int, int], float] = {}  # and with which weight it was drawn
        self._undoable: list[_Before] = []

    @property
    def n_answers(self) -> int:
        """Sure answers that were taught, to all questions so far."""
        return int(np.count_nonzero(self._asking.judged.y))

    @property
    def n_implied(self) -> int:
        """Pairs that the tracker learned because they followed from answers."""
        return self._asking.n_implied

    @exclusive
    def query(self, n_pairs: int = 1) -> Ints:
        """Choose pairs to be judged; nothing is learned. Every call gives others.

        Parameters
        ----------
        n_pairs : int

        Returns
        -------
        array (n_pairs, 2)
            Rows of X; fewer, or none, where all pairs have been asked about.
        """
        n_points = self._points.shape[0]
        n_all = n_points * (n_points - 1) // 2
        if whole("n_pairs", n_pairs) > n_all:
            raise ValueError(
                f"n_pairs={n_pairs}: {n_points} points have {n_all} pairs; ask for fewer, or pass "
                "more points"
            )
        rng = self._generator(1, self._n_queries)
        self._n_queries += 1
        known, found = judged.known_of(self._asking.judged), [np.empty((0, 2), np.int64)]
        if self.tracker.n_pairs_seen_ > 0 and len(known.y):
            n_audits = rng.binomial(n_pairs, self._audited(known))
            found.append(judged.audits(self._asking.judged, known, n_audits, rng))
            if known.in_classes:
                most = n_pairs - len(found[-1])
                seen, rows = self.tracker._as_seen(self._points), self.tracker._on_features()
                asked = closure.next_questions(seen, most, rows, known.groups, rng)
                found.append(self._fresh(asked, np.zeros(len(asked)), most, rng))
        for _ in range(ATTEMPTS):
            lacking = n_pairs - sum(map(len, found))
            if lacking > 0:
                wanted = n_all if n_all <= active.CANDIDATES else lacking
                asked, of = self.tracker.suggest_pairs(self._points, wanted, rng, True)
                found.append(self._fresh(asked, of, lacking, rng))
        return np.concatenate(found)

    def _audited(self, known: judged.Known) -> float:
        """The share of questions whose answers should be known.

        Where nothing follows from answers there are fewer, unless the tracker's losses rose.
        """
        share = judged.audited(self._asking.judged)
        if known.in_classes:
            return share
        changed = getattr(self.tracker, "last_change_", 0)
        since = self.tracker.n_pairs_seen_ - changed if changed else np.inf
        return max(0.5 * share, active.exploration(since) - active.EXPLORED)

    def _fresh(self, rows: Ints, weights: Floats, most: int, rng: np.random.RandomState) -> Ints:
        """Those that were not asked about; they now are. Of too many, by what they stand for."""
        before = {*self._asked, *map(_key, self._asking.judged.rows.tolist())}
        kept = np.array([i for i, p in enumerate(rows.tolist()) if _key(p) not in before], int)
        if len(kept) > most:
            odds = 1.0 / weights[kept]
            kept = rng.choice(kept, most, replace=False, p=odds / odds.sum())
        for i in kept.tolist():
            self._asked[_key(rows[i].tolist())] = float(weights[i])
        fresh: Ints = rows[kept]
        return fresh

    @exclusive
    def teach(self, rows: ArrayLike, y: Any) -> Self:
        """Learn answers, and what follows from them.

        Parameters
        ----------
        rows : array (n_pairs, 2), or one pair
            Rows of X, whether `query` gave them or not.
        y : array (n_pairs,), or one label
            +1 alike, -1 not alike; or 1 and 0, or booleans. None: unsure; as a whole or of single
            pairs. Such pairs teach nothing, and are not asked about again.
        """
        pairs, labels = judged.check_answers(rows, y, self._points.shape[0])
        before = self._remembered(pairs)
        try:
            self._learn(pairs, labels)
        except Exception:
            self._be(before)
            raise
        self._undoable = [*self._undoable[1 - UNDOABLE :], before]
        return self

    @exclusive
    def recall(self, rows: ArrayLike, y: Any) -> Self:
        """Know answers that the tracker has learned elsewhere, such as from a log; see `teach`."""
        pairs, labels = judged.check_answers(rows, y, self._points.shape[0])
        taken = judged.take(self._asking.judged, pairs, labels)
        self._asking = self._asking._replace(judged=taken)
        return self

    def _learn(self, rows: Ints, y: Floats) -> None:
        """What `teach` does, with answers that have been checked."""
        asking, sure = self._asking, y != 0.0
        n_before = len(asking.judged.y)
        rng = self._generator(0, n_before)
        if self.tracker.n_pairs_seen_ > 0:
            asking = asking._replace(foretold=self._foretell(rows, y, rng))
        told, _ = judged.relations(judged.known_of(asking.judged), rows)
        weights = np.where(told == y, closure.WEIGHT, 1.0)[sure]  # of answers that are repeated
        self.losses_ = self._observe(rows[sure], weights * y[sure]) / weights
        asking = asking._replace(judged=judged.take(asking.judged, rows, y))
        known = judged.known_of(asking.judged)
        if known.in_classes and sure.any():
            of_an_answer = min(len(known.groups.points), closure.OF_AN_ANSWER)
            n_implied = of_an_answer * int(sure.sum())
            pairs, signs = closure.implied_pairs(known.rows, known.y, n_implied, rng)
            learned = self._observe(pairs, closure.WEIGHT * signs)
            asking = asking._replace(n_implied=asking.n_implied + len(learned))
        is_another = asking.judged.start[1] != self._asking.judged.start[1]
        moments = self._with_moment(() if is_another else asking.moments, len(known.y))
        self._asking = asking._replace(moments=moments)

    def _observe(self, rows: Ints, y: Floats) -> Floats:
        if not len(rows):
            return np.empty(0)
        batch = PairBatch(rows, self._points, self.tracker.n_features_in_)
        return self.tracker.observe_batch(batch, y)

    def _foretell(self, rows: Ints, y: Floats, rng: np.random.RandomState) -> Foretold:
        """What the metric says of pairs before it learns them, beside what it said of others."""
        asking, tracker = self._asking, self.tracker
        known = judged.known_of(asking.judged)
        weights = np.array([self._asked.get(_key(pair), 0.0) for pair in rows.tolist()])
        drawn = (weights > 0.0) & (y != 0.0)
        met = foretold.meetings(known, rows, rng)
        pairs = np.concatenate([rows[drawn], met])
        if not len(pairs):
            return asking.foretold
        weights = np.concatenate([weights[drawn], np.zeros(len(met))])
        embeddings = [tracker._on_features()]
        squares = active.squares_of(tracker._as_seen(self._points), pairs, embeddings)[0]
        ratio = squares / max(tracker.threshold_**2, 1e-300)
        return foretold.take(asking.foretold, pairs, ratio, weights, len(asking.judged.y))

    def _with_moment(self, moments: tuple[Moment, ...], n_answers: int) -> tuple[Moment, ...]:
        """Metrics of the past, the first after half as many answers or fewer, and that of now."""
        if not hasattr(self.tracker, "change_since"):
            return ()
        if n_answers and (not moments or n_answers >= FINER * moments[-1].answers):
            moments = (*moments, Moment(n_answers, self.tracker.get_metric()))
        earlier = [i for i, each in enumerate(moments) if 2 * each.answers <= n_answers]
        return moments[earlier[-1] :] if earlier else moments

    @exclusive
    def undo(self) -> Ints:
        """Be as before the last call of `teach`, bit for bit; up to 20 calls can be undone.

        Returns
        -------
        array (n_pairs, 2)
            The rows that were taught; none where there is nothing to undo.
        """
        if not self._undoable:
            return np.empty((0, 2), np.int64)
        before = self._undoable.pop()
        self._be(before)
        return before.rows

    def _remembered(self, rows: Ints) -> _Before:
        tracker = self.tracker
        shared = [tracker.preprocessor, tracker.preprocessor_]
        shared.append(getattr(tracker.engine_, "rule", None))  # a kernel, which may be a function
        kept = deepcopy(tracker.__dict__, {id(each): each for each in shared})
        return _Before(rows, kept, self._asking)

    def _be(self, before: _Before) -> None:
        self.tracker.__dict__ = before.tracker
        self._asking = before.asking

    @exclusive
    def progress(self, at_most: float = 0.1) -> Progress:
        """How far asking has come, and whether to stop.

        Parameters
        ----------
        at_most : float
            Share of the judgements "alike" that may still change when asking stops.
        """
        told = self._asking.judged
        known, start = judged.known_of(told), int(told.start[0])
        y = told.y[start:]
        auc = foretold.auc(self._asking.foretold, known, start + len(y) // 2)
        ahead = self._ahead(len(known.y))
        return Progress(
            int(np.sum(y != 0.0)),
            int(np.sum(y > 0.0)),
            int(np.sum(y == 0.0)),
            1 + int(told.start[1]),
            auc,
            ahead,
            ahead is not None and ahead <= at_most,
        )

    def _ahead(self, n_answers: int) -> float | None:
        """What as many answers again will change at most, by what as many have changed."""
        if (
            n_answers < 20
            or not self._asking.moments
            or 2 * self._asking.moments[0].answers > n_answers
        ):
            return None
        then = self._asking.moments[0].metric
        change: active.Change = self.tracker.change_since(
            then, self._points, self._generator(2, n_answers)
        )
        return change.ahead

    def _generator(self, use: int, number: int) -> np.random.RandomState:
        """Random numbers that depend on the answers so far, and on nothing else."""
        seed = np.random.SeedSequence([self.random_state, use, number, len(self._asking.judged.y)])
        return np.random.RandomState(seed.generate_state(4))

    def save(self, path: str | Path) -> None:
        """Write the tracker and all that was judged into a folder; see `load`.

        `metrack.load` gives the tracker alone. The points are not saved, nor what could be undone.
        """
        with StateFolder(Path(path)) as folder:
            folder.write(self.pack())

    @classmethod
    def load(cls, path: str | Path, X: PointsLike) -> Self:
        """What was saved, with the points it was about; there may be more after them."""
        state, where = read(Path(path)), str(path)
        return cls(unpack(state, None, where), X).restore(state, where)

    @exclusive
    def pack(self) -> State:
        """The tracker's state, and all that was judged."""
        content, arrays = pack(self.tracker)
        return State({**content, "asking": self.pack_asking(arrays)}, arrays)

    @exclusive
    def pack_asking(self, arrays: Arrays) -> dict[str, Any]:
        """What was judged, to go into a state that has the tracker already; arrays to others."""
        asking = asking_state.pack(self._asking, arrays)
        return {"random_state": self.random_state, **asking}

    def restore(self, state: State, where: str) -> Self:
        """Know what was judged, by a state whose tracker this is; it may have no such part.

        Parameters
        ----------
        state : State
        where : str
            Names the state in errors.
        """
        if (saved := state.content.get("asking")) is not None:
            shape = self._points.shape
            self._asking, seed = asking_state.unpack(saved, state.arrays, shape, where)
            self.random_state = seed
            self._forget_session()
        return self


def _key(pair: list[int]) -> tuple[int, int]:
    """The same in either order."""
    return min(pair), max(pair)


def _show(tracker: OnlineLearner, X: Any, points: Points) -> None:
    """Start a tracker that has seen nothing."""
    if tracker.takes_points(points.shape[1]):
        tracker.observe_points(X if tracker.preprocessor is None else points)
    else:
        tracker.check_components(points.shape[1])
        tracker.start(points.shape[1])
        take_names(tracker, X)
