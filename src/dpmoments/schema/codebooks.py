"""Readers of codebooks: Frictionless, REDCap, DDI, CSVW, Croissant, and plain sheets.

Each format is read by one function, which returns the columns of the tables that a file describes. A codebook is public;
statistics of the data, which some of them also hold, are not read.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dpmoments.base.errors import InputFileNotFoundError, InputPermissionError, InputValueError, listed, meant, shown
from dpmoments.base.table_files import EXCEL_ENDINGS, sheet_rows
from dpmoments.schema.columns import Boolean, Categorical, Numeric
from dpmoments.schema.dates import Date
from dpmoments.schema.declared import Code, DeclaredColumn, as_codes, entries_of, merged, number_in, plain_text

Tables = dict[str, list[DeclaredColumn]]

_MAX_BYTES = 64 << 20
_NUMBERS = (
    *("integer", "int", "long", "short", "byte", "decimal", "number", "double", "float", "numeric", "year", "gyear"),
    *("nonnegativeinteger", "positiveinteger", "unsignedint", "unsignedlong", "unsignedshort", "unsignedbyte"),
    *("continuous", "real", "interval", "count", "negativeinteger", "nonpositiveinteger"),
)
_TEXTS = ("string", "text", "categorical", "category", "factor", "ordinal", "nominal", "character", "char", "enum")
_DATES = ("date", "datetime", "datetimestamp", "timestamp")
_KINDS = {
    **dict.fromkeys(_NUMBERS, "numeric"),
    **dict.fromkeys(_TEXTS, "categorical"),
    **dict.fromkeys(_DATES, "date"),
    **dict.fromkeys(("boolean", "bool", "logical", "binary"), "boolean"),
}
"""Kinds of column, by the names of types in lower case."""


def columns_of_codebook(path: str | Path, names: Collection[str] | None = None) -> list[DeclaredColumn]:
    """Return the columns of the table in a codebook that has the most of these names."""
    tables = _tables(Path(path))
    if names is None:
        if len(tables) > 1:
            raise InputValueError(
                f"{path} describes {len(tables)} tables, {listed(tables)}: name the columns of one, columns=[...]"
            )
        return next(iter(tables.values()))
    return max(tables.values(), key=lambda columns: sum(not set(names).isdisjoint(column.names) for column in columns))


def _tables(path: Path) -> Tables:
    """Read the tables that a codebook describes, by its ending and its form."""
    ending, file = path.suffix.lower(), path.name
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputValueError(f"{path} cannot be read: a codebook has at most {_MAX_BYTES >> 20} MB")
        if ending in EXCEL_ENDINGS:
            rows = [
                ["" if cell is None else f"{cell:.15g}" if isinstance(cell, float) else str(cell) for cell in row]
                for row in sheet_rows(path)
            ]
            tables = _of_sheet([*enumerate(rows, 1)], file)
        elif ending in (".csv", ".tsv", ".txt"):
            text = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
            reader = csv.reader(text, delimiter="\t" if ending == ".tsv" else ",")
            tables = _of_sheet([(reader.line_num, row) for row in reader], file)
        elif ending == ".xml":
            text_of_file = path.read_bytes().decode("utf-8-sig")
            tables = _of_ddi(text_of_file, partial(_at, file, text_of_file))
        elif ending in (".json", ".jsonld"):
            text_of_file = path.read_bytes().decode("utf-8-sig")
            described, at = json.loads(text_of_file), partial(_at, file, text_of_file)
            if (records := _in(described, "recordSet") or _in(described, "cr:recordSet")) is not None:
                tables = _of_croissant(_all(dict, records), at)
            elif _in(described, "tableSchema") or _in(described, "tables"):
                tables = _of_csvw(described, at)
            else:
                tables = _of_frictionless(described, at)
        else:
            raise InputValueError(
                f"cannot read the codebook {path}: use a Frictionless, CSVW or Croissant file (.json), a DDI file (.xml), or a "
                "REDCap dictionary or a sheet with the columns name, label, type, min, max, values, missing (.csv, .xlsx)"
            )
    except FileNotFoundError:
        raise InputFileNotFoundError(f"the codebook {path} does not exist") from None
    except PermissionError:
        raise InputPermissionError(f"{path} cannot be read: permission denied") from None
    except (UnicodeDecodeError, csv.Error, ElementTree.ParseError, json.JSONDecodeError, RecursionError):
        raise InputValueError(
            f"{path} cannot be read: damaged, or not a codebook in a format of {ending} files"
        ) from None
    tables = {name: columns for name, columns in tables.items() if columns}
    if not tables:
        raise InputValueError(
            f"{path} describes no column: use a Frictionless, CSVW, Croissant, DDI or REDCap file, or a sheet with a column "
            "'name'"
        )
    return tables


def _at(file: str, text: str, name: str) -> str:
    """Return the file's name and the line in which a JSON or XML file names a column."""
    for written in (json.dumps(name), json.dumps(name, ensure_ascii=False)):
        found = re.search(rf'"?(?:name|titles|column)"?\s*[:=]\s*\[?\s*{re.escape(written)}', text)
        if found is not None:
            return f"{file}, line {text.count(chr(10), 0, found.start()) + 1}"
    return file


