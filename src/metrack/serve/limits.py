"""How much is taken, each limit with the error that says so."""

import re
from typing import NamedTuple

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # of a metric
REMEDIES = {
    "pairs": "send less at a time",
    "features": "project the points first, such as by PCA",
    "items": "keep to those that are asked about, or start the server with a larger --max-items",
}


class Refused(Exception):
    """A request that cannot be met; the message says why and what to do.

    Parameters
    ----------
    status : int
        HTTP's number for it.
    message : str
    retry_after : int, optional
        Seconds after which to try again.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class Limits(NamedTuple):
    """What one server takes.

    Attributes
    ----------
    body : int
        Bytes of a request.
    bodies : int
        Bytes of all requests that are under way.
    pairs : int
        Pairs, points or items of a request.
    metrics : int
    features : int
        Of a metric.
    items : int
        Of a metric.
    memory : int
        Bytes of all learners and items together, as estimated.
    lag : int
        Judgements of a metric that are acknowledged and not learned yet.
    streams : int
        Open streams of events.
    """

    body: int = 16 << 20
    bodies: int = 256 << 20
    pairs: int = 10_000
    metrics: int = 10_000
    features: int = 2048
    items: int = 1_000_000
    memory: int = 4 << 30
    lag: int = 100_000
    streams: int = 100

    def check(self, name: str, found: int, what: str) -> None:
        """Refuse more of something than there may be; 413, as for a body that is too large."""
        most: int = getattr(self, name)
        if found > most:
            raise Refused(413, f"{found:,} {what}; at most {most:,}: {REMEDIES[name]}")
