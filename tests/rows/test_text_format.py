"""CSV files in every format that can be stated give the bits of the frame that they were written from."""

from __future__ import annotations

import csv
import io
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.base import text_files
from dpmoments.base.text_files import TextFormat, Utf8Stream
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import text
from dpmoments.schema import Schema
from dpmoments.schema.cells import text_flags, text_numbers
from support.examples import examples
from support.said import Said, refused

SECRET = "Schmidt-4711"
LEVELS = ["nord", "süd;ost", 'w"est', "größe, \r\nhoch"]
SCHEMA = Schema(
    dpm.Numeric("größe", -1e6, 1e6, missing="center"),
    dpm.Date("tag", "2000-01-01", "2030-01-01", missing="drop", format="%d.%m.%Y"),
    dpm.Boolean("ja oder nein", missing="center"),
    dpm.Categorical("ort", LEVELS, missing="zero", other="zero"),
)
GERMAN = TextFormat(
    delimiter=";", encoding="latin-1", decimal=",", thousands=".", nulls=["k.A."], true=["ja"], false=["nein"]
)
ENCODINGS = ("latin-1", "cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "mac_roman")


def grouped(number: float, decimal: str, thousands: str | None) -> str:
    """A number as it is written with these marks, all of its digits."""
    sign, digits = ("-" if number < 0 else ""), f"{abs(number):.17f}".rstrip("0")
    whole, fraction = digits.split(".")
    if thousands is not None:
        whole = f"{int(whole):,}".replace(",", thousands)
    return sign + whole + (decimal + fraction if fraction else "")


def written(cells: dict[str, list[Any]], stated: TextFormat, *, line_end: str = "\n", spell: Any = None) -> bytes:
    """The table by Python's csv module."""
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, delimiter=stated.delimiter or ",", quotechar=stated.quote or '"', lineterminator=line_end)
    writer.writerow(cells)
    for size, day, flag, place in zip(*cells.values(), strict=True):
        nothing = stated.nulls[0] if stated.nulls else ""
        writer.writerow(
            [
                nothing if size is None else (spell or grouped)(size, stated.decimal, stated.thousands),
                nothing if day is None else day.strftime("%d.%m.%Y"),
                nothing if flag is None else (stated.true or ("true",))[0] if flag else (stated.false or ("false",))[0],
                nothing if place is None else place,
            ]
        )
    return (f"no header{line_end}" * stated.skip_lines + sink.getvalue()).encode(stated.encoding)


def frame_of(cells: dict[str, list[Any]]) -> pa.Table:
    kinds = (pa.float64(), pa.date32(), pa.bool_(), pa.string())
    return pa.table({name: pa.array(column, kind) for (name, column), kind in zip(cells.items(), kinds, strict=True)})


def random_cells(seed: int, n_rows: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)

    def gaps(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    days = [d.date() for d in pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(-99, 11_000, n_rows), unit="D")]
    return {
        "größe": gaps((rng.normal(0, 10.0 ** rng.integers(-3, 6, n_rows))).round(6).tolist()),
        "tag": gaps(days),
        "ja oder nein": gaps(rng.choice([True, False], n_rows).tolist()),
        "ort": gaps([LEVELS[i] if i < 4 else "anderswo" for i in rng.integers(0, 5, n_rows)]),
    }


formats = st.builds(
    lambda delimiter, encoding, marks, nulls, flags, quote, skip: TextFormat(
        delimiter=delimiter,
        encoding=encoding,
        decimal=marks[0],
        thousands=marks[1],
        nulls=nulls,
        true=flags[:1],
        false=flags[1:],
        quote=quote,
        skip_lines=skip,
    ),
    st.sampled_from([None, ";", "\t", "|", ",", "~", ":"]),
    st.sampled_from(ENCODINGS),
    st.sampled_from(
        [(",", "."), (",", None), (".", ","), (".", "'"), (",", " "), (".", "\u00a0"), (".", None), ("·", None)]
    ),
    st.sampled_from([(), ("k.A.",), ("-", "?"), ("",)]),
    st.sampled_from([(), ("ja", "nein"), ("1", "2"), ("0", "1"), ("oui", "non")]),
    st.sampled_from(['"', "'"]),
    st.integers(0, 2),
)


