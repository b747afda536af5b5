"""The schema that ``dpmoments init`` writes: a table's column names and types, and blanks for all that is not in its header."""

from __future__ import annotations

import csv
import glob
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmoments.table_files import CSV_DELIMITERS, PARQUET_ENDINGS, file_ending

__all__ = ["HeaderColumn", "default_output", "read_header", "schema_template"]

HEADING = """\
# The public schema of {source}, for dpmoments. All that stands here is published with a release.
#
# Fill in every blank from public knowledge: a codebook, the law, physics, the questionnaire. Never from the table:
# a bound or a level read off the data leaks it. `dpmoments release` refuses blanks.
#
# numeric      lower and upper: cells outside are moved to the nearer bound. The noise on a column grows with the
#              distance of its bounds: leave out extremes that you can do without. If no bounds are known, delete both and
#              write scale: [1, 1e6] instead, a rough range of the standard deviation; and, if need be, radius: 1e7 and
#              center: 0, within which the mean lies. Such columns need --rho, or --epsilon with --delta.
#              Beside bounds that must be wide: typical: [20, 75], where nearly all rows lie at a guess; it moves no cell,
#              and the column gets less noise.
# boolean      true or false, or 1 and 0; nothing to fill in.
# categorical  levels: [north, south, east, west], or integers: [1, 2, 3]; in a text file text and integers match.
#              other: what a value outside the levels does: drop (its row) or zero (counts as no level).
# power        column: age and exponent: 2, or 3, 4 (no name): a feature age^2, computed from a numeric column of this schema.
# product      factors: [age, smoker] (no name): a feature age:smoker, computed from two columns: numeric, boolean, and one
#              categorical at most. Both are computed after the rules of their columns, and add noise to the others as columns do.
# missing      what an empty cell does: error (stop: whoever sees that learns that there is one), drop (its row),
#              center (numeric, boolean: count as the midpoint) or zero (categorical: count as no level).
#
# Delete the columns that are not wanted: they are then never read, and every column that stays adds noise to the others.
"""
TYPES_NOTE = """\
# Names and types are those that the file declares. The kinds follow from the types: check them.
"""
FIRST_LINE_NOTE = """\
# The names are the first line of the file: check that it is not a record. A text file declares no types, and guessing
# them would read the cells: every kind is yours to fill in.
"""


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """A column as the file's header declares it; ``type`` is None in a text file."""

    name: str
    type: Any = None

    @property
    def kind(self) -> str | None:
        """The kind of schema column that fits the declared type; None where none does or no type is declared."""
        declared = self.type
        if declared is None:
            return None
        if pa.types.is_dictionary(declared):
            declared = declared.value_type
        if pa.types.is_boolean(declared):
            return "boolean"
        if pa.types.is_integer(declared) or pa.types.is_floating(declared) or pa.types.is_decimal(declared):
            return "numeric"
        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return "categorical" if any(is_text(declared) for is_text in texts) else None


def read_header(path: Path) -> list[HeaderColumn]:
    """The columns of a Parquet file by its footer, or of a text file by its first line; no record is read.

    Types are taken only where the file declares them. A type guessed from the cells of a text file is a fact about
    them (one word among numbers turns a column into text), and would be published with the schema.

    Raises
    ------
    ValueError
        If the file cannot be read, has no columns, repeats a name, or a text file's first line holds numbers.
    """
    ending = file_ending(path)
    if ending in PARQUET_ENDINGS:
        columns = _parquet_header(path)
    elif ending in CSV_DELIMITERS:
        columns = [HeaderColumn(name) for name in _first_line(path, CSV_DELIMITERS[ending])]
    else:
        raise ValueError(f"cannot tell how to read {path} by its ending {ending!r}: use a .parquet, .csv or .tsv file")
    names = [column.name for column in columns]
    if not names or "" in names:
        raise ValueError(f"{path} has no columns, or a column without a name")
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has two columns of one name: rename one")
    return columns


def schema_template(columns: list[HeaderColumn], source: str) -> str:
    """YAML with a line of explanation for every blank."""
    typed = any(column.type is not None for column in columns)
    heading = HEADING.format(source="".join(letter if letter.isprintable() else "?" for letter in source))
    lines = [heading + (TYPES_NOTE if typed else FIRST_LINE_NOTE), "format: dpmoments-schema", "version: 1"]
    lines += ["# row_norm: 1.5  # optional: a public bound on the length of an encoded row, below √(number of columns)"]
    lines += ["columns:"]
    for column in columns:
        lines += ["", f"  - name: {_quoted(column.name)}", *(f"    {entry}" for entry in _entries(column))]
    return "\n".join(lines) + "\n"


def default_output(pattern: str) -> Path:
    """Where the schema of a table goes if not told: the table's name with ``.yaml``, in the current folder.

    Examples
    --------
    >>> str(default_output("data/people.csv.gz")), str(default_output("people/*.parquet"))
    ('people.yaml', 'people.yaml')
    """
    path = Path(pattern)
    if glob.has_magic(pattern):
        path = Path(*(part for part in path.parts if not glob.has_magic(part)))
    name = path.name.split(".")[0]
    return Path(f"{name or 'schema'}.yaml")


def _entries(column: HeaderColumn) -> list[str]:
    declared = f"  # the file says {column.type}" if column.type is not None else ""
    bounds = ["lower:", "upper:", "missing: error"]
    levels = ["levels:", "missing: error", "other: drop"]
    if column.type is None:
        return [
            "kind:  # numeric, with lower: and upper:; boolean; or categorical, with levels: [...]",
            "missing: error",
        ]
    if column.kind == "boolean":
        return [f"kind: boolean{declared}", "missing: error"]
    if column.kind == "numeric":
        codes = "; codes? then categorical, with levels" if pa.types.is_integer(column.type) else ""
        return [f"kind: numeric{declared}{codes}", *bounds]
    if column.kind == "categorical":
        return [f"kind: categorical{declared}", *levels]
    return [f"kind:{declared}: no kind fits. Convert it to numbers or text, or delete this entry", "missing: error"]


def _parquet_header(path: Path) -> list[HeaderColumn]:
    try:
        schema = pq.read_schema(path)
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied") from None
    except (pa.ArrowException, OSError):
        raise ValueError(f"{path} cannot be read: damaged, truncated, or not a Parquet file") from None
    return [HeaderColumn(field.name, field.type) for field in schema]


def _first_line(path: Path, delimiter: str) -> list[str]:
    """Names in the first line. What is quoted in an error must not come from it: it may be a record."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            names = next(csv.reader(text, delimiter=delimiter), [])
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} cannot be read: damaged, or not a text file in UTF-8") from None
    if any(_is_number(name) for name in names):
        raise ValueError(
            f"the first line of {path} holds numbers where the names of columns should be: give the file a header line (for "
            "names that are numbers, save the table as Parquet or write the schema by hand)"
        )
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quoted(name: str) -> str:
    """A YAML scalar in double quotes, on one line."""
    return str(yaml.safe_dump(name, default_style='"', allow_unicode=True, width=float("inf"))).strip()
