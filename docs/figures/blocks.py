"""Parts of pages that are made from figures that are kept: what stands between two comments."""

import re

import matplotlib as mpl

mpl.use("Agg")


def fill(page, blocks):
    """Put each block in place of what stands between ``<!-- its name -->`` and ``<!-- end -->``."""
    for name, block in blocks.items():
        place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, n = place.subn(lambda found, block=block: f"{found[1]}\n{block}\n\n{found[2]}", page)
        if n != 1:
            raise ValueError(f"the page has {n} places for {name!r}")
    return page


def listed(words):
    """As one says it: a, b and c."""
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}"
