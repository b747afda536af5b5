"""Delimited text files (CSV) in any stated format, streamed through Arrow's reader."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from dpmoments.base.errors import InputValueError
from dpmoments.base.table_files import file_ending
from dpmoments.base.table_libraries import pa, pa_csv, pc
from dpmoments.base.text_files import LineLengths, TextFormat, first_line, names_in, open_utf8, other_delimiter
from dpmoments.rows.sources.arrow import StreamedFileSource, folder_keys, values_as_cells, with_bytes_read
from dpmoments.rows.sources.source import LONG_LINE, UNCONVERTED, ReadAgain, read_each, read_quietly
from dpmoments.schema.cells import decoded_bytes, decoded_levels, decoded_without, needs_text, null_markers
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.dates import Date

_CSV_BLOCK_BYTES = 4 << 20
"""Size of a block (half for few columns, four times for long lines); 32 are read ahead."""
_FEW_COLUMNS = 256
_HEADER_BYTES = 1 << 20
_AS_TEXT, _LONG_LINES = "as text", "long lines"
"""Ways to read a file again."""
_USUAL = TextFormat()


@dataclass(frozen=True, eq=False)
class CsvSource(StreamedFileSource):
    """Rows of delimited text files with a header line, read block by block.

    Text formats that Arrow's reader does not support, thousands marks and dates, are parsed from columns of text.
    """

    text_format: TextFormat = _USUAL
    on_ragged_line: Callable[[], None] | None = field(default=None, kw_only=True)
    """If given, values are not converted; see :meth:`unconverted`."""

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        return replace(self, on_ragged_line=on_ragged_line)

    @property
    def text_of_cells(self) -> TextFormat:
        return self.text_format

    def names_in(self, path: Path) -> list[str]:
        line = first_line(path, self.text_format)
        if not line.strip():
            raise InputValueError(f"{path} cannot be read: it has no header line")
        return names_in(line, self._delimiter(path), self.text_format)

    def require_names(self, path: Path, names: Sequence[object]) -> None:
        """Raise unless ``names`` contains every column, with advice if another delimiter gives them."""
        wanted = set(self.reading.names) - set(folder_keys(path, self.folder))
        if not wanted <= set(names):
            line = first_line(path, self.text_format)
            advice = other_delimiter(line, self._delimiter(path), self.text_format, wanted.issubset)
            if advice is not None:
                raise advice.preceded_by(f"{path} does not have the schema's columns: ")
        super().require_names(path, names)

    def batches(self, path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over the named columns of a file, which it has."""
        # If Arrow's reader cannot convert a value, columns are read as bytes; if a line is longer than a block, in larger
        # blocks. The file is then read again from its beginning, and rows already returned are skipped: the others are
        # read the same in either way.
        indices = [0]
        yield from with_bytes_read(self._batches(path, names, indices), lambda: indices[0])

    def _batches(self, path: Path, names: Sequence[str], positions: list[int]) -> Iterator[pa.RecordBatch]:
        header = self.names_in(path)
        ways: set[str] = set()
        given, reported = 0, 0

        def mended(said: str) -> str | None:
            if LONG_LINE in said and _LONG_LINES not in ways:
                return _LONG_LINES
            return _AS_TEXT if said.startswith(UNCONVERTED) and _AS_TEXT not in ways else None

        while True:
            seen = 0

            def skip_ragged_line(line: Any) -> str:
                nonlocal seen, reported
                del line
                seen += 1
                if seen > reported and self.on_ragged_line is not None:
                    reported = seen
                    self.on_ragged_line()
                return "skip"

            convert = pa_csv.ConvertOptions(
                # What tells people apart is text in every file, whatever its cells look like.
                column_types={name: self._type(name, as_text=_AS_TEXT in ways) for name in names},
                include_columns=list(names),
                null_values=list(self.text_format.null_markers),
                true_values=list(self.text_format.true_markers),
                false_values=list(self.text_format.false_markers),
                strings_can_be_null=False,
                decimal_point="." if self._keeps_numbers_as_text else self.text_format.decimal,
            )
            opened = self._reader(
                path,
                convert,
                n_columns=len(header),
                ragged=None if self.on_ragged_line is None else skip_ragged_line,
                mended=mended,
                long_lines=_LONG_LINES in ways,
            )
            try:
                with opened as (reader, ends):
                    passed = n_batches = 0
                    for batch in read_each(reader, path, mended=mended):
                        fresh = batch.slice(min(max(given - passed, 0), batch.num_rows))
                        passed, n_batches = passed + batch.num_rows, n_batches + 1
                        positions[0] = ends[min(n_batches, len(ends)) - 1]  # a batch is one block, read ahead
                        given += fresh.num_rows
                        for start in range(0, fresh.num_rows, self.reading.largest_part):
                            yield fresh.slice(start, self.reading.largest_part)
                    return
            except ReadAgain as again:
                ways.add(str(again))

    def cells(self, part: pa.RecordBatch) -> Mapping[str, Any]:
        """Return the columns of a batch, with text converted to numbers and null markers to nulls."""
        return super().cells(self._converted(part))

    @property
    def _keeps_numbers_as_text(self) -> bool:
        """True if Arrow's reader does not support the number format."""
        return self.text_format.thousands is not None or self.text_format.decimal > "\x7e"

    def _type(self, name: str, *, as_text: bool) -> Any:
        column = self.reading.schema.columns_by_source.get(name)
        if self.on_ragged_line is not None or name not in self.reading.names or as_text:
            return pa.binary()
        if column is None or isinstance(column, Categorical | Date) or needs_text(column):
            return pa.string()
        if isinstance(column, Boolean):
            return pa.bool_()
        return pa.string() if self._keeps_numbers_as_text else pa.float64()

    def _converted(self, part: pa.RecordBatch) -> pa.RecordBatch:
        """Convert text or bytes left by the reader to numbers, and null markers to nulls."""
        made = []
        for name, cells in zip(part.schema.names, part.columns, strict=True):
            column = self.reading.schema.columns_by_source.get(name)
            is_text = pa.types.is_string(cells.type)
            if name not in self.reading.names or not (is_text or pa.types.is_binary(cells.type)):
                made.append(cells)
            elif column is None or isinstance(column, Categorical | Date):
                # What tells people apart has usual words for nothing of its own, beside those that were stated.
                words = self.text_format.nulls if column is None else null_markers(column, self.text_format)
                if is_text:
                    made.append(
                        pc.if_else(pc.is_in(cells, pa.array(words, cells.type)), None, cells) if words else cells
                    )
                else:
                    decoded = decoded_levels if isinstance(column, Categorical) else decoded_without
                    made.append(decoded(cells, words)[0])
            else:
                made.append(values_as_cells(cells if is_text else decoded_bytes(cells)[0], column, self.text_format))
        return pa.RecordBatch.from_arrays(made, names=part.schema.names)

    def _delimiter(self, path: Path) -> str:
        return self.text_format.delimiter_for(file_ending(path))

    @contextmanager
    def _reader(
        self,
        path: Path,
        convert: Any,
        *,
        n_columns: int,
        ragged: Callable[[Any], str] | None,
        mended: Callable[[str], str | None],
        long_lines: bool,
    ) -> Iterator[tuple[Any, Sequence[int]]]:
        """Open Arrow's reader of a file, with the file's positions after its blocks, for a context."""
        raw = read_quietly(partial(pa.OSFile, str(path)), path)
        open_stream = partial(_with_line_end, path, self.text_format, raw)
        quote = self.text_format.quote
        lengths = LineLengths(self._delimiter(path), quote, 2 * _CSV_BLOCK_BYTES) if long_lines else None
        stream = _WholeLineEnds(read_quietly(open_stream, path), raw, lengths)
        # Cells may hold line breaks, in quotes. In a file of one column an empty line is an empty cell.
        parse = pa_csv.ParseOptions(
            delimiter=self._delimiter(path),
            quote_char=self.text_format.quote or False,
            newlines_in_values=True,
            ignore_empty_lines=n_columns != 1,
            invalid_row_handler=ragged,
        )
        block_size = _CSV_BLOCK_BYTES // (2 if n_columns <= _FEW_COLUMNS else 1)
        if long_lines:
            block_size = 4 * _CSV_BLOCK_BYTES
        open_reader = partial(
            pa_csv.open_csv,
            pa.PythonFile(stream, mode="r"),
            read_options=pa_csv.ReadOptions(
                block_size=block_size, use_threads=False, skip_rows_after_names=self.text_format.skip_below
            ),
            parse_options=parse,
            convert_options=convert,
        )
        try:
            with read_quietly(open_reader, path, mended=mended) as reader:
                yield reader, stream.positions
        finally:
            stream.end()


