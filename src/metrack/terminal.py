"""What commands print: text that comes from data stands there as it is."""

from rich.console import Console


def plain_console(stderr: bool = False) -> Console:
    """A console that takes nothing for markup: names of features may hold brackets or colons."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def visible(text: str) -> str:
    r"""The text, with what a terminal would obey or hide written as escapes.

    Examples
    --------
    >>> print(visible("temp[c]\x1b[2J"))
    temp[c]\x1b[2J
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
