"""The planner's page: whatever is ticked and slid, it has the numbers of a forecast for a schema of these columns alone."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.planning.imagined_release import NoiseInUnits, ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.reporting.forecast_page import _rows_of_grid, planner_grid
from dpmoments.reporting.planner import _planner_rows, _planner_words, planner_page
from support.read_page import Page

SCRIPT = Path(dpm.__file__).parent / "reporting" / "templates" / "planner.js"
CODEBOOK = dpm.Schema(
    *(dpm.Numeric(f"x{place}", 0, 100) for place in range(5)), dpm.Boolean("smoker"), dpm.Categorical("ward", list("abc")),
    dpm.Categorical("one", ["z"]), dpm.Power("x0", 2),
)  # fmt: skip
TYPICAL = dpm.Schema(
    dpm.Numeric("age", 0, 100, typical=(20, 70)),
    dpm.Numeric("b", 0, 10, missing="drop"),
    dpm.Boolean("c"),
    dpm.Numeric("d", 0, 1, typical=(0.0, 0.1)),
)
SHORT_ROWS = dpm.Schema(*CODEBOOK.columns[:5], dpm.Boolean("smoker"), row_norm=1.2)
NUMBERS = dpm.Schema(*CODEBOOK.columns[:6])
GUESSES = {"x0": 18.0, "x1": 3.0, "x2": 0.5, "age": 12.0}
CASES = [
    (CODEBOOK, {"epsilon": 1.0}, "add_remove"),
    (SHORT_ROWS, {"epsilon": 1.0, "delta": 1e-6}, "replace_one"),
    (TYPICAL, {"rho": 0.5}, "replace_one"),
    (dpm.Schema.unit_ball(6), {"epsilon": 1.0}, "add_remove"),
]


def guesses_for(schema: dpm.Schema) -> dict[str, float]:
    return {} if schema.is_coordinates else {name: sd for name, sd in GUESSES.items() if name in schema.feature_names}


def setting(schema: dpm.Schema, n_rows: int, neighbors: str, **budget: float) -> ReleasePlan:
    """What :func:`dpmoments.forecast` makes its numbers of, for the mechanism that a release takes unless told."""
    typical = TypicalTable.of(schema, typical_sd=guesses_for(schema))
    return ReleasePlan(typical, n_rows, PrivacyBudget.of(**budget), Neighbors.of(neighbors), make_mechanism("auto"))


class Script:
    """The page's script, run without a page."""

    def __init__(self, grid: dict[str, Any]) -> None:
        racer = pytest.importorskip(
            "py_mini_racer", reason="the page's script is run by mini-racer: pip install mini-racer"
        )
        self._context = racer.MiniRacer()
        self._context.eval(SCRIPT.read_text(encoding="utf-8"))
        self._context.eval(f"const grid = {json.dumps(grid)}")

    def plan(self, ticked: list[bool], budget: int, rows: int) -> dict[str, Any]:
        asked = f"const found = planned(grid, {json.dumps(ticked)}, {budget}, {rows});"
        numbers = "(key, value) => typeof value === 'number' && !Number.isFinite(value) ? String(value) : value"
        said = f"JSON.stringify({{found, rows: rowsInWords(found), words: planInWords(found)}}, {numbers})"
        found: dict[str, Any] = json.loads(self._context.eval(f"(() => {{ {asked} return {said}; }})()"))
        return found


def close(found: list[Any], known: Any) -> None:
    np.testing.assert_allclose([float(value) for value in found], np.asarray(known, dtype=float), rtol=1e-8)


def alike(shown: str, known: str) -> bool:
    """The same text, or the same number where its ten digits are on the edge between 1.00 and 1.0."""
    return shown == known or bool({shown, known} <= {"1.0", "1.00"})


