"""Releases of counts: their privacy, noise and files, and what is computed from them."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.stats

import dpmoments as dpm
from dpmoments.analysis.cross_table import CountTable
from dpmoments.audit.replay import replay
from dpmoments.audit.verification import checks
from dpmoments.cli import main
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.cells import CountNoise
from dpmoments.noise import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.rows.rows import Rows
from support.file_schema import schema_faults
from support.forged_files import forge, signed
from support.said import Said, refused, warned

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Categorical("region", ["north", "south", "east"], missing="drop"),
    dpm.Boolean("smoker"),
    dpm.Categorical("sex", ["m", "f"], missing="zero", other="zero"),
)
BUDGETS: dict[str, dict[str, float]] = {
    "pure": {"epsilon": 1.0},
    "zcdp": {"rho": 0.5},
    "approximate": {"epsilon": 0.01, "delta": 1e-4},
    "approximate, spent as pure": {"epsilon": 1.0, "delta": 1e-6},
}
RELATIONS = ("add_remove", "replace_one")


def people(n_rows: int = 300, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.uniform(0, 100, n_rows),
            "region": rng.choice(["north", "south", "east", None], n_rows, p=[0.5, 0.2, 0.2, 0.1]),
            "smoker": rng.random(n_rows) < 0.3,
            "sex": rng.choice(["m", "f", "x"], n_rows),
        }
    )


def counted(**options: Any) -> dpm.CountsRelease:
    given = {"by": [["region", "smoker"], ["sex", "region"]], "split": [2, 1], "insecure_seed": 0, **options}
    return dpm.release_counts(people(), SCHEMA, **given)


CASES = {f"{name}, {relation}": (budget, relation) for (name, budget), relation in product(BUDGETS.items(), RELATIONS)}


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(("budget", "neighbors"), CASES.values(), ids=CASES)
def test_a_release_comes_back_and_verifies(budget: dict[str, float], neighbors: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    made = counted(neighbors=neighbors, insecure_seed=None, output=path, **budget)
    loaded = dpm.load(path)
    assert isinstance(loaded, dpm.CountsRelease)
    assert json.dumps(loaded.to_dict()) == json.dumps(made.to_dict())
    assert [check for check in checks(loaded) if not check.passed] == []
    assert schema_faults(path) == []
    assert made.receipt.exhausts
    assert made.schema.names == ("region", "smoker", "sex")
    sensitivity = (
        (1.0 if neighbors == "add_remove" else 2.0) if "delta" not in budget or made.receipt.unit == "ε" else None
    )
    law = made.tables[0].noise.law
    assert law == ("gaussian" if "rho" in budget or budget["epsilon"] < 1.0 else "laplace")
    if law == "laplace" and sensitivity is not None:
        assert made.tables[0].noise.scale == pytest.approx(1.5 * sensitivity)  # two thirds of the budget
        assert made.tables[1].noise.scale == pytest.approx(3.0 * sensitivity)


FORGED: dict[str, Any] = {
    "fewer rows than none": lambda content: content.update(public_rows=-1),
    "half a row": lambda content: content.update(public_rows=1.5),
    "too many rows": lambda content: content.update(public_rows=10**13),
    "a table of no columns": lambda content: content["tables"][0].update(by=[], levels=[], noisy_counts=[300.0]),
}


@pytest.mark.parametrize("edit", FORGED.values(), ids=FORGED)
def test_a_forged_release_of_counts_is_refused(edit: Any, tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    counted(epsilon=1.0, output=path)
    forge(path, edit)
    with refused("does not hold a consistent"):
        dpm.load(path)


def test_counts_of_tables_of_another_shape_are_refused() -> None:
    made = counted(epsilon=1.0)
    with refused("the counts are not those of tables of the schema's columns"):
        replace(made, noisy=tuple(counts.T for counts in made.noisy))


def test_verify_finds_counts_off_the_lattice_and_a_total_that_cannot_be_public(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    counted(epsilon=1.0, output=path)
    document = json.loads(path.read_text())
    document["content"]["tables"][0]["noisy_counts"][0] += 0.5
    document["content"]["public_rows"] = 300
    document["content"]["mechanism_options"]["split"] = {"$tuple": [0.5, 0.5]}
    path.write_text(signed(document))
    failed = {check.what for check in checks(dpm.load(path)) if not check.passed}
    assert failed == {"counts", "number of rows", "noise as the stated budget calls for"}


# ---------------------------------------------------------------------------------------------------------------------
# privacy


def plan_of(budget: PrivacyBudget, neighbors: str, schema: dpm.Schema) -> Any:
    mechanism = Counts.of(schema, [["region", "smoker"], ["sex"]], [1, 2])
    return mechanism.plan(MomentShape.of(schema, mean=True), budget, neighbors)


def neighbors_of(relation: str) -> list[tuple[pa.Table, pa.Table]]:
    base = people(40)
    last = {name: base[name].to_pylist()[-1] for name in base.column_names}
    changed = [
        {"region": "east"},
        {"region": None},
        {"sex": "x"},
        {"smoker": not last["smoker"]},
        {"region": "south", "sex": "m"},
    ]
    if relation == "add_remove":
        return [(base, base.slice(0, 39)), (base.slice(0, 39), base)]
    others = [
        pa.concat_tables([base.slice(0, 39), pa.Table.from_pylist([last | change], schema=base.schema)])
        for change in changed
    ]
    return [(base, other) for other in others] + [(other, base) for other in others]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "budget", [PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(0.01, 1e-4)]
)
def test_a_run_reveals_only_what_its_plan_pays_for(budget: PrivacyBudget, relation: str) -> None:
    schema = dpm.Schema(*SCHEMA.columns[1:])
    plan = plan_of(budget, relation, schema)
    for first, second in neighbors_of(relation):
        rows = [Rows.of(table, schema, neighbors=relation, threads=1) for table in (first, second)]
        assert replay(plan, *rows, insecure_generator(0)) == ()
    unrelated = [Rows.of(people(39, seed), schema, neighbors=relation, threads=1) for seed in (1, 2)]
    assert replay(plan, *unrelated, insecure_generator(0), any_table=True) == ()


def test_a_public_total_is_kept_only_where_every_row_has_a_level() -> None:
    flags = pa.table({"smoker": [True] * 30 + [False] * 70})
    options: dict[str, Any] = dict(by="smoker", epsilon=0.2, insecure_seed=1)
    for missing, neighbors, public in (
        ("error", "replace_one", 100),
        ("center", "replace_one", None),
        ("error", "add_remove", None),
    ):
        schema = dpm.Schema(dpm.Boolean("smoker", missing=missing))
        found = dpm.release_counts(flags, schema, neighbors=neighbors, **options)
        assert (found.public_rows, found.count_is_public) == (public, public is not None)
        assert public is None or (found.counts.sum(), found.n_rows) == (100, 100)


def test_many_dropped_rows_are_warned_of_by_the_noisy_count_alone() -> None:
    schema = dpm.Schema(dpm.Categorical("region", ["north", "south", "east"], missing="drop"))
    with warned("rows-dropped", rows=300):
        found = dpm.release_counts(people(), schema, by="region", neighbors="replace_one", epsilon=5.0, insecure_seed=0)
    (message,) = found.warnings
    assert message.facts["share"] == pytest.approx(1.0 - found.noisy_counts.sum() / 300)
    assert counted(epsilon=1.0).warnings == ()


# ---------------------------------------------------------------------------------------------------------------------
# noise, intervals and repair


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("scale", "step", "cells"), [(0.7, 1.0, 1), (3.0, 1.0, 5), (40.0, 2.0**-15, 2), (900.0, 1.0, 1)]
)
def test_the_noise_distribution_is_that_of_the_draws(law: str, scale: float, step: float, cells: int) -> None:
    noise = CountNoise(law, scale, step, cells)
    reach = int(60 * scale / max(step, scale / 200)) + 3
    fine = max(step, scale / 200)
    points = np.arange(-reach, reach + 1) * fine
    one = np.exp(-np.abs(points) / scale) if law == "laplace" else np.exp(-0.5 * (points / scale) ** 2)
    one /= one.sum()
    together = one
    for _ in range(cells - 1):
        together = np.convolve(together, one)
    sums = (np.arange(len(together)) - (len(together) - 1) / 2) * fine
    assert noise.standard_deviation == pytest.approx(math.sqrt(together @ sums**2), rel=1e-4)
    for level in (0.5, 0.95, 0.999):
        half = noise.half_width(level)
        within = float(together[np.abs(sums) <= half + (fine - step) / 2.0 + 1e-9].sum())
        assert within >= level - 1e-3
        assert float(together[np.abs(sums) <= half - 1.01 * fine - noise.standard_deviation / 500].sum()) < level


@pytest.mark.long
def test_intervals_hold_as_often_as_they_say_and_no_more_than_the_lattice_adds() -> None:
    """400 counts at fixed seeds, against the exact probability of the interval; with half the noise it would not hold."""
    table = pa.table(
        {
            "region": ["north", "north", "south", "south"] * 40,
            "smoker": ([True, False, False, False] * 20 + [True, False, True, False] * 20),
        }
    )
    schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]), dpm.Boolean("smoker"))
    truth = np.array([[40, 40], [60, 20]])
    runs = [
        dpm.release_counts(table, schema, by=["region", "smoker"], epsilon=0.5, insecure_seed=seed)
        for seed in range(100)
    ]
    level, p = 0.8, math.exp(-0.5)
    half = runs[0].tables[0].noise.half_width(level)
    exact = 1.0 - 2.0 * p ** (half + 1) / (1.0 + p)
    assert level <= exact < level + 0.1
    assert exact - 2.0 * p**half * (1 - p) / (1 + p) < level  # one less would not do
    held = sum(
        int(((low <= truth) & (truth <= high)).sum())
        for low, high in (np.moveaxis(run.conf_int(level=level), -1, 0) for run in runs)
    )
    assert scipy.stats.binomtest(held, 400, exact).pvalue > 1e-3
    assert scipy.stats.binomtest(held, 400, 1.0 - 2.0 * p ** (half / 2 + 1) / (1.0 + p)).pvalue < 1e-6


def test_a_margin_adds_counts_and_noise_and_the_best_table_answers() -> None:
    found = counted(epsilon=1.0)
    table = found.table("region", "smoker")
    margin = table.margin("smoker")
    np.testing.assert_array_equal(margin.counts, table.counts.sum(axis=0))
    np.testing.assert_array_equal(margin.noisy_counts, table.noisy_counts.sum(axis=0))
    assert margin.standard_error == pytest.approx(math.sqrt(3) * table.standard_error)
    np.testing.assert_array_equal(table.margin("smoker", "region").counts, table.counts.T)
    # two cells with two thirds of the budget, rather than two with one
    assert found.table("region").standard_error == pytest.approx(math.sqrt(2) * table.standard_error)
    np.testing.assert_array_equal(found.conf_int("smoker"), found.table("smoker", level=0.95).conf_int())
    frame = found.to_frame("smoker", level=0.9)
    assert list(frame.columns)[1:] == ["count", "noisy_count", "noise", "share", "lower", "upper"]
    assert frame["share"].sum() == pytest.approx(1.0)
    assert ((frame["lower"] <= frame["count"]) & (frame["count"] <= frame["upper"])).all()


@pytest.mark.parametrize(("budget", "neighbors"), CASES.values(), ids=CASES)
def test_the_forecast_is_the_noise_of_the_release(budget: dict[str, float], neighbors: str) -> None:
    tables: dict[str, Any] = dict(by=[["region", "smoker"], ["sex", "region"]], split=[2, 1])
    forecast = dpm.forecast_counts(SCHEMA, neighbors=neighbors, n_rows=600, **tables, **budget)
    made = counted(neighbors=neighbors, **budget)
    assert forecast.noise == tuple(table.noise for table in made.tables)
    assert forecast.to_dict()["tables"]["typical_count"] == [100.0, 100.0]
    unit = dpm.PrivacyUnit("person", 3)
    if neighbors == "add_remove":
        of_unit = dpm.forecast_counts(SCHEMA, privacy_unit=unit, **tables, **budget)
        assert of_unit.standard_errors[0] > 2.0 * forecast.standard_errors[0]


def test_the_command_makes_what_the_library_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    SCHEMA.save(tmp_path / "people.yaml")
    schema, output = ("--schema", str(tmp_path / "people.yaml")), tmp_path / "counts.json"
    budget = shlex.split("--epsilon 2 --neighbors replace_one --by smoker:region --by sex --split 3 --split 1")
    assert main(["forecast-counts", *schema, *budget, "--json"]) == 0
    forecast = json.loads(capsys.readouterr().out)
    assert main(["preflight", str(tmp_path / "people.parquet"), *schema, "--by", "smoker:region"]) == 0
    assert "sex" not in capsys.readouterr().out
    seed = ("--insecure-seed", "3", "--output", str(output))
    assert main(["release-counts", str(tmp_path / "people.parquet"), *schema, *budget, *seed]) == 0
    made = counted(
        by=[["smoker", "region"], ["sex"]], split=[3, 1], epsilon=2.0, neighbors="replace_one", insecure_seed=3
    )
    loaded = dpm.load(output)
    assert json.dumps(loaded.to_dict()) == json.dumps(made.to_dict())
    assert forecast["tables"]["noise"] == [table.standard_error for table in made.tables]
    capsys.readouterr()
    for arguments, part in (
        (("show",), "smoker  region"),
        (("show", "--json"), '"noise_deviation"'),
        (("describe", "--column", "region"), "north"),
        (("cross-table", "smoker", "region"), "smoker=true"),
        (("verify",), "ok        counts"),
    ):
        name, *rest = arguments
        assert main([name, str(output), *rest]) == 0, arguments
        assert part.replace('"noise_deviation"', '"standard_error"') in capsys.readouterr().out
    assert main(["pca", str(output)]) == 1
    assert "contingency tables" in capsys.readouterr().err


def test_preflight_checks_the_columns_of_the_tables_only() -> None:
    facts = dpm.preflight(people(), SCHEMA, by=["region", "sex"]).private_facts()
    assert set(facts["columns"]) == {"region", "sex"}
    array = np.column_stack([np.full(6, np.nan), [1, 2, 2, 1, 2, 9], [0, 1, 0, 1, 1, 0]])
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("code", [1, 2]), dpm.Boolean("flag"))
    assert set(dpm.preflight(array, schema, by=[["code"], ["flag"]]).private_facts()["columns"]) == {"code", "flag"}


def test_mistakes_are_refused_before_a_row_is_read() -> None:
    for level in (0.0, -0.5, 1.0, math.nan):
        with refused("must be", expected="a probability, above 0 and below 1", parameter="level"):
            CountNoise("laplace", 2.0).half_width(level)
    nowhere = "no-such-table.parquet"
    with refused("Bands of numbers must be made", name="age"):
        dpm.release_counts(nowhere, SCHEMA, by=["age"], epsilon=1.0)
    with refused("is not a column of the schema", close="region"):
        dpm.release_counts(nowhere, SCHEMA, by=["regions"], epsilon=1.0)
    for by, split, said in (
        ([], None, Said("by must be a list of columns, or a list of such lists")),
        (["sex", "sex"], None, Said("twice: ", column="sex")),
        ([["sex"], ["sex"]], None, Said("two tables have the same columns: one of them is enough, at")),
        (["sex"], [1, 1], Said("tables: give one for each", shares=2, tables=1)),
        (["sex"], [0.0], Said("split must be positive numbers, one for each table")),
        (3, None, Said("by must be a list of columns, or a list of such lists")),
    ):
        with refused(said, (ValueError, TypeError)):
            dpm.release_counts(nowhere, SCHEMA, by=by, split=split, epsilon=1.0)  # type: ignore[arg-type]
    wide = dpm.Schema(dpm.Categorical("a", range(2000)), dpm.Categorical("b", range(2000)))
    with refused("are the most: name fewer columns"):
        dpm.release_counts(nowhere, wide, by=["a", "b"], epsilon=1.0)
    found = counted(epsilon=1.0)
    with refused("name the columns of one table"):
        _ = found.counts
    with refused("no table of this release has the columns", by=("'smoker'", "'sex'")):
        found.table("smoker", "sex")
    with refused("a cross table is of two columns, and both are", by="sex"):
        found.cross_table("sex", "sex")


def test_a_cross_table_and_the_table_state_one_upper_end_of_a_cell() -> None:
    noisy = np.array([[50.0, -1.0], [0.0, 1.0], [40.0, 2.0]])
    table = CountTable.of(("level", "flag"), (("a", "b", "c"), (False, True)), noisy, CountNoise("laplace", 1.0))
    below = table.cross_table("level", "flag").below
    upper = table.conf_int()[..., 1]
    assert (below > 0).tolist() == [[False, True], [True, True], [False, True]]
    assert (below[below > 0] == upper[below > 0] + 1).all()


# ---------------------------------------------------------------------------------------------------------------------
# the test of independence


@pytest.mark.slow
def test_the_test_of_independence_keeps_its_level_and_pearsons_does_not() -> None:
    """300 tables of 400 independent rows at ε = 0.2: about 5 % are called dependent, by Pearson's χ² many more."""
    rng = np.random.default_rng(0)
    schema_levels = ((False, True), ("a", "b", "c"))
    scale = 5.0
    rejected = pearson = 0
    for _ in range(400):
        truth = rng.multinomial(400, np.outer([0.7, 0.3], [0.5, 0.3, 0.2]).ravel()).reshape(2, 3)
        noisy = truth + np.rint(rng.laplace(0.0, scale, truth.shape))
        table = CountTable.of(("flag", "level"), schema_levels, noisy, CountNoise("laplace", scale))
        rejected += table.cross_table("flag", "level").p_value < 0.05
        pearson += scipy.stats.chi2_contingency(np.maximum(noisy, 0.5), correction=False).pvalue < 0.05
    assert scipy.stats.binomtest(rejected, 400, 0.05).pvalue > 1e-3
    assert scipy.stats.binomtest(pearson, 400, 0.05).pvalue < 1e-6
