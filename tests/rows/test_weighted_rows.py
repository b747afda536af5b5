"""Sums of rows with sampling weights: exact in every form of a table, and each row by itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.rows import units
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import WEIGHT_BITS
from dpmoments.schema.schema import Schema
from support.table_forms import FILES, FORMS, SCHEMA, TABLE, a_third_of_forms, reference_rows

N, CAP, ONE = 700, 80.0, 1 << WEIGHT_BITS


def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(-20.0, 130.0, N),
            "smoker": rng.random(N) < 0.3,
            "region": rng.choice(["north", "south", "elsewhere"], N),
            "weight": rng.gamma(2.0, 20.0, N),
        }
    )
    frame.loc[:5, "weight"] = [0.0, CAP, 10 * CAP, np.nan, -3.0, np.inf]
    return frame


def schema_of(*, levels: bool, design_effect: float | None) -> Schema:
    columns: list[Any] = [dpm.Numeric("age", 0, 100), dpm.Boolean("smoker")]
    if levels:
        columns.append(dpm.Categorical("region", ["north", "south"], other="zero"))
    weight = dpm.SamplingWeight("weight", CAP, missing="drop", design_effect=design_effect)
    return dpm.Schema(*columns, weight).with_indicators


def slowly_weighted(frame: pd.DataFrame, schema: Schema, bits: int) -> tuple[int, list[int], list[list[int]]]:
    """Σt, Σt·z and Σt·z zᵀ in Python integers, from the rows one by one."""
    kept = frame[(frame["weight"] >= 0.0) & (frame["weight"] < np.inf)]
    shares = np.minimum(kept["weight"], CAP).tolist()
    t = [round(Fraction(share) / Fraction(CAP) * ONE) for share in shares]
    values = [kept["age"].clip(0, 100), kept["smoker"]]
    if "region=north" in schema.feature_names:
        values += [kept["region"] == level for level in ("north", "south")]
    if "weight" in schema.feature_names:
        values.append(np.minimum(kept["weight"], CAP))
    encoding = schema.encoding()
    encoded = (np.column_stack(values).astype(float) - encoding.offset) / encoding.scale
    z = [[int(cell) for cell in row] for row in np.rint(encoded * 2.0**bits)]
    d = range(schema.n_features)
    sums = [sum(weight * row[i] for weight, row in zip(t, z, strict=True)) for i in d]
    gram = [[sum(weight * row[i] * row[j] for weight, row in zip(t, z, strict=True)) for j in d] for i in d]
    return sum(t), sums, gram


@pytest.mark.parametrize("levels", [True, False])
@pytest.mark.parametrize("design_effect", [None, 1.5])
def test_sums_are_those_of_rows_times_whole_weights(levels: bool, design_effect: float | None) -> None:
    frame, schema, bits = people(), schema_of(levels=levels, design_effect=design_effect), 14
    rows = Rows.of(frame, schema)
    moments, (total, sums, gram) = rows.moments(bits=bits), slowly_weighted(frame, schema, bits)
    assert moments.count == total
    assert moments.sum.tolist() == sums
    assert moments.gram.tolist() == gram
    marginal = rows.marginal_sums([0], np.zeros(1), np.ones(1), bits=bits)
    assert marginal.count == total
    assert marginal.sums.tolist() == sums[:1]
    assert marginal.squares.tolist() == [gram[0][0]]


@pytest.mark.parametrize("design_effect", [None, 1.5])
def test_a_row_counts_one_in_histograms_whatever_its_weight(design_effect: float | None) -> None:
    frame, schema = people(), schema_of(levels=True, design_effect=design_effect)
    rows, kept = Rows.of(frame, schema), (frame["weight"] >= 0.0) & (frame["weight"] < np.inf)
    lengths = rows.lengths([0, 1], np.zeros(2), np.ones(2), np.array([0.2, 0.5]))
    assert lengths.total == rows.count() == int(kept.sum())
    assert rows.histogram(_first, [-2.0, 0.0, 2.0]).counts.tolist() == [
        int((kept & (frame["age"] < 50)).sum()),
        int((kept & (frame["age"] >= 50)).sum()),
    ]


def _first(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows[:, 0])


UNIT = dpm.PrivacyUnit("household")


def households() -> pd.DataFrame:
    """Units of one to nine rows, with weights below the cap together, and above it; every second has equal rows."""
    rng = np.random.default_rng(8)
    frame = people().assign(
        weight=lambda frame: frame["weight"] / 3.0,
        household=rng.permutation(np.repeat(np.arange(N), np.arange(N) % 9 + 1)[:N]),
    )
    first = frame.groupby("household")[["age", "smoker", "region"]].transform("first")
    alike = frame["household"] % 2 == 0
    frame.loc[alike, ["age", "smoker", "region"]] = first[alike]
    equal = frame["household"] % 4 == 0
    frame.loc[equal & (frame.index > 5), "weight"] = 7.0
    return frame


@pytest.mark.parametrize("levels", [True, False])
@pytest.mark.parametrize("design_effect", [None, 1.5])
def test_weights_of_a_unit_add_up_to_the_cap_at_most(levels: bool, design_effect: float | None) -> None:
    frame, schema, bits = households(), schema_of(levels=levels, design_effect=design_effect), 14
    kept = frame[(frame["weight"] >= 0.0) & (frame["weight"] < np.inf)]
    rows = Rows.of(frame, schema, privacy_unit=UNIT).bounded((3, 5))
    assert rows.count() == kept["household"].nunique()
    assert rows.lengths([0, 1], np.zeros(2), np.ones(2), np.array([0.2, 0.5])).total == rows.count()

    t = np.rint(np.minimum(kept["weight"], CAP) / CAP * ONE).astype(int)
    of_unit = t.groupby(kept["household"]).transform("sum")
    assert (of_unit > ONE).sum() > 50
    assert ((of_unit < ONE) & (of_unit > t)).sum() > 50
    shares = [own * min(whole, ONE) // max(whole, 1) for own, whole in zip(t.tolist(), of_unit.tolist(), strict=True)]
    assert pd.Series(shares, kept.index).groupby(kept["household"]).sum().max() <= ONE
    values = [kept["age"].clip(0, 100), kept["smoker"]]
    values += [kept["region"] == level for level in ("north", "south") if levels]
    if design_effect is None:
        values.append(np.minimum(of_unit, ONE) / ONE * CAP)  # the weight as a feature is that of the unit
    encoding = schema.encoding()
    z = np.rint((np.column_stack(values).astype(float) - encoding.offset) / encoding.scale * 2.0**bits).astype(int)
    weighted = np.array(shares)[:, None] * z
    moments = rows.moments(bits=bits)
    assert moments.count == sum(shares)
    assert moments.sum.tolist() == weighted.sum(axis=0).tolist()
    assert moments.gram.tolist() == (weighted.T @ z).tolist()
    assert rows.marginal_sums([0], np.zeros(1), np.ones(1), bits=bits).sums.tolist() == moments.sum[:1].tolist()


def test_units_of_one_hash_keep_their_weights_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, schema = households(), schema_of(levels=True, design_effect=None)
    wanted = Rows.of(frame, schema, privacy_unit=UNIT).bounded((3, 5)).moments()
    own = units.unit_hashes
    monkeypatch.setattr(units, "unit_hashes", lambda ids, key: own(ids, key) & np.uint64(3))
    assert Rows.of(frame, schema, privacy_unit=UNIT).bounded((3, 5)).moments() == wanted


def test_a_table_that_changed_after_units_were_bounded_is_refused(tmp_path: Path) -> None:
    frame, schema, path = households(), schema_of(levels=True, design_effect=None), tmp_path / "people.parquet"
    frame.to_parquet(path)
    rows = Rows.of(path, schema, privacy_unit=UNIT, threads=1).bounded((3, 5))
    pd.concat([frame, frame[frame["household"] == 7]]).to_parquet(path)
    with pytest.raises(ValueError, match="changed between passes"):
        replace(Rows.of(path, schema, privacy_unit=UNIT, threads=1), selection=rows.selection).moments()


def test_units_are_bounded_alike_in_every_order_and_engine(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.dataframe")
    frame, schema = households(), schema_of(levels=True, design_effect=None)
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=50)
    tables = [frame, frame.iloc[::-1], tmp_path / "people.parquet", dask.from_pandas(frame, npartitions=5)]
    rows = [Rows.of(table, schema, privacy_unit=UNIT, threads=2).bounded((3, 5)) for table in tables]
    assert all(other.moments() == rows[0].moments() for other in rows[1:])
    edges = np.array([0.2, 0.5])
    lengths = [each.lengths([0, 1], np.zeros(2), np.ones(2), edges) for each in rows]
    assert len({(each.below, *each.counts.tolist(), each.above) for each in lengths}) == 1


def test_a_unit_is_bounded_by_its_rows_or_by_its_weight() -> None:
    schema = schema_of(levels=True, design_effect=None)
    with pytest.raises(ValueError, match="leave out max_rows"):
        Rows.of(households(), schema, privacy_unit=dpm.PrivacyUnit("household", max_rows=3))
    with pytest.raises(ValueError, match="max_rows=5"):
        Rows.of(households(), dpm.Schema(dpm.Numeric("age", 0, 100)), privacy_unit=UNIT)


def test_no_order_part_or_thread_changes_a_bit() -> None:
    frame, schema = people(), schema_of(levels=True, design_effect=None)
    wanted = Rows.of(frame, schema, threads=1).moments()
    assert Rows.of(frame.iloc[::-1], schema, threads=2).moments() == wanted
    parts = [Rows.of(part, schema).moments() for part in (frame[:100], frame[100:101], frame[101:])]
    assert parts[0] + parts[1] + parts[2] == wanted
    assert Rows.of(frame, schema).where("region", "north").moments().count < wanted.count


def test_an_unusable_weight_stops_a_pass_unless_its_row_is_dropped() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.SamplingWeight("weight", CAP)).with_indicators
    for weight in (np.nan, -3.0, np.inf):
        frame = pd.DataFrame({"age": [1.0, 2.0], "weight": [3.0, weight]})
        with pytest.raises(ValueError, match="column 'weight' has a cell"):
            Rows.of(frame, schema).count()


OF_FORMS = dpm.Schema(
    *(column for column in SCHEMA.columns if "price" not in column.name),
    dpm.SamplingWeight("price", 20, missing="drop"),
).with_indicators


@pytest.fixture(scope="module")
def wanted() -> ExactMoments:
    rows, dropped = reference_rows(TABLE, dpm.Schema(*OF_FORMS.columns))
    kept = ~dropped & np.array([price is not None and price >= 0 for price in TABLE["price"].to_pylist()])
    t = np.rint((rows[kept, -1] * OF_FORMS.encoding().scale[-1] + 10.0) / 20.0 * ONE).astype(int)
    parts = [exact_moments([np.repeat(rows[kept][t == each], each, axis=0)], OF_FORMS.n_features) for each in set(t)]
    return sum(parts[1:], parts[0])


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("form", a_third_of_forms(1))
def test_every_form_of_a_table_gives_the_same_bits(form: str, wanted: ExactMoments, tmp_path: Path) -> None:
    table = FORMS[form](TABLE) if form in FORMS else FILES[form](tmp_path)
    assert Rows.of(table, OF_FORMS).moments() == wanted
