"""The routes under /v1: thin; what they do is in the other files."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from metrack.checks import Floats
from metrack.serve import bodies, log, schemas
from metrack.serve import items as item_rows
from metrack.serve.asking import (
    LONGEST,
    admin,
    asked_for,
    computed,
    in_thread,
    metric_of,
    parsed,
    read,
    registry_of,
    snapshot_of,
    taken,
    to_json,
    wants_arrow,
    with_items,
    write,
)
from metrack.serve.auth import Identity
from metrack.serve.learning import Config
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.neighbours import Embedded
from metrack.serve.registry import Registry
from metrack.serve.snapshots import Snapshot

HEARTBEAT = 15.0  # seconds without an event
MOST_SHOWN = 1000  # items of a picture

Refusals = dict[int | str, dict[str, Any]]
REFUSALS: Refusals = {
    status: {"model": schemas.Problem, "description": text}
    for status, text in {
        400: "not readable",
        401: "no token, or an unknown one",
        403: "not with this token",
        404: "no such metric",
        408: "not learned in time",
        409: "not as things are",
        413: "too much",
        415: "neither JSON nor Arrow",
        422: "wrong",
        429: "too much waits; see Retry-After",
        503: "not now; see Retry-After",
    }.items()
}


router = APIRouter(prefix="/v1/metrics", responses=REFUSALS)


@router.get("", dependencies=[read], response_model=schemas.AllDescribed)
async def list_metrics(request: Request) -> Response:
    """All metrics, and where they stand."""
    identity: Identity = request.scope["identity"]
    found = [
        metric.described()
        for name, metric in sorted(registry_of(request).metrics.items())
        if identity.may("read", name)
    ]
    return to_json({"metrics": found})


@router.put(
    "/{name}",
    dependencies=[admin],
    response_model=schemas.Described,
    openapi_extra=taken(schemas.MetricBody),
)
async def put_metric(request: Request, name: str) -> Response:
    """Make a metric; one that has no judgements yet may be changed."""
    asked = await asked_for(request, schemas.MetricBody)
    config = Config(asked.n_features, asked.estimator, asked.settings, asked.features)
    metric, new = await in_thread(registry_of(request).make, name, config)
    return to_json(metric.described(), 201 if new else 200)


@router.get("/{name}", dependencies=[read], response_model=schemas.Described)
async def get_metric(
    request: Request,
    name: str,
    min_sequence: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    timeout: Annotated[float, Query(ge=0.0, le=60.0)] = 5.0,
) -> Response:
    """Where a metric stands; waits until a judgement was learned, if asked to."""
    metric = await metric_of(request)
    await snapshot_of(request, metric)
    if min_sequence:
        await _learned(metric, min_sequence, timeout)
    return to_json(metric.described())


async def _learned(metric: Metric, sequence: int, timeout: float) -> None:
    """Wait for a snapshot with so much behind it; refuse where there will be none in time."""
    end = time.monotonic() + timeout
    while metric.version < sequence:
        left = end - time.monotonic()
        if metric.deleted:
            raise Refused(404, f"{metric.name!r} was deleted")
        if metric.error:
            raise Refused(409, f"learning has stopped: {metric.error}")
        if left <= 0.0:
            raise Refused(
                408,
                f"judgement {sequence} was not learned in {timeout:g} seconds: {metric.version} "
                f"are, of {metric.sequence} in the log; ask again, or wait longer",
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(metric.published.wait(), left)


@router.delete("/{name}", dependencies=[admin], status_code=204)
async def delete_metric(request: Request, name: str) -> Response:
    """Delete a metric, its log, items and states."""
    await in_thread(registry_of(request).delete, await metric_of(request))
    return Response(status_code=204)


@router.post(
    "/{name}/feedback",
    dependencies=[write],
    response_model=schemas.Accepted,
    openapi_extra=taken(schemas.FeedbackBody, arrow=True),
)
async def feedback(request: Request, name: str) -> Response:
    """Judgements: on the disk when this is answered, learned soon after."""
    registry, metric = registry_of(request), await metric_of(request)
    known = await with_items(request, metric)
    width = metric.config.n_features
    batch = await parsed(request, bodies.feedback, known, width, registry.limits)
    receipt = await asyncio.wait_for(asyncio.wrap_future(registry.append(metric, batch)), LONGEST)
    return to_json(receipt._asdict())


@router.put(
    "/{name}/items",
    dependencies=[write],
    response_model=schemas.ItemsPut,
    openapi_extra=taken(schemas.ItemsBody, arrow=True),
)
async def put_items(request: Request, name: str) -> Response:
    """Items, which judgements and questions may name by their ids."""
    registry, metric = registry_of(request), await metric_of(request)
    width = metric.config.n_features
    new = await parsed(request, bodies.new_items, width, registry.limits)
    items = await in_thread(registry.put_items, metric, new)
    return to_json({"items": len(items)})


@router.post(
    "/{name}/distance",
    dependencies=[read],
    response_model=schemas.Distances,
    openapi_extra=taken(schemas.PairsBody, arrow=True),
)
async def distance(request: Request, name: str) -> Response:
    """Learned distances of pairs, which are alike, and how likely; Arrow if Accept says so."""
    registry, metric = registry_of(request), await metric_of(request)
    known, snapshot = await with_items(request, metric), await snapshot_of(request, metric)
    width = snapshot.metric.n_features_in_
    pairs = await parsed(request, bodies.pairs, known, width, registry.limits)
    found: Floats = await computed(snapshot.metric.pair_distance, pairs)
    said = {"threshold": snapshot.threshold, "version": snapshot.version}
    told = {"distances": found, "alike": found <= snapshot.threshold}
    if snapshot.likelihood is not None:
        told["probabilities"] = snapshot.likelihood(found**2)
    if wants_arrow(request):
        return Response(bodies.to_arrow(told, said), media_type=bodies.ARROW)
    plain = {name: values.tolist() for name, values in told.items()}
    return to_json({"probabilities": None, **plain, **said})


@router.post(
    "/{name}/transform",
    dependencies=[read],
    response_model=schemas.Embedded,
    openapi_extra=taken(schemas.PointsBody, arrow=True),
)
async def transform(request: Request, name: str) -> Response:
    """Points where Euclidean distance is the learned one; Arrow if Accept says so."""
    registry, metric = registry_of(request), await metric_of(request)
    known, snapshot = await with_items(request, metric), await snapshot_of(request, metric)
    width = snapshot.metric.n_features_in_
    points = await parsed(request, bodies.points, known, width, registry.limits)
    found: Floats = await computed(snapshot.embedding.transform, points)
    if wants_arrow(request):
        data = bodies.to_arrow({"vectors": found}, {"version": snapshot.version})
        return Response(data, media_type=bodies.ARROW)
    return to_json({"vectors": found.tolist(), "version": snapshot.version})


@router.post(
    "/{name}/neighbours",
    dependencies=[read],
    response_model=schemas.NeighboursFound,
    openapi_extra=taken(schemas.NeighboursBody),
)
async def neighbours(request: Request, name: str) -> Response:
    """Nearest items of an item, which is left out, or of a point."""
    asked = await asked_for(request, schemas.NeighboursBody)
    metric = await metric_of(request)
    snapshot = await snapshot_of(request, metric)
    return to_json(await in_thread(_nearest, registry_of(request), metric, snapshot, asked))


def _nearest(
    registry: Registry, metric: Metric, snapshot: Snapshot, asked: schemas.NeighboursBody
) -> dict[str, Any]:
    items = registry.items_of(metric)
    if not len(items):
        raise Refused(409, f"{metric.name!r} has no items; put some to …/items first")
    if (asked.id is None) == (asked.vector is None):
        raise Refused(422, "give an id or a vector, and not both")
    if asked.id is not None:
        point = items.points[items.find([asked.id])[0]]
    else:
        point = bodies.checked([asked.vector], items.points.shape[1])[0]
    if asked.at == "now":
        components, version = snapshot.neighbours.components_, snapshot.version
        embedded = metric.neighbours.current(items, components, version)
    elif snapshot.before is not None:
        embedded = Embedded(items, snapshot.before.components, snapshot.before.pairs, indexed=False)
    else:
        raise Refused(409, "no change was noticed so far")
    found = embedded.nearest(point, asked.k + (asked.id is not None))
    pairs = [(i, d) for i, d in zip(found.ids, found.distances, strict=True) if i != asked.id]
    listed = [{"id": i, "distance": d} for i, d in pairs[: asked.k]]
    return {"neighbours": listed, "version": found.version}


@router.post(
    "/{name}/suggest",
    dependencies=[read],
    response_model=schemas.Suggestions,
    openapi_extra=taken(schemas.SuggestBody),
)
async def suggest(request: Request, name: str) -> Response:
    """Pairs of items to judge next; none that this judge has answered lately."""
    asked = await asked_for(request, schemas.SuggestBody)
    registry, metric = registry_of(request), await metric_of(request)
    return to_json(await in_thread(_suggested, registry, metric, asked))


def _suggested(registry: Registry, metric: Metric, asked: schemas.SuggestBody) -> dict[str, Any]:
    done: set[frozenset[str]] = set()
    if asked.judge is not None:
        with registry.database.reading() as connection:
            done = log.judged(connection, metric.number, asked.judge)
    pairs, version = registry.suggest(metric, asked.n + min(len(done), 1000), asked.seed)
    fresh = [pair for pair in pairs if frozenset(pair) not in done][: asked.n]
    keys = [key for pair in fresh for key in pair]
    with registry.database.reading() as connection:
        shown = item_rows.shown(connection, metric.number, keys)
    items = registry.items_of(metric)

    def face(key: str) -> dict[str, Any]:
        text, image = shown[key]
        vector = items.points[items.rows[key]].tolist()
        return {"id": key, "text": text, "image": image, "vector": vector}

    return {"pairs": [{"a": face(a), "b": face(b)} for a, b in fresh], "version": version}


@router.get("/{name}/embedding", dependencies=[read], response_model=schemas.Picture)
async def embedding(
    request: Request, name: str, n: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = 500
) -> Response:
    """Some items in the plane, as the page shows them."""
    registry, metric = registry_of(request), await metric_of(request)
    snapshot = await snapshot_of(request, metric)

    def take() -> dict[str, Any]:
        items = registry.items_of(metric)
        ids, points = metric.picture.take(items, snapshot.neighbours.components_, n)
        return {"ids": ids, "points": points.tolist(), "version": snapshot.version}

    return to_json(await in_thread(take))


@router.get("/{name}/course", dependencies=[read])
async def course(request: Request, name: str) -> Response:
    """How learning went: losses, trust in experts, changes, features' shares."""
    snapshot = await snapshot_of(request, await metric_of(request))
    return to_json({**snapshot.course, "version": snapshot.version})


