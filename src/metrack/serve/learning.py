"""A learner, how far in the log it has come, and how it went: what is saved of a metric."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from metrack.estimators.base import StaticEmbedding
from metrack.estimators.online import EnsembleLearner, OnlineLearner
from metrack.estimators.persistence import unpack
from metrack.registry import estimator
from metrack.serve.course import Course
from metrack.serve.log import Stretch
from metrack.serve.snapshots import Snapshot
from metrack.storage import CorruptStateError, State
from metrack.tracking.history import History, effective_window, last_change, shares_of
from metrack.tracking.state import Tracking

logger = logging.getLogger(__name__)


class Config(NamedTuple):
    """What a metric is made of."""

    n_features: int
    estimator: str
    settings: dict[str, Any]
    features: list[str] | None  # their names

    def make(self) -> OnlineLearner:
        """A new learner, ready for pairs; raises a ValueError or TypeError for wrong settings."""
        kind = estimator(self.estimator)
        # What is learned again must draw the same numbers.
        learner: OnlineLearner = kind(**{"random_state": 0, **self.settings})
        return learner.start(self.n_features)


class Learning:
    """A learner at work.

    Parameters
    ----------
    config : Config
    learner : OnlineLearner
        Started.
    course : Course
    sequence : int
        Of the last judgement that was learned.
    """

    def __init__(
        self, config: Config, learner: OnlineLearner, course: Course, sequence: int
    ) -> None:
        self.config, self.learner = config, learner
        self.course, self.sequence = course, sequence

    @classmethod
    def new(cls, config: Config) -> Self:
        """Nothing learned yet."""
        return cls(config, config.make(), Course(config.n_features), 0)

    @classmethod
    def load(cls, config: Config, saved: Callable[[], State | None], cut: int) -> Self:
        """As it was saved; from the start where nothing was, or where the log is still whole."""
        try:
            state = saved()
            if state is not None:
                return cls._unpack(config, state)
        except CorruptStateError as error:
            if cut:
                raise
            logger.warning("%s; all of the log is learned again", error)
        if cut:
            raise CorruptStateError(
                f"there is no state, and the log begins after judgement {cut:,}: restore states "
                "and log from a back-up"
            )
        return cls.new(config)

    @classmethod
    def _unpack(cls, config: Config, state: State) -> Self:
        learner = unpack(state, None, "the saved state")
        saved = state.content["serve"]
        history = History.unpack(state.content["tracking"]["history"], state.arrays)
        course = Course.unpack(saved, history, state.arrays)
        return cls(config, learner, course, saved["sequence"])

    def learn(self, stretch: Stretch) -> None:
        """Learn the next judgements of the log."""
        sure = stretch.y != 0
        pairs, y = stretch.points[sure], stretch.y[sure].astype(float)
        start = 0
        while start < len(y):
            piece = slice(start, start + self.course.room)
            losses = self.learner.observe(pairs[piece], y[piece])
            self.course.add(pairs[piece], y[piece], losses, self.learner)
            start += len(losses)
        self.sequence = int(stretch.sequences[-1])

    def pack(self) -> State:
        """All of it."""
        tracking = Tracking(self.learner, None)
        tracking.features, tracking.history = self.config.features, self.course.history
        content, arrays = tracking.pack()
        course, more = self.course.pack()
        serve = {"sequence": self.sequence, **course}
        return State({**content, "serve": serve}, {**arrays, **more})

    def snapshot(self) -> Snapshot:
        """What can be read of it now."""
        learner = self.learner
        metric = StaticEmbedding(learner.components_)
        embedding = metric
        if getattr(learner, "n_components", None) is not None:
            embedding = StaticEmbedding(learner.transform(np.eye(self.config.n_features)).T)
        return Snapshot(
            self.sequence,
            learner.n_pairs_seen_,
            metric,
            embedding,
            learner.for_neighbours(),
            learner.threshold_,
            learner.likelihood() if isinstance(learner, EnsembleLearner) else None,
            self.summary(),
            self._course(),
            self.course.before,
        )

    def summary(self) -> dict[str, Any]:
        """Where it stands."""
        learner, course = self.learner, self.course
        n_late, total, plain_total = course.late
        losses = course.losses or (
            (total / n_late, plain_total / n_late) if n_late else (None, None)
        )
        hinge = getattr(learner.resolved_, "loss", None) == "hinge"
        return {
            "pairs": learner.n_pairs_seen_,
            "version": self.sequence,
            "loss": losses[0],
            "plain_loss": losses[1] if hinge else None,  # what can be compared
            "effective_window": _finite(effective_window(learner)),
            "last_change": last_change(learner),
            "threshold": learner.threshold_,
            "rank": learner.rank_,
        }

    def _course(self) -> dict[str, Any]:
        course, history = self.course, self.course.history
        experts = getattr(self.learner, "experts_", [])
        return {
            "ends": history.ends().tolist(),
            "loss": history.losses.tolist(),
            "plain_loss": course.plain_losses.tolist(),
            "effective_window": [_finite(each) for each in history.windows.tolist()],
            "experts": [
                {"kind": each.kind, "memory": _finite(each.memory), "rate": each.learning_rate}
                for each in experts
            ],
            "weights": course.weights.tolist(),
            "weights_now": [each.weight for each in experts],
            "changes": course.changes,
            "before": course.before and course.before.pairs,  # the last of them
            "features": self.config.features,
            "shares": shares_of(self.learner).tolist(),
            "shares_before": self._shares_before(),
        }

    def _shares_before(self) -> list[float] | None:
        """Of features, at the end of the last block before the last change, or of the first."""
        ends, shares = self.course.history.ends(), self.course.history.shares
        if not len(ends):
            return None
        changed = self.course.changes[-1] if self.course.changes else 0
        block = max(0, int(np.searchsorted(ends, changed, side="right")) - 1)
        found: list[float] = shares[block].tolist()
        return found


def _finite(value: float) -> float | None:
    """What JSON can say."""
    return value if np.isfinite(value) else None
