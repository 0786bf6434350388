import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import metrack
from metrack import COMID, OASIS, SADL, FromLabels, MetricTracker, migrations, storage
from metrack.estimators.resolved.tables import TABLE
from metrack.estimators.states.persistence import dump, unpack
from metrack.migrations import OLDEST, STEPS, VERSION
from metrack.storage import (
    ARRAYS,
    MANIFEST,
    CorruptStateError,
    ForeignStateError,
    NewerStateError,
    State,
    StateError,
    StateFolder,
    StateInUseError,
    from_bytes,
    generation,
    read,
    to_bytes,
)
from tests.estimators import golden_states
from tests.estimators.learners import LEARNERS, has_matrix, make_stream, state

N_MUTATIONS = int(os.environ.get("METRACK_MUTATIONS", "500"))


@pytest.fixture
def saved(tmp_path):
    """A folder with a state, and the learner in it."""
    stream = make_stream(3, 60)
    learner = SADL(output="sample", random_state=1).fit(stream.pairs, stream.y)
    learner.save(tmp_path / "state")
    return tmp_path / "state", learner


def newest(folder):
    return sorted(folder.glob("generation-*"))[-1]


def test_what_is_loaded_goes_on_like_what_was_saved(learner, stream, tmp_path):
    half = len(stream.y) // 2
    learner.fit(stream.pairs[:half], stream.y[:half])
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path)
    assert type(loaded) is type(learner)
    assert loaded.get_params() == learner.get_params()
    assert state(loaded) == state(learner)
    rest = stream.pairs[half:], stream.y[half:]
    np.testing.assert_array_equal(loaded.observe(*rest), learner.observe(*rest))
    assert state(loaded) == state(learner)


def test_bytes_hold_what_a_folder_does(learner, stream):
    half = len(stream.y) // 2
    learner.fit(stream.pairs[:half], stream.y[:half])
    piece = dump(learner)
    loaded = metrack.load(bytearray(piece))  # what Spark hands out
    assert state(loaded) == state(learner)
    assert dump(loaded) == piece
    rest = stream.pairs[half:], stream.y[half:]
    np.testing.assert_array_equal(loaded.observe(*rest), learner.observe(*rest))


def test_single_precision_is_the_same_metric_but_for_rounding(learner, stream):
    """A relative 2^-24 of each number; the factors of a metric are squared."""
    half = len(stream.y) // 2
    learner.fit(stream.pairs[:half], stream.y[:half])
    loaded = metrack.load(dump(learner, single=True))
    # Features by a kernel lose some more: K^(-1/2) adds up many numbers of either sign.
    share = 1e-5 if has_matrix(learner) else 1e-4
    squares = learner.pair_distance(stream.pairs) ** 2
    found = loaded.pair_distance(stream.pairs) ** 2
    np.testing.assert_allclose(found, squares, rtol=0, atol=share * squares.max())
    if has_matrix(learner):
        M = learner.get_mahalanobis_matrix()
        found = loaded.get_mahalanobis_matrix()
        np.testing.assert_allclose(found, M, rtol=0, atol=1e-5 * np.abs(M).max())
    assert loaded.mu_ == pytest.approx(learner.mu_, rel=1e-6)
    assert loaded.n_pairs_seen_ == half
    assert np.isfinite(loaded.observe(stream.pairs[half:], stream.y[half:])).all()


def test_single_precision_takes_half_the_bytes_but_loses_no_number():
    stream = make_stream(30)
    learner = COMID(divergence="burg").fit(stream.pairs, stream.y)
    assert len(dump(learner, single=True)) < 0.6 * len(dump(learner)) + 2048
    wide = State({}, {"a": np.array([1e60, 1.0]), "b": np.array([1e-60]), "c": np.array([0.1])})
    kept = from_bytes(to_bytes(wide, single=True), "it").arrays
    assert kept["a"].tolist() == [1e60, 1.0]
    assert kept["b"].tolist() == [1e-60]
    assert kept["c"].tolist() == [float(np.float32(0.1))]


def test_bytes_are_a_zip_of_a_generation(saved, tmp_path):
    path, learner = saved
    (tmp_path / "state.zip").write_bytes(dump(learner))
    shutil.unpack_archive(tmp_path / "state.zip", tmp_path / "again")
    assert state(metrack.load(tmp_path / "again")) == state(metrack.load(path))


