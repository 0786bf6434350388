"""Compiled code on disk, found by the sources that it was compiled from.

numba looks for changes only in the file of the function that Python calls, not in those of the
routines compiled into it, and would go on with old machine code after an upgrade or an edit. Here a
folder holds what was compiled from one state of the engine's sources, so that nothing in it is ever
out of date. Code of other packages that compile with the engine (the evaluations, or a way of
keeping metrics that a user wrote) lies further down, in folders named by the state of theirs.

Code is read from wherever it is found, and written to the first place that can be written to:
``NUMBA_CACHE_DIR`` where it is set, else beside the engine, else the user's own cache folder.
"""

import hashlib
import os
import pickle
import re
import shutil
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler, serialize
from numba.core.caching import NullCache
from numba.misc import appdirs

PACKAGE, ENGINE = "metrack", "metrack.engine"
BUILT_BY = f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode()
# Settings of numba that change machine code; the processor's are known to numba's own key.
BUILT_WITH = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
KEPT = 4  # states of the same sources

# These have no types.
config: Any = numba.config
rebuild: Any = compiler.CompileResult._rebuild
dumps: Any = serialize.dumps
AppDirs: Any = appdirs.AppDirs

_first_seen: dict[str, str] = {}  # by package: the state of its sources when they were imported


class SourceCache(NullCache):
    """What numba asks for the compiled code of a function, one signature at a time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        for package in {ENGINE, home(function.__module__)} - _first_seen.keys():
            _first_seen[package] = state(package)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, where it is on disk."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        file = self._file(key)
        if file is None:
            return None
        for place in places():
            try:
                found, compiled = pickle.loads((place / file).read_bytes())
                if found == key:
                    mark_used(place, file)
                    return rebuild(target_context, *compiled)
            except Exception:  # there is none, or a damaged one: it is compiled anew
                continue
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, where there is a place for it."""
        key = self._key(sig, data.codegen)
        file = self._file(key)
        if file is None or data.library.has_dynamic_globals:  # addresses of this process
            return
        content = dumps((key, data._reduce()))
        for place in places():
            with suppress(OSError):
                write(place, file, content)
                return
        warn_of_no_place(tuple(places()))

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        settings = tuple(str(getattr(config, name, None)) for name in BUILT_WITH)
        line = self.function.__code__.co_firstlineno  # there may be namesakes
        return sig, codegen.magic_tuple(), settings, line

    def _file(self, key: tuple[Any, ...]) -> Path | None:
        """Where in a place the code lies; None where sources do not tell what it does."""
        if self.function.__closure__:
            return None
        own = {home(self.function.__module__), *map(home, modules(key[0]))} - {ENGINE}
        folder = Path()
        for package in (ENGINE, *sorted(own)):
            now = state(package)
            if not now or _first_seen.setdefault(package, now) != now:
                return None  # there are none, or they have been edited since they were imported
            folder /= f"{package}-{now}"
        name = f"{self.function.__module__}.{self.function.__qualname__}"
        which = hashlib.sha256(repr((name, key)).encode()).hexdigest()[:16]
        return folder / f"{re.sub('[<>]', '', name)}-{which}.{sys.implementation.cache_tag}.nbc"


def places() -> list[Path]:
    """The folders that may hold compiled code, best first."""
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR)]
    beside = Path(str(sys.modules[ENGINE].__file__)).with_name("__pycache__")
    return [beside, Path(AppDirs(PACKAGE, appauthor=False).user_cache_dir)]


def home(module: str | None) -> str:
    """The package whose sources a module's compiled code may rest on, beside the engine's."""
    module = module or ""  # of a function made by exec
    own = module == PACKAGE or module.startswith(f"{PACKAGE}.")
    return ".".join(module.split(".")[: 2 if own else 1])


def modules(signature: Any) -> Iterator[str]:
    """Modules of the classes in a signature: functions are chosen by them."""
    for each in getattr(signature, "args", signature):
        if hasattr(each, "instance_class"):
            yield each.instance_class.__module__
        yield from modules(getattr(each, "types", ()))


def state(package: str) -> str:
    """A digest of all sources of a package, and of what compiles them; empty without sources."""
    try:
        found = list(sources(package))
    except (OSError, AttributeError):  # neither files nor a loader that has them
        return ""
    return hashlib.sha256(b"\0".join([BUILT_BY, *found])).hexdigest()[:16] if found else ""


def sources(package: str) -> Iterator[bytes]:
    """Names and contents of a package's files, or of a module's single one; zipped or not."""
    module: Any = sys.modules.get(package)
    if hasattr(module, "__path__"):
        yield from _below(files(module))
    elif getattr(module, "__file__", None):
        yield module.__loader__.get_data(module.__file__)


def _below(folder: Any) -> Iterator[bytes]:
    for entry in sorted(folder.iterdir(), key=lambda entry: str(entry.name)):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _below(entry)
        elif entry.name.endswith((".py", ".pyc")):
            yield entry.name.encode()
            yield entry.read_bytes()


def write(place: Path, file: Path, content: bytes) -> None:
    """Write a file whole or not at all; where its folder is new, the oldest beside it goes."""
    path = place / file
    new = [folder for folder in folders(place, file) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    for folder in new:
        keep_newest(folder)


def folders(place: Path, file: Path) -> list[Path]:
    """The folders of a file that are named by the state of sources."""
    return [place / folder for folder in list(file.parents)[:-1]]


def keep_newest(folder: Path) -> None:
    """Of a folder and its siblings, other states of its sources, leave those used last."""
    pattern = re.compile(re.escape(folder.name.rpartition("-")[0]) + "-[0-9a-f]{16}")
    with suppress(OSError):  # another process may be at it
        states = [each for each in folder.parent.iterdir() if pattern.fullmatch(each.name)]
        states.sort(key=lambda each: each.stat().st_mtime)
        for old in states[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def mark_used(place: Path, file: Path) -> None:
    """Let the folders of a file count as new."""
    with suppress(OSError):  # they may be read-only
        for folder in folders(place, file):
            os.utime(folder)


@cache
def warn_of_no_place(tried: tuple[Path, ...]) -> None:
    """Say once that compiled code cannot be kept."""
    warnings.warn(
        f"compiled code cannot be written to {' or '.join(map(str, tried))}: every process will "
        "compile anew, which takes some ten seconds; set NUMBA_CACHE_DIR to a folder that can be "
        "written to",
        stacklevel=2,
    )
