"""The settings of the estimators, for the command line.

Names, defaults and descriptions are read from the estimators' sources, without importing these:
that would take longer than everything else that ``--help`` does.
"""

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from metrack.registry import PAIR_LEARNERS, estimator

if TYPE_CHECKING:
    from metrack.estimators.bases.online import OnlineLearner

LEFT_OUT = {"self", "preprocessor"}  # --items gives the points
ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: : (.+))?$")
REFERENCE = re.compile(r"^As in (\w+)[.,;]?\s*")  # to the entry of the same name there


class Described(NamedTuple):
    """What a docstring says of a setting."""

    kind: str
    text: str


class Setting(NamedTuple):
    """A setting of one estimator."""

    estimator: str
    name: str
    described: Described
    default: str

    @property
    def help(self) -> str:
        """For the option."""
        kind, text = self.described
        return f"{text} {kind[:1].upper()}{kind[1:]}."


@cache
def settings() -> list[Setting]:
    """All settings, estimator by estimator, in the order of their signatures."""
    read = {estimator: _read(module, estimator) for estimator, module in PAIR_LEARNERS.items()}
    described = {estimator: found for estimator, (_, found) in read.items()}
    return [
        Setting(estimator, name, _resolved(described, estimator, name), default)
        for estimator, (defaults, _) in read.items()
        for name, default in defaults.items()
    ]


def _resolved(described: dict[str, dict[str, Described]], estimator: str, name: str) -> Described:
    """A description of its own, where the docstring refers to that of another estimator."""
    kind, text = described[estimator][name]
    reference = REFERENCE.match(text)
    if reference is None:
        return Described(kind, text)
    there = _resolved(described, reference[1], name)
    more = text[reference.end() :]
    return Described(kind or there.kind, f"{there.text} {more[:1].upper()}{more[1:]}".strip())


def value_of(text: str) -> float | str | None:
    """A setting as it was typed: a number, none, or a word."""
    if text.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read(module: str, estimator: str) -> tuple[dict[str, str], dict[str, Described]]:
    """Defaults of an estimator's settings, and what its docstring says of them."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    cls = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == estimator)
    init = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    values = [ast.literal_eval(each) for each in init.args.defaults]
    names = [each.arg for each in init.args.args[-len(values) :]]
    defaults = {n: str(v) for n, v in zip(names, values, strict=True) if n not in LEFT_OUT}
    return defaults, _described(ast.get_docstring(cls) or "")


def _described(docstring: str) -> dict[str, Described]:
    """Each entry under Parameters."""
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, Described] = {}
    names: list[str] = []
    for line in section.splitlines():
        entry = ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            found.update(dict.fromkeys(names, Described((entry[2] or "").replace('"', ""), "")))
        for name in names if line.startswith(" ") else ():
            kind, text = found[name]
            found[name] = Described(kind, f"{text} {line.strip()}".replace("`", "").strip())
    return found


def estimator_in(out: Path) -> str:
    """The one that goes on there; the default where there is none yet."""
    from metrack.storage import has_state, read

    found = read(out).content["learner"]["class"] if has_state(out) else None
    return found if found in PAIR_LEARNERS else "MetricTracker"


def make_estimator(name: str, asked: Mapping[str, Any]) -> "OnlineLearner":
    """An estimator with the settings that were asked for."""
    if name not in PAIR_LEARNERS:
        raise ValueError(f"--estimator {name!r}; choose one of {', '.join(PAIR_LEARNERS)}")
    kind = estimator(name)
    wrong = [each for each in asked if each not in kind().get_params()]
    if wrong:
        raise ValueError(f"--{wrong[0].replace('_', '-')} is no setting of {name}")
    # A run that is interrupted draws the same numbers as one that is not.
    learner: OnlineLearner = kind(**{"random_state": 0, **asked})
    return learner
