"""What settings come to: every choice, made once, by names; and what is built from it."""

import json

import numpy as np
import pytest

import metrack
from metrack import COMID, LEGO, OASIS, POLA, SADL, MetricTracker, OnlineITML, registry
from metrack.engine.learners.kinds import KINDS
from metrack.engine.numerics.records import declared
from metrack.estimators.resolved import tables
from metrack.estimators.resolved.record import from_plain, rows, to_plain
from metrack.estimators.resolved.tracker import plans_of
from tests.estimators.learners import make_stream

ON_COVER = SADL()
# Settings, features, and what they come to, of their learners.
LEARNERS = {
    "SADL": (ON_COVER, 6, {"divergence": "burg", "regularizer": "logdet", "rho": 0.25 / 6}),
    "too wide": (
        ON_COVER,
        101,
        {"divergence": "frobenius", "regularizer": "nuclear", "rho": 0.001},
    ),
    "starts at 0": (ON_COVER, 101, {"init": "zero", "learning_rate": 0.4, "capacity": 101}),
    "low rank": (
        SADL(n_components=3),
        6,
        {"representation": "spectral", "capacity": 3},
    ),
    "rank above": (SADL(n_components=9), 6, {"capacity": 6}),
    "cover": (ON_COVER, 6, {"on_cover": True, "length_ratio": 2.0, "n_learners": 2}),
    "always on": (SADL(combiner="ader"), 6, {"on_cover": False, "n_learners": 12}),
    "published": (SADL.as_published(eta0=0.5), 6, {"step": "explicit", "divergence": "frobenius"}),
    "COMID": (COMID(), 6, {"divergence": "burg", "regularizer": "nuclear", "learning_rate": 0.2}),
    "no shrinkage": (COMID(), 6, {"representation": "dense_factor", "rho": 0.0}),
    "logdet": (COMID(regularizer="logdet"), 6, {"divergence": "burg", "rho": 0.25 / 6}),
    "explicit": (COMID(step="explicit"), 6, {"divergence": "frobenius", "schedule": "constant"}),
    "l1": (COMID(regularizer="l1"), 16, {"representation": "cone", "rho": 0.025 / 16}),
    "l1, wider": (COMID(regularizer="l1"), 17, {"representation": "elementwise"}),
    "l1, too wide": (COMID(regularizer="l1"), 4097, {"representation": "diagonal"}),
    "none": (COMID(regularizer=None, rho=0.5), 6, {"regularizer": None, "rho": 0.0}),
    "POLA": (POLA(n_components=2), 6, {"divergence": "frobenius", "init": "zero", "capacity": 2}),
}
ALL = [
    *(each[0] for each in LEARNERS.values()),
    MetricTracker(),
    OnlineITML(),
    LEGO(scale=None),
    OASIS(),
]
FITTED = [e for e in ALL if not isinstance(e, OASIS) and getattr(e, "n_components", 0) != 9]


@pytest.mark.parametrize("name", LEARNERS)
def test_what_auto_stands_for(name):
    learner, n_features, expected = LEARNERS[name]
    learners = learner.resolve(n_features).learners
    assert {field: getattr(learners, field) for field in expected} == expected


@pytest.mark.parametrize("n_features", [6, 64, 65, 384, 385, 768])
def test_which_learners_there_are(n_features):
    """Those of the table for so many features, in spaces by what they see."""
    resolved = MetricTracker().resolve(n_features)
    table = tables.TABLE if n_features <= tables.WHOLE_UP_TO else tables.WIDE_TABLE
    assert [row._replace(width=0) for row in resolved.learners] == [
        row._replace(width=0) for row in table
    ]
    if n_features > tables.FULL_UP_TO:  # none works on all features
        assert all(row.width > 0 for row in resolved.learners)
    plans = plans_of(resolved.learners, n_features, resolved.basis)
    assert sorted(row for plan in plans for bank in plan.banks for row in bank.rows) == sorted(
        resolved.learners
    )
    assert len({(plan.view, plan.width > 0) for plan in plans}) == len(plans)
    for plan in plans:
        for bank in plan.banks:
            ((view, kind, width),) = {(row.view, row.kind, row.width) for row in bank.rows}
            assert (view, kind in KINDS, width > 0) == (plan.view, True, plan.width > 0)
            assert bank.n_features == min(width or n_features, n_features)
        assert plan.width <= n_features


