"""The service as it describes itself: requests made from its own OpenAPI page, answers as it says.

Every second request or so is wrong on purpose. Events are left out, whose answers never end.
"""

import os

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from metrack import Client
from tests.serve.servers import judged

N_REQUESTS = int(os.environ.get("METRACK_REQUESTS", "3000"))  # of all routes together
N_ROUTES = 30
CHECKED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
KINDS = {"pairs": "MetricTracker", "triplets": "OASIS", "classes": "DriftKNN"}


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


@pytest.fixture(scope="module")
def described(filled):
    found = schemathesis.openapi.from_url(f"{filled.url}/openapi.json")
    return found.exclude(path_regex="events$")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=N_REQUESTS // N_ROUTES, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_answers_are_as_described(case):
    if "name" in (case.path_parameters or {}):
        # One that is there, but for what would delete it.
        made = {"DELETE": "gone", "PUT": "made"} if case.path.endswith("{name}") else {}
        known = list(KINDS)[hash(str(case.body)) % len(KINDS)]
        case.path_parameters["name"] = made.get(case.method, known)
    case.call_and_validate(checks=CHECKED)
