"""States, logs and items, out and in."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from metrack.serve import answers, bodies, parquet, schemas
from metrack.serve.asking import (
    admin,
    asked_for,
    given_as,
    in_thread,
    metric_of,
    parsed,
    read,
    registry_of,
    taken,
    taken_as,
    to_json,
    write,
)
from metrack.serve.auth import Identity
from metrack.serve.limits import Refused
from metrack.serve.parquet import PARQUET

ZIP = "application/zip"

router = APIRouter()


def _named(name: str, ending: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}{ending}"'}


async def _file(request: Request, kind: str) -> bytes:
    """A body of one kind."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Refused(415, f"the body must be {kind}; say so in Content-Type")
    return await request.body()


@router.get("/{name}/export", dependencies=[read], **given_as(ZIP))
async def export(request: Request, name: str) -> Response:
    """The state as a zip, which ``metrack.load`` reads."""
    metric = await metric_of(request)
    data = await in_thread(registry_of(request).export, metric)
    return Response(data, media_type=ZIP, headers=_named(metric.name, ".zip"))


@router.put(
    "/{name}/state",
    dependencies=[admin],
    status_code=201,
    response_model=answers.Described,
    openapi_extra=taken_as(ZIP),
)
async def bring_state(request: Request, name: str) -> Response:
    """A new metric from a state: as it was exported, or saved by a learner and zipped."""
    body = await _file(request, ZIP)
    metric = await in_thread(registry_of(request).bring, name, body)
    return to_json(metric.described(), 201)


@router.get("/{name}/items", dependencies=[read], **given_as(PARQUET))
async def export_items(request: Request, name: str) -> Response:
    """The items as Parquet, in the columns that they are put with."""
    registry, metric = registry_of(request), await metric_of(request)
    parts = parquet.items(registry.database, metric.number)
    named = _named(f"{metric.name}-items", ".parquet")
    return StreamingResponse(parts, media_type=PARQUET, headers=named)


@router.put(
    "/{name}/items",
    dependencies=[write],
    response_model=answers.ItemsPut,
    openapi_extra=taken(schemas.ItemsBody, arrow=True),
)
async def put_items(request: Request, name: str) -> Response:
    """Items, which judgements and questions may name by their ids; Parquet needs ``admin``."""
    registry, metric = registry_of(request), await metric_of(request)
    width = metric.config.n_features
    if request.headers.get("content-type", "").startswith(PARQUET):
        _check_admin(request)
        body = await _file(request, PARQUET)
        new = await run_in_threadpool(parquet.new_items, body, width, registry.limits)
    else:
        new = await parsed(request, bodies.new_items, width, registry.limits)
    items = await in_thread(registry.put_items, metric, new)
    return to_json({"items": len(items)})


def _check_admin(request: Request) -> None:
    identity: Identity = request.scope["identity"]
    if not identity.may("admin", request.path_params["name"]):
        raise Refused(403, "this token has no scope 'admin' here")


@router.get("/{name}/log", dependencies=[read], **given_as(PARQUET))
async def export_log(
    request: Request, name: str, after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0
) -> Response:
    """The judgements after a place in the log as Parquet, which ``metrack track`` reads."""
    registry, metric = registry_of(request), await metric_of(request)
    config = metric.config
    parts = parquet.log(registry.database, metric.number, config.kind, config.n_features, after)
    return StreamingResponse(parts, media_type=PARQUET, headers=_named(metric.name, ".parquet"))


@router.post(
    "/{name}/log",
    dependencies=[admin],
    response_model=answers.Accepted,
    openapi_extra=taken_as(PARQUET),
)
async def bring_log(request: Request, name: str) -> Response:
    """Judgements as they were exported; those whose ids are known are not learned again."""
    registry, metric = registry_of(request), await metric_of(request)
    body, config = await _file(request, PARQUET), metric.config
    batch = await run_in_threadpool(
        parquet.judgements_of, body, config.kind, config.n_features, registry.limits
    )
    receipt = await run_in_threadpool(lambda: registry.append(metric, batch).result())
    return to_json(receipt._asdict())


@router.delete("/{name}/log", dependencies=[admin], response_model=answers.LogCut)
async def cut_log(
    request: Request, name: str, upto: Annotated[int, Query(ge=0, lt=1 << 62)]
) -> Response:
    """Cut off the log's oldest judgements, of those that were learned; ids stay known."""
    metric = await metric_of(request)
    if upto > metric.sequence:
        raise Refused(
            422, f"upto={upto}, but the log ends at {metric.sequence}; nothing was cut off"
        )
    last = await run_in_threadpool(registry_of(request).cut, metric, upto)
    return to_json({"log_starts": last + 1})


@router.post(
    "/{name}/replay",
    dependencies=[admin],
    response_model=answers.Replayed,
    openapi_extra=taken(schemas.ReplayBody),
)
async def replay(request: Request, name: str) -> Response:
    """Learn another metric's log, with this one's settings."""
    asked = await asked_for(request, schemas.ReplayBody)
    registry, metric = registry_of(request), await metric_of(request)
    identity: Identity = request.scope["identity"]
    if not identity.may("read", asked.source):
        raise Refused(403, "this token may not read that metric")
    source = await metric_of(request, asked.source)
    return to_json({"sequence": await run_in_threadpool(registry.replay, source, metric)})
