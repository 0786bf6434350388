"""Streams are made in blocks, so that any access in any order gives the same."""

from collections.abc import Iterator


def pieces(start: int, stop: int, size: int) -> Iterator[tuple[int, slice]]:
    """The blocks of a given size that a range touches, and the part of each that lies in it."""
    for block in range(start // size, -(-stop // size)):
        first = block * size
        yield block, slice(max(start - first, 0), min(stop - first, size))
