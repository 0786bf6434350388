"""Requests that are wrong in every way: no error of the server, and no harm to what it knows."""

import http.client
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metrack import Client
from metrack.estimators.states.persistence import pack
from metrack.storage import to_bytes
from tests.serve.servers import judged
from tests.serve.test_api import ARROW, arrow, lists, quiet
from tests.serve.test_crash import content_of, exported

N_REQUESTS = 10_000
PARQUET = "application/vnd.apache.parquet"
METHODS = ["GET", "PUT", "POST", "PATCH", "HEAD", "OPTIONS", "TRACE"]  # a DELETE would be right
HEADERS = ["accept", "cookie", "authorization", "range", "accept-encoding"]
VALUES = ["-1", "1e9", "NaN", "", "x", "9" * 30, "%00", "inf"]
ODD = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 1e308, -1e-320, 0.5),
    *("", "a", "\x00", "\ud800", "ü" * 300, "x" * 5000, "NaN", "1", "../../etc/passwd", "'; --"),
    *([], {}, [[]], [None], {"": ""}, [[[[[[]]]]]], [1] * 3, ["a"] * 3),
]
PATHS = ["%00", "..", "%2e%2e%2f", "m%2F..", "a" * 3000, "%ff", "*", "{name}", "m\u00fc"]


class File(bytes):
    """A body that is a file, of a kind."""

    kind = ARROW

    def of(self, kind):
        self.kind = kind
        return self


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return File(sink.getvalue().to_pybytes()).of(PARQUET)


def zipped_state():
    pairs, y = judged(20)
    return File(to_bytes(pack(quiet(pairs, y)))).of("application/zip")


def log_table(pairs, y):
    """As the log is exported."""
    names = [f"{side}_{i + 1}" for side in "xz" for i in range(3)]
    columns = dict(zip(names, pairs.reshape(len(pairs), 6).T, strict=True))
    return pa.table({"y": y, "id": [f"brought-{i}" for i in range(len(y))], **columns})


