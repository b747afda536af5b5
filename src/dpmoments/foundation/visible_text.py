"""Text out of a file as it is shown: no character of it that a terminal or a page obeys instead of showing."""

from __future__ import annotations

import re

__all__ = ["visible"]

HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing, or that turn the direction of what follows."""


def visible(text: str) -> str:
    r"""Text in which a name out of a file cannot clear the screen, or hide what stands beside it.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
