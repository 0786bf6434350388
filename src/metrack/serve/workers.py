"""Threads that learn: each metric is one thread's at a time, and all get their turns.

A turn is short, and says when the next one is due. Compiled code runs without the interpreter's
lock, so turns of different metrics, and answers to requests, go on side by side.
"""

import heapq
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

logger = logging.getLogger(__name__)

LATER = 5  # nice value: a third of the processor time where there is not enough for all


class Waiting(Protocol):
    """What has turns."""

    due: float | None  # when its next turn is wanted
    busy: bool  # whether it has one now


class Workers:
    """Some threads.

    Parameters
    ----------
    n_threads : int
    turn : callable
        Takes what waits; returns after how many seconds it wants another turn, or None.
    """

    def __init__(self, n_threads: int, turn: Callable[[Waiting], float | None]) -> None:
        self._turn = turn
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Waiting]] = []
        self._order = count()
        self._ending = False
        self._threads = [
            threading.Thread(target=self._work, name=f"learner-{i}", daemon=True)
            for i in range(n_threads)
        ]
        for thread in self._threads:
            thread.start()

    def wake(self, waiting: Waiting, seconds: float = 0.0) -> None:
        """Give it a turn after so many seconds, or earlier if one is due."""
        with self._changed:
            self._want(waiting, time.monotonic() + seconds)

    def close(self) -> None:
        """End after the turns of now."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _want(self, waiting: Waiting, due: float) -> None:
        if waiting.due is not None and waiting.due <= due:
            return
        waiting.due = due
        if not waiting.busy:  # else it is queued when its turn ends
            heapq.heappush(self._heap, (due, next(self._order), waiting))
            self._changed.notify()

    def _next(self) -> Waiting | None:
        """Whose turn it is; waits until there is one."""
        with self._changed:
            while not self._ending:
                now = time.monotonic()
                if self._heap and self._heap[0][0] <= now:
                    due, _, waiting = heapq.heappop(self._heap)
                    if waiting.due == due and not waiting.busy:  # else it was wanted earlier
                        waiting.due, waiting.busy = None, True
                        return waiting
                    continue
                self._changed.wait(self._heap[0][0] - now if self._heap else None)
            return None

    def _work(self) -> None:
        _let_others_first()
        while (waiting := self._next()) is not None:
            try:
                again = self._turn(waiting)
            except Exception:
                logger.exception("a turn failed")
                again = None
            with self._changed:
                waiting.busy = False
                wanted, waiting.due = waiting.due, None
                if again is not None:
                    soon = time.monotonic() + again
                    wanted = soon if wanted is None else min(wanted, soon)
                if wanted is not None:
                    self._want(waiting, wanted)


def _let_others_first() -> None:
    """Answers to requests before learning, where they want the same processor.

    Only Linux has priorities of threads.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LATER)
