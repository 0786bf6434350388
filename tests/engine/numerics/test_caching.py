"""Compiled code on disk: never out of date, and never in the way."""

import inspect
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import metrack
from metrack.engine.numerics import caching, kernels, pairs

# A package that compiles with the engine: its kernel calls a routine of another file, one of the
# engine's, and whichever the type of its first argument names, as a bank finds its representation.
MINE = {
    "__init__.py": "",
    "parts.py": """
from metrack.engine.numerics.kernels import dot, routine

@routine
def part(a):
    return 1.0 * dot(a, a, a.size)
""",
    "whole.py": """
from typing import NamedTuple
from metrack.engine.numerics.dispatch import by_type
from metrack.engine.numerics.kernels import kernel, routine
from mine.parts import part

KNOWN = {}

@by_type(KNOWN)
def extra(form):
    raise NotImplementedError

@kernel
def total(form, a):
    return part(a) + extra(form)

class Own(NamedTuple):
    x: float

class Plain:
    @routine
    def extra(form):
        return form.x

KNOWN[Own] = Plain
""",
}
GUEST = """
import sys
from typing import NamedTuple
from metrack.engine.numerics.kernels import routine
from mine.whole import KNOWN

class Form(NamedTuple):
    x: float

@routine
def extra(form):
    return 100.0 * form.x

KNOWN[Form] = sys.modules[__name__]
"""
USE = """
import numpy as np
from guest import Form
from mine.whole import total
def used():
    return total(Form(2.0), np.arange(4.0)), sum(total.stats.cache_hits.values())
"""


