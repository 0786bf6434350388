"""A folder of states: arrays and a manifest, whole or not at all. It knows no learners.

A state is one generation, a folder of two files: ``arrays.safetensors`` and ``manifest.json``. It
is written beside the others under a temporary name, forced to the disk and renamed, so that a crash
at any moment leaves the generations that were there. The last few are kept: a process that reads
while another writes has time to finish. Where a state is a value in a table, the same two files are
a zip (`to_bytes`).
"""

import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

import numpy as np

from metrack.files import check_same, lock_file, sync_folder, write_file
from metrack.migrations import OLDEST, VERSION, migrated
from metrack.migrations import Arrays as Arrays

FORMAT = "metrack-state"
KEPT = 3  # generations
LARGEST_MANIFEST = 1 << 26
ARRAYS, MANIFEST, LOCK = "arrays.safetensors", "manifest.json", "lock"
GENERATION = re.compile(r"generation-(\d{12})")
PREFIX = ".new-"
PACKAGES = ("metrack", "numpy", "scipy", "scikit-learn", "numba", "safetensors")
DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "U32": np.uint32, "BOOL": np.bool_}

# What entries that are not what they should be lead to.
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


class StateError(ValueError):
    """A state that cannot be used; the message says why and what to do."""


class CorruptStateError(StateError):
    """The files are damaged, cut short or incomplete."""


class ForeignStateError(StateError):
    """There is no state of metrack, or none of the expected kind."""


class MissingStateError(ForeignStateError, FileNotFoundError):
    """There is no such folder."""


class NewerStateError(StateError):
    """The state was written by a later metrack."""


class StateInUseError(StateError):
    """Another process is writing to the folder."""


class State(NamedTuple):
    """What one generation holds."""

    content: dict[str, Any]  # what JSON can say
    arrays: Arrays


