"""The benchmark of families, on streams so short that they show only that it runs."""

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from benchmarks import families, family_streams
from metrack import SADL

EVERY_KIND = [*family_streams.CHOSEN_ON, *family_streams.REPORTED]
MADE_UP = [kind for kind in EVERY_KIND if not kind.family.startswith("banking")]
SHORT = [kind for kind in EVERY_KIND if kind.name in ("switches", "n = 10")]


@pytest.fixture(scope="module")
def records():
    kinds = [kind for kind in SHORT if kind.family in ("clusters", families.PLAIN)]
    return families.benchmark(
        Console(quiet=True), kinds, (3001, 3002), question=200, rates=(0.05, 0.2)
    )


def test_every_stream_is_measured_on_every_seed(records):
    assert [(r["family"], r["seed"]) for r in records] == [
        (family, seed) for family in ("clusters", families.PLAIN) for seed in (3001, 3002)
    ]
    for record in records:
        assert np.isfinite([record[name] for name in (*families.MEANS, "hinge_plain")]).all()
        assert record["n_pairs"] == 600
        assert 0.0 <= record["knn"] <= 1.0


def test_what_the_tracker_is_held_against_does_not_depend_on_it(records):
    other = families.measure(
        SHORT[0], 3001, question=200, rates=(0.05, 0.2), tracker=SADL(eta0=0.01)
    )
    ours = ("hinge", "auc", "knn")
    changed = {name for name in other if other[name] != records[0][name]}
    assert "hinge" in changed
    assert changed <= set(ours)


def test_tables_tell_which_bars_are_met(records):
    console = Console(record=True, quiet=True, width=250)
    families.show(console, records)
    page = families.markdown(records)
    assert page.count("| clusters (chosen on) |") == 1
    assert page.count(f"| {families.PLAIN} (reported) |") == 1
    assert len(families.bars(records)) == 3  # of real data there is none here
    real = [dict(records[0], family="digits", auc=0.9, auc_best=0.91)]
    real += [dict(records[0], family="banking", auc=0.9, auc_best=0.894)]
    verdicts = [bar.verdict for bar in families.bars(real) if bar.name.startswith("AUC")]
    assert verdicts == ["missed", "met", "met"]
    assert [bar.name for bar in families.bars(real[:1])][1:] == ["AUC - best single's, digits"]


def test_answers_are_looked_at_where_few_are_alike_or_units_differ():
    few, units = (
        next(kind for kind in family_streams.ANSWERED if kind.name == name)
        for name in ("10 %, switches", "switches")
    )
    found = families.benchmark(
        Console(quiet=True), [few, units], (3001,), question=250, rates=(0.05, 0.2)
    )
    for record in found:
        assert all(0.0 <= record[name] <= 1.0 for name in families.ANSWERS)
        assert record["f1"] <= record["f1_best"] + 1e-12
        assert record["ap_best"] >= record["ap_plain"] - 0.2
    asked = [bar.name for bar in families.answer_bars(found)]
    assert asked[:3] == [
        "AP - best single's, few alike, 10 %, switches",
        "best F1 - F1, few alike, 10 %, switches",
        "calibration error, few alike, 10 %, switches",
    ]
    assert len(asked) == 6
    assert "best by AP" in families.markdown(found)


def test_other_streams_are_looked_at_as_before(records):
    assert not set(families.ANSWERS) & set(records[0])
    assert "best by AP" not in families.markdown(records)


@pytest.mark.parametrize("share", family_streams.SHARES)
def test_as_many_pairs_are_alike_as_asked(share):
    kind = next(
        kind for kind in family_streams.ANSWERED if kind.name == f"{100 * share:.0f} %, switches"
    )
    _, y = kind.make(1, 2_000).rows()
    assert np.mean(y > 0) == pytest.approx(share, abs=0.02)


def test_units_change_nothing_but_units():
    kind = next(kind for kind in family_streams.ANSWERED if kind.family == family_streams.UNITS)
    points, plain = kind.make(1, 60).points(0), family_streams.steady(1, 60).points(0)
    units = points / plain
    np.testing.assert_allclose(units, np.broadcast_to(units[0], units.shape), rtol=1e-6)
    assert np.ptp(np.log10(units[0])) > 3.0


