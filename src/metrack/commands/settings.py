"""Options of the command line for every setting of the trackers.

Settings, defaults and descriptions are read from the trackers' sources, without importing these:
that would take longer than everything else that ``--help`` does.
"""

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from metrack.registry import PAIR_LEARNERS

LEFT_OUT = {"self", "preprocessor"}  # --items gives the points
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.+)$")


class Setting(NamedTuple):
    """One setting, and which trackers have it."""

    name: str
    kind: str
    text: str
    defaults: dict[str, str]  # by tracker

    @property
    def help(self) -> str:
        """For the option."""
        trackers: dict[str, list[str]] = {default: [] for default in self.defaults.values()}
        for tracker, default in self.defaults.items():
            trackers[default].append(tracker)
        listed = "; ".join(f"{', '.join(each)}: {default}" for default, each in trackers.items())
        return f"{self.text} {self.kind[:1].upper()}{self.kind[1:]}. [default: {listed}]"


def settings() -> list[Setting]:
    """All settings of all trackers, in the order of their signatures."""
    found: dict[str, Setting] = {}
    for tracker, module in PAIR_LEARNERS.items():
        defaults, described = _read(module, tracker)
        for name, default in defaults.items():
            kind, text = described.get(name, ("", ""))
            setting = found.setdefault(name, Setting(name, kind, text, {}))
            setting.defaults[tracker] = default
            if not setting.kind:
                found[name] = setting._replace(kind=kind, text=text)
    return list(found.values())


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


def _read(module: str, tracker: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Defaults of a tracker's settings, and what its docstring says of them."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    cls = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == tracker)
    init = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    values = [ast.literal_eval(each) for each in init.args.defaults]
    names = [each.arg for each in init.args.args[-len(values) :]]
    defaults = {n: str(v) for n, v in zip(names, values, strict=True) if n not in LEFT_OUT}
    return defaults, _described(ast.get_docstring(cls) or "")


def _described(docstring: str) -> dict[str, tuple[str, str]]:
    """Type and description of each entry under Parameters."""
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in section.splitlines():
        entry = ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            found.update(dict.fromkeys(names, (entry[2].replace('"', ""), "")))
        elif line.startswith(" "):
            for name in names:
                kind, text = found[name]
                found[name] = kind, f"{text} {line.strip()}".strip().replace("``", "")
        else:
            names = []
    return found