def same_as_forecast(plan: dict[str, Any], noise: NoiseInUnits, setting: ReleasePlan) -> None:
    found, features = plan["found"], plan["found"]["features"]
    close([feature["mean"] for feature in features], noise.mean)
    close([feature["sd"] for feature in features], noise.standard_deviation)
    close([found["correlation"], found["coefficient"]], [noise.typical_correlation(), noise.coefficient])
    assert [feature["meanIsNoise"] for feature in features] == noise.mean_is_noise.tolist()
    assert [feature["sdIsNoise"] for feature in features] == noise.standard_deviation_is_noise.tolist()
    assert [feature["correlationIsNoise"] for feature in features] == noise.correlation_is_noise.tolist()
    assert found["correlationIsNoise"] == noise.typical_correlation_is_noise
    assert found["coefficientIsNoise"] == noise.coefficient_is_noise
    for shown, known in zip(plan["rows"], _planner_rows(noise), strict=True):
        assert len(shown) == len(known)
        assert all(map(alike, shown, known)), (shown, known)
    assert plan["words"] == _planner_words(setting, noise)


def some_columns(schema: dpm.Schema, rng: np.random.Generator) -> list[bool]:
    """Any but none, without what is computed from a column that is not among them."""
    while True:
        ticked = dict(
            zip(
                [column.name for column in schema.columns],
                (rng.random(len(schema.columns)) < 0.7).tolist(),
                strict=True,
            )
        )
        for column in schema.derived_columns:
            ticked[column.name] &= all(ticked[factor.name] for factor in column.factors)
        if any(ticked.values()):
            return list(ticked.values())