class Installation:
    """A copy of the package and two that use it, which a test may edit."""

    def __init__(self, folder):
        self.folder = folder
        package = Path(metrack.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, folder / "metrack", ignore=ignored)
        (folder / "mine").mkdir()
        for name, text in MINE.items():
            (folder / "mine" / name).write_text(text)
        (folder / "guest.py").write_text(GUEST)
        where = Path(inspect.getfile(kernels.dot.py_func)).relative_to(package)
        self.routines = folder / "metrack" / where
        self.user_cache = folder / "user"

    def run(self, code="", path=None, **variables):
        """What the kernel gives in a process of its own, whether it was on disk, and warnings."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | variables
        env["PYTHONPATH"] = os.pathsep.join(map(str, [path or self.folder, self.folder]))
        env |= dict.fromkeys(["HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"], str(self.user_cache))
        run = subprocess.run(
            [sys.executable, "-B", "-c", f"{USE}{code}\nprint(*used())"],
            env=env,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        value, hits = run.stdout.split()
        return float(value), int(hits), run.stderr

    def edit(self, file, old, new):
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path)


def test_compiled_code_follows_every_source_that_it_rests_on(installation):
    assert installation.run() == (214.0, 0, "")
    assert installation.run() == (214.0, 1, "")
    inner_product = "total = 0.0", "total = 0.5"
    installation.edit(installation.routines, *inner_product)
    assert installation.run() == (214.5, 0, "")
    installation.edit(installation.folder / "mine" / "parts.py", "1.0 *", "2.0 *")
    assert installation.run() == (229.0, 0, "")
    installation.edit(installation.folder / "guest.py", "100.0", "300.0")
    assert installation.run() == (629.0, 0, "")
    installation.edit(installation.folder / "guest.py", "300.0", "100.0")
    installation.edit(installation.folder / "mine" / "parts.py", "2.0 *", "1.0 *")
    installation.edit(installation.routines, *inner_product[::-1])
    assert installation.run() == (214.0, 1, "")


def test_what_runs_while_sources_are_edited_is_not_kept(installation):
    """It was imported before the edit: its code is not that of the files."""
    edit = f"from pathlib import Path; file = Path({str(installation.routines)!r})\n"
    edit += "file.write_text(file.read_text().replace('total = 0.0', 'total = 0.5', 1))"
    assert installation.run(edit) == (214.0, 0, "")
    assert installation.run() == (214.5, 0, "")


def test_code_for_a_guest_is_no_matter_to_those_without_it(installation):
    """What one process compiled for types of another package is not even read by others."""
    own = "def used():\n    from mine.whole import Own\n"
    own += "    return total(Own(2.0), np.arange(4.0)), sum(total.stats.cache_hits.values())"
    both = f"{own}\ntotal(Form(2.0), np.arange(4.0))"
    assert installation.run(both) == (16.0, 0, "")
    (installation.folder / "guest.py").write_text("Form = None  # it is another module now")
    assert installation.run(own) == (16.0, 1, "")


def test_zipped(installation):
    archive = installation.folder / "metrack.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (installation.folder / "metrack").rglob("*.py"):
            file.write(path, path.relative_to(installation.folder))
    shutil.rmtree(installation.folder / "metrack")
    assert installation.run(path=archive) == (214.0, 0, "")
    assert list(installation.user_cache.rglob("*.nbc"))
    assert installation.run(path=archive) == (214.0, 1, "")
    # Nor can anything be written now.
    shutil.rmtree(installation.user_cache)
    installation.user_cache.write_text("a file, not a folder")
    value, hits, said = installation.run(path=archive)
    assert (value, hits) == (214.0, 0)
    assert said.count("NUMBA_CACHE_DIR") == 1


def test_nowhere_to_write_is_said_once(installation):
    file = installation.folder / "guest.py"
    two = "total(Form(1.0), np.arange(8.0)[::2])"
    value, hits, said = installation.run(two, NUMBA_CACHE_DIR=str(file / "below"))
    assert (value, hits) == (214.0, 0)
    assert said.count("NUMBA_CACHE_DIR") == 1
    assert str(file) in said


def test_a_warm_cache_needs_no_place_to_write(installation):
    warm = str(installation.folder / "warm")
    assert installation.run(NUMBA_CACHE_DIR=warm) == (214.0, 0, "")
    frozen = "import os, pathlib\ndef refuse(*_, **__): raise PermissionError(13, 'read-only')\n"
    frozen += "os.utime = os.replace = os.mkdir = pathlib.Path.write_bytes = refuse"
    assert installation.run(frozen, NUMBA_CACHE_DIR=warm) == (214.0, 1, "")


def test_a_damaged_file_is_compiled_anew(installation):
    warm = installation.folder / "warm"
    installation.run(NUMBA_CACHE_DIR=str(warm))
    (file,) = warm.rglob("*.nbc")
    content = file.read_bytes()
    file.write_bytes(content[:1000])
    assert installation.run(NUMBA_CACHE_DIR=str(warm)) == (214.0, 0, "")
    assert installation.run(NUMBA_CACHE_DIR=str(warm)) == (214.0, 1, "")


def test_without_a_compiler(installation):
    code = "def used():\n    from metrack.engine.numerics.kernels import dot\n"
    code += "    return dot(np.arange(4.0), np.arange(4.0), 4), 0"
    assert installation.run(code, NUMBA_DISABLE_JIT="1") == (14.0, 0, "")


def test_old_states_go(tmp_path):
    for age in range(10):
        caching.write(tmp_path, Path(f"engine-{age:016x}", f"mine-{age:016x}", "code.nbc"), b"")
        os.utime(tmp_path / f"engine-{age:016x}", (1e9 + age, 1e9 + age))
    for other in ("engine-results", "engine", "engine-1", f"other-{1:016x}"):
        (tmp_path / other).mkdir()
    caching.mark_used(tmp_path, Path(f"engine-{6:016x}", "code.nbc"))
    caching.write(tmp_path, Path(f"engine-{10:016x}", "code.nbc"), b"x")
    kept = {f"engine-{age:016x}" for age in (6, 8, 9, 10)}
    others = {"engine-results", "engine", "engine-1", f"other-{1:016x}"}
    assert {path.name for path in tmp_path.iterdir()} == kept | others


@pytest.mark.parametrize(
    ("module", "name"), [(kernels, "fill"), (kernels, "dot"), (pairs, "row_times")]
)
def test_a_routine_called_from_python_says_what_to_do(module, name):
    """Without a bridge from Python objects the interpreter would crash."""
    with pytest.raises(TypeError, match=rf"{name} is compiled .*njit.*py_func"):
        getattr(module, name)(np.ones(3), np.ones(3), 3)


class Impatient:
    """A timer that goes off as soon as it is started."""

    def __init__(self, seconds, function):
        self.start = function

    def cancel(self):
        pass


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_compilation_is_announced_once(terminal, monkeypatch, capsys, caplog):
    kernels.tell_of_compilation.cache_clear()
    monkeypatch.setattr(kernels, "Timer", Impatient)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    caplog.set_level("INFO", logger="metrack")
    twice = kernels.kernel(lambda x: 2 * x)
    assert (twice(2), twice(2.5)) == (4, 5.0)
    on_terminal, logged = capsys.readouterr().err, caplog.text
    assert on_terminal.count("compiling") == (1 if terminal else 0)
    assert logged.count("compiling") == (0 if terminal else 1)
