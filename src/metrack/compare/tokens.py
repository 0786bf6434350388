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
WITH_DIGIT = re.compile(r"\S*\d\S*")  # all that is written together with one
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


def spaced(text: str) -> str:
    """The words of a text that is `plain`, blanks between them."""
    return " ".join(WORD.findall(text))


def words(texts: Sequence[str]) -> Terms:
    """The words of texts that are `spaced`."""
    return _terms(texts, 0)


def letters(texts: Sequence[str]) -> Terms:
    """The trigrams of their words."""
    return _terms(texts, GRAM)


def codes(texts: Sequence[str]) -> Terms:
    """Words with a digit, of texts that are `plain`."""
    return _terms([" ".join(_codes(text)) for text in texts], 0)


def _codes(text: str) -> list[str]:
    """Words with a digit, also joined with what is written together with them: kx-tg6702."""
    found = []
    for together in WITH_DIGIT.findall(text):
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
    keys, ends = np.empty(len(points), np.int64), np.empty(len(texts), np.int64)
    _hash(points, starts, size, keys, ends)
    counts = np.empty(ends[-1] if len(ends) else 0)
    n = _count(keys, ends, counts)
    return Terms(np.concatenate([[0], ends]), keys[:n].copy(), counts[:n].copy())


@kernel
def _hash(points: NDArray[np.uint32], starts: Ints, size: int, keys: Ints, ends: Ints) -> None:
    """Leave the number of each term, text by text, and where each text's end."""
    n = 0
    for row in range(ends.size):
        begin = starts[row]
        for i in range(starts[row] + 1, starts[row + 1]):
            space = points[i] == SPACE
            if size == 0 and space:
                if i > begin + 1:
                    keys[n] = _number(points, begin + 1, i)
                    n += 1
                begin = i
            elif size > 0 and not space and i + 1 < starts[row + 1]:
                keys[n] = _number(points, i - 1, i + 2)
                n += 1
        ends[row] = n


@kernel
def _count(keys: Ints, ends: Ints, counts: Floats) -> int:
    """Leave each text's terms by rising number, each once, and how often it was there."""
    n, begin = 0, 0
    for row in range(ends.size):
        own, begin, first = keys[begin : ends[row]], ends[row], n
        _sort(own)
        for key in own:
            if n == first or keys[n - 1] != key:
                keys[n], counts[n] = key, 0.0
                n += 1
            counts[n - 1] += 1.0
        ends[row] = n
    return n


@inner
def _sort(keys: Ints) -> None:
    """In place, by Shell's method; what is compiled here allocates nothing, as numpy's would."""
    gap = keys.size // 2
    while gap > 0:
        for i in range(gap, keys.size):
            key, j = keys[i], i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 2


@inner
def _number(points: NDArray[np.uint32], start: int, stop: int) -> int:
    """The hash of some letters."""
    found = BASIS
    for i in range(start, stop):
        found = (found ^ np.uint64(points[i])) * PRIME
    return int(np.int64(found >> np.uint64(1)))
