"""A learner, how far in the log it has come, and how it went: what is saved of a metric."""

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from metrack.estimators.kernel_tracker import KernelTracker
from metrack.estimators.metric_tracker import MetricTracker
from metrack.estimators.states.persistence import pack, unpack
from metrack.serve.course import Course
from metrack.serve.kinds.kind import Examples, Kind
from metrack.serve.kinds.table import NOT_HERE, kind_of, make
from metrack.serve.log import Stretch
from metrack.serve.series import plain
from metrack.serve.snapshots import Snapshot
from metrack.storage import WRONG, CorruptStateError, State, from_bytes, to_bytes
from metrack.tracking.history import History, effective_window, last_change, shares_of
from metrack.tracking.state import Tracking

logger = logging.getLogger(__name__)


class Config(NamedTuple):
    """What a metric is made of."""

    n_features: int
    estimator: str
    settings: dict[str, Any]
    features: list[str] | None  # their names

    @property
    def kind(self) -> Kind:
        """What it learns from."""
        return kind_of(self.estimator)

    def make(self) -> Any:
        """A new learner, ready to learn; raises a ValueError or TypeError for wrong settings."""
        return make(self.estimator, self.settings, self.n_features)


class Learning:
    """A learner at work.

    Parameters
    ----------
    config : Config
    learner : estimator
        Started.
    course : Course
    sequence : int
        Of the last judgement that was learned.
    """

    def __init__(self, config: Config, learner: Any, course: Course, sequence: int) -> None:
        self.config, self.learner = config, learner
        self.course, self.sequence = course, sequence
        self.kind = config.kind

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
                return cls.of_state(config, state)
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
    def of_state(cls, config: Config, state: State) -> Self:
        """As it was packed."""
        learner = unpack(state, None, "the saved state")
        saved = state.content["serve"]
        if "series" not in saved["course"]:
            raise CorruptStateError("the saved state is of an earlier version")
        history = History.unpack(state.content["tracking"]["history"], state.arrays)
        course = Course.unpack(saved["course"], history, state.arrays)
        return cls(config, learner, course, saved["sequence"])

    @classmethod
    def of_learner(cls, learner: Any, features: list[str] | None, settings: dict[str, Any]) -> Self:
        """One that has learned elsewhere, how is not known."""
        width = learner.n_features_in_
        config = Config(width, type(learner).__name__, settings, features)
        return cls(config, learner, Course(width), config.kind.counted(learner))

    def learn(self, stretch: Stretch) -> None:
        """Learn the next judgements of the log."""
        self.course.count(stretch.times)
        corrections = np.flatnonzero(stretch.corrects).tolist()
        for begin, end in pairwise(sorted({0, *corrections, len(stretch.y)})):
            rows = slice(begin, end)
            if stretch.corrects[begin]:
                self.kind.forget(self.learner, stretch.points[begin : begin + 1])
            sure = stretch.y[rows] != 0
            labels = [each for each, s in zip(stretch.labels[rows], sure, strict=True) if s]
            some = Examples(stretch.points[rows][sure], stretch.y[rows][sure], labels)
            self._learn(some, stretch.times[rows][sure])
        self.sequence = int(stretch.sequences[-1])

    def _learn(self, some: Examples, times: Any) -> None:
        start = 0
        while start < len(some.y):
            rest = some.part(start, len(some.y))
            n, outcome = self.kind.learn(self.learner, rest, self.course.room)
            stop, inner = start + n, self.kind.inner(self.learner)
            when = times[start:stop]
            if self.kind.in_their_units:
                self.course.spread.observe(rest.points[:n])
            if len(outcome.losses) == n and self.kind.members == 2:
                found = self.course.plain.observe(rest.points[:n], rest.y[:n].astype(float))
                outcome = outcome._replace(plain=found)
            elif len(outcome.losses) != n:  # of pairs that were drawn for these
                when = np.full(len(outcome.losses), when[-1])
            self.course.add(outcome, when, inner)
            start = stop

    def pack(self) -> State:
        """All of it."""
        tracking = Tracking(self.learner, None)
        tracking.features, tracking.history = self.config.features, self.course.history
        content, arrays = tracking.pack()
        course, more = self.course.pack()
        serve = {"sequence": self.sequence, "course": course}
        return State({**content, "serve": serve}, {**arrays, **more})

    def snapshot(self) -> Snapshot:
        """What can be read of it now."""
        learner, whole = self.learner, None
        if self.kind.by_copy:
            whole = to_bytes(pack(learner))
            learner = unpack(from_bytes(whole, "the snapshot"), None, "the snapshot")
        return Snapshot(
            self.sequence,
            self.config.estimator,
            self.kind.read(learner, self.config.n_features),
            whole,
            self.summary(),
            self._course(),
            self.course.before,
        )

    def summary(self) -> dict[str, Any]:
        """Where it stands."""
        kind, course = self.kind, self.course
        inner = kind.inner(self.learner)
        series = course.series
        accuracy, auc, loss, plain_loss = plain(np.array([*series.now(), *series.losses()]))
        change = course.changes[-1] if course.changes else None
        return {
            "pairs": kind.counted(self.learner),
            "version": self.sequence,
            "loss": loss,
            "plain_loss": plain_loss if _is_hinge(inner) else None,  # what can be compared
            "accuracy": accuracy,
            "auc": auc,
            "effective_window": _finite(effective_window(inner)),
            "last_change": last_change(inner),
            "last_change_time": change and change.time,
            "threshold": kind.threshold(self.learner),
            "rank": getattr(inner, "rank_", None),
            "sparks": series.sparks(),
            "hours": sorted(course.hours.items()),
        }

    def _course(self) -> dict[str, Any]:
        course, history = self.course, self.course.history
        inner = self.kind.inner(self.learner)
        experts = getattr(inner, "experts_", [])
        return {
            "series": course.series.described(),
            "ends": history.ends().tolist(),
            "effective_window": [_finite(each) for each in history.windows.tolist()],
            "experts": [
                {"kind": each.kind, "memory": _finite(each.memory), "rate": each.learning_rate}
                for each in experts
            ],
            "weights": course.weights.tolist(),
            "weights_now": [each.weight for each in experts],
            "changes": [self._told(change) for change in course.changes],
            "before": course.before and course.before.pairs,  # the last of them
            "features": self.config.features,
            "shares": course.spread.weigh(shares_of(inner)).tolist(),
            "shares_before": course.shares_before().tolist() if len(history.losses) else None,
        }

    def _told(self, change: Any) -> dict[str, Any]:
        names = self.config.features
        told = [
            {"feature": f"feature {i + 1}" if names is None else names[i], "by": by}
            for i, by in change.moved
        ]
        return {"pair": change.pair, "time": change.time, "moved": told}


def brought(state: State) -> Learning:
    """What was exported, or saved by a learner or by ``metrack track``."""
    learner, told = unpack(state, None, "the zip"), state.content["learner"]
    known = learner.n_features_in_
    names = getattr(learner, "feature_names_in_", None)
    features = state.content.get("tracking", {}).get("features")
    if features is None and names is not None:
        features = [str(each) for each in names]
    if features is not None and not (isinstance(features, list) and len(features) == known):
        raise CorruptStateError("the zip has other names than features")
    settings = {name: value for name, value in told["settings"].items() if name not in NOT_HERE}
    found = Learning.of_learner(learner, features, settings)
    if "serve" not in state.content:
        return found
    try:
        return Learning.of_state(found.config, state)
    except WRONG as error:
        raise CorruptStateError(f"the zip describes no course of learning: {error}") from error


def _is_hinge(learner: Any) -> bool:
    """Of the trackers it is the only loss there is."""
    own = "hinge" if isinstance(learner, MetricTracker | KernelTracker) else None
    return bool(getattr(learner.resolved_, "loss", own) == "hinge")


def _finite(value: float) -> float | None:
    """What JSON can say."""
    return value if np.isfinite(value) else None