@pytest.mark.long
@given(
    stated=formats,
    seed=st.integers(0, 10**6),
    n_rows=st.sampled_from([0, 1, 40]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.sampled_from([400, 1000, 4 << 20]),
)
@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@example(stated=GERMAN, seed=0, n_rows=40, line_end="\r\n", block=400)
def test_a_table_in_any_format_gives_the_bits_of_its_frame(
    tmp_path_factory: pytest.TempPathFactory, stated: TextFormat, seed: int, n_rows: int, line_end: str, block: int
) -> None:
    cells = random_cells(seed, n_rows)
    path = tmp_path_factory.mktemp("format") / "t.csv"
    try:
        path.write_bytes(written(cells, stated, line_end=line_end))
    except UnicodeEncodeError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_CSV_BLOCK_BYTES", block)
        patch.setattr(text_files, "_PIECE", 7 if block < 1000 else 1 << 20)  # characters that straddle pieces
        moments = Rows.of(path, SCHEMA, text_format=stated).moments()
    assert moments == Rows.of(frame_of(cells), SCHEMA).moments()


NUMBER_PIECES = st.lists(
    st.sampled_from(
        ["1", "0", "95", "123", ".", ",", "+", "-", "e", "E5", " ", "\t", "inf", "NaN", "nan", "(", "x", ")", "'", "٣"]
    ),
    max_size=8,
).map("".join)


@pytest.mark.long(sets=None)
@given(cells=st.lists(st.one_of(NUMBER_PIECES, st.floats().map(repr), st.integers().map(str)), min_size=1, max_size=6))
@settings(max_examples=examples(100), deadline=None)
@pytest.mark.parametrize(("decimal", "delimiter"), [(".", "\x1f"), (",", "\x1f")])
def test_text_numbers_are_those_of_arrows_reader(decimal: str, delimiter: str, cells: list[str]) -> None:
    stated = TextFormat(decimal=decimal)
    cells = [
        cell.replace(".", decimal) if decimal != "." and "." in cell and "," not in cell else cell for cell in cells
    ]
    found = text_numbers(pa.array(cells), stated)
    for place, cell in enumerate(cells):
        try:
            table = pa_csv.read_csv(
                io.BytesIO(f"a{delimiter}b\n{cell}{delimiter}1\n".encode()),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
                convert_options=pa_csv.ConvertOptions(
                    column_types={"a": pa.float64()}, null_values=list(stated.null_markers), decimal_point=decimal
                ),
            )
        except pa.ArrowInvalid:
            assert found.unparsable[place]
            continue
        expected = table["a"].to_numpy()[0]
        assert not found.unparsable[place]
        assert found.missing[place] == (not np.isfinite(expected))
        assert found.missing[place] or found.values[place] == expected


GROUPED = {
    "1.234": 1234.0,
    "1.234,5": 1234.5,
    "1234,5": 1234.5,
    "1.234.567": 1234567.0,
    "-1.234,": -1234.0,
    ",5": 0.5,
    "1.234e2": 123400.0,
    " 12 ": 12.0,
    "+1.000": 1000.0,
    "1,5E-1": 0.15,
}
UNPARSABLE = [
    "1.23",
    "12.34.567",
    "1234.567",
    "1.2345",
    ".234",
    "1,234.5",
    "1.",
    "1..234",
    "1 234",
    "1,2,3",
    "0x10",
    "k.A.",
]


def test_thousands_stand_between_groups_of_three_alone() -> None:
    outcomes: dict[str | None, Any] = (
        GROUPED | dict.fromkeys(UNPARSABLE) | dict.fromkeys(["", "n/a", "inf", None], "missing")
    )
    for cell, number in outcomes.items():
        found = text_numbers(pa.array([cell], pa.string()), TextFormat(decimal=",", thousands="."))
        assert (found.unparsable.tolist(), found.missing.tolist()) == ([number is None], [number == "missing"]), cell
        if isinstance(number, float):
            assert found.values.tolist() == [number]
        assert "private" in repr(found)


def test_flags_and_chunks() -> None:
    cells = pa.chunked_array([["ja", "nein"], [], ["Ja", "", None, "1"]])
    found = text_flags(cells, TextFormat(true=["ja"], false=["nein", "1"]))
    assert np.array_equal(found.values, [1, 0, np.nan, np.nan, np.nan, 0], equal_nan=True)
    assert (found.unparsable.tolist(), found.missing.tolist()) == (
        [False, False, True, False, False, False],
        [False, False, False, True, True, False],
    )
    assert text_numbers(pa.chunked_array([], pa.string()), TextFormat()).values.shape == (0,)


def test_null_words_and_levels(tmp_path: Path) -> None:
    """A word that was stated is nothing in a categorical column, unless it is a level; a usual one is text there."""
    stated = TextFormat(nulls=["?", "NA"])
    schema = Schema(
        dpm.Categorical("a", ["x", "NA"], missing="zero"), dpm.Categorical("b", ["x"], missing="drop", other="zero")
    )

    def moments(folder: Path, content: str) -> Any:
        path = folder / "t.csv"
        path.write_text(content)
        return Rows.of(path, schema, text_format=stated).moments()

    def expected(a: list[str | None], b: list[str | None]) -> Any:
        return Rows.of(pa.table({"a": pa.array(a, pa.string()), "b": pa.array(b, pa.string())}), schema).moments()

    assert moments(tmp_path, "a,b\nNA,x\n?,NA\nn/a,n/a\n") == expected(["NA", None, "n/a"], ["x", None, "n/a"])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (dict(delimiter=";;"), "must be"),
        (dict(delimiter="§"), "delimiter and quote must be ASCII characters"),
        (dict(delimiter='"'), "delimiter and quote are both"),
        (dict(decimal=""), "must be"),
        (dict(decimal="5"), "must be"),
        (dict(decimal=",", thousands=","), "decimal and thousands are both"),
        (dict(decimal="-"), "cannot be a sign or a quote, which numbers contain"),
        (dict(encoding="latin-0"), "is not a text encoding that Python knows: common ones are"),
        (dict(encoding="rot13"), "is not a text encoding that Python knows: common ones are"),
        (dict(encoding=None), "is not a text encoding that Python knows: common ones are"),
        (dict(nulls="NA"), "must be a list of texts: ["),
        (dict(nulls=[-99]), "must be"),
        (dict(true=["ja"], false=["ja"]), "is both in"),
        (dict(nulls=["x"], true=["x"]), "is both in"),
        (dict(skip_lines=-1), "must be"),
        (dict(thousands="\n"), "must be"),
        (dict(decimal=" "), "must not be a space"),
    ],
)
def test_formats_that_cannot_be(options: dict[str, Any], code: str) -> None:
    with refused(code, (TypeError, ValueError)):
        TextFormat(**options)


