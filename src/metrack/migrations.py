"""States of earlier formats, made into those of the next: one step a format, on names and arrays.

Nothing here knows a class, so that a step says for ever what it said when it was written. A new
format has the next number, a step from the one before it in `STEPS`, and states of its own in the
tests.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Content = dict[str, Any]

VERSION = 1  # of the format that is written
OLDEST = 1  # that is read: no metrack that wrote an earlier one was released
STEPS: dict[int, Callable[[Content, Arrays], tuple[Content, Arrays]]] = {}


def migrated(version: int, content: Content, arrays: Arrays) -> tuple[Content, Arrays]:
    """What a state of some format holds, in the present one."""
    for step in range(version, VERSION):
        content, arrays = STEPS[step](content, arrays)
    return content, arrays