def test_bytes_that_are_no_state(saved):
    piece = dump(saved[1])
    for bad in (b"", b"parquet", piece[1:], zipped("compressed", zipfile.ZIP_DEFLATED)):
        with pytest.raises(ForeignStateError, match=r"the state of .* is (not one of|compressed)"):
            metrack.load(bad)
    with pytest.raises(ForeignStateError, match="holds 'other', which is no state"):
        metrack.load(zipped("other", zipfile.ZIP_STORED))
    for bad in (piece[:20], piece[:-1]):
        with pytest.raises(CorruptStateError, match=r"the state of [\d,]+ bytes is damaged"):
            metrack.load(bad)


def test_flipped_bytes_of_a_zip_give_the_same_state_or_the_typed_error(saved):
    piece, expected = dump(saved[1]), state(saved[1])
    rng, refused = np.random.default_rng(0), 0
    for at in rng.integers(len(piece), size=N_MUTATIONS):
        changed = bytearray(piece)
        changed[at] ^= 1 << rng.integers(8)
        try:
            assert state(metrack.load(changed)) == expected
        except StateError:
            refused += 1
    assert refused > N_MUTATIONS / 2


def zipped(name, compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(name, "0" * 100)
    return file.getvalue()


def test_oasis_too(tmp_path):
    triplets = np.random.default_rng(0).normal(size=(200, 3, 5))
    learner = OASIS().fit(triplets[:100])
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path)
    np.testing.assert_array_equal(loaded.observe(triplets[100:]), learner.observe(triplets[100:]))
    np.testing.assert_array_equal(loaded.get_bilinear_matrix(), learner.get_bilinear_matrix())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["int", "generator"])
def test_from_labels_goes_on_like_what_was_saved(sparse, kind, tmp_path):
    stream = make_stream(4, 200)
    X = stream.points if not sparse else sp.csr_array(stream.points)
    y = np.where(stream.points[:, 0] > 0.0, "right", "left")
    seed = 3 if kind == "int" else np.random.RandomState(3)
    learner = FromLabels(SADL.as_published(eta0=0.5), buffer_size=20, random_state=seed)
    learner.fit(X[:50], y[:50]).save(tmp_path)
    loaded = metrack.load(tmp_path)
    assert repr(loaded.learner) == repr(learner.learner)
    assert loaded.get_params(deep=False).keys() == learner.get_params(deep=False).keys()
    for part in (slice(50, 60), slice(60, 100)):
        learner.partial_fit(X[part], y[part])
        loaded.partial_fit(X[part], y[part])
    assert state(loaded.learner_) == state(learner.learner_)
    np.testing.assert_array_equal(loaded.transform(X), learner.transform(X))
    if kind == "int":
        again = clone(loaded).fit(X, y).get_mahalanobis_matrix()
        np.testing.assert_array_equal(again, clone(learner).fit(X, y).get_mahalanobis_matrix())


def test_from_labels_keeps_feature_names_and_says_what_cannot_be_saved(tmp_path):
    stream = make_stream(2, 200)
    learner = FromLabels(random_state=0).fit(stream.points, stream.points[:, 0] > 0.0)
    learner.feature_names_in_ = np.array(["a", "b"], dtype=object)  # as of a data frame
    learner.save(tmp_path / "named")
    loaded = metrack.load(tmp_path / "named")
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    assert loaded.get_feature_names_out().tolist() == learner.get_feature_names_out().tolist()
    assert not hasattr(FromLabels(metrack.ITML()), "save")
    with pytest.raises(ValueError, match="no preprocessor"):
        metrack.load(tmp_path / "named", preprocessor=stream.points)


@pytest.mark.parametrize("seed", [7, np.random.RandomState(7)])
def test_draws_go_on(seed, tmp_path):
    stream = make_stream(4, 300)
    learner = SADL.as_published(eta0=0.5, random_state=seed).fit(stream.pairs[:99], stream.y[:99])
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path)
    rest = stream.pairs[99:], stream.y[99:]
    np.testing.assert_array_equal(loaded.observe(*rest), learner.observe(*rest))
    if isinstance(seed, int):
        assert loaded.random_state == seed
        np.testing.assert_array_equal(
            clone(loaded).fit(*rest).observe(*rest), clone(learner).fit(*rest).observe(*rest)
        )


def test_widened_learners_keep_their_representation(tmp_path):
    stream = make_stream(6, 100)
    learner = MetricTracker().fit(stream.pairs[:, :, :4], stream.y)
    learner.widen(6)
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path)
    learner.observe(stream.pairs, stream.y)
    assert state(loaded.partial_fit(stream.pairs, stream.y)) == state(learner)


