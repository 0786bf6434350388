"""Vector stores that follow a metric, without being built anew for every step of it.

A store keeps vectors as they came, and beside them, once the metric has moved far enough, the
vectors embedded by it. `Search` asks the store for candidates and orders them by the metric of the
moment. The adapters are `usearch`, `faiss`, `lancedb` and `qdrant`, one file each.
"""

from metrack.stores.search import Found as Found
from metrack.stores.search import Refreshed as Refreshed
from metrack.stores.search import Search as Search
from metrack.stores.store import Store as Store

__all__ = ["Found", "Refreshed", "Search", "Store"]
