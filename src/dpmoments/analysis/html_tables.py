"""Tables for notebooks: one that is wider than the screen scrolls in a box of its own."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

__all__ = ["html_table"]


def html_table(table: Sequence[Sequence[str]], escaped: Callable[[str], str] = html.escape) -> str:
    """A table as HTML, its first column to the left and numbers to the right.

    Parameters
    ----------
    table : sequence of sequences of str
        The head first.
    escaped : callable
        A cell as HTML may hold it.

    Examples
    --------
    >>> html_table([("feature", "mean"), ("<age>", "38.5")]).count("&lt;age&gt;")
    1
    """
    head, *rows = table
    lines = [_row("th", head, escaped), *(_row("td", row, escaped) for row in rows)]
    return f'<div style="overflow-x:auto"><table>{"".join(lines)}</table></div>'


def _row(tag: str, cells: Sequence[str], escaped: Callable[[str], str]) -> str:
    shown = (
        f'<{tag} style="text-align:{"right" if place else "left"}">{escaped(cell)}</{tag}>'
        for place, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"