def test_seeds_and_families_to_choose_on_are_apart_from_the_others():
    assert not set(families.DEVELOPMENT_SEEDS) & set(families.TEST_SEEDS)
    reported = {kind.family for kind in family_streams.REPORTED}
    assert not families.CHOSEN_ON & reported
    assert len(reported) >= len(families.CHOSEN_ON)
    assert len({(kind.family, kind.name) for kind in EVERY_KIND}) == len(EVERY_KIND)


@pytest.mark.parametrize("kind", MADE_UP, ids=lambda kind: f"{kind.family}, {kind.name}")
def test_streams_are_as_long_as_asked_and_judge_by_their_labels(kind):
    stream = kind.make(1, 60)
    rows, y = stream.rows()
    assert len(y) == (240 if kind.family == "digits" else 180)
    last = len(stream) - 1
    labels = stream.labels(last)
    assert (labels[rows[last, 0]] == labels[rows[last, 1]]) == (y[last] > 0)


def test_points_turn_at_the_given_rate_and_pairs_are_of_their_step():
    stream = family_streams.steady(3, 100, drift=0.01)
    rows, _ = stream.rows()
    pairs, _ = stream.pairs(50, 60)
    np.testing.assert_allclose(pairs[3], stream.points(53)[rows[53]], atol=1e-10)
    before, after = stream.points(0), stream.points(1)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-8)
    step = np.sqrt(np.sum((after - before) ** 2) / np.sum(before**2))
    assert 0.005 < step < 0.02


def test_banking_is_left_out_with_a_line_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("METRACK_BANKING", str(tmp_path / "nowhere.npz"))
    console = Console(record=True, quiet=True, width=200)
    kept = families.available([*EVERY_KIND, *family_streams.WIDE], console)
    assert kept == MADE_UP


def test_banking_is_read_from_where_one_says(tmp_path, monkeypatch):
    path = tmp_path / "banking.npz"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 70)).astype(np.float16)
    np.savez(path, X=X, group=np.arange(100) % 3, intent=np.arange(100) % 10)
    monkeypatch.setenv("METRACK_BANKING", str(path))
    assert family_streams.banking(1, 50, n_directions=64).preprocessor.shape == (100, 64)
    wide = family_streams.banking(1, 50)
    assert wide.preprocessor.shape == (100, 70)
    assert [name for _, name in wide.marks] == ["group", "intent", "group"]


def test_rates_are_added_until_the_best_is_inside():
    def run(rate):
        return {"hinge": abs(np.log2(rate / 0.08)), "auc": -abs(np.log2(rate / 1.28))}

    found = families.along_rates(run, (families.hinge_of, families.minus_auc), (0.16, 0.32))
    np.testing.assert_allclose(sorted(found), 0.04 * 2.0 ** np.arange(7))
    least = families.along_rates(lambda rate: {"hinge": rate}, (families.hinge_of,), (0.16, 0.32))
    assert len(least) == 2 + families.MORE_RATES


def test_plain_distance_needs_no_metric_where_it_is_right():
    rng = np.random.default_rng(0)
    alike = rng.random(400) < 0.5
    pairs = np.zeros((400, 2, 3))
    pairs[:, 1] = rng.normal(size=(400, 3))
    pairs[:, 1] *= np.where(alike, 0.1, 10.0)[:, None] / np.linalg.norm(
        pairs[:, 1], axis=1, keepdims=True
    )
    y = np.where(alike, 1, -1)
    assert families.plain_hinge(pairs, y) < 0.05
    assert families.plain_hinge(pairs, -y) > 0.9  # no threshold helps


def test_auc_is_scikit_learns():
    rng = np.random.default_rng(0)
    distances, alike = rng.integers(20, size=300).astype(float), rng.random(300) < 0.3
    np.testing.assert_allclose(families.auc(distances, alike), roc_auc_score(alike, -distances))


def test_no_direction_is_better_where_plain_distance_is_right():
    stream = family_streams.isotropic(1, 60, n=4)
    points, labels = stream.points(0), stream.labels(0)
    centres = np.stack([points[labels == label].mean(axis=0) for label in range(8)])
    between = np.linalg.eigvalsh(centres.T @ centres) / 18.0  # two centres, 3 away, on each axis
    within = np.linalg.eigvalsh(np.cov((points - centres[labels]).T))
    np.testing.assert_allclose(between, 1.0, atol=0.1)
    np.testing.assert_allclose(within, 1.0, atol=0.15)
