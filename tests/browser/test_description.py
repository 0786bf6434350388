"""The service as it describes itself: requests made from its own OpenAPI page, answers as it says.

Every second request or so is wrong on purpose. Events are left out, whose answers never end.
"""

import contextlib
from collections import Counter

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from metrack import Client
from tests.serve.servers import judged
from tests.serve.test_mutated import ARROW, PARQUET

N_REQUESTS = 10_000  # of all routes together; two minutes
CHECKED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
KINDS = {"pairs": "MetricTracker", "triplets": "OASIS", "classes": "DriftKNN"}


@schemathesis.serializer("application/zip", PARQUET, ARROW)
def as_it_is(context, value):
    """Files: what is made up is none, and must be refused."""
    if hasattr(value, "data"):
        return value.data
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def filled(spawner, tmp_path_factory):
    """A server with a metric of each kind, judged, and with items."""
    limits = {"metrics": 50, "features": 50, "memory": 1 << 28, "pairs": 500}
    found = spawner.start(tmp_path_factory.mktemp("described") / "data", limits=limits).wait()
    pairs, y = judged(300)
    ids = [f"i{k}" for k in range(20)]
    with Client(found.url) as client:
        for name, estimator in KINDS.items():
            client.create(name, 3, estimator=estimator)
            client.put_items(name, ids, np.random.default_rng(0).normal(size=(20, 3)))
        named = list(zip(ids[::2], ids[1::2], strict=True))
        for judge, said in (("ann", [1, -1] * 5), ("bob", [1] * 10)):
            client.feedback("pairs", named, said, judge=judge)
        client.feedback("pairs", pairs, y)
        listed = [{"x": x, "label": str(i % 3)} for i, x in enumerate(pairs[:, 0].tolist())]
        client._json("POST", "/v1/metrics/classes/feedback", {"points": listed})
    yield found
    assert "Traceback" not in found.log.read_text()
    found.end()


def in_place(case):
    """The same of a metric that is there; what makes or deletes one has a name of its own."""
    if "name" in (case.path_parameters or {}):
        made = {"DELETE": "gone", "PUT": "made"} if case.path.endswith("{name}") else {}
        known = list(KINDS)[len(str(case.body)) % len(KINDS)]
        case.path_parameters["name"] = made.get(case.method, known)
    if case.path.endswith("{name}") and case.method == "GET" and not _is_wrong(case.query):
        case.query = {**(case.query or {}), "timeout": 0}  # it would wait in vain
    return case


def _is_wrong(query):
    """Whether a number of seconds is none, which is to be refused."""
    try:
        return not 0.0 <= float((query or {}).get("timeout", 0)) <= 60.0
    except (TypeError, ValueError):
        return True


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_answers_are_as_described(filled, mode):
    schema = schemathesis.openapi.from_url(f"{filled.url}/openapi.json")
    schema = schema.exclude(path_regex="events$")
    found = [result.ok() for result in schema.get_all_operations()]
    seen = Counter()
    for operation in found:

        @settings(
            max_examples=N_REQUESTS // (2 * len(found)),
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            answer = in_place(case).call()
            seen[answer.status_code] += 1
            case.validate_response(answer, checks=CHECKED)

        with contextlib.suppress(Unsatisfiable):  # what has no parameters cannot be wrong
            ask()
    assert seen[200] > 100 if mode is GenerationMode.POSITIVE else seen[422] > 100
