"""A server process: its folder, its address, its end."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from threadpoolctl import threadpool_limits

from metrack.serve.app import make_app
from metrack.serve.auth import Door, Tokens
from metrack.serve.databases.sqlite import SQLite
from metrack.serve.limits import Limits
from metrack.serve.registry import Registry
from metrack.storage import lock_file

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
    path: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    limits: Limits | None = None,
    n_threads: int | None = None,
) -> None:
    """Serve the metrics of a folder until a signal ends it.

    Parameters
    ----------
    path : Path
        Made if missing; one server's own.
    host : str
    port : int
        0 takes one that is free, and says which.
    tokens : Path, optional
        File of tokens; needed on any host but this machine's own.
    limits : Limits, optional
    n_threads : int, optional
        That learn; by default one less than there are processors.
    """
    if tokens is None and host not in LOOPBACK:
        raise ValueError(
            f"--host {host} can be reached by others, so tokens are needed: make one with "
            "metrack token FILE NAME, and give --tokens FILE"
        )
    door = Door(None if tokens is None else Tokens(tokens))
    path.mkdir(parents=True, exist_ok=True)
    # Threads that write and learn must not keep answers waiting for the interpreter.
    sys.setswitchinterval(0.0005)
    # Small matrices: more threads of BLAS make them slower, and fight with those that learn.
    with _held(path), threadpool_limits(1):
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        registry = Registry(SQLite(path), limits or Limits(), n_threads or max(1, processors - 1))
        config = uvicorn.Config(
            make_app(registry, door),
            host=host,
            port=port,
            log_config=LOGGING,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=75,  # longer than proxies keep theirs
        )
        uvicorn.Server(config).run()


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep other servers out; the operating system gives a lock up when its process ends."""
    with open(path / "lock", "a", encoding="ascii") as file:
        try:
            lock_file(file)
        except OSError:
            raise ValueError(f"{path} is in use by another server") from None
        yield
