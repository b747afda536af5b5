"""Excel workbooks of given cells, written without a library."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    '<Override PartName="/xl/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>'
)
_RELATIONS = '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_OF = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_STYLES = (
    f'<?xml version="1.0"?><styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="2"><xf/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>'
)
_DAY_ZERO = dt.datetime(1899, 12, 30)


def workbook(path: Path, rows: Sequence[Sequence[Any]], *, merged: Sequence[str] = ()) -> Path:
    """Write a workbook of one sheet, people: numbers, text, Booleans, dates, and empty and ``merged`` cells (``A1:A2``).

    Raises
    ------
    ValueError
        For a cell that a workbook cannot hold.
    """
    lines = "".join(
        f'<row r="{number}">{"".join(_cell(_name(place, number), cell) for place, cell in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    cells = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    sheet = (
        f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData>'
        f"{f'<mergeCells>{cells}</mergeCells>' if cells else ''}</worksheet>"
    )
    book = (
        f'<?xml version="1.0"?><workbook xmlns="{_MAIN}" xmlns:r="{_OF}"><sheets><sheet name="people" sheetId="1" r:id="rId1"/>'
        "</sheets></workbook>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        first = f'<Relationship Id="rId1" Type="{_OF}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", _RELATIONS.format(first))
        parts = (
            f'<Relationship Id="rId1" Type="{_OF}/worksheet" Target="worksheets/sheet1.xml"/>'
            f'<Relationship Id="rId2" Type="{_OF}/styles" Target="styles.xml"/>'
        )
        archive.writestr("xl/_rels/workbook.xml.rels", _RELATIONS.format(parts))
        archive.writestr("xl/workbook.xml", book)
        archive.writestr("xl/styles.xml", _STYLES)
        archive.writestr("xl/worksheets/sheet1.xml", sheet.encode())
    return path


def open_document(path: Path, sheets: dict[str, Sequence[Sequence[Any]]]) -> Path:
    """Write an OpenDocument workbook of sheets of numbers, text and empty cells."""

    def cell(value: Any) -> str:
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'

    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind := "application/vnd.oasis.opendocument.spreadsheet")
        space = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
        entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        archive.writestr("META-INF/manifest.xml", f"<manifest:manifest {space}>{entry}</manifest:manifest>")
        archive.writestr(
            "content.xml", f'<?xml version="1.0"?><office:document-content{spaces}>{body}</office:document-content>'
        )
    return path


def _name(place: int, number: int) -> str:
    return f"{chr(ord('A') + place)}{number}"


def _cell(name: str, cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{name}" t="b"><v>{int(cell)}</v></c>'
    if type(cell) is int or (type(cell) is float and abs(cell) < 1e300):
        if abs(cell) > 2**53:
            raise ValueError("a workbook holds floats")
        return f'<c r="{name}"><v>{cell!r}</v></c>'
    if type(cell) is dt.datetime and cell.tzinfo is None and cell.year >= 1901:
        return f'<c r="{name}" s="1"><v>{(cell - _DAY_ZERO) / dt.timedelta(days=1)!r}</v></c>'
    if type(cell) is str and cell.isprintable() and cell == cell.strip() and "_x" not in cell:
        return f'<c r="{name}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    raise ValueError(f"a workbook does not hold {type(cell).__name__}")
