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
from metrack.estimators.online_itml import OnlineITML
from metrack.estimators.sadl import SADL
from metrack.estimators.sliding_window import SlidingWindow

TUNED = Path(__file__).with_name("tuned.json")
# The paper's single learner: its steps are explicit, and data are in their own units.
Settings = Mapping[str, Any]  # of an estimator
PAPER: dict[str, Any] = {
    "divergence": "frobenius",
    "regularizer": "nuclear",
    "step": "explicit",
    "init": "zero",
    "scale": None,
}
LMNN_ITERATIONS = 10  # of each refit, which starts where the last one ended
PAST_POINTS, PAST_EVERY = 600, 1000  # the batch method's sample, and points between its refits
WINDOW_EVERY = 200  # points between refits on a sliding window


class WholePast:
    """A batch learner refitted to the whole past, or to an even sample of it.

    The sample is a reservoir: every point so far is in it with the same probability.

    Parameters
    ----------
    learner : estimator
        Takes labelled points.
    n_points : int
        Size of the sample.
    every : int
        Points between two fits.
    random_state : int
    """

    def __init__(self, learner: Any, n_points: int, every: int, random_state: int = 0) -> None:
        self.learner = learner
        self.n_points = n_points
        self.every = every
        self.rng = np.random.default_rng(random_state)
        self.points: list[Floats] = []
        self.labels: list[int] = []
        self.n_seen = 0

    def partial_fit(self, X: Floats, y: Ints) -> "WholePast":
        """Go on with labelled points."""
        for x, label in zip(X, y.tolist(), strict=True):
            self.n_seen += 1
            if len(self.points) < self.n_points:
                self.points.append(x)
                self.labels.append(label)
            elif (at := int(self.rng.integers(self.n_seen))) < self.n_points:
                self.points[at], self.labels[at] = x, label
            if self.n_seen % self.every == 0:
                self.learner.fit(np.array(self.points), np.array(self.labels))
        return self

    def transform(self, X: Floats) -> Floats:
        """Embed points as of the last fit; before the first they stay as they are."""
        if self.n_seen < self.every:
            return X
        embedded: Floats = self.learner.transform(X)
        return embedded


def _lmnn(**settings: Any) -> LMNN:
    return LMNN(max_iter=LMNN_ITERATIONS, warm_start=True, **settings)


def _past(**settings: Any) -> WholePast:
    return WholePast(_lmnn(**settings), PAST_POINTS, PAST_EVERY)


def _window(window: int, **settings: Any) -> SlidingWindow:
    return SlidingWindow(_lmnn(**settings), window=window, every=WINDOW_EVERY)


METHODS: dict[str, Callable[..., Any]] = {
    "sadl": SADL,
    "sadl-published": SADL.as_published,
    "comid-high": lambda **settings: COMID(**PAPER | settings),
    "comid-low": lambda **settings: COMID(**PAPER | settings),
    "lmnn": _past,
    "lmnn-window": _window,
    "online-itml": OnlineITML,
}


def tuned() -> dict[str, Settings]:
    """The settings that ``metrack reproduce synthetic-tuning`` chose, by method."""
    settings: dict[str, Settings] = json.loads(TUNED.read_text(encoding="utf-8"))["settings"]
    return settings


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
        self.takes_points = isinstance(self.estimator, WholePast) or _takes_points(self.estimator)
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
