import metrack
from metrack.estimators import persistence
from metrack.registry import ESTIMATORS, TRACKERS, estimator


def test_every_estimator_is_where_the_registry_says():
    for name in ESTIMATORS:
        assert estimator(name).__name__ == name
        assert getattr(metrack, name) is estimator(name)


def test_the_package_exports_what_is_registered():
    assert set(metrack.__all__) == {*ESTIMATORS, "load"}
    assert set(TRACKERS) <= set(ESTIMATORS)


def test_states_name_registered_estimators():
    assert persistence.CLASSES.items() <= ESTIMATORS.items()
