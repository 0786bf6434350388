"""The ensemble: banks of learners under one combiner. It is all that an estimator holds.

Banks learn a chunk, each for itself, and leave what their learners predicted; then one pass weighs
all of these as experts. COMID is the case of one bank of one learner; SADL one bank on the dyadic
cover, or one of always-on learners with different rates.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from metrack.engine.ensemble import page_hinkley, replay, scaler, scores
from metrack.engine.ensemble.bank import FOREVER, Bank, Predictions
from metrack.engine.ensemble.blocks import LONG, block_at
from metrack.engine.ensemble.combine import (
    COUNTERS,
    Combination,
    ExpertState,
    Roster,
    State,
    Told,
    combine,
    new_experts,
    weights,
)
from metrack.engine.ensemble.combiners.protocol import combiner_of
from metrack.engine.numerics.factored import Factored, mixture_of
from metrack.engine.numerics.kernels import Floats, Record
from metrack.engine.numerics.pairs import Chunk, Pairs, part

Said: TypeAlias = list[list[Predictions]]  # what banks predicted, block by block of pairs
SPREAD = 2.0  # mean |u|^2 where units are automatic: a pair's weight beside the threshold's
KEPT = 1024  # pairs of each kind that are kept of all the past


class Ensemble:
    """Banks of learners, and how much each learner is trusted.

    Parameters
    ----------
    n_features : int
    banks : sequence of Bank
        Those on the dyadic cover must have the same first interval.
    combination : Combination
    scaled : bool
        Pairs are scaled to a mean |u|^2 of SPREAD.
    """

    def __init__(
        self,
        n_features: int,
        banks: Sequence[Bank],
        combination: Combination,
        scaled: bool,
    ) -> None:
        self.n_features = n_features
        self.banks = tuple(banks)
        self.combination = combination
        self.spread = SPREAD if scaled else 0.0
        self.roster = _roster(self.banks)
        self.scaler: Record = scaler.SCALER()
        self.recent = replay.new_buffer(self.width, self._recent)
        self.past = replay.new_past(0, self.width)
        self.counters: Record = COUNTERS()
        if combiner_of(combination.combiner).own_rows > 0 and self.roster.n_per_level > 0:
            raise ValueError("this combiner is for experts that are always on")
        self.experts = new_experts(self._lengths(), combination.combiner)
        self.detector: Record = page_hinkley.PAGE_HINKLEY()
        self.scores = scores.new_scores()

    def observe(self, pairs: Pairs, draws: Floats, said: Said | None = None) -> Floats:
        """Loss suffered on each pair before learning from it.

        ``draws`` are uniform numbers, one a pair, for the output that samples; else none. What
        banks predict is added to ``said``, where it is given.
        """
        losses, done = np.empty(len(pairs.y)), 0
        while done < len(losses):
            begin, end = block_at(self.n_pairs)
            stop = min(done + end - self.n_pairs, len(losses))
            some = draws[done:stop] if draws.size else draws
            losses[done:stop] = self._observe_part(part(pairs, done, stop), some, said)
            done = stop
            if self.n_pairs == end:
                self._end_block(begin)
        return losses

    def _observe_part(self, pairs: Pairs, draws: Floats, said: Said | None) -> Floats:
        """What `observe` does, within a block."""
        told, _ = self._observe(pairs, draws, np.empty(0), said)
        return told.losses

    def _end_block(self, begin: int) -> None:
        """At fixed counts of pairs: keep some of those since pair ``begin`` for long."""
        if self._kept > 0:
            slots = np.arange(begin, self.n_pairs) % len(self.recent.y)
            self.past = replay.with_room(self.past, len(slots), self._kept)
            replay.remember(self.past, replay.from_buffer(self.recent, self._whole, slots))

    def _observe(
        self, pairs: Pairs, draws: Floats, windows: Floats, said: Said | None
    ) -> tuple[Told, Chunk]:
        """What the pass tells, and the pairs in the units in which they were learned."""
        chunk = self._on_features(scaler.to_scale(self.scaler, pairs, self.spread, self.n_pairs))
        each = [self._learn(bank, chunk) for bank in self.banks]
        self._keep(chunk)
        if said is not None:
            said.append(each)
        return self._combine(each, pairs.y, draws, windows), chunk

    def _combine(
        self, each: Sequence[Predictions], y: Floats, draws: Floats, windows: Floats
    ) -> Told:
        """Weigh what banks predicted."""
        self._add_experts()
        predictions = each[0] if len(each) == 1 else self._side_by_side(each)
        told = Told(np.empty(len(y)), windows, np.empty(0))
        state = State(self.experts, self.counters, self.detector, self.scores)
        combine(state, self.combination, self.roster, predictions, y, draws, told)
        return told

    def _learn(self, bank: Bank, chunk: Chunk) -> Predictions:
        shape = len(chunk.y), bank.n_active(chunk.seen + len(chunk.y))
        predictions = Predictions(np.empty(shape), np.empty(shape))
        bank.learn(replay.Material(chunk, self.recent, self._whole, self.past), predictions)
        return predictions

    @property
    def width(self) -> int:
        """How many features banks are given."""
        return self.n_features

    def _on_features(self, chunk: Chunk) -> Chunk:
        """Pairs by these features."""
        return chunk

    @property
    def _whole(self) -> Floats:
        """Squared lengths of the pairs to be replayed, where these features are not all."""
        return np.empty(0)

    def _keep(self, chunk: Chunk) -> None:
        """Keep pairs that may be replayed."""
        if self.recent.y.size > 0:
            replay.store(self.recent, chunk)

    def forget(self, u: Floats) -> int:
        """Replay pairs with these differences no more; returns how many were found."""
        return self.forget_places(self.places_of(u))

    def places_of(self, u: Floats) -> replay.Places:
        """Where pairs with these differences are kept."""
        return replay.places_of(self.recent, self.past, u, self.n_pairs)

    def forget_places(self, places: replay.Places) -> int:
        """Replay what is kept in these places no more; returns how many pairs that were."""
        return replay.forget(self.recent, self.past, places, self.n_pairs)

    @property
    def _recent(self) -> int:
        """How many of the last pairs are kept."""
        return max(LONG if self._kept else 0, *(bank.recent for bank in self.banks))

    @property
    def _kept(self) -> int:
        """How many pairs of each kind are kept of all the past."""
        return KEPT if any(getattr(bank, "remembers", False) for bank in self.banks) else 0

    def _add_experts(self) -> None:
        """Experts for the learners that banks have added."""
        n = len(self.experts.length)
        if self._n_learners() > n:
            new = new_experts(self._lengths()[n:], self.combination.combiner)
            self.experts = ExpertState(*map(np.concatenate, zip(self.experts, new, strict=True)))

    def _n_learners(self) -> int:
        return sum(len(bank.mu) for bank in self.banks)

    def _place(self, i: int) -> slice:
        """Where the i-th bank's learners are among the experts."""
        bank, before = self.banks[i], self.banks[:i]
        if bank.first_interval == 0:
            start = sum(len(each.mu) for each in before if each.first_interval == 0)
            return slice(start, start + len(bank.mu))
        level = sum(each.first_interval > 0 for each in before)
        return slice(self.roster.n_always_on + level, None, self.roster.n_per_level)

    def _lengths(self) -> Floats:
        """Memory length of each expert."""
        lengths = np.empty(self._n_learners())
        for i, bank in enumerate(self.banks):
            lengths[self._place(i)] = bank.lengths
        return lengths

    def _side_by_side(self, each: Sequence[Predictions]) -> Predictions:
        """The predictions of all banks, in the order of experts."""
        shape = len(each[0].q), sum(one.q.shape[1] for one in each)
        found = Predictions(np.empty(shape), np.empty(shape))
        for i, one in enumerate(each):
            found.q[:, self._place(i)] = one.q
            found.mu[:, self._place(i)] = one.mu
        return found

    def continue_from(self, old: "Ensemble") -> None:
        """Go on from what another ensemble has learned, with perhaps fewer features.

        The others have been 0 so far. The combiner knows what it knew, counts go on. Kinds of
        learners that the other does not have start now, trusted by none yet.
        """
        for bank, before in zip(self.banks, self._counterparts(old), strict=True):
            bank.continue_from(before)
        recent = replay.widen(old.recent, self.width)
        slots = len(self.recent.y)
        self.recent = replay.ReplayBuffer(*(replay.moved(e, slots, old.n_pairs) for e in recent))
        if self._kept and old._kept:
            self.past = replay.widen_past(old.past, self.width)
        self._continue_combiner(old)

    def _counterparts(self, old: "Ensemble") -> list[Any]:
        """Which bank of another ensemble each goes on from: one of its role, else it itself."""
        left: dict[Any, list[Bank]] = {}
        for role, bank in zip(old.roles(), old.banks, strict=True):
            left.setdefault(role, []).append(bank)
        roles = zip(self.roles(), self.banks, strict=True)
        return [found.pop(0) if (found := left.get(role)) else bank for role, bank in roles]

    def roles(self) -> list[tuple[Any, ...]]:
        """What each bank shares with the one of another ensemble that it goes on from."""
        return [_role(bank) for bank in self.banks]

    def _continue_combiner(self, old: "Ensemble") -> None:
        """Trust the experts that go on as they were trusted."""
        ours, theirs = new_experts(self._lengths(), self.combination.combiner), old.experts
        for i, before in enumerate(self._counterparts(old)):
            if before in old.banks:
                here, there = self._place(i), old._place(old.banks.index(before))
                for new, known in zip(ours[1:], theirs[1:], strict=True):
                    new[here] = known[there]
        ours.statistics[len(ours.length) :] = theirs.statistics[len(theirs.length) :]
        self.experts = ours
        self.counters, self.detector = old.counters.copy(), old.detector.copy()
        self.scaler, self.scores = old.scaler.copy(), old.scores
        if self.counters["selected"][0] >= len(ours.length):
            self.counters["selected"][0] = 0

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        for bank in self.banks:
            bank.check(self.n_features)
        if self.roster != _roster(self.banks):
            raise ValueError(f"experts are {_roster(self.banks)}, expected {self.roster}")
        expected = new_experts(self._lengths(), self.combination.combiner)
        lengths = self.experts.length
        # A state in single precision has them rounded.
        if lengths.shape != expected.length.shape or not np.allclose(lengths, expected.length):
            raise ValueError("experts' memory lengths are not those of the learners")
        if self.experts.statistics.shape != expected.statistics.shape:
            raise ValueError(
                f"experts' statistics are {self.experts.statistics.shape}, expected "
                f"{expected.statistics.shape}"
            )
        if self.n_active > len(self.experts.length):
            raise ValueError(
                f"{len(self.experts.length)} experts after {self.n_pairs:,} pairs, expected "
                f"{self.n_active}"
            )
        selected = int(self.counters["selected"][0])
        if selected >= self.n_active:
            raise ValueError(f"expert {selected} is selected of {self.n_active} active ones")
        scaler.check(self.scaler, self.n_pairs)
        page_hinkley.check(self.detector, self.n_pairs)
        replay.check(self.recent, self._recent, self.width)
        replay.check_past(self.past, self._kept, self.width)

    @property
    def n_pairs(self) -> int:
        """How many pairs have been learned."""
        return int(self.counters["pairs"][0])

    @property
    def last_change(self) -> int:
        """The pair at which losses were last found to have risen; 0: never."""
        return int(self.detector["changed"][0])

    @property
    def n_active(self) -> int:
        """How many experts, the first ones, were active in the last round."""
        return sum(bank.n_active(self.n_pairs) for bank in self.banks)

    @property
    def lengths(self) -> Floats:
        """Memory lengths of the active experts."""
        return self.experts.length[: self.n_active].copy()

    @property
    def weights(self) -> Floats:
        """Normalised weights of the active experts."""
        p = np.empty(self.n_active)
        weights(self.experts, self.combination, self.n_pairs + 1, p)
        return p

    @property
    def kinds(self) -> list[str]:
        """Kinds of the active experts."""
        names = np.empty(self._n_learners(), dtype=object)
        for i, bank in enumerate(self.banks):
            names[self._place(i)] = bank.name
        return list(names[: self.n_active])

    @property
    def learning_rates(self) -> Floats:
        """Learning rates of the active experts."""
        rates = np.empty(self._n_learners())
        for i, bank in enumerate(self.banks):
            rates[self._place(i)] = bank.learning_rates
        return rates[: self.n_active]

    @property
    def effective_window(self) -> float:
        """How many of the latest pairs the trusted experts rest on."""
        kept = self.lengths < FOREVER
        p = self.weights[kept]
        total = 1.0 if kept.all() else float(p.sum())
        return float(2.0 ** (p @ np.log2(self.lengths[kept]) / total)) if total > 0.0 else 1.0

    @property
    def mu(self) -> Floats:
        """Thresholds of all experts."""
        mu = np.empty(len(self.experts.length))
        for i, bank in enumerate(self.banks):
            mu[self._place(i)] = bank.mu
        return mu

    @property
    def unit(self) -> float:
        """Square of the length in which u is measured."""
        return scaler.unit(self.scaler, self.spread)

    def metric(self, expert: int) -> Factored:
        """Metric of an expert."""
        for i, bank in enumerate(self.banks):
            places = range(len(self.experts.length))[self._place(i)]
            if expert in places:
                return bank.metric(places.index(expert), self.unit)
        raise IndexError(f"expert {expert} of {len(self.experts.length)}")

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first experts' metrics, cut to the capacity."""
        if len(self.banks) == 1:
            return self.banks[0].mixture(p, self.unit)
        metrics = [
            bank.mixture(share, self.unit)
            for bank, share in zip(self.banks, self._shares(p), strict=True)
        ]
        return mixture_of(metrics, np.ones(len(metrics)), self.n_features)

    def _shares(self, p: Floats) -> list[Floats]:
        """Weights of the first experts, bank by bank."""
        all_p = np.zeros(len(self.experts.length))
        all_p[: len(p)] = p
        return [all_p[self._place(i)] for i in range(len(self.banks))]


def _role(bank: Bank) -> tuple[str, int]:
    """Kind and number of learners, the same in a bank that goes on from another.

    On a cover their number grows, so it does not count.
    """
    return bank.name, len(bank.mu) if bank.first_interval == 0 else 0


def _roster(banks: Sequence[Bank]) -> Roster:
    """The experts of banks, which share a cover if they are on one."""
    on_cover = [bank for bank in banks if bank.first_interval > 0]
    if len({(bank.first_interval, len(bank.lengths)) for bank in on_cover}) > 1:
        found = [(bank.first_interval, len(bank.lengths)) for bank in on_cover]
        raise ValueError(
            f"banks on a cover with first intervals and levels {found}: they must agree"
        )
    n_always_on = sum(len(bank.mu) for bank in banks if bank.first_interval == 0)
    first_interval = on_cover[0].first_interval if on_cover else 0
    return Roster(first_interval, n_always_on, len(on_cover))
