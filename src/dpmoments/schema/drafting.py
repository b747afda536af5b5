"""SchemaDraft: a table's schema with blanks for everything that its header does not state."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.documents import NEVER_OVERWRITTEN, write_text
from dpmoments.base.errors import InputError, InputPermissionError, InputTypeError, InputValueError, shown
from dpmoments.base.table_files import (
    EXCEL_ENDINGS,
    FEATHER_ENDINGS,
    PARQUET_ENDINGS,
    STATISTICS_ENDINGS,
    StatisticsColumn,
    expand_paths,
    file_ending,
    fixed_folder,
    open_ipc,
    sheet_names,
    statistics_columns,
    unit_and_origin,
)
from dpmoments.base.table_libraries import nw, pa, pq, type_name
from dpmoments.base.text_files import CSV_DELIMITERS, TextFormat, first_line, names_in, other_delimiter
from dpmoments.schema.codebooks import columns_of_codebook
from dpmoments.schema.declared import DeclaredColumn, Entry, entries_of, is_missing_label, merged, plain_text

_FORMATTED = (*CSV_DELIMITERS, *EXCEL_ENDINGS)
"""Endings of files that a text format describes."""
_KINDS = {
    "boolean": ("is_boolean",),
    "numeric": ("is_integer", "is_floating", "is_decimal"),
    "date": ("is_date", "is_timestamp"),
    "categorical": ("is_string", "is_large_string", "is_string_view"),
}
"""Kinds of column, and Arrow's checks of the types that fit them."""
_PANDAS_INDEX = "__index_level_"
"""Pandas' name of an unnamed index in a Parquet or Feather file."""


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """Column as declared by a table.

    ``type`` is a pyarrow.DataType, or None if none is declared: in a text file, or for pandas objects. ``words`` is the
    table's own name of the type if it is not Arrow's, and ``said`` what else the file declares.
    """

    name: str
    type: Any = None
    words: str | None = None
    said: DeclaredColumn | None = None

    @property
    def kind(self) -> str | None:
        """Kind of schema column that fits the declared type."""
        # None if none fits or no type is declared.
        if self.type is None:
            return None
        held = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        fitting = (kind for kind, checks in _KINDS.items() if any(getattr(pa.types, check)(held) for check in checks))
        return next(fitting, None)

    @property
    def declared(self) -> str | None:
        """Type for people, without what may have been derived from values."""
        # Widths, digits, categories, field names.
        if self.words is not None or self.type is None:
            return self.words
        if pa.types.is_dictionary(self.type):
            return f"dictionary of {type_name(self.type.value_type)}"
        return type_name(self.type)


@dataclass(frozen=True)
class Header:
    """Columns of a table.

    ``nameless`` ones, such as the index that ``to_csv`` writes, are only counted. ``absent`` has the names of columns that
    another file of the table lacks, each with the first such file.
    """

    columns: tuple[HeaderColumn, ...]
    nameless: int = 0
    absent: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, header_columns: Iterable[HeaderColumn], where: str) -> Header:
        """Collect the columns that have names."""
        columns = list(header_columns)
        named = [column for column in columns if column.name and not column.name.startswith(_PANDAS_INDEX)]
        if not named:
            raise InputValueError(f"{where} has no columns with names")
        if len({column.name for column in named}) < len(named):
            raise InputValueError(f"{where} has two columns with the same name: rename one")
        return cls(tuple(named), len(columns) - len(named))


