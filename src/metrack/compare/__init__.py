"""Records compared field by field: what a tracker learns from, and clusters of what it calls alike.

A pair of records is compared by what its fields say: so much of the titles' words are common, so
far are prices apart. Each comparison is 0 where nothing differs and at most 1. What matters how
much is for a tracker to learn, from pairs that people judged.
"""

from metrack.compare.active_pairs import ActivePairs as ActivePairs
from metrack.compare.catalogues import Catalogues as Catalogues
from metrack.compare.catalogues import catalogues as catalogues
from metrack.compare.clusters import Clusters as Clusters
from metrack.compare.clusters import clusters as clusters
from metrack.compare.comparisons import Comparisons as Comparisons

__all__ = ["ActivePairs", "Catalogues", "Clusters", "Comparisons", "catalogues", "clusters"]
