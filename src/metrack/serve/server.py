"""A server process: its folder, its address, its end."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn
from threadpoolctl import threadpool_limits

from metrack.files import lock_file
from metrack.serve.app import make_app
from metrack.serve.auth import Door, Known
from metrack.serve.copying import copy_all
from metrack.serve.databases.database import Database
from metrack.serve.databases.sqlite import SQLite
from metrack.serve.limits import Limits
from metrack.serve.registry import Registry
from metrack.serve.tokens import Tokens

LOOPBACK = ("127.0.0.1", "::1", "localhost")
GRACE = 2  # seconds for open connections at the end
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"level": "INFO", "handlers": ["stderr"]},
    "loggers": {"uvicorn.access": {"level": "WARNING"}},
}


def serve(
    source: Path | str,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    limits: Limits | None = None,
    n_threads: int | None = None,
    learns: bool = True,
) -> None:
    """Serve the metrics of a folder or a database until a signal ends it.

    Parameters
    ----------
    source : Path or str
        A folder, made if missing and one server's own; or the address of a PostgreSQL database,
        which any number of servers share.
    host : str
    port : int
        0 takes one that is free, and says which.
    tokens : Path, optional
        File of tokens; needed on any host but this machine's own. A database may have them instead.
    limits : Limits, optional
    n_threads : int, optional
        That learn; by default one less than there are processors.
    learns : bool
        Whether this process takes its share of the learning; a folder has no other.
    """
    if isinstance(source, Path):
        _check_door(host, tokens)
    known: Known | None = None if tokens is None else Tokens(tokens)
    # Threads that write and learn must not keep answers waiting for the interpreter.
    sys.setswitchinterval(0.0005)
    # Small matrices: more threads of BLAS make them slower, and fight with those that learn.
    with _opened(source, learns) as database, threadpool_limits(1):
        known = known or database.tokens
        _check_door(host, known)
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        registry = Registry(database, limits or Limits(), n_threads or max(1, processors - 1))
        config = uvicorn.Config(
            make_app(registry, Door(known)),
            host=host,
            port=port,
            log_config=LOGGING,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=75,  # longer than proxies keep theirs
        )
        uvicorn.Server(config).run()


def _check_door(host: str, tokens: object) -> None:
    if tokens is None and host not in LOOPBACK:
        raise ValueError(
            f"--host {host} can be reached by others, so tokens are needed: make one with "
            "metrack token FILE NAME, and give --tokens FILE"
        )


def copy(folder: Path, url: str) -> list[str]:
    """Copy the metrics of a folder to a database; returns which were not there yet."""
    from metrack.serve.databases.postgres import Postgres

    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    with _held(folder), closing(SQLite(folder)) as source, closing(Postgres(url)) as target:
        return copy_all(source, target)


@contextmanager
def _opened(source: Path | str, learns: bool) -> Iterator[Database]:
    if isinstance(source, str):
        from metrack.serve.databases.postgres import Postgres  # an extra of its own

        yield Postgres(source, learns)
    else:
        if source.exists() and not source.is_dir():
            raise ValueError(f"{source} is a file; give a folder for log and states")
        source.mkdir(parents=True, exist_ok=True)
        with _held(source):
            yield SQLite(source)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep other servers out; the operating system gives a lock up when its process ends."""
    with open(path / "lock", "a", encoding="ascii") as file:
        try:
            lock_file(file)
        except OSError:
            raise ValueError(f"{path} is in use by another server") from None
        yield
