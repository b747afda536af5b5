"""Messages of the library in the command line's words: they name keywords of Python, and a command has options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise

from dpmoments.foundation.checks import number_as_text

__all__ = ["in_options", "what_number_to_write"]

Words = str | Callable[[re.Match[str]], str]


def _option(found: re.Match[str]) -> str:
    """Only what is to be given: a message may tell of a file's neighbors='…' too."""
    return f"{found[1]}--{found[2]} {shlex.quote(found[4])}"


PHRASES: tuple[tuple[str, Words], ...] = (
    (
        r"there is no ledger (.+): ledger\.grant\('people-2026', epsilon=…\) makes one",
        lambda found: (
            f"there is no ledger {found[1]}: 'dpmoments ledger grant {shlex.quote(found[1])} people-2026 --epsilon 1 --neighbors "
            "add_remove' makes one"
        ),
    ),
    (
        r"as in ledger\.grant\((['\"])(.*?)\1, epsilon=1\.0\)",
        lambda found: (
            f"as in 'dpmoments ledger grant LEDGER {shlex.quote(found[2])} --epsilon 1 --neighbors add_remove'"
        ),
    ),
    (r"grant more with ledger\.grant\b", "grant more with 'dpmoments ledger grant'"),
    (r"\bname it, dataset=", "name it with dataset="),
    (r"pass delimiter=\"\\t\"", "pass --delimiter tab"),
    (
        r"pass format= in the schema, as the cells are written, such as '(.*?)'",
        r"""write format: "\1" at the column in the schema, as the cells are written""",
    ),
    (r"text_format=TextFormat\([^()]*\) \((?:or )?(--[^()]*)\)", r"\1"),
    (
        r"privacy_unit=PrivacyUnit\((['\"])(.*?)\1, max_rows=…\)",
        lambda found: f"--privacy-unit {shlex.quote(found[2])} --max-rows-per-unit K",
    ),
    (r"\bprivacy_unit=(?=,)", "--privacy-unit"),
    (r"choose another name, or pass overwrite=True", "name another, or pass --overwrite"),
    (r"release with mean=True", "release without --no-mean"),
    (r"release with mean=False", "release with --no-mean"),
    (r"pass a public n_rows to release\(\)", "pass a public --n-rows"),
    (r"(\b(?:[Uu]se|[Pp]ass|with) )(dataset|unit|neighbors|delimiter)=(['\"])(.*?)\3", _option),
)
"""What a message of the library says, and what stands for it here."""
GROUPED = re.compile(r"[+-]?\d{1,3}(?:([., _'’\u00a0\u202f])\d{3})(?:\1\d{3})*")


def in_options(message: str) -> str:
    """A message of the library, its cures by options in place of keywords.

    Examples
    --------
    >>> print(in_options("grant it again with unit='patient_id'"))
    grant it again with --unit patient_id
    >>> print(in_options('would have 2 by ";": pass delimiter=";"'))
    would have 2 by ";": pass --delimiter ';'
    """
    for pattern, words in PHRASES:
        message = re.sub(pattern, words, message)
    return message


def what_number_to_write(message: str, options: Sequence[str], arguments: Sequence[str]) -> str | None:
    """What is wrong with the number that an option was given, and how it is written; None where the message is of no number.

    Parameters
    ----------
    message : str
        Of the parser, which does not quote what was given.
    options : sequence of str
        How the option may be written.
    arguments : sequence of str
        Those of the command.

    Examples
    --------
    >>> refused = "Input should be a valid integer, unable to parse string as an integer"
    >>> print(what_number_to_write(refused, ["--n-rows"], ["forecast", "--n-rows", "9.700"]))
    must be a whole number, got the text '9.700': write 9700
    """
    found = re.search(r"unable to parse string as an? (integer|number)|is not a valid (integer|float)", message)
    if found is None:
        return None
    whole = "integer" in found.groups()
    for text in _given(options, arguments):
        try:
            int(text) if whole else float(text)
        except ValueError:
            return _whole_number(text) if whole else number_as_text(text)
    return None


def _given(options: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The values of an option, as they were written."""
    apart = [value for flag, value in pairwise(arguments) if flag in options]
    return apart + [text.partition("=")[2] for text in arguments if text.partition("=")[0] in options and "=" in text]


def _whole_number(text: str) -> str:
    plain, advice = text.strip(), "digits alone, no unit and no mark between thousands"
    if GROUPED.fullmatch(plain):
        advice = f"write {re.sub(r'[^0-9+-]', '', plain)}"
    elif re.fullmatch(r"\d{1,3}(\.\d+)?[eE]\+?\d{1,2}", plain) and float(plain).is_integer():
        advice = f"write {int(float(plain))}"
    return f"must be a whole number, got the text {text!r}: {advice}"
