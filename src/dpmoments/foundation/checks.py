"""Checks of the names, rules and texts of columns of every kind."""

from __future__ import annotations

import re

from dpmoments.foundation.values import shown

__all__ = ["LONGEST_DESCRIPTION", "check_choice", "check_description", "check_name", "check_text", "number_as_text"]

LONGEST_DESCRIPTION = 300
"""Characters."""


def check_name(name: object) -> None:
    """Raise unless ``name`` is non-empty text that a file can hold."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a column's name is a non-empty string, got {shown(name)}")
    check_text(name, "a column's name")


def check_text(text: str, what: str) -> None:
    """Raise unless a file can hold ``text``."""
    # Checked here, because a failure to write the file of a release would come after its budget is spent.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what}, {text!r}, is not valid Unicode text (it holds half of a surrogate pair)") from None


def check_choice(column: str, option: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"column {column!r}: {option}={shown(value)} must be one of {', '.join(map(repr, choices))}")


def check_description(column: str, description: object) -> None:
    """Raise unless ``description`` is None or one line of printable text.

    Control characters, line ends and marks that turn the direction of writing could make a page or a terminal show what the
    text does not say.
    """
    if description is None:
        return
    if not isinstance(description, str) or not description.strip():
        raise TypeError(f"column {column!r}: description={shown(description)} must be a text, or left out")
    if len(description) > LONGEST_DESCRIPTION or not description.isprintable():
        raise ValueError(
            f"column {column!r}: its description must be one line of printable characters, {LONGEST_DESCRIPTION} at most"
        )


def number_as_text(text: str) -> str:
    """What is wrong with a text where a number must be, and how the number is written, in words.

    Examples
    --------
    >>> print(number_as_text("1,000"))
    must be a number, got the text '1,000': write 1000
    >>> print(number_as_text("1,5"))
    must be a number, got the text '1,5': write 1.5
    """
    plain = text.strip()
    if re.fullmatch(r"[+-]?\d{1,3}([,_ '’\u00a0\u202f]\d{3})+(\.\d+)?", plain) or re.fullmatch(
        r"[+-]?\d[\d_]*(\.\d+)?", plain
    ):
        advice = f"write {re.sub(r'[^0-9.+-]', '', plain)}"
    elif re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?", plain):
        advice = f"write {plain.replace('.', '').replace(',', '.')}"
    elif re.fullmatch(r"[+-]?\d*,\d+", plain):
        advice = f"write {plain.replace(',', '.')}"
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", plain):
        advice = "a column with dates for bounds is of kind date, dpmoments.Date"
    else:
        advice = "digits with a decimal point, no unit and no mark between thousands"
    return f"must be a number, got the text {shown(text)}: {advice}"
