"""How learning goes, for those who watch."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from metrack.serve.asking import given_as, metric_of, read, registry_of, snapshot_of, to_json
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric

HEARTBEAT = 15.0  # seconds without an event

router = APIRouter()


@router.get("/{name}/course", dependencies=[read])
async def course(request: Request, name: str) -> Response:
    """How learning went: losses, trust in experts, changes, features' shares."""
    snapshot = await snapshot_of(request, await metric_of(request))
    return to_json({**snapshot.course, "version": snapshot.version})


@router.get("/{name}/events", dependencies=[read], **given_as("text/event-stream"))
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
