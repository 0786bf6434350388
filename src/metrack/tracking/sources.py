"""Where rows come from: files, folders of files in the order of their names, pipes.

Text comes as blocks of whole lines, tables as Arrow batches. Each ends at a `Checkpoint`, from
which a later run can go on; the last bytes before it tell whether a source is still the same.
"""

import bz2
import contextlib
import gzip
import hashlib
import itertools
import lzma
import os
import select
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, TypedDict

from metrack.tracking.lines import end_of, is_blank, lines_of

PIPE = "-"
BLOCK = 1 << 20  # bytes of text at a time ...
WIDE_ROWS, WIDEST_BLOCK = 64, 1 << 24  # ... or so many rows, up to so many bytes
LONGEST_LINE = 1 << 26
TAIL = 1 << 16  # bytes of text before a checkpoint that must be the same
TAIL_ROWS = 16  # the same for tables

TEXT = {".csv": "csv", ".tsv": "csv", ".txt": "csv"} | dict.fromkeys(
    (".jsonl", ".ndjson", ".json"), "jsonl"
)
TABLES = {".parquet": "parquet", ".pq": "parquet"} | dict.fromkeys(
    (".arrow", ".feather", ".ipc"), "arrow"
)
COMPRESSED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
FORMATS = ("auto", "csv", "jsonl", "parquet", "arrow")
CHOOSE = f"choose one with --format ({', '.join(FORMATS[1:])})"
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


class SourceError(ValueError):
    """A source that cannot be read on; the message says where and why."""


class SavedCheckpoint(TypedDict):
    """How far a source has been read, as the manifest keeps it."""

    file: str
    offset: int
    lines: int
    tail: str
    before: int  # files of a folder that come before it


class Checkpoint(NamedTuple):
    """How far a source has been read."""

    file: str
    offset: int = 0  # bytes of text, or rows of a table
    lines: int = 0  # line breaks, or rows, before it
    tail: bytes = b""  # the last bytes before it

    def saved(self, before: int = 0) -> SavedCheckpoint:
        """For the manifest; so many files of a folder come before."""
        return {
            "file": self.file,
            "offset": self.offset,
            "lines": self.lines,
            "tail": tail_hash(self.tail),
            "before": before,
        }


def tail_hash(tail: bytes) -> str:
    """What the manifest keeps of the text, or rows, before a checkpoint."""
    return hashlib.sha256(tail).hexdigest()


class Block(NamedTuple):
    """Whole lines of text, and the checkpoint where they begin."""

    data: bytes
    start: Checkpoint
    cut: bool = False  # the text ends without a line break

    def checkpoint(self, n_lines: int | None = None) -> Checkpoint:
        """The checkpoint after so many lines; None: all."""
        data = self.data
        if n_lines is not None:
            data = data[: end_of(data, n_lines)]
        tail = data[-TAIL:] if len(data) >= TAIL else (self.start.tail + data)[-TAIL:]
        lines = self.start.lines + data.count(b"\n")
        return Checkpoint(self.start.file, self.start.offset + len(data), lines, tail)

    def checkpoint_after(self, n_rows: int) -> Checkpoint:
        """The checkpoint just after so many rows, which are the lines that are not blank."""
        filled = (i for i, line in enumerate(lines_of(self.data)) if not is_blank(line))
        return self.checkpoint(next(itertools.islice(filled, n_rows - 1, None)) + 1)


def is_pipe(source: str) -> bool:
    """Whether a source is read once, as it comes: standard input, a FIFO, a device."""
    return source == PIPE or not (Path(source).is_file() or Path(source).is_dir())


def files_of(source: str) -> list[Path]:
    """The files of a source, in order."""
    path = Path(source)
    if not path.is_dir():
        return [path]
    hidden = (".", "_")
    found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith(hidden))
    if not found:
        raise SourceError(f"{path} holds no files")
    return found


def format_of(path: Path, asked: str, remedy: str = CHOOSE) -> str:
    """The format of a file: as asked for, else by its name."""
    if asked != "auto":
        return asked
    suffixes = [s.lower() for s in path.suffixes]
    packed = bool(suffixes) and (suffixes[-1] in COMPRESSED or suffixes[-1] == ".zst")
    ending = suffixes[-1 - packed] if len(suffixes) > packed else ""
    if ending in TABLES and packed:
        raise SourceError(f"{path}: unpack it first; {TABLES[ending]} has a compression of its own")
    known = TEXT | TABLES
    if ending not in known:
        raise SourceError(f"{path}: cannot tell the format from the name; {remedy}")
    return known[ending]


