"""Estimators' settings: names are checked when they are given, values when fitting starts."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from metrack.checks import is_number as is_number

T = TypeVar("T")
Seed: TypeAlias = int | np.random.RandomState | None  # as everywhere in scikit-learn


class Configurable(BaseEstimator):
    """An estimator whose errors about unknown settings tell the known ones."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _naming_settings(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Set settings by name, as everywhere in scikit-learn."""
        known = self.get_params(deep=False)
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(_unknown(type(self), name, known))
        super().set_params(**params)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """As of every estimator, but for a preprocessor's points, of which the shape is told."""
        text: str = BaseEstimator.__repr__(_abridged(self), N_CHAR_MAX)
        return text


class _Points:
    """What stands for a preprocessor in a text."""

    def __init__(self, points: Any) -> None:
        self.kind = type(points).__name__
        self.shape = points.shape if hasattr(points, "shape") else (len(points),)

    def __repr__(self) -> str:
        return f"<{self.kind} of {' x '.join(f'{each:,}' for each in self.shape)}>"


def _abridged(estimator: Any) -> Any:
    """Another of the same settings, without points; so is an estimator that is one of them."""
    shown = object.__new__(type(estimator))
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Configurable):
            value = _abridged(value)
        elif name == "preprocessor" and (hasattr(value, "shape") or isinstance(value, list)):
            value = _Points(value)
        setattr(shown, name, value)
    return shown


def _naming_settings(init: Callable[..., None]) -> Callable[..., None]:
    parameters = signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return init  # of someone's subclass, which hands names on
    known = list(parameters)[1:]

    @wraps(init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        for name in settings:
            if name not in known:
                raise TypeError(_unknown(type(self), name, known))
        init(self, *args, **settings)

    return checked


def _unknown(kind: type, name: str, known: Any) -> str:
    return (
        f"{kind.__name__} has no setting {name!r}; it has {', '.join(known)}. Where metric-learn "
        "has it under that name, docs/from-metric-learn.md says what to write"
    )


def choice(name: str, value: Any, choices: Mapping[Any, T]) -> T:
    """What a named setting stands for in the engine."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(each) for each in choices)
        raise ValueError(f"{name}={value!r}; choose one of {known}") from None


def positive(name: str, value: Any, or_zero: bool = False) -> float:
    """A finite number above 0."""
    if is_number(value) and (0.0 < value < np.inf or (or_zero and value == 0.0)):
        return float(value)
    raise ValueError(f"{name}={value!r}; it must be a number {'>= 0' if or_zero else '> 0'}")


def at_most_features(n_components: Any, n_features: int) -> int:
    """A number of components that so many features can have."""
    if n_components is None:
        return n_features
    width = whole("n_components", n_components)
    if width > n_features:
        raise ValueError(
            f"n_components={width}; there are only {n_features} features: choose 1 to {n_features}"
        )
    return width


def whole(name: str, value: Any, or_zero: bool = False, most: int | None = None) -> int:
    """A whole number from 1 up."""
    least = 0 if or_zero else 1
    is_whole = is_number(value) and isinstance(value, int | np.integer)
    if is_whole and value >= least and (most is None or value <= most):
        return int(value)
    up_to = "" if most is None else f" and <= {most}"
    raise ValueError(f"{name}={value!r}; it must be a whole number >= {least}{up_to}")
