"""The schema that ``dpmoments init`` writes: a table's column names and types, and blanks for all that is not in its header."""

from __future__ import annotations

import glob
from pathlib import Path

from dpmoments.foundation.table_libraries import pa
from dpmoments.schema.header import Header, HeaderColumn

__all__ = ["default_output", "schema_template"]

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
# date         lower and upper: 2015-01-01 and 2025-12-31; unit: days (or years, …) since lower, or since origin: 2000-01-01;
#              format: "%d.%m.%Y" where text is not written 2015-01-31.
# boolean      true or false, or 1 and 0; nothing to fill in.
# categorical  levels: [north, south, east, west], or integers: [1, 2, 3]; in a text file text and integers match.
#              other: what a value outside the levels does: drop (its row) or zero (counts as no level).
# power        column: age and exponent: 2, or 3, 4 (no name): a feature age^2, computed from a numeric column of this schema.
# product      factors: [age, smoker] (no name): a feature age:smoker, computed from two columns: numeric, boolean, and one
#              categorical at most. Both are computed after the rules of their columns, and add noise to the others as columns do.
# description  one public line on what a column holds, such as "Age at admission in years"; it travels with the release.
# missing      what an empty cell does: error (stop: whoever sees that learns that there is one), drop (its row),
#              center (numeric, date, boolean: count as the midpoint) or zero (categorical: count as no level).
#
# people       A column that tells people apart, such as patient_id, is no column of the schema: where a person may have several
#              rows, delete it here and give it as --privacy-unit patient_id --max-rows-per-unit K, so that people are
#              protected and not each row by itself (docs/people-not-rows.md).
#
# Delete the columns that are not wanted: they are then never read, and every column that stays adds noise to the others.
"""
TYPES_NOTE = """\
# Names and types are those that the {what} declares. The kinds follow from the types: check them.
"""
FIRST_LINE_NOTE = """\
# The names are the first line of the file: check that it is not a record. A text file declares no types, and guessing
# them would read the cells: every kind is yours to fill in.
"""


def schema_template(header: Header, source: str, what: str = "file") -> str:
    """YAML with a line of explanation for every blank.

    Parameters
    ----------
    header : Header
    source : str
        What the table is called.
    what : str
        What declares its types: a file, or a frame.
    """
    typed = any(column.declared is not None for column in header.columns)
    heading = HEADING.format(source="".join(letter if letter.isprintable() else "?" for letter in source))
    notes = TYPES_NOTE.format(what=what) if typed else FIRST_LINE_NOTE
    lines = [heading + notes, "format: dpmoments-schema", "version: 1"]
    lines += ["# row_norm: 1.5  # optional: a public bound on the length of an encoded row, below √(number of columns)"]
    lines += ["columns:"]
    if header.nameless:
        lines += [
            f"  # left out: columns without a name, {header.nameless} (the index of a frame?); they are never read"
        ]
    for column in header.columns:
        lines += ["", f"  - name: {_quoted(column.name)}", *(f"    {entry}" for entry in _entries(column, what))]
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


def _entries(column: HeaderColumn, what: str) -> list[str]:
    declared = f"  # the {what} says {column.declared}"
    bounds = ["lower:", "upper:", "missing: error"]
    levels = ["levels:", "missing: error", "other: drop"]
    if column.type is None:
        unknown = "" if column.declared is None else f"the {what} says {column.declared}, and no cell is looked at: "
        return [
            f"kind:  # {unknown}numeric or date, with lower: and upper:; boolean; or categorical, with levels: [...]",
            "missing: error",
        ]
    if column.kind == "boolean":
        return [f"kind: boolean{declared}", "missing: error"]
    if column.kind == "numeric":
        codes = "; codes? then categorical, with levels: [1, 2]" if pa.types.is_integer(column.type) else ""
        return [f"kind: numeric{declared}{codes}", *bounds]
    if column.kind == "date":
        return [f"kind: date{declared}", *bounds]
    if column.kind == "categorical":
        return [f"kind: categorical{declared}", *levels]
    return [f"kind:{declared}: no kind fits. Convert it to numbers or text, or delete this entry", "missing: error"]


def _quoted(name: str) -> str:
    """A YAML scalar in double quotes, on one line."""
    import yaml

    return str(yaml.safe_dump(name, default_style='"', allow_unicode=True, width=float("inf"))).strip()