@router.get("/{name}/judges", dependencies=[read], response_model=schemas.Judges)
async def judges(request: Request, name: str) -> Response:
    """How much each judge has answered."""
    registry, metric = registry_of(request), await metric_of(request)

    def count() -> list[tuple[str, int, int, int]]:
        with registry.database.reading() as connection:
            return log.judges(connection, metric.number)

    found = await in_thread(count)
    names = ("judge", "alike", "not_alike", "unsure")
    return to_json({"judges": [dict(zip(names, each, strict=True)) for each in found]})


@router.get("/{name}/export", dependencies=[read])
async def export(request: Request, name: str) -> Response:
    """The state as a zip, which ``metrack.load`` reads."""
    metric = await metric_of(request)
    data = await in_thread(registry_of(request).export, metric)
    named = {"content-disposition": f'attachment; filename="{metric.name}.zip"'}
    return Response(data, media_type="application/zip", headers=named)


@router.get("/{name}/log", dependencies=[read])
async def export_log(
    request: Request, name: str, after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0
) -> Response:
    """The judgements after a place in the log as Parquet, which ``metrack track`` reads."""
    registry, metric = registry_of(request), await metric_of(request)
    named = {"content-disposition": f'attachment; filename="{metric.name}.parquet"'}
    parts = log.parquet(registry.database, metric.number, metric.config.n_features, after)
    return StreamingResponse(parts, media_type="application/vnd.apache.parquet", headers=named)


@router.delete("/{name}/log", dependencies=[admin], response_model=schemas.LogCut)
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
    response_model=schemas.Replayed,
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


@router.get("/{name}/events", dependencies=[read])
async def events(request: Request, name: str) -> Response:
    """Server-sent events: ``progress``, where the metric stands; ``change``, noticed."""
    metric, state = await metric_of(request), request.app.state
    await snapshot_of(request, metric)
    if state.streams >= registry_of(request).limits.streams:
        raise Refused(429, "too many streams of events are open", retry_after=10)
    return StreamingResponse(_events(metric, state), media_type="text/event-stream")


async def _events(metric: Metric, state: Any) -> AsyncIterator[str]:
    state.streams += 1
    try:
        changed = metric.described()["last_change"]
        while not metric.deleted:
            published, now = metric.published, metric.described()
            yield _event("progress", now)
            if now["last_change"] != changed:
                changed = now["last_change"]
                yield _event("change", {"pair": changed})
            await asyncio.sleep(0.2)  # no page needs more
            while not published.is_set() and metric.published is published:
                try:
                    await asyncio.wait_for(published.wait(), HEARTBEAT)
                except TimeoutError:
                    yield ": still here\n\n"
    finally:
        state.streams -= 1


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
