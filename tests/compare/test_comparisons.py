"""Comparisons: what pairs of records come to, held against a few lines of plain Python."""

import math
import re
from collections import Counter
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import SplineTransformer

from metrack import MetricTracker
from metrack.compare import Comparisons, catalogues
from metrack.compare.steps import STEPS, in_steps

LEFT = [
    {"title": "Canon EOS 5D Mark III", "maker": "Canon", "price": "1,999.00"},
    {"title": "Nikon D90 body, black", "maker": "Nikon", "price": "$ 450"},
    {"title": "Leica", "maker": None, "price": ""},
]
RIGHT = [
    {"title": "canon eos-5d mark iii", "maker": "CANON", "price": 1999.0},
    {"title": "nikon d-90", "maker": "", "price": 225},
    {"title": "Sony Alpha 7", "maker": "Sony", "price": None},
]


def squares(compare, left, right, rows=None):
    """Comparisons by name, of each pair."""
    found = compare.transform(left, right, rows)
    return [dict(zip(found.names, row, strict=True)) for row in np.asarray(found) ** 2]


class Oracle:
    """Texts compared by dictionaries."""

    def __init__(self, texts, split):
        self.split = split
        sets = [set(split(text)) for text in texts]
        self.n = sum(1 for each in sets if each)
        self.seen = Counter(term for each in sets for term in each)

    def weight(self, term):
        return math.log1p((self.n + 1) / (self.seen[term] + 1))

    def cosine(self, a, b):
        a, b = (
            {term: n * self.weight(term) for term, n in Counter(self.split(text)).items()}
            for text in (a, b)
        )
        product = sum(a[term] * b[term] for term in a.keys() & b.keys())
        return product / math.hypot(*a.values()) / math.hypot(*b.values())

    def contained(self, a, b):
        a, b = set(self.split(a)), set(self.split(b))
        common, *totals = (sum(map(self.weight, each)) for each in (a & b, a, b))
        return common / min(totals)


def words(text):
    return re.findall(r"\w+", text.casefold())


def letters(text):
    return [f" {word} "[i : i + 3] for word in words(text) for i in range(len(word))]


TEXT = st.text(alphabet="abcA1 -äß水😀", min_size=1, max_size=20).filter(words)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8))
def test_texts_compare_as_dictionaries_do(pairs):
    left, right = ([{"t": each[i]} for each in pairs] for i in (0, 1))
    compare = Comparisons({"t": "text"}).fit(left, right)
    texts = [text for side in zip(*pairs, strict=True) for text in side]
    by_words, by_letters = Oracle(texts, words), Oracle(texts, letters)
    for (a, b), found in zip(pairs, squares(compare, left, right), strict=True):
        assert found["t: words"] == pytest.approx(1 - by_words.cosine(a, b), abs=1e-9)
        assert found["t: letters"] == pytest.approx(1 - by_letters.cosine(a, b), abs=1e-9)
        assert found["t: contained"] == pytest.approx(1 - by_words.contained(a, b), abs=1e-9)


def test_kinds_are_told_by_the_values():
    records = [
        {
            "year": "1994",
            "price": "1.299,00",
            "post code": "01234",
            "telephone": 4915112345678,
            "when": "2024-02-29",
            "day": date(2024, 1, 1),
            "sold": True,
            "embedding": [0.1, 0.2],
            "name": "Ü",
            "nothing": None,
        }
    ]
    assert Comparisons().fit(records).fields_ == {
        "year": "number",
        "price": "number",
        "post code": "text",
        "telephone": "text",
        "when": "date",
        "day": "date",
        "sold": "exact",
        "embedding": "vector",
        "name": "text",
        "nothing": "text",
    }


def test_nothing_differs_between_the_same_and_all_differs_by_at_most_1():
    compare = Comparisons().fit(LEFT, RIGHT)
    same = np.asarray(compare.transform(LEFT, LEFT))
    missing = ["missing" in name for name in compare.get_feature_names_out()]
    assert np.allclose(same[:, np.logical_not(missing)], 0.0, atol=1e-7)
    rows = [[i, j] for i in range(3) for j in range(3)]
    u = np.asarray(compare.transform(LEFT, RIGHT, rows))
    assert u.min() >= 0.0
    assert u.max() <= 1.0


def test_numbers_compare_also_as_text():
    first, second, third = squares(Comparisons().fit(LEFT, RIGHT), LEFT, RIGHT)
    assert first["price: difference"] == first["price: other"] == 0.0
    assert second["price: difference"] == pytest.approx(0.5)
    assert second["price: other"] == 1.0
    assert third["price: missing"] == 1.0
    assert third["price: difference"] == third["price: other"] == 0.0


def test_codes_are_the_same_however_they_are_joined():
    first, second, _ = squares(Comparisons().fit(LEFT, RIGHT), LEFT, RIGHT)
    assert first["title: codes"] == 0.0
    assert second["title: codes"] == 0.0  # d90 and d-90


