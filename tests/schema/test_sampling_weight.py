"""Sampling weights in a schema: what is stated of them, and what cannot go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpmoments as dpm

AGE, WEIGHT = dpm.Numeric("age", 0, 100), dpm.SamplingWeight("w", 300.0)


def test_a_schema_file_keeps_a_weight(tmp_path: Path) -> None:
    weight = dpm.SamplingWeight("w", 300.0, design_effect={"age": 7.4}, population=1e6, computed_from="table")
    schema = dpm.Schema(AGE, dpm.Boolean("smoker"), weight)
    schema.save(tmp_path / "s.yaml")
    assert dpm.Schema.load(tmp_path / "s.yaml") == schema
    assert dpm.Schema.from_dict(schema.to_dict()) == schema
    assert "sampling_weight" in (tmp_path / "s.yaml").read_text()


def test_a_weight_is_no_column_and_its_rows_have_room_for_it() -> None:
    schema, plain = dpm.Schema(AGE, WEIGHT), dpm.Schema(AGE)
    assert schema.feature_names == plain.feature_names
    assert schema.with_indicators.feature_names == ("age", "w")
    assert schema.row_norm == schema.with_indicators.row_norm == 2**0.5
    stated = dpm.Schema(AGE, dpm.SamplingWeight("w", 300.0, design_effect=1.5))
    assert stated.with_indicators.feature_names == ("age",)
    assert stated.row_norm == stated.as_read.row_norm == plain.row_norm
    assert stated.as_read.feature_names == ("age", "w")


def test_other_schemas_of_a_schema_keep_its_weight() -> None:
    weight = dpm.SamplingWeight("w", 300.0, design_effect={"age": 2.0, "smoker": 3.0}, source="finalwgt")
    schema = dpm.Schema(AGE, dpm.Boolean("smoker"), weight)
    part = schema.with_columns([AGE], row_norm=False)
    assert part.sampling_weight is not None
    assert part.sampling_weight.design_effect == {"age": 2.0}
    assert "finalwgt" in schema.as_read.names_in_table
    assert "finalwgt" in schema.reserved_names
    assert schema.by_own_names.as_read.names_in_table[-1] == "w"


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: dpm.SamplingWeight("w"), "has no cap"),
        (lambda: dpm.SamplingWeight("w", -3.0), "must be a number above 0"),
        (lambda: dpm.SamplingWeight("w", 3.0, design_effect=0.0), "must be a number above 0"),
        (lambda: dpm.SamplingWeight("w", 3.0, computed_from="tabel"), "did you mean 'table'"),
        (lambda: dpm.SamplingWeight("w", 3.0, missing="fill"), "'error' or 'drop'"),
        (lambda: dpm.Schema(WEIGHT, AGE), "not the schema's last column"),
        (lambda: dpm.Schema(AGE, WEIGHT, dpm.SamplingWeight("v", 3.0)), "not the schema's last column"),
        (lambda: dpm.Schema(dpm.Numeric("w", 0, 1), WEIGHT), "duplicate"),
        (lambda: dpm.Schema(AGE, WEIGHT, row_norm=0.5), "leave row_norm and scale out"),
        (lambda: dpm.Schema(dpm.Numeric("y", scale=(1, 2)), WEIGHT, row_norm=None), "leave row_norm and scale out"),
        (lambda: dpm.Schema(AGE, dpm.SamplingWeight("w", 3.0, design_effect={"ag": 2})), "Did you mean 'age'"),
        (lambda: dpm.Schema(AGE, dpm.Product("age", "w"), WEIGHT), "has no column 'w'"),
        (lambda: dpm.Schema(AGE, dpm.SamplingWeight("w", population=9.0, sample_size=3)).with_indicators, "no cap yet"),
    ],
)
def test_what_cannot_be_is_refused(attempt: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        attempt()
