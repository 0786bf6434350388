"""Which metrics this process learns: its share of the slots, each held by an advisory lock.

A session that holds locks says something every moment, or PostgreSQL ends it: so a process that
dies, hangs or cannot be reached loses its locks, and the others take them. Nobody coordinates: each
counts the sessions that take part, holds no more slots than its share, and takes what is free.
"""

import logging
import random
import threading
from collections.abc import Iterable
from typing import Any

import psycopg

from metrack.serve.databases.database import Audience

logger = logging.getLogger(__name__)

TICK = 0.4  # seconds
# Locks are told apart by the numbers of two tables, so that schemas do not meet.
MEMBER, SLOT = "'metrics'::regclass::oid", "'slots'::regclass::oid"
SEEN = f"""
SELECT classid = {MEMBER}, objid::bigint, pid FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid IN ({MEMBER}, {SLOT})
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
JOIN = f"SELECT pg_try_advisory_lock(({MEMBER})::int, pg_backend_pid())"
TAKE = f"SELECT slot FROM unnest(%s::int[]) slot WHERE pg_try_advisory_lock(({SLOT})::int, slot)"
LEAVE = f"SELECT pg_advisory_unlock(({SLOT})::int, %s)"
FENCE = """
INSERT INTO slots SELECT slot, 1 FROM unnest(%s::int[]) slot ORDER BY slot
ON CONFLICT (slot) DO UPDATE SET fence = slots.fence + 1 RETURNING slot, fence
"""
# A process that is stopped while it sends a statement in pieces is waited for without end, with all
# that it has locked: only from version 17 on could PostgreSQL itself see to that.
END_SILENT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
AND application_name = current_setting('application_name')
AND state = 'active' AND wait_event = 'ClientRead'
AND state_change < clock_timestamp() - make_interval(secs => %s)
"""


def share_of(rank: int, n_members: int, n_slots: int) -> int:
    """How many slots are one member's; all members' together are all slots."""
    each, rest = divmod(n_slots, n_members)
    return each + (rank < rest)


class Shares:
    """A thread that holds this process's share.

    Parameters
    ----------
    url : str
    audience : Audience
        Told which metrics are this process's to learn, and which no longer.
    held : dict
        Fences by slot, kept true here and read by all.
    limit : float
        Seconds of silence after which the session is ended.
    """

    def __init__(self, url: str, audience: Audience, held: dict[int, int], limit: float) -> None:
        self._url, self._audience, self._held, self._limit = url, audience, held, limit
        self._connection: psycopg.Connection[Any] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shares", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let others learn."""
        self._ending.set()
        self._thread.join()
        self._lose()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._balance(self._connection or self._connect())
            except psycopg.Error as error:
                if self._connection is not None:
                    said = str(error).partition("\n")[0]
                    logger.warning("the right to learn was lost: %s", said)
                self._lose()
            except Exception:
                logger.exception("the right to learn is given up")
                self._lose()
            self._ending.wait(TICK)

    def _connect(self) -> "psycopg.Connection[Any]":
        found = psycopg.connect(self._url, autocommit=True)
        found.execute(b"SET idle_session_timeout = %d" % (1000 * self._limit))
        found.execute(JOIN.encode())
        self._connection = found
        return found

    def _lose(self) -> None:
        """All locks are gone, or will be in a moment: with the session."""
        lost = list(self._held)
        self._held.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for slot in lost:
            for number in list(self._audience.by_slot.get(slot, ())):
                self._audience.begin(number)  # whose turn is then to drop what it has

    def _balance(self, connection: "psycopg.Connection[Any]") -> None:
        """One look at who is there, and a step towards equal shares."""
        connection.execute(END_SILENT.encode(), (self._limit,))
        seen = connection.execute(SEEN.encode()).fetchall()
        members = sorted(pid for is_member, _, pid in seen if is_member)
        taken = {slot for is_member, slot, _ in seen if not is_member}
        used = {slot for slot, numbers in list(self._audience.by_slot.items()) if numbers}
        own = connection.info.backend_pid
        share = share_of(members.index(own), len(members), len(used))
        unused = self._held.keys() - used
        spare = sorted(self._held.keys() & used)[share:]
        for slot in [*unused, *spare]:
            self._leave(connection, slot)
        free = list(used - taken)
        random.shuffle(free)  # two that look at once shall not try the same
        missing = max(0, share - len(self._held))
        if missing and free:
            self._take(connection, free[:missing])

    def _take(self, connection: "psycopg.Connection[Any]", slots: Iterable[int]) -> None:
        got = [slot for (slot,) in connection.execute(TAKE.encode(), (list(slots),))]
        fences = connection.execute(FENCE.encode(), (got,)).fetchall()
        self._held.update(fences)
        for slot in got:
            for number in list(self._audience.by_slot.get(slot, ())):
                self._audience.begin(number)

    def _leave(self, connection: "psycopg.Connection[Any]", slot: int) -> None:
        """Give a slot up, when what was learned of its metrics is saved."""
        fence = self._held.pop(slot)  # no turn begins from here on
        for number in list(self._audience.by_slot.get(slot, ())):
            if not self._audience.let_go(number):
                self._held[slot] = fence
                return
            connection.execute(b"SELECT 1")  # saving takes its time, and silence ends the session
        connection.execute(LEAVE.encode(), (slot,))
