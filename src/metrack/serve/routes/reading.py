"""What a metric says: distances, probabilities, embeddings, neighbours."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from metrack.estimators.bases.linear import StaticEmbedding
from metrack.serve import answers, bodies, schemas
from metrack.serve import items as item_rows
from metrack.serve.arrow import to_arrow
from metrack.serve.asking import (
    asked_for,
    computed,
    given_as,
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
)
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.neighbours import Embedded
from metrack.serve.registry import Registry
from metrack.serve.snapshots import Snapshot

MOST_SHOWN = 1000  # items of a picture
OR_ARROW: dict[int | str, dict[str, Any]] = given_as(bodies.ARROW)["responses"]

router = APIRouter()


@router.post(
    "/{name}/distance",
    dependencies=[read],
    response_model=answers.Distances,
    responses=OR_ARROW,
    openapi_extra=taken(schemas.PairsBody, arrow=True),
)
async def distance(request: Request, name: str) -> Response:
    """Learned distances of pairs, which are alike, and how likely; Arrow if Accept says so."""
    registry, metric = registry_of(request), await metric_of(request)
    known, snapshot = await with_items(request, metric), await snapshot_of(request, metric)
    reading = snapshot.reading
    width = reading.metric.n_features_in_
    pairs = await parsed(request, bodies.pairs, known, width, registry.limits)
    found = await computed(reading.metric.pair_distance, pairs)
    said = {"threshold": reading.threshold, "version": snapshot.version}
    told: dict[str, Any] = {"distances": found}
    if reading.threshold is not None:
        told["alike"] = found <= reading.threshold
    if reading.likelihood is not None:
        told["probabilities"] = reading.likelihood(found**2)
    if wants_arrow(request):
        return Response(to_arrow(told, said), media_type=bodies.ARROW)
    plain = {name: values.tolist() for name, values in told.items()}
    return to_json({"alike": None, "probabilities": None, **plain, **said})


@router.post(
    "/{name}/probability",
    dependencies=[read],
    response_model=answers.Probabilities,
    openapi_extra=taken(schemas.ProbabilityBody, arrow=True),
)
async def probability(request: Request, name: str) -> Response:
    """How likely pairs are alike; or, of a metric that predicts classes, points of each class."""
    registry, metric = registry_of(request), await metric_of(request)
    known, snapshot = await with_items(request, metric), await snapshot_of(request, metric)
    reading, said = snapshot.reading, {"version": snapshot.version}
    width, limits = reading.metric.n_features_in_, registry.limits
    if reading.classes is not None:
        points = await parsed(request, bodies.points, known, width, limits)
        classes = list(reading.classes.labels())
        if not classes:
            raise Refused(409, f"{metric.name!r} knows no class yet; send points with labels")
        shares = await computed(reading.classes.shares, points)
        predicted = [classes[i] for i in np.argmax(shares, axis=1)]
        told = {"probabilities": shares.tolist(), "classes": classes, "predicted": predicted}
        return to_json({**told, **said})
    if reading.likelihood is None:
        raise Refused(409, f"{metric.name!r} has a learner that tells no probabilities")
    pairs = await parsed(request, bodies.pairs, known, width, limits)
    found = reading.likelihood(await computed(reading.metric.pair_distance, pairs) ** 2)
    return to_json({"probabilities": found.tolist(), "classes": None, "predicted": None, **said})


@router.post(
    "/{name}/transform",
    dependencies=[read],
    response_model=answers.Embedded,
    responses=OR_ARROW,
    openapi_extra=taken(schemas.PointsBody, arrow=True),
)
async def transform(request: Request, name: str) -> Response:
    """Points where Euclidean distance is the learned one; Arrow if Accept says so."""
    registry, metric = registry_of(request), await metric_of(request)
    known, snapshot = await with_items(request, metric), await snapshot_of(request, metric)
    reading = snapshot.reading
    width = reading.metric.n_features_in_
    points = await parsed(request, bodies.points, known, width, registry.limits)
    found = await computed(reading.embedding.transform, points)
    if wants_arrow(request):
        data = to_arrow({"vectors": found}, {"version": snapshot.version})
        return Response(data, media_type=bodies.ARROW)
    return to_json({"vectors": found.tolist(), "version": snapshot.version})


@router.post(
    "/{name}/neighbours",
    dependencies=[read],
    response_model=answers.NeighboursFound,
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
        embedding, version = snapshot.reading.neighbours, snapshot.version
        embedded = metric.neighbours.current(items, embedding, version)
    elif snapshot.before is not None:
        before = StaticEmbedding(snapshot.before.components)
        embedded = Embedded(items, before, snapshot.before.pairs, indexed=False)
    else:
        raise Refused(409, "no change was noticed so far")
    found = embedded.nearest(point, asked.k + (asked.id is not None))
    pairs = [(i, d) for i, d in zip(found.ids, found.distances, strict=True) if i != asked.id]
    listed: list[dict[str, Any]] = [{"id": i, "distance": d} for i, d in pairs[: asked.k]]
    if not asked.shown:
        return {"neighbours": listed, "version": found.version}
    own = [] if asked.id is None else [asked.id]
    with registry.database.reading() as connection:
        shown = item_rows.shown(connection, metric.number, [*own, *(e["id"] for e in listed)])
    return {
        "neighbours": [each | shown[each["id"]]._asdict() for each in listed],
        "of": {"id": asked.id, **shown[asked.id]._asdict()} if asked.id is not None else None,
        "version": found.version,
    }


@router.get("/{name}/embedding", dependencies=[read], response_model=answers.Picture)
async def embedding(
    request: Request, name: str, n: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = 500
) -> Response:
    """Some items in the plane, as the page shows them: now, and before the last change."""
    registry, metric = registry_of(request), await metric_of(request)
    snapshot = await snapshot_of(request, metric)

    def take() -> dict[str, Any]:
        items = registry.items_of(metric)
        ids, points = metric.picture.take(items, snapshot.reading.neighbours, n)
        before = None
        if snapshot.before is not None:
            then = StaticEmbedding(snapshot.before.components)
            before = metric.picture.beside(items, then, n, points).tolist()
        told = {"ids": ids, "points": points.tolist(), "before": before}
        return {**told, "version": snapshot.version}

    return to_json(await in_thread(take))