class StateFolder:
    """The right to write states into a folder, held by one process at a time.

    The operating system gives the lock up when the process ends, however it ends.

    Parameters
    ----------
    path : Path
        Made if missing. A folder that holds anything but states is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        self._made = not self.path.exists()
        _make_folder(self.path)
        # Opened for appending: a second process must not wipe out the first one's number.
        self._lock: IO[str] = open(self.path / LOCK, "a+", encoding="ascii")
        try:
            lock_file(self._lock)
            check_same(self._lock, self.path / LOCK)
        except OSError:
            self._lock.seek(0)
            owner = self._lock.read(20).strip() or "unknown"
            self._lock.close()
            raise StateInUseError(
                f"{self.path} is in use by process {owner}; wait for it to end, or choose "
                "another folder"
            ) from None
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not _generations(self.path):
            self._take_back()
        self._lock.close()

    def _take_back(self) -> None:
        """Leave nothing where nothing was written."""
        with suppress(OSError):  # some systems keep a file that is open
            os.unlink(self.path / LOCK)
            if self._made:
                os.rmdir(self.path)

    def write(self, state: State) -> None:
        """Add a generation; what a crash left over and the oldest ones go."""
        numbers = _generations(self.path)
        for name in os.listdir(self.path):
            if name.startswith(PREFIX):
                shutil.rmtree(self.path / name)
        number = numbers[-1] + 1 if numbers else 1
        beside = self.path / f"{PREFIX}{number:012d}"
        try:
            os.mkdir(beside)
            data = _pack_arrays(state.arrays)
            write_file(beside / ARRAYS, data)
            write_file(beside / MANIFEST, _pack_manifest(state.content, data))
            sync_folder(beside)
            os.rename(beside, generation(self.path, number))
            sync_folder(self.path)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)  # a full disk should have its space back
            raise
        for old in numbers[: max(0, len(numbers) + 1 - KEPT)]:
            shutil.rmtree(generation(self.path, old))


def generation(path: Path, number: int) -> Path:
    """Folder of one generation."""
    return path / f"generation-{number:012d}"


def has_state(path: Path) -> bool:
    """Whether a folder holds a state that can be tried."""
    return path.is_dir() and bool(_generations(path))


def read(path: Path) -> State:
    """The newest generation, checked; runs no code from it. Also from a zip of such a folder."""
    if path.is_file() and zipfile.is_zipfile(path):
        return from_bytes(path.read_bytes(), str(path))
    for _ in range(5):
        try:
            return _read_newest(path)
        except FileNotFoundError:
            # A writer may have removed the generation that was the newest a moment ago.
            continue
    return _read_newest(path)


def _read_newest(path: Path) -> State:
    if path.is_file():
        raise ForeignStateError(
            f"{path} is a file that holds no state; give the folder that a state was saved to"
        )
    if not path.is_dir():
        raise MissingStateError(
            f"{path}: no such folder; give the folder that a state was saved to, by save() or by "
            "metrack track --out"
        )
    numbers = _generations(path)
    if not numbers:
        raise ForeignStateError(f"{path} holds no state of metrack")
    folder = generation(path, numbers[-1])
    try:
        return _read_generation(folder)
    except FileNotFoundError as error:
        if folder.is_dir() and _generations(path) == numbers:
            missing = f"{error.filename or folder} is missing"
            raise CorruptStateError(missing + _way_back(path, numbers)) from None
        raise
    except CorruptStateError as error:
        raise CorruptStateError(f"{error}{_way_back(path, numbers)}") from None


def _way_back(path: Path, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return "; there is no earlier generation: start anew in another folder"
    return f"; remove {generation(path, numbers[-1])} to go on from the generation before it"


def _read_generation(folder: Path) -> State:
    content = _unpack_manifest(_read_manifest(folder / MANIFEST), folder / MANIFEST)
    described = _described(content, folder / MANIFEST)
    file = folder / ARRAYS
    _check_size(file.stat().st_size, described, file)
    return _unpack_state(content, described, file.read_bytes(), file)


def to_bytes(state: State, single: bool = False) -> bytes:
    """A state as a zip of its generation; on request in single precision where that can hold it."""
    arrays = {name: _single(a) for name, a in state.arrays.items()} if single else state.arrays
    data = _pack_arrays(arrays)
    # Not laid out for the eye, which takes longer than all else here.
    files = {ARRAYS: data, MANIFEST: _pack_manifest(state.content, data, indent=None)}
    folder, zipped = generation(Path(), 1).name, io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            # A ZipInfo has the same date always, so that equal states are equal bytes.
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), content)
    return zipped.getvalue()


def from_bytes(zipped: bytes | bytearray | memoryview, where: str) -> State:
    """The newest generation in a zip, checked; runs no code from it. The inverse of `to_bytes`."""
    if bytes(zipped[:2]) != b"PK":
        raise ForeignStateError(f"{where} is not one of metrack")
    try:
        with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
            folder = _newest_in(archive, where)
            manifest, data = (archive.read(f"{folder}/{name}") for name in (MANIFEST, ARRAYS))
    except StateError:
        raise
    except (zipfile.BadZipFile, *WRONG, EOFError, NotImplementedError, RuntimeError) as error:
        raise CorruptStateError(f"{where} is damaged: {error}") from None
    content = _unpack_manifest(manifest, where)
    described = _described(content, where)
    _check_size(len(data), described, where)
    return _unpack_state(content, described, data, where)


def _newest_in(archive: zipfile.ZipFile, where: str) -> str:
    """Name of the newest generation, where a zip holds generations and nothing else."""
    folders = [""]
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED:  # so that none is larger than it looks
            raise ForeignStateError(f"{where} is compressed: store its files as they are")
        folder, _, name = entry.filename.partition("/")
        if not GENERATION.fullmatch(folder) or name not in (ARRAYS, MANIFEST):
            raise ForeignStateError(f"{where} holds {entry.filename!r}, which is no state")
        folders.append(folder)
    return max(folders)


def _single(array: Any) -> Any:
    """An array of floats in half the bytes, unless some would become infinite or 0."""
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore", under="ignore"):
        rounded = array.astype(np.float32)
    kept = np.isfinite(rounded).all() and np.array_equal(rounded == 0.0, array == 0.0)
    return rounded if kept else array


def _described(content: dict[str, Any], where: object) -> dict[str, Any]:
    """What a manifest says of its arrays."""
    described = content.pop("arrays", None)
    if not (isinstance(described, dict) and {"size", "sha256"} <= set(described)):
        raise CorruptStateError(f"{where} does not describe its arrays")
    return described


def _check_size(size: int, described: Mapping[str, Any], where: object) -> None:
    if size != described["size"]:
        raise CorruptStateError(
            f"{where} has {size:,} bytes and should have {described['size']}: cut short or changed"
        )


def _unpack_state(
    content: dict[str, Any], described: Mapping[str, Any], data: bytes, where: object
) -> State:
    if hashlib.sha256(data).hexdigest() != described["sha256"]:
        raise CorruptStateError(f"{where} does not match its checksum: it was damaged or changed")
    arrays = _unpack_arrays(data, where)
    version = content.pop("version")
    try:
        return State(*migrated(version, content, arrays))
    except WRONG as error:
        raise CorruptStateError(
            f"{where} is no state of format {version}: {type(error).__name__}: {error}"
        ) from error


def _pack_arrays(arrays: Arrays) -> bytes:
    from safetensors.numpy import save

    packed: bytes = save({name: np.ascontiguousarray(a) for name, a in arrays.items()})
    return packed


def _unpack_arrays(data: bytes, where: object) -> Arrays:
    from safetensors import SafetensorError, deserialize

    arrays: Arrays = {}
    try:
        for name, tensor in deserialize(data):  # type: ignore[no-untyped-call]
            dtype = DTYPES[tensor["dtype"]]
            array = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
            # A copy: arrays of a learner are written to. Learners know double precision alone.
            arrays[name] = array.astype(np.float64 if dtype is np.float32 else dtype)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise CorruptStateError(f"{where} is not a safetensors file: {error}") from None
    return arrays


def _pack_manifest(content: Mapping[str, Any], data: bytes, indent: int | None = 1) -> bytes:
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **content,
        "packages": {name: _version(name) for name in PACKAGES},
        "arrays": {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()},
    }
    manifest["checksum"] = _checksum(manifest)
    return json.dumps(manifest, indent=indent, allow_nan=False).encode()


def _read_manifest(file: Path) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(LARGEST_MANIFEST + 1)


def _unpack_manifest(data: bytes, file: object) -> dict[str, Any]:
    if len(data) > LARGEST_MANIFEST:
        raise CorruptStateError(f"{file} is too large for a manifest")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        raise CorruptStateError(f"{file} is not JSON: cut short or damaged") from None
    if not (isinstance(manifest, dict) and manifest.get("format") == FORMAT):
        raise ForeignStateError(f"{file} is not the manifest of a metrack state")
    found = manifest.get("version")
    if isinstance(found, int) and found > VERSION:
        written_by = manifest.get("packages")
        newer = written_by.get("metrack") if isinstance(written_by, dict) else None
        raise NewerStateError(
            f"{file} has format {found}, written by metrack {newer}; this is metrack "
            f"{_version('metrack')}, which reads up to format {VERSION}: upgrade metrack"
        )
    if manifest.pop("checksum", None) != _checksum(manifest):
        raise CorruptStateError(f"{file} does not match its checksum: it was damaged or changed")
    if type(found) is not int or found < 1:
        raise CorruptStateError(f"{file} has no known format: version {found!r}")
    if found < OLDEST:
        raise ForeignStateError(
            f"{file} has format {found}, of a metrack that was never released, and is read no "
            "more: learn its judgements anew"
        )
    return manifest


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _make_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ForeignStateError(f"{path} is a file; give a folder for the state")
    if not path.exists():
        path.mkdir(parents=True)
        sync_folder(path.parent)
    known = (LOCK, *(generation(path, number).name for number in _generations(path)))
    foreign = [n for n in os.listdir(path) if n not in known and not n.startswith(PREFIX)]
    if foreign:
        raise ForeignStateError(
            f"{path} holds {foreign[0]!r}, which is no state; give a new or an empty folder"
        )


def _generations(path: Path) -> list[int]:
    found = (GENERATION.fullmatch(name) for name in os.listdir(path))
    return sorted(int(match[1]) for match in found if match)