def _column(
    names: Iterable[str], where: str, kind: str | None, ends: Sequence[object] = (None, None), **more: Any
) -> DeclaredColumn:
    """Return a column with the bounds that its kind can have."""
    lower, upper = (
        number_in(end) if kind == "numeric" else end if kind == "date" and isinstance(end, str) and end else None
        for end in ends
    )
    return DeclaredColumn(names=tuple(names), where=where, kind=kind, lower=lower, upper=upper, **more)


def _all(kind: type[Any], values: object) -> list[Any]:
    """Return the values of a type in a list, or a single one."""
    return [value for value in (values if isinstance(values, list) else [values]) if isinstance(value, kind)]


def _in(values: Any, key: str) -> Any:
    """Return the entry of a mapping; None of anything else."""
    return values.get(key) if isinstance(values, dict) else None


def _codes(values: object) -> list[Code]:
    return [
        value for value in _all(object, values) if isinstance(value, str | int | float) and not isinstance(value, bool)
    ]


def _marks(stated: object) -> dict[str, Any]:
    """Return the decimal mark, and the mark between thousands, that are not the usual ones."""
    marks = {"decimal": _in(stated, "decimalChar"), "thousands": _in(stated, "groupChar")}
    return {key: mark for key, mark in marks.items() if isinstance(mark, str) and (key, mark) != ("decimal", ".")}


def _of_frictionless(described: Any, at: Callable[[str], str]) -> Tables:
    tables: Tables = {}
    for index, resource in enumerate(_all(dict, _in(described, "resources")) or [described]):
        schema = _in(resource, "schema") or resource
        columns: list[DeclaredColumn] = []
        tables[str(_in(resource, "name") or index)] = columns
        for field in _all(dict, _in(schema, "fields")):
            if not isinstance(field.get("name"), str):
                continue
            form, kind_name, bounds = field.get("format"), str(field.get("type", "any")), field.get("constraints")
            kind = _KINDS.get(kind_name)
            values = _all(object, field.get("categories") or _in(bounds, "enum"))
            marks = _all(object, field.get("missingValues", _in(schema, "missingValues")))
            rest: dict[str, Any] = {}
            if kind == "date" and isinstance(form, str) and form not in ("default", "any", "%Y-%m-%d"):
                rest["format"] = form
            elif kind == "boolean":
                stated = (("true_values", "trueValues"), ("false_values", "falseValues"))
                rest = {key: list(as_codes(_codes(field[own]))) for key, own in stated if own in field}
            elif kind == "numeric":
                rest = _marks(field)
            columns.append(
                _column(
                    [field["name"]],
                    at(field["name"]),
                    kind,
                    _ends(bounds),
                    description=field.get("description") or field.get("title"),
                    labels={code: _in(value, "label") for value in values for code in _codes(_plain(value))},
                    missing=tuple(code for mark in marks for code in _codes(_plain(mark))),
                    rest=rest,
                    note="" if kind or kind_name == "any" else f"its type is {kind_name}, which no kind fits",
                )
            )
    return tables


def _plain(value: object) -> object:
    return value.get("value") if isinstance(value, dict) else value


def _ends(stated: object) -> list[object]:
    """Return the least and the largest value that a JSON format states."""
    ends = (
        (f"{end}imum", f"{end}Inclusive", f"exclusive{end.title()}imum", f"{end}Exclusive") for end in ("min", "max")
    )
    return [next((value for own in owns if (value := _in(stated, own)) is not None), None) for owns in ends]


_DATE_PARTS = dict(
    zip(
        ("yyyy", "yy", "MM", "M", "dd", "d", "HH", "mm", "ss"),
        ("%Y", "%y", "%m", "%m", "%d", "%d", "%H", "%M", "%S"),
        strict=True,
    )
)


