import metrack
from metrack.registry import ESTIMATORS, PAIR_LEARNERS, SAVED, estimator


def test_every_estimator_is_where_the_registry_says():
    for name in ESTIMATORS:
        assert estimator(name).__name__ == name
        assert getattr(metrack, name) is estimator(name)


def test_the_package_exports_what_is_registered():
    assert set(metrack.__all__) == {
        *ESTIMATORS,
        "ActiveTracker",
        "Client",
        "Differences",
        "implied_pairs",
        "load",
    }
    assert PAIR_LEARNERS.items() <= SAVED.items() <= ESTIMATORS.items()
