"""Tokens: made, listed and withdrawn, in a file; `databases.tokens` has them in a database."""

import math
import os
import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from metrack.serve.auth import EVERY, SCOPES, Identity, digest_of
from metrack.serve.limits import NAME

RELOAD_SECONDS = 1.0
DAY = 86400.0


class Entry(NamedTuple):
    """What is kept of a token."""

    name: str
    scopes: str
    metrics: str
    digest: str
    expires: float | None  # seconds since 1970; None: never

    def identity(self) -> Identity:
        """Who has it."""
        expires = math.inf if self.expires is None else self.expires
        metrics = frozenset(self.metrics.split(","))
        return Identity(self.name, _scopes(self.scopes), metrics, expires)

    def line(self) -> str:
        """As a file has it."""
        end = "" if self.expires is None else f" {_written(self.expires)}"
        return f"{self.name} {self.scopes} {self.metrics} {self.digest}{end}\n"

    def described(self) -> str:
        """For a list; the digest's beginning tells tokens of one name apart."""
        if self.expires is None:
            end = "never expires"
        else:
            is_over = self.expires <= time.time()
            end = f"{'expired' if is_over else 'expires'} {_written(self.expires)}"
        return f"{self.name}  {self.scopes}  {self.metrics}  {self.digest[:8]}…  {end}"


class Tokens:
    """A file of tokens: a line each, of a name, scopes, metrics, a SHA-256 digest, and an end.

    It is read again when it has changed, so that a line that is removed is a token withdrawn.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._looked, self._stamp = 0.0, (0, 0)
        self._known: dict[str, Identity] = {}
        self._read()
        if not self._known:
            raise ValueError(f"{path} has no token; make one: metrack token {path} NAME")

    def find(self, digest: str) -> Identity | None:
        """Whose token has this digest."""
        now = time.monotonic()
        if now - self._looked > RELOAD_SECONDS:
            self._read()
            self._looked = now
        return self._known.get(digest)

    def _read(self) -> None:
        status = self.path.stat()
        stamp = status.st_mtime_ns, status.st_size
        if stamp != self._stamp:
            self._known = {each.digest: each.identity() for each in read_file(self.path)}
            self._stamp = stamp


def read_file(path: Path) -> list[Entry]:
    """All tokens of a file."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            found.append(_parsed(line, f"{path}:{number}"))
    return found


def _parsed(line: str, where: str) -> Entry:
    parts = line.split()
    if len(parts) not in (4, 5) or len(parts[3]) != 64:
        raise ValueError(
            f"{where}: expected a name, scopes, metrics and a digest, and when it expires if it "
            "does"
        )
    name, scopes, metrics, digest, *end = parts
    _scopes(scopes)
    try:
        expires = datetime.fromisoformat(end[0]).timestamp() if end else None
    except ValueError:
        raise ValueError(f"{where}: {end[0]!r} is no time such as 2027-01-31T12:00Z") from None
    return Entry(name, scopes, metrics, digest.lower(), expires)


def _written(expires: float) -> str:
    return datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _scopes(text: str) -> frozenset[str]:
    scopes = frozenset(text.split(","))
    if not scopes <= set(SCOPES):
        raise ValueError(f"scopes {text!r}; they are {', '.join(SCOPES)}")
    return scopes


def add_token(path: Path, name: str, scopes: str, metrics: str, days: float | None = None) -> str:
    """Add a token to a file, made if missing; returns the token, which is kept nowhere."""
    token, entry = new_token(name, scopes, metrics, days)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "a", encoding="utf-8") as file:
        file.write(entry.line())
    return token


def withdraw(path: Path, name: str) -> int:
    """Remove the tokens of a name from a file; returns how many they were."""
    gone = [each for each in read_file(path) if each.name == name]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.startswith("#") or line.split()[:1] != [name]]
    # In one step: a server never reads half of it.
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(kept)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    return len(gone)


def new_token(name: str, scopes: str, metrics: str, days: float | None = None) -> tuple[str, Entry]:
    """A token for what may be asked of one, and what is kept of it."""
    if not name or name.startswith("#") or len(f"{name} {metrics}".split()) != 2:
        raise ValueError(f"name {name!r}, metrics {metrics!r}: neither may be empty or have spaces")
    _scopes(scopes)
    for metric in metrics.split(","):
        if metric != EVERY and not NAME.fullmatch(metric):
            raise ValueError(
                f"metrics {metrics!r}: {metric!r} can be no metric's name, which has letters, "
                f"digits, dots, hyphens and underscores; {EVERY} stands for all"
            )
    if days is not None and not 0.0 < days < 36500.0:
        raise ValueError(f"days={days:g}; a token lasts for some days, or leave it out")
    token = secrets.token_urlsafe(32)
    expires = None if days is None else time.time() + days * DAY
    return token, Entry(name, scopes, metrics, digest_of(token), expires)


def listed(entries: Iterable[Entry]) -> str:
    """A line each."""
    return "\n".join(each.described() for each in sorted(entries))