def _of_csvw(described: Mapping[str, Any], at: Callable[[str], str]) -> Tables:
    tables: Tables = {}
    for index, table in enumerate(_all(dict, described.get("tables", [described]))):
        schema = table.get("tableSchema")
        null = next(filter(None, (_in(each, "null") for each in (schema, table, described))), None)
        columns: list[DeclaredColumn] = []
        tables[str(table.get("url", index))] = columns
        for column in _all(dict, _in(schema, "columns")):
            titles = column.get("titles")
            by_language = [*titles.values()] if isinstance(titles, dict) else [titles]
            names = [name for each in (*by_language, column.get("name")) for name in _all(str, each)]
            if column.get("virtual") or not names:
                continue
            datatype = column.get("datatype", "string")
            base = str(_in(datatype, "base") or (datatype if isinstance(datatype, str) else "string"))
            kind, form = _KINDS.get(base.casefold()), _in(datatype, "format")
            rest: dict[str, Any] = {}
            labels: dict[Code, str | None] = {}
            if kind == "numeric":
                rest = _marks(form)
            elif kind == "boolean" and isinstance(form, str) and form.count("|") == 1 and form != "true|false":
                rest = {key: [text] for key, text in zip(("true_values", "false_values"), form.split("|"), strict=True)}
            elif kind == "date" and isinstance(form, str):
                made = re.sub("|".join(_DATE_PARTS), lambda part: _DATE_PARTS[part[0]], form)
                rest = {"format": made} if made != "%Y-%m-%d" and not re.search(r"(?<!%)[a-zA-SU-Z]", made) else {}
            elif kind == "categorical" and isinstance(form, str) and re.fullmatch(r"\(?[\w ,-]+(\|[\w ,-]+)+\)?", form):
                labels = dict.fromkeys(form.strip("()").split("|"))
            said = column.get("dc:description") or column.get("description") or column.get("rdfs:comment")
            columns.append(
                _column(
                    dict.fromkeys(names),
                    at(str(column.get("name", names[0]))),
                    kind,
                    _ends(datatype),
                    description=_in(said, "@value") or said,
                    labels=labels,
                    missing=tuple(_all(str, column.get("null", null))),
                    rest=rest,
                    note="" if kind else f"its type is {base}, which no kind fits",
                )
            )
    return tables


def _of_croissant(sets: Sequence[Mapping[str, Any]], at: Callable[[str], str]) -> Tables:
    values: dict[str, list[Code]] = {}
    for records in sets:
        for field in _all(dict, records.get("field")):
            keys = [*_all(str, field.get("@id")), *_all(str, field.get("name"))]
            held = [
                code
                for row in _all(dict, records.get("data"))
                for key in keys
                if key in row
                for code in _codes(row[key])
            ]
            values |= dict.fromkeys([*keys, f"{records.get('name')}/{field.get('name')}"], held)

    tables: Tables = {}
    for records in sets:
        if any("Enumeration" in each for each in _all(str, records.get("dataType"))):
            continue
        columns: list[DeclaredColumn] = []
        tables[str(records.get("name", records.get("@id")))] = columns
        for field in _all(dict, records.get("field")):
            own = str(field.get("name", field.get("@id", ""))).rpartition("/")[2]
            names = [*_all(str, _in(_in(field.get("source"), "extract"), "column")), own]
            referred = _in(field.get("references"), "field")
            types = [re.split("[:/#]", each)[-1].casefold() for each in _all(str, field.get("dataType"))]
            columns.append(
                _column(
                    dict.fromkeys(names),
                    at(names[0]),
                    next((_KINDS[each] for each in types if each in _KINDS), None),
                    description=field.get("description"),
                    labels=dict.fromkeys(values.get(str(_in(referred, "@id") or referred), [])),
                )
            )
    return tables