def test_threshold_that_was_set_is_kept(saved):
    folder, learner = saved
    learner.set_threshold(0.25).save(folder)
    assert metrack.load(folder).threshold_ == 0.25


def test_preprocessor_is_given_again(tmp_path):
    stream = make_stream(6)
    learner = COMID(preprocessor=stream.points).fit(stream.rows, stream.y)
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path, preprocessor=stream.points)
    np.testing.assert_array_equal(
        loaded.pair_distance(stream.rows), learner.pair_distance(stream.rows)
    )
    with pytest.raises(ValueError, match="preprocessor"):
        metrack.load(tmp_path).pair_distance(stream.rows)
    with pytest.raises(ValueError, match="learned on 6"):
        metrack.load(tmp_path, preprocessor=stream.points[:, :2])


def test_unfitted_and_unknown_learners_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        MetricTracker().save(tmp_path)

    class Mine(SADL):
        pass

    stream = make_stream(3, 20)
    with pytest.raises(TypeError, match="Mine"):
        Mine().fit(stream.pairs, stream.y).save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_last_three_are_kept(saved):
    folder, learner = saved
    for _ in range(5):
        learner.save(folder)
    assert [p.name for p in sorted(folder.glob("gen*"))] == [
        f"generation-{i:012d}" for i in (4, 5, 6)
    ]


def test_manifest_says_what_it_is(saved):
    manifest = json.loads((newest(saved[0]) / MANIFEST).read_text())
    assert manifest["format"] == "metrack-state"
    assert manifest["learner"]["class"] == "SADL"
    assert manifest["packages"]["numpy"] == np.__version__


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
@pytest.mark.parametrize("keep", [0, 1, 9, 0.5, -1])
def test_truncated(saved, name, keep):
    file = newest(saved[0]) / name
    data = file.read_bytes()
    file.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(CorruptStateError, match="cut short"):
        metrack.load(saved[0])


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_missing_file(saved, name):
    (newest(saved[0]) / name).unlink()
    with pytest.raises(CorruptStateError, match="missing"):
        metrack.load(saved[0])


def test_corrupt_newest_says_how_to_go_back(saved):
    folder, learner = saved
    learner.save(folder)
    (newest(folder) / ARRAYS).write_bytes(b"")
    with pytest.raises(CorruptStateError, match=r"remove .*generation-000000000002 to go on"):
        metrack.load(folder)


def test_foreign(tmp_path, saved):
    with pytest.raises(FileNotFoundError, match=r"nowhere: no such folder; give the folder"):
        metrack.load(tmp_path / "nowhere")
    (tmp_path / "pairs.csv").write_text("x_1,z_1,y\n")
    with pytest.raises(ForeignStateError, match=r"pairs\.csv is a file that holds no state"):
        metrack.load(tmp_path / "pairs.csv")
    with pytest.raises(ForeignStateError, match="no such folder"):
        metrack.load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ForeignStateError, match="no state"):
        metrack.load(tmp_path / "empty")
    (newest(saved[0]) / MANIFEST).write_text('{"format": "other"}')
    with pytest.raises(ForeignStateError, match="not the manifest"):
        metrack.load(saved[0])
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"x")
    with pytest.raises(ForeignStateError, match=r"cat\.png"):
        saved[1].save(tmp_path / "photos")
    with pytest.raises(ForeignStateError, match="is a file"):
        saved[1].save(tmp_path / "photos" / "cat.png")


def test_newer(saved):
    file = newest(saved[0]) / MANIFEST
    newer = {"version": VERSION + 1, "packages": {"metrack": "9.0"}}
    manifest = json.loads(file.read_text()) | newer
    file.write_text(json.dumps(manifest))
    with pytest.raises(NewerStateError, match=r"9\.0.*upgrade"):
        metrack.load(saved[0])


def reseal(folder, change):
    """Change a state's content and arrays, and give it valid checksums."""
    content, arrays = read(folder)
    content = {k: v for k, v in content.items() if k not in ("format", "packages")}
    change(content, arrays)
    with StateFolder(folder) as held:
        held.write(State(content, arrays))


