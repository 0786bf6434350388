"""Metrics are made, fed, described and deleted."""

import asyncio
import time
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from metrack.serve import answers, bodies, schemas
from metrack.serve.about import About
from metrack.serve.asking import (
    LONGEST,
    admin,
    asked_for,
    in_thread,
    metric_of,
    parsed,
    read,
    registry_of,
    snapshot_of,
    taken,
    to_json,
    with_items,
    write,
)
from metrack.serve.auth import Identity
from metrack.serve.learning import Config
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric

router = APIRouter()


@router.get("", dependencies=[read], response_model=answers.AllDescribed)
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
    response_model=answers.Described,
    responses={201: {"model": answers.Described, "description": "it is new"}},
    openapi_extra=taken(schemas.MetricBody),
)
async def put_metric(request: Request, name: str) -> Response:
    """Make a metric; one that has no judgements yet may be changed."""
    asked = await asked_for(request, schemas.MetricBody)
    config = Config(asked.n_features, asked.estimator, asked.settings, asked.features)
    told = {key: getattr(asked, key) for key in About._fields}
    about = About.of(told) if any(each is not None for each in told.values()) else None
    metric, new = await in_thread(registry_of(request).make, name, config, about)
    return to_json(metric.described(), 201 if new else 200)


@router.get("/{name}", dependencies=[read], response_model=answers.Described)
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
    response_model=answers.Accepted,
    openapi_extra=taken(schemas.FeedbackBody, arrow=True),
)
async def feedback(request: Request, name: str) -> Response:
    """Judgements: on the disk when this is answered, learned soon after."""
    registry, metric = registry_of(request), await metric_of(request)
    known = await with_items(request, metric)
    config = metric.config
    batch = await parsed(
        request, bodies.feedback, known, config.kind, config.n_features, registry.limits
    )
    receipt = await asyncio.wait_for(asyncio.wrap_future(registry.append(metric, batch)), LONGEST)
    return to_json(receipt._asdict())
