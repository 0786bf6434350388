"""Servers and PostgreSQL, killed or stopped at any moment under load.

Nothing acknowledged is lost, nothing is learned twice, and the end is that of one quiet process.
"""

import contextlib
import json
import os
import random
import signal
import time

from metrack import Client
from tests.postgres.cluster import Cluster
from tests.serve.servers import url_of
from tests.serve.test_crash import N_CLIENTS, Sender, check_log_and_state

KILLS = int(os.environ.get("METRACK_KILLS", "12"))
N_SERVERS = 3
SILENT = 3.0  # seconds; longer than the lock's limit
TARGETS = ["learner", "reader", "database"]
MOST_SECONDS = 60  # for a server that is not killed to do its work


class Field:
    """Three servers of one database; those that were killed are started again."""

    def __init__(self, spawner, cluster, path):
        self.spawner, self.cluster, self.path = spawner, cluster, path
        self.url = url_of(path, cluster.url)
        self.n_started = 0
        self.servers = [self.start().wait() for _ in range(N_SERVERS)]

    def start(self):
        self.n_started += 1
        path = self.path / f"server-{self.n_started}"
        return self.spawner.start(path, database=self.url, save_work=0.05)

    def learner(self, without=None):
        """Whose right it is to learn, by what each says of itself."""
        end = time.monotonic() + MOST_SECONDS
        while True:
            for server in self.servers:
                if server is without:
                    continue
                with contextlib.suppress(OSError):
                    if server.ask("GET", "/readyz").body == b"ready learner":
                        return server
            assert time.monotonic() < end, "nobody learns"
            time.sleep(0.02)

    def restart(self):
        """Those that are gone."""
        self.servers = [s if s.is_alive() else self.start() for s in self.servers]

    def version(self, without=None):
        """The newest that any server tells of the metric."""
        found = [-1]
        for server in self.servers:
            if server is not without:
                with contextlib.suppress(OSError, KeyError, json.JSONDecodeError):
                    found.append(server.ask("GET", "/v1/metrics/m").json()["version"])
        return max(found)

    def taken_over(self, without=None):
        """Seconds until there is a learner, other than one, and more was learned by it."""
        start = time.monotonic()
        self.learner(without)
        before = self.version(without)
        while self.version(without) <= before:
            assert time.monotonic() - start < MOST_SECONDS, "nothing more is learned"
            time.sleep(0.05)
        return time.monotonic() - start

    def end(self):
        for server in self.servers:
            server.end()


class Senders:
    """Clients that send to any server, each again until it is acknowledged."""

    def __init__(self, field):
        self.all = [Sender(i) for i in range(N_CLIENTS)]
        self.point(field)
        for sender in self.all:
            sender.start()

    def point(self, field):
        for i, sender in enumerate(self.all):
            sender.port = field.servers[i % N_SERVERS].port

    def stop(self):
        """All that was acknowledged."""
        for sender in self.all:
            sender.stopping = True
        for sender in self.all:
            sender.join(120)
            assert not sender.is_alive()
            assert sender.failure is None
        return [key for sender in self.all for key in sender.acknowledged]


def test_killed_at_random_times_under_load(spawner, cluster, tmp_path):
    chance, taken_over = random.Random(0), []
    field = Field(spawner, cluster, tmp_path)
    with Client(field.servers[0].url) as client:
        client.create("m", n_features=3)
    senders = Senders(field)
    field.taken_over()
    for i in range(KILLS):
        field.restart()  # also one that was started while the database died again
        senders.point(field)
        time.sleep(chance.uniform(0.0, 0.5))
        target, stopped = TARGETS[i % 3], chance.random() < 0.5
        if target == "database":
            strike_database(cluster, stopped)
        else:
            seconds = strike_server(field, senders, target, stopped)
            taken_over += [seconds] if target == "learner" else []
    field.restart()
    senders.point(field)
    acknowledged = senders.stop()
    print(f"{KILLS} kills, {len(acknowledged):,} judgements; taken over after (seconds):")
    print(*(f"{each:.1f}" for each in sorted(taken_over)))
    check_log_and_state(field.learner(), tmp_path, acknowledged)
    field.end()


def test_a_standby_goes_on(spawner, cluster, tmp_path):
    """What PostgreSQL has promised is on both; servers find the one that writes."""
    standby = Cluster(primary=cluster)
    try:
        with cluster.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        field = Field(spawner, cluster, tmp_path)
        for server in field.servers:
            server.end()
        both = f"127.0.0.1:{cluster.port},127.0.0.1:{standby.port}"
        field.url = field.url.replace(f"127.0.0.1:{cluster.port}", both)
        field.url += "&target_session_attrs=read-write"
        field.restart()
        with Client(field.servers[0].wait().url) as client:
            client.create("m", n_features=3)
        senders = Senders(field)
        field.taken_over()
        cluster.kill()
        with standby.connect() as connection:
            connection.execute("SELECT pg_promote()")
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        field.taken_over()
        acknowledged = senders.stop()
        check_log_and_state(field.learner(), tmp_path, acknowledged)
        field.end()
    finally:
        standby.close()


def strike_database(cluster, stopped):
    if stopped:
        cluster.signal(signal.SIGSTOP)
        time.sleep(SILENT)
        cluster.signal(signal.SIGCONT)
    else:
        cluster.kill()
        cluster.start()


def strike_server(field, senders, target, stopped):
    """Returns the seconds until more was learned, by another if it was the learner."""
    learner = field.learner()
    others = [server for server in field.servers if server is not learner]
    server = learner if target == "learner" else others[0]
    if not stopped:
        server.end(signal.SIGKILL)
        seconds = field.taken_over(without=server)
        return seconds
    os.kill(server.pid, signal.SIGSTOP)
    start = time.monotonic()
    seconds = field.taken_over(without=server)
    time.sleep(max(0.0, SILENT - (time.monotonic() - start)))
    os.kill(server.pid, signal.SIGCONT)  # it wakes up late, and must not spoil anything
    return seconds