def test_days_embeddings_and_what_is_exact():
    left = [{"d": "2024-01-01", "v": [1.0, 0.0], "e": "A"}] * 3
    right = [
        {"d": "2024-01-01", "v": [2.0, 0.0], "e": "a "},
        {"d": "2024-01-02", "v": [0.0, 1.0], "e": "b"},
        {"d": "soon", "v": None, "e": None},
    ]
    kinds = {"d": "date", "v": "vector", "e": "exact"}
    same, other, missing = squares(Comparisons(kinds).fit(left, right), left, right)
    assert sum(same.values()) == 0.0
    assert other["d: difference"] == pytest.approx(math.log(2) / math.log(36526))
    assert other["v: angle"] == other["e: other"] == other["d: other"] == 1.0
    assert missing == {name: float("missing" in name) for name in missing}  # nothing else differs


def test_short_texts_by_edits():
    pytest.importorskip("rapidfuzz")
    compare = Comparisons({"name": "short"}).fit([{"name": "Smith"}])
    same, near, far = squares(
        compare, [{"name": "Smith"}] * 3, [{"name": "smith"}, {"name": "Smyth"}, {"name": "Xu"}]
    )
    assert same["name: edits"] == 0.0
    assert 0.0 < near["name: edits"] < far["name: edits"] <= 1.0
    assert 0.0 < near["name: beginning"] < far["name: beginning"] <= 1.0


def test_a_table_prepared_once_compares_as_it_does():
    compare = Comparisons().fit(LEFT, RIGHT)
    first, second = compare.prepare(LEFT), compare.prepare(RIGHT)
    rows = [[2, 0], [0, 2], [1, 1]]
    found = compare.transform(first, second, rows)
    assert np.array_equal(found, compare.transform(LEFT, RIGHT, rows))
    assert np.array_equal(found[:1], compare.transform(LEFT[2:], RIGHT[:1]))


class Frame:
    """As much of a DataFrame as is asked for."""

    def __init__(self, **columns):
        self.data = columns

    columns = property(lambda self: list(self.data))

    def __getitem__(self, name):
        return self.data[name]

    def __len__(self):
        return len(next(iter(self.data.values())))


def test_frames_are_tables_and_their_gaps_are_missing():
    frame = Frame(title=[each["title"] for each in LEFT], price=[1999.0, math.nan, 3.0])
    prices = [1999.0, None, 3.0]
    records = [{"title": t, "price": p} for t, p in zip(frame["title"], prices, strict=True)]
    compare = Comparisons().fit(frame)
    found = compare.transform(frame, rows=[[0, 1], [1, 2]])
    assert np.array_equal(found, compare.transform(records, rows=[[0, 1], [1, 2]]))
    assert squares(compare, frame, frame)[1]["price: missing"] == 1.0


def test_a_stream_learns_new_words():
    compare = Comparisons().fit(LEFT, RIGHT)
    records = [{"title": f"canon {i}"} for i in range(50)]
    left, right = [{"title": "canon m1"}], [{"title": "canon m2"}]
    before = squares(compare, left, right)[0]["title: words"]
    compare.partial_fit(records)
    assert squares(compare, left, right)[0]["title: words"] > before  # canon says less now
    whole = Comparisons().fit(LEFT, RIGHT)
    for record in records:
        whole.partial_fit([record])
    assert np.array_equal(whole.transform(LEFT, RIGHT), compare.transform(LEFT, RIGHT))


def test_a_tracker_learns_from_it_under_its_names():
    left, right, same = catalogues(60)
    compare = Comparisons().fit(left, right)
    others = np.column_stack([same[:, 0], np.roll(same[:, 1], 1)])
    u = compare.transform(left, right, np.concatenate([same, others]))
    y = np.repeat([1, -1], len(same))
    tracker = MetricTracker().fit(u, y)
    assert tracker.feature_names_in_.tolist() == compare.get_feature_names_out().tolist()
    assert tracker.score(u, y) > 0.95


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_steps_are_a_linear_spline(values):
    c = np.array(values)
    spline = SplineTransformer(degree=1, knots=np.array([[0.0], [1 / 3], [2 / 3], [1.0]]))
    expected = spline.fit(np.zeros((2, 1))).transform(c[:, None])[:, 1:]
    assert np.allclose(np.column_stack(in_steps("t: words", c)), expected, atol=1e-12)


def test_steps_are_told_of_what_is_not_just_yes_or_no():
    whole, steps = (Comparisons(steps=each).fit(LEFT, RIGHT) for each in (False, True))
    named, told = (squares(each, LEFT, RIGHT) for each in (whole, steps))
    for before, after in zip(named, told, strict=True):
        assert after["price: missing"] == before["price: missing"]
        for name, value in before.items():
            own = [after[f"{name}, {step}"] for step in STEPS if f"{name}, {step}" in after]
            assert own or after[name] == value
            if own:
                assert sum(own) == pytest.approx(min(3.0 * value, 1.0))
    assert set(told[0]) == set(steps.get_feature_names_out())
    assert "title: words, a little" in told[0]
    assert np.allclose(np.asarray(steps.transform(LEFT, LEFT))[0], 0.0, atol=1e-7)


def test_settings_are_as_in_scikit_learn():
    compare = clone(Comparisons({"title": "text"}))
    assert compare.get_params() == {"fields": {"title": "text"}, "steps": False}
    assert compare.fit_transform(LEFT, RIGHT).shape == (3, 6)
    assert "title: codes" in compare.get_feature_names_out()
