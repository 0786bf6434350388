"""All routes under /v1/metrics, and how they refuse."""

from typing import Any

from fastapi import APIRouter

from metrack.serve import answers
from metrack.serve.routes import files, judging, metrics, reading, watching

Refusals = dict[int | str, dict[str, Any]]
REFUSALS: Refusals = {
    status: {"model": answers.Problem, "description": text}
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


PREFIX = "/v1/metrics"
router = APIRouter(responses=REFUSALS)
for each in (metrics, reading, judging, files, watching):
    router.include_router(each.router, prefix=PREFIX)
