"""One spawner for all tests of a process, and a server that tests may share."""

import re

import pytest

from metrack import Client
from tests.serve.servers import Spawner


@pytest.fixture(scope="session")
def spawner():
    found = Spawner()
    yield found
    found.close()


@pytest.fixture(scope="session")
def server(spawner, tmp_path_factory):
    found = spawner.start(tmp_path_factory.mktemp("serve") / "data").wait()
    yield found
    found.end()


@pytest.fixture
def client(server):
    with Client(server.url, retries=0) as found:
        yield found


@pytest.fixture
def metric(client, request):
    """The name of a new metric with three features."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", request.node.name)[:60]
    client.create(name, n_features=3)
    yield name
    client.delete(name)
