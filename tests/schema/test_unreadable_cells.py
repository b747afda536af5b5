"""A cell that cannot be read has one outcome, by its column's rule, and no other row's outcome depends on it."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import io
import math
import traceback
import uuid
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.base import text_files
from dpmoments.base.text_files import LineLengths, LongLineError
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import source, text
from dpmoments.schema import Coordinate, Schema
from dpmoments.schema.cells import object_numbers, object_texts
from support.said import refused

SECRET = "Smith-4711"


class Evil:
    """An object all of whose methods raise, and quote."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(SECRET)

    def __float__(self) -> float:
        raise RuntimeError(SECRET)

    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __bool__ = __float__  # type: ignore[assignment]


class EvilFloat(float):
    def __float__(self) -> float:
        raise RuntimeError(SECRET)

    __eq__ = __ne__ = __str__ = __repr__ = is_integer = __float__  # type: ignore[assignment]
    __hash__ = float.__hash__


class EvilText(str):
    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise RuntimeError(SECRET)

    __eq__ = __ne__ = __str__ = __repr__ = encode  # type: ignore[assignment]
    __hash__ = str.__hash__


class EvilWhole(int):
    def __abs__(self) -> int:
        raise RuntimeError(SECRET)

    __str__ = __repr__ = __int__ = __index__ = __abs__  # type: ignore[assignment]


class Evilly(type):
    """The type of a type whose name cannot be asked."""

    @property
    def __name__(cls) -> str:
        raise RuntimeError(SECRET)


class OfEvilType(metaclass=Evilly):
    pass


class EvilZone(dt.tzinfo):
    def utcoffset(self, _: Any) -> dt.timedelta:
        raise RuntimeError(SECRET)


# What it is, as a number in 0..100, as a level of "a", "7", as a date of 2020; None: the rule for missing cells applies.
ODD: dict[str, tuple[Any, float | None, str | None, bool]] = {
    "text": (SECRET, None, "other", False),
    "digits": ("7", None, "7", False),
    "a level": ("a", None, "a", False),
    "text of a level's own class": (EvilText("a"), None, "a", False),
    "np.str_": (np.str_("a"), None, "a", False),
    "half of a surrogate pair": ("\ud800", None, "other", False),
    "date": (dt.date(2020, 3, 1), None, "other", True),
    "datetime": (dt.datetime(2020, 3, 1, 12), None, "other", True),
    "Timestamp": (pd.Timestamp("2020-03-01"), None, "other", True),
    "datetime64": (np.datetime64("2020-03-01"), None, "other", True),
    "date in text": ("2020-03-01", None, "other", True),
    "a day that is none": ("2020-02-30", None, "other", False),
    "a zone that raises": (dt.datetime(2020, 3, 1, tzinfo=EvilZone()), None, "other", False),
    "Timedelta": (pd.Timedelta(days=7), None, "other", False),
    "timedelta64": (np.timedelta64(7, "s"), None, "other", False),
    "bytes": (b"a", None, "other", False),
    "list": ([7], None, "other", False),
    "dict": ({"a": 7}, None, "other", False),
    "tuple": ((7,), None, "other", False),
    "array": (np.array([7.0, 8.0]), None, "other", False),
    "complex": (7 + 0j, None, "other", False),
    "np.complex64": (np.complex64(7), None, "other", False),
    "a type": (float, None, "other", False),
    "an object": (object(), None, "other", False),
    "evil": (Evil(), None, "other", False),
    "evil float": (EvilFloat(7.0), 7.0, "7", False),
    "evil integer": (EvilWhole(7), 7.0, "7", False),
    "of an evil type": (OfEvilType(), None, "other", False),
    "UUID": (uuid.UUID(int=7), None, "other", False),
    "integer": (7, 7.0, "7", False),
    "true": (True, 1.0, "other", False),
    "np.bool_": (np.bool_(True), 1.0, "other", False),
    "Fraction": (fractions.Fraction(7, 2), 3.5, "other", False),
    "Fraction beyond floats": (fractions.Fraction(10**400), None, "other", False),
    "Decimal": (decimal.Decimal("7"), 7.0, "other", False),
    "Decimal of a huge exponent": (decimal.Decimal("1e999999"), None, "other", False),
    "Decimal of a tiny exponent": (decimal.Decimal("1e-999999"), 0.0, "other", False),
    "integer beyond floats": (10**400, None, "other", False),
    "integer of many digits": (-(10**5000), None, "other", False),
    "np.float16": (np.float16(7), 7.0, "7", False),
    "np.longdouble": (np.longdouble(7), 7.0, "7", False),
    "np.longdouble beyond floats": (np.longdouble("1e4000"), None, "other", False),
    "np.uint8": (np.uint8(7), 7.0, "7", False),
    "np.int64": (np.int64(7), 7.0, "7", False),
}  # fmt: skip
MISSING: dict[str, Any] = {
    "None": None,
    "NaN": math.nan,
    "np.nan": np.float32("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT", "s"),
    "Decimal NaN": decimal.Decimal("NaN"),
    "signalling NaN": decimal.Decimal("sNaN"),
}


