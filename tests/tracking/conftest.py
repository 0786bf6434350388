import pytest

from tests.tracking.feedback import learner
from tests.tracking.forms import ITEMS, ROWS, Y


@pytest.fixture(scope="module")
def expected():
    """What a bare `observe` learns."""
    found = learner()
    found.observe(ITEMS[ROWS], Y)
    return found
