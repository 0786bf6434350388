"""The ensemble: learners on several features of the same pairs, under one combiner.

A pair's way: each space sees it by its features (differences as they come or in own units, or
features of a kernel; all of them, or on a basis), its banks predict and learn it, and then one pass
weighs all learners as experts. What is put out is a mixture of their metrics: one for pairs, one
for neighbours. COMID is the case of one learner; SADL one bank on the dyadic cover.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.experts import Experts
from metrack.engine.ensemble.kernel_features import KernelFeatures
from metrack.engine.ensemble.marks import Marks
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import AS_THEY_COME, Views
from metrack.engine.learners.bank import Bank, Predictions
from metrack.engine.learners.blocks import block_at
from metrack.engine.numerics.factored import Factored, metric_of, nearest_metric
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Pairs, PointPairs


class Ensemble:
    """Spaces of learners, and how much each learner is trusted.

    Spaces of differences, which see them by ``views``, come before those of the kernel. With one,
    pairs are observed by their points, too.
    """

    def __init__(
        self,
        n_features: int,
        spaces: Sequence[Space],
        views: Sequence[str],
        combination: Combination,
        kernel: KernelFeatures | None = None,
    ) -> None:
        self.n_features = n_features
        self.spaces = tuple(spaces)
        self.views = Views(n_features, views)
        self.kernel = kernel
        self.marks = Marks(n_features, [space.memory for space in self.spaces])
        self.experts = Experts([b for space in self.spaces for b in space.banks], combination)

    @property
    def banks(self) -> tuple[Bank, ...]:
        """Those of all spaces."""
        return self.experts.banks

    @property
    def n_pairs(self) -> int:
        """How many pairs have been learned."""
        return self.experts.n_pairs

    @property
    def mu(self) -> Floats:
        """Thresholds of all experts."""
        return self.experts.mu

    @property
    def last_change(self) -> int:
        """The pair at which losses were last found to have risen; 0: never."""
        return int(self.experts.detector["changed"][0])

    def holders(self) -> dict[str, Any]:
        """What has state, by name; attributes that are state are its STATE."""
        found: dict[str, Any] = {"experts": self.experts, "views": self.views}
        found["marks"] = self.marks.memory
        if self.kernel is not None:
            found["kernel"] = self.kernel
        for i, space in enumerate(self.spaces):
            found |= {f"space {i}": space, f"memory {i}": space.memory}
            if space.basis is not None:
                found[f"basis {i}"] = space.basis
        return found | {f"bank {i}": bank for i, bank in enumerate(self.banks)}

    def observe(
        self,
        pairs: Pairs | PointPairs,
        draws: Floats,
        predictions: list[list[Predictions]] | None = None,
    ) -> Floats:
        """Loss suffered on each pair before learning from it.

        ``draws`` are uniform numbers, one a pair, for the output that samples; else none. What
        banks predict, block by block of pairs, is added to ``predictions``, where it is given.
        """
        losses, done = np.empty(len(_differences(pairs).y)), 0
        while done < len(losses):
            begin, end = block_at(self.n_pairs)
            stop = min(done + end - self.n_pairs, len(losses))
            some = draws[done:stop] if draws.size else draws
            each, losses[done:stop] = self._observe_part(pairs.part(done, stop), some)
            if predictions is not None:
                predictions.append(each)
            done = stop
            if self.n_pairs == end:
                self._end_block(begin, end)
        return losses

    def _observe_part(
        self, pairs: Pairs | PointPairs, draws: Floats
    ) -> tuple[list[Predictions], Floats]:
        """What banks predict, and the loss of each pair, within a block."""
        seen = self.n_pairs
        differences = _differences(pairs)
        features = self.views.of(differences)
        if self.kernel is not None and isinstance(pairs, PointPairs):
            features += self.kernel.of(pairs, seen)
        learned = [s.learn(own, seen) for s, own in zip(self.spaces, features, strict=True)]
        each = [predictions for one in learned for predictions in one.predictions]
        told = self.experts.weigh(each, differences.y, draws, np.empty(len(differences.y)))
        for space, one in zip(self.spaces, learned, strict=True):
            space.follow(one.chunk, told.windows)
        self.marks.store(differences, seen)
        return each, told.losses

    def _end_block(self, begin: int, end: int) -> None:
        """What takes long is done at fixed counts of pairs."""
        self.marks.memory.keep(begin, end)
        for space, shares in self._weighed(self.experts.weights):
            space.end_block(begin, end, shares)
        if self.kernel is not None:
            changes = self.kernel.follow(end)
            for space, change in zip(self.spaces[len(self.views.names) :], changes, strict=False):
                space.change_features(change, end)

    def _weighed(self, p: Floats) -> list[tuple[Space, list[Floats]]]:
        """Spaces, and weights of the first experts, bank by bank."""
        shares = iter(self.experts.shares(p))
        return [(space, [next(shares) for _ in space.banks]) for space in self.spaces]

    def _linear(self, p: Floats) -> list[tuple[Space, list[Floats]]]:
        return self._weighed(p)[: len(self.views.names)]

    def _of_kernel(self, p: Floats) -> list[tuple[Space, list[Floats]]]:
        return self._weighed(p)[len(self.views.names) :]

    def forget(self, pairs: Pairs) -> int:
        """Replay pairs with these differences no more; returns how many were found."""
        places = self.marks.places_of(pairs, self.n_pairs)
        for space in self.spaces:
            space.memory.forget(places, self.n_pairs)
        return self.marks.memory.forget(places, self.n_pairs)

    def continue_from(self, old: "Ensemble") -> None:
        """Go on from what another ensemble has learned, with perhaps fewer features.

        The others have been 0 so far. The combiner knows what it knew, counts go on. Kinds of
        learners that the other does not have start now, trusted by none yet.
        """
        old = deepcopy(old)
        counterparts = _counterparts(self._roles(), self.banks, old._roles(), old.banks)
        self.experts.continue_from(old.experts, counterparts)
        self.views.continue_from(old.views)
        self.marks.memory.continue_from(old.marks.memory, self.n_pairs)
        if self.kernel is not None and old.kernel is not None:
            self.kernel.continue_from(old.kernel)
        known = dict(zip(self.banks, counterparts, strict=True))
        for i, (space, shares) in enumerate(self._weighed(self.experts.weights)):
            banks = [known[bank] or bank for bank in space.banks]
            before = old._like(self._name(i), space.basis is not None)
            space.continue_from(before, banks, shares, self.n_pairs)

    def _name(self, i: int) -> str | int:
        """Of the i-th space: what it sees."""
        n_linear = len(self.views.names)
        return self.views.names[i] if i < n_linear else i - n_linear

    def _like(self, name: str | int, on_basis: bool) -> Space:
        """The space that sees the same, if there are two the one that is on a basis or not, too."""
        alike = [space for i, space in enumerate(self.spaces) if self._name(i) == name]
        same = [space for space in alike if (space.basis is not None) == on_basis]
        return (same or alike or list(self.spaces))[0]

    def _roles(self) -> list[tuple[Any, ...]]:
        """What each bank shares with the one of another ensemble that it goes on from.

        What it sees, its kind and number of learners; on a cover these grow, and do not count.
        """
        return [
            (self._name(i), bank.name, 0 if bank.first_interval else len(bank.mu))
            for i, space in enumerate(self.spaces)
            for bank in space.banks
        ]

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        self.experts.check()
        self.views.check()
        self.marks.memory.check(1)
        if self.kernel is not None:
            self.kernel.check()
        for space in self.spaces:
            space.check(self.n_pairs)

    def metric(self, expert: int) -> Factored:
        """Metric of an expert."""
        if len(self.banks) == 1:
            return self.banks[0].metric(expert, self.spaces[0].unit)
        return self.mixture(np.eye(len(self.experts.known.length))[expert])

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first experts' metrics, of pairs as they come."""
        weighed = self._linear(p)
        if self.views.names == (AS_THEY_COME,):
            ((space, shares),) = weighed
            return space.metric(shares)
        return self._nearest(space.form(shares) for space, shares in weighed)

    def neighbours(self, p: Floats) -> Factored:
        """The same, each space with the inverse covariance of similar pairs."""
        window = self.experts.effective_window
        weighed = self._linear(p)
        return self._nearest(space.neighbours(own, window).matrix() for space, own in weighed)

    def _nearest(self, forms: Iterable[Floats]) -> Factored:
        """The metric nearest to the sum of forms of the spaces of differences, as these come.

        Near is meant in features' own units, and so is the sum taken: with a thousandfold spread
        in one feature, squares of a millionth in others would be rounded away.
        """
        scales = self.views.scales("own")
        total = np.zeros((self.n_features, self.n_features))
        for form, name in zip(forms, self.views.names, strict=True):
            factor = scales / self.views.scales(name)
            total += form * np.outer(factor, factor)
        return metric_of(nearest_metric(total).components() / scales)

    def of_kernel(self, p: Floats) -> list[Factored]:
        """The weighted sums of metrics on each of the kernel's features."""
        return [space.metric(shares) for space, shares in self._of_kernel(p)]

    def neighbours_of_kernel(self, p: Floats) -> list[Factored]:
        """The same, with the inverse covariance of similar pairs."""
        window = self.experts.effective_window
        return [space.neighbours(shares, window) for space, shares in self._of_kernel(p)]


def _differences(pairs: Pairs | PointPairs) -> Pairs:
    return pairs if isinstance(pairs, Pairs) else pairs.u


def _counterparts(
    roles: Sequence[Any], banks: Sequence[Bank], old_roles: Sequence[Any], old: Sequence[Bank]
) -> list[Bank | None]:
    """Which bank of another ensemble each goes on from: one of its role, else none."""
    left: dict[Any, list[Bank]] = {}
    for role, bank in zip(old_roles, old, strict=True):
        left.setdefault(role, []).append(bank)
    return [found.pop(0) if (found := left.get(role)) else None for role in roles]