def _read_header(pattern: str | Path, text_format: TextFormat | None = None) -> Header:
    """Read the columns of the first file of each ending; one that declares types says more."""
    # Other files with a header that is read without their rows are asked only which of these columns they lack.
    paths = expand_paths(pattern)
    firsts = {file_ending(path): path for path in reversed(paths)}
    headers = [
        _header_of_file(path, pattern, text_format if ending in _FORMATTED or len(firsts) == 1 else None)
        for ending, path in firsts.items()
    ]
    if len({frozenset(column.name for column in header.columns) for header in headers}) > 1:
        raise InputValueError(
            "files of different endings have different columns, such as "
            f"{', '.join(map(str, firsts.values()))}: one schema describes all files, "
            "so name those of one table"
        )
    result = max(headers, key=lambda header: sum(column.type is not None for column in header.columns))
    absent: dict[str, Path] = {}
    for path in paths:
        if path in firsts.values() or file_ending(path) not in (*PARQUET_ENDINGS, *FEATHER_ENDINGS, *CSV_DELIMITERS):
            continue
        own = _header_of_file(path, pattern, text_format if file_ending(path) in CSV_DELIMITERS else None)
        held = {column.name for column in own.columns}
        absent = {column.name: path for column in result.columns if column.name not in held} | absent
    return replace(result, absent=absent)


def _header_of_file(path: Path, pattern: str | Path, text_format: TextFormat | None) -> Header:
    """Read the columns of a file, and of the names of its folders."""
    ending = file_ending(path)
    if (
        text_format is not None
        and ending not in CSV_DELIMITERS
        and (ending not in EXCEL_ENDINGS or text_format.of_text)
    ):
        raise InputValueError(f"a text format was given for {path}, which is not a text file: leave it out")
    if ending in PARQUET_ENDINGS:
        columns = _of_arrow(_readable(path, partial(pq.read_schema, path), "a Parquet file"))
    elif ending in FEATHER_ENDINGS:
        columns = _of_arrow(_readable(path, partial(_ipc_schema, path), "an Arrow IPC (Feather V2) file"))
    elif ending in EXCEL_ENDINGS:
        columns = [
            HeaderColumn(name) for name in _readable(path, partial(sheet_names, path, text_format), "a workbook")
        ]
    elif ending in STATISTICS_ENDINGS:
        declared = _readable(path, partial(statistics_columns, path, ending), "a file of Stata, SPSS or SAS")
        columns = [HeaderColumn(column.name, said=_of_statistics(column, path.name, ending)) for column in declared]
    elif ending in CSV_DELIMITERS:
        columns = [HeaderColumn(name) for name in _text_names(path, text_format or TextFormat())]
    else:
        refused = (
            f"cannot read {path}: its ending {shown(ending)} is not supported: use a .parquet, .feather, .csv, "
            ".tsv, .xlsx, .dta, .sav or .sas7bdat file; of a database pass "
        )
        query = f"--database sqlite:///{path} --query 'SELECT * FROM people', with the name of a table for people"
        of_database = ending in (".db", ".sqlite", ".sqlite3", ".duckdb")
        raise InputValueError(
            f"{refused}a DatabaseQuery", shell=refused + (query if of_database else "--database and --query")
        )
    own = {column.name for column in columns}
    folder = fixed_folder(pattern)
    parts = path.relative_to(folder).parts[:-1] if folder is not None and path.is_relative_to(folder) else ()
    keys = [part.partition("=")[0] for part in parts if "=" in part]
    return Header.of([*columns, *(HeaderColumn(key) for key in keys if key not in own)], str(path))


def _frame_header(data: Any) -> Header:
    """Read the columns of a frame, an Arrow table or dataset, a DuckDB relation, or a query."""
    if isinstance(data, np.ndarray):
        raise InputTypeError(
            "an array's columns have no names to draft from: write the schema by hand, with columns in the "
            "array's order, or use Schema.unit_ball(d)"
        )
    if isinstance(data, DatabaseQuery):
        session = data.opened()
        columns = map(HeaderColumn, session.names, session.types, [words or None for words in session.declared])
        return Header.of(columns, "the query")
    library = type(data).__module__.split(".")[0]
    if library == "pyarrow" and isinstance(getattr(data, "schema", None), pa.Schema):
        return Header.of(_of_arrow(data.schema), "the table")
    if library == "pandas" and hasattr(data, "dtypes") and hasattr(data, "columns"):
        pairs = zip(data.columns, data.dtypes, strict=True)
        return Header.of([_of_pandas(name, dtype) for name, dtype in pairs], "the frame")
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return Header.of([_of_narwhals(name, dtype) for name, dtype in frame.collect_schema().items()], "the frame")
    raise InputTypeError(
        f"cannot draft a schema of {type(data).__name__}: pass a pandas, Polars or Arrow frame, a path or "
        "glob of Parquet, Feather or CSV files, an Arrow dataset, or a DuckDB relation"
    )