@pytest.mark.parametrize(
    "change",
    [
        lambda c, a: c["learner"].update({"class": "os.system"}),
        lambda c, a: c["learner"]["resolved"].update(n_features=10**12),
        lambda c, a: c["learner"]["resolved"].update(n_features="3"),
        lambda c, a: c["learner"]["resolved"].update(n_features=0),
        lambda c, a: c["learner"]["resolved"].update(n_features=2),
        lambda c, a: c["learner"]["settings"].update(nonsense=1),
        lambda c, a: c["learner"]["engine"]["bank 0"]["learners"].update(record="Other"),
        lambda c, a: c["learner"].pop("engine"),
        lambda c, a: c["learner"].pop("resolved"),
        lambda c, a: c["learner"].update(resolved=[]),
        lambda c, a: c["learner"]["resolved"].update(kind="target"),
        lambda c, a: c.pop("learner"),
        lambda c, a: a.pop("experts.counters.pairs"),
        lambda c, a: a.clear(),
        lambda c, a: a.update({"experts.counters.pairs": np.zeros(1)}),
        lambda c, a: a.update({"experts.counters.pairs": np.zeros((1, 1), np.int64)}),
        lambda c, a: a.update({"experts.counters.pairs": np.zeros(0, np.int64)}),
    ],
)
def test_valid_files_that_describe_no_learner(saved, change):
    reseal(saved[0], change)
    with pytest.raises(StateError):
        metrack.load(saved[0])


