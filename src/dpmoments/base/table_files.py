"""Files named by a path, a glob or a folder, and how to read and write them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dpmoments.base.documents import whole_file
from dpmoments.base.errors import InputFileNotFoundError, InputModuleNotFoundError, InputValueError, listed, shown
from dpmoments.base.table_libraries import pa, pa_csv, pc, pq
from dpmoments.base.text_files import CSV_DELIMITERS, TextFormat

EXCEL_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS_ENDINGS = (".dta", ".sav", ".zsav", ".sas7bdat", ".xpt")
_READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def sheet_rows(path: Path, form: TextFormat | None = None) -> Iterator[list[Any]]:
    """Iterate over the rows of a workbook's sheet, the header first."""
    # Empty cells are None. Rows without any value are left out, so that none depends on rows below it.
    form = form or TextFormat()
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise _missing_library("python-calamine", "excel") from None
    with CalamineWorkbook.from_path(str(path)) as workbook:
        known = workbook.sheet_names
        names = [form.sheet] if isinstance(form.sheet, str) else known[(form.sheet or 1) - 1 :][:1]
        if not names or names[0] not in known:
            raise InputValueError(f"{path} has no sheet {shown(form.sheet)}: its sheets are {listed(known)}")
        table = workbook.get_sheet_by_name(names[0])
        rows = enumerate([None if cell == "" else cell for cell in row] for row in table.iter_rows())
        above = [cells for _, cells in islice(rows, form.skip_lines)]
        for number, cells in rows:
            if any(cell is not None for cell in cells):
                # A name that is merged over lines of the header stands in the first of them.
                for (top, left), (bottom, _) in (table.merged_cell_ranges or ()) if above else ():
                    place = left - (table.start or (0, 0))[1]
                    if top < number <= bottom and top < len(above) and place < len(cells) and cells[place] is None:
                        cells[place] = above[top][place]
                yield cells
                break
        for _, cells in islice(rows, form.skip_below, None):
            if any(cell is not None for cell in cells):
                yield cells


def sheet_names(path: Path, form: TextFormat | None = None) -> list[str]:
    """Return the names in the header of a workbook's sheet; "" where it has none."""
    header = next(sheet_rows(path, form), [])
    return [cell if isinstance(cell, str) else "" for cell in header]


@dataclass(frozen=True)
class StatisticsColumn:
    """Declared column of a Stata, SPSS or SAS file.

    ``is_single`` is true of Stata's ``float``, of four bytes. ``labels`` maps codes to value labels; ``missing`` has the codes
    that SPSS declares as missing.
    """

    name: str
    is_text: bool
    is_single: bool
    format: str
    labels: dict[Any, str]
    label: str | None = None
    missing: tuple[Any, ...] = ()


def statistics_columns(path: Path, ending: str) -> list[StatisticsColumn]:
    """Return the declared columns of a file, from its dictionary."""
    spss = ending in (".sav", ".zsav")
    _, described = _reader(ending)(str(path), metadataonly=True, **({"user_missing": True} if spss else {}))
    kinds, labels_of = described.readstat_variable_types, described.variable_value_labels

    def missing_codes(name: str) -> Iterator[Any]:
        for ends in described.missing_ranges.get(name, ()) if spss else ():
            if ends["lo"] == ends["hi"]:
                yield ends["lo"]
            else:  # of a range the codes that have labels
                labels = labels_of.get(name, {})
                yield from (code for code in labels if not isinstance(code, str) and ends["lo"] <= code <= ends["hi"])

    return [
        StatisticsColumn(
            name,
            kinds.get(name) == "string",
            kinds.get(name) == "float",
            str(described.original_variable_types.get(name, "")),
            dict(labels_of.get(name, {})),
            described.column_names_to_labels.get(name),
            tuple(missing_codes(name)),
        )
        for name in described.column_names
    ]


_DAY = 86_400
_FROM_1960, _FROM_1582 = -3_653 * _DAY, -141_428 * _DAY
"""Seconds from 1970 to the first days that Stata and SAS, and SPSS, count from."""
_STATA = (("%TC", 1e-3), ("%TD", float(_DAY)), ("%D", float(_DAY)))
_SAS = (
    *((form, 1.0) for form in ("DATETIME", "E8601DT", "DATEAMPM")),
    *((form, float(_DAY)) for form in ("DATE", "YYMMDD", "MMDDYY", "DDMMYY", "E8601DA", "WEEKDATE", "WORDDATE")),
)
"""Beginnings of formats of times, and of days, with the seconds of their units."""


def unit_and_origin(form: str, ending: str) -> tuple[float, int] | None:
    """Return the seconds of a date format's unit, and from 1970 to its origin; else None.

    >>> unit_and_origin("%td", ".dta"), unit_and_origin("DATETIME20", ".sav"), unit_and_origin("F8.2", ".sav")
    ((86400.0, -315619200), (1.0, -12219379200), None)
    """
    form = form.upper()
    if ending in (".sav", ".zsav"):
        return (1.0, _FROM_1582) if "DATE" in form else None
    formats = _STATA if ending == ".dta" else _SAS
    return next(((unit, _FROM_1960) for beginning, unit in formats if form.startswith(beginning)), None)


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
        if size or not start:
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
        raise InputValueError(f"{shown(ending)} is not an ending of Stata, SPSS or SAS files")
    return getattr(pyreadstat, _READERS[ending])


def _missing_library(library: str, extra: str) -> InputModuleNotFoundError:
    return InputModuleNotFoundError(f"these files are read with {library}: pip install 'dpmoments[{extra}]'")


