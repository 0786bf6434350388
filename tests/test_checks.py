import numpy as np
import pytest

from metrack.checks import number, whole


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers(value):
    found = whole("n", value, most=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 4, 3.0, True, "3", None, np.nan])
def test_what_is_no_whole_number_in_the_bounds(value):
    with pytest.raises(ValueError, match=r"^n is .*; it must be a whole number from 1 to 3$"):
        whole("n", value, most=3)


@pytest.mark.parametrize("value", [0, 1.0, np.float32(0.5)])
def test_numbers(value):
    found = number("share", value, most=1.0)
    assert found == value
    assert type(found) is float


@pytest.mark.parametrize("value", [-0.1, 1.1, np.inf, np.nan, False, "0", None])
def test_what_is_no_number_in_the_bounds(value):
    with pytest.raises(ValueError, match=r"^share is .*; it must be a number from 0 to 1$"):
        number("share", value, most=1.0)


def test_bounds_are_written_out():
    with pytest.raises(ValueError, match=r"from 1 to 12345678$"):
        whole("n", 0, most=12_345_678)
    with pytest.raises(ValueError, match=r">= 5$"):
        whole("n", 4, least=5)
