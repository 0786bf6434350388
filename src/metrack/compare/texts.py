"""Texts compared: by letters, by words, by what one has of the other, and by codes."""

from typing import Any, NamedTuple

import numpy as np

from metrack.compare import tokens
from metrack.compare.columns import Column
from metrack.compare.products import products
from metrack.compare.tokens import Terms
from metrack.compare.vocabulary import Vocabulary, extended, no_terms, rarity
from metrack.engine.numerics.kernels import Floats, Ints

SOME = 0.05  # of texts: if so many have codes, these are compared


class Weighted(NamedTuple):
    """Texts, and what each of their terms counts for."""

    terms: Terms
    weight: Floats  # of each term by its rarity
    total: Floats  # of a text's terms
    unit: Floats  # each text as a vector of length 1


class Prepared(NamedTuple):
    """A column of texts, taken apart once."""

    letters: Weighted
    words: Weighted
    codes: Weighted


class Text:
    """How two texts compare.

    Terms that are rare in the field count for more, by how many texts they have been seen in.
    Codes are compared where some of the first texts have such.

    Parameters
    ----------
    whole : bool
        The texts are of all fields together: those that miss tell nothing new.

    Attributes
    ----------
    letters, words : Vocabulary
        What has been seen so far.
    has_codes : bool
    """

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole
        self.has_codes = False
        self.letters = no_terms()
        self.words = no_terms()

    @property
    def comparisons(self) -> list[str]:
        """Their names."""
        missing = [] if self.whole else ["missing"]
        codes = ["codes", "codes missing"] if self.has_codes else []
        return ["letters", "words", "contained", *missing, *codes]

    def start(self, column: Column) -> None:
        """Settle by a first column what is compared, and learn it."""
        with_codes = np.diff(tokens.codes(_plain(column)).starts) > 0
        self.has_codes = bool(with_codes.mean() >= SOME) if len(column) else False
        self.learn(column)

    def learn(self, column: Column) -> None:
        """Let a column's texts count in how rare terms are."""
        texts = [tokens.spaced(text) for text in _plain(column)]
        self.letters = extended(self.letters, tokens.letters(texts))
        self.words = extended(self.words, tokens.words(texts))

    def prepare(self, column: Column) -> Prepared:
        """A column, taken apart."""
        texts = _plain(column)
        terms = tokens.codes(texts if self.has_codes else [""] * len(texts))
        spaced = [tokens.spaced(text) for text in texts]
        return Prepared(
            _weighted(tokens.letters(spaced), self.letters),
            _weighted(tokens.words(spaced), self.words),
            _by_weight(terms, np.ones(len(terms.keys))),
        )

    def compare(self, first: Prepared, second: Prepared, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another."""
        missing = _missing(first.words, second.words, rows)
        found = [
            _known(missing, 1.0 - _cosine(first.letters, second.letters, rows)),
            _known(missing, 1.0 - _cosine(first.words, second.words, rows)),
            _known(missing, 1.0 - _contained(first.words, second.words, rows)),
        ]
        if not self.whole:
            found.append(missing.astype(np.float64))
        if self.has_codes:
            without = _missing(first.codes, second.codes, rows)
            found.append(_known(without, 1.0 - _contained(first.codes, second.codes, rows)))
            found.append(without.astype(np.float64))
        return found


def _plain(column: Column) -> list[str]:
    return ["" if value is None else tokens.plain(value) for value in column]


def _weighted(terms: Terms, known: Vocabulary) -> Weighted:
    return _by_weight(terms, rarity(known, terms))


def _by_weight(terms: Terms, weight: Floats) -> Weighted:
    weighed = weight * terms.counts
    lengths = np.sqrt(_sums(terms, weighed**2))
    unit = weighed / np.repeat(np.where(lengths > 0.0, lengths, 1.0), np.diff(terms.starts))
    return Weighted(terms, weight, _sums(terms, weight), unit)


def _sums(terms: Terms, values: Floats) -> Floats:
    """Over each text's terms."""
    rows = np.repeat(np.arange(len(terms)), np.diff(terms.starts))
    return np.bincount(rows, values, len(terms)).astype(np.float64)


def _missing(first: Weighted, second: Weighted, rows: Ints) -> Any:
    """Where one text of a pair has no terms."""
    return (first.total[rows[:, 0]] == 0.0) | (second.total[rows[:, 1]] == 0.0)


def _known(missing: Any, values: Floats) -> Floats:
    """Where nothing is known, nothing differs; that it is missing is a comparison of its own."""
    return np.where(missing, 0.0, np.clip(values, 0.0, 1.0))


def _cosine(first: Weighted, second: Weighted, rows: Ints) -> Floats:
    return products(first.terms, first.unit, second.terms, second.unit, rows)


def _contained(first: Weighted, second: Weighted, rows: Ints) -> Floats:
    """The weight of common terms over that of the text that has less."""
    ones = np.ones(len(second.terms.keys))
    common = products(first.terms, first.weight, second.terms, ones, rows)
    less = np.minimum(first.total[rows[:, 0]], second.total[rows[:, 1]])
    found: Floats = common / np.where(less > 0.0, less, 1.0)
    return found
