"""What a tracker tells of drift."""

import re
from xml.etree import ElementTree

import numpy as np

from metrack.estimators.reading.drift_report import DriftReport

REPORT = DriftReport(
    effective_window=120.4,
    pairs_since_change=1500,
    features=np.array(["b", "<c>", "a"], dtype=object),
    change=np.array([0.01, -0.3, 0.2]),  # of a, b and <c>
)


def test_most_changed_come_first_with_their_own_change():
    assert REPORT.most_changed() == [("b", -0.3), ("<c>", 0.2), ("a", 0.01)]
    assert REPORT.most_changed(1) == [("b", -0.3)]


def test_html_tells_the_same_and_takes_no_name_for_markup():
    text = REPORT._repr_html_()
    tree = ElementTree.fromstring(f"<div>{text}</div>")
    rows = [[cell.text for cell in row] for row in tree.iter("tr")][1:]
    assert rows == [["b", "-30.0%"], ["<c>", "+20.0%"], ["a", "+1.0%"]]
    assert "rests on: 120. Pairs since the last change, or the start: 1,500." in text
    many = REPORT._replace(features=np.arange(300), change=np.linspace(1, 0, 300))
    assert len(re.findall("<tr>", many._repr_html_())) == 11
    assert "and 290 more" in many._repr_html_()
