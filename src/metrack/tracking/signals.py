"""Signals that ask a run to end."""

import signal
import threading
from types import TracebackType
from typing import Any, Self


class Stop:
    """Signals that ask to end: the piece is finished and the state saved first."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: object) -> None:
        if self.asked.is_set():  # the second time: at once, with the last state that was saved
            raise KeyboardInterrupt
        self.asked.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
