"""Text columns of Arrow and Parquet whose bytes are no UTF-8: a preflight tells of them and shows no byte."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.planning.survey import read_level_cells, read_number_cells

CELLS = pa.array([b"Mull\xffer", b"n\xff", b"north", None, b"7"])


def texts(kind: Any = None) -> Any:
    cells = CELLS.cast(pa.large_binary()) if kind == pa.large_string() else CELLS
    if kind == pa.string_view():
        cells = CELLS.cast(pa.binary_view())
    return pa.Array.from_buffers(kind or pa.string(), len(cells), cells.buffers())


FORMS: dict[str, Callable[[], Any]] = {
    "text": texts,
    "large text": lambda: texts(pa.large_string()),
    "views": lambda: texts(pa.string_view()),
    "chunks": lambda: pa.chunked_array([texts().slice(0, 2), texts().slice(2)]),
    "dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, None, 3]), texts().filter(CELLS.is_valid())
    ),
}
NUMBERS = [dpm.Numeric("x", 0, 1), dpm.Date("x", "2000-01-01", "2001-01-01"), dpm.Boolean("x"), dpm.Coordinate("x")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", NUMBERS, ids=lambda column: type(column).__name__)
def test_no_number_is_read_and_none_stops(form: str, column: Any) -> None:
    read = read_number_cells(FORMS[form](), column)
    assert read.unreadable.tolist() == [True, True, True, False, True]
    assert sum(read.found.values()) + read.like_numbers == 4


@pytest.mark.parametrize("form", FORMS)
def test_it_is_no_level_and_is_not_quoted(form: str) -> None:
    read = read_level_cells(FORMS[form](), dpm.Categorical("x", ["north"]))
    assert read.values.tolist() == [-1, -1, 0, -2, -1]
    assert read.found == {("type", "text that is not UTF-8"): 2, ("text", "7"): 1}


@pytest.mark.parametrize(
    "column", [*NUMBERS[:3], dpm.Categorical("x", ["north"])], ids=lambda column: type(column).__name__
)
def test_a_preflight_of_a_file_tells_of_it(tmp_path: Path, column: Any) -> None:
    pq.write_table(pa.table({"x": texts()}), tmp_path / "t.parquet")
    shown = io.StringIO()
    dpm.preflight(tmp_path / "t.parquet", dpm.Schema(column)).show(shown)
    assert "x" in shown.getvalue()
    assert "xff" not in shown.getvalue()