SIMPLE = Schema(
    dpm.Numeric("age", 0, 100, missing="error"), dpm.Boolean("smokes", missing="error"), dpm.Categorical("town", ["a"])
)


def no_cell(column: str) -> Said:
    return Said("has a cell that is missing, not finite or not readable, and", column=column)


def no_text(encoding: str) -> Said:
    return Said(" cannot be read: ", reason=Said("its bytes are not text in", encoding=encoding))


NAMES = "age,smokes,town"
NO_SUCH_COLUMN = Said(
    "rename the column in the table or, if every file has", columns=1, names=("age", "smokes", "town")
)
SAVED = Said(" cannot be read: ", reason=Said("if it is text, pass the encoding it was saved in", encoding="UTF-8"))
ONE_SURROGATE = f"{NAMES},".encode("utf-16-le") + b"\x00\xd8" + "\n1,1,a,1".encode("utf-16-le")
FAULTS: list[tuple[bytes, dict[str, str], Said]] = [
    (f"age;smokes;town\n1,5;1;{SECRET}\n".encode(), {}, Said("would have 3 by \";\": pass delimiter=';'")),
    (f"age\tsmokes\ttown\n{SECRET}\t1\tb\n".encode(), {}, Said('would have 3 by "\\t", a tab: pass delimiter="\\t"')),
    (f"{NAMES}\n1,1,{SECRET}\n".encode(), {"delimiter": ";"}, Said("would have 3 by \",\": pass delimiter=','")),
    (f"{SECRET};b;c\n1;2;3\n".encode(), {}, NO_SUCH_COLUMN),
    (f'{NAMES}\n"4711,5",1,{SECRET}\n'.encode(), {}, no_cell("age")),
    (f'{NAMES}\n"4,7115",1,b\n'.encode(), {"thousands": ","}, no_cell("age")),
    (f"{NAMES}\n1,{SECRET},b\n".encode(), {}, no_cell("smokes")),
    (f"{NAMES},day\n1,1,b,{SECRET}ü\n".encode("latin-1"), {}, no_cell("day")),
    (f"{NAMES},ü\n1,1,{SECRET},1\n".encode("latin-1"), {}, SAVED),
    (f"{NAMES}\n1,1,{SECRET}".encode(), {"encoding": "utf-16"}, no_text("utf-16")),
    (ONE_SURROGATE, {"encoding": "utf-16-le"}, no_text("utf-16-le")),
    (f"{NAMES},ü\n1,1,{SECRET},1\n".encode(), {"encoding": "ascii"}, no_text("ascii")),
]


