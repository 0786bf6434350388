"""Every example in README.md and docs/ runs.

A page's blocks run in order, in one namespace and one empty working directory: ``python`` as
written, ``>>>`` sessions as doctests, and the ``$ metrack`` lines of ``console`` blocks. A ``text``
block is what the ``python`` block above it prints. A line
``<!-- not run: reason -->`` just above a block leaves it out.
"""

import doctest
import os
import re
import subprocess
import sysconfig
import textwrap
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPARK = ROOT / "docs" / "how-to" / "spark.md"  # needs Java; tests/spark runs it
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {SPARK})]
BLOCK = re.compile(
    r"^(?P<skip>[ ]*<!-- not run: .+ -->\n\s*)?"
    r"(?P<indent>[ ]*)```[ ]?(?P<kind>python|pycon|console|text)\b[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)


def run_python(code, where, line, namespace):
    try:
        # The empty lines make tracebacks give the page's own line numbers.
        exec(compile("\n" * (line - 1) + code, where, "exec"), namespace)
    except Exception as error:
        if isinstance(error, SyntaxError):
            line = error.lineno or line
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == where:
                line = frame.lineno
        pytest.fail(f"{where}:{line}: {type(error).__name__}: {error}")


def run_session(code, where, line, namespace):
    test = doctest.DocTestParser().get_doctest(code, namespace, where, where, line - 1)
    test.globs = namespace  # get_doctest copies it, and later blocks may use what this one sets
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    if runner.run(test, out=report.append, clear_globs=False).failed:
        pytest.fail("".join(report))


def run_commands(code, where, line):
    env = os.environ | {"PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"}
    for number, text in enumerate(code.splitlines(), start=line):
        if text.startswith("$ metrack "):
            done = subprocess.run(text[2:], shell=True, env=env, capture_output=True, text=True)
            if done.returncode:
                pytest.fail(f"{where}:{number}: exit code {done.returncode}\n{done.stderr}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    where, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        if block["skip"]:
            continue
        code, line = textwrap.dedent(block["code"]), text.count("\n", 0, block.start("code")) + 1
        if block["kind"] == "console":
            run_commands(code, where, line)
        elif block["kind"] == "pycon" or code.lstrip().startswith(">>>"):
            run_session(code, where, line, namespace)
        elif block["kind"] == "text":
            assert capsys.readouterr().out == code, f"{where}:{line}"
        else:
            capsys.readouterr()  # what was printed before
            run_python(code, where, line, namespace)
