"""Self-contained HTML pages: text, tables and plotly figures in one file that asks no server.

Needs the ``plots`` extra for figures, and imports it only when a page with figures is written.
"""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2 { line-height: 1.2; margin: 1.6em 0 0.5em; }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3em; }
th, td { padding: 0.25em 0.9em; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.scroll { overflow-x: auto; }
"""


def figure_text(text: str) -> str:
    """Text for a figure, where plotly takes tags and entities for markup.

    Examples
    --------
    >>> figure_text("<b>R&D</b>")
    '&lt;b&gt;R&amp;D&lt;/b&gt;'
    """
    return html.escape(text, quote=False)  # it knows no entities for quotes


def check_available() -> None:
    """Raise an ImportError that says what to install, unless figures can be drawn."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise ImportError("HTML figures need plotly: pip install 'metrack[plots]'") from None


class Page:
    """A page that grows from the top; all text is escaped.

    Parameters
    ----------
    title : str

    Examples
    --------
    >>> page = Page("Losses").paragraph("By method.").table(["method", "loss"], [["SADL", 0.31]])
    >>> "<td>0.31</td>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []
        self._n_figures = 0

    def heading(self, text: str) -> Self:
        """Start a section."""
        return self._add(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str) -> Self:
        """Add plain text."""
        return self._add(f"<p>{html.escape(text)}</p>")

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = ""
    ) -> Self:
        """Add a table; numbers come as they are to be read."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n"
            for row in rows
        )
        above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        return self._add(
            f'<div class="scroll"><table>{above}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}</tbody></table></div>"
        )

    def figure(self, figure: "Figure") -> Self:
        """Add a plotly figure."""
        check_available()
        from plotly.io import to_html

        self._n_figures += 1
        return self._add(
            to_html(
                figure,
                full_html=False,
                include_plotlyjs=False,
                div_id=f"figure-{self._n_figures}",  # a random one would differ from run to run
                config={"displaylogo": False, "responsive": True},
            )
        )

    def _add(self, part: str) -> Self:
        self._parts.append(part)
        return self

    def html(self) -> str:
        """The page as text; plotly's script is in it, once, where there are figures."""
        title = html.escape(self.title)
        script = ""
        if self._n_figures:
            from plotly.offline import get_plotlyjs

            script = f"<script>{get_plotlyjs()}</script>\n"
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n{script}</head>\n<body>\n"
            f"<h1>{title}</h1>\n" + "\n".join(self._parts) + "\n</body>\n</html>\n"
        )

    def write(self, path: Path) -> None:
        """Write the page as one file."""
        path.write_text(self.html(), encoding="utf-8")