def test_the_combiner_and_the_units():
    plain = SADL(scale=None, combiner="ader").resolve(3)
    assert (plain.units, plain.combiner, plain.weight_loss) == ("data", "ader", "linear")
    assert MetricTracker().resolve(3)[:2] == (3, "root_mean_square")
    assert COMID().resolve(3).combiner == "alone"
    assert LEGO(learning_rate=2.0).resolve(3).learning_rate == 2.0
    assert OASIS(learning_rate=3).resolve(4) == (4, "root_mean_square", 3.0)


@pytest.mark.parametrize("learner", ALL, ids=repr)
def test_nothing_is_auto_and_json_gives_it_back(learner):
    resolved = learner.resolve(6)
    assert not hasattr(learner, "resolved_")  # nothing was started
    text = json.dumps(to_plain(resolved))
    assert "auto" not in text
    assert from_plain(json.loads(text)) == resolved
    listed = dict(rows(resolved))
    assert listed["n_features"] == "6"
    assert {"learners", "kind"}.isdisjoint(listed)
    with pytest.raises(AttributeError):
        resolved.n_features = 7


@pytest.mark.parametrize("learner", FITTED, ids=repr)
def test_fitted_learners_show_it_and_keep_it(learner, tmp_path):
    stream = make_stream(6, 60)
    learner.fit(stream.pairs, stream.y)
    assert learner.resolved_ == learner.resolve(6)
    learner.save(tmp_path)
    assert metrack.load(tmp_path).resolved_ == learner.resolved_
    learner.widen(120)
    assert learner.resolved_ == learner.resolve(120)
    with pytest.raises(ValueError, match="120 already"):
        learner.widen(6)


def test_a_saved_learner_goes_on_as_what_its_settings_came_to(tmp_path, monkeypatch):
    """What "auto" stands for may change from one metrack to the next."""
    stream = make_stream(6, 100)
    learner = MetricTracker().fit(stream.pairs, stream.y)
    learner.save(tmp_path)
    monkeypatch.setattr("metrack.estimators.resolved.tables.TABLE", tables.TABLE[:3])
    loaded = metrack.load(tmp_path)
    assert loaded.resolved_ == learner.resolved_ != loaded.resolve(6)
    more = make_stream(6, 100, seed=1)
    expected = learner.observe(more.pairs, more.y)
    np.testing.assert_array_equal(loaded.observe(more.pairs, more.y), expected)


@pytest.mark.parametrize("learner", [MetricTracker(), COMID(), LEGO(), OASIS()], ids=repr)
@pytest.mark.parametrize("n_features", [0, -1, 2.5, "3", None])
def test_numbers_of_features_that_are_none(learner, n_features):
    with pytest.raises(ValueError, match="n_features="):
        learner.start(n_features)
    assert not hasattr(learner, "resolved_")


def test_the_engine_is_what_was_resolved():
    resolved = SADL(first_interval=4, output="best").resolve(5)
    engine = resolved.build()
    (bank,), asked = engine.banks, resolved.learners
    assert bank.representation.name == asked.representation
    assert bank.first_interval == asked.first_interval == 4
    assert bank.ladder == (asked.learning_rate, 4.0, 2.0)
    always = SADL(first_interval=4, combiner="ader").resolve(5).build()
    assert always.experts.roster.first_interval == 0
    np.testing.assert_array_equal(always.experts.lengths[:3], [4.0, 16.0, 64.0])


def test_public_read_outs():
    stream = make_stream(6, 240)
    tracker = MetricTracker().start(6)
    assert tracker.n_pairs_seen_ == tracker.last_change_ == 0
    tracker.observe(stream.pairs, stream.y)
    p, losses = tracker.last_round()
    assert p.shape == losses.shape == tracker.scales_.shape
    assert abs(p.sum() - 1.0) < 1e-12
    L = tracker.aligned_components()
    np.testing.assert_allclose(L.T @ L, tracker.get_mahalanobis_matrix(), atol=1e-10)
    assert tracker.set_by_hand_ == {}
    assert tracker.set_threshold(0.5).set_by_hand_ == {"threshold": 0.5}
    assert tracker.partial_fit(stream.pairs, stream.y).set_by_hand_ == {}


def test_one_registry():
    assert set(registry.ESTIMATORS) == set(metrack.__all__) - {
        "ActiveTracker",
        "Client",
        "Differences",
        "implied_pairs",
        "load",
    }
    for name in registry.ESTIMATORS:
        assert registry.estimator(name) is getattr(metrack, name)


def test_every_field_declares_what_it_holds():
    for learner in ALL:
        resolved = learner.resolve(3)
        own = getattr(resolved, "learners", ())
        for record in (resolved, *([own] if hasattr(own, "_fields") else own)):
            assert set(declared(type(record))) == set(record._fields)