def examples():
    """A right request for each route: method, path, body."""
    pairs, y = judged(3)
    listed = [{"x": x, "z": z, "y": int(t)} for (x, z), t in zip(pairs.tolist(), y, strict=True)]
    unjudged = [{"x": pair["x"], "z": pair["z"]} for pair in listed]
    table = pa.table({"x": lists(pairs[:, 0]), "z": lists(pairs[:, 1]), "y": y})
    named = {"pairs": [{"a": "i1", "b": "i2", "y": 1, "id": "k", "judge": "ann"}]}
    items = {"ids": ["i1", "i2"], "vectors": [[1, 2, 3], [4, 5, 6]], "texts": ["a", None]}
    one, other = "/v1/metrics/m", "/v1/metrics/judged"
    vectors, faces = lists(pairs[:2, 0]), {"texts": ["a", None], "records": ['{"a": 1}', None]}
    about = {"question": "Alike?", "instructions": "Look.", "shared": 0.5}
    told = {"n_features": 3, "features": ["a", "b", "c"], **about}
    return [
        ("GET", "/v1/metrics", None),
        (
            "PUT",
            "/v1/metrics/new",
            {"n_features": 3, "estimator": "COMID", "settings": {"rho": 0.1}},
        ),
        ("DELETE", "/v1/metrics/new", None),
        ("GET", f"{one}?min_sequence=1&timeout=0", None),
        ("POST", f"{one}/feedback", {"pairs": listed}),
        ("POST", f"{one}/feedback", named),
        ("POST", f"{one}/feedback", File(arrow(table))),
        ("PUT", f"{one}/items", items),
        (
            "PUT",
            f"{one}/items",
            File(arrow(pa.table({"ids": ["i3"], "vectors": lists(pairs[:1, 0])}))),
        ),
        ("POST", f"{one}/distance", {"pairs": unjudged}),
        ("POST", f"{one}/distance", File(arrow(table.select(["x", "z"])))),
        ("POST", f"{one}/transform", {"vectors": [[1, 2, 3]]}),
        ("POST", f"{one}/transform", {"ids": ["i1"]}),
        ("POST", f"{one}/neighbours", {"id": "i1", "k": 2, "at": "now"}),
        ("POST", f"{one}/neighbours", {"vector": [1, 2, 3]}),
        ("POST", f"{one}/suggest", {"n": 1, "judge": "ann", "seed": 3}),
        ("GET", f"{one}/embedding?n=10", None),
        ("GET", f"{one}/course", None),
        ("GET", f"{one}/judges", None),
        ("GET", f"{one}/log?after=0", None),
        ("DELETE", f"{one}/log?upto=0", None),
        ("POST", "/v1/metrics/new/replay", {"source": "m"}),
        ("PUT", other, told),
        ("GET", f"{other}/answers?judge=ann", None),
        ("GET", f"{other}/answers?before=100", None),
        ("GET", f"{other}/answers?n=3", None),
        ("GET", f"{other}/disagreements?n=2", None),
        ("GET", f"{other}/judges", None),
        ("GET", f"{other}/progress", None),
        ("GET", f"{other}/embedding?n=5", None),
        ("GET", f"{other}/export", None),
        ("GET", f"{other}/items", None),
        ("GET", f"{other}/log", None),
        ("POST", f"{other}/suggest", {"n": 3, "judge": "bob"}),
        ("POST", f"{other}/corrections", {"sequence": 1, "y": -1, "judge": "ann", "id": "c1"}),
        ("POST", f"{other}/neighbours", {"id": "i1", "k": 2, "at": "now", "shown": True}),
        ("POST", f"{other}/probability", {"pairs": unjudged}),
        ("POST", f"{other}/probability", File(arrow(table.select(["x", "z"])))),
        ("PUT", f"{other}/items", {**items, "records": [{"a": 1, "b": "c"}, None]}),
        ("PUT", f"{other}/items", parquet(pa.table({**items, **faces, "vectors": vectors}))),
        ("POST", f"{other}/log", parquet(log_table(pairs, y))),
        ("PUT", "/v1/metrics/brought/state", zipped_state()),
        ("DELETE", "/v1/metrics/brought", None),
        ("POST", "/v1/metrics/classes/feedback", {"points": [{"x": [1, 2, 3], "label": "a"}]}),
        ("POST", "/v1/metrics/classes/probability", {"vectors": [[1, 2, 3]]}),
        ("POST", "/v1/metrics/classes/distance", {"pairs": unjudged}),
        (
            "POST",
            "/v1/metrics/triplets/feedback",
            {"triplets": [{"anchor": [1, 2, 3], "near": [1, 2, 4], "far": [3, 2, 1], "id": "t"}]},
        ),
        ("GET", "/metrics", None),
        ("GET", "/openapi.json", None),
        ("GET", "/", None),
        ("GET", "/m/judged", None),
        ("GET", "/m/m/judge", None),
        ("GET", "/static/style.css", None),
        ("POST", "/login", File(b"token=abc")),
    ]


def places(tree, path=()):
    """Where the values of a JSON document are."""
    yield path
    inside = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in inside:
        yield from places(value, (*path, key))


def mutated_tree(tree, chance):
    """A document of which one value is another, gone, doubled or renamed."""
    tree = json.loads(json.dumps(tree))
    path = chance.choice(list(places(tree)))
    if not path:
        return chance.choice(ODD)
    holder = tree
    for key in path[:-1]:
        holder = holder[key]
    what, key = chance.randrange(5), path[-1]
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder += holder
    elif what == 2 and isinstance(holder, dict):
        holder[str(chance.choice(ODD))] = holder.pop(key)
    else:
        holder[key] = chance.choice(ODD)
    return tree


