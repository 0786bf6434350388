"""Files that survive a crash: written, forced to the disk, and locked."""

import os
import sys
from pathlib import Path
from typing import IO


def write_file(file: Path, data: bytes) -> None:
    """Write a new file, and force it to the disk."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0))
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk."""
    if sys.platform == "win32":  # folders cannot be opened there; renames are journalled
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_file(file: IO[str]) -> None:
    """Lock a file while it is open; raises an OSError where another process has."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(100)  # beyond the number, which the other process reads
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_same(file: IO[str], path: Path) -> None:
    """Refuse a lock that another process took away after this one had opened it."""
    if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
        raise FileNotFoundError(f"{path} is another file by now")
