"""Reads the figures of an HTML page back."""

import json
import re


def figures(text):
    """The data and layout of each figure on a page."""
    decode = json.JSONDecoder().raw_decode
    found = []
    for start in re.finditer(r'Plotly\.newPlot\(\s*"[^"]*",\s*', text):
        data, end = decode(text, start.end())
        layout, _ = decode(text, text.index("{", end))
        found.append((data, layout))
    return found
