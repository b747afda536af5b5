"""Table behind Rows: how it is read, and what every source of its rows answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from dpmoments.base.errors import (
    InputError,
    InputFileNotFoundError,
    InputPermissionError,
    InputValueError,
)
from dpmoments.base.text_reading import EncodingError, LongLineError
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import Restriction, largest_block
from dpmoments.rows.level_sums import LevelLayout
from dpmoments.rows.summary import Missing, Summary
from dpmoments.schema.schema import Schema

Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """Manner of reading a table.

    If ``mean``, rows are encoded about the midpoints of their bounds (:meth:`dpmoments.Schema.encoding`).
    ``restriction`` limits the rows to some levels of a column. The column of ``privacy_unit`` is read in addition to
    the schema's. ``array_type`` is the common type of all blocks of an engine's array.
    """

    schema: Schema
    mean: bool
    privacy_unit: PrivacyUnit | None = None
    restriction: Restriction | None = None
    array_type: np.dtype[Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are read, by their names in the table."""
        names = self.schema.names_in_table
        return names if self.privacy_unit is None else (*names, self.privacy_unit.column)

    @property
    def names_read(self) -> Mapping[str, str]:
        """Names of the columns that are read: in the table → in the schema."""
        return dict(zip(self.names, (*self.schema.names, self.names[-1]), strict=False))

    @property
    def largest_part(self) -> int:
        """Number of rows encoded at a time."""
        return largest_block(self.schema, whole_rows=self.privacy_unit is not None)

    @property
    def encoded_schema(self) -> Schema:
        """Schema of the columns that are encoded."""
        return self.schema if self.restriction is None else self.restriction.schema

    @cached_property
    def layout(self) -> LevelLayout:
        """Layout of levels and numbers among the encoded features."""
        return LevelLayout.of(self.encoded_schema, mean=self.mean)

    def counted(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a part, limited to the selected rows."""
        return columns if self.restriction is None else self.restriction.applied(columns)


@dataclass(frozen=True, eq=False, repr=False)
class Source(ABC):
    """Table that can be passed over repeatedly, with the same rows every time."""

    reading: Reading

    @property
    def n_rows(self) -> int | None:
        """Number of rows, dropped ones included, if known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Sum of the ``on_block`` calls of a pass, in rows or a source's own unit; None if unknown."""
        return self.n_rows

    @property
    def missing(self) -> Missing:
        """Rule for non-finite values of its encoded batches.

        In a batch encoded by columns they are a dropped row.
        """
        return "drop"

    def restricted(self, restriction: Restriction) -> Self:
        """Return the table limited to rows with some levels of a column."""
        return replace(self, reading=replace(self.reading, restriction=restriction))

    @abstractmethod
    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the table's partitions and merge the results."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


# Readers' errors, told without the cells they quote.

DAMAGED_FILE = "damaged, truncated, or not what its name says"
UNCONVERTED = "In CSV column #"
"""Arrow's message for a value that cannot be converted to its column's type."""
LONG_LINE = "straddling object straddles two block boundaries"
"""Arrow's message for a line longer than one block, or than two, depending on its start."""
FAILED_QUERY = "its query fails, on the table or before it"


class ReadAgain(Exception):  # noqa: N818 (no error reaches a caller)
    """Request to read a delimited file again from its beginning, in the way of the argument."""


def read_quietly(
    step: Callable[[], Result],
    where: str | Path,
    why: str = DAMAGED_FILE,
    *,
    mended: Callable[[str], str | None] | None = None,
) -> Result:
    """Run one step of reading a private table, and hide the text of any reader's error."""
    # Parse and cast errors quote the value they stop at. The error raised here names the location `where` and the
    # likely cause `why`, and is not chained to the original. This library's own errors quote none and are raised again.
    # `mended` maps the error's text to another way to read the file, or None.
    try:
        return step()
    except (EncodingError, LongLineError) as error:
        failure: Exception = InputValueError(f"{where} cannot be read: {error}")
    except InputError:
        raise
    except FileNotFoundError:
        failure = InputFileNotFoundError(f"{where} does not exist")
    except PermissionError:
        failure = InputPermissionError(f"{where} cannot be read: permission denied")
    except MemoryError:
        failure = MemoryError(f"{where} does not fit into memory")
    except Exception as error:
        kind = type(error).__name__
        if mended is not None and (way := mended(str(error))) is not None:
            failure = ReadAgain(way)
        else:
            if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+: ", str(error)):
                why = "one of its lines has a different number of fields than the first"
            failure = InputValueError(f"{where} cannot be read: {why} ({kind})")
    raise failure  # outside the handlers, where the original would become its context