def test_header_that_claims_too_much_allocates_nothing(saved):
    folder = newest(saved[0])
    header = json.dumps({"a": {"dtype": "F64", "shape": [10**18], "data_offsets": [0, 8]}})
    data = struct.pack("<Q", len(header)) + header.encode() + bytes(8)
    (folder / ARRAYS).write_bytes(data)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["arrays"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    write_manifest(folder / MANIFEST, manifest)
    with pytest.raises(CorruptStateError, match="safetensors"):
        metrack.load(saved[0])


def test_flipped_bytes_give_the_same_state_or_the_typed_error(saved):
    folder, learner = saved
    expected = state(learner)
    rng = np.random.default_rng(0)
    files = [newest(folder) / name for name in (ARRAYS, MANIFEST)]
    originals = [file.read_bytes() for file in files]
    refused = 0
    for i in range(N_MUTATIONS):
        file, data = files[i % 2], bytearray(originals[i % 2])
        _mutate(data, rng)
        file.write_bytes(data)
        try:
            assert state(metrack.load(folder)) == expected
        except StateError:
            refused += 1
        file.write_bytes(originals[i % 2])
    assert refused > 0.8 * N_MUTATIONS


def _mutate(data, rng):
    """Change, cut, insert or repeat some bytes."""
    at = int(rng.integers(len(data)))
    kind = rng.integers(5)
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        data[at] = int(rng.integers(256))
    elif kind == 2:
        del data[at : at + int(rng.integers(1, 20))]
    elif kind == 3:
        data[at:at] = rng.bytes(int(rng.integers(1, 20)))
    else:
        stop = at + int(rng.integers(1, 200))
        data[at:at] = data[at:stop]


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(where=st.lists(st.integers(0, 99), min_size=1, max_size=4), value=JSON)
def test_any_other_json_in_a_sealed_manifest(saved, where, value):
    """Checksums are right, one entry is not what it should be."""
    folder, learner = saved
    before = sorted(folder.glob("generation-*"))

    def change(content, arrays):
        inside = content
        for i in where:
            key = _keys(inside)[i % len(inside)]
            if not isinstance(inside[key], dict | list) or not inside[key]:
                break
            inside = inside[key]
            key = _keys(inside)[i % len(inside)]
        inside[key] = value

    reseal(folder, change)
    try:
        loaded = metrack.load(folder)
    except StateError:
        pass
    else:  # another setting, or an entry that says nothing about the learner
        assert loaded.n_pairs_seen_ == learner.n_pairs_seen_
    for path in sorted(folder.glob("generation-*")):
        if path not in before:
            for file in path.iterdir():
                file.unlink()
            path.rmdir()


def _keys(inside):
    return list(inside) if isinstance(inside, dict) else range(len(inside))


def test_second_writer_is_told_who_the_first_is(saved):
    folder, learner = saved
    with StateFolder(folder):
        with pytest.raises(StateInUseError, match=f"process {os.getpid()}"):
            learner.save(folder)
        metrack.load(folder)  # reading is free
    learner.save(folder)


def test_lock_ends_with_its_process(saved):
    folder, learner = saved
    code = (
        "import os, sys; from pathlib import Path; from metrack.storage import StateFolder; "
        f"held = StateFolder(Path({str(folder)!r})).__enter__(); print('held', flush=True); "
        "sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "held\n"
    with pytest.raises(StateInUseError, match=f"process {other.pid}"):
        learner.save(folder)
    other.kill()
    other.wait()
    learner.save(folder)
    assert generation(folder, 2).is_dir()


def test_a_folder_to_which_nothing_was_written_is_not_left_behind(tmp_path):
    new, empty = tmp_path / "new", tmp_path / "empty"
    empty.mkdir()
    for folder in (new, empty):
        with StateFolder(folder):
            assert (folder / "lock").exists()
    assert not new.exists()
    assert list(empty.iterdir()) == []


def test_a_lock_that_was_taken_away_is_none(tmp_path, monkeypatch):
    """One process opens the lock, and only then does the other that held it leave."""
    folder, first = tmp_path / "state", StateFolder(tmp_path / "state")
    first.__enter__()
    lock = storage.lock_file

    def late(file):
        first.__exit__(None, None, None)
        lock(file)

    monkeypatch.setattr(storage, "lock_file", late)
    with pytest.raises(StateInUseError, match="is in use"), StateFolder(folder):
        pass


def test_every_online_learner_is_covered():
    from metrack.registry import SAVED

    named = {type(learner).__name__ for learner, _ in LEARNERS.values()} | {
        *("OASIS", "FromLabels", "DriftKNN")
    }
    assert named == set(SAVED)
    made = {type(make()).__name__ for make in golden_states.LEARNERS.values()}
    assert made == set(SAVED)


def put(name, value, at=0):
    """A change of one entry of an array."""

    def change(content, arrays):
        arrays[name].reshape(-1)[at] = value

    return change


def repeat(name, times, axis=0):
    """A change of an array's shape."""

    def change(content, arrays):
        arrays[name] = np.repeat(arrays[name], times, axis)

    return change


def every(part, change):
    """The same change of all arrays of a part."""

    def changed(content, arrays):
        found = {name: a for name, a in arrays.items() if name.startswith(part) and len(a) > 1}
        arrays |= {name: change(array).copy() for name, array in found.items()}

    return changed


def came_to(**values):
    """A change of what the settings came to, of the ensemble or the dense learner."""
    return lambda content, arrays: content["learner"]["resolved"].update(values)


def learners_came_to(**values):
    """The same of margin learners."""
    return lambda content, arrays: content["learner"]["resolved"]["learners"].update(values)


TARGET = next(i for i, row in enumerate(TABLE) if row.kind == "target")


ROW = rf"learners.{TARGET}."


def row_came_to(**values):
    """The same of a row of a table: the first of target learners."""
    return lambda content, arrays: content["learner"]["resolved"]["learners"][TARGET].update(values)


def of_targets(change):
    """The same, of factors of target learners."""

    def changed(content, arrays):
        name = next(name for name in arrays if name.endswith("learners.factor"))
        change(name, 2)(content, arrays)

    return changed


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("comid-spectral", put("bank 0.learners.rank", 10**9), "up to 0 and 1000000000"),
        ("comid-spectral", put("bank 0.learners.rank", -1), "learners.rank holds numbers from -1"),
        ("comid-spectral", put("bank 0.learners.width", 1), "do not fit"),
        ("comid-spectral", put("bank 0.learners.spectrum", -1e9), "eigenvalues"),
        ("comid-spectral", put("bank 0.learners.basis", 1e9), "not orthonormal"),
        ("comid-frame", put("bank 0.learners.width", 3), "do not fit"),
        ("comid-frame", put("bank 0.learners.width", 0), "do not fit"),
        ("comid-frame", put("bank 0.learners.frame", 1e9), "not orthonormal"),
        ("comid-frame", repeat("bank 0.learners.frame", 2, axis=1), "do not fit"),
        ("comid-frame", learners_came_to(capacity=2), "do not fit"),
        ("comid-frame", learners_came_to(capacity=10**9), "rank 1000000000"),
        ("sadl", repeat("bank 0.learners.mu", 1000), r"learners.mu has shape \(6000,\)"),
        ("sadl", put("bank 0.learners.mu", np.nan), "learners.mu holds numbers from nan"),
        ("sadl", put("bank 0.learners.mu", 0.5), "learners.mu"),
        ("sadl", put("bank 0.learners.factor", np.inf), "learners.factor"),
        ("sadl", put("bank 0.learners.steps", -1), "learners.steps"),
        ("sadl", put("experts.known.length", 0.0), "experts.known.length"),
        ("sadl", put("experts.known.length", 3.0), "lengths are not those of the learners"),
        ("sadl", repeat("experts.known.p", 2), "experts.known.p has shape"),
        ("sadl", repeat("bank 0.rates.rho", 2), "rates.rho has shape"),
        ("sadl", every("bank 0.rates", lambda a: a[:2]), "rates.rate has shape"),
        ("sadl", every("experts.known", lambda a: a[:2]), "lengths are not those of the learners"),
        ("tracker", repeat("memory 0.recent.u", 2), "recent.y has shape"),
        ("sadl", put("experts.counters.selected", 6), "expert 6 is selected of 6"),
        ("sadl", put("experts.detector.changed", 41), "detector.changed is pair 41 of 40"),
        ("sadl", put("experts.detector.cusum", 8.0), "detector.cusum"),
        ("sadl", put("space 0.scaler.moved", 41), "scaler.moved counts 41 of 40"),
        ("sadl", put("experts.counters.pairs", 39), "scaler.moved counts 40 of 39"),
        ("sadl", put("experts.counters.pairs", 64), "6 experts after 64 pairs, expected 7"),
        ("sadl", put("experts.counters.pairs", 10**18), "experts.counters.pairs"),
        (
            "sadl",
            lambda c, a: c["learner"].update(engine={}),
            r"a state of \[\], expected \['experts'",
        ),
        (
            "sadl",
            lambda c, a: c["learner"]["engine"]["experts"].pop("scores"),
            r"experts has parts .*, expected .*'scores'\]",
        ),
        ("sadl", learners_came_to(kind="other"), "learners.kind is 'other', which is unknown"),
        ("tracker", came_to(learners=[]), r"resolved.learners is \[\]; it must be a list"),
        (
            "tracker",
            row_came_to(kind="other"),
            ROW + "kind is 'other', which is unknown",
        ),
        (
            "tracker",
            row_came_to(view="other"),
            ROW + "view is 'other', which is unknown",
        ),
        ("tracker", row_came_to(view=3), ROW + "view is 3; it must be a text"),
        (
            "tracker",
            row_came_to(rate=0.0),
            ROW + "rate is 0, and target learners need one",
        ),
        ("tracker", row_came_to(memory=2.5), ROW + "memory is 2.5"),
        ("tracker", row_came_to(width=8), "expected"),
        ("tracker", of_targets(repeat), "learners"),
        ("tracker", lambda c, a: c["learner"]["resolved"]["learners"].pop(), "expected"),
        ("kernel", came_to(gammas=[]), r"gammas is \[\]; it must be a list of 1 to 8"),
        ("kernel", came_to(gammas=[1.0]), "known are"),
        ("kernel", came_to(gammas=[1.0, 2.0, 3.0]), "expected are"),
        ("kernel", came_to(n_landmarks=9), "expected"),
        ("kernel", put("kernel.landmarks.used", 9), "9 landmarks of 8"),
        ("kernel", repeat("basis 2.directions.vectors", 2), "basis 2.directions.vectors has shape"),
        ("sadl", learners_came_to(representation="other"), "known are .*spectral"),
        (
            "sadl",
            learners_came_to(representation="diagonal"),
            "dense_factor', which this learner",
        ),
        ("sadl", learners_came_to(n_learners=10**6), "n_learners is 1000000"),
        ("sadl-ader", every("bank 0", lambda a: a[:11]), "n_always_on=11"),
        ("sadl", learners_came_to(divergence="other"), "known are frobenius, von_neumann, burg"),
        ("sadl", learners_came_to(divergence=2), "divergence is 2, which is unknown"),
        ("sadl", learners_came_to(divergence="frobenius"), "Burg divergence alone"),
        ("sadl", learners_came_to(loss="logistic"), "'logistic' where the settings say 'hinge'"),
        ("sadl", learners_came_to(rho=-1.0), "learners.rho is -1.0"),
        ("lego", came_to(units=1), "units is 1, which is unknown"),
        ("sadl", learners_came_to(on_cover=1), "must be true or false"),
        ("sadl", came_to(combiner="other"), "known are .*cbce"),
        ("sadl", came_to(combiner="ader"), "'ader' where the settings say 'cbce'"),
        ("sadl", came_to(cap=0.0), "resolved.cap"),
        ("sadl", learners_came_to(first_interval=1 << 62), "first_interval"),
        ("sadl", learners_came_to(first_interval=0), "first_interval is 0"),
        ("sadl", learners_came_to(on_cover=False), "n_always_on=6"),
        ("sadl", lambda c, a: c["learner"]["settings"].update(loss="other"), "loss='other'"),
        ("sadl", lambda c, a: c["learner"]["settings"].update(n_components=-1), "n_components"),
        ("sadl", lambda c, a: c["learner"].update(threshold="0.5"), "threshold"),
        ("sadl-published", put("generator.key", 1), None),
        ("sadl-published", repeat("generator.key", 2), "generator.key has shape"),
        (
            "sadl-published",
            lambda c, a: c["learner"]["generator"].update(position=10**6),
            "position is 1000000",
        ),
        ("comid-cone", repeat("bank 0.learners.matrix", 2, axis=1), "learners.matrix has shape"),
        (
            "comid-entries",
            repeat("bank 0.learners.lazy_values", 2, axis=1),
            "learners.lazy_values has shape",
        ),
        (
            "comid-diagonal",
            put("bank 0.learners.cumulative_threshold", 1e9),
            "learners.cumulative_threshold",
        ),
        ("itml", came_to(upper=9.0), "target 9.0 is above"),
        ("lego", put("learner.scaler.moved", 41), "scaler.moved"),
        ("oasis", repeat("learner.learners.matrix", 2), "learners.matrix has shape"),
        ("from-labels", put("pairing.labels", 2), "labels that have no name"),
        ("from-labels", put("pairing.labels", -1), "slots"),
        ("from-labels", put("pairing.clock", 2, at=1), "slots"),
        ("from-labels", put("pairing.points", np.nan), "points"),
        (
            "from-labels",
            lambda c, a: c["learner"]["settings"].update(buffer_size=10**15),
            "12 labels in a buffer of",
        ),
        ("from-labels", lambda c, a: c["learner"]["pairing"].update(n_codes=1 << 53), None),
    ],
)
def test_states_that_no_stream_leads_to(name, change, message):
    """Those without a message are harmless."""
    crafted = golden_states.written(name)
    change(*crafted)
    if message is None:
        unpack(crafted, None, "here")
    else:
        with pytest.raises(CorruptStateError, match=f"here describes no learner: .*{message}"):
            unpack(crafted, None, "here")


