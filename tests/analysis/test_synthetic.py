"""Synthetic rows: a table of the schema's kind whose moments are the release's."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.analysis import synthetic
from dpmoments.base.table_files import write_table
from dpmoments.cli import main
from dpmoments.rows.rows import Rows
from support.drawn_releases import planted
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("pay", -50, 50),
    dpm.Boolean("member"),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Categorical("code", [1, 2, 30], missing="zero", other="zero"),
)
N_ROWS = 20_000


def people(n_rows: int = 30_000, seed: int = 0) -> pa.Table:
    """Columns of all kinds that depend on one another; a fifth of the codes are none."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, n_rows), 0, 100)
    regions = np.where(
        age + rng.normal(0, 20, n_rows) > 50, "north", np.where(rng.random(n_rows) < 0.3, "east", "south")
    )
    pay = np.clip(0.4 * (age - 45) + 8 * (regions == "east") + rng.normal(0, 8, n_rows), -50, 50)
    member = rng.random(n_rows) < 1 / (1 + np.exp(-(pay - 5) / 6))
    codes = np.where(
        member, rng.choice([1, 2], n_rows, p=[0.7, 0.3]), rng.choice([2, 30, 4], n_rows, p=[0.2, 0.4, 0.4])
    )
    return pa.table({"age": age, "pay": pay, "member": member, "region": regions, "code": codes})


@pytest.fixture(scope="module")
def released() -> dpm.MomentRelease:
    return dpm.release(people(), SCHEMA, epsilon=1e6, mechanism="matrix-laplace", insecure_seed=0)


def moments(table: Any, schema: dpm.Schema) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of every feature, exactly."""
    found, encoding = Rows.of(table, schema).moments(), schema.encoding()
    mean = np.array(found.sum, dtype=float) * found.scale / found.count
    gram = np.array(found.gram, dtype=float) * found.scale**2 / found.count
    return encoding.decode_mean(mean), encoding.decode_covariance(gram - np.outer(mean, mean))


def test_moments_of_the_rows_are_those_of_the_release(released: dpm.MomentRelease) -> None:
    """Five standard errors of 20,000 independent rows, and what the copula of such columns misses."""
    mean, covariance = moments(released.synthetic(N_ROWS, 1, format="arrow"), SCHEMA)
    deviations = np.sqrt(np.diag(released.covariance))
    error = 1.0 / np.sqrt(N_ROWS)
    assert np.abs((mean - released.mean) / deviations).max() < 5 * error
    assert np.abs(np.sqrt(np.diag(covariance)) / deviations - 1.0).max() < 5 * error
    off = (covariance - released.covariance) / np.outer(deviations, deviations)
    assert np.abs(off).max() < 0.12  # of membership and the code that only members have; processors differ by .01
    assert np.sqrt(np.mean(off**2)) < 0.02


def test_correlations_that_are_not_calibrated_are_found(
    released: dpm.MomentRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: one round alone, latents as correlated as the features."""
    deviations = np.sqrt(np.diag(released.covariance))
    scale = np.outer(deviations, deviations)

    def off() -> float:
        _, covariance = moments(released.synthetic(N_ROWS, 1, format="arrow"), SCHEMA)
        return float(np.sqrt(np.mean(((covariance - released.covariance) / scale) ** 2)))

    calibrated = off()
    monkeypatch.setattr(synthetic, "_ROUNDS", 1)
    assert off() > 1.5 * calibrated


def test_rows_have_the_types_levels_and_bounds_of_the_schema(released: dpm.MomentRelease) -> None:
    rows = released.synthetic(2_000, 3)
    assert rows.columns.tolist() == list(SCHEMA.names)
    assert rows["age"].between(0, 100).all()
    assert rows["pay"].between(-50, 50).all()
    assert rows["member"].dtype == bool
    assert set(rows["region"]) == {"north", "south", "east"}
    assert rows["code"].dtype == pd.Int64Dtype()
    assert set(rows["code"].dropna()) == {1, 2, 30}
    # codes that are none of the levels
    assert rows["code"].isna().mean() == pytest.approx(1.0 - released.mean[-3:].sum(), abs=0.05)
    again = dpm.release(rows, SCHEMA, epsilon=1.0)
    assert again.feature_names == released.feature_names


