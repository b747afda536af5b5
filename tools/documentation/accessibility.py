"""What the theme leaves out for readers who hear a page or use no mouse.

The name of its search, that an empty cell heads nothing, wide tables that the keyboard can scroll, names of the bars above code.
"""

from __future__ import annotations

from typing import Any

SEARCH = 'data-md-component="search" role="dialog"'

SCRIPT = """<script>
const complete = () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach(box => { box.tabIndex = 0 });
  document.querySelectorAll(".md-code__nav").forEach((bar, i) => bar.setAttribute("aria-label", `Code ${i + 1}`));
};
new MutationObserver(complete).observe(document.querySelector("article") || document.body, {childList: true, subtree: true});
complete();
</script>
"""
"""The theme makes both elements when it runs."""


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
    """The dialog of the search has a name; the theme's own elements are completed in the browser."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"').replace("</body>", f"{SCRIPT}</body>")


def on_post_template(output_content: str, *, template_name: str, **_: Any) -> str:
    """The page for an address that does not exist gets the same."""
    return on_post_page(output_content) if template_name.endswith(".html") else output_content
