"""The ensemble's own regret, against its learners: the part of the guarantee that holds surely."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Bools, Floats, Ints
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.estimators.inputs import PairBatch, check_labels, check_preprocessor


@dataclass(frozen=True)
class Trace:
    """What an ensemble thought and suffered, round by round; made by `trace`.

    Attributes
    ----------
    losses : array (n_rounds,)
        Loss of the ensemble's output, as ``observe`` returns it.
    p : array (n_rounds, n_scales)
        Probability of each learner when it predicted; 0 where it was not active.
    learner_losses : array (n_rounds, n_scales)
        What the combiner was told of each learner, in [0, 1]; NaN where it was not active.
    scales : array (n_scales,)
        Memory lengths of the learners.
    active : array (n_rounds,)
        How many learners there were: always the first so many.
    first_interval : int
        Of the dyadic cover; 0 where learners are always on.
    n_before : int
        Pairs the tracker had seen before.
    """

    losses: Floats
    p: Floats
    learner_losses: Floats
    scales: Floats
    active: Ints
    first_interval: int
    n_before: int

    @property
    def expected(self) -> Floats:
        """Mean loss of a learner drawn by p, as the combiner was told, (n_rounds,)."""
        expected: Floats = np.einsum("tj,tj->t", self.p, np.nan_to_num(self.learner_losses))
        return expected

    @property
    def regret(self) -> Floats:
        """Regret r_t against each learner, (n_rounds, n_scales); NaN where it was not active."""
        return self.expected[:, None] - self.learner_losses


@dataclass(frozen=True)
class MetaRegret:
    """Regret of an ensemble against its learners on every interval of the dyadic cover.

    Attributes
    ----------
    start, stop : array (n_intervals,)
        Rounds of the trace that make up the interval, the latter not included. The last interval of
        a scale may be cut short by the end of the trace.
    length : array (n_intervals,)
        Full length of the interval.
    regret : array (n_intervals,)
        Sum of r_t over the interval.
    bound : array (n_intervals,)
        5 ln(s + 1) sqrt(length), s the number of the interval's last pair, counted from 1.
    """

    start: Ints
    stop: Ints
    length: Ints
    regret: Floats
    bound: Floats

    @property
    def within(self) -> Bools:
        """Where the regret is at most the bound."""
        within: Bools = self.regret <= self.bound
        return within

    @property
    def holds(self) -> bool:
        """Whether the regret is at most the bound on every interval."""
        return bool(self.within.all())


def trace(tracker: WeighedLearner, pairs: ArrayLike, y: ArrayLike) -> Trace:
    """Let a tracker observe pairs one at a time, and record what its combiner did.

    The tracker ends up as after ``tracker.observe(pairs, y)``, bit for bit.

    Parameters
    ----------
    tracker : SADL, MetricTracker or KernelTracker
        New, or with any past.
    pairs, y : pairs and their labels
        As ``observe`` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import SADL
    >>> from metrack.evaluate import trace
    >>> pairs = np.random.default_rng(0).normal(size=(100, 2, 4))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> seen = trace(SADL(combiner="sadl"), pairs, y)
    >>> seen.scales
    array([ 1.,  2.,  4.,  8., 16., 32., 64.])
    >>> seen.active[:8]
    array([1, 2, 2, 3, 3, 3, 3, 4])
    >>> bool(np.allclose(seen.p.sum(axis=1), 1))
    True
    """
    if not isinstance(tracker, WeighedLearner):
        raise ValueError(
            f"trace needs a SADL or a tracker, which have several learners; got {tracker!r}"
        )
    n_before = tracker.n_pairs_seen_ if hasattr(tracker, "n_features_in_") else 0
    rows, labels = np.asarray(pairs), _check(tracker, pairs, y)
    losses, p, told = np.empty(len(labels)), [], []
    for t in range(len(labels)):
        losses[t] = tracker.observe(rows[t : t + 1], labels[t : t + 1])[0]
        last = tracker.last_round()
        p.append(last.p)
        told.append(last.losses)
    active = np.array([len(each) for each in p])
    scales, first_interval = tracker.scales_, tracker.engine_.experts.roster.first_interval
    return Trace(losses, _pad(p, 0.0), _pad(told, np.nan), scales, active, first_interval, n_before)


def meta_regret(trace: Trace) -> MetaRegret:
    """Regret against the learners on every interval of the cover that starts within a trace.

    The bound 5 ln(s + 1) sqrt(length) is that of ``combiner="sadl"``, and holds for any pairs
    whatever (Daniely, Gonen and Shalev-Shwartz, 2015, Lemma 2; Greenewald, Kelley and Hero, 2016).
    Other combiners on the cover have bounds of their own; this one shows how they compare.

    Parameters
    ----------
    trace : Trace
        Of a tracker on the dyadic cover.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import SADL
    >>> from metrack.evaluate import meta_regret, trace
    >>> rng = np.random.default_rng(0)
    >>> pairs, y = rng.normal(size=(100, 2, 4)), rng.choice([-1, 1], 100)
    >>> result = meta_regret(trace(SADL.as_published(), pairs, y))
    >>> len(result.regret), result.holds
    (197, True)
    """
    if trace.first_interval == 0:
        raise ValueError(
            "these learners are always on; meta_regret needs the dyadic cover, which SADL has with "
            "combiner='sadl', 'cbce' or 'adanormalhedge'"
        )
    sums = np.pad(np.cumsum(np.nan_to_num(trace.regret), axis=0), ((1, 0), (0, 0)))
    start, scale = _activated(trace)
    length = trace.first_interval * 2**scale
    stop = np.minimum(start + length, len(trace.p))
    return MetaRegret(
        start=start,
        stop=stop,
        length=length,
        regret=sums[stop, scale] - sums[start, scale],
        bound=5.0 * np.log(trace.n_before + stop + 1.0) * np.sqrt(length),
    )


def _activated(trace: Trace) -> tuple[Ints, Ints]:
    """Round and scale of each activated expert: where the cover's time is a multiple of length."""
    time = trace.n_before + trace.first_interval + np.arange(len(trace.p))
    starts = [
        np.flatnonzero(time % (trace.first_interval * 2**scale) == 0)
        for scale in range(trace.p.shape[1])
    ]
    scales = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
    return np.concatenate(starts), scales


def _check(tracker: WeighedLearner, pairs: ArrayLike, y: ArrayLike) -> Floats:
    """Refuse bad input before the first pair is learned; returns the labels."""
    fitted = hasattr(tracker, "n_features_in_")
    preprocessor = tracker.preprocessor_ if fitted else check_preprocessor(tracker.preprocessor)
    n_pairs = len(PairBatch(pairs, preprocessor, tracker.n_features_in_ if fitted else None))
    return check_labels(y, n_pairs)


def _pad(rows: list[Floats], missing: float) -> Floats:
    """Rows of rising lengths as one array."""
    array = np.full((len(rows), max(map(len, rows))), missing)
    for t, row in enumerate(rows):
        array[t, : len(row)] = row
    return array
