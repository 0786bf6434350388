"""Texts as words, letters and codes, each known by a number: sparse rows, one a text.

What a text holds is known by hashes of 63 bits, so that nothing has to be looked up in, or added
to, a list of terms: a word that was never seen before is the same in two records. Letters are
trigrams of each word with its ends; codes are words with a digit, also without the dashes, dots or
commas that they are written with: model numbers, versions, sizes.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel

WORD = re.compile(r"\w+")
DIGIT = re.compile(r"\d")
SPACE = 32
GRAM = 3  # letters
BASIS, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # of the FNV-1a hash


class Terms(NamedTuple):
    """What texts hold: the k-th has the terms from starts[k] to starts[k + 1], by rising number."""

    starts: Ints
    keys: Ints
    counts: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1


def plain(value: object) -> str:
    """A text as it is compared: no capitals, one form of each letter."""
    text = value if isinstance(value, str) else str(value)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text.casefold()


def words(texts: Sequence[str]) -> Terms:
    """The words of texts that are `plain`."""
    return _terms([" ".join(WORD.findall(text)) for text in texts], 0)


def letters(texts: Sequence[str]) -> Terms:
    """The trigrams of their words."""
    return _terms([" ".join(WORD.findall(text)) for text in texts], GRAM)


def codes(texts: Sequence[str]) -> Terms:
    """Their words with a digit."""
    return _terms([" ".join(_codes(text)) for text in texts], 0)


def _codes(text: str) -> list[str]:
    """Words with a digit, also joined with what is written together with them: kx-tg6702."""
    if not DIGIT.search(text):
        return []
    found = []
    for together in text.split():
        if DIGIT.search(together):
            parts = WORD.findall(together)
            found += [each for each in parts if DIGIT.search(each)]
            found += ["".join(parts)] if len(parts) > 1 else []
    return found


def _terms(texts: Sequence[str], size: int) -> Terms:
    """Words, of which spaces are between, or grams of so many letters."""
    lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    joined = "".join(f" {text} " for text in texts)
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    keys, rows = np.empty(len(points), np.int64), np.empty(len(points), np.int64)
    n = _hash(points, starts, size, keys, rows)
    return counted(len(texts), rows[:n], keys[:n])


def counted(n_texts: int, rows: Ints, keys: Ints) -> Terms:
    """Terms of texts by number, in any order."""
    order = np.lexsort((keys, rows))
    rows, keys = rows[order], keys[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(keys))).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[first], minlength=n_texts))])
    return Terms(starts.astype(np.int64), keys[first], counts)


@kernel
def _hash(points: NDArray[np.uint32], starts: Ints, size: int, keys: Ints, rows: Ints) -> int:
    """Leave the number of each term, and of its text; returns how many there are."""
    n = 0
    for row in range(starts.size - 1):
        begin = starts[row]
        for i in range(starts[row] + 1, starts[row + 1]):
            space = points[i] == SPACE
            if size == 0 and space:
                if i > begin + 1:
                    keys[n], rows[n] = _number(points, begin + 1, i), row
                    n += 1
                begin = i
            elif size > 0 and not space and i + 1 < starts[row + 1]:
                keys[n], rows[n] = _number(points, i - 1, i + 2), row
                n += 1
    return n


@inner
def _number(points: NDArray[np.uint32], start: int, stop: int) -> int:
    """The hash of some letters."""
    found = BASIS
    for i in range(start, stop):
        found = (found ^ np.uint64(points[i])) * PRIME
    return int(np.int64(found >> np.uint64(1)))
