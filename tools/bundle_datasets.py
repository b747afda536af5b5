"""Write the Parquet files of ``dpmoments.datasets`` from the files that UCI publishes.

``python -m tools.bundle_datasets FOLDER`` reads ``adult.data``, ``adult.test`` and ``airfoil_self_noise.dat`` in FOLDER and
refuses any whose MD5 is not the published one.
"""

import hashlib
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from dpmoments.datasets import _schema
from dpmoments.schema import Numeric

PUBLISHED = {
    "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
    "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
    "airfoil_self_noise.dat": "b12d5b7b475ec7b3971d97f21e377414",
}
"""MD5 of each file as published."""
DATA = Path(__file__).parents[1] / "src" / "dpmoments" / "datasets" / "data"
_HARD_TO_REPEAT = ("fnlwgt",)
"""Columns of many different values: written as differences, a dictionary would be larger."""


def published(folder: Path, name: str) -> bytes:
    """Return the bytes of a file; raise ValueError if it is not the published one."""
    content = (folder / name).read_bytes()
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != PUBLISHED[name]:
        raise ValueError(f"{folder / name} is not the published {name}")
    return content


def read_adult(content: bytes) -> pa.Table:
    """Parse adult.data or adult.test; the latter begins with a comment and has "." after its labels."""
    lines = re.sub(rb"[ \t]*,[ \t]*", b",", content)
    lines = re.sub(rb"(?m)^\|.*\n", b"", lines)
    schema = _schema("adult")
    names = list(schema.names)
    types = {column.name: pa.int64() if isinstance(column, Numeric) else pa.string() for column in schema.table_columns}
    table = csv.read_csv(
        pa.BufferReader(lines),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types, null_values=["?"], strings_can_be_null=True),
    )
    label = pc.utf8_rtrim(table["income"], characters=".")
    return table.set_column(names.index("income"), "income", pc.equal(label, ">50K"))


def read_airfoil(content: bytes) -> pa.Table:
    """Parse airfoil_self_noise.dat: numbers between tabs, no header."""
    names = list(_schema("airfoil").names)
    return csv.read_csv(
        pa.BufferReader(content),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())),
    )


def write(table: pa.Table, path: Path) -> None:
    """Write a table as small as Parquet makes it."""
    differences = [name for name in table.column_names if name in _HARD_TO_REPEAT]
    pq.write_table(
        table.combine_chunks(),
        path,
        compression="zstd",
        compression_level=22,
        use_dictionary=[name for name in table.column_names if name not in differences],
        column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED") or None,
        write_statistics=False,
        store_schema=False,
    )


def main(folder: Path) -> None:
    """Write both files."""
    parts = [read_adult(published(folder, name)) for name in ("adult.data", "adult.test")]
    write(pa.concat_tables(parts), DATA / "adult.parquet")
    write(read_airfoil(published(folder, "airfoil_self_noise.dat")), DATA / "airfoil.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
