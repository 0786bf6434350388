"""Blocks of pairs, at whose ends what takes long is done.

They end at fixed counts of pairs: so calls of any sizes lead to the same state. The first ones are
short, each as long as all before it, so that early pairs count early.
"""

EARLY, SHORT, LONG = 512, 64, 256  # pairs: until then, and from then on, a block has so many


def block_of(t: int, longest: int, first: int = 1) -> tuple[int, int]:
    """The block that pair t (counted from 0) belongs to: its first pair, and the next one's.

    ``longest``, and the length of the first one, are powers of 2.
    """
    length = first if t < first else min(1 << (t.bit_length() - 1), longest)
    return t - t % length, t - t % length + length


def block_at(t: int) -> tuple[int, int]:
    """The block of an ensemble that pair t (counted from 0) belongs to."""
    return block_of(t, SHORT if t < EARLY else LONG)