def _of_arrow(schema: Any) -> list[HeaderColumn]:
    columns = []
    for own in schema:
        stated = {key.decode(errors="replace").lower(): text for key, text in (own.metadata or {}).items()}
        text = next(
            (stated[key].decode(errors="replace") for key in ("description", "comment", "label") if key in stated), None
        )
        said = (
            None if text is None else DeclaredColumn(names=(own.name,), where="metadata of the file", description=text)
        )
        columns.append(HeaderColumn(own.name, own.type, said=said))
    return columns


_FLAGS = (["no", "yes"], ["false", "true"])
"""Labels of two values that say nothing of a table."""


def _of_statistics(column: StatisticsColumn, file: str, ending: str) -> DeclaredColumn:
    """Return what a Stata, SPSS or SAS file declares of a column."""
    labels = {code: label for code, label in column.labels.items() if isinstance(code, int | float) or column.is_text}
    kind = "categorical" if column.is_text else "date" if unit_and_origin(column.format, ending) else None
    kept = [label for code, label in labels.items() if code not in column.missing and not is_missing_label(label)]
    # Labels that Stata's `encode`, or a program like it, makes of the table's texts: numbered from 0 or 1 in alphabetical order.
    codes = [code for code, label in labels.items() if label in kept]
    in_turn = codes in ([*range(len(codes))], [*range(1, len(codes) + 1)])
    of_flags = [label.casefold() for label in kept] in _FLAGS
    encoded = len(kept) > 1 and in_turn and kept in (sorted(kept), sorted(kept, key=str.casefold)) and not of_flags
    # pandas numbers whatever the table holds from 0, in any order
    encoded |= ending == ".dta" and len(kept) > 2 and codes == [*range(len(codes))]
    return DeclaredColumn(
        names=(column.name,),
        where=file,
        kind=kind or (None if len(kept) > 1 else "numeric"),
        description=column.label,
        labels=dict(labels) if len(kept) > 1 else {},
        missing=(
            *column.missing,
            *(code for code, label in labels.items() if len(kept) < 2 and is_missing_label(label)),
        ),
        by_label=True,
        note="" if len(kept) != 1 else f"one value has a label, {plain_text(kept[0], 40)}",
        from_data="in alphabetical order, as `encode` makes them from the data" if encoded else "",
    )


def _of_pandas(name: object, dtype: Any) -> HeaderColumn:
    # A name that is not text counts as missing, since no schema can have it.
    text = name if isinstance(name, str) else ""
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return HeaderColumn(text, None, "object")
        kind = pa.timestamp("ns") if dtype.kind == "M" else pa.from_numpy_dtype(dtype)
        return HeaderColumn(text, kind, str(dtype))
    if (arrow := getattr(dtype, "pyarrow_dtype", None)) is not None:
        return HeaderColumn(text, arrow)
    plain = type(dtype).__name__
    known = {
        "CategoricalDtype": (pa.string(), "category"),
        "StringDtype": (pa.string(), "string"),
        "DatetimeTZDtype": (pa.timestamp("ns", "UTC"), "datetime with a zone"),
    }
    if plain in known:
        return HeaderColumn(text, *known[plain])
    numpy_dtype = getattr(dtype, "numpy_dtype", None)
    if isinstance(numpy_dtype, np.dtype) and numpy_dtype.kind in "biuf":
        return HeaderColumn(text, pa.from_numpy_dtype(numpy_dtype), str(numpy_dtype))
    return HeaderColumn(text, pa.binary(), plain)  # that no kind fits


