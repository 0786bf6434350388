"""The application: routes, pages, health and figures, behind the guard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from metrack.serve import items as item_rows
from metrack.serve import pages, schemas
from metrack.serve.asking import in_thread, metric_of, read
from metrack.serve.auth import Door, Identity
from metrack.serve.databases.database import Unavailable
from metrack.serve.guard import Guard, policy_with_images
from metrack.serve.limits import Refused
from metrack.serve.prometheus import text as figures
from metrack.serve.registry import Registry
from metrack.serve.routes.all import PREFIX, router

TAKEN = (
    schemas.MetricBody,
    schemas.FeedbackBody,
    schemas.PairsBody,
    schemas.PointsBody,
    schemas.ItemsBody,
    schemas.NeighboursBody,
    schemas.SuggestBody,
    schemas.ProbabilityBody,
    schemas.CorrectionBody,
    schemas.ReplayBody,
)


def make_app(registry: Registry, door: Door) -> Guard:
    """The application of a server."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        registry.teaching.loop = asyncio.get_running_loop()
        yield
        await run_in_threadpool(registry.close)

    app = FastAPI(
        title="metrack serve",
        version=version("metrack"),
        summary="Feedback in, the metric of the moment out",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.registry, app.state.streams = registry, 0
    app.include_router(router)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(TimeoutError, _late)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(Exception, _broken)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    guard = Guard(app, door, registry.limits)
    _add_health(app, registry, guard)
    _add_pages(app, registry)
    return guard


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    return _problem(request, error.message, error.status, headers)


async def _late(request: Request, error: Exception) -> Response:
    said = "the database does not answer; send it again, with the same ids"
    return _problem(request, said, 503, {"retry-after": "2"})


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = error.errors()[0]  # without what was sent
    where = ".".join(map(str, wrong["loc"]))
    return _problem(request, f"{where}: {wrong['msg']}", 422, {})


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(request, error.detail, error.status_code, dict(error.headers or {}))


async def _broken(request: Request, error: Exception) -> Response:
    return _problem(request, "an error of the server: its log has more, by this request", 500, {})


def _problem(request: Request, detail: str, status: int, headers: dict[str, str]) -> Response:
    """What is wrong: as a page, where a browser asked for one, else as JSON."""
    for_page = "text/html" in request.headers.get("accept", "")
    if not for_page or request.url.path.startswith(PREFIX):
        told = {"detail": detail, "request": request.scope["request_id"]}
        return JSONResponse(told, status, headers)
    body, policy = pages.problem(detail)
    return HTMLResponse(body, status, {**headers, "content-security-policy": policy})


def _described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI's description, with the bodies that routes read by themselves."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        _, extra = models_json_schema(
            [(model, "validation") for model in TAKEN],
            ref_template="#/components/schemas/{model}",
        )
        found["components"]["schemas"] |= extra["$defs"]
        bearer = {"type": "http", "scheme": "bearer"}
        found["components"]["securitySchemes"] = {"token": bearer}
        found["security"] = [{"token": []}]
        app.openapi_schema = found
    return app.openapi_schema


def _add_health(app: FastAPI, registry: Registry, guard: Guard) -> None:
    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        """The process is there."""
        return "ok"

    @app.get("/readyz", response_class=PlainTextResponse)
    async def readyz() -> Response:
        """Judgements can be written, every metric can learn; and whether this process learns."""
        failed = [m for m in list(registry.metrics.values()) if m.error is not None]
        if failed or not await _can_write(registry):
            return PlainTextResponse("not ready: see the log", 503)
        return PlainTextResponse("ready learner" if registry.database.learns else "ready reader")

    @app.get("/metrics", response_class=PlainTextResponse, dependencies=[read])
    async def metrics(request: Request) -> str:
        """Figures for Prometheus."""
        identity: Identity = request.scope["identity"]
        return figures(registry, guard, identity)


async def _can_write(registry: Registry) -> bool:
    if not registry.database.failing:
        return True
    try:
        await asyncio.wait_for(asyncio.wrap_future(registry.database.probe()), timeout=5.0)
    except (Unavailable, TimeoutError):
        return False
    return True


def _add_pages(app: FastAPI, registry: Registry) -> None:
    options: dict[str, Any] = {"include_in_schema": False, "dependencies": [read]}

    def page(name: str, images: set[str] | None = None) -> Response:
        headers = {"content-security-policy": policy_with_images(images)} if images else {}
        return Response(pages.file(name), media_type="text/html", headers=headers)

    @app.get("/", **options)
    async def index() -> Response:
        return page("index.html")

    async def with_images(request: Request, name: str) -> Response:
        metric = await metric_of(request)

        def origins() -> set[str]:
            with registry.database.reading() as connection:
                return item_rows.image_origins(connection, metric.number)

        return page(name, await in_thread(origins))

    @app.get("/m/{name}", **options)
    async def watch(request: Request, name: str) -> Response:
        return await with_images(request, "metric.html")

    @app.get("/m/{name}/judge", **options)
    async def judge(request: Request, name: str) -> Response:
        return await with_images(request, "judge.html")

    @app.get("/static/{file}", **options)
    async def static(file: str) -> Response:
        if file not in pages.STATIC:
            raise Refused(404, "no such file")
        return Response(pages.file(file), media_type=pages.STATIC[file])
