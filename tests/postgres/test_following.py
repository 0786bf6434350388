"""What one process is told, all know."""

import numpy as np
import pytest

import metrack
from metrack import Client
from metrack.client import ServeError
from metrack.serve.databases import following
from metrack.serve.databases.tokens import (
    add_to_database,
    read_from_database,
    withdraw_from_database,
)
from metrack.serve.limits import Limits
from metrack.serve.registry import Registry
from tests.serve.servers import judged, open_database, url_of
from tests.serve.test_registry import CONFIG, batch_of, wait_until


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return url_of(tmp_path_factory.mktemp("following"))


@pytest.fixture(scope="module")
def servers(spawner, tmp_path_factory, url):
    folder = tmp_path_factory.mktemp("servers")
    found = [spawner.start(folder / f"{i}", database=url, learns=i == 0).wait() for i in range(3)]
    yield found
    for server in found:
        server.end()


@pytest.fixture
def clients(servers):
    return [Client(server.url, retries=0) for server in servers]


def test_feedback_to_any_is_learned_by_one_and_read_from_all(servers, clients):
    pairs, y = judged(600)
    clients[1].create("m", 3)
    for i, start in enumerate(range(0, 600, 100)):
        stretch = slice(start, start + 100)
        clients[i % 3].feedback("m", pairs[stretch], y[stretch])
    tracker = metrack.MetricTracker(random_state=0).fit(pairs, y)
    for client in clients:
        assert client.describe("m", min_sequence=600, timeout=60)["pairs"] == 600
        np.testing.assert_array_equal(
            client.distance("m", pairs[:50]), tracker.pair_distance(pairs[:50])
        )
        np.testing.assert_array_equal(
            client.transform("m", pairs[:9, 0]), tracker.transform(pairs[:9, 0])
        )
        course = client.request("GET", "/v1/metrics/m/course")
        assert course == clients[0].request("GET", "/v1/metrics/m/course")
    roles = {server.ask("GET", "/readyz").body for server in servers[1:]}
    assert roles == {b"ready reader"}
    wait_until(lambda: servers[0].ask("GET", "/readyz").body == b"ready learner")


def test_a_state_can_be_taken_from_any(servers, clients, tmp_path):
    pairs, y = judged(100)
    clients[2].create("exported", 3)
    clients[2].feedback("exported", pairs, y)
    for i, server in enumerate(servers):
        clients[i].describe("exported", min_sequence=100, timeout=60)
        file = tmp_path / f"{i}.zip"
        file.write_bytes(server.ask("GET", "/v1/metrics/exported/export").body)
        assert metrack.load(file).n_pairs_seen_ == 100


def test_ids_are_known_to_all(clients):
    pairs, y = judged(20)
    ids = [f"k{i}" for i in range(20)]
    clients[0].create("ids", 3)
    assert clients[0].feedback("ids", pairs, y, ids) == (20, 0, 20)
    assert clients[1].feedback("ids", pairs, y, ids) == (0, 20, 20)


def test_items_are_known_to_all(clients):
    clients[0].create("items", 3)
    clients[0].put_items("items", ["a", "b"], np.eye(2, 3))
    assert clients[1].feedback("items", [("a", "b")], [1]).accepted == 1
    assert clients[1].put_items("items", ["c"], np.ones((1, 3))) == 3
    wait_until(lambda: knows(clients[0], "items", "c"))
    clients[1].put_items("items", ["c"], np.zeros((1, 3)))
    assert clients[0].suggest("items", 3)


def knows(client, name, item):
    try:
        return client.transform(name, [item]) is not None
    except ServeError:
        return False


def test_metrics_come_change_and_go_for_all(clients):
    clients[0].create("comes", 3)
    assert clients[1].describe("comes")["n_features"] == 3
    clients[2].create("comes", 4, "COMID")
    wait_until(lambda: clients[1].describe("comes")["n_features"] == 4)
    pairs, y = judged(50, 4)
    clients[1].feedback("comes", pairs, y)
    expected = metrack.COMID(random_state=0).fit(pairs, y).pair_distance(pairs)
    for client in clients:
        client.describe("comes", min_sequence=50, timeout=60)
        np.testing.assert_array_equal(client.distance("comes", pairs), expected)
    clients[2].delete("comes")
    wait_until(lambda: not exists(clients[0], "comes") and not exists(clients[1], "comes"))
    clients[1].create("comes", 2)
    assert clients[0].describe("comes")["n_features"] == 2


def exists(client, name):
    try:
        return client.describe(name) is not None
    except ServeError:
        return False


def test_two_that_make_the_same_metric_make_one(clients):
    for client in clients:
        assert client.create("same", 3)["sequence"] == 0
    clients[0].feedback("same", *judged(5))
    with pytest.raises(ServeError, match="other settings"):
        clients[1].create("same", 4)


def test_tokens_are_those_of_the_database(spawner, tmp_path):
    url = url_of(tmp_path)
    token = add_to_database(url, "ann", "read,admin", "*")
    server = spawner.start(tmp_path / "server", database=url, host="0.0.0.0").wait()
    assert server.ask("GET", "/v1/metrics").status == 401
    later = add_to_database(url, "bob", "read", "*")
    for each in (token, later):
        allowed = {"authorization": f"Bearer {each}"}
        wait_until(lambda a=allowed: server.ask("GET", "/v1/metrics", headers=a).status == 200)
    assert server.ask("PUT", "/v1/metrics/m", {"n_features": 2}, allowed).status == 403
    ending = add_to_database(url, "cy", "read", "*", days=3)
    names = [(each.name, each.expires is None) for each in sorted(read_from_database(url))]
    assert names == [("ann", True), ("bob", True), ("cy", False)]
    assert withdraw_from_database(url, "bob") == 1
    assert withdraw_from_database(url, "bob") == 0
    wait_until(lambda: server.ask("GET", "/v1/metrics", headers=allowed).status == 401)
    headers = {"authorization": f"Bearer {ending}"}
    wait_until(lambda: server.ask("GET", "/v1/metrics", headers=headers).status == 200)
    server.end()


def test_without_tokens_a_database_is_served_to_this_machine_alone(spawner, tmp_path):
    server = spawner.start(tmp_path / "server", database=url_of(tmp_path), host="0.0.0.0")
    wait_until(lambda: not server.is_alive())
    assert "tokens are needed" in server.log.read_text()


def test_what_nobody_told_of_is_seen_all_the_same(tmp_path, monkeypatch):
    """Behind the messages everything is looked at now and then."""
    monkeypatch.setattr(following, "POLL", 0.1)
    first, second = (Registry(open_database(tmp_path), Limits(), n_threads=1) for _ in range(2))
    silence = "ALTER TABLE metrics DISABLE TRIGGER tell"
    first.database.submit(lambda c: c.execute(silence).rowcount).result()
    metric, _ = first.make("m", CONFIG)
    first.append(metric, batch_of(*judged(50))).result()
    wait_until(lambda: "m" in second.metrics and second.get("m").version == 50)
    wait_until(lambda: metric.version == 50)
    for registry in (first, second):
        registry.close()
