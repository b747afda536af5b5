"""A small table, the schema rules it is read by, and rows with one odd cell each."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import pandas as pd

import dpmoments as dpm

Row = dict[str, Any]
COLUMNS = ("age", "visits", "price", "member", "region", "code", "day")
"""Of the schema; a row has a privacy unit, ``person``, and a column that is never read, ``unread``, besides."""
LEVELS = ("north", "south", "ea,st", 'we"st', "007", "7")
RULES = {"drop": ("drop", "drop", "drop"), "center": ("center", "zero", "zero"), "error": ("error", "error", "drop")}
"""The rule for missing numbers, for missing levels, and for other levels; the last has no ``"error"``."""
MIDNIGHT = dt.datetime(2020, 3, 1)


class NotHeldError(Exception):
    """A declared type of the entrance cannot represent the cell."""


def schema(rule: str, names: Sequence[str] = COLUMNS, *, date_format: str | None = None) -> dpm.Schema:
    """The mixed schema, under one set of rules, for some of its columns."""
    number, missing, other = RULES[rule]
    columns: dict[str, Any] = {
        "age": dpm.Numeric("age", 0, 100, missing=number),
        "visits": dpm.Numeric("visits", -5, 5, missing=number),
        "price": dpm.Numeric("price", 0, 20, missing=number),
        "member": dpm.Boolean("member", missing=number),
        "region": dpm.Categorical("region", LEVELS, missing=missing, other=other),
        "code": dpm.Categorical("code", [1, 2, 30], missing=missing, other=other),
        "day": dpm.Date("day", "2020-01-01", "2021-01-01", missing=number, format=date_format),
    }
    return dpm.Schema(*(columns[name] for name in names))


def cleaned_schema(rule: str, names: Sequence[str] = COLUMNS) -> dpm.Schema:
    """The same columns with every cleaning rule, under one set of rules; numbers are filled where the others are centered."""
    number, missing, other = RULES[rule]

    def fill(value: Any) -> dict[str, Any]:
        return {"missing": "fill", "fill": value} if number == "center" else {"missing": number}

    levels: Any = {"missing": missing, "other": other}
    aliases = {"north": ["N", "Größe", "nor\nth"], "7": ["seven"]}
    columns: dict[str, Any] = {
        "age": dpm.Numeric("years", 0, 100, decimal=",", thousands=".", source="age", **fill(30)),
        "visits": dpm.Numeric("visits", -5, 5, missing_values=[-99, 2**53, "abc"], **fill(-5)),
        "price": dpm.Numeric("price", 0, 20, decimal=".", **fill(0.5)),
        "member": dpm.Boolean("member", true_values=["ja", "True", 7], false_values=["nein", 2, -0.5], **fill(False)),
        "region": dpm.Categorical(
            "area", LEVELS, aliases=aliases, strip=True, casefold=True, source="region", **levels
        ),
        "code": dpm.Categorical(
            "code", [1, 2, 30], aliases={2: ["abc", 2**53 - 1]}, missing_values=[30.5, 7], **levels
        ),
        "day": dpm.Date("day", "2020-01-01", "2021-01-01", missing_values=["2020-03-01", "abc"], **fill("2020-07-01")),
    }
    return dpm.Schema(*(columns[name] for name in names), missing_values=["north ", "ja", -99, 0.1])


def table(*, gaps: bool, n_rows: int = 40) -> list[Row]:
    """Ordinary rows of twelve people; every number is one that all float types hold."""
    return list(_table(gaps, n_rows))


@cache
def _table(gaps: bool, n_rows: int) -> tuple[Row, ...]:
    draw = random.Random(7 + gaps)

    def cell(value: Any) -> Any:
        return None if gaps and draw.random() < 0.08 else value

    return tuple(
        {
            "age": cell(draw.randrange(-40, 480) / 4),
            "visits": draw.randrange(-7, 8),
            "price": cell(draw.randrange(-8, 90) / 4),
            "member": cell(draw.random() < 0.5),
            "region": cell(draw.choice([*LEVELS, "Größe"])),
            "code": cell(draw.choice([1, 2, 30, 4])),
            "day": cell(dt.datetime(2019, 12, 20) + dt.timedelta(hours=draw.randrange(400 * 24))),
            "person": draw.randrange(1, 13),
            "unread": f"secret {place}",
        }
        for place in range(n_rows)
    )


USUAL_ROW: Row = {
    "age": 33.25,
    "visits": 2,
    "price": 12.5,
    "member": True,
    "region": "7",
    "code": 30,
    "day": dt.datetime(2020, 5, 17, 7),
    "person": 3,
    "unread": "secret odd",
}


class Hostile:
    """An object that fails at whatever is asked of it."""

    def _fail(self, *_: object) -> NoReturn:
        raise RuntimeError("secret cell")

    __eq__ = __hash__ = __float__ = __int__ = __str__ = __repr__ = __bool__ = __len__ = __iter__ = _fail  # type: ignore[assignment]
    __array__ = __index__ = _fail


class Shouting(str):
    """Text of a class of its own."""

    __slots__ = ()


def _array(*cells: Any) -> Any:
    return np.array(cells)


ODD_CELLS: dict[str, Any] = {
    "text": "abc",
    "digits after zeros": "007",
    "number as text": "12.5",
    "integer as text": "7",
    "whole float as text": "2.0",
    "number with marks as text": "1.234,5",
    "exponent as text": "1e400",
    "empty text": "",
    "blanks": "  ",
    "text for nothing": "NA",
    "other text for nothing": "NaT",
    "text for not a number": "nan",
    "text for infinity": "-inf",
    "padded number": " 12 ",
    "padded level": " north ",
    "level in capitals": "NORTH",
    "truth as text": "True",
    "truth in German": "ja",
    "date as text": "2020-03-01",
    "date in German": "1.3.2020",
    "date that is none": "2020-02-30",
    "time with a zone as text": "2020-03-01T23:00:00+05:00",
    "half of a surrogate pair": "nor\ud800th",
    "null character": "nor\0th",
    "line break": "nor\nth",
    "carriage return": "north\r",
    "delimiter and quote": 'no"r,th',
    "accents": "Größe",
    "combining accents": "Gro\u0308ße",
    "byte order mark": "\ufeffnorth",
    "formula": "=1+1",
    "long text": "x" * 300,
    "text of a class": Shouting("north"),
    "text of NumPy": np.str_("north"),
    "integer": 7,
    "2^53 + 1": 2**53 + 1,
    "2^63 - 1": 2**63 - 1,
    "2^63": 2**63,
    "2^64": 2**64,
    "-2^63": -(2**63),
    "10^400": 10**400,
    "10^5000": 10**5000,
    "integer of NumPy": np.int8(2),
    "unsigned of NumPy": np.uint64(2**64 - 1),
    "negative zero": -0.0,
    "fraction": 0.1,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "smallest": 5e-324,
    "largest": 1.7976931348623157e308,
    "half float": np.float16(0.1),
    "float of NumPy": np.float32(0.1),
    "long double": np.longdouble("1e4000"),
    "fraction of integers": Fraction(1, 3),
    "nothing": None,
    "nothing of pandas": pd.NA,
    "no time of pandas": pd.NaT,
    "decimal": Decimal("12.50"),
    "whole decimal": Decimal("7"),
    "decimal not a number": Decimal("NaN"),
    "decimal signalling": Decimal("sNaN"),
    "decimal infinity": Decimal("Infinity"),
    "huge decimal": Decimal("1e999999"),
    "true": True,
    "true of NumPy": np.True_,
    "date": dt.date(2020, 3, 1),
    "time": MIDNIGHT.replace(hour=12, microsecond=1),
    "time with a zone": MIDNIGHT.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))),
    "time of pandas": pd.Timestamp("2020-03-01 12:00:00.000000001"),
    "time of NumPy": np.datetime64("2020-03-01T12"),
    "no time of NumPy": np.datetime64("NaT", "s"),
    "far time of NumPy": np.datetime64("300000-01-01"),
    "year 1": dt.datetime(1, 1, 1),
    "year 9999": dt.date(9999, 12, 31),
    "time of day": dt.time(12),
    "time that passes": dt.timedelta(days=3),
    "time that passes in NumPy": np.timedelta64(3, "D"),
    "period of pandas": pd.Period("2020-03", "M"),
    "list": [1, 2],
    "list of one": [7],
    "empty list": [],
    "tuple": ("north", "south"),
    "mapping": {"north": 1},
    "array": _array(1.0, 2.0),
    "array without dimensions": np.array(7.0),
    "table": pd.DataFrame({"a": [1]}),
    "bytes": b"north",
    "bytes of no text": b"\xff\xfe",
    "empty bytes": b"",
    "complex": 1 + 2j,
    "complex of NumPy": np.complex128(7),
    "UUID": UUID(int=7),
    "type": int,
    "hostile object": Hostile(),
}
"""One cell of every kind that a table was seen to hold beside those it should."""

ODD_UNITS: dict[str, tuple[Any, bytes | None]] = {
    "digits after zeros": ("007", b"007"),
    "digits": ("7", b"7"),
    "whole float as text": ("7.0", b"7"),
    "negative zero as text": ("-0.0", b"0"),
    "padded": (" 7", b" 7"),
    "letters": ("p7", b"p7"),
    "letters in capitals": ("P7", b"P7"),
    "line break": ("7\n", b"7\n"),
    "null character": ("7\0", b"7\0"),
    "half of a surrogate pair": ("7\ud800", "7\ud800".encode(errors="surrogatepass")),
    "long text": ("7" * 300, b"7" * 300),
    "empty text": ("", None),
    "text for nothing": ("NA", None),
    "integer": (7, b"7"),
    "integer of NumPy": (np.int16(7), b"7"),
    "other integer": (99, b"99"),
    "2^53 + 1": (2**53 + 1, b"9007199254740993"),
    "2^63": (2**63, b"9223372036854775808"),
    "10^400": (10**400, str(10**400).encode()),
    "10^5000": (10**5000, None),
    "whole float": (7.0, b"7"),
    "float": (7.5, None),
    "huge float": (2.0**60, None),
    "negative zero": (-0.0, b"0"),
    "not a number": (float("nan"), None),
    "infinity": (float("inf"), None),
    "nothing": (None, None),
    "nothing of pandas": (pd.NA, None),
    "no time of pandas": (pd.NaT, None),
    "bytes": (b"7", b"7"),
    "bytes of no text": (b"\xff", b"\xff"),
    "empty bytes": (b"", None),
    "UUID": (UUID(int=7), UUID(int=7).bytes),
    "bytes of a UUID": (UUID(int=7).bytes, UUID(int=7).bytes),
    "decimal": (Decimal("7"), None),
    "true": (True, None),
    "date": (dt.date(2020, 3, 1), None),
    "complex": (7 + 0j, None),
    "list": ([7], None),
    "mapping": ({"id": 7}, None),
    "array": (_array(7), None),
    "hostile object": (Hostile(), None),
}
"""A cell that tells people apart, and whose it is: the bytes of ``dpmoments.schema.cell_reading``, None for nobody's."""