@pytest.mark.parametrize(("content", "stated", "expected"), FAULTS)
def test_what_is_wrong_is_told_and_no_cell(
    content: bytes, stated: dict[str, str], expected: Said, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with_day = "day" in content.decode("latin-1")
    schema = Schema(*SIMPLE.columns, dpm.Date("day", "2000-01-01", "2001-01-01")) if with_day else SIMPLE
    with refused(expected) as caught:
        Rows.of(path, schema, text_format=TextFormat(**stated) if stated else None).moments()
    said = "".join(traceback.format_exception(caught.value))
    assert not any(secret in said for secret in (SECRET, "4711", "4,7", "\\xfc", "0xfc"))
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in repr(vars(error)) + repr(error.args)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "shift_jis", "gb18030"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_streams_do_not_depend_on_where_reads_end(encoding: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = "länge,ö\r\n1,2\r\n" * 9 if encoding in ("latin-1", "utf-8", "utf-16") else "日本,語\r\n1,2\r\n" * 9
    monkeypatch.setattr(text_files, "_PIECE", size)
    raw, made = Utf8Stream(io.BytesIO(whole.encode(encoding)), encoding), b""
    while piece := raw.read(size):
        assert len(piece) <= size
        made += piece
    assert made.decode() == whole
    skipped = Utf8Stream(io.BytesIO(whole.encode(encoding)), encoding, skip_lines=2).read(-1)
    assert skipped.decode() == whole.split("\r\n", 2)[2]
    assert Utf8Stream(io.BytesIO(whole.encode(encoding)), encoding, skip_lines=100).read(5) == b""


def test_an_index_of_a_frame_is_named_where_it_is_wanted() -> None:
    frame = pd.DataFrame({"age": [1.0], "pay": [2.0]}).set_index("age")
    with refused("that is its index, which is not read; pass frame.reset_index"):
        Rows.of(frame, Schema(dpm.Numeric("age", 0, 100)))
    assert Rows.of(frame, Schema(dpm.Numeric("pay", 0, 100))).count() == 1


def test_groups_are_read_as_is_stated(tmp_path: Path) -> None:
    cells = random_cells(5, 300)
    (tmp_path / "t.csv").write_bytes(written(cells, GERMAN))
    schema = Schema(*SCHEMA.columns[:1], *SCHEMA.columns[2:])
    options: dict[str, Any] = dict(by="ort", epsilon=1.0, neighbors="add_remove", insecure_seed=3)
    found = dpm.release_groups(tmp_path / "t.csv", schema, text_format=GERMAN, **options)["nord"]
    expected = dpm.release_groups(frame_of(cells), schema, **options)["nord"]
    assert found.noisy_gram.tobytes() == expected.noisy_gram.tobytes()


@pytest.mark.parametrize(
    "encoding",
    ["hz", "UTF-7", "csiso2022jp", "iso2022_jp_2004", "ISO-2022-KR", "punycode", "idna", "unicode_escape"],
)
def test_an_encoding_in_which_a_row_changes_how_later_ones_are_read_is_refused(encoding: str) -> None:
    with refused("one row could change how later rows are read."):
        dpm.TextFormat(encoding=encoding)