def _of_narwhals(name: str, dtype: Any) -> HeaderColumn:
    words = type(dtype).__name__.lower()
    if isinstance(dtype, nw.Boolean):
        kind = pa.bool_()
    elif dtype.is_integer():
        kind = pa.int64()
    elif dtype.is_numeric():
        kind = pa.float64()
    elif isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        kind = pa.string()
    elif isinstance(dtype, nw.Date | nw.Datetime):
        kind = pa.timestamp("us")
    elif isinstance(dtype, nw.Object | nw.Unknown):
        return HeaderColumn(name, None, words)
    else:
        kind = pa.binary()  # that no kind fits
    return HeaderColumn(name, kind, words)


def _readable(path: Path, read: Callable[[], Any], what: str) -> Any:
    """Return what a library reads of a file; its errors may quote the file, and are replaced."""
    try:
        return read()
    except InputError:
        raise
    except PermissionError:
        raise InputPermissionError(f"{path} cannot be read: permission denied") from None
    except Exception:
        raise InputValueError(f"{path} cannot be read: damaged, truncated, or not {what}") from None


def _ipc_schema(path: Path) -> Any:
    with open_ipc(path) as reader:
        return reader.schema


def _text_names(path: Path, text_format: TextFormat) -> list[str]:
    """Read the names in the first line, which may be a record: errors do not quote it."""
    line, delimiter = first_line(path, text_format), text_format.delimiter_for(file_ending(path))
    names = names_in(line, delimiter, text_format)
    if len(names) == 1 and text_format.delimiter is None:
        advice = other_delimiter(line, delimiter, text_format, lambda header: all(header))
        if advice is not None:
            raise advice.preceded_by(f"{path}: ")
    if any(_is_number(name) for name in names):
        raise InputValueError(
            f"the first line of {path} holds numbers in place of column names: give the file a header line (for "
            "names that are numbers, save the table as Parquet or write the schema by hand)"
        )
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_HEADING = """\
# The public schema of {source}, for dpmoments. This file is published with every release.
#
# Fill in every blank from public knowledge: a codebook, legislation, physics, the questionnaire. Never from the table:
# a bound or a level read from the data leaks it. `dpmoments release` refuses blanks.
# Delete columns that you do not need: they are never read, and every other one adds noise. A column that identifies people
# does not belong here: delete it, and pass --privacy-unit patient_id --max-rows-per-unit K (docs/people-not-rows.md).
# Entries for how the table writes values, powers and products, many columns at once: docs/how-to-read-tables.md.
"""
_HELP = {
    "kind": ("kind: numeric or date, with lower: and upper:; boolean; or categorical, with levels: [...]",),
    "numeric": (
        "lower, upper: values outside are clipped to them, and noise grows with their distance: leave out extremes. If none are",
        "known, delete both and write scale: [1, 1e6], a range of the standard deviation (it needs rho, or epsilon with delta).",
        "If they must be wide, add typical: [20, 75], a guess of the range of nearly all rows: it clips nothing.",
    ),
    "date": (
        "lower, upper: 2015-01-01 and 2025-12-31, at midnight; unit: days (or years) since lower, or since origin: 2000-01-01;",
        'format: "%d.%m.%Y" if text is not written like 2015-01-31.',
    ),
    "categorical": (
        "levels: [north, south, east, west], or integers: [1, 2, 3]; other: treatment of a value outside the levels:",
        "drop (the row) or zero (no level). No list has them? levels: discover with max_levels: 50 finds names (needs delta).",
    ),
    "missing": (
        "missing: error stops a release; available (recommended) leaves the row out of this column's moments, with fill: 30000,",
        "a public guess of a number's mean, which lowers the noise; drop drops the row.",
    ),
    "confirmed": (
        "confirmed: true if a codebook has these values; then they are public, wherever the file has them from.",
    ),
}
"""Explanations of keys, each written once, above the first blank."""


