"""The methods a drift study compares, and how each is given a stream."""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from metrack.checks import Floats, Ints
from metrack.estimators.comid import COMID
from metrack.estimators.lmnn import LMNN
from metrack.estimators.metric_tracker import MetricTracker
from metrack.estimators.online_itml import OnlineITML
from metrack.estimators.sadl import SADL
from metrack.estimators.sliding_window import SlidingWindow

TUNED = Path(__file__).with_name("tuned.json")
Settings = Mapping[str, Any]  # of an estimator
Choice = Mapping[str, Settings]  # by the measure that they were chosen by
# The paper's single learner: its steps are explicit, and data are in their own units.
PAPER: dict[str, Any] = {
    "divergence": "frobenius",
    "regularizer": "nuclear",
    "step": "explicit",
    "init": "zero",
    "scale": None,
}
LMNN_ITERATIONS = 10  # of each refit, which starts where the last one ended
PAST_POINTS, PAST_ITERATIONS = 400, 5  # the batch method's sample, which changes little


class Refitted:
    """A batch learner that is fitted again whenever its embedding is asked for.

    So every evaluation sees it at the same age, however evaluations are spaced.

    Parameters
    ----------
    learner : estimator
        Takes labelled points.
    n_points : int
        Size of the sample that it is fitted to.
    latest : bool
        Whether the sample is the latest points. Else it is a reservoir: every point so far is in it
        with the same probability.
    random_state : int
        Of the reservoir.
    """

    def __init__(
        self, learner: Any, n_points: int, latest: bool = False, random_state: int = 0
    ) -> None:
        self.learner = learner
        self.n_points = n_points
        self.latest = latest
        self.rng = np.random.default_rng(random_state)
        self.points: Floats = np.empty((0, 0))
        self.labels: Ints = np.empty(0, dtype=np.int64)
        self.n_seen = 0
        self.stale = False

    def partial_fit(self, X: Floats, y: Ints) -> "Refitted":
        """Go on with labelled points."""
        n_first = max(self.n_points - len(self.labels), 0)
        if self.latest:
            n_first = len(y)
        if n_first:
            points = self.points.reshape(-1, X.shape[1])
            self.points = np.concatenate([points, X[:n_first]])[-self.n_points :]
            self.labels = np.concatenate([self.labels, y[:n_first]])[-self.n_points :]
        if len(y) > n_first:
            seen = np.arange(self.n_seen + n_first + 1, self.n_seen + len(y) + 1)
            at = self.rng.integers(seen)
            kept = at < self.n_points
            self.points[at[kept]], self.labels[at[kept]] = X[n_first:][kept], y[n_first:][kept]
        self.n_seen += len(y)
        self.stale = True
        return self

    def transform(self, X: Floats) -> Floats:
        """Embed points; while there is nothing to tell apart they stay as they are."""
        counts = np.unique(self.labels, return_counts=True)[1]
        if len(counts) < 2 or counts.max() < 2:
            return X
        if self.stale:
            self.learner.fit(self.points, self.labels)
            self.stale = False
        embedded: Floats = self.learner.transform(X)
        return embedded


def _past(**settings: Any) -> Refitted:
    learner = LMNN(max_iter=PAST_ITERATIONS, warm_start=True, **settings)
    return Refitted(learner, PAST_POINTS)


def _window(window: int, **settings: Any) -> Refitted:
    learner = LMNN(max_iter=LMNN_ITERATIONS, warm_start=True, **settings)
    return Refitted(learner, window, latest=True)


METHODS: dict[str, Callable[..., Any]] = {
    "tracker": MetricTracker,
    "sadl-published": SADL.as_published,
    "comid-high": lambda **settings: COMID(**PAPER | settings),
    "comid-low": lambda **settings: COMID(**PAPER | settings),
    "lmnn": _past,
    "lmnn-window": _window,
    "online-itml": OnlineITML,
}


def tuned(schedule: str) -> dict[str, Choice]:
    """The settings that ``metrack reproduce synthetic-tuning`` chose, by method and measure."""
    settings: dict[str, dict[str, Choice]] = json.loads(TUNED.read_text(encoding="utf-8"))[
        "settings"
    ]
    return settings[schedule]


def check_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Names of known methods or ``package.module:Class``, each once; all by default."""
    found = tuple(dict.fromkeys(names)) or tuple(METHODS)
    for name in found:
        if name not in METHODS:
            make_of(name)
    return found


def make_of(name: str) -> Callable[..., Any]:
    """What makes a method's estimator: a known one, or anybody's that can be imported."""
    if name in METHODS:
        return METHODS[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        known = ", ".join(METHODS)
        raise ValueError(f"unknown method {name!r}; known are {known}, or package.module:Class")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"method {name!r} cannot be imported: {error}") from None
    if not callable(make):
        raise ValueError(f"method {name!r} must be a class, or a function that makes an estimator")
    return make  # type: ignore[no-any-return]


class Follower:
    """One estimator on a stream, whatever it takes: pairs or points, bit by bit or at once.

    Parameters
    ----------
    name : str
        Of a method.
    settings : dict
        Arguments for its estimator.
    random_state : int
        For the estimator, if it has one.
    """

    def __init__(self, name: str, settings: Settings, random_state: int) -> None:
        self.estimator = make_of(name)(**settings)
        for part in ("fit", "partial_fit"):
            if callable(getattr(self.estimator, part, None)):
                self.learn = getattr(self.estimator, part)
        if not hasattr(self, "learn") or not hasattr(self.estimator, "transform"):
            raise ValueError(
                f"method {name!r}: its estimator needs transform(X), and partial_fit(pairs, y) or "
                "fit(pairs, y)"
            )
        if "random_state" in getattr(self.estimator, "get_params", dict)():
            self.estimator.set_params(random_state=random_state)
        self.at_once = self.learn.__name__ == "fit"
        self.takes_points = isinstance(self.estimator, Refitted) or _takes_points(self.estimator)
        self.past: list[tuple[Floats, Ints]] = []
        self.started = False

    def follow(self, pairs: Floats, y: Ints, labels: Ints) -> None:
        """Go on with some pairs, their judgements, and the classes (n_pairs, 2) of their points."""
        given = (
            (pairs.reshape(-1, pairs.shape[2]), labels.ravel()) if self.takes_points else (pairs, y)
        )
        if self.at_once:
            self.past.append(given)
            items, answers = zip(*self.past, strict=True)
            given = np.concatenate(items), np.concatenate(answers)
            if (given[1] == given[1][0]).all():  # nothing to tell apart yet
                return
        self.learn(*given)
        self.started = not (
            isinstance(self.estimator, SlidingWindow) and self.estimator.n_fits_ == 0
        )

    def embed(self, points: Floats) -> Floats:
        """The points in the learned embedding; before anything is learned, as they are.

        A study looks for neighbours and clusters: where an estimator has an embedding for these,
        it is taken.
        """
        if not self.started:
            return points
        view = getattr(self.estimator, "for_neighbours", lambda: self.estimator)()
        return np.asarray(view.transform(points))


def _takes_points(estimator: Any) -> bool:
    """Whether an estimator says that it learns from labelled points; else it takes pairs."""
    try:
        return bool(get_tags(estimator).input_tags.two_d_array)
    except (AttributeError, TypeError):
        return False
