import subprocess
import sys
import types
from importlib.metadata import version

import pytest

from metrack import cli


def metrack(*args):
    command = [sys.executable, "-m", "metrack.cli", *args]
    return subprocess.run(command, capture_output=True, text=True)


def test_version():
    assert metrack("--version").stdout == f"metrack {version('metrack')}\n"


@pytest.mark.parametrize("command", [[], ["demo"], ["reproduce", "synthetic"]])
def test_help_is_at_hand(command):
    run = metrack(*command, "--help")
    assert run.returncode == 0
    assert "Usage" in run.stdout
    assert not command or "Example: metrack" in run.stdout


@pytest.mark.parametrize(
    "args", [["demo", "--pairs", "0"], ["demo", "--seed", "x"], ["no-such-command"]]
)
def test_wrong_use_exits_2(args):
    run = metrack(*args)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("pairs: row 3 is NaN;\n drop it"), 2, "pairs: row 3 is NaN; drop it"),
        (PermissionError(13, "Permission denied", "demo"), 1, "demo: permission denied"),
        (ImportError("install plots"), 1, "install plots"),
    ],
)
def test_errors_are_one_line_without_traceback(error, code, words, monkeypatch, capsys):
    def run(out, seed, n_pairs):
        raise error

    monkeypatch.setitem(sys.modules, "metrack.experiments.demo", types.SimpleNamespace(run=run))
    monkeypatch.setattr(sys, "argv", ["metrack", "demo"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == code
    assert capsys.readouterr().err == f"metrack: {words}\n"