@pytest.mark.long
def test_a_seed_draws_the_same_rows_and_another_draws_others(released: dpm.MomentRelease) -> None:
    first, again, other = (released.synthetic(50, seed) for seed in (4, 4, 5))
    pd.testing.assert_frame_equal(first, again)
    assert not np.isclose(first["age"], other["age"]).any()
    table = released.synthetic(50, 4, format="arrow")
    np.testing.assert_array_equal(table["age"].to_numpy(), first["age"])


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("private", [True, False])
def test_rows_say_whether_their_release_was_private(private: bool) -> None:
    release = dpm.release(people(200), SCHEMA, epsilon=1.0, insecure_seed=None if private else 0)
    attrs = release.synthetic(3).attrs
    stored = json.loads(release.synthetic(3, format="arrow").schema.metadata[b"dpmoments"])
    assert attrs == stored
    assert attrs["private"] is private
    assert ("warning" in attrs) == (not private)
    assert attrs["synthetic"] is True


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        (dpm.Schema(dpm.Numeric("x", 0, 10)), {"x": [3.0] * 200}),
        (dpm.Schema(dpm.Numeric("x", 0, 10)), {"x": [0.0, 10.0] * 100}),
        (dpm.Schema(dpm.Numeric("x", 0, 10), dpm.Categorical("g", ["a"])), {"x": [3.0] * 200, "g": ["a"] * 200}),
        (dpm.Schema(dpm.Boolean("b"), dpm.Boolean("c")), {"b": [True] * 200, "c": [False] * 200}),
        (dpm.Schema(dpm.Categorical("g", ["a", "b", "c"])), {"g": ["a"] * 200}),
        (dpm.Schema(dpm.Categorical("g", ["a", "b"], other="zero")), {"g": ["c"] * 200}),
    ],
)
@pytest.mark.parametrize("epsilon", [1e6, 0.01])
def test_columns_at_the_ends_of_what_there_is(schema: dpm.Schema, columns: dict[str, Any], epsilon: float) -> None:
    """Constant columns, cells at both bounds, levels that no row has; and noise that drowns all of it."""
    release = dpm.release(pa.table(columns), schema, epsilon=epsilon, insecure_seed=0)
    rows = release.synthetic(500)
    mean, _ = moments(release.synthetic(4_000, format="arrow"), schema)
    if epsilon > 1.0:
        np.testing.assert_allclose(mean, release.mean, atol=0.3 if "x" in columns else 0.02)
    for column in schema.columns:
        if isinstance(column, dpm.Numeric):
            assert rows[column.name].between(*column.bounds).all()
        if isinstance(column, dpm.Categorical):
            known = {*column.levels, "other"} if column.other == "zero" else set(column.levels)
            assert set(rows[column.name]) <= known


def test_a_column_at_its_bound_stays_there() -> None:
    schema, cells = (
        dpm.Schema(dpm.Numeric("x", 0, 10), dpm.Numeric("y", 0, 10)),
        {"x": [0.0] * 20, "y": [3.0, 7.0] * 10},
    )
    release = dpm.release(pa.table(cells), schema, epsilon=2.0, mechanism="matrix-laplace", insecure_seed=0)
    assert release.covariance[0, 0] == 0.0
    assert not release.synthetic(100, format="arrow")["x"].to_numpy().any()