def _of_ddi(text: str, at: Callable[[str], str]) -> Tables:
    if "<!ENTITY" in text:
        raise InputValueError("the DDI file cannot be read: it defines entities, which no codebook needs")
    tables: Tables = {}

    def parts(of: Any, tag: str) -> list[Any]:
        return [part for part in of if part.tag.rpartition("}")[2] == tag]

    def said(of: Any, tag: str) -> str | None:
        return next((line for part in parts(of, tag) if (line := plain_text("".join(part.itertext())))), None)

    for variable in ElementTree.fromstring(text).iter():
        name = variable.get("name")
        if variable.tag.rpartition("}")[2] != "var" or not name:
            continue
        form: Any = next(iter(parts(variable, "varFormat")), {})
        kind = {"numeric": "numeric", "character": "categorical"}.get(form.get("type", ""))
        kind = "date" if form.get("category") in ("date", "time") else kind
        missing = [
            value
            for given in parts(variable, "invalrng")
            for part in given
            for value in {part.get("VALUE"), part.get("min"), part.get("max")} - {None}
        ]
        labels: dict[Code, str | None] = {}
        for category in parts(variable, "catgry"):
            if (code := said(category, "catValu")) is not None and code not in (".", "Sysmiss"):
                labels[code] = said(category, "labl")
                missing += [code] if category.get("missing") == "Y" else []
        # A range that is the smallest and the largest value of the data, or has their digits, was read from them.
        given = [part for each in parts(variable, "valrng") for part in parts(each, "range")]
        ends = [given[0].get(end) if given else None for end in ("min", "max")]
        of_data = [
            number_in("".join(part.itertext()))
            for part in parts(variable, "sumStat")
            if part.get("type") in ("min", "max")
        ]
        from_data = any(
            end is not None and (number_in(end) in of_data or len(end.partition(".")[2]) > 6) for end in ends
        )
        tables.setdefault(variable.get("files", ""), []).append(
            _column(
                [name],
                at(name),
                None if any(isinstance(code, int) for code in as_codes(labels)) else kind,
                (None, None) if from_data else ends,
                description=said(variable, "labl"),
                labels=labels,
                missing=tuple(missing),
                note="its range in the codebook is one of the data" if from_data else "",
            )
        )
    return tables


_REDCAP = {
    "name": ("variable / field name", "field name"),
    "type": ("field type",),
    "label": ("field label",),
    "values": ("choices, calculations, or slider labels", "select choices or calculations"),
    "validation": ("text validation type or show slider number",),
    "min": ("text validation min",),
    "max": ("text validation max",),
    "identifier": ("identifier?", "identifier"),
}
_SHEET = {
    "name": ("name", "variable", "variable name", "field", "field name", "column", "column name", "var"),
    "label": ("label", "description", "title", "question", "variable label", "definition"),
    "type": ("type", "data type", "datatype", "kind"),
    "min": ("min", "minimum", "lower", "lower bound"),
    "max": ("max", "maximum", "upper", "upper bound"),
    "values": ("values", "levels", "categories", "codes", "value labels", "allowed values", "choices"),
    "missing": ("missing", "missing values", "missing codes"),
}
_STATISTICS = ("mean", "sd", "std", "median", "n", "n missing", "unique", "skew", "std. dev.")
"""Columns of a sheet by which its least and largest values are also statistics of the data."""


def _of_sheet(lines: Sequence[tuple[int, Sequence[str]]], file: str) -> Tables:
    """Read a REDCap data dictionary, or a sheet with a column for each thing that it declares."""
    kept = [(number, row) for number, row in lines if any(cell.strip() for cell in row)]
    if not kept:
        return {}
    header = [" ".join(cell.replace("_", " ").split()).casefold() for cell in kept[0][1]]
    is_redcap = all(any(name in header for name in _REDCAP[what]) for what in ("type", "values"))
    places = {
        what: next((header.index(name) for name in names if name in header), None)
        for what, names in (_REDCAP if is_redcap else _SHEET).items()
    }
    if places["name"] is None:
        return {}
    of_data = not is_redcap and any(name in header for name in _STATISTICS)
    columns: list[DeclaredColumn] = []
    for number, row in kept[1:]:
        texts = {what: row[place].strip() for what, place in places.items() if place is not None and place < len(row)}
        cells = {what: "" if (text := texts.get(what, "")) == "NA" else text for what in places}
        if cells["name"]:
            where = f"{file}, line {number}"
            columns += _redcap_columns(cells, where) if is_redcap else [_sheet_column(cells, where, of_data)]
    return {file: columns}


def _pairs(text: str, between: str) -> dict[Code, str | None]:
    """Parse ``1, male | 2, female`` or ``1=male; 2=female``: codes with labels."""
    pairs: dict[Code, str | None] = {}
    for part in filter(None, map(str.strip, re.split(between, text))):
        found = re.fullmatch(r"(-?[\w.]+)\s*[=:,]\s*(.+)", part, re.DOTALL)
        pairs[found[1] if found else part] = plain_text(found[2]) if found else None
    return pairs