class Text:
    """Lines of a file or pipe, from a checkpoint on.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.
    file : str
        Name in messages and checkpoints.
    """

    def __init__(self, source: str, file: str) -> None:
        self.file = file
        self._left = b""
        self._ready: Callable[[], bool] = lambda: True
        self._seek: Callable[[int], object] | None = None
        if is_pipe(source):
            descriptor = 0 if source == PIPE else os.open(source, os.O_RDONLY)
            self._read: Callable[[int], bytes] = lambda n: os.read(descriptor, n)
            self.close: Callable[[], None] = lambda: os.close(descriptor) if descriptor else None
            _enlarge(descriptor)
            if sys.platform != "win32":
                self._ready = lambda: bool(select.select([descriptor], [], [], 0.0)[0])
        else:
            stream = _open(Path(source))
            self._read, self.close = stream.read, stream.close
            if Path(source).suffix.lower() not in (*COMPRESSED, ".zst"):
                self._seek = stream.seek

    def ahead(self, n_lines: int) -> list[bytes]:
        """The next lines that are not blank, at least so many if there are; they stay unread."""
        while True:
            lines = [line for line in lines_of(self._left) if not is_blank(line)]
            whole = [line for line in lines if line.endswith(b"\n")]
            if len(whole) >= n_lines or len(self._left) > LONGEST_LINE:
                return whole
            more = self._more()
            if not more:
                return lines
            self._left += more

    def peek(self) -> bytes:
        """What comes next; it stays unread."""
        if not self._left:
            self._left = self._more()
        return self._left

    def take(self, n: int) -> bytes:
        """The next n bytes, fewer only at the end."""
        pieces = []
        while n:
            piece = self.peek()[:n]
            if not piece:
                break
            pieces.append(piece)
            self._left, n = self._left[len(piece) :], n - len(piece)
        return b"".join(pieces)

    def drop_line(self) -> Checkpoint:
        """Leave out everything up to the end of the first line that is not blank."""
        blank = len(self._left) - len(self._left.lstrip())
        end = self._left.find(b"\n", blank) + 1 or len(self._left)
        dropped, self._left = self._left[:end], self._left[end:]
        return Block(dropped, Checkpoint(self.file)).checkpoint()

    def skip(self, checkpoint: SavedCheckpoint) -> Checkpoint:
        """Go to a checkpoint of an earlier run, if what comes before it is the same."""
        offset = checkpoint["offset"]
        start = max(0, offset - TAIL)
        if self._seek is not None:
            self._seek(start)
            self._left = b""
        else:
            self._drop(start, offset)
        while len(self._left) < offset - start:
            more = self._more()
            if not more:
                raise self._changed(f"it ends before byte {offset:,}, up to which it was learned")
            self._left += more
        tail, self._left = self._left[: offset - start], self._left[offset - start :]
        if tail_hash(tail) != checkpoint["tail"]:
            raise self._changed(f"it differs before byte {offset:,}, up to which it was learned")
        return Checkpoint(self.file, offset, checkpoint["lines"], tail)

    def _drop(self, start: int, offset: int) -> None:
        while start > 0:
            if not self._left:
                self._left = self._more()
            if not self._left:
                raise self._changed(f"it ends before byte {offset:,}, up to which it was learned")
            dropped = min(start, len(self._left))
            self._left, start = self._left[dropped:], start - dropped

    def _changed(self, why: str) -> SourceError:
        return SourceError(
            f"{self.file} is not the source that the state was learned from: {why}. Give the same "
            "source again from its start; or, where it brings only new rows, --new-source"
        )

    def blocks(self, start: Checkpoint) -> Iterator[Block]:
        """Whole lines as soon as they are there, many at a time where there are many.

        A pipe may bring a line an hour: what has come is not held back.
        """
        checkpoint, size = start, BLOCK
        while True:
            if b"\n" not in self._left or (len(self._left) < size and self._ready()):
                more = self._more(checkpoint.lines + 1)
                if not more:
                    break
                self._left += more
                if len(self._left) < size and self._ready():
                    continue
            end = self._left.rfind(b"\n") + 1
            if end == 0:
                if len(self._left) > LONGEST_LINE:
                    raise SourceError(
                        f"{self.file}:{checkpoint.lines + 1}: a line of more than {LONGEST_LINE:,} "
                        "bytes; is this text?"
                    )
                continue
            block = Block(self._left[:end], checkpoint)
            self._left = self._left[end:]
            yield block
            checkpoint = block.checkpoint()
            size = _block_size(block.data)
        if self._left:
            end = self._left.rfind(b"\n") + 1
            if end:
                block = Block(self._left[:end], checkpoint)
                yield block
                checkpoint = block.checkpoint()
            if end < len(self._left):
                yield Block(self._left[end:], checkpoint, cut=True)
            self._left = b""

    def _more(self, line: int = 1) -> bytes:
        try:
            return self._read(BLOCK)
        except (*BROKEN, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the system's, and not the decompressor's
            raise SourceError(
                f"{self.file}:{line}: the compressed data is damaged or cut short near this line "
                f"({error})"
            ) from None


def _enlarge(pipe: int) -> None:
    """Let the writer of a pipe run ahead by a block, where the system allows it."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # not a pipe, or beyond the user's limit
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BLOCK)


def _block_size(data: bytes) -> int:
    line = len(data) // max(1, data.count(b"\n"))
    return min(max(BLOCK, WIDE_ROWS * line), WIDEST_BLOCK)


def _open(path: Path) -> IO[bytes]:
    ending = path.suffix.lower()
    if ending in COMPRESSED:
        unpacked: IO[bytes] = COMPRESSED[ending](path)
        return unpacked
    if ending == ".zst":
        stream: IO[bytes] = arrow(".zst files").input_stream(str(path), compression="zstd")
        return stream
    return open(path, "rb", buffering=0)


def arrow(purpose: str) -> Any:
    """The pyarrow package, or an ImportError that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{purpose} need pyarrow: pip install 'metrack[io]'") from None
    return pyarrow
