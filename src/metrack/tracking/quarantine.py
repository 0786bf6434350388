"""Rows that cannot be used: where they go, and the error where they stop everything."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from metrack.tracking.formats import BadRow
from metrack.tracking.state import Tracking

MOST_HELD = 10_000  # bad rows that wait to be written


class BadRowError(ValueError):
    """A row that cannot be used, where such rows stop everything."""


class Quarantine:
    """Where rows that cannot be used go: a file, JSON a line, if one was asked for.

    They are written just before a state is, which remembers how long the file is: after a crash
    between the two, no row stands there twice.

    Parameters
    ----------
    policy : str
        "stop", "skip", or the path of a file.
    tracking : Tracking
    """

    def __init__(self, policy: str, tracking: Tracking) -> None:
        self.stops = policy == "stop"
        self.path = None if policy in ("stop", "skip") else Path(policy)
        self.tracking = tracking
        self._held: list[BadRow] = []
        self._refused: BadRow | None = None
        if self.path is not None:
            self._open()

    def _open(self) -> None:
        """Open the file once, to fail now rather than after the work; drop what is too much."""
        assert self.path is not None
        with open(self.path, "ab") as file:
            known = self.tracking.quarantine
            if known.get("file") == str(self.path) and file.tell() > known["size"]:
                file.truncate(known["size"])

    def take(self, rows: Sequence[BadRow]) -> None:
        """Count rows, and keep them until the next save."""
        if self.stops:
            # Not counted: it is read again, mended or not.
            self._refused = self._refused or next(iter(rows), None)
            return
        self.tracking.bad_rows += len(rows)
        if self.path is not None:
            self._held += rows

    def check(self) -> None:
        """Raise a BadRowError for the row that stopped everything, if there was one."""
        row = self._refused
        if row is not None:
            raise BadRowError(
                f"{row.file}:{row.line}: {row.why}. All rows before it are learned; mend the row "
                "and run again, or pass --bad-rows skip or a file for such rows"
            )

    def is_full(self) -> bool:
        """Whether it is time to write."""
        return len(self._held) >= MOST_HELD

    def write(self) -> None:
        """Append the rows, and force them to the disk."""
        if self.path is None or not self._held:
            return
        with open(self.path, "ab") as file:
            for row in self._held:
                line = {"file": row.file, "line": row.line, "why": row.why, "row": row.text}
                file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self.tracking.quarantine = {"file": str(self.path), "size": file.tell()}
        self._held = []
