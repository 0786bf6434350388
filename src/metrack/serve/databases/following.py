"""What other processes write, as they write it: PostgreSQL says which metric, and a look says what.

Behind it everything is looked at now and then, and whenever the connection was lost.
"""

import logging
import threading
import time
from typing import Any, Protocol

import psycopg

from metrack.serve.databases.database import Audience
from metrack.serve.limits import Refused

logger = logging.getLogger(__name__)

POLL, REST = 10.0, 100.0  # seconds between looks at everything; times as long as one took
GATHERED = 0.02  # seconds; many changes are one look
TOKENS = "tokens"  # what is said when these have changed
AGAIN = 0.5  # seconds between attempts


class Refreshed(Protocol):
    """What can be read again."""

    def refresh(self) -> None:
        """Read it again."""


class Following:
    """A thread that listens.

    Parameters
    ----------
    url : str
    audience : Audience
    tokens : Refreshed
    """

    def __init__(self, url: str, audience: Audience, tokens: Refreshed) -> None:
        self._url, self._audience, self._tokens = url, audience, tokens
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="following", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True) as connection:
                    connection.execute(b"LISTEN metrack")
                    self._follow(connection)
            except (psycopg.Error, Refused) as error:
                logger.warning("not following: %s", str(error).partition("\n")[0])
            except Exception:
                logger.exception("not following")
            self._ending.wait(AGAIN)

    def _follow(self, connection: "psycopg.Connection[Any]") -> None:
        look_at = time.monotonic()
        while not self._ending.is_set():
            if (start := time.monotonic()) >= look_at:
                self._tokens.refresh()
                self._audience.refresh()
                now = time.monotonic()
                look_at = now + max(POLL, REST * (now - start))
            heard = {n.payload for n in connection.notifies(timeout=AGAIN, stop_after=1)}
            if heard:
                time.sleep(GATHERED)
                heard |= {n.payload for n in connection.notifies(timeout=0)}
            if TOKENS in heard:
                self._tokens.refresh()
            if numbers := [int(each) for each in heard if each.isdigit()]:
                self._audience.refresh(numbers)
