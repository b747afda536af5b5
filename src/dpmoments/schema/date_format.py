"""How dates and times are written in text: formats as of ``strptime``, as patterns with a group for each part."""

from __future__ import annotations

import re

__all__ = ["ISO_PATTERN", "MONTHS", "date_pattern"]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
ZONE = r"(?P<zone>Z|[+-]\d{2}:?\d{2}|[+-]\d{2})"
# The alternatives of Python's strptime, which takes 2020131 for the 31st of January: 13 is no month.
DIRECTIVES = {
    "%Y": r"(?P<year>\d{4})",
    "%y": r"(?P<short_year>\d{2})",
    "%m": r"(?P<month>1[0-2]|0[1-9]|[1-9])",
    "%b": rf"(?P<month_name>(?i:{'|'.join(MONTHS)}))",
    "%B": rf"(?P<month_name>(?i:{'|'.join(LONG_MONTHS)}))",
    "%d": r"(?P<day>3[01]|[12]\d|0[1-9]|[1-9]| [1-9])",
    "%H": r"(?P<hour>2[0-3]|[01]\d|\d)",
    "%M": r"(?P<minute>[0-5]\d|\d)",
    "%S": r"(?P<second>6[01]|[0-5]\d|\d)",
    "%f": r"(?P<fraction>\d{1,9})",
    "%z": ZONE,
    "%%": "%",
}
ISO_PATTERN = (
    r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    rf" ?(?:{ZONE})?)?$"
)
"""``2020-01-31``, and ``2020-01-31T12:30``, with a blank for the T, seconds and their fraction, and a zone if need be."""


def date_pattern(date_format: str | None) -> str:
    r"""The pattern, in the syntax of RE2, of a format; None stands for ISO 8601.

    Raises
    ------
    ValueError
        If a directive is unknown or stands twice, or there is no year, month and day. The message begins with the format.

    Examples
    --------
    >>> date_pattern("%d.%m.%Y")
    '^(?P<day>3[01]|[12]\\d|0[1-9]|[1-9]| [1-9])\\.(?P<month>1[0-2]|0[1-9]|[1-9])\\.(?P<year>\\d{4})$'
    """
    if date_format is None:
        return ISO_PATTERN
    parts = re.findall(r"%.|[^%]+|%$", date_format, re.S)
    if unknown := [part for part in parts if part.startswith("%") and part not in DIRECTIVES]:
        raise ValueError(f"format={date_format!r} has {unknown[0]!r}: known are {' '.join(DIRECTIVES)}")
    pattern = "".join(DIRECTIVES.get(part) or _literal(part) for part in parts)
    groups = re.findall(r"\(\?P<(\w+)>", pattern)
    if len(set(groups)) < len(groups):
        raise ValueError(f"format={date_format!r} has a directive twice")
    years, months = {"year", "short_year"} & set(groups), {"month", "month_name"} & set(groups)
    if len(years) != 1 or len(months) != 1 or "day" not in groups:
        raise ValueError(
            f"format={date_format!r} must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d)"
        )
    return f"^{pattern}$"


def _literal(text: str) -> str:
    """Of what stands between directives: a blank is any number of blanks, one at least, as in Python."""
    return "".join(r"\s+" if part.isspace() else re.escape(part) for part in re.findall(r"\s+|\S+", text))