def test_formats_that_are_not_known(tmp_path, monkeypatch):
    shutil.copytree(golden_states.GOLDEN / f"v{VERSION}" / "sadl", tmp_path / "state")
    file = newest(tmp_path / "state") / MANIFEST
    manifest = json.loads(file.read_text())
    write_manifest(file, manifest | {"version": 0})
    with pytest.raises(CorruptStateError, match="no known format"):
        metrack.load(tmp_path / "state")
    write_manifest(file, manifest | {"version": OLDEST})
    monkeypatch.setattr(storage, "OLDEST", OLDEST + 1)  # as it is when that is read no more
    with pytest.raises(ForeignStateError, match=r"never released.*learn its judgements anew"):
        metrack.load(tmp_path / "state")


def test_an_earlier_format_goes_through_all_steps(monkeypatch):
    """Each makes its own of the one before it."""

    def step(content, arrays):
        return {**content, "steps": content["steps"] + 1}, {
            f"{name}+": array for name, array in arrays.items()
        }

    monkeypatch.setattr(migrations, "VERSION", 4)
    monkeypatch.setattr(migrations, "STEPS", dict.fromkeys((1, 2, 3), step))
    for version in (1, 2, 3, 4):
        content, arrays = migrations.migrated(version, {"steps": 0}, {"a": np.zeros(1)})
        assert content == {"steps": 4 - version}
        assert list(arrays) == ["a" + "+" * (4 - version)]


