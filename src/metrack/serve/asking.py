"""What routes share: who may ask, which metric, what was sent, and work that takes longer."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from metrack.checks import Floats
from metrack.serve import bodies, schemas
from metrack.serve.auth import Identity
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.registry import Registry
from metrack.serve.snapshots import Snapshot

SMALL = 1 << 18  # bytes of a body that is worked on at once; larger ones would hold up the others
FEW = 256  # pairs or points, likewise
LONGEST = 20.0  # seconds that a request waits for the database

T = TypeVar("T")


def needs(scope: str) -> Any:
    """Let those in who have a scope for the metric of the path."""

    async def check(request: Request) -> None:
        identity: Identity = request.scope["identity"]
        name = request.path_params.get("name")
        if name is None and scope == "read":
            return  # a list of what may be read
        if not identity.may(scope, name):
            raise Refused(403, f"this token has no scope {scope!r} here")

    return Depends(check)


def taken(model: type[schemas.Body], arrow: bool = False) -> dict[str, Any]:
    """What a route takes, for the description: the body is read by `bodies`."""
    content: dict[str, Any] = {
        bodies.JSON: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    }
    if arrow:
        content[bodies.ARROW] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


def taken_as(content: str) -> dict[str, Any]:
    """The same of a route that takes a file."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": {content: schema}}}


def given_as(content: str) -> dict[str, Any]:
    """What a route that gives a file is described with."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"response_class": Response, "responses": {200: {"content": {content: schema}}}}


read, write, admin = needs("read"), needs("write"), needs("admin")


def registry_of(request: Request) -> Registry:
    """The server's metrics."""
    found: Registry = request.app.state.registry
    return found


async def metric_of(request: Request, name: str | None = None) -> Metric:
    """The metric of the path, or of a name."""
    registry, name = registry_of(request), name or request.path_params["name"]
    if registry.database.shared and name not in registry.metrics:
        await in_thread(registry.find, name)
    return registry.get(name)


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Work that waits for the database; whoever asks does not wait for ever."""
    with anyio.fail_after(LONGEST):
        return await anyio.to_thread.run_sync(partial(call, *args), abandon_on_cancel=True)


def to_json(content: Any, status: int = 200) -> Response:
    """An answer; what is no number has been left out before."""
    return Response(json.dumps(content, allow_nan=False), status, media_type=bodies.JSON)


async def parsed(request: Request, parse: Callable[..., Any], *args: Any) -> Any:
    """A body, as one of `bodies` reads it."""
    body = await request.body()
    kind = bodies.kind_of(request.headers.get("content-type"))
    if len(body) <= SMALL:
        return parse(body, kind, *args)
    return await run_in_threadpool(parse, body, kind, *args)


async def asked_for(request: Request, model: type[Any]) -> Any:
    """A small body, JSON."""
    if bodies.kind_of(request.headers.get("content-type")) != bodies.JSON:
        raise Refused(415, f"the body must be {bodies.JSON}")
    return bodies.from_json(model, await request.body())


async def snapshot_of(request: Request, metric: Metric) -> Snapshot:
    """The last that was published."""
    if metric.snapshot is not None:
        return metric.snapshot
    return await in_thread(registry_of(request).teaching.snapshot_of, metric)


async def with_items(request: Request, metric: Metric) -> Callable[[], Any]:
    """Loads them here, so that who needs them need not wait."""
    registry = registry_of(request)
    if metric.items is None:
        await in_thread(registry.items_of, metric)
    return lambda: registry.items_of(metric)


def wants_arrow(request: Request) -> bool:
    """Whether the answer shall be Arrow."""
    return bodies.ARROW in request.headers.get("accept", "")


async def computed(compute: Callable[[Floats], Floats], points: Floats) -> Floats:
    """What is computed of points; of many in a thread."""
    if len(points) <= FEW:
        return compute(points)
    return await run_in_threadpool(compute, points)
