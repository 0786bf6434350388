"""A database that is away, hangs, is full, was changed by hand, or gives no rights.

Errors say so, nothing acknowledged is lost, and work goes on when the trouble is over.
"""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from metrack import Client
from metrack.client import ServeError
from metrack.serve.databases.postgres import Postgres
from metrack.serve.databases.schema import scripts
from metrack.serve.databases.upgrading import TABLES
from tests.postgres.cluster import Cluster
from tests.serve.servers import judged, url_of
from tests.serve.test_crash import check_log_and_state
from tests.serve.test_registry import wait_until


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)


@pytest.fixture
def server(spawner, tmp_path, url):
    """With a metric of 100 judgements that were learned and saved."""
    found = spawner.start(tmp_path / "server", database=url, save_work=0.0).wait()
    ids = [f"k{i}" for i in range(100)]
    with Client(found.url) as client:
        client.create("m", 3)
        client.feedback("m", *judged(100), ids)
        client.describe("m", min_sequence=100, timeout=60)
    wait_until(lambda: one(url, "SELECT count(*) FROM states") == 1)
    yield found
    found.end()


def execute(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for each in statements:
            connection.execute(each)


def one(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def refused(client, words, *given):
    with pytest.raises(ServeError, match=words) as caught:
        client.feedback("m", *given)
    assert caught.value.status == 503


def test_requests_wait_for_a_database_that_is_started_again(spawner, cluster, tmp_path):
    url = url_of(tmp_path, cluster.url)
    server = spawner.start(tmp_path / "server", database=url).wait()
    with Client(server.url, retries=0) as client:
        client.create("m", 3)
        acknowledged = [f"a{i}" for i in range(50)]
        client.feedback("m", *judged(50), acknowledged)
        client.describe("m", min_sequence=50, timeout=60)
        cluster.process.send_signal(signal.SIGINT)
        cluster.process.wait()
        more, ids = judged(50, seed=1), [f"b{i}" for i in range(50)]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(Client(server.url, retries=0).feedback, "m", *more, ids)
            time.sleep(0.5)  # it does wait
            assert not waiting.done()
            cluster.start()
            assert waiting.result(60) == (50, 0, 100)
        assert client.distance("m", judged(5)[0]).shape == (5,)
    check_log_and_state(server, tmp_path, acknowledged + ids)
    server.end()


def test_a_full_disk_acknowledges_nothing(spawner, tmp_path):
    """What finds no room is refused; what was acknowledged is there and learned, also after."""
    cluster = Cluster(largest_file=(17 << 20) + 4096)  # more than a segment of PostgreSQL's own log
    try:
        url = url_of(tmp_path, cluster.url)
        server = spawner.start(tmp_path / "server", database=url).wait()
        acknowledged = []
        with Client(server.url, retries=0) as client:
            client.create("m", 3)
            client.create("wide", 500)

            def send_on():
                for batch in range(1000):
                    ids = [f"{batch}-{i}" for i in range(10)]
                    client.feedback("m", *judged(10, seed=batch), ids)
                    acknowledged.extend(ids)
                    client.feedback("wide", *judged(100, 500))

            with pytest.raises(ServeError, match="503: the database's disk is full"):
                send_on()
            assert client.describe("m")["sequence"] == len(acknowledged) > 10
            client.delete("wide")  # whose place in the table is free when it was swept away
            wait_until(lambda: one(url, "SELECT count(*) FROM gone") == 0)
            execute(url, "VACUUM judgements")
            ids = [f"after-{i}" for i in range(10)]
            client.feedback("m", *judged(10, seed=5000), ids)
        check_log_and_state(server, tmp_path, acknowledged + ids)
        server.end()
    finally:
        cluster.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_requests_end_when_the_database_stays_away(spawner, cluster, tmp_path, how):
    """Those who feed in are told when to come again; those who read are answered from memory."""
    url = url_of(tmp_path, cluster.url)
    server = spawner.start(tmp_path / "server", database=url).wait()
    with Client(server.url, retries=0) as client:
        client.create("m", 3)
        client.feedback("m", *judged(50))
        client.describe("m", min_sequence=50, timeout=60)
        cluster.signal(how)
        pairs, _ = judged(10)
        expected = client.distance("m", pairs)
        body = b'{"pairs": [{"x": [1, 2, 3], "z": [1, 2, 4], "y": 1, "id": "late"}]}'
        answer = server.ask("POST", "/v1/metrics/m/feedback", body)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert (client.distance("m", pairs) == expected).all()
        assert server.ask("GET", "/healthz").status == 200
        assert server.ask("GET", "/readyz").status == 503
        if how == signal.SIGSTOP:
            cluster.signal(signal.SIGCONT)
        else:
            cluster.process.wait()
            cluster.start()
        wait_until(lambda: server.ask("POST", "/v1/metrics/m/feedback", body).status == 200)
        assert client.describe("m", min_sequence=51, timeout=60)["pairs"] == 51
    server.end()


def test_rights_that_are_taken_away_are_named_and_nothing_is_lost(server, url, spawner, tmp_path):
    """A role of its own: the one that owns the tables may do everything."""
    schema = one(url, "SELECT current_schema()")
    role = f"role_{schema}"
    execute(
        url,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    )
    limited = url.replace("metrack@", f"{role}@")
    Postgres(limited, learns=False).close()
    execute(url, f"REVOKE INSERT, DELETE ON judgements FROM {role}")
    with pytest.raises(ValueError, match=r"lacks rights: INSERT on judgements, DELETE on judg"):
        Postgres(limited)
    execute(url, f"GRANT INSERT, DELETE ON judgements TO {role}")
    second = spawner.start(tmp_path / "second", database=limited, learns=False).wait()
    execute(url, f"REVOKE INSERT ON judgements FROM {role}")
    with Client(second.url, retries=0) as client:
        refused(client, "lacks a right in the database: permission denied.*judgements", *judged(5))
        execute(url, f"GRANT INSERT ON judgements TO {role}")
        assert client.feedback("m", *judged(5)).sequence == 105
    second.end()


def test_a_role_that_may_not_make_tables_is_told(url):
    schema = one(url, "SELECT current_schema()")
    execute(url, f"CREATE ROLE poor_{schema} LOGIN", f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC")
    with pytest.raises(ValueError, match="may not make metrack's tables"):
        Postgres(url.replace("metrack@", f"poor_{schema}@"))


def test_tables_of_another_program_are_left_alone(url):
    execute(url, "CREATE TABLE items (theirs int)")
    with pytest.raises(ValueError, match=r'"items" already exists.*of its own'):
        Postgres(url)
    assert one(url, "SELECT to_regclass('metrics') IS NULL")


def test_a_schema_from_the_future_is_refused(url):
    Postgres(url, learns=False).close()
    newer = max(scripts("postgres")) + 1
    execute(url, f"INSERT INTO metrack_versions VALUES ({newer})")
    with pytest.raises(ValueError, match=f"tables of version {newer}.*upgrade metrack"):
        Postgres(url)


def test_many_that_start_at_once_make_the_tables_once(url):
    with ThreadPoolExecutor(4) as pool:
        for database in pool.map(lambda _: Postgres(url, learns=False), range(4)):
            database.close()
    assert one(url, "SELECT count(*) FROM metrack_versions") == len(scripts("postgres"))
    assert one(
        url,
        f"SELECT count(*) FROM pg_tables WHERE tablename = ANY(ARRAY{TABLES}) "
        "AND schemaname = current_schema()",
    ) == len(TABLES)


def test_a_damaged_state_is_learned_again_from_the_log(server, url, spawner, tmp_path):
    server.end(signal.SIGKILL)
    execute(
        url,
        "UPDATE states SET body = substr(body, 1, length(body) - 8)",
        "UPDATE snapshots SET body = '\\x00'",
    )
    again = spawner.start(tmp_path / "again", database=url).wait()
    check_log_and_state(again, tmp_path, [f"k{i}" for i in range(100)])
    again.end()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM judgements WHERE sequence = 50",
        "UPDATE judgements SET points = substr(points, 1, 40) WHERE sequence = 50",
    ],
)
def test_a_log_that_was_changed_is_not_learned(server, url, spawner, tmp_path, change):
    server.end(signal.SIGKILL)
    execute(
        url,
        change,
        "DELETE FROM states",
        "DELETE FROM snapshots",
        "UPDATE metrics SET saved = 0, summary = '{}'",
    )
    again = spawner.start(tmp_path / "again", database=url).wait()
    with Client(again.url, retries=0) as client:
        wait_until(lambda: client.describe("m")["error"] is not None)
        assert "changed by hand" in client.describe("m")["error"]
        assert again.ask("GET", "/readyz").status == 503
        assert client.feedback("m", *judged(5)).sequence == 105  # which is kept
    again.end()


def test_tables_that_are_gone_are_named(server, url):
    execute(url, "ALTER TABLE ids RENAME TO hidden")
    with Client(server.url, retries=0) as client:
        refused(
            client,
            'tables are not as they should be: .*"ids" does not exist',
            *judged(5),
            [f"l{i}" for i in range(5)],
        )
        execute(url, "ALTER TABLE hidden RENAME TO ids")
        assert client.feedback("m", *judged(5)).sequence == 105


def test_settings_that_were_changed_by_hand_are_named(server, url):
    execute(url, "UPDATE metrics SET settings = '{'")
    wait_until(lambda: "row of metric 'm' was changed by hand" in server.log.read_text())
    execute(url, "UPDATE metrics SET settings = '{}'")
    with Client(server.url) as client:
        client.feedback("m", *judged(5))
        assert client.describe("m", min_sequence=105, timeout=60)["pairs"] == 105
