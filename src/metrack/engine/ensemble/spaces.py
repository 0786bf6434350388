"""Ensembles on different features of the same pairs, under one combiner.

Each space has an ensemble of its own, which learns as if it were alone and goes by its own weights
in what concerns it alone: the order of its directions, the memory of similar pairs. What is put out
is weighed over the experts of all spaces.

A space of differences sees them as they come, or each feature in its own units (see `units`).
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from metrack.engine.ensemble import units
from metrack.engine.ensemble.bank import Predictions
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.ensemble import Ensemble, Said
from metrack.engine.ensemble.similar import NeighbourEnsemble
from metrack.engine.numerics.factored import Factored, metric_of, nearest_metric
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Pairs

AS_THEY_COME, OWN = "as they come", "own"
UNITS = (AS_THEY_COME, OWN)


class SpacesEnsemble(Ensemble):
    """Spaces under one combiner.

    Parameters
    ----------
    n_features : int
    spaces : sequence of NeighbourEnsemble
    views : sequence of str
        In which of UNITS each of the first spaces sees differences; others have other features.
    combination : Combination
    """

    def __init__(
        self,
        n_features: int,
        spaces: Sequence[NeighbourEnsemble],
        views: Sequence[str],
        combination: Combination,
    ) -> None:
        self.spaces = tuple(spaces)
        self.views = tuple(views)
        banks = [bank for space in self.spaces for bank in space.banks]
        super().__init__(n_features, banks, combination, scaled=False)
        self.units = units.new_units(n_features)

    @property
    def _recent(self) -> int:
        """Pairs to be replayed are kept by the spaces."""
        return 0

    @property
    def _kept(self) -> int:
        return 0

    def observe(self, pairs: Pairs, draws: Floats, said: Said | None = None) -> Floats:
        """Loss suffered on each pair before learning from it; see `Ensemble`."""
        return self._observe_views(self._views(pairs), pairs.y, draws, said)

    def _views(self, pairs: Pairs) -> list[Pairs]:
        """Pairs as each space of differences sees them."""
        seen = {AS_THEY_COME: pairs, OWN: units.in_own_units(self.units, pairs)}
        return [seen[view] for view in self.views]

    def _observe_views(
        self, views: Sequence[Pairs], y: Floats, draws: Floats, told: Said | None = None
    ) -> Floats:
        each: list[Predictions] = []
        for space, rows in zip(self.spaces, views, strict=True):
            said: Said = []
            space.observe(rows, np.empty(0), said)
            each += [_joined(bank) for bank in zip(*said, strict=True)]
        if told is not None:
            told.append(each)
        return self._combine(each, y, draws, np.empty(0)).losses

    def forget(self, u: Floats) -> int:
        """Replay pairs with these differences no more; returns how many were found.

        They are found as they came, where all features are: units and bases have changed since. All
        spaces keep the same pairs in the same places.
        """
        linear = self.spaces[: len(self.views)]
        places = min(zip(linear, self.views, strict=True), key=_blindness)[0].places_of(u)
        return max(space.forget_places(places) for space in linear)

    def continue_from(self, old: Any) -> None:
        """Go on from such an ensemble of perhaps fewer features; the others have been 0 so far.

        A space goes on from one that saw the same: as a basis does from all features, where there
        is no other.
        """
        seen: dict[str, list[NeighbourEnsemble]] = {}
        for view, space in zip(old.views, old.spaces, strict=False):
            seen.setdefault(view, []).append(space)
        for view, space in zip(self.views, self.spaces, strict=False):
            alike = [each for each in seen[view] if type(each) is type(space)]
            space.continue_from(deepcopy((alike or seen[view])[0]))
        self.spaces = *self.spaces[: len(self.views)], *old.spaces[len(old.views) :]
        self.banks = tuple(bank for space in self.spaces for bank in space.banks)
        self.units = units.widen(old.units, self.n_features)
        self._continue_combiner(old)

    def roles(self) -> list[tuple[Any, ...]]:
        """Of what a bank sees, too."""
        names = [*self.views, *range(len(self.spaces) - len(self.views))]
        return [
            (name, *role)
            for name, space in zip(names, self.spaces, strict=True)
            for role in space.roles()
        ]

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check()
        for space in self.spaces:
            space.check()
            if space.n_pairs != self.n_pairs:
                raise ValueError(f"a space has {space.n_pairs:,} pairs, of {self.n_pairs:,}")
        if len(self.units.square) != self.n_features:
            raise ValueError(f"units are of {len(self.units.square)} features")

    def metric(self, expert: int) -> Factored:
        """Metric of an expert."""
        return self.mixture(np.eye(len(self.experts.length))[expert])

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first experts' metrics, of pairs as they come."""
        return self._nearest(space.form(share) for space, share in self._weighed(p))

    def neighbours(self, p: Floats) -> Factored:
        """The same, each space with the inverse covariance of similar pairs."""
        return self._nearest(space.neighbours(share).matrix() for space, share in self._weighed(p))

    def _nearest(self, forms: Iterable[Floats]) -> Factored:
        """The metric nearest to the sum of forms of the spaces of differences, as these come.

        Near is meant in features' own units, and so is the sum taken: with a thousandfold spread
        in one feature, squares of a millionth in others would be rounded away.
        """
        scales = units.scales(self.units)
        factors = {AS_THEY_COME: scales, OWN: np.ones(self.n_features)}
        total = np.zeros((self.n_features, self.n_features))
        for form, view in zip(forms, self.views, strict=False):
            total += form * np.outer(factors[view], factors[view])
        return metric_of(nearest_metric(total).components() / scales)

    def _weighed(self, p: Floats) -> list[tuple[NeighbourEnsemble, Floats]]:
        """Spaces, and weights of their experts."""
        all_p = np.zeros(len(self.experts.length))
        all_p[: len(p)] = p
        ends = np.cumsum([len(space.experts.length) for space in self.spaces])
        return list(zip(self.spaces, np.split(all_p, ends[:-1]), strict=True))


def _blindness(seen: tuple[NeighbourEnsemble, str]) -> tuple[bool, bool]:
    """How little a space knows of how pairs came."""
    space, view = seen
    return view != AS_THEY_COME, space.width < space.n_features


def _joined(blocks: Sequence[Predictions]) -> Predictions:
    """What one bank predicted, of all blocks."""
    return Predictions(*(np.concatenate(each) for each in zip(*blocks, strict=True)))
