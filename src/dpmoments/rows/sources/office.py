"""Rows of Excel, Stata, SPSS and SAS files, of database queries, and of mixed files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpmoments.base.databases import DatabaseSession
from dpmoments.base.errors import InputTypeError, shown
from dpmoments.base.table_files import (
    StatisticsColumn,
    file_ending,
    sheet_names,
    sheet_rows,
    statistics_batches,
    statistics_columns,
    unit_and_origin,
)
from dpmoments.base.table_libraries import pa
from dpmoments.base.text_files import TextFormat
from dpmoments.rows.sources.arrow import FileSource
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.source import FAILED_QUERY, Fingerprint, FirstPass, LocalSource, read_each, read_quietly
from dpmoments.schema.cells import FARTHEST, objects_of
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.dates import MICROSECONDS, Date

_USUAL = TextFormat()
_ROWS_PER_READ = 500_000


@dataclass(frozen=True, eq=False, repr=False)
class ColumnPart:
    """Rows of a file, as columns by their names in the table."""

    columns: Mapping[str, Any]
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


@dataclass(frozen=True, eq=False)
class _ColumnsOfFile(FileSource):
    """Rows of files that a library reads into columns, without the names of their folders."""

    def parts(self) -> Iterator[Any]:
        for path in self.paths:
            yield from read_each(self.read_parts(path), path)

    def read_parts(self, path: Path) -> Iterator[ColumnPart]:
        """Iterate over the rows of a file."""
        raise NotImplementedError

    def batches(self, path: Path, names: Sequence[str]) -> Iterator[Any]:
        return self.read_parts(path)

    def written_cells(self, part: Any, name: str) -> Any:
        return part.columns[name]


@dataclass(frozen=True, eq=False)
class ExcelSource(_ColumnsOfFile):
    """Rows of a sheet of an Excel or OpenDocument workbook; every cell has its own type."""

    text_format: TextFormat = _USUAL

    def names_in(self, path: Path) -> list[str]:
        return read_quietly(partial(sheet_names, path, self.text_format), path)

    def read_parts(self, path: Path) -> Iterator[ColumnPart]:
        rows = sheet_rows(path, self.text_format)
        header = next(rows, [])
        indices = {name: header.index(name) for name in self.reading.names}
        held: list[list[Any]] = []
        for row in rows:
            held.append([row[index] for index in indices.values()])
            if len(held) == self.reading.largest_part:
                yield _part_of_rows(held, list(indices))
                held = []
        if held:
            yield _part_of_rows(held, list(indices))


def _part_of_rows(rows: list[list[Any]], names: Sequence[str]) -> ColumnPart:
    columns = {name: objects_of((row[index] for row in rows), len(rows)) for index, name in enumerate(names)}
    return ColumnPart(columns, len(rows))


@dataclass(frozen=True, eq=False)
class StatisticsSource(_ColumnsOfFile):
    """Rows of Stata, SPSS and SAS files.

    A categorical column with levels of text gets the file's value labels, and the code where a value has none; every
    other column gets the codes. Dates are converted by the format that the file declares.
    """

    def names_in(self, path: Path) -> list[str]:
        declared: list[StatisticsColumn] = read_quietly(partial(statistics_columns, path, file_ending(path)), path)
        return [column.name for column in declared]

    def read_parts(self, path: Path) -> Iterator[ColumnPart]:
        ending, step = file_ending(path), self.reading.largest_part
        declared = {column.name: column for column in statistics_columns(path, ending)}
        wanted = self.reading.schema.columns_by_source
        for batch in statistics_batches(path, ending, self.reading.names, _ROWS_PER_READ):
            columns = {
                name: _cells(batch[name], declared[name], wanted.get(name), ending) for name in self.reading.names
            }
            size = len(next(iter(columns.values())))
            for start in range(0, max(size, 1), step):
                part = {name: cells[start : start + step] for name, cells in columns.items()}
                yield ColumnPart(part, min(step, size - start))


def _cells(cells: Any, declared: StatisticsColumn, column: Column | None, ending: str) -> Any:
    if declared.is_text:
        return objects_of((None if cell == "" else cell for cell in cells), len(cells))
    values = np.asarray(cells, dtype=np.float32 if declared.is_single else np.float64)
    if isinstance(column, Date):
        if (known := unit_and_origin(declared.format, ending)) is None:
            raise InputTypeError(
                f"column '{declared.name}' has the format {shown(declared.format)} in the file, which is not one of days or "
                "times: describe it as Numeric"
            )
        unit, origin = known
        numbers, most = values.astype(np.float64), float(FARTHEST)
        missing = ~np.isfinite(numbers)
        micros = np.where(missing, 0.0, numbers) * (unit * MICROSECONDS) + origin * MICROSECONDS
        return pa.array(np.rint(np.clip(micros, -most, most)).astype(np.int64), pa.timestamp("us"), mask=missing)
    if isinstance(column, Categorical) and isinstance(column.levels[0], str) and declared.labels:
        labels = {float(code): label for code, label in declared.labels.items() if isinstance(code, int | float)}
        read = (None if value != value else labels.get(value, value) for value in values.tolist())
        return objects_of(read, len(values))
    return pa.array(values)


@dataclass(frozen=True, eq=False, repr=False)
class _PartOfSource:
    """Part of one of several sources."""

    source: FileSource
    part: Any

    def __len__(self) -> int:
        return len(self.part)


@dataclass(frozen=True, eq=False)
class SeveralSource(LocalSource[_PartOfSource]):
    """Rows of files of several kinds, which one schema describes and their own sources read."""

    sources: tuple[FileSource, ...]

    def _current(self) -> list[FileSource]:
        return [replace(source, reading=self.reading) for source in self.sources]

    @property
    def n_rows(self) -> int | None:
        known = [source.n_rows for source in self.sources]
        return None if None in known else sum(n_rows for n_rows in known if n_rows is not None)

    def parts(self) -> Iterator[_PartOfSource]:
        for source in self._current():
            for part in source.parts():
                yield _PartOfSource(source, part)

    def written_cells(self, part: _PartOfSource, name: str) -> Any:
        return part.source.written_cells(part.part, name)

    def cells(self, part: _PartOfSource) -> Mapping[str, Any]:
        return part.source.cells(part.part)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        return replace(self, sources=tuple(source.unconverted(on_ragged_line) for source in self.sources))

    def one_by_one(self) -> list[Any]:
        return [piece for source in self._current() for piece in source.one_by_one()]

    def pieces(self) -> list[Any]:
        """Split the table into pieces that an engine's workers can read independently."""
        return [piece for source in self._current() for piece in source.pieces()]


_WHERE = "the query"


@dataclass(frozen=True, eq=False, repr=False)
class DatabaseSource(LocalSource[ColumnPart]):
    """Rows of a query; every pass runs it again, and must find the rows of the first."""

    session: DatabaseSession
    first_pass: FirstPass

    def __post_init__(self) -> None:
        require_columns(self.session.names, self.reading.names, _WHERE)

    def parts(self) -> Iterator[ColumnPart]:
        fingerprint = Fingerprint()
        batches = self.session.batches(self.reading.names, self.reading.largest_part)
        for columns in read_each(batches, _WHERE, FAILED_QUERY):
            fingerprint.add(columns)
            yield ColumnPart(columns, len(next(iter(columns.values()))))
        self.first_pass.require_same(fingerprint.value, _WHERE)

    def written_cells(self, part: ColumnPart, name: str) -> Any:
        return part.columns[name]
