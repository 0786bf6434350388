"""The learners of all banks as experts: what the combiner knows of them, and whom it trusts."""

from collections.abc import Sequence

import numpy as np

from metrack.engine.ensemble import page_hinkley, scores
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
from metrack.engine.learners.bank import FOREVER, Bank, Predictions
from metrack.engine.numerics.kernels import Floats, Record


class Experts:
    """The learners of banks under one combiner.

    They come bank by bank; a bank on the dyadic cover stands alone, level by level. So the active
    ones are always the first, and new levels come last.
    """

    STATE = ("known", "counters", "detector", "scores")

    def __init__(self, banks: Sequence[Bank], combination: Combination) -> None:
        self.banks = tuple(banks)
        self.combination = combination
        self.roster = _roster(self.banks)
        if combiner_of(combination.combiner).own_rows > 0 and self.roster.first_interval > 0:
            raise ValueError("this combiner is for experts that are always on")
        self.known = new_experts(self._lengths(), combination.combiner)
        self.counters: Record = COUNTERS()
        self.detector: Record = page_hinkley.PAGE_HINKLEY()
        self.scores = scores.new_scores()

    def weigh(self, each: Sequence[Predictions], y: Floats, draws: Floats, windows: Floats) -> Told:
        """What the pass over some pairs tells, by what banks have predicted."""
        self._add()
        side_by_side = (np.concatenate(part, axis=1) for part in zip(*each, strict=True))
        predictions = each[0] if len(each) == 1 else Predictions(*side_by_side)
        told = Told(np.empty(len(y)), windows, np.empty(0))
        state = State(self.known, self.counters, self.detector, self.scores)
        combine(state, self.combination, self.roster, predictions, y, draws, told)
        return told

    def _add(self) -> None:
        """Experts for the learners that banks have added."""
        n = len(self.known.length)
        if sum(len(bank.mu) for bank in self.banks) > n:
            new = new_experts(self._lengths()[n:], self.combination.combiner)
            self.known = ExpertState(*map(np.concatenate, zip(self.known, new, strict=True)))

    def _place(self, i: int) -> slice:
        """Where the i-th bank's learners are among the experts."""
        if self.roster.first_interval > 0:
            return slice(None)
        start = sum(len(each.mu) for each in self.banks[:i])
        return slice(start, start + len(self.banks[i].mu))

    def named(self, of_banks: Sequence[str]) -> list[str]:
        """A name for each of the active experts: that of its bank."""
        named = zip(self.banks, of_banks, strict=True)
        return [name for bank, name in named for _ in bank.mu][: self.n_active]

    def _lengths(self) -> Floats:
        """Memory length of each expert."""
        return np.concatenate([bank.lengths for bank in self.banks])

    def shares(self, p: Floats) -> list[Floats]:
        """Weights of the first experts, bank by bank; those of others are 0."""
        all_p = np.zeros(len(self.known.length))
        all_p[: len(p)] = p
        return [all_p[self._place(i)] for i in range(len(self.banks))]

    @property
    def n_pairs(self) -> int:
        """How many pairs have been learned."""
        return int(self.counters["pairs"][0])

    @property
    def n_active(self) -> int:
        """How many experts, the first ones, were active in the last round."""
        return sum(bank.n_active(self.n_pairs) for bank in self.banks)

    @property
    def lengths(self) -> Floats:
        """Memory lengths of the active experts."""
        return self.known.length[: self.n_active].copy()

    @property
    def weights(self) -> Floats:
        """Normalised weights of the active experts."""
        p = np.empty(self.n_active)
        weights(self.known, self.combination, self.n_pairs + 1, p)
        return p

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
        return np.concatenate([bank.mu for bank in self.banks])

    @property
    def kinds(self) -> list[str]:
        """Kinds of the active experts."""
        return self.named([bank.name for bank in self.banks])

    @property
    def learning_rates(self) -> Floats:
        """Learning rates of the active experts."""
        return np.concatenate([bank.learning_rates for bank in self.banks])[: self.n_active]

    def continue_from(self, old: "Experts", counterparts: Sequence[Bank | None]) -> None:
        """Trust the experts that go on as they were trusted; others are trusted by none yet.

        Of each bank that goes on from one of the other's, that one is given.
        """
        # On a cover the other has had more levels; all of them go on.
        lengths = np.concatenate(
            [
                before.lengths if before is not None and bank.first_interval else bank.lengths
                for bank, before in zip(self.banks, counterparts, strict=True)
            ]
        )
        ours, theirs = new_experts(lengths, self.combination.combiner), old.known
        for i, before in enumerate(counterparts):
            if before is not None:
                here, there = self._place(i), old._place(old.banks.index(before))
                for new, known in zip(ours[1:], theirs[1:], strict=True):
                    new[here] = known[there]
        ours.statistics[len(ours.length) :] = theirs.statistics[len(theirs.length) :]
        self.known = ours
        self.counters, self.detector = old.counters.copy(), old.detector.copy()
        self.scores = old.scores
        if self.counters["selected"][0] >= len(ours.length):
            self.counters["selected"][0] = 0

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        if self.roster != _roster(self.banks):
            raise ValueError(f"experts are {_roster(self.banks)}, expected {self.roster}")
        expected = new_experts(self._lengths(), self.combination.combiner)
        lengths, statistics = self.known.length, self.known.statistics
        # A state in single precision has them rounded.
        if lengths.shape != expected.length.shape or not np.allclose(lengths, expected.length):
            raise ValueError("experts' memory lengths are not those of the learners")
        if statistics.shape != expected.statistics.shape:
            raise ValueError(
                f"experts' statistics are {statistics.shape}, expected {expected.statistics.shape}"
            )
        if self.n_active > len(lengths):
            raise ValueError(
                f"{len(lengths)} experts after {self.n_pairs:,} pairs, expected {self.n_active}"
            )
        selected = int(self.counters["selected"][0])
        if selected >= self.n_active:
            raise ValueError(f"expert {selected} is selected of {self.n_active} active ones")
        page_hinkley.check(self.detector, self.n_pairs)


def _roster(banks: Sequence[Bank]) -> Roster:
    first_interval = max(bank.first_interval for bank in banks)
    if first_interval == 0:
        return Roster(0, sum(len(bank.mu) for bank in banks))
    if len(banks) > 1:
        raise ValueError(f"{len(banks)} banks on a cover: one alone is known there")
    return Roster(first_interval, 0)