PARQUET_ENDINGS = (".parquet", ".pq")
FEATHER_ENDINGS = (".feather", ".arrow", ".ipc", ".arrows")
_IN_FOLDERS = (*PARQUET_ENDINGS, *FEATHER_ENDINGS, ".csv", ".tsv", *EXCEL_ENDINGS, *STATISTICS_ENDINGS)
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")
_FORMULA = r"\A('*[=+\-@\t\r\n＝＋－＠])"
"""Start of a text that spreadsheets run (OWASP, CSV injection).

Apostrophes may precede it.
"""
ENGINES = ("dask", "spark")


@dataclass(frozen=True)
class EngineFiles:
    """Table files that the workers of an engine read with this library's own readers.

    Passed in place of a path.

    Every worker must see the files under the same names. Parquet files are read in row groups, other files as a whole.

    Attributes
    ----------
    path : str or Path
        A file, glob or folder of Parquet, Feather or CSV files.
    engine : {"dask", "spark"}
        Dask: the connected client, or else the threads or processes that Dask is configured for. Spark: the active
        session, or else a new one with Spark's own settings.

    Raises
    ------
    ValueError
        If the engine is unknown.

    Examples
    --------
    >>> EngineFiles("people/*.parquet", engine="dask")
    EngineFiles(path='people/*.parquet', engine='dask')
    """

    path: str | Path
    engine: str

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputValueError(
                f"unknown engine {shown(self.engine)}: use one of {', '.join(ENGINES)}, or pass the path itself"
            )


def expand_paths(pattern: str | Path) -> list[Path]:
    """Return the files that a path, a glob or a folder names, in sorted order."""
    # A folder means the files in it that have an ending of Parquet, Feather, CSV, TSV, Excel, Stata, SPSS or SAS, at
    # any depth, except names (of a file or a folder on the way) that begin with a dot or an underscore: writers use
    # these for unfinished and internal files.
    if not str(pattern):
        raise InputFileNotFoundError("the path is empty: name a file, a glob or a folder")
    path = Path(pattern).expanduser()
    if path.is_dir():
        tables = (inside for inside in path.rglob("*") if inside.is_file() and file_ending(inside) in _IN_FOLDERS)
        result = sorted(
            table for table in tables if not any(part.startswith((".", "_")) for part in table.relative_to(path).parts)
        )
        absent = f"the folder '{pattern}' holds no .parquet, .feather, .arrow, .csv, .tsv, .xlsx, .dta, .sav or .sas7bdat file"
    elif path.exists():
        return [path]
    else:
        result = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if not Path(name).is_dir()]
        absent = f"no file matches '{pattern}'"
        if "://" in str(pattern):  # may hold a password
            raise InputFileNotFoundError(
                "a URL is not a file: a database is read by dpm.DatabaseQuery(url, 'SELECT * FROM people')",
                shell="a URL is not a file: a database is read by --database URL --query 'SELECT * FROM people', without DATA",
            )
    if not result:
        raise InputFileNotFoundError(absent)
    return result


def file_ending(path: Path) -> str:
    """Return the ending that gives the format, in lower case, without a compression ending.

    >>> file_ending(Path("people.CSV.gz"))
    '.csv'
    """
    name = path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path
    return name.suffix.lower()


def fixed_folder(pattern: str | Path) -> Path | None:
    """Return the folder below which a folder or a glob names files; None for a single file.

    >>> str(fixed_folder("data/year=*/*.parquet"))
    'data'
    """
    path = Path(pattern).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        return None
    parts = list(path.parts)
    fixed = next((index for index, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:fixed])


def open_ipc(path: Path, columns: Sequence[int] | None = None, source: Any = None) -> Any:
    """Open an Arrow IPC file or stream for reading these columns only."""
    # `source` is the file if already open.
    source = pa.OSFile(str(path)) if source is None else source
    magic = source.read(8)
    source.seek(0)
    if magic.startswith(b"FEA1"):
        raise InputValueError(f"{path} cannot be read: it is Feather version 1")
    # fields that are not wanted are never read, and threads are the pass's own
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=None if columns is None else list(columns))
    return (pa.ipc.open_file if magic.startswith(b"ARROW1") else pa.ipc.open_stream)(source, options=options)


def write_table(table: Any, path: Path, *, raw_text: bool = False) -> bool:
    """Write an Arrow table as .parquet, .csv or .tsv, by its ending, completely or not at all."""
    # In CSV, text and column names that a spreadsheet would run as a formula get an apostrophe before them, unless
    # `raw_text`; numbers never change, and different texts stay different. Return True if a text got an apostrophe.
    ending = path.suffix.lower()
    if ending in PARQUET_ENDINGS:
        with whole_file(path) as temporary:
            pq.write_table(table, temporary)
        return False
    if ending in (".csv", ".tsv"):
        written = table
        if not raw_text:
            # Also before a text that already has such an apostrophe.
            columns = [
                pc.replace_substring_regex(column, _FORMULA, r"'\1") if pa.types.is_string(column.type) else column
                for column in table.columns
            ]
            written = pa.table(columns, names=[re.sub(_FORMULA, r"'\1", name) for name in table.column_names])
        options = pa_csv.WriteOptions(delimiter=CSV_DELIMITERS[ending], quoting_style="needed")
        with whole_file(path) as temporary:
            pa_csv.write_csv(written, temporary, options)
        return not written.equals(table)
    raise InputValueError(f"{path} does not end in .parquet, .csv or .tsv, which gives the format: rename it")
