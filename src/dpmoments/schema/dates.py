"""Columns of dates and times.

Numbers in a stated unit since a stated origin, with dates as public bounds.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_one_of
from dpmoments.foundation.errors import InputTypeError, InputValueError, out_of_range
from dpmoments.foundation.values import check_description, check_name, shown
from dpmoments.messages.message import Message
from dpmoments.schema.cleaning import MarkedMissing, check_source, checked_marks, checked_weight, plain_marks
from dpmoments.schema.numeric import MISSING_NUMBER, MissingNumber, anchored, check_fill_is_stated

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
    parts = re.findall(r"%.|[^%]+|%$", date_format, re.S)
    if unknown := [part for part in parts if part.startswith("%") and part not in _DIRECTIVES]:
        raise InputValueError(f"format={shown(date_format)} has {shown(unknown[0])}: known are {' '.join(_DIRECTIVES)}")
    pattern = "".join(_DIRECTIVES.get(part) or _literal(part) for part in parts)
    groups = re.findall(r"\(\?P<(\w+)>", pattern)
    if len(set(groups)) < len(groups):
        raise InputValueError(f"format={shown(date_format)} has a directive twice")
    years, months = {"year", "short_year"} & set(groups), {"month", "month_name"} & set(groups)
    if len(years) != 1 or len(months) != 1 or "day" not in groups:
        raise InputValueError(
            f"format={shown(date_format)} must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d)"
        )
    return f"^{pattern}$"


def _literal(text: str) -> str:
    """Return the pattern of text between directives."""
    # As in Python, a space matches one or more spaces.
    return "".join(r"\s+" if part.isspace() else re.escape(part) for part in re.findall(r"\s+|\S+", text))


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
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, repr=False, init=False)
class Date:
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
    source, weight : optional
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

    name: str
    lower: str
    upper: str
    missing: MissingNumber
    counted_in: DateUnit
    origin: str
    format: str | None
    description: str | None = field(compare=False)
    fill: str | None
    missing_values: MarkedMissing | None
    source: str | None
    weight: float | None

    kind: ClassVar[str] = "date"
    scale: ClassVar[None] = None
    rough: ClassVar[None] = None
    typical: ClassVar[None] = None
    typical_within_bounds: ClassVar[None] = None

    def __init__(
        self,
        name: str,
        lower: DateLike,
        upper: DateLike,
        missing: MissingNumber = "error",
        *,
        unit: DateUnit = "days",
        origin: DateLike | None = None,
        format: str | None = None,
        description: str | None = None,
        fill: DateLike | None = None,
        missing_values: Sequence[str] | None = None,
        source: str | None = None,
        weight: float | None = None,
    ) -> None:
        check_name(name)
        check_one_of("missing", missing, MISSING_NUMBER, column=name)
        check_source(name, source)
        check_fill_is_stated(name, missing, fill)
        check_one_of("unit", unit, _SECONDS, column=name)
        check_description(name, description)
        dates = {option: _iso_date(name, option, value) for option, value in (("lower", lower), ("upper", upper))}
        dates["origin"] = dates["lower"] if origin is None else _iso_date(name, "origin", origin)
        for option, value in dates.items():
            object.__setattr__(self, option, value)
        stated: dict[str, Any] = {
            "name": name,
            "missing": missing,
            "counted_in": unit,
            "format": format,
            "description": description,
            "fill": None if fill is None else _iso_date(name, "fill", fill),
            "missing_values": checked_marks(name, missing_values),
            "source": source,
            "weight": checked_weight(name, weight),
        }
        for option, value in stated.items():
            object.__setattr__(self, option, value)
        if format is not None and not isinstance(format, str):
            raise InputTypeError(
                Message("out-of-range", column=name, parameter="format", value=format, expected="date-format")
            )
        try:
            date_pattern(format)
        except ValueError as error:
            raise InputValueError(f"column '{name}': {error}") from None
        if not self.bounds[0] < self.bounds[1]:
            raise InputValueError(f"column '{name}': lower={shown(self.lower)} must be below upper={shown(self.upper)}")
        if self.fill is not None and not self.bounds[0] <= self.replacement <= self.bounds[1]:
            raise InputValueError(
                f"column '{name}': fill={shown(self.fill)} is outside the bounds {shown(self.lower)} to "
                f"{shown(self.upper)}"
            )

    @property
    def replacement(self) -> float:
        """Number that replaces a missing value under the rules ``fill`` and ``center``."""
        center = float(self.offset(mean=True)[0])
        if self.fill is None:
            return center
        fill = float(self.numbers(np.array([_microseconds(self.fill)]))[0])
        return anchored(fill, center, float(self.unit(mean=True)[0])) if self.missing == "available" else fill

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
        return _SECONDS[self.counted_in] * MICROSECONDS

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """(lower, upper) in units since the origin."""
        ends = np.array([_microseconds(self.lower), _microseconds(self.upper)], dtype=np.int64)
        lower, upper = self.numbers(ends).tolist()
        return lower, upper

    def numbers(self, microseconds: Any) -> FloatArray:
        """Convert microseconds since 1970, int64 of shape (n,), to units since the origin."""
        return np.asarray((microseconds - self.origin_microseconds) / self.unit_microseconds, dtype=np.float64)

    @property
    def holds_days(self) -> bool:
        """True if bounds, origin and unit are whole days, as are the values of a date column."""
        days = all(len(str(date)) == _DAY_LENGTH for date in (self.lower, self.upper, self.origin))
        return days and _SECONDS[self.counted_in] >= _SECONDS["days"]

    def datetimes(self, numbers: FloatArray) -> Any:
        """Invert :meth:`numbers`: datetime64[D] if the column holds days, else datetime64[us]."""
        since_origin = np.rint(numbers * self.unit_microseconds).astype(np.int64) + self.origin_microseconds
        if not self.holds_days:
            return since_origin.astype("datetime64[us]")
        day = _SECONDS["days"] * MICROSECONDS
        return ((since_origin + day // 2) // day).astype("datetime64[D]")

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        return f"{self.lower} to {self.upper}, in {self.counted_in} since {self.origin}"

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        facts = {"column": self.name, "missing": self.missing, "unit": self.counted_in, "origin": str(self.origin)}
        if self.fill is not None:
            facts["fill"] = self.fill
        return Message("dates-clipped-to-bounds", **facts, lower=str(self.lower), upper=str(self.upper))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The column's name: one feature."""
        return (self.name,)

    def offset(self, mean: bool) -> FloatArray:
        """Return the value encoded as 0, shape (1,)."""
        lower, upper = self.bounds
        return np.array([lower + (upper - lower) / 2.0]) if mean else np.zeros(1)

    def unit(self, mean: bool) -> FloatArray:
        """Return the distance from the offset that is encoded as 1, shape (1,)."""
        lower, upper = self.bounds
        offset = float(self.offset(mean)[0])
        return np.array([max(upper - offset, offset - lower)])

    def _stated(self) -> dict[str, Any]:
        stated = {"name": self.name, "lower": self.lower, "upper": self.upper, "unit": self.counted_in}
        if self.origin != self.lower:
            stated["origin"] = self.origin
        if self.format is not None:
            stated["format"] = self.format
        cleaning: dict[str, Any] = {"fill": self.fill, "missing_values": self.missing_values, "source": self.source}
        cleaning["weight"] = self.weight
        return (
            stated | {"missing": self.missing} | {name: value for name, value in cleaning.items() if value is not None}
        )

    @property
    def stated(self) -> dict[str, Any]:
        """Arguments that make this column."""
        return self._stated() | {"description": self.description}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        description = {} if self.description is None else {"description": self.description}
        return {"kind": self.kind} | plain_marks(self._stated()) | description

    def __repr__(self) -> str:
        return f"Date({', '.join(f'{option}={value!r}' for option, value in self._stated().items())})"


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
    raise out_of_range(option, value, "date-or-time", column=column)


def _microseconds(date: str) -> int:
    """Convert an ISO 8601 date or time to microseconds since 1970."""
    return (dt.datetime.fromisoformat(date) - _EPOCH) // dt.timedelta(microseconds=1)