def objects(*cells: Any) -> pd.DataFrame:
    held = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        held[place] = cell
    return pd.DataFrame({"c": pd.Series(held, dtype=object)})


def numeric(rule: Any) -> list[Any]:
    return [dpm.Numeric("c", 0, 100, missing=rule), dpm.Boolean("c", missing=rule), Coordinate("c", missing=rule)]


def count(data: Any, column: Any, **options: Any) -> int:
    return Rows.of(data, Schema(column, row_norm=1), **options).count()


def require_quiet(error: BaseException) -> None:
    said = "".join(traceback.format_exception(error)) + repr(vars(error))
    assert SECRET not in said
    assert "4711" not in said


@pytest.mark.long(sets=12)
@pytest.mark.parametrize("name", [*ODD, *MISSING])
def test_an_object_is_a_number_a_level_or_a_date_by_itself_or_missing(name: str) -> None:
    cell, number, level, is_date = ODD.get(name, (MISSING.get(name), None, None, False))
    for column in numeric("drop"):
        assert count(objects(5.0, cell, 6.0), column) == (2 if number is None else 3)
    for rule, kind in product(("drop", "center", "error"), range(3)):
        schema = Schema(numeric(rule)[kind], row_norm=1)
        if number is not None or rule == "center":
            expected = Rows.of(objects(5.0, number, 6.0), schema).moments()
            assert Rows.of(objects(5.0, cell, 6.0), schema).moments() == expected
        elif rule == "error":
            with refused("has a cell that is missing, not finite or not readable, and", column="c") as caught:
                Rows.of(objects(5.0, cell, 6.0), schema).count()
            require_quiet(caught.value)
    for missing, other in product(("zero", "drop", "error"), ("zero", "drop")):
        schema = Schema(dpm.Categorical("c", ["a", "7", "?"], missing=missing, other=other))
        if level is None and missing == "error":
            with refused("has a cell that is missing, not finite or not readable, and"):
                Rows.of(objects("a", cell), schema).moments()
            continue
        found = Rows.of(objects("a", cell), schema).moments()
        assert found == Rows.of(pa.table({"c": pa.array(["a", level])}), schema).moments()
    for rule in ("drop", "center", "error"):
        column = dpm.Date("c", "2020-01-01", "2020-12-31", missing=rule)
        frame = objects(dt.date(2020, 1, 1), cell)
        if rule == "error" and not is_date:
            with refused("has a cell that is missing, not finite or not readable, and", column="c") as caught:
                count(frame, column)
            require_quiet(caught.value)
            continue
        assert count(frame, column) == (1 if rule == "drop" and not is_date else 2)


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("name", ODD)
def test_a_preflight_counts_what_a_release_keeps(name: str) -> None:
    cell = ODD[name][0]
    schemas = [
        Schema(dpm.Numeric("c", 0, 100, missing="drop")),
        Schema(dpm.Numeric("c", 0, 100, missing="center")),
        Schema(dpm.Date("c", "2020-01-01", "2020-12-31", missing="drop")),
        Schema(dpm.Categorical("c", ["a", "7"])),
        Schema(dpm.Categorical("c", [7, 8], other="zero")),
    ]
    for schema in schemas:
        found = dpm.preflight(objects(cell, 7.0), schema, threads=1)
        assert not found.stops_a_release
        assert found.private_facts()["rows_kept"] == Rows.of(objects(cell, 7.0), schema).count()
        found.show(io.StringIO())
    stopped = dpm.preflight(objects(cell, 7.0), Schema(dpm.Numeric("c", 0, 100)), threads=1)
    assert stopped.stops_a_release == (ODD[name][1] is None)


