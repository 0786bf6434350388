"""Pairs to judge, and what judges have said."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from metrack.serve import answers, bodies, log, schemas
from metrack.serve import items as item_rows
from metrack.serve import judging as said
from metrack.serve.asking import (
    asked_for,
    in_thread,
    metric_of,
    read,
    registry_of,
    taken,
    to_json,
    write,
)
from metrack.serve.databases.database import Connection
from metrack.serve.items import Items
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.registry import Registry

router = APIRouter()


@router.post(
    "/{name}/suggest",
    dependencies=[read],
    response_model=answers.Suggestions,
    openapi_extra=taken(schemas.SuggestBody),
)
async def suggest(request: Request, name: str) -> Response:
    """Pairs of items to judge next, none that this judge has answered; and whether to go on."""
    asked = await asked_for(request, schemas.SuggestBody)
    registry, metric = registry_of(request), await metric_of(request)
    return to_json(await in_thread(_suggested, registry, metric, asked))


def _suggested(registry: Registry, metric: Metric, asked: schemas.SuggestBody) -> dict[str, Any]:
    questions, items = registry.questions(metric), registry.items_of(metric)
    done: set[frozenset[str]] = set()
    others: list[tuple[str, str]] = []
    if asked.judge is not None:
        with registry.database.reading() as connection:
            done = log.judged(connection, metric.number, asked.judge)
            others = said.shared(connection, metric.number, asked.judge)
    with questions.lock:
        new, progress = questions.next(asked.n, done), questions.progress()
    there = [p for p in others if frozenset(p) not in done and set(p) <= items.rows.keys()]
    mixed = _with_shared(new, there, metric.about.shared, asked.n, asked.seed)
    with registry.database.reading() as connection:
        shown = _faces(connection, items, metric, [key for pair in mixed for key in pair])
    pairs = [{"a": shown[a], "b": shown[b]} for a, b in mixed]
    return {"pairs": pairs, "progress": progress._asdict(), "version": metric.version}


def _with_shared(
    new: list[tuple[str, str]],
    others: list[tuple[str, str]],
    share: float,
    n_pairs: int,
    seed: int | None,
) -> list[tuple[str, str]]:
    """Some pairs that others have answered, in the place of new ones and where these are few."""
    rng = np.random.default_rng(seed)
    known = [others[i] for i in rng.permutation(len(others))]
    n_known = min(len(known), max(n_pairs - len(new), int(rng.binomial(n_pairs, share))))
    mixed = [*new[: n_pairs - n_known], *known[:n_known]]
    found = {frozenset(pair): pair for pair in (mixed[i] for i in rng.permutation(len(mixed)))}
    return list(found.values())


def _faces(
    connection: Connection, items: Items, metric: Metric, keys: list[str]
) -> dict[str, dict[str, Any]]:
    """Items as judges see them; of those that are gone, their ids alone."""
    shown, rows = item_rows.shown(connection, metric.number, keys), items.rows
    return {
        key: {
            "id": key,
            **face._asdict(),
            "vector": items.points[rows[key]].tolist() if key in rows else [],
        }
        for key, face in shown.items()
    }


@router.get("/{name}/progress", dependencies=[read], response_model=answers.Progress)
async def progress(request: Request, name: str) -> Response:
    """How far judging has come, and whether to stop."""
    registry, metric = registry_of(request), await metric_of(request)

    def look() -> dict[str, Any]:
        questions = registry.questions(metric)
        with questions.lock:
            return questions.progress()._asdict()

    return to_json(await in_thread(look))


@router.get("/{name}/judges", dependencies=[read], response_model=answers.Judges)
async def judges(request: Request, name: str) -> Response:
    """How much each judge has answered, and how far any two agree."""
    registry, metric = registry_of(request), await metric_of(request)

    def count() -> dict[str, Any]:
        with registry.database.reading() as connection:
            counts = log.judges(connection, metric.number)
            agreements = said.agreements(connection, metric.number)
            _, n_open = said.disagreements(connection, metric.number, 0)
        names = ("judge", "alike", "not_alike", "unsure")
        return {
            "judges": [dict(zip(names, each, strict=True)) for each in counts],
            "agreement": [each._asdict() for each in agreements],
            "disagreements": n_open,
        }

    return to_json(await in_thread(count))


@router.get("/{name}/answers", dependencies=[read], response_model=answers.Answers)
async def look_again(
    request: Request,
    name: str,
    judge: Annotated[str | None, Query(max_length=256)] = None,
    before: Annotated[int, Query(ge=1, lt=1 << 62)] = (1 << 62) - 1,
    n: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Response:
    """A judge's answers to pairs of items as they stand, the last first, to be looked at again."""
    registry, metric = registry_of(request), await metric_of(request)

    def look() -> dict[str, Any]:
        items = registry.items_of(metric)
        with registry.database.reading() as connection:
            found = said.answers(connection, metric.number, judge, before, n)
            keys = [key for each in found for key in (each.a, each.b)]
            shown = _faces(connection, items, metric, keys)
        listed = [said.described(each) | _sides(each, shown) for each in found]
        return {"answers": listed}

    return to_json(await in_thread(look))


@router.get("/{name}/disagreements", dependencies=[read], response_model=answers.Disagreements)
async def disagreements(
    request: Request, name: str, n: Annotated[int, Query(ge=1, le=100)] = 20
) -> Response:
    """Pairs of items that some call alike and others not, the last first."""
    registry, metric = registry_of(request), await metric_of(request)

    def look() -> dict[str, Any]:
        items = registry.items_of(metric)
        with registry.database.reading() as connection:
            found, n_all = said.disagreements(connection, metric.number, n)
            keys = [key for some in found for key in (some[0].a, some[0].b)]
            shown = _faces(connection, items, metric, keys)
        listed = [
            _sides(some[0], shown) | {"answers": [_short(each) for each in some]} for some in found
        ]
        return {"pairs": listed, "total": n_all}

    return to_json(await in_thread(look))


def _sides(answer: said.Answer, shown: dict[str, Any]) -> dict[str, Any]:
    return {"a": shown[answer.a], "b": shown[answer.b]}


def _short(answer: said.Answer) -> dict[str, Any]:
    found = said.described(answer)
    return {name: found[name] for name in ("sequence", "time", "judge", "y")}


@router.post(
    "/{name}/corrections",
    dependencies=[write],
    response_model=answers.Accepted,
    openapi_extra=taken(schemas.CorrectionBody),
)
async def correct(request: Request, name: str) -> Response:
    """Another answer in the place of an earlier one, which is rested on no more."""
    asked = await asked_for(request, schemas.CorrectionBody)
    registry, metric = registry_of(request), await metric_of(request)
    if metric.config.kind.example != "pairs":
        raise Refused(409, f"{metric.name!r} does not learn from pairs: nothing to correct")
    y = int(bodies.labels_of([asked.y])[0])
    receipt = await in_thread(registry.correct, metric, asked.sequence, (y, asked.judge, asked.id))
    return to_json(receipt._asdict())
