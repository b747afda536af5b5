"""Counts of cells: those of a slow reference, from every form of a table, in every engine, for rows and for units."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.rows.histogram import CellCountSummary
from dpmoments.rows.rows import Rows
from dpmoments.schema.constraints import levels_of, schema_of_tables
from support.table_forms import FILES, FORMS, SCHEMA, TABLE, a_third_of_forms

TABLES = [["region", "member"], ["code"], ["member", "code", "region"]]
COUNTED = schema_of_tables(SCHEMA, TABLES)


def reference(table: pa.Table, tables: list[list[str]] = TABLES, schema: dpm.Schema = COUNTED) -> list[list[int]]:
    """Row by row in plain Python: a dropped row is nowhere, and one without a level in no cell of the table."""
    columns = {column.name: column for column in schema.table_columns}
    found = []
    for by in tables:
        cells = list(product(*(levels_of(columns[name]) for name in by)))
        counts = dict.fromkeys(cells, 0)
        for row in table.to_pylist():
            dropped = any(
                (column.missing == "drop" and row[name] in (None, ""))
                or (getattr(column, "other", "") == "drop" and row[name] not in (None, "", *column.levels))
                for name, column in columns.items()
            )  # fmt: skip
            cell = tuple(row[name] for name in by)
            if not dropped and cell in counts:
                counts[cell] += 1
        found.append(list(counts.values()))
    return found


EXPECTED = reference(TABLE)


@pytest.mark.long(sets=9)
@pytest.mark.parametrize("form", a_third_of_forms(0))
def test_every_form_of_a_table_has_the_counts_of_the_reference(form: str, tmp_path: Path) -> None:
    data = FORMS[form]() if form in FORMS else FILES[form](tmp_path)
    counts = Rows.of(data, COUNTED).cell_counts(TABLES)
    assert [table.tolist() for table in counts.tables] == EXPECTED
    assert "private" in repr(counts)


def test_level_codes_and_encoded_rows_have_the_same_counts() -> None:
    rows = Rows.of(TABLE, COUNTED)
    summary = CellCountSummary.of(COUNTED, TABLES, "drop")
    running = summary.start()
    for block in rows.source.blocks():  # type: ignore[union-attr]
        summary.add(running, block)
    assert [table.tolist() for table in summary.finish(running).tables] == EXPECTED


@pytest.mark.parametrize(
    ("missing", "counts"), [("error", [2, 3]), ("center", [2, 1])], ids=["a half is true", "a half is missing"]
)
def test_a_boolean_between_0_and_1_is_the_nearer(missing: Any, counts: list[int]) -> None:
    schema = dpm.Schema(dpm.Boolean("flag", missing=missing))
    cells = pa.table({"flag": [0.0, 0.4, 0.5, 0.5, 1.0] if missing == "error" else [0.0, 0.4, None, 0.5, 1.0]})
    assert Rows.of(cells, schema).cell_counts([["flag"]]).tables[0].tolist() == counts


def test_dask_and_an_array_have_the_same_counts() -> None:
    dask_frame, dask_array = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    expected = Rows.of(TABLE, COUNTED).cell_counts(TABLES)
    frame = dask_frame.from_pandas(TABLE.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)
    for one, other in zip(Rows.of(frame, COUNTED).cell_counts(TABLES).tables, expected.tables, strict=True):
        np.testing.assert_array_equal(one, other)
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("code", [1, 2]), dpm.Boolean("flag"))
    array = np.column_stack([np.arange(20.0), np.arange(20) % 2 + 1, np.arange(20) % 5 == 0])
    options: dict[str, Any] = dict(by=["flag", "code"], epsilon=50.0, insecure_seed=0)
    assert dpm.release_counts(array, schema, **options).counts.tolist() == [[8, 8], [2, 2]]
    chunks = dask_array.from_array(array, chunks=(7, 3))
    assert dpm.release_counts(chunks, schema, **options).counts.tolist() == [[8, 8], [2, 2]]


def test_units_count_with_as_many_rows_as_they_may() -> None:
    frame = pd.DataFrame({"region": ["north"] * 30 + ["south"] * 3, "person": [1] * 30 + [2, 3, 4]})
    schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]))
    unit = dpm.PrivacyUnit("person", 2)
    found = dpm.release_counts(frame, schema, by="region", privacy_unit=unit, epsilon=500.0, insecure_seed=0)
    assert found.counts.tolist() == [2, 3]
