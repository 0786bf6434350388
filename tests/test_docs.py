"""The pages say what the code does; tests/test_examples.py runs their examples."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import metrack
import metrack.evaluate
import metrack.plots
import metrack.river
import metrack.stores
import metrack.streams
from docs.figures import (
    make_label_page,
    make_learners_table,
    make_real_drift,
    make_search_page,
    make_stores_page,
)
from docs.studies import make_tables
from metrack.estimators.bases.linear import FrozenMetric
from metrack.estimators.reading.drift_report import DriftReport
from metrack.tracking.loop import track

DOCS = Path(__file__).parents[1] / "docs"
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (metrack, metrack.evaluate, metrack.stores, metrack.streams)
    for name in module.__all__
}
PUBLIC |= {f"metrack.river.{name}": getattr(metrack.river, name) for name in metrack.river.__all__}
PUBLIC |= {
    f"{each.__module__}.{each.__name__}": each
    for each in (DriftReport, FrozenMetric, metrack.plots.tracking, track)
}
ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?: : (?P<kind>.+))?$", re.MULTILINE)


def parameters(thing):
    """Names and type of each entry under Parameters."""
    section = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n", section, maxsplit=1)[0]
    return [(each["names"].split(", "), each["kind"]) for each in ENTRY.finditer(section)]


def default(thing, name):
    found = inspect.signature(thing).parameters.get(name)
    return inspect.Parameter.empty if found is None else found.default


@pytest.mark.parametrize("name", PUBLIC)
def test_api_page_has_all_that_is_public(name):
    listed = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert name in listed or name.rpartition(".")[0] in listed


def test_the_studies_page_has_their_numbers():
    assert make_tables.filled() == make_tables.PAGE.read_text(encoding="utf-8")


def test_the_page_of_tracking_has_the_learners_of_today():
    assert make_learners_table.filled() == make_learners_table.PAGE.read_text(encoding="utf-8")


def test_the_page_of_real_drift_has_what_was_measured():
    assert make_real_drift.filled() == make_real_drift.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("maker", [make_label_page, make_search_page, make_stores_page])
def test_how_tos_have_what_was_measured(maker):
    assert maker.filled() == maker.PAGE.read_text(encoding="utf-8")


def test_the_page_of_search_takes_sixty_lines():
    page = (DOCS / "how-to" / "search.md").read_text(encoding="utf-8")
    code = re.findall(r"<!-- (?:code|encoder) -->\n```python\n(.*?)```", page, re.DOTALL)
    assert len(code) == 4
    assert sum(bool(line.strip()) for each in code for line in each.splitlines()) <= 60


def test_api_page_names_what_there_is():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    chosen = re.findall(r"^::: (\S+)\n    options:\n      members: \[(.*)\]$", page, re.MULTILINE)
    assert chosen
    for module, members in chosen:
        for member in members.split(", "):
            assert getattr(importlib.import_module(module), member).__module__ == module


# The API page gives all settings of an entry the type and default of the first one, and takes the
# first of some choices for the default.
@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_give_the_defaults(name):
    thing = PUBLIC[name]
    for names, kind in parameters(thing):
        defaults = {repr(default(thing, each)) for each in names}
        assert len(defaults) == 1, f"{', '.join(names)} have different defaults"
        if kind and kind.startswith("{"):
            choices = ast.literal_eval(f"[{kind[1 : kind.index('}')]}]")
            assert defaults == {repr(choices[0])}, f"{names}: the default comes first"


def test_index_is_rebuilt_less_often_than_it_is_asked():
    """Measured over five seeds: 5 to 12 times of 40."""
    page = (DOCS / "how-to" / "index-current.md").read_text(encoding="utf-8")
    namespace = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(code, namespace)
    assert 2 <= namespace["rebuilt"] <= 20