def write_manifest(file, manifest):
    """Give a manifest a valid checksum."""
    manifest.pop("checksum", None)
    body = json.dumps(manifest, sort_keys=True).encode()
    manifest["checksum"] = hashlib.sha256(body).hexdigest()
    file.write_text(json.dumps(manifest))


def test_width_that_the_file_does_not_have_allocates_nothing():
    """0.8 MB of weights, said to be 100,000 features whose entries would take 80 GB."""
    crafted = golden_states.written("comid-diagonal")
    n = 100_000
    came_to(n_features=n)(*crafted)
    crafted.content["learner"]["settings"].update(psd="on_read")
    learners_came_to(capacity=n)(*crafted)
    crafted.arrays["bank 0.learners.lazy_values"] = np.zeros((1, n))
    crafted.arrays["memory 0.recent.u"] = np.zeros((0, n))
    crafted.arrays["memory 0.past.u"] = np.zeros((2, 0, n))
    crafted.arrays["views.units.square"] = np.zeros(n)
    crafted.arrays["views.units.differing"] = np.zeros(n, np.int64)
    loaded, peak = traced(lambda: unpack(crafted, None, "here"))
    assert loaded.n_features_in_ == n  # as a diagonal it is one
    assert peak < 10 * 2**20
    learners_came_to(representation="elementwise")(*crafted)
    crafted.content["learner"]["engine"]["bank 0"]["learners"]["record"] = "elementwise"
    with pytest.raises(CorruptStateError, match=r"learners\.lazy_values has shape"):
        unpack(crafted, None, "here")


