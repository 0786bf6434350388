"""Differences as spaces see them: as they come, or each feature in its own units."""

from collections.abc import Sequence

import numpy as np

from metrack.engine.ensemble import units
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import Pairs

AS_THEY_COME, OWN = "as they come", "own"
VIEWS = (AS_THEY_COME, OWN)


class Views:
    """How each space of differences sees them: one of VIEWS for each."""

    STATE = ("units",)

    def __init__(self, n_features: int, names: Sequence[str]) -> None:
        self.n_features = n_features
        self.names = tuple(names)
        self.units = units.new_units(n_features)

    def of(self, pairs: Pairs) -> list[Pairs]:
        """Pairs as each space sees them; they then count for the units of later ones."""
        seen = {AS_THEY_COME: pairs}
        if OWN in self.names:
            seen[OWN] = units.in_own_units(self.units, pairs)
        return [seen[name] for name in self.names]

    def scales(self, name: str) -> Floats:
        """What each feature is divided by in a view."""
        return units.scales(self.units) if name == OWN else np.ones(self.n_features)

    def continue_from(self, old: "Views") -> None:
        """Go on from the views of perhaps fewer features, which have been 0 so far."""
        self.units = units.widen(old.units, self.n_features)

    def check(self) -> None:
        """Refuse another number of features."""
        if len(self.units.square) != self.n_features:
            raise ValueError(f"units are of {len(self.units.square)} features")