@dataclass(frozen=True, eq=False, repr=False)
class OddRow:
    """An ordinary row but for one cell."""

    kind: str
    column: str
    row: Row

    @property
    def name(self) -> str:
        return f"{self.column}: {self.kind}"

    def __repr__(self) -> str:
        return self.name


def odd_rows(names: Sequence[str] = COLUMNS) -> Iterator[OddRow]:
    """Every odd cell in every one of these columns."""
    for kind, cell in ODD_CELLS.items():
        for name in names:
            yield OddRow(kind, name, USUAL_ROW | {name: cell})


def odd_units() -> Iterator[OddRow]:
    """Every odd cell in the column that tells people apart, and a few odd rows of a person who has others."""
    for kind, (cell, _) in ODD_UNITS.items():
        yield OddRow(kind, "person", USUAL_ROW | {"person": cell})
    for kind in ("text", "2^53 + 1", "not a number", "nothing", "decimal", "list"):
        for name in ("age", "region", "day"):
            yield OddRow(kind, name, USUAL_ROW | {name: ODD_CELLS[kind]})


def same_cell(stored: Any, cell: Any) -> bool:
    """True if what a typed column holds is the cell itself: of its value and kind, the sign of zero included."""
    if cell is None or stored is None:
        return cell is stored
    kinds = (bool, int, float, str, bytes, Decimal, dt.datetime, dt.date, UUID)
    alike = [next((kind for kind in kinds if isinstance(one, kind)), type(one)) for one in (stored, cell)]
    if alike[0] is not alike[1] or type(cell).__module__ not in ("builtins", "decimal", "datetime", "uuid"):
        return False
    if isinstance(cell, float) and cell != cell:
        return bool(stored != stored)
    return bool(stored == cell) and (isinstance(cell, dt.datetime) or str(stored) == str(cell))
