"""Batches read in a thread, ahead of those that are learned."""

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing

from metrack.tracking.reader import Batch
from metrack.tracking.signals import Stop

AHEAD = 4  # batches that wait to be learned
WAIT = 0.2  # seconds to wait for rows between looks at the clock and at signals


def prefetch(batches: Generator[Batch, None, None], stop: Stop) -> Iterator[Batch | None]:
    """Batches, read in a thread while others are learned; None when there is none for a moment."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(AHEAD)
    over = threading.Event()

    def put(entry: Batch | BaseException | None) -> bool:
        while not over.is_set():
            try:
                ready.put(entry, timeout=WAIT)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            with closing(batches):
                for batch in batches:
                    if not put(batch):
                        return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=work, daemon=True, name="metrack-reader").start()
    try:
        while not stop.asked.is_set():
            try:
                entry = ready.get(timeout=WAIT)
            except queue.Empty:
                yield None
                continue
            if entry is None:
                return
            if isinstance(entry, BaseException):
                raise entry
            yield entry
    finally:
        over.set()
