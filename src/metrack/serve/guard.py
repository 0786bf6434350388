"""What every request passes: who asks, how large it is; and what every answer carries."""

import json
import logging
import re
import secrets
import time
from collections import Counter
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metrack.serve import pages
from metrack.serve.auth import COOKIE, NEEDED, SESSION_SECONDS, Door
from metrack.serve.limits import NAME, Limits, Refused

logger = logging.getLogger(__name__)

REQUEST = "x-request-id"
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # of a proxy, else our own
OPEN = frozenset({"/healthz", "/readyz"})
LOGIN = "/login"
PAGE = re.compile(rf"/m/{NAME.pattern}(/judge)?")  # that a login goes on to; nothing else
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{images}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": POLICY.format(images=""),
}


def policy_with_images(origins: set[str]) -> str:
    """A page's policy, where its images come from elsewhere."""
    return POLICY.format(images="".join(f" {each}" for each in sorted(origins)))


class Guard:
    """Stands before the application.

    Parameters
    ----------
    app : ASGI application
    door : Door
    limits : Limits
    """

    def __init__(self, app: ASGIApp, door: Door, limits: Limits) -> None:
        self.app, self.door, self.limits = app, door, limits
        self.held = 0  # bytes of the bodies of requests that are under way
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self.seconds: Counter[str] = Counter()  # by route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 500
        scope["request_id"] = request = _request_id(scope)
        carried = HEADERS | {REQUEST: request}

        async def send_more(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.encode(), v.encode())
                        for k, v in carried.items()
                        if k.encode() not in own
                    ),
                ]
            await send(message)

        try:
            await self._admit(scope, receive, send_more)
        except Refused as refused:
            await _answer(scope, refused, send_more)
        except Exception:
            logger.error("request %s: %s %s failed", request, scope["method"], _route(scope))
            raise
        finally:
            route = _route(scope)
            self.requests[route, status] += 1
            self.seconds[route] += time.monotonic() - start  # type: ignore[assignment]

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        body = _Body(receive, self.limits.body)
        size = self._size(headers)
        if scope["path"] == LOGIN and scope["method"] == "POST":
            await self._log_in(scope, headers, body, send)
            return
        if scope["path"] not in OPEN:
            scope["identity"] = self.door.identify(scope["method"], headers)
        if self.held + size > self.limits.bodies:
            raise Refused(429, "too much is being sent at once; send it again", retry_after=1)
        self.held += size
        try:
            await self.app(scope, body.receive, send)
        finally:
            self.held -= size

    def _size(self, headers: dict[str, str]) -> int:
        """Of a body as it is announced; at most so much will be taken."""
        if "transfer-encoding" in headers:
            return self.limits.body
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.limits.body:
            raise Refused(413, f"the body is too large; at most {self.limits.body:,} bytes")
        return int(length)

    async def _log_in(
        self, scope: Scope, headers: dict[str, str], body: "_Body", send: Send
    ) -> None:
        form = parse_qs((await body.all()).decode("utf-8", "replace"))
        session = self.door.log_in(form.get("token", [""])[0].strip(), headers)
        secure = "; Secure" if scope["scheme"] == "https" else ""
        cookie = (
            f"{COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={SESSION_SECONDS}"
            f"{secure}"
        )
        page = form.get("next", ["/"])[0]
        page = page if PAGE.fullmatch(page) else "/"
        found = [(b"location", page.encode()), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": found})
        await send({"type": "http.response.body", "body": b""})


class _Body:
    """A request's body, counted as it comes: a length may be missing or wrong."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._size = receive, most, 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise Refused(413, f"the body is too large; at most {self._most:,} bytes")
        return message

    async def all(self) -> bytes:
        parts = []
        while True:
            message = await self.receive()
            parts.append(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body"):
                return b"".join(parts)


def _request_id(scope: Scope) -> str:
    """By which an answer is found in the log: a proxy's, or our own."""
    given: bytes = dict(scope["headers"]).get(REQUEST.encode(), b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(6)


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "other")


async def _answer(scope: Scope, refused: Refused, send: Send) -> None:
    headers = dict(scope["headers"])
    by_browser = b"text/html" in headers.get(b"accept", b"")
    found: dict[str, str] = {"content-type": "application/json"}
    body = json.dumps({"detail": refused.message, "request": scope["request_id"]})
    if refused.status == HTTPStatus.UNAUTHORIZED:
        found["www-authenticate"] = "Bearer"
        if by_browser:
            told = "Log in with a token." if refused.message == NEEDED else refused.message
            body, found["content-security-policy"] = pages.login(told, scope["path"])
            found["content-type"] = "text/html; charset=utf-8"
    if refused.retry_after is not None:
        found["retry-after"] = str(refused.retry_after)
    await send(_start(refused.status, found))
    await send({"type": "http.response.body", "body": body.encode()})


def _start(status: int, headers: dict[str, str]) -> Message:
    encoded: list[Any] = [(k.encode(), v.encode()) for k, v in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": encoded}