# Text files -----------------------------------------------------------------------------------------------------------------

SPELLINGS = [
    "1e5", "+3", " 3", "3\t", "0x10", "1_000", "inf", "-Infinity", "nan", "NaN(7)", "1.", ".5", "1,5", "½", "9" * 400,
    "1e400", "1e-400", "0." + "3" * 60, "-0.0", "--1", "1e", "e5", "٣", "−1", "", "NA", "null", "N/A", " NA", "true", "True", "t",
    "0", "1", "1.0", "yes", "T ", SECRET, "7 7", "7\n", "7\r\n", "\0", "7\0", "1" + "0" * 30 + "1.5", "2.5000000000000001",
]  # fmt: skip


def csv_file(path: Path, cells: list[str], more: bytes = b"") -> Path:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    path.write_bytes(("c,d\n" + "".join(f"{cell},1\n" for cell in quoted)).encode() + more)
    return path


def lenient(rule: Any) -> list[Any]:
    return [
        dpm.Numeric("c", -10, 10, missing=rule),
        dpm.Boolean("c", missing=rule),
        dpm.Date("c", "2020-01-01", "2021-01-01", missing=rule),
        dpm.Categorical("c", ["1", "true"], missing="zero" if rule == "center" else rule),
    ]


@pytest.mark.long
@pytest.mark.parametrize("rule", ["drop", "center"])
@pytest.mark.parametrize("place", range(4), ids=["numeric", "boolean", "date", "categorical"])
def test_a_cell_of_a_file_is_read_alike_whatever_the_route(place: int, rule: Any, tmp_path: Path) -> None:
    """Alone, beside a cell that forces the other route, and in a file of all spellings: the moments add up."""
    schema = Schema(lenient(rule)[place], row_norm=1)

    def gram(cells: list[str]) -> np.ndarray:
        found = Rows.of(csv_file(tmp_path / "t.csv", cells), schema).moments()
        return np.append(found.gram, found.count)

    odd = gram(["no number"])
    alone = [gram([cell]) for cell in SPELLINGS]
    for cell, expected in zip(SPELLINGS, alone, strict=True):
        assert (gram([cell, "no number"]) == expected + odd).all(), cell
        assert (gram([cell, "1", "no number"]) == expected + gram(["1"]) + odd).all(), cell
    assert (gram(SPELLINGS) == np.sum(alone, axis=0)).all()


