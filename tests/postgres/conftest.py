"""Run by `make test-postgres`, which sees to it that there is a database."""

import pytest

from tests.serve.conftest import spawner as spawner
from tests.serve.servers import DATABASE

if DATABASE is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def cluster():
    """One of the test's own, to be killed."""
    from tests.postgres.cluster import Cluster

    found = Cluster()
    yield found
    found.close()
