"""What the theme leaves unsaid to those who hear a page: the name of its search, and that an empty cell heads nothing."""

from __future__ import annotations

from typing import Any

SEARCH = 'data-md-component="search" role="dialog"'


def on_page_content(html: str, **_: Any) -> str:
    """Empty cells at the head of a table are no headers.

    Examples
    --------
    >>> on_page_content("<tr><th></th><th>rows</th></tr>")
    '<tr><td></td><th>rows</th></tr>'
    """
    for aligned in ("", ' style="text-align: right;"', ' style="text-align: left;"'):
        html = html.replace(f"<th{aligned}></th>", "<td></td>")
    return html


def on_post_page(output: str, **_: Any) -> str:
    """The dialog of the search has a name."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
