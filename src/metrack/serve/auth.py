"""Who may do what: tokens with scopes, of which digests are known, and sessions of the pages."""

import hashlib
import math
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple, Protocol

from metrack.serve.limits import Refused

SCOPES = ("read", "write", "admin")
SESSION_SECONDS = 12 * 3600
COOKIE = "metrack_session"
EVERY = "*"
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
NEEDED = "a token is needed: Authorization: Bearer TOKEN"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Identity(NamedTuple):
    """Who asks."""

    name: str
    scopes: frozenset[str]
    metrics: frozenset[str]  # or "*"
    expires: float = math.inf  # seconds since 1970

    def may(self, scope: str, metric: str | None) -> bool:
        """Whether it may do something with a metric, or with all."""
        return scope in self.scopes and (EVERY in self.metrics or metric in self.metrics)


ANYONE = Identity("", frozenset(SCOPES), frozenset({EVERY}))


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
            raise Refused(401, NEEDED)
        return _not_expired(identity)

    def log_in(self, token: str, headers: Mapping[str, str]) -> str:
        """A new session for a browser."""
        _check_origin("POST", headers)
        digest = digest_of(token)
        identity = None if self.tokens is None else self.tokens.find(digest)
        if identity is None:
            raise Refused(401, "this token is not known")
        _not_expired(identity)
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


def _not_expired(identity: Identity) -> Identity:
    if identity.expires <= time.time():
        raise Refused(401, f"the token of {identity.name} has expired; ask for a new one")
    return identity


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
