"""Who may do what: tokens of which only digests are kept, with scopes, and sessions of the page."""

import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import NamedTuple, Protocol

from metrack.serve.limits import NAME, Refused

SCOPES = ("read", "write", "admin")
SESSION_SECONDS = 12 * 3600
COOKIE = "metrack_session"
EVERY = "*"
RELOAD_SECONDS = 1.0
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Identity(NamedTuple):
    """Who asks."""

    name: str
    scopes: frozenset[str]
    metrics: frozenset[str]  # or "*"

    def may(self, scope: str, metric: str | None) -> bool:
        """Whether it may do something with a metric, or with all."""
        return scope in self.scopes and (EVERY in self.metrics or metric in self.metrics)


ANYONE = Identity("", frozenset(SCOPES), frozenset({EVERY}))


class Tokens:
    """A file of tokens: a line each, of a name, scopes, metrics and a SHA-256 digest.

    It is read again when it has changed, so that a line that is removed is a token that is revoked.

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
            text = self.path.read_text(encoding="utf-8")
            self._known, self._stamp = dict(_parsed(text, self.path)), stamp


def _parsed(text: str, path: Path) -> list[tuple[str, Identity]]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        if len(parts) != 4 or len(parts[3]) != 64:
            raise ValueError(f"{path}:{number}: expected a name, scopes, metrics and a digest")
        name, scopes, metrics, digest = parts
        found.append((digest.lower(), identity_of(name, scopes, metrics)))
    return found


def identity_of(name: str, scopes: str, metrics: str) -> Identity:
    """Who has a token, as a line or a row says it."""
    return Identity(name, _scopes(scopes), frozenset(metrics.split(",")))


def _scopes(text: str) -> frozenset[str]:
    scopes = frozenset(text.split(","))
    if not scopes <= set(SCOPES):
        raise ValueError(f"scopes {text!r}; they are {', '.join(SCOPES)}")
    return scopes


def add_token(path: Path, name: str, scopes: str, metrics: str) -> str:
    """Add a token to a file, made if missing; returns the token, which is kept nowhere."""
    token, digest = new_token(name, scopes, metrics)
    line = f"{name} {scopes} {metrics} {digest}\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "a", encoding="utf-8") as file:
        file.write(line)
    return token


def new_token(name: str, scopes: str, metrics: str) -> tuple[str, str]:
    """A token for what may be asked of one, and its digest."""
    if not name or name.startswith("#") or len(f"{name} {metrics}".split()) != 2:
        raise ValueError(f"name {name!r}, metrics {metrics!r}: neither may be empty or have spaces")
    _scopes(scopes)
    for metric in metrics.split(","):
        if metric != EVERY and not NAME.fullmatch(metric):
            raise ValueError(
                f"metrics {metrics!r}: {metric!r} can be no metric's name, which has letters, "
                f"digits, dots, hyphens and underscores; {EVERY} stands for all"
            )
    token = secrets.token_urlsafe(32)
    return token, digest_of(token)


def digest_of(token: str) -> str:
    """SHA-256; tokens are long and random, so nothing slower is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class Known(Protocol):
    """Tokens that are known."""

    def find(self, digest: str) -> Identity | None:
        """Whose token has this digest."""


class Door:
    """Says who asks, or refuses.

    Parameters
    ----------
    tokens : Known, optional
        Without, everybody on this machine may do everything, and nobody else can ask.
    """

    def __init__(self, tokens: Known | None) -> None:
        self.tokens = tokens
        self._sessions: dict[str, tuple[str, float]] = {}  # digests of session and token, and end

    def identify(self, method: str, headers: Mapping[str, str]) -> Identity:
        """Who asks, by the headers of a request."""
        if self.tokens is None:
            # A page from elsewhere whose name was made to point here must not get in.
            if _without_port(headers.get("host", "")) not in LOOPBACK:
                raise Refused(421, "this server answers on localhost alone")
            _check_origin(method, headers)
            return ANYONE
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            digest = digest_of(token.strip())
        else:
            digest = self._session(headers)
            _check_origin(method, headers)  # a browser sends cookies by itself
        identity = self.tokens.find(digest)
        if identity is None:
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")
        return identity

    def log_in(self, token: str, headers: Mapping[str, str]) -> str:
        """A new session for a browser."""
        _check_origin("POST", headers)
        digest = digest_of(token)
        if self.tokens is None or self.tokens.find(digest) is None:
            raise Refused(401, "this token is not known")
        now = time.monotonic()
        self._sessions = {k: v for k, v in self._sessions.items() if v[1] > now}
        session = secrets.token_urlsafe(32)
        self._sessions[digest_of(session)] = digest, now + SESSION_SECONDS
        return session

    def _session(self, headers: Mapping[str, str]) -> str:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        digest, end = self._sessions.get(digest_of(cookie.value) if cookie else "", ("", 0.0))
        return digest if end > time.monotonic() else ""


def _check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what another site's page makes a browser send."""
    if method not in UNSAFE:
        return
    origin, host = headers.get("origin"), headers.get("host", "")
    elsewhere = origin is not None and origin.partition("://")[2] != host
    if elsewhere or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "the request comes from another site")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
