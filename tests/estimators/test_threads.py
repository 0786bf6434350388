"""Threads that share a learner: nothing is lost, and nothing is read half-way."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from metrack import COMID, LEGO, OASIS, SADL, FromLabels, MetricTracker, SlidingWindow
from metrack.estimators.bases.threads import one_blas_thread
from tests.estimators.learners import make_stream, state

N_THREADS = 4


@pytest.fixture(autouse=True)
def many_switches():
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(work):
    """Let every thread do its part, all from the same moment on."""
    start = Barrier(N_THREADS)

    def part(i):
        start.wait()
        return work(i)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(part, range(N_THREADS)))


@pytest.mark.parametrize("learner", [COMID(), MetricTracker(), LEGO()], ids=str)
def test_no_pair_is_lost(learner):
    stream = make_stream(6)

    def learn(i):
        for k in range(i, 240, N_THREADS):
            for _ in range(4):
                learner.partial_fit(stream.pairs[k : k + 1], stream.y[k : k + 1])

    at_once(learn)
    assert learner.n_pairs_seen_ == 4 * 240


@pytest.mark.parametrize("make", [COMID, MetricTracker, LEGO])
def test_calls_are_learned_one_after_another(make):
    stream = make_stream(6)
    parts = [slice(60 * i, 60 * i + 60) for i in range(N_THREADS)]
    shared = make()
    at_once(lambda i: shared.partial_fit(stream.pairs[parts[i]], stream.y[parts[i]]))
    possible = []
    for order in permutations(parts):
        alone = make()
        for part in order:
            alone.partial_fit(stream.pairs[part], stream.y[part])
        possible.append(state(alone))
    assert state(shared) in possible


def test_what_is_read_is_the_metric_after_a_whole_call():
    stream = make_stream(40, n_pairs=2000)
    parts = [slice(i, i + 100) for i in range(0, 2000, 100)]
    learner, metrics = COMID(), set()

    def read(some):
        metric = some.get_metric()
        return metric.components.tobytes(), metric.threshold

    for part in parts:
        metrics.add(read(learner.partial_fit(stream.pairs[part], stream.y[part])))

    shared = COMID().fit(stream.pairs[parts[0]], stream.y[parts[0]])

    def work(i):
        if i > 0:
            return [read(shared) for _ in range(50)]
        for part in parts[1:]:
            shared.partial_fit(stream.pairs[part], stream.y[part])
        return []

    found = [each for some in at_once(work) for each in some]
    assert len(found) == 150
    assert set(found) <= metrics
    assert read(shared) in metrics


def test_triplets_points_and_windows():
    rng = np.random.default_rng(0)
    triplets, X, labels = (
        rng.normal(size=(240, 3, 4)),
        rng.normal(size=(240, 4)),
        np.arange(240) % 3,
    )
    stream = make_stream(4)
    similarity, from_labels = OASIS(), FromLabels(COMID(), random_state=0)
    window = SlidingWindow(LEGO(), window=100, every=50)

    def learn(i):
        for k in range(i, 240, N_THREADS):
            similarity.partial_fit(triplets[k : k + 1])
            from_labels.partial_fit(X[k : k + 1], labels[k : k + 1])
            window.partial_fit(stream.pairs[k : k + 1], stream.y[k : k + 1])

    at_once(learn)
    assert similarity.n_triplets_seen_ == 240
    assert from_labels.buffer_.clock[0] == 240
    assert window.n_seen_ == 240


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_blas_has_one_thread_while_anything_learns_and_then_as_many_as_before():
    stream, seen = make_stream(6), []

    class Telling(np.random.RandomState):
        def random_sample(self, size=None):  # what output="sample" draws, while it learns
            seen.append(blas_threads())
            return super().random_sample(size)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        learner = SADL(output="sample", random_state=Telling(0))
        learner.partial_fit(stream.pairs[:20], stream.y[:20])
        assert blas_threads() == before
    assert seen
    assert set(np.ravel(seen)) == {1}


def test_blas_has_its_threads_back_after_learning_failed_or_went_on_at_once():
    stream, before = make_stream(6), blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == before
    at_once(lambda _: MetricTracker().partial_fit(stream.pairs[:50], stream.y[:50]))
    assert blas_threads() == before