def _lines_of_columns(columns: Sequence[tuple[str, dict[str, Entry]]], notes: Mapping[str, str]) -> Iterator[str]:
    """Format the columns of a schema; complete ones that are alike share an entry."""
    explained: set[str] = set()
    groups: list[tuple[list[str], dict[str, Entry]]] = []
    for name, entries in columns:
        shared = _without_lines(entries)
        complete = all(entry.value is not None for entry in shared.values())
        if groups and complete and shared == _without_lines(groups[-1][1]) and not {name, *groups[-1][0]} & {*notes}:
            groups[-1] = ([*groups[-1][0], name], groups[-1][1] | shared)
        else:
            groups.append(([name], entries))

    by_name = dict(columns)
    for names, entries in groups:
        yield ""
        listed_names = _quoted(names[0]) if len(names) == 1 else f"[{', '.join(map(_quoted, names))}]"
        yield f"  - name: {listed_names}{notes.get(names[0], '')}"
        said = {name: by_name[name]["description"] for name in names if "description" in by_name[name]}
        if len(names) > 1 and said:
            yield "    description:"
            yield from (
                f"      {_quoted(name)}: {_quoted(entry.value)}{_comment(entry)}" for name, entry in said.items()
            )
        elif said:
            yield f"    description: {_quoted(said[names[0]].value)}{_comment(said[names[0]])}"
        kind = entries["kind"].value
        for key, entry in entries.items():
            if key == "description":
                continue
            topic = key if key in ("kind", "missing", "confirmed") else kind
            if (entry.value is None or key == "missing") and topic in _HELP and topic not in explained:
                explained.add(topic)
                yield from (f"    # {line}" for line in _HELP[topic])
            value = "" if entry.value is None else f" {_scalar(entry.value)}"
            yield f"    {key}:{value}{_comment(entry)}"


