"""How good predictions were, along the stream: a mean over each of a number of equal blocks.

Kept are losses, those of plain distance, the share of judgements that were predicted, the area
under the ROC curve, and when. Blocks begin short, so that a person's first answers can be seen;
when there are too many, two and two become one. What is kept depends on the judgements alone, and
not on how they were cut.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import rankdata

from metrack.checks import Bools, Floats
from metrack.storage import Arrays

FIRST_WIDTH = 8  # judgements of a block at the start
MOST_BLOCKS = 256
LATEST = 256  # judgements that accuracy and AUC of a moment rest on
COLUMNS = ("loss", "plain_loss", "accuracy", "auc", "time")
SPARKS = 32  # blocks of the small picture of a metric
PREFIX = "series."


class Outcome(NamedTuple):
    """What was predicted of some judgements before they were learned; NaN where it is not known.

    Attributes
    ----------
    losses, plain : array
        Of the learner, and of plain distance.
    right : array
        1 where the prediction was right, else 0.
    scores : array
        The smaller, the more alike was predicted.
    alike : array of bool
    """

    losses: Floats
    plain: Floats
    right: Floats
    scores: Floats
    alike: Bools

    def part(self, start: int, stop: int) -> "Outcome":
        """Of some of the judgements."""
        rows = slice(start, stop)
        return Outcome(
            *(self.losses[rows], self.plain[rows], self.right[rows], self.scores[rows]),
            self.alike[rows],
        )


def auc(scores: Floats, alike: Bools) -> float:
    """How often an alike pair had a smaller score than another one; NaN without both."""
    n_alike, n_others = int(alike.sum()), int((~alike).sum())
    if not n_alike or not n_others or np.isnan(scores).any():
        return float("nan")
    ranks = rankdata(-scores)[alike].sum()
    return float((ranks - n_alike * (n_alike + 1) / 2) / (n_alike * n_others))


class Series:
    """Blocks of a stream, and its latest judgements."""

    def __init__(self) -> None:
        self.width = FIRST_WIDTH
        self.blocks: Floats = np.empty((0, len(COLUMNS)))
        self.pairs = 0  # in the last block, which is not full yet
        self.totals: Floats = np.zeros(2)  # of their losses, and of plain distance's
        self.moments: Floats = np.empty((0, 2))  # accuracy and AUC, at times within it
        self.latest: Floats = np.empty((0, 6))  # right, score, alike, time, losses

    def add(self, outcome: Outcome, times: Floats) -> None:
        """Add what was predicted of some judgements."""
        start, n = 0, len(times)
        while start < n:
            step = min(self.width, LATEST)
            stop = min(n, start + step - self.pairs % step)
            self._add(outcome.part(start, stop), times[start:stop])
            start = stop

    def _add(self, some: Outcome, times: Floats) -> None:
        """Add no more than there is room for until accuracy is looked at next."""
        # One after another: numpy's own sum would depend on how many there are.
        for i, losses in enumerate((some.losses, some.plain)):
            self.totals[i] = np.add.accumulate(np.append(self.totals[i], losses))[-1]
        rows = np.column_stack(
            [some.right, some.scores, some.alike, times, some.losses, some.plain]
        )
        self.latest = np.concatenate([self.latest, rows])[-LATEST:]
        self.pairs += len(times)
        if self.pairs % min(self.width, LATEST) == 0:
            self.moments = np.concatenate([self.moments, [self.now()]])
        if self.pairs == self.width:
            self._end_block(float(times[-1]))

    def now(self) -> tuple[float, float]:
        """Accuracy and AUC of the latest judgements."""
        if not len(self.latest):
            return float("nan"), float("nan")
        right, scores, alike = self.latest[:, :3].T
        return float(right.mean()), auc(scores, alike > 0.0)

    def losses(self) -> tuple[float, float]:
        """Mean losses of the latest judgements, and plain distance's."""
        if not len(self.latest):
            return float("nan"), float("nan")
        mine, others = self.latest[:, 4:].mean(axis=0).tolist()
        return mine, others

    def _end_block(self, time: float) -> None:
        row = [*(self.totals / self.width), *_means(self.moments), time]
        self.blocks = np.concatenate([self.blocks, [row]])
        self.pairs, self.totals, self.moments = 0, np.zeros(2), np.empty((0, 2))
        if len(self.blocks) == MOST_BLOCKS:
            both = self.blocks.reshape(-1, 2, len(COLUMNS))
            self.blocks = np.column_stack(
                [both[:, :, :2].mean(axis=1), _pairwise(both[:, :, 2:4]), both[:, 1, 4]]
            )
            self.width *= 2

    def time_of(self, pairs_ago: int) -> float | None:
        """When a judgement was given that is not long ago."""
        if pairs_ago >= len(self.latest):
            return None
        return float(self.latest[len(self.latest) - 1 - pairs_ago, 3])

    def described(self) -> dict[str, Any]:
        """For a page: numbers of blocks, null where there is none."""
        blocks = self.blocks
        ends = self.width * np.arange(1, len(blocks) + 1)
        if self.pairs:  # the last as far as it has come
            row = [*(self.totals / self.pairs), *self.now(), self.latest[-1, 3]]
            blocks = np.concatenate([blocks, [row]])
            ends = np.append(ends, self.width * len(self.blocks) + self.pairs)
        columns = {name: plain(blocks[:, i]) for i, name in enumerate(COLUMNS)}
        return {"ends": ends.tolist(), **columns}

    def sparks(self) -> dict[str, list[float | None]]:
        """Of the last blocks, in few digits."""
        last = self.blocks[-SPARKS:]
        return {"loss": plain(last[:, 0], 3), "plain_loss": plain(last[:, 1], 3)}

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """What JSON can say, and the arrays."""
        arrays = {name: getattr(self, name) for name in ("blocks", "totals", "moments", "latest")}
        plainly = {"width": self.width, "pairs": self.pairs}
        return plainly, {f"{PREFIX}{name}": array for name, array in arrays.items()}

    @classmethod
    def unpack(cls, content: Mapping[str, Any], arrays: Arrays) -> Self:
        """The inverse of `pack`."""
        found = cls()
        found.width, found.pairs = content["width"], content["pairs"]
        for name in ("blocks", "totals", "moments", "latest"):
            setattr(found, name, arrays[f"{PREFIX}{name}"])
        return found


def _means(rows: Floats) -> list[float]:
    """Of columns, over what is known of each."""
    known = (column[~np.isnan(column)] for column in rows.T)
    return [float(each.mean()) if each.size else float("nan") for each in known]


def _pairwise(both: Floats) -> Floats:
    """Means of two and two, over what is known of them."""
    known = ~np.isnan(both)
    totals, n_known = np.where(known, both, 0.0).sum(axis=1), known.sum(axis=1)
    return np.where(n_known > 0, totals / np.maximum(n_known, 1), np.nan)


def plain(values: Floats, digits: int | None = None) -> list[float | None]:
    """What JSON can say."""
    rounded = [
        value if digits is None else float(f"{value:.{digits}g}") for value in values.tolist()
    ]
    return [value if np.isfinite(value) else None for value in rounded]
