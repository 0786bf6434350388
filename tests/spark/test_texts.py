"""States as text."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from metrack.migrations import OLDEST, VERSION
from metrack.spark.texts import from_text, to_text
from metrack.storage import ForeignStateError, NewerStateError, State, read
from tests.estimators.golden_states import GOLDEN

FOLDERS = sorted(path for path in GOLDEN.glob("*/*") if path.is_dir())


def as_written(folder):
    """A state in the format of its time, and the number of that."""
    files = folder / "generation-000000000001"
    content = json.loads((files / "manifest.json").read_text())
    return State(content, load_file(files / "arrays.safetensors")), content["version"]


def of_format(text, version):
    return text._replace(header=json.dumps([version, *json.loads(text.header)[1:]]))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_text_of_any_format_is_read_as_the_state_that_it_was_made_of(folder):
    state, version = as_written(folder)
    text = of_format(to_text(state), version)
    assert all(part.isascii() for part in text)
    found, expected = from_text(text), read(folder)
    assert found.content["learner"] == expected.content["learner"]
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in found.arrays.items():
        assert array.dtype == expected.arrays[name].dtype
        np.testing.assert_array_equal(array, expected.arrays[name])


def test_any_bytes_and_sizes_come_back_where_learners_can_write_to_them():
    """Compiled code asks for arrays that begin at a multiple of what their numbers take."""
    rng = np.random.default_rng(0)
    arrays = {
        "flags": rng.random(5) < 0.5,
        "key": rng.integers(1 << 32, size=3, dtype=np.uint32),
        "none": np.empty((0, 4)),
        "numbers": rng.integers(-(1 << 63), (1 << 63) - 1, size=(3, 7)),
        "floats": np.array([[np.pi, -0.0], [5e-324, -1e308]]),
    }
    text = to_text(State({}, arrays))
    found = from_text(text).arrays
    assert found.keys() == arrays.keys()
    for name, array in found.items():
        assert array.dtype == arrays[name].dtype
        assert array.shape == arrays[name].shape
        assert array.tobytes() == arrays[name].tobytes()
        assert array.flags.aligned
        assert array.flags.writeable
    found["floats"][:] = 0.0
    assert from_text(text).arrays["floats"].tobytes() == arrays["floats"].tobytes()


def test_text_of_a_later_format_is_refused():
    with pytest.raises(NewerStateError, match=f"format {VERSION + 1}"):
        from_text(of_format(to_text(State({}, {})), VERSION + 1))


def test_text_of_a_format_that_is_read_no_more_is_refused():
    with pytest.raises(ForeignStateError, match=f"format {OLDEST - 1}: start a new one"):
        from_text(of_format(to_text(State({}, {})), OLDEST - 1))
