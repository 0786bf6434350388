"""In how many texts each term was seen: rare ones count for more."""

from typing import Annotated, NamedTuple

import numpy as np

from metrack.compare.tokens import Terms
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import counts

MOST_TERMS = 1 << 20  # beyond, those in the fewest texts are counted anew


class Vocabulary(NamedTuple):
    """Terms by rising number. It is never changed, but followed by another."""

    keys: Annotated[Ints, counts("terms", most=2**63 - 1)]
    texts: Annotated[Ints, counts("terms", least=1)]
    n_texts: Annotated[Ints, counts(1)]


def no_terms() -> Vocabulary:
    """Nothing seen yet."""
    return Vocabulary(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64))


def extended(known: Vocabulary, terms: Terms) -> Vocabulary:
    """The same with more texts; those that are empty do not count."""
    keys, seen = np.unique(terms.keys, return_counts=True)
    together, places = np.unique(np.concatenate([known.keys, keys]), return_inverse=True)
    texts = np.bincount(places, np.concatenate([known.texts, seen]), len(together))
    texts = texts.astype(np.int64)
    if len(together) > MOST_TERMS:
        kept = np.sort(np.argsort(-texts, kind="stable")[:MOST_TERMS])
        together, texts = together[kept], texts[kept]
    n_texts = known.n_texts + np.count_nonzero(np.diff(terms.starts))
    return Vocabulary(together, texts, n_texts)


def rarity(known: Vocabulary, terms: Terms) -> Floats:
    """For each term log(1 + n / k), where k of n texts have it; as if one more text had each."""
    if not known.keys.size:
        return np.full(len(terms.keys), np.log(2.0))
    places = np.minimum(np.searchsorted(known.keys, terms.keys), len(known.keys) - 1)
    texts = np.where(known.keys[places] == terms.keys, known.texts[places], 0)
    found: Floats = np.log1p((known.n_texts[0] + 1.0) / (texts + 1.0))
    return found