def test_rows_of_coordinates_are_within_their_ball_and_rough_scales_are_normal() -> None:
    rng = np.random.default_rng(0)
    ball = dpm.release(rng.normal(0, 0.4, (2000, 4)), dpm.Schema.unit_ball(4), epsilon=10.0, insecure_seed=0)
    assert np.linalg.norm(ball.synthetic(1000).to_numpy(), axis=1).max() <= 1.0 + 1e-12
    rough = dpm.Schema(dpm.Numeric("a", scale=(1, 1e3)), dpm.Numeric("b", scale=(1, 1e3)))
    table = rng.multivariate_normal([500.0, -3.0], [[400.0, 150.0], [150.0, 100.0]], 5000)
    release = dpm.release(table, rough, rho=50.0, insecure_seed=0)
    rows = release.synthetic(20_000).to_numpy()
    np.testing.assert_allclose(rows.mean(axis=0), release.mean, atol=1.0)
    np.testing.assert_allclose(np.cov(rows.T), release.covariance, rtol=0.1, atol=10.0)


def test_arguments_that_cannot_be_are_refused(released: dpm.MomentRelease) -> None:
    for arguments in (
        dict(n_rows=0),
        dict(n_rows=2.5),
        dict(n_rows=True),
        dict(n_rows=3, seed=-1),
        dict(n_rows=3, seed=None),
    ):
        with refused("must be a whole number"):
            released.synthetic(**arguments)  # type: ignore[arg-type]
    with refused(": use '"):
        released.synthetic(3, format="csv")  # type: ignore[call-overload]


def test_a_release_without_a_mean_is_refused(released: dpm.MomentRelease) -> None:
    gram_alone = replace(released, noisy_sum=None, center=None)
    with refused("rows are drawn with the released mean and"):
        gram_alone.synthetic(10)
    with refused("rows are drawn with the released mean and"):
        replace(gram_alone, noisy_count=None).synthetic(10)