def _redcap_columns(cells: Mapping[str, str], where: str) -> list[DeclaredColumn]:
    name, label, form = cells["name"], plain_text(cells["label"]), cells["type"].casefold()
    validation, choices = cells["validation"].casefold(), _pairs(cells["values"], r"\||\n")
    note = "marked as identifying: such a column does not belong here" if cells["identifier"] == "y" else ""
    if form in ("descriptive", "file", "signature"):
        return []
    if form == "checkbox":
        return [
            _column([f"{name}___{str(code).casefold()}"], where, "boolean", description=f"{label}: {text or code}")
            for code, text in choices.items()
        ]
    if form in ("radio", "dropdown"):
        kind = None if all(isinstance(code, int) for code in as_codes(choices)) else "categorical"
        return [_column([name], where, kind, description=label, labels=choices, note=note)]
    if form in ("calc", "slider") or validation.startswith(("number", "integer")):
        kind = "numeric"
    else:
        kind = "boolean" if form in ("yesno", "truefalse") else "date" if validation.startswith("date") else None
    usual = ("0", "100") if form == "slider" else ("", "")
    ends = cells["min"] or usual[0], cells["max"] or usual[1]
    return [_column([name], where, kind, ends, description=label, note=note or ("" if kind else "free text"))]


def _sheet_column(cells: Mapping[str, str], where: str, of_data: bool) -> DeclaredColumn:
    stated, kind = cells["values"], _KINDS.get(cells["type"].casefold())
    ends = [cells["min"], cells["max"]]
    between = re.fullmatch(r"\[?(-?\d+\.?\d*)\s*(?:–|-|to|\.\.|,)\s*(-?\d+\.?\d*)\]?", stated)
    if between is not None and kind != "categorical":
        ends, stated = [*between.groups()], ""
    marks = r"[|;\n]" if re.search(r"[|;\n]", stated) else r",(?=[^,]*=)" if "=" in stated else ","
    labels = _pairs(stated, marks)
    if kind is None and not labels and any(number_in(end) is not None for end in ends):
        kind = "numeric"
    from_data = of_data and any(ends)
    return _column(
        [cells["name"]],
        where,
        kind,
        (None, None) if from_data else ends,
        description=plain_text(cells["label"]),
        labels=labels,
        missing=() if of_data else tuple(filter(None, map(str.strip, re.split(r"[|;,\n]", cells["missing"])))),
        note="its min and max in the codebook are statistics of the data" if from_data else "",
    )


def complete_columns(path: str | Path, columns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return columns as in a schema file, by default those that are described completely."""
    declared = columns_of_codebook(path, columns)
    wanted = dict.fromkeys(each.names[0] for each in declared) if columns is None else columns
    result: list[dict[str, Any]] = []
    for name in wanted:
        if not (stated := [entries_of(each) for each in declared if name in each.names]):
            known = [each.names[0] for each in declared]
            raise InputValueError(f"{path} describes no column {shown(name)}.{meant(name, known)}")
        entries = {key: entry.value for key, entry in merged(stated).items()}
        if columns is not None or None not in entries.values():
            result.append({"name": name} | entries)
    if not result:
        raise InputValueError(
            f"{path} describes no column completely, with bounds or levels: use init --codebook and fill in"
        )
    return result


def frictionless_field(column: Numeric | Date | Boolean | Categorical) -> dict[str, Any]:
    """Return a column as a field of a Frictionless Table Schema."""
    field: dict[str, Any] = {"name": column.source or column.name}
    if column.description is not None:
        field["description"] = column.description
    if isinstance(column, Categorical):
        levels = column.to_dict()["levels"]  # "discover" if no list has them
        field |= {"type": "integer" if isinstance(levels[0], int) else "string"}
        field |= {"constraints": {"enum": levels}} if isinstance(levels, list) else {}
    elif isinstance(column, Boolean):
        stated = {"trueValues": column.true_values, "falseValues": column.false_values}
        field |= {"type": "boolean"} | {key: [*map(str, values)] for key, values in stated.items() if values}
    elif isinstance(column, Date):
        days = all(len(str(end)) == len("2015-01-01") for end in (column.lower, column.upper))
        field |= {"type": "date" if days else "datetime", "format": column.format or "default"}
        field |= {"constraints": {"minimum": str(column.lower), "maximum": str(column.upper)}}
    else:
        marks = {"decimalChar": column.decimal, "groupChar": column.thousands}
        field |= {"type": "number"} | {key: mark for key, mark in marks.items() if mark is not None}
        if column.scale is None:
            field |= {"constraints": {"minimum": column.lower, "maximum": column.upper}}
    if column.missing_values:
        field["missingValues"] = [*map(str, column.missing_values)]
    return field
