"""Which set-ups `make test-portable` runs, and what it says of them."""

import pytest

from tests import portable

HASWELL = portable.AVX2 | {"sse2", "pni"}


@pytest.fixture
def ran(monkeypatch):
    found = []
    monkeypatch.setattr(portable, "processor", lambda: HASWELL)
    monkeypatch.setattr(
        portable, "run", lambda set_up, able, more: found.append((set_up.name, able)) or 0
    )
    return found


def test_what_the_processor_cannot_run_is_skipped_and_said(ran, monkeypatch, capsys):
    assert portable.main([]) == 0
    assert ran == [("generic", True), ("haswell", True), ("avx512", False), ("zen", True)]
    said = capsys.readouterr().out
    assert "avx512 (numba: skylake-avx512, OpenBLAS: SkylakeX) skipped, as" in said
    assert "haswell (numba: haswell, OpenBLAS: Haswell), seed 2: passed" in said
    monkeypatch.setattr(portable, "processor", set)
    assert portable.main(["zen"]) == 0
    assert len(ran) == 4
    assert "zen (numba: this processor, OpenBLAS: Zen): skipped" in capsys.readouterr().out


def test_a_set_up_that_fails_fails_the_whole(ran, monkeypatch, capsys):
    monkeypatch.setattr(portable, "run", lambda set_up, *_: int(set_up.name == "generic"))
    assert portable.main([]) == 1
    said = capsys.readouterr().out
    assert "seed 1: FAILED (1)" in said
    assert said.count(": passed in ") == 3


def test_a_name_that_is_no_set_up(ran, capsys):
    assert portable.main(["vax"]) == 2
    assert "no set-up vax; there are generic, haswell, avx512, zen" in capsys.readouterr().out
    assert not ran
