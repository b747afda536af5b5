"""Names as pictures and notebooks show them: they are data, and may hold anything."""

from __future__ import annotations

__all__ = ["LONGEST_LABEL", "escaped", "label"]

LONGEST_LABEL = 26


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    r"""A name as a picture shows it: control characters escaped, and no longer than there is room for.

    Examples
    --------
    >>> print(label("income $"), label("a\x1b[2Jb\n"), label("capital-gain-of-the-whole-household"))
    income $ a\x1b[2Jb\n capital-gain-of-the-whole…
    """
    shown = "".join(letter if letter.isprintable() else escaped(letter) for letter in name[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def escaped(letter: str) -> str:
    """The number of a letter, as Python writes it."""
    return letter.encode("unicode_escape", "backslashreplace").decode("ascii")
