"""Checks of estimators' settings, made when fitting starts."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def choice(name: str, value: Any, choices: Mapping[Any, int]) -> int:
    """What a named setting stands for in the engine."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(each) for each in choices)
        raise ValueError(f"{name}={value!r}; choose one of {known}") from None


def is_number(value: Any) -> bool:
    """A real number, and not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def positive(name: str, value: Any, or_zero: bool = False) -> float:
    """A finite number above 0."""
    if is_number(value) and (0.0 < value < np.inf or (or_zero and value == 0.0)):
        return float(value)
    raise ValueError(f"{name}={value!r}; it must be a number {'>= 0' if or_zero else '> 0'}")


def whole(name: str, value: Any, or_zero: bool = False) -> int:
    """A whole number from 1 up."""
    least = 0 if or_zero else 1
    if is_number(value) and isinstance(value, int | np.integer) and value >= least:
        return int(value)
    raise ValueError(f"{name}={value!r}; it must be a whole number >= {least}")