def mutated_bytes(data, chance):
    """Bytes of which some are changed, missing, or there twice."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at, what = chance.randrange(len(data)), chance.randrange(4)
        if what == 0:
            data[at] = chance.randrange(256)
        elif what == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 2:
            del data[at : at + chance.randint(1, 40)]
        else:
            data[at:at] = data[at : at + chance.randint(1, 40)]
    return bytes(data)


def mutated_path(path, chance):
    before, _, query = path.partition("?")
    parts = before.split("/")
    if query and chance.random() < 0.5:
        key = query.partition("=")[0]
        return (
            f"{before}?{key}={chance.choice(['-1', '1e9', 'NaN', '', 'x', '9' * 30, '%00', 'inf'])}"
        )
    parts[chance.randrange(1, len(parts))] = chance.choice(PATHS)
    return "/".join(parts).encode().decode("latin-1")


def mutated(example, chance):
    """A request that is wrong somewhere; once in a while it is right."""
    method, path, body = example
    headers = {"content-type": body.kind if isinstance(body, File) else "application/json"}
    what = chance.randrange(10)
    if what == 0:
        method = chance.choice(METHODS)
    elif what == 1:
        path = mutated_path(path, chance)
    elif what == 2:
        kinds = ["", "text/plain", "application/json; charset=x", ARROW, PARQUET, "\xff"]
        headers["content-type"] = chance.choice(kinds)
    elif what == 3:
        name = chance.choice(HEADERS)
        headers[name] = chance.choice(
            ["\xff\xfe", "*/*;q=9", ARROW, "a=b; c", "Bearer x", "x" * 4000]
        )
    if body is None:
        return method, path, None, headers
    if what < 7 and not isinstance(body, bytes):
        body = json.dumps(mutated_tree(body, chance))
        body = body.encode("utf-8", "surrogatepass")
    elif what < 9:
        body = mutated_bytes(body if isinstance(body, bytes) else json.dumps(body).encode(), chance)
    else:
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return method, path, body, headers


class Asker:
    """One connection, made anew when the server closes it."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def status(self, method, path, body, headers):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.connection.connect()
        try:
            # Not by `request`, which refuses what is no good; and the length must be right, or
            # the next request would be taken for the rest of this one.
            self.connection.putrequest(method, quoted(path), skip_accept_encoding=True)
            for name, value in headers.items():
                self.connection.putheader(name, value.encode("latin-1"))
            self.connection.putheader("content-length", str(len(body or b"")))
            self.connection.endheaders(body or None)
            answer = self.connection.getresponse()
            answer.read()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            self.connection = None
            return None  # it was no HTTP
        if answer.will_close:
            self.connection = None
        return answer.status


def quoted(path):
    return "".join(c if "!" <= c <= "~" else "".join(f"%{b:02x}" for b in c.encode()) for c in path)


def test_mutated_requests_do_no_harm(spawner, tmp_path):
    """None is answered by a 5xx, and the metric that all can reach learns as if it were alone."""
    limits = {"metrics": 20, "features": 50, "memory": 1 << 28, "pairs": 500}
    server = spawner.start(tmp_path / "data", limits=limits).wait()
    pairs, y = judged(600)
    with Client(server.url) as client:
        for name in ("m", "kept"):
            client.create(name, 3)
        client.create("judged", 3)
        client.create("classes", 3, estimator="DriftKNN")
        client.create("triplets", 3, estimator="OASIS")
        for name in ("m", "judged"):
            client.put_items(name, ["i1", "i2"], [[1, 2, 3], [4, 5, 6]])
        for who in ("ann", "bob"):
            client.feedback("judged", [("i1", "i2")], [1], judge=who)
        client.feedback("kept", pairs[:300], y[:300])
    chance, asker, known = random.Random(0), Asker(server.port), examples()
    seen = {}
    for _ in range(N_REQUESTS):
        request = mutated(chance.choice(known), chance)
        status = asker.status(*request)
        assert status is None or status < 500, (request, server.log.read_text()[-3000:])
        seen[status] = seen.get(status, 0) + 1
    assert min(seen.get(status, 0) for status in (200, 400, 404, 405, 415, 422)) > 20, seen
    assert sum(n for status, n in seen.items() if status is None) < N_REQUESTS // 50, seen
    assert "Traceback" not in server.log.read_text()
    with Client(server.url) as client:
        receipt = client.feedback("kept", pairs[300:], y[300:])
        client.describe("kept", min_sequence=receipt.sequence, timeout=60)
        expected = quiet(pairs, y).pair_distance(pairs[:500])
        np.testing.assert_array_equal(client.distance("kept", pairs[:500]), expected)
        sequence = client.describe("m")["sequence"]
        described = client.describe("m", min_sequence=sequence, timeout=60)
        assert described["version"] == sequence > 0
        assert described["error"] is None
    check_like_a_quiet_run(server, tmp_path)
    server.end()


def check_like_a_quiet_run(server, tmp_path):
    zipped, log = exported(server, tmp_path)
    points = np.stack(
        [np.stack([log[f"{s}_{i + 1}"] for i in range(3)], axis=1) for s in "xz"], axis=1
    )
    tracker = quiet(points, log["y"].astype(int))
    tracker.save(tmp_path / "quiet")
    content, arrays = content_of(zipped)
    alone, own = content_of(tmp_path / "quiet")
    assert content["learner"] == alone["learner"]
    assert {name: arrays[name] for name in own} == own