class _WholeLineEnds:
    """Binary stream whose reads never end between the CR and the LF of a line end."""

    def __init__(self, stream: Any, raw: Any, lengths: LineLengths | None) -> None:
        self._stream = stream
        self._lengths = lengths
        self._raw = raw
        self.positions: list[int] = []
        """File position after each block."""
        self._held = b""
        self._reading = threading.Lock()
        self._ended = False
        self.found_end = False
        """True once Arrow's thread has seen the end."""
        self.closed = False
        _streams.add(self)

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` ≥ 2 bytes; none only at the end of the stream."""
        with self._reading:
            block = b"" if self._ended else self._following(size)
            if self._lengths is not None:
                self._lengths.add(block)
            self.found_end = not block
            self.positions.append(self._raw.tell())
            return block

    def end(self) -> None:
        """Stop further reads."""
        with self._reading:
            self._ended = True

    def _following(self, size: int) -> bytes:
        if size is None or size < 0:
            block, self._held = self._held + bytes(self._stream.read()), b""
            return block
        block, self._held = self._held, b""
        # In full blocks, since a line may be as long as one.
        while len(block) < max(size - 1, 1) and (more := bytes(self._stream.read(max(size - 1, 1) - len(block)))):
            block += more
        if block.endswith(b"\r"):
            following = bytes(self._stream.read(1))
            if following == b"\r":  # which may have an LF of its own
                self._held = following
            else:
                block += following
        return block

    def close(self) -> None:
        self.closed = True
        self._stream.close()


_streams: WeakSet[_WholeLineEnds] = WeakSet()
_SECONDS_TO_LEAVE = 0.5
"""Seconds for Arrow's thread to see the end of a script that an error ended, and to leave."""


@atexit.register
def _end_all() -> None:
    waiting = [stream for stream in list(_streams) if not stream.found_end]
    for stream in waiting:
        stream.end()
    if waiting:
        time.sleep(_SECONDS_TO_LEAVE)


def _with_line_end(path: Path, text_format: TextFormat, raw: Any) -> Any:
    """Open the input of Arrow's reader."""
    # The file, or its only line with an end, which Arrow needs to find columns.
    stream = open_utf8(path, text_format)
    try:
        head = bytes(stream.read(_HEADER_BYTES))
    finally:
        stream.close()
    line = head.removesuffix(b"\r")
    if len(head) < _HEADER_BYTES and line.strip() and b"\n" not in line and b"\r" not in line:
        return pa.BufferReader(line + b"\n")
    return open_utf8(path, text_format, raw)
