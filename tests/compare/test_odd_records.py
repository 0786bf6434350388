"""Records as they come: empty, long, in any script, with fields missing or new; plain errors."""

import numpy as np
import pytest

from metrack.compare import Comparisons


def finite(found):
    u = np.asarray(found)
    return bool(np.isfinite(u).all() and u.min() >= 0.0 and u.max() <= 1.0)


@pytest.mark.parametrize(
    "value",
    ["", "   ", "!?", "\ud800", "\x00", "水", "e\u0301", "😀" * 50, "a" * 10_000, "w " * 5_000],
)
def test_any_text_compares(value):
    records = [{"t": value, "u": "x1"}, {"t": "plain words", "u": None}]
    compare = Comparisons().fit(records)
    found = compare.transform(records, rows=[[0, 0], [0, 1], [1, 0], [1, 1]])
    assert finite(found)
    differs = [i for i, name in enumerate(found.names) if "missing" not in name]
    assert np.allclose(np.asarray(found)[[0, 3]][:, differs], 0.0, atol=1e-7)


def test_letters_of_two_forms_are_the_same():
    left, right = [{"t": "Cafe\u0301 Straße"}], [{"t": "CAFÉ STRASSE"}]
    u = Comparisons().fit(left, right).transform(left, right)
    assert np.allclose(u, 0.0, atol=1e-7)


def test_a_column_missing_on_one_side_is_missing_in_each_pair():
    left, right = [{"title": "a b", "price": 3}], [{"title": "a b"}]
    u = Comparisons().fit(left, right).transform(left, right)
    named = dict(zip(u.names, np.asarray(u)[0], strict=True))
    assert named["price: missing"] == 1.0
    assert sum(named.values()) == 1.0


def test_a_field_that_is_new_is_told_of_and_left_out():
    compare = Comparisons().fit([{"title": "a"}])
    with pytest.warns(UserWarning, match="'colour' was not there in fit"):
        found = compare.transform([{"title": "a", "colour": "red"}], [{"title": "a"}])
    assert found.names == compare.get_feature_names_out().tolist()


def test_text_among_numbers_is_missing():
    left = [{"price": 1.0}] * 30
    compare = Comparisons().fit(left)
    u = compare.transform([{"price": "call us"}], [{"price": 2.0}])
    assert np.asarray(u)[0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([], "there are no records"),
        ([{}], "there are no records"),
        ({"title": ["a"]}, "left must be a DataFrame or a list of dicts"),
        ("title", "left must be a DataFrame or a list of dicts"),
        (None, "left must be a DataFrame or a list of dicts"),
        ([{"t": "a"}, ["a"]], r"left\[1\] is list, and no record"),
    ],
)
def test_what_is_no_table_is_refused(left, words):
    with pytest.raises(ValueError, match=words):
        Comparisons().fit(left)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("title", "give 'auto', or a dict"),
        ({}, "give 'auto', or a dict"),
        ({"title": "words"}, r"fields\['title'\]='words'; choose one of 'text'"),
        ({"name": "text"}, "fields has 'name', which no record has; there are title"),
    ],
)
def test_fields_that_cannot_be_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Comparisons(fields).fit([{"title": "a"}])


def test_tables_without_a_common_field_are_refused():
    with pytest.raises(ValueError, match="left has title, price; right has Title"):
        Comparisons().fit([{"title": "a", "price": 1}], [{"Title": "a"}])


def test_steps_are_yes_or_no():
    with pytest.raises(ValueError, match="steps=3; choose one of False, True"):
        Comparisons(steps=3).fit([{"title": "a"}])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (None, "left has 2 records and right 1"),
        ([[0, 1]], r"rows\[0, 1\] = 1; right has 1 records"),
        ([[-1, 0]], r"rows\[0, 0\] = -1; left has 2 records"),
        ([[0.0, 0.0]], "rows must be whole numbers"),
        ([0, 0], "rows must be whole numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows, words):
    left, right = [{"t": "a"}, {"t": "b"}], [{"t": "a"}]
    with pytest.raises(ValueError, match=words):
        Comparisons().fit(left, right).transform(left, right, rows)


def test_one_table_needs_rows():
    with pytest.raises(ValueError, match="one table: give rows"):
        Comparisons().fit([{"t": "a"}]).transform([{"t": "a"}])


def test_embeddings_of_two_lengths_are_refused():
    records = [{"v": [1.0, 2.0]}, {"v": [1.0, 2.0, 3.0]}]
    with pytest.raises(ValueError, match="an embedding has 3 numbers, and others 2"):
        Comparisons().fit(records).transform(records, rows=[[0, 1]])
