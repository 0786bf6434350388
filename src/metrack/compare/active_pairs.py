"""ActivePairs: asks about those of some candidate pairs from which most is to be learned."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import whole
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.choosing.active import CANDIDATES, EXPLORED
from metrack.estimators.differences import Differences
from metrack.estimators.inputs import check_labels


class ActivePairs:
    """Asks about candidate pairs, and teaches a tracker the answers.

    As long as all answers are the same, half of the questions are about near pairs and half about
    any. Then a pair is drawn as often as the tracker's experts are in doubt of it; a tenth are
    drawn evenly. `metrack.ActiveTracker` does the same for pairs of points, which it finds itself.

    Parameters
    ----------
    tracker : MetricTracker, KernelTracker or any other online learner of pairs
        It may have learned; it goes on learning here, and can be used meanwhile.
    pairs : Differences
        The candidates, such as `Comparisons.transform` gives.
    random_state : int
        The same number, and the same answers, give the same questions.

    Attributes
    ----------
    tracker
        The tracker.
    answers_ : array (n_pairs,)
        Of each candidate: +1 alike, -1 not, 0 not answered. Those that were unsure are 0, too.

    Examples
    --------
    >>> from metrack import MetricTracker
    >>> from metrack.compare import ActivePairs, Comparisons, catalogues
    >>> left, right, same = catalogues(30)
    >>> rows = [[i, j] for i in range(30) for j in range(30)]
    >>> pairs = Comparisons().fit_transform(left, right, rows)
    >>> asker = ActivePairs(MetricTracker(), pairs)
    >>> for _ in range(10):
    ...     asked = asker.query(10)
    ...     asker = asker.teach(asked, [rows[k] in same.tolist() for k in asked])
    >>> int(sum(asker.answers_ > 0)) > 10
    True
    """

    def __init__(self, tracker: OnlineLearner, pairs: Differences, random_state: int = 0) -> None:
        if not isinstance(tracker, OnlineLearner):
            raise TypeError(
                f"tracker is a {type(tracker).__name__}; ActivePairs teaches learners of pairs, "
                "such as MetricTracker()"
            )
        if not isinstance(pairs, Differences) or len(pairs) == 0:
            raise ValueError("pairs must be Differences of one pair or more, as comparisons give")
        self.tracker, self.pairs = tracker, pairs
        self.random_state = whole("random_state", random_state, least=0)
        self.answers_: Floats = np.zeros(len(pairs))
        self._asked = np.zeros(len(pairs), bool)
        nearest_first = np.argsort(np.linalg.norm(pairs.u, axis=1), kind="stable")
        self._nearness: Floats = np.empty(len(pairs))
        self._nearness[nearest_first] = 1.0 / np.arange(1, len(pairs) + 1)

    @property
    def n_answers(self) -> int:
        """Sure answers."""
        return int(np.count_nonzero(self.answers_))

    def query(self, n_pairs: int = 1) -> Ints:
        """Choose pairs to be judged: their rows, as many as are left. None is asked about twice."""
        open_ = np.flatnonzero(~self._asked)
        n = min(whole("n_pairs", n_pairs), len(open_))
        if n == 0:
            return open_
        seed = [self.random_state, len(self.pairs) - len(open_), self.n_answers]
        rng = np.random.default_rng(seed)
        if self._knows_one_kind():
            worth, evenly = self._nearness[open_], 0.5
        else:
            open_ = rng.choice(open_, min(len(open_), max(CANDIDATES, n)), replace=False)
            worth, evenly = self.tracker.informativeness(self.pairs[open_]), EXPLORED
        odds = (1.0 - evenly) * worth / max(worth.sum(), 1e-300) + evenly / len(open_)
        chosen: Ints = rng.choice(open_, n, replace=False, p=odds / odds.sum())
        self._asked[chosen] = True
        return chosen

    def _knows_one_kind(self) -> bool:
        """Whether all answers so far are the same, and the tracker has seen no others."""
        seen_elsewhere = getattr(self.tracker, "n_pairs_seen_", 0) > self.n_answers
        return not seen_elsewhere and len(set(self.answers_.tolist()) - {0.0}) < 2

    def teach(self, rows: ArrayLike, y: Any) -> Self:
        """Learn answers.

        Parameters
        ----------
        rows : array (n,), or one row
            Of the candidates, whether `query` gave them or not.
        y : array (n,), or one label
            +1 alike, -1 not alike; or 1 and 0, or booleans. None: unsure, which teaches nothing.
        """
        asked, labels = self._checked(rows, y)
        sure = labels != 0.0
        if sure.any():
            self.tracker.partial_fit(self.pairs[asked[sure]], labels[sure])
        self.recall(asked, labels)
        return self

    def recall(self, rows: ArrayLike, y: Any) -> Self:
        """Know answers that the tracker has learned already; see `teach`. 0 is unsure."""
        asked = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        self.answers_[asked] = y
        self._asked[asked] = True
        return self

    def _checked(self, rows: ArrayLike, y: Any) -> tuple[Ints, Floats]:
        """Rows of candidates, and labels: 0 where an answer is None."""
        asked = np.atleast_1d(np.asarray(rows))
        if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
            raise ValueError(f"rows must be row numbers of the candidates; got {asked.dtype}")
        wrong = asked[(asked < 0) | (asked >= len(self.pairs))]
        if wrong.size:
            raise ValueError(f"there is no candidate {wrong[0]}: there are {len(self.pairs)}")
        answers = [y] if np.ndim(rows) == 0 else list(y)
        if len(answers) != len(asked):
            raise ValueError(f"y must have one label a pair: {len(asked)}, but has {len(answers)}")
        labels = np.zeros(len(asked))
        sure = [i for i, each in enumerate(answers) if each is not None]
        if sure:
            labels[sure] = check_labels([answers[i] for i in sure], len(sure), sure)
        return asked.astype(np.int64), labels