def compare(
    script: Script, grid: dict[str, Any], schema: dpm.Schema, budget: dict[str, float], neighbors: str, trials: int
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(trials):
        ticked = some_columns(schema, rng)
        at, rows = int(rng.integers(len(grid["budgets"]))), int(rng.integers(len(grid["rows"])))
        chosen = [column for column, kept in zip(schema.columns, ticked, strict=True) if kept]
        own_norm = schema.row_norm is not None and grid["row_norm"] is not None
        less = dpm.Schema(*chosen, row_norm=schema.row_norm if own_norm else "default")
        spent = {**budget, ("rho" if "rho" in budget else "epsilon"): grid["budgets"][at]}
        again = setting(less, grid["rows"][rows], neighbors, **spent)
        assert again.noise is not None
        same_as_forecast(script.plan(ticked, at, rows), again.noise, again)


@pytest.mark.parametrize(("schema", "budget", "neighbors"), CASES)
def test_any_columns_at_any_stop_have_the_numbers_of_their_own_forecast(
    schema: dpm.Schema, budget: dict[str, float], neighbors: str
) -> None:
    grid = planner_grid(setting(schema, 4000, neighbors, **budget))
    assert len(json.dumps(grid)) < 500_000
    compare(Script(grid), grid, schema, budget, neighbors, 4)


def test_one_of_them_is_what_the_public_function_says() -> None:
    found = setting(CODEBOOK, 4000, "add_remove", epsilon=1.0)
    grid, less = planner_grid(found), dpm.Schema(*CODEBOOK.columns[:6])
    at, rows = grid["asked"]["budget"] + 2, grid["asked"]["rows"] - 3
    ticked = [column in less.columns for column in CODEBOOK.columns]
    again = dpm.forecast(less, n_rows=grid["rows"][rows], epsilon=grid["budgets"][at], typical_sd=guesses_for(less))
    assert again.setting is not None
    same_as_forecast(
        Script(grid).plan(ticked, at, rows),
        again.noise_of("auto"),
        replace(again.setting, mechanism=make_mechanism("auto")),
    )


def test_a_grid_that_is_off_is_found() -> None:
    whole = json.dumps(planner_grid(setting(NUMBERS, 4000, "add_remove", epsilon=1.0)))
    for constant in ("beyond_share", "known_variance", "excess_for_noise"):
        grid = json.loads(whole)
        grid["constants"][constant] *= 3.0
        with pytest.raises(AssertionError):
            compare(Script(grid), grid, NUMBERS, {"epsilon": 1.0}, "add_remove", 25)


def test_the_sliders_stop_at_what_was_asked_for() -> None:
    for n_rows in (1, 7, 3117, 10**9):
        rows = _rows_of_grid(n_rows)
        assert n_rows in rows
        assert rows == sorted(set(rows))
        assert rows[0] >= 1
    grid = planner_grid(setting(TYPICAL, 3117, "add_remove", epsilon=0.37))
    assert grid["budgets"][grid["asked"]["budget"]] == 0.37
    assert grid["rows"][grid["asked"]["rows"]] == 3117


def test_the_page_reads_without_a_script_and_no_name_does_anything() -> None:
    name = "</script><script>alert(1)</script>&\u202e"
    schema = dpm.Schema(dpm.Numeric(name, 0, 10), dpm.Numeric("b", 0, 1), dpm.Boolean("c"))
    found = dpm.forecast(schema, n_rows=5000, epsilon=1.0)
    source = planner_page(found)
    page = Page(source)
    assert page.faults() == []
    assert page.tags["script"] == 2
    for row in _planner_rows(found.noise_of("auto")):
        assert all(" ".join(cell.split()) in page.text for cell in row)
    assert found.setting is not None
    assert all(str(change).replace("\u202e", "\\u202e") in page.text for change in found.changes)
    assert "\u202e" not in source
    (grid,) = re.findall(r'<script type="application/json" id="grid">(.*?)</script>', source)
    assert "\u202e" not in json.dumps(json.loads(grid), ensure_ascii=False)  # the script writes these names
    assert len(source) < 150_000


@pytest.mark.parametrize(
    ("n_features", "longest_plain", "most"),
    [(20, 1000, 150_000), pytest.param(350, None, 500_000, marks=pytest.mark.slow)],
)
def test_the_page_of_many_features_is_of_moderate_size_and_has_the_same_numbers(
    n_features: int, longest_plain: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if longest_plain is not None:
        monkeypatch.setattr(sys.modules[planner_page.__module__], "_MAX_PLAIN_LENGTH", longest_plain)
    schema = dpm.Schema(*(dpm.Numeric(f"a column of numbers, {place}", 0, 100) for place in range(n_features)))
    found = dpm.forecast(schema, n_rows=4000, rho=0.5)
    source = planner_page(found)
    assert len(source) < most
    (packed,) = re.findall(r'<script type="text/plain" id="grid">([A-Za-z0-9+/=]+)</script>', source)
    assert found.setting is not None
    grid = planner_grid(replace(found.setting, mechanism=make_mechanism("auto")))
    assert json.loads(zlib.decompress(base64.b64decode(packed))) == json.loads(json.dumps(grid))


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, path = tmp_path / "people.yaml", tmp_path / "plan.html"
    TYPICAL.save(schema)
    asked = ["forecast", "--schema", str(schema), "--n-rows", "900", "--epsilon", "1", "--neighbors", "add_remove"]
    assert main([*asked, "--html", str(path)]) == 0
    assert "Plan a private release" in Page(path.read_text(encoding="utf-8")).text
    assert main([*asked, "--html", str(path)]) == 1
    assert main([*asked, "--html", str(path), "--overwrite"]) == 0
    assert main([*asked, "--html", str(path), "--json"]) == 2
    assert main([*asked, "--overwrite"]) == 2
    assert main([*asked, "--no-mean", "--html", str(tmp_path / "none.html")]) == 1
    assert "there is no page to plan with" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "none.html").exists()
    assert yaml.safe_load(schema.read_text(encoding="utf-8"))


def test_a_forecast_has_no_regressions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a forecast has no data"):
        dpm.report(dpm.forecast(TYPICAL, n_rows=900, epsilon=1.0), tmp_path / "x.html", regressions=["age ~ b"])
