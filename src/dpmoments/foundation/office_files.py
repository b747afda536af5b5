"""Excel workbooks and files of Stata, SPSS and SAS, opened with their optional libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmoments.foundation.errors import InputModuleNotFoundError, InputValueError

EXCEL_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS_ENDINGS = (".dta", ".sav", ".zsav", ".sas7bdat", ".xpt")
_READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def sheet_rows(path: Path) -> Iterator[list[Any]]:
    """Iterate over the rows of a workbook's first sheet, the header first.

    Empty cells are None. Rows without any value are left out, so that none depends on rows below it.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise _missing_library("python-calamine", "excel") from None
    with CalamineWorkbook.from_path(str(path)) as workbook:
        for row in workbook.get_sheet_by_index(0).iter_rows():
            cells = [None if cell == "" else cell for cell in row]
            if any(cell is not None for cell in cells):
                yield cells


def sheet_names(path: Path) -> list[str]:
    """Return the names in the header of a workbook's first sheet; "" where it has none."""
    header = next(sheet_rows(path), [])
    return [cell if isinstance(cell, str) else "" for cell in header]


@dataclass(frozen=True)
class StatisticsColumn:
    """Declared column of a Stata, SPSS or SAS file.

    ``labels`` maps codes to value labels.
    """

    name: str
    is_text: bool
    format: str
    labels: dict[Any, str]


def statistics_columns(path: Path, ending: str) -> list[StatisticsColumn]:
    """Return the declared columns of a file, from its dictionary."""
    _, described = _reader(ending)(str(path), metadataonly=True)
    return [
        StatisticsColumn(
            name,
            str(described.readstat_variable_types.get(name, "")) == "string",
            str(described.original_variable_types.get(name, "")),
            dict(described.variable_value_labels.get(name, {})),
        )
        for name in described.column_names
    ]


def statistics_batches(path: Path, ending: str, names: Sequence[str], rows: int) -> Iterator[dict[str, Any]]:
    """Iterate over batches of columns of a file, as stored: dates are numbers."""
    read, start = _reader(ending), 0
    while True:
        columns, _ = read(
            str(path),
            usecols=list(names),
            disable_datetime_conversion=True,
            output_format="dict",
            row_offset=start,
            row_limit=rows,
        )
        size = len(next(iter(columns.values()), ()))
        if size:
            yield columns
        if size < rows:
            return
        start += size


def _reader(ending: str) -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise _missing_library("pyreadstat", "statistics") from None
    if ending not in _READERS:
        raise InputValueError.of("not-an-office-ending", ending=ending)
    return getattr(pyreadstat, _READERS[ending])


def _missing_library(library: str, extra: str) -> InputModuleNotFoundError:
    return InputModuleNotFoundError.of("library-missing", library=library, extra=extra)
