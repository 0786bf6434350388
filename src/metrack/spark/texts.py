"""A state as text: what Spark's store keeps of a tracker.

Spark hands values to Python as pickles, which hold bytes as text that is not ASCII: to write and to
read that takes as long for a state as to learn a hundred pairs. ASCII is copied as it is. There is
no checksum: the store has its own.
"""

import json
from math import prod
from typing import NamedTuple

import numpy as np

from metrack.migrations import OLDEST, VERSION, migrated
from metrack.storage import ForeignStateError, NewerStateError, State


class Text(NamedTuple):
    """A state; all of it is ASCII."""

    header: str  # JSON: the format, what is not in arrays, and which arrays follow
    low: str  # seven bits of each byte of the arrays
    high: str  # the eighth ones, in hexadecimal


def to_text(state: State) -> Text:
    """The text of a state."""
    # Arrays of large numbers first: each then begins at a multiple of what its numbers take.
    arrays = sorted(state.arrays.items(), key=lambda named: -named[1].itemsize)
    named = [(name, array.dtype.str, array.shape) for name, array in arrays]
    data = np.frombuffer(b"".join(array.data for _, array in arrays), np.uint8)
    return Text(
        json.dumps([VERSION, state.content, named]),
        (data & 127).tobytes().decode("ascii"),
        np.packbits(data > 127).tobytes().hex(),
    )


def from_text(text: Text) -> State:
    """The inverse of `to_text`, also of one that an earlier metrack wrote."""
    version, content, named = json.loads(text.header)
    if version > VERSION:
        raise NewerStateError(f"the checkpoint has states of format {version}: upgrade metrack")
    if version < OLDEST:
        raise ForeignStateError(f"the checkpoint has states of format {version}: start a new one")
    low = np.frombuffer(text.low.encode("ascii"), np.uint8)
    high = np.frombuffer(bytes.fromhex(text.high), np.uint8)
    data = np.unpackbits(high, count=len(low))
    data <<= 7
    data |= low
    arrays, start = {}, 0
    for name, dtype, shape in named:
        end = start + np.dtype(dtype).itemsize * prod(shape)
        arrays[name] = data[start:end].view(dtype).reshape(shape)
        start = end
    return State(*migrated(version, content, arrays))