@pytest.mark.long
@pytest.mark.parametrize("stated", [None, dpm.TextFormat(thousands="'"), dpm.TextFormat(decimal=",")])
@pytest.mark.parametrize("at", [0, 1_000, 1_999])
def test_a_cell_that_is_no_number_changes_no_other_row_wherever_it_stands(
    at: int, stated: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of a few hundred rows: those before it were read in one way, those after it in the other."""
    monkeypatch.setattr(text, "_CSV_BLOCK_BYTES", 2048)
    cells = [f"{place % 7}" for place in range(2_000)]
    cells[at] = SECRET
    mark = "," if stated is None or stated.decimal == "." else ";"
    lines = "".join(f"{cell}{mark}{place % 3}{mark}{place}\n" for place, cell in enumerate(cells))
    path = tmp_path / "t.csv"
    path.write_text(f"c{mark}d{mark}id\n" + lines)
    told = stated if mark == "," else dpm.TextFormat(delimiter=";", decimal=",")
    for rule in ("drop", "center"):
        schema = Schema(dpm.Numeric("c", 0, 10, missing=rule), dpm.Categorical("d", ["0", "1", "2"]))
        plain = pa.table(
            {
                "c": pa.array([None if place == at else float(cell) for place, cell in enumerate(cells)], pa.float64()),
                "d": [f"{place % 3}" for place in range(2_000)],
            }
        )
        assert Rows.of(path, schema, text_format=told).moments() == Rows.of(plain, schema).moments()
        facts = dpm.preflight(path, schema, text_format=told, threads=1).private_facts()
        assert facts["columns"]["c"]["unreadable"] == 1
        assert facts["rows_kept"] == Rows.of(plain, schema).count()
        assert not facts["a_release_stops"]
    with refused("has a cell that is missing, not finite or not readable, and", column="c") as caught:
        Rows.of(path, Schema(dpm.Numeric("c", 0, 10)), text_format=told).count()
    require_quiet(caught.value)


def test_progress_is_told_to_its_end_by_a_file_that_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_CSV_BLOCK_BYTES", 4096)
    path = csv_file(tmp_path / "t.csv", [*(["1"] * 9_000), "x", *(["1"] * 9_000)])
    seen: list[int] = []
    Rows.of(path, Schema(dpm.Numeric("c", 0, 10, missing="drop")), on_block=seen.append).count()
    assert sum(seen) == path.stat().st_size
    assert min(seen) >= 0


@pytest.mark.parametrize("column", lenient("drop"), ids=["numeric", "boolean", "date", "categorical"])
def test_bytes_that_are_no_text_are_no_cell_of_any_kind(column: Any, tmp_path: Path) -> None:
    good = {"numeric": b"1", "boolean": b"true", "date": b"2020-03-01", "categorical": b"1"}[column.kind]
    path = tmp_path / "t.csv"
    path.write_bytes(b"c,d\n" + good + b",1\nM\xfcller,1\n" + good + b",M\xfcller\n")
    assert count(path, column) == 2
    facts = dpm.preflight(path, Schema(column), threads=1).private_facts()
    assert facts["rows_kept"] == 2
    assert not facts["a_release_stops"]
    held = pa.Array.from_buffers(pa.string(), 3, pa.array([good, b"M\xfcller", good]).buffers())
    if column.kind in ("date", "categorical"):
        pq.write_table(pa.table({"c": held}), tmp_path / "t.parquet")
        assert count(tmp_path / "t.parquet", column) == 2


def test_bytes_that_are_no_text_name_nobody(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,id\n1,p\n1,M\xfcller\n1,q\n")
    schema = Schema(dpm.Numeric("x", 0, 1))
    rows = Rows.of(path, schema, privacy_unit=dpm.PrivacyUnit("id", 1, "drop"))
    assert rows.bounded((1, 2)).count() == 2
    with refused("which identifies privacy units, or one that two units may"):
        Rows.of(path, schema, privacy_unit=dpm.PrivacyUnit("id", 1)).bounded((1, 2))


def test_a_folder_whose_name_is_no_number_is_missing(tmp_path: Path) -> None:
    for name in ("c=1", "c=x"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"d": [1.0, 2.0]}), tmp_path / name / "t.parquet")
    for rule, kept in (("drop", 2), ("center", 4)):
        schema = Schema(dpm.Numeric("d", 0, 2), dpm.Numeric("c", 0, 2, missing=rule))
        assert Rows.of(tmp_path, schema).count() == kept
    with refused("has a cell that is missing, not finite or not readable, and", column="c"):
        Rows.of(tmp_path, Schema(dpm.Numeric("d", 0, 2), dpm.Numeric("c", 0, 2))).count()


# Long lines -----------------------------------------------------------------------------------------------------------------

BLOCK = 1_000


@pytest.mark.long(sets=14)
@pytest.mark.parametrize("shape", ["plain", "quoted", "of many lines", "with a bare quote"])
@pytest.mark.parametrize("before", [0, 1, 333, 500, 990, 1_203])
@pytest.mark.parametrize("length", [BLOCK, BLOCK + 1, 1_500, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 5_000])
def test_a_line_is_refused_by_its_own_length_alone(
    length: int, before: int, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_CSV_BLOCK_BYTES", BLOCK)
    quote = b"" if shape == "plain" else b'"'
    filling = {"of many lines": b'ab\ncd\r\n,,\r""', "with a bare quote": b'a,5" b,""'}.get(shape, b"x")
    edges = len(b"1," + 2 * quote) if shape != "with a bare quote" else len(b"1,")
    inner = (filling * length)[: length - edges]
    if shape == "of many lines":
        inner = inner.rstrip(b'"').ljust(length - edges, b"y")
    elif shape == "with a bare quote":
        inner, quote = b'5" ' + b"x" * (length - edges - 3), b""
    line = b"1," + quote + inner + quote
    assert len(line) == length
    head = b"c,d\n"
    lines, left = [], before
    while left > 0:
        lines.append(b"1," + b"z" * min(max(left - 3, 0), 40) + b"\n")
        left -= len(lines[-1])
    path = tmp_path / "t.csv"
    for after in (b"", b"1,z\n" * 3, b"1,z\n" * 900):
        path.write_bytes(head + b"".join(lines) + line + b"\n" + after)
        schema = Schema(dpm.Numeric("c", 0, 1))
        if length > 2 * BLOCK:
            with refused(" cannot be read: "):
                Rows.of(path, schema).count()
        else:
            assert Rows.of(path, schema).count() == len(lines) + 1 + after.count(b"\n")


def test_lines_are_measured_as_they_are_divided() -> None:
    def longest(content: bytes, quote: str | None = '"', step: int = 3) -> int:
        for limit in range(200):
            lengths = LineLengths(",", quote, limit)
            try:
                for start in range(0, len(content), step):
                    lengths.add(content[start : start + step])
            except LongLineError:
                continue
            return limit
        raise AssertionError

    for step in (1, 2, 5, 99):
        assert longest(b"12345\n1,2\n", step=step) == 5
        assert longest(b"1\r\n123\r\n12", step=step) == 3
        assert longest(b'"1\n3"\n1\n', step=step) == 5
        assert longest(b'"1\n3"\n1\n', None, step=step) == 2
        assert longest(b'1"\n3"4\n1\n', step=step) == 3
        assert longest(b'"a""\nb",1\n12\n', step=step) == 9
        assert longest(b'"a"b"\nc\n', step=step) == 5
        assert longest(b'a,"\n\n\n",b\n', step=step) == 9
    assert longest(b'\xef\xbb\xbf"a\nb"\nc') == 5


# Encodings ------------------------------------------------------------------------------------------------------------------

NO_TEXT: dict[str, tuple[str, bytes, bytes]] = {
    "utf-8": ("utf-8", b"good", b"M\xfcller"),
    "utf-8 below a line": ("utf-8", b"good", b"M\xfcller"),
    "ascii": ("ascii", b"good", "Müller".encode()),
    "cp1252": ("cp1252", b"good", b"M\x81ller"),
    "utf-16": ("utf-16-le", "good".encode("utf-16-le"), b"\x00\xd8x\x00"),
    "shift_jis": ("shift_jis", b"good", b"\xff"),
}


@pytest.mark.long(sets=5)
@pytest.mark.parametrize("name", NO_TEXT)
@pytest.mark.parametrize("piece", [3, 1 << 20])
def test_bytes_that_are_not_text_are_one_unreadable_cell_in_any_encoding(
    name: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_PIECE", piece)
    encoding, good, odd = NO_TEXT[name]
    skip = int(name.endswith("a line"))
    stated = dpm.TextFormat(encoding=encoding, skip_lines=skip)
    lines = [(good, "1"), (odd, "2"), (good, "3"), (good, None)]
    head = ("above\n" * skip + "g,x\n").encode(encoding)
    body = [
        cell + ",".encode(encoding) + (odd if number is None else number.encode(encoding)) + "\n".encode(encoding)
        for cell, number in lines
    ]
    path = tmp_path / "t.csv"
    path.write_bytes(head + b"".join(body))
    for other in ("drop", "zero"):
        for missing in ("drop", "center"):
            schema = Schema(
                dpm.Categorical("g", ["good", "\ufffd"], other=other), dpm.Numeric("x", 0, 4, missing=missing)
            )
            plain = pa.table({"g": ["good", "other", "good", "good"], "x": [1.0, 2.0, 3.0, None]})
            found = Rows.of(path, schema, text_format=stated).moments()
            assert found == Rows.of(plain, schema).moments()
            facts = dpm.preflight(path, schema, text_format=stated, threads=1).private_facts()
            assert facts["rows_kept"] == Rows.of(plain, schema).count()
    with refused("has a cell that is missing, not finite or not readable, and"):
        Rows.of(path, Schema(dpm.Numeric("x", 0, 4)), text_format=stated).count()


def test_a_line_of_too_many_cells_is_not_told_by_its_bytes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Arrow's reader would print the error that these bytes are not UTF-8, with one of them, past all of our own words."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"c,d\n1,2\n\xb1x,2,3\n")
    with refused(" cannot be read: "):
        count(path, dpm.Numeric("c", 0, 1, missing="drop"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "header",
    [b"c,d\n", b"\n\nc,d\n", b"\xef\xbb\xbfc,d\r\n", b'"c","d\nd"\r', b'\xef\xbb\xbf"c","d\n""d"\n', b"c,d\r\n\r\n"],
)
def test_names_are_those_of_the_first_line(header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for rows in (b"", b"1,2\n1,x\n", b'"1",2\n"1","\n"'):
        path.write_bytes(header + rows)
        assert count(path, dpm.Numeric("c", 0, 1, missing="drop")) == (2 if rows else 0)


@pytest.mark.parametrize("first", ["text", "long line"])
def test_a_file_is_read_again_for_both_reasons_and_counts_every_line_once(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_CSV_BLOCK_BYTES", BLOCK)
    plain = [b"1,z\n"] * 700
    odd = [b"x,z\n", b"1," + b"y" * 1_990 + b"\n"]
    whole = [
        *plain,
        *(odd if first == "text" else odd[::-1])[:1],
        *plain,
        *(odd if first == "text" else odd[::-1])[1:],
        *plain,
    ]
    path = tmp_path / "t.csv"
    path.write_bytes(b"c,d\n" + b"".join(whole))
    schema = Schema(dpm.Numeric("c", 0, 1, missing="drop"))
    assert Rows.of(path, schema).count() == 2_101
    assert dpm.preflight(path, schema).private_facts()["rows_kept"] == 2_101
    ragged = [b"1\n", *whole[:900], b"1,2,3\n", *whole[900:], b"1,2,3\n"]
    path.write_bytes(b"c,d\n" + b"".join(ragged))
    facts = dpm.preflight(path, schema).private_facts()
    assert (facts["lines_with_more_or_fewer_cells"], facts["rows"]) == (3, 2_102)
    with refused(" cannot be read: "):
        Rows.of(path, schema).count()


class _Warns:
    """Methods that tell of the cell in a warning."""

    def __float__(self) -> float:
        warnings.warn(SECRET, stacklevel=1)
        return 5.0

    __abs__ = __int__ = __index__ = is_nan = is_integer = __float__  # type: ignore[assignment]


class WarningFraction(_Warns, fractions.Fraction):
    pass


class WarningFloat(_Warns, float):
    pass


class WarningInteger(_Warns, int):
    pass


class WarningDecimal(_Warns, decimal.Decimal):
    pass


@pytest.mark.parametrize(
    ("cell", "number"),
    [(WarningFraction(7), None), (WarningFloat(7), 7.0), (WarningInteger(7), 7.0), (WarningDecimal(7), 7.0)],
    ids=lambda cell: type(cell).__name__,
)
def test_no_method_of_a_cell_can_warn_of_it(cell: Any, number: float | None) -> None:
    cells = np.empty(1, dtype=object)
    cells[0] = cell
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        values, unreadable = object_numbers(cells)
        object_texts(cells, integers=False)
        object_texts(cells, integers=True)
    assert not told
    assert (None if unreadable[0] else float(values[0])) == number


class FarDate(dt.datetime):
    """A time whose own zone puts it far outside what 64 bits count."""

    def utcoffset(self) -> dt.timedelta:
        return dt.timedelta(days=-110_000_000)


def test_a_date_of_a_zone_of_its_own_refuses_no_table() -> None:
    schema = Schema(dpm.Date("x", "1960-01-01", "2021-01-01", missing="drop"))
    dates = pd.DataFrame({"x": pd.Series([dt.date(2020, 1, 1), FarDate(2020, 1, 1)], dtype=object)})
    assert Rows.of(dates, schema).moments().count in (1, 2)


class Told(str):
    """A text whose own form quotes it in a warning."""

    __slots__ = ()

    def __repr__(self) -> str:
        warnings.warn(SECRET, stacklevel=2)
        return SECRET


def test_no_code_of_a_cell_runs_where_rows_are_hashed() -> None:
    assert source._object_word(Told("b")) == source._object_word("b") != source._object_word("c")
    assert source._object_word(Evil) == source._object_word(FarDate)  # of their type alone


def test_a_long_double_that_signals_warns_of_nothing() -> None:
    cells = np.array([1, 2, 3], dtype=np.longdouble)
    if cells.itemsize != 16:
        pytest.skip("no long doubles of 16 bytes")
    cells.view(np.uint8).reshape(3, 16)[1, :10] = [1, 0, 0, 0, 0, 0, 0, 0xA0, 0xFF, 0x7F]
    assert Rows.of(cells[:, None], Schema(dpm.Numeric("x0", 0, 10, missing="drop"))).moments().count == 2
