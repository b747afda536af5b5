"""Columns of dates and times.

Numbers in a stated unit since a stated origin, with dates as public bounds.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputTypeError, InputValueError, out_of_range, shown
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.schema.column import FilledColumn, MissingNumber

# How dates and times are written in text: formats as of ``strptime``, as patterns with a group for each part.

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_ZONE = r"(?P<zone>Z|[+-]\d{2}:?\d{2}|[+-]\d{2})"
# The alternatives of Python's strptime, which takes 2020131 for the 31st of January: 13 is no month.
_DIRECTIVES = {
    "%Y": r"(?P<year>\d{4})",
    "%y": r"(?P<short_year>\d{2})",
    "%m": r"(?P<month>1[0-2]|0[1-9]|[1-9])",
    "%b": rf"(?P<month_name>(?i:{'|'.join(MONTHS)}))",
    "%B": rf"(?P<month_name>(?i:{'|'.join(_LONG_MONTHS)}))",
    "%d": r"(?P<day>3[01]|[12]\d|0[1-9]|[1-9]| [1-9])",
    "%H": r"(?P<hour>2[0-3]|[01]\d|\d)",
    "%M": r"(?P<minute>[0-5]\d|\d)",
    "%S": r"(?P<second>6[01]|[0-5]\d|\d)",
    "%f": r"(?P<fraction>\d{1,9})",
    "%z": _ZONE,
    "%%": "%",
}
_ISO_PATTERN = (
    r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    rf" ?(?:{_ZONE})?)?$"
)
"""``2020-01-31`` or ``2020-01-31T12:30``: T or a space; optional seconds, fraction and zone."""


def date_pattern(date_format: str | None) -> str:
    r"""Return the RE2 pattern of a date format; None means ISO 8601.

    >>> date_pattern("%d.%m.%Y")
    '^(?P<day>3[01]|[12]\\d|0[1-9]|[1-9]| [1-9])\\.(?P<month>1[0-2]|0[1-9]|[1-9])\\.(?P<year>\\d{4})$'
    """
    if date_format is None:
        return _ISO_PATTERN
    parts = re.findall(r"%.|\s+|[^%\s]+|%$", date_format, re.S)
    if unknown := [part for part in parts if part.startswith("%") and part not in _DIRECTIVES]:
        raise InputValueError(f"format={shown(date_format)} has {shown(unknown[0])}: known are {' '.join(_DIRECTIVES)}")
    # As in Python, a space matches one or more spaces.
    pattern = "".join(r"\s+" if part.isspace() else _DIRECTIVES.get(part, re.escape(part)) for part in parts)
    groups = re.findall(r"\(\?P<(\w+)>", pattern)
    if len(set(groups)) < len(groups):
        raise InputValueError(f"format={shown(date_format)} has a directive twice")
    years, months = {"year", "short_year"} & set(groups), {"month", "month_name"} & set(groups)
    if len(years) != 1 or len(months) != 1 or "day" not in groups:
        raise InputValueError(
            f"format={shown(date_format)} must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d)"
        )
    return f"^{pattern}$"


DateUnit = Literal["seconds", "minutes", "hours", "days", "weeks", "months", "years"]
DateLike = str | dt.date | dt.datetime

_SECONDS = {
    "seconds": 1,
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
    "months": 2_629_746,
    "years": 31_556_952,
}
"""A year is 365.2425 days, the mean of the Gregorian calendar, and a month a twelfth of it."""
MICROSECONDS = 1_000_000
_DAY_LENGTH = len("2015-01-01")
EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, repr=False)
class Date(FilledColumn):
    """Column of dates or times, counted in a unit since an origin.

    One feature, named like the column.

    Everything downstream sees a numeric column: a mean is a number of days after the origin.

    Parameters
    ----------
    name : str
    lower, upper : str, date or datetime
        Public bounds, ISO 8601 if text; values outside are clipped to them. They must come from public knowledge, as
        for :class:`~dpmoments.Numeric`. A date means its midnight: later hours of the last day are clipped to it.
    missing : {"error", "available", "fill", "drop", "center"}
        As for :class:`~dpmoments.Numeric`.
    unit : {"seconds", "minutes", "hours", "days", "weeks", "months", "years"}
        Unit of counting. A year is 365.2425 days and a month a twelfth of it, so equal durations get equal numbers.
    origin : str, date or datetime, optional
        Time with number 0. Default: ``lower``.
    format : str, optional
        Format of text values, as for ``strptime``, such as ``"%d.%m.%Y"``: %Y %y %m %b %B %d %H %M %S %f %z, English
        names of months, years of two digits from 1969 to 2068. Default: ISO 8601, ``2020-01-31`` or
        ``2020-01-31T12:30:00+01:00``.
    description : str, optional
        Public description of the column: one line, published with the schema.
    fill : str, date or datetime, optional
        With ``missing="fill"``: the date of missing ones; with ``"available"``: a guess of the mean.
    missing_values : list of str, optional
        Texts that mean a missing value, and dates that do, as ISO 8601: ``["unknown", "1900-01-01"]``.
    source, weight, missing_share : optional
        As for :class:`~dpmoments.Numeric`.

    Raises
    ------
    TypeError, ValueError
        If a bound is blank or not a date, bounds are reversed or equal, or the unit or the format is unknown.

    Notes
    -----
    Times with a zone are converted to UTC; times without one are assumed to be in UTC. Each value is read by itself, so
    no row decides how another is read. Accepted are dates, timestamps of any resolution, date objects and text, but not
    numbers, whose unit would be unknown.

    Examples
    --------
    >>> admitted = Date("admitted", "2015-01-01", "2025-12-31")
    >>> admitted.bounds, admitted.public_values_text
    ((0.0, 4017.0), '2015-01-01 to 2025-12-31, in days since 2015-01-01')
    """

    lower: DateLike
    upper: DateLike
    missing: MissingNumber = "error"
    unit: DateUnit = field(default="days", kw_only=True)
    origin: DateLike | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    fill: DateLike | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "date"
    scale: ClassVar[None] = None
    typical: ClassVar[None] = None
    options: ClassVar[tuple[str, ...]] = (
        *("name", "lower", "upper", "unit", "origin", "format", "missing", "fill", "missing_values"),
        *("source", "weight", "missing_share", "description"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("unit", self.unit, _SECONDS, column=self.name)
        for option in ("lower", "upper"):
            self._set(**{option: _iso_date(self.name, option, getattr(self, option))})
        self._set(
            origin=self.lower if self.origin is None else _iso_date(self.name, "origin", self.origin),
            fill=None if self.fill is None else _iso_date(self.name, "fill", self.fill),
        )
        if self.format is not None and not isinstance(self.format, str):
            raise InputTypeError(f"column '{self.name}': format={shown(self.format)} must be a text such as '%d.%m.%Y'")
        try:
            date_pattern(self.format)
        except ValueError as error:
            raise self._wrong(f"{error}") from None
        if not self.bounds[0] < self.bounds[1]:
            raise self._wrong(f"lower={shown(self.lower)} must be below upper={shown(self.upper)}")
        if self.fill is not None and not self.bounds[0] <= self.replacement <= self.bounds[1]:
            raise self._wrong(
                f"fill={shown(self.fill)} is outside the bounds {shown(self.lower)} to {shown(self.upper)}"
            )

    @property
    def fill_as_number(self) -> float | None:
        """Stated value in place of a missing one, in the column's unit."""
        return None if self.fill is None else float(self.numbers(np.array([_microseconds(self.fill)]))[0])

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Numbers of the dates that mean a missing value."""
        moments: list[int] = []
        for text in self.missing_values or ():
            with suppress(ValueError):
                moments.append(_microseconds(_iso_date(self.name, "missing_values", text)))
        return tuple(self.numbers(np.array(moments, dtype=np.int64)).tolist())

    @cached_property
    def origin_microseconds(self) -> int:
        """Origin in microseconds since 1970 in UTC."""
        return _microseconds(self.origin)

    @property
    def unit_microseconds(self) -> int:
        """Microseconds in a unit."""
        return _SECONDS[self.unit] * MICROSECONDS

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """(lower, upper) in units since the origin."""
        ends = np.array([_microseconds(self.lower), _microseconds(self.upper)], dtype=np.int64)
        lower, upper = self.numbers(ends).tolist()
        return lower, upper

    def numbers(self, microseconds: Any) -> FloatArray:
        """Convert microseconds since 1970, int64 of shape (n,), to units since the origin."""
        return np.asarray((microseconds - self.origin_microseconds) / self.unit_microseconds, dtype=np.float64)

    def datetimes(self, numbers: FloatArray) -> Any:
        """Invert :meth:`numbers`: datetime64[us], or datetime64[D] for a column of whole days."""
        since_origin = np.rint(numbers * self.unit_microseconds).astype(np.int64) + self.origin_microseconds
        whole_days = all(len(str(date)) == _DAY_LENGTH for date in (self.lower, self.upper, self.origin))
        if not whole_days or _SECONDS[self.unit] < _SECONDS["days"]:
            return since_origin.astype("datetime64[us]")
        day = _SECONDS["days"] * MICROSECONDS
        return ((since_origin + day // 2) // day).astype("datetime64[D]")

    def date_text(self, number: float, noise: float) -> str:
        """Return a date up to the longest unit that its noise, in units of the column, exceeds."""
        date, error = self.datetimes(np.array([number])), noise * _SECONDS[self.unit]
        units = [("years", "Y"), ("months", "M"), ("days", "D"), ("hours", "h"), ("minutes", "m"), ("seconds", "s")]
        if date.dtype == "datetime64[D]":
            units = units[:3]
        code = next((code for unit, code in units if error >= _SECONDS[unit]), units[-1][1])
        return str(date.astype(f"datetime64[{code}]")[0])

    @property
    def public_values_text(self) -> str:
        return f"{self.lower} to {self.upper}, in {self.unit} since {self.origin}"

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        facts: dict[str, Any] = {"column": self.name, "missing": self.missing, "unit": self.unit, "origin": self.origin}
        if self.fill is not None:
            facts["fill"] = self.fill
        return Message("dates-clipped-to-bounds", **facts, lower=self.lower, upper=self.upper)

    def _stated(self) -> dict[str, Any]:
        stated = super()._stated()
        if self.origin == self.lower:
            del stated["origin"]
        return stated


def _iso_date(column: str, option: str, value: object) -> str:
    """Format a bound as ISO 8601, in UTC if it has a zone."""
    if value is None:
        raise InputValueError(
            f"column '{column}' has no bounds: give lower and upper from public knowledge, as in '2015-01-01' "
            "(they are never read from the data, because that would leak it)"
        )
    result = value
    if isinstance(value, str):
        with suppress(ValueError):
            result = dt.date.fromisoformat(value) if len(value) == _DAY_LENGTH else dt.datetime.fromisoformat(value)
    with suppress(OverflowError):  # a zone at an end of the calendar
        if isinstance(result, dt.datetime):
            return (result.astimezone(dt.UTC).replace(tzinfo=None) if result.tzinfo else result).isoformat()
        if isinstance(result, dt.date):
            return result.isoformat()
    raise out_of_range(option, value, "a date, as in '2015-01-31' or '2015-01-31T12:00:00'", column=column)


def _microseconds(date: DateLike | None) -> int:
    """Convert an ISO 8601 date or time to microseconds since 1970."""
    return (dt.datetime.fromisoformat(str(date)) - EPOCH) // dt.timedelta(microseconds=1)