def traced(function):
    """What a function returns, and the most memory that it had at a time."""
    tracemalloc.start()
    try:
        found = function()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_crafted_states_are_refused_or_go_on():
    """Checksums are right, numbers are not: no crash, no more memory than the file justifies."""
    rng = np.random.default_rng(0)
    names = [*golden_states.LEARNERS, *golden_states.VARIANTS]
    refused = 0
    for i in range(N_MUTATIONS):
        name = names[i % len(names)]
        crafted = golden_states.written(name)
        size = sum(array.nbytes for array in crafted.arrays.values())
        _craft(crafted, rng)
        try:
            learner, peak = traced(lambda state=crafted: unpack(state, None, "here"))
        except StateError:
            refused += 1
            continue
        assert peak < 5 * 2**20 + 20 * size
        with np.errstate(all="ignore"):
            learner.partial_fit(*(each[:5] for each in golden_states.stream(name)[1]))
    assert refused > 0.4 * N_MUTATIONS


NUMBERS_TO_TRY = (-1, 0, 1, 2, 3, 7, 256, 10**9, 2**31, 2**53, 2**62, -(2**62))
FLOATS_TO_TRY = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 1e18, -0.5)


def _craft(crafted, rng):
    """Change an entry or the shape of an array, or a number or name of the manifest."""
    kind = rng.integers(4)
    if kind == 0:
        _craft_json(crafted.content["learner"], rng)
        return
    name = sorted(crafted.arrays)[rng.integers(len(crafted.arrays))]
    array = crafted.arrays[name]
    if kind < 3 and array.size:
        tries = NUMBERS_TO_TRY
        if array.dtype == np.float64:
            tries += FLOATS_TO_TRY
        value = tries[rng.integers(len(tries))]
        if array.dtype == np.uint32:
            value &= 0xFFFFFFFF
        array.reshape(-1)[rng.integers(array.size)] = value
        return
    axis = int(rng.integers(array.ndim))
    n = (0, 1, array.shape[axis] - 1, 2 * array.shape[axis])[rng.integers(4)]
    crafted.arrays[name] = np.resize(
        array, (*array.shape[:axis], max(n, 0), *array.shape[axis + 1 :])
    )


def _craft_json(inside, rng):
    key = list(inside)[rng.integers(len(inside))]
    while isinstance(inside[key], dict) and inside[key]:
        inside = inside[key]
        key = list(inside)[rng.integers(len(inside))]
    tries = (*NUMBERS_TO_TRY, 0.5, -0.5, 1e300, "burg", "spectral", "auto", "", None, True, [], {})
    value = tries[rng.integers(len(tries))]
    if key == "pairs_per_point" and isinstance(value, int) and value > 256:
        value = 256  # that much work is what such a setting asks for
    inside[key] = value


GOLDEN = sorted(
    path.with_suffix("").relative_to(golden_states.GOLDEN).as_posix()
    for path in golden_states.GOLDEN.glob("*/*.json")
)


def test_there_are_golden_states_of_every_format():
    folders = {name.split("/")[0] for name in GOLDEN}
    assert {f"v{version}" for version in range(OLDEST, VERSION + 1)} == folders
    assert set(STEPS) == set(range(OLDEST, VERSION))
    assert {n.split("/")[1] for n in GOLDEN if n.startswith(f"v{VERSION}/")} == set(
        golden_states.LEARNERS
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_states_load_and_go_on_as_their_writers_did(name):
    """To what other processors round; a path that differed would be off by far more."""
    learner = metrack.load(golden_states.GOLDEN / name)
    expected = json.loads((golden_states.GOLDEN / f"{name}.json").read_text())
    _, second = golden_states.stream(name.split("/")[1])
    found = golden_states.outcome(learner, second)
    assert found.keys() == expected.keys()
    near = 1e-4 if "wide" in name else 1e-9  # of many features, steps are in single precision
    for key in expected:
        np.testing.assert_allclose(found[key], expected[key], rtol=near, atol=near, err_msg=key)