@pytest.mark.long
def test_without_pandas_there_is_arrow(released: dpm.MomentRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused("pandas is not installed: install it, or use format='arrow'", ImportError):
        released.synthetic(3)
    assert released.synthetic(3, format="arrow").num_rows == 3


FORMULAS = ["=1+1", "+a", "-b", "@c", "'=1+1", "''", "plain", "a=b"]


@pytest.fixture
def formulas(tmp_path: Path) -> Path:
    """A release whose levels and names a spreadsheet would run."""
    schema = dpm.Schema(
        dpm.Numeric("=x", -9, -1), dpm.Categorical("@level", FORMULAS), dpm.Categorical("code", [-1, -2])
    )
    rng = np.random.default_rng(0)
    table = {"=x": rng.uniform(-9, -1, 800), "@level": rng.choice(FORMULAS, 800), "code": rng.choice([-1, -2], 800)}
    dpm.release(pa.table(table), schema, epsilon=9.0, output=tmp_path / "people.json")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_spreadsheet_runs_nothing_that_a_csv_file_of_rows_holds(
    formulas: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Levels and names come from whoever wrote the release; an apostrophe makes them text. Numbers stay numbers."""
    rows = formulas / f"rows.{ending}"
    command = ["synthetic", str(formulas / "people.json"), "-n", "300", "-o"]
    assert main([*command, str(rows)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "apostrophe" in said
    assert "--raw-text" in said
    read = pa_csv.read_csv(rows, parse_options=pa_csv.ParseOptions(delimiter={"csv": ",", "tsv": "\t"}[ending]))
    assert read.column_names == ["'=x", "'@level", "code"]
    assert set(read["'@level"].to_pylist()) == {"'=1+1", "'+a", "'-b", "'@c", "''=1+1", "''", "plain", "a=b"}
    assert pa.types.is_floating(read["'=x"].type)
    assert pa.types.is_integer(read["code"].type)
    assert max(read["'=x"].to_pylist()) < 0
    raw = formulas / f"raw.{ending}"
    assert main([*command, str(raw), "--raw-text"]) == 0
    assert "apostrophe" not in capsys.readouterr().out
    schema = dpm.load(formulas / "people.json").schema
    assert dpm.preflight(raw, schema).private_facts()["rows_kept"] == 300  # by our own schema every level is known


def test_parquet_and_harmless_text_are_written_as_they_are(formulas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synthetic", str(formulas / "people.json"), "-n", "99", "-o", str(formulas / "rows.parquet")]) == 0
    assert "apostrophe" not in capsys.readouterr().out
    assert set(pq.read_table(formulas / "rows.parquet")["@level"].to_pylist()) <= set(FORMULAS)


@pytest.mark.parametrize("first", [*"=+-@\t\r\n", "＝", "＋", "－", "＠"])
def test_every_character_that_begins_a_formula_is_escaped_and_texts_stay_apart(first: str, tmp_path: Path) -> None:
    texts = [f"{first}1", f"'{first}1", f"''{first}1", f"1{first}", "'1", None]
    table = pa.table({"text": pa.array(texts, pa.string()), "number": [-1.5] * 6})
    assert write_table(table, tmp_path / "t.csv")
    read = pa_csv.read_csv(
        tmp_path / "t.csv",
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(strings_can_be_null=True),
    )
    assert read["text"].to_pylist() == [f"'{first}1", f"''{first}1", f"'''{first}1", f"1{first}", "'1", None]
    assert read["number"].to_pylist() == [-1.5] * 6
    assert not write_table(table, tmp_path / "raw.csv", raw_text=True)
    assert not write_table(table.select(["number"]), tmp_path / "numbers.csv")


def test_margins_are_interpolated_as_numpy_does() -> None:
    margin = synthetic._margin(3.0, 2.0, 0.0, 10.0)
    latents = np.concatenate([np.random.default_rng(0).normal(size=500), [-9.0, -8.0, 0.0, 8.0, 9.0]])
    block = synthetic._Block(dpm.Numeric("x", 0, 10), np.array([0]), margin, np.zeros(1))
    found = block.values(latents[:, None], np.zeros(1))[:, 0]
    np.testing.assert_allclose(found, np.interp(latents, synthetic._GRID, margin), rtol=1e-12)


@pytest.mark.long
def test_levels_that_another_column_decides_keep_their_shares() -> None:
    """Their latents are nearly equal: whole steps of the offsets went from no row of a level to all rows, and back."""
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 1.0, 10_000)
    flag = x + 0.2 * rng.normal(0.0, 1.0, 10_000) > 0.8
    table = pd.DataFrame({"x": x, "flag": flag, "kind": np.where(flag, "a", rng.choice(["b", "c"], 10_000))})
    schema = dpm.Schema(dpm.Numeric("x", -5, 5), dpm.Boolean("flag"), dpm.Categorical("kind", ["a", "b", "c"]))
    release = dpm.release(table, schema, epsilon=100.0, insecure_seed=1)

    def shares_and_correlation() -> tuple[float, float]:
        rows = release.synthetic(10_000, seed=0)
        shares = np.array([(rows["kind"] == level).mean() for level in "abc"])
        return float(np.abs(shares - release.mean[2:]).max()), float(
            np.corrcoef(rows["flag"], rows["kind"] == "a")[0, 1]
        )

    missed, correlation = shares_and_correlation()
    assert missed < 4.0 * math.sqrt(0.25 / 10_000)
    assert correlation > 0.9
    with planted(synthetic._with_shares, "if missed < best[0]:", "if True:"):
        assert shares_and_correlation()[0] > 0.1


def test_a_margin_has_its_mean_and_variance_on_its_bounds() -> None:
    """Beta distributions by SciPy; others are those that a beta distribution becomes."""
    grid = synthetic._GRID
    weights = stats.norm.pdf(grid) / stats.norm.pdf(grid).sum()
    for mean, variance, lower, upper in ((3.0, 2.0, 0.0, 10.0), (-2.0, 9.0, -5.0, 7.0), (0.3, 0.04, 0.0, 1.0)):
        made = synthetic._margin(mean, variance, lower, upper)
        assert weights @ made == pytest.approx(mean, rel=1e-6)
        assert weights @ (made - mean) ** 2 == pytest.approx(variance, rel=1e-5)
        share, spread = (mean - lower) / (upper - lower), variance / (upper - lower) ** 2
        size = share * (1 - share) / spread - 1
        law = stats.beta(size * share, size * (1 - share), lower, upper - lower)
        inner = np.abs(grid) < 5
        np.testing.assert_allclose(made[inner], law.ppf(stats.norm.cdf(grid[inner])), rtol=1e-9)
    np.testing.assert_allclose(synthetic._margin(2.0, 9.0, -math.inf, math.inf), 2.0 + 3.0 * grid)
    np.testing.assert_allclose(synthetic._margin(2.0, 9.0, 0.0, math.inf), 2.0 + 3.0 * grid)
    assert (synthetic._margin(2.0, -1.0, -math.inf, math.inf) == 2.0).all()
    for mean, variance, value in ((4.0, 0.0, 4.0), (4.0, -1.0, 4.0), (12.0, 1.0, 10.0), (0.0, 1.0, 0.0)):
        assert (synthetic._margin(mean, variance, 0.0, 10.0) == value).all()
    for variance in (24.0, 30.0):  # at the bounds alone
        made = synthetic._margin(4.0, variance, 0.0, 10.0)
        assert set(made.tolist()) == {0.0, 10.0}
        assert weights @ made == pytest.approx(4.0, abs=0.02)
    narrow = synthetic._margin(4.0, 24e-9, 0.0, 10.0)
    np.testing.assert_allclose(narrow, 4.0 + math.sqrt(24e-9) * grid, rtol=1e-12)
    steep = synthetic._margin(4.0, 24e-6, 0.0, 10.0)
    assert np.abs(steep - (4.0 + math.sqrt(24e-6) * grid)).max() > 1e-7
    clipped = synthetic._margin(1e-7, 1e-15, 0.0, 1.0)
    assert clipped.min() == 0.0


def test_parts_of_a_calibration_are_exact() -> None:
    latents = synthetic._even_latents(500, 3, np.random.default_rng(1))
    assert latents.shape == (500, 3)
    np.testing.assert_allclose(latents.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(latents.T @ latents / 500, np.eye(3), atol=1e-12)
    wanted = np.array([[0.0, 0.5, -0.2], [0.5, 0.0, 0.3], [-0.2, 0.3, 0.0]])
    root = synthetic._root(wanted)
    np.testing.assert_allclose(root @ root.T, wanted + np.eye(3), atol=1e-12)
    impossible = synthetic._root(np.array([[0.0, 0.9, -0.9], [0.9, 0.0, 0.9], [-0.9, 0.9, 0.0]]))
    found = impossible @ impossible.T
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert found[0, 1] == pytest.approx(0.5, abs=1e-4)
    assert found[0, 2] == pytest.approx(-0.5, abs=1e-4)


def test_levels_are_the_highest_latents_and_rows_without_one_stay_without() -> None:
    column = dpm.Categorical("kind", ["a", "b"], missing="zero", other="zero")
    latents = np.array([[9.0, 0.5, -1.0], [9.0, -0.5, -0.4], [9.0, -2.0, 1.0]])
    offsets = np.array([0.0, 0.2, 0.1])
    own = np.array([1, 2])
    with_none = synthetic._Block(column, own, None, np.array([0.5, 0.3]), True)
    assert with_none.values(latents, offsets).tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert replace(with_none, may_be_none=False).values(latents, offsets).tolist() == [
        [1.0, 0.0],
        [1.0, 0.0],
        [0.0, 1.0],
    ]
    flag = synthetic._Block(dpm.Boolean("flag"), np.array([1]), None, np.array([0.5]))
    assert flag.values(latents, offsets).tolist() == [[1.0], [0.0], [0.0]]
    rows = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 1.0]])
    assert synthetic._cells(with_none, rows).to_pylist() == ["a", None, "b"]
    dropped = synthetic._Block(
        dpm.Categorical("kind", ["other", "b"], other="zero"), own, None, np.array([0.5, 0.3]), True
    )
    assert synthetic._cells(dropped, rows).to_pylist() == ["other", "other_", "b"]
    whole = synthetic._Block(dpm.Categorical("kind", [7, 3], other="zero"), own, None, np.array([0.5, 0.3]), True)
    assert synthetic._cells(whole, rows).to_pylist() == [7, 8, 3]
    assert synthetic._cells(flag, rows).to_pylist() == [True, False, False]
    assert synthetic._cells(replace(flag, column=dpm.Numeric("x", 0, 1)), rows).to_pylist() == [1.0, 0.0, 0.0]
    ball = dpm.Schema.unit_ball(2).columns
    blocks = [synthetic._Block(column, np.array([i]), None, np.zeros(1)) for i, column in enumerate(ball)]
    rows = np.array([[3.0, 4.0, 7.0], [0.3, 0.4, 7.0], [0.6, 0.8, 7.0], [0.0, -2.0, 7.0]])
    synthetic._shorten(rows, blocks, 1.0)
    np.testing.assert_allclose(rows, [[0.6, 0.8, 7.0], [0.3, 0.4, 7.0], [0.6, 0.8, 7.0], [0.0, -1.0, 7.0]])
    synthetic._shorten(rows, blocks, None)
    assert rows[3].tolist() == [0.0, -1.0, 7.0]


def test_shares_of_levels_are_possible(released: dpm.MomentRelease) -> None:
    """Shares of a noisy release add up to one, or to at most one where a row may have no level."""
    d = len(released.feature_names)

    def shares(*values: float, missing: Any = "error") -> tuple[list[float], bool]:
        schema = dpm.Schema(dpm.Numeric("x", -1, 1), dpm.Categorical("kind", ["a", "b", "c"], missing=missing))
        mean = np.array([0.2, *values])
        made: Any = SimpleNamespace(
            feature_names=schema.feature_names, mean=mean, covariance=np.diag([0.1, 0.2, 0.2, 0.2]), schema=schema
        )
        blocks, drawn = synthetic._blocks(made)
        assert drawn.tolist() == [0, 1, 2, 3]
        assert blocks[0].margin is not None
        assert blocks[0].margin[1000] == pytest.approx(0.2, abs=0.1)
        return blocks[1].shares.tolist(), blocks[1].may_be_none

    assert shares(0.5, 0.3, 0.2) == (pytest.approx([0.5, 0.3, 0.2]), False)
    assert shares(0.5, 0.3, 0.4) == (pytest.approx([0.5 / 1.2, 0.25, 0.4 / 1.2]), False)
    assert shares(1.5, -0.3, 1.0) == (pytest.approx([0.5, 0.0, 0.5]), False)
    assert shares(-0.1, 0.0, -0.2) == (pytest.approx([1 / 3, 1 / 3, 1 / 3]), False)
    assert shares(0.5, 0.3, 0.1, missing="zero") == (pytest.approx([0.5, 0.3, 0.1]), True)
    assert shares(0.5, 0.3, 0.4, missing="zero") == (pytest.approx([0.5 / 1.2, 0.25, 0.4 / 1.2]), False)
    assert shares(0.5, 0.3, 0.2, missing="zero") == (pytest.approx([0.5, 0.3, 0.2]), False)
    blocks, drawn = synthetic._blocks(released)
    assert drawn.tolist() == list(range(d))
    assert [block.indices.tolist() for block in blocks] == [[0], [1], [2], [3, 4, 5], [6, 7, 8]]