def _without_lines(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return what columns share: all but descriptions, and the lines of a codebook."""
    return {
        key: Entry(entry.value, re.sub(r", line \d+", "", entry.comment))
        for key, entry in entries.items()
        if key != "description"
    }


def _comment(entry: Entry) -> str:
    return f"  # {plain_text(entry.comment, 500)}" if entry.comment else ""


def _scalar(value: Any) -> str:
    """Format a value of an entry on one line."""
    from dpmoments.schema.document import format_yaml  # loads YAML

    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    return format_yaml(value).removesuffix("...\n").strip()


_FEW_COLUMNS = 12
"""Columns up to which nobody needs a pattern of names."""
_TYPES_NOTE = """\
# Names and types are those that the {what} declares. The kinds follow from the types: check them.
"""
_FIRST_LINE_NOTE = """\
# The names are the first line of the {form}: check that it is not a record. It declares no types, and guessing them would read
# values: fill in every kind.
"""


def _schema_template(
    header: Header,
    source: str,
    what: str = "file",
    text_format: TextFormat | None = None,
    codebooks: Mapping[str, Sequence[DeclaredColumn]] | None = None,
) -> str:
    """Format YAML with declared values, their sources, and explanations of blanks."""
    typed = any(column.declared is not None or column.said is not None for column in header.columns)
    heading = _HEADING.format(source="".join(letter if letter.isprintable() else "?" for letter in source))
    form = "sheet" if source.lower().endswith(EXCEL_ENDINGS) else "text file"
    notes = _TYPES_NOTE.format(what=what) if typed else _FIRST_LINE_NOTE.format(form=form)
    lines = [heading + notes, "format: dpmoments-schema", "version: 1"]
    if text_format is not None and (stated := text_format.to_dict()):
        from dpmoments.schema.document import format_yaml  # loads YAML

        lines += format_yaml({"text_format": stated}).splitlines()
    names = [column.name for column in header.columns]
    if len(names) > _FEW_COLUMNS:
        lines += [f'names: [{", ".join(map(_quoted, names))}]  # for patterns, such as name: "A*"']
    lines += ["columns:"]
    if header.nameless:
        lines += [
            f"  # left out: columns without a name, {header.nameless} (the index of a frame?); they are never read"
        ]
    described = [each for declared in (codebooks or {}).values() for each in declared]
    columns = [
        (column.name, _entries(column, what, [each for each in described if column.name in each.names]))
        for column in header.columns
    ]
    absent = {
        name: f"  # not in {_quoted(path.name)}: every file needs it, under this name"
        for name, path in header.absent.items()
    }
    lines += _lines_of_columns(columns, absent)
    for codebook, declared in (codebooks or {}).items():
        known = {name for each in declared for name in each.names}
        absent_names = [each.names[0] for each in declared if not {*names} & {*each.names}]
        for said, left in (
            (f"Described in {codebook}, but not a column of the table", absent_names),
            (f"A column of the table, but not described in {codebook}", [name for name in names if name not in known]),
        ):
            lines += ["", f"# {said}: {', '.join(map(_quoted, left))}"] if left else []
    return "\n".join(lines) + "\n"


def default_output(pattern: str) -> Path:
    """Return the default schema path of a table: its name with ``.yaml``, in the current folder.

    >>> str(default_output("data/people.csv.gz")), str(default_output("people/*.parquet"))
    ('people.yaml', 'people.yaml')
    """
    path = Path(pattern)
    if glob.has_magic(pattern):
        path = Path(*(part for part in path.parts if not glob.has_magic(part)))
    name = path.name.split(".")[0]
    return Path(f"{name or 'schema'}.yaml")


_READ_AS = {("numeric", "boolean"), ("numeric", "categorical"), ("categorical", "boolean"), ("categorical", "date")}
"""Kinds of a declared type, and other kinds in which a column of it can be read."""


def _entries(column: HeaderColumn, what: str, described: Sequence[DeclaredColumn]) -> dict[str, Entry]:
    """Return the entries of a column: those that codebooks and the file declare, and blanks."""
    said = f"the {what} says {column.declared}"
    own = {"kind": Entry(column.kind, said)}
    if column.type is None:
        own = {"kind": Entry(None, "" if column.declared is None else f"{said}, and no cell is looked at")}
    elif column.kind is None:
        own = {"kind": Entry(None, f"{said}: no kind fits. Convert it to numbers or text, or delete this entry")}
    elif column.kind in ("numeric", "date"):
        codes = "; codes? then categorical, with levels: [1, 2]" if pa.types.is_integer(column.type) else ""
        own = {"kind": Entry(column.kind, said + codes), "lower": Entry(None), "upper": Entry(None)}
    elif column.kind == "categorical":
        own["levels"] = Entry(None)
    own["missing"] = Entry("error")
    if column.kind == "categorical":
        own["other"] = Entry("drop")

    stated = [*([column.said] if column.said else []), *described]
    if not stated:
        return _with_usual_bounds(column.name, own)
    result = merged([entries_of(each) for each in stated])
    kind = result["kind"].value
    if kind is None and not result["kind"].comment.startswith("conflict"):
        named = {key: entry for key, entry in result.items() if key == "description"}
        kinds = {} if own["kind"].value or own["kind"].comment else {"kind": result["kind"]}
        result = {**named, **own, **kinds}
    elif kind is not None and column.kind not in (None, kind) and (column.kind, kind) not in _READ_AS:
        said = f"conflict: {kind} ({result['kind'].comment}) or {column.kind} (the {what} says {column.declared})"
        result = {**result, "kind": Entry(None, said)}
    return _with_usual_bounds(column.name, result)


_USUAL_BOUNDS = (
    (r"age|alter|edad", "0 to 120, years: nobody is known to have lived longer than 122"),
    (r"year of birth|birth year|yob", "1900 to the year of the survey"),
    (r"year|jahr|annee", "the first to the last year that the table can cover"),
    (r"heart rate|pulse|hr|bpm", "30 to 220, beats a minute"),
    (r"systolic|sbp|sys bp", "60 to 260, mmHg"),
    (r"diastolic|dbp|dia bp", "30 to 160, mmHg"),
    (r"body temperature|temp c", "30 to 45, degrees Celsius"),
    (r"bmi|body mass index", "10 to 80, kg/m²"),
    (r"height cm|body height|stature", "50 to 250, centimeters"),
    (r"weight kg|body weight", "2 to 300, kilograms"),
    (r"hours (worked|per week|a week)|weekly hours", "0 to 99, hours a week: most questionnaires have two digits"),
    (r"percent|percentage|pct|prozent", "0 to 100"),
    (r"likert|agreement|satisfaction", "the first and the last answer of the scale, such as 1 to 5"),
    (
        r"(household )?income|einkommen|salary|wage|earnings",
        "from 0; United States, 2023: median 80,610 dollars a household (Census P60-282); Germany, 2023: 26,274 euros a person, "
        "equivalized (EU-SILC); United Kingdom, 2022: 32,300 pounds a household (ONS). Four times the median clips few",
    ),
    (r"latitude|lat", "-90 to 90, degrees"),
    (r"longitude|lon|lng", "-180 to 180, degrees"),
)
"""Public bounds of usual columns, by patterns of their names and descriptions."""


def _with_usual_bounds(name: str, entries: dict[str, Entry]) -> dict[str, Entry]:
    """Add public bounds of a common column as a comment, where its own are blank.

    >>> _with_usual_bounds("patient_age", {"kind": Entry("numeric"), "lower": Entry(None)})["lower"].comment
    'perhaps 0 to 120, years: nobody is known to have lived longer than 122'
    """
    if entries["kind"].value != "numeric" or entries["lower"].value is not None or entries["lower"].comment:
        return entries
    for text in (name, entries.get("description", Entry("")).value):
        spaced = re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold())
        for pattern, words in _USUAL_BOUNDS:
            if re.search(rf"\b({pattern})\b", spaced):
                return entries | {"lower": Entry(None, f"perhaps {words}")}
    return entries


def _quoted(name: str) -> str:
    """Format a YAML scalar in double quotes, on one line."""
    import yaml

    return str(yaml.safe_dump(name, default_style='"', allow_unicode=True, width=float("inf"))).strip()


@dataclass(frozen=True, repr=False)
class SchemaDraft:
    """Schema with blank bounds and levels, as YAML with comments.

    Made by :meth:`dpmoments.Schema.draft`.

    Attributes
    ----------
    text : str
        The YAML that ``print`` shows and :meth:`save` writes.
    names : tuple of str
        The columns.
    absent : mapping of str to path
        Columns that another file of the table lacks, each with the first such file.
    """

    text: str
    names: tuple[str, ...]
    absent: Mapping[str, Path] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write the YAML; fill in its blanks and read it with :meth:`dpmoments.Schema.load`.

        Raises
        ------
        FileExistsError
            If the file exists: it may hold values that were filled in.
        """
        write_text(self.text, path, taken=NEVER_OVERWRITTEN)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"SchemaDraft({len(self.names)} columns, to be filled in)"


def draft(
    data: Any, text_format: TextFormat | None = None, codebook: str | Path | Sequence[str | Path] | None = None
) -> SchemaDraft:
    """Draft the schema of any form of table that can be released."""
    # `dpmoments.Schema.draft`.
    if isinstance(data, str | PathLike):
        header = _read_header(data if isinstance(data, str) else Path(data), text_format)
        source, what = str(data), "file"
    else:
        of_query = isinstance(data, DatabaseQuery)
        header, source, what = _frame_header(data), "a table", "database" if of_query else "frame"
    names = tuple(column.name for column in header.columns)
    paths = [] if codebook is None else [codebook] if isinstance(codebook, str | PathLike) else list(codebook)
    if isinstance(data, str | PathLike) and any(Path(path).resolve() == Path(data).resolve() for path in paths):
        raise InputValueError(f"the codebook {data} is the table itself, and a codebook is public: name another file")
    codebooks = {plain_text(Path(path).name) or "": columns_of_codebook(path, names) for path in paths}
    return SchemaDraft(_schema_template(header, source, what, text_format, codebooks), names, header.absent)
