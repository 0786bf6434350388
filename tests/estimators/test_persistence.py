import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import metrack
from metrack import COMID, OASIS, SADL
from metrack.migrations import STEPS, VERSION
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
    generation,
    read,
)
from tests.estimators import golden_states
from tests.estimators.learners import LEARNERS, make_stream, state

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


def test_oasis_too(tmp_path):
    triplets = np.random.default_rng(0).normal(size=(200, 3, 5))
    learner = OASIS().fit(triplets[:100])
    learner.save(tmp_path)
    loaded = metrack.load(tmp_path)
    np.testing.assert_array_equal(loaded.observe(triplets[100:]), learner.observe(triplets[100:]))
    np.testing.assert_array_equal(loaded.get_bilinear_matrix(), learner.get_bilinear_matrix())


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


def test_widened_learners_keep_their_form(tmp_path):
    stream = make_stream(6, 100)
    learner = SADL().fit(stream.pairs[:, :, :4], stream.y)
    learner._widen(6)
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
        SADL().save(tmp_path)

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
        lambda c, a: c["learner"].update(n_features=10**12),
        lambda c, a: c["learner"].update(n_features="3"),
        lambda c, a: c["learner"].update(n_features=0),
        lambda c, a: c["learner"].update(n_features=2),
        lambda c, a: c["learner"]["settings"].update(nonsense=1),
        lambda c, a: c["learner"]["parts"].update(learners="Other"),
        lambda c, a: c["learner"].pop("parts"),
        lambda c, a: c.pop("learner"),
        lambda c, a: a.pop("clock.pairs"),
        lambda c, a: a.clear(),
        lambda c, a: a.update({"clock.pairs": np.zeros(1)}),
        lambda c, a: a.update({"clock.pairs": np.zeros((1, 1), np.int64)}),
        lambda c, a: a.update({"clock.pairs": np.zeros(0, np.int64)}),
    ],
)
def test_valid_files_that_describe_no_learner(saved, change):
    reseal(saved[0], change)
    with pytest.raises(StateError):
        metrack.load(saved[0])


def test_header_that_claims_too_much_allocates_nothing(saved):
    import hashlib

    folder = newest(saved[0])
    header = json.dumps({"a": {"dtype": "F64", "shape": [10**18], "data_offsets": [0, 8]}})
    data = struct.pack("<Q", len(header)) + header.encode() + bytes(8)
    (folder / ARRAYS).write_bytes(data)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["arrays"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    del manifest["checksum"]
    body = json.dumps(manifest, sort_keys=True).encode()
    manifest["checksum"] = hashlib.sha256(body).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))
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
            key = list(inside)[i % len(inside)]
            if not isinstance(inside[key], dict) or not inside[key]:
                break
            inside, key = inside[key], list(inside[key])[i % len(inside[key])]
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


def test_every_online_learner_is_covered():
    from metrack.estimators.persistence import CLASSES

    named = {type(learner).__name__ for learner, _ in LEARNERS.values()} | {"OASIS", "FromLabels"}
    assert named == set(CLASSES)
    made = {type(make()).__name__ for make in golden_states.LEARNERS.values()}
    assert made == set(CLASSES)


GOLDEN = sorted(
    path.with_suffix("").relative_to(golden_states.GOLDEN).as_posix()
    for path in golden_states.GOLDEN.glob("*/*.json")
)


def test_there_are_golden_states_of_every_format():
    folders = {name.split("/")[0] for name in GOLDEN}
    assert {"v1-early", *(f"v{version}" for version in range(1, VERSION + 1))} == folders
    assert set(STEPS) == set(range(1, VERSION))
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
    for key in expected:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-9, atol=1e-9, err_msg=key)
