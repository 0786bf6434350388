import pytest
from sklearn.base import clone

from tests.estimators.learners import LEARNERS, make_stream


@pytest.fixture(params=LEARNERS)
def learner(request):
    """Each online estimator in turn, unfitted."""
    return clone(LEARNERS[request.param][0])


@pytest.fixture
def stream(request, learner):
    return make_stream(LEARNERS[request.node.callspec.params["learner"]][1])


@pytest.fixture
def fitted(learner, stream):
    return learner.fit(stream.pairs, stream.y)
