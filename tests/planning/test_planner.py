"""The planner's page: every block has the numbers of its own forecast, without a script."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.reporting.planner import planner_page
from support.read_page import Page
from support.said import refused

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


def block(source: str, title: str) -> str:
    """The section of the page under that heading, as text."""
    [section] = [part for part in re.findall(r"(?s)<section.*?</section>", source) if f"<h3>{title}</h3>" in part]
    return " ".join(Page(f"<!DOCTYPE html><title>x</title><body>{section}").text.split())


@pytest.mark.parametrize(
    ("schema", "budget", "neighbors", "symbol"),
    [
        (CODEBOOK, {"epsilon": 1.0}, "add_remove", "ε = {}"),
        (TYPICAL, {"rho": 0.5}, "replace_one", "ρ = {}"),
        (dpm.Schema.unit_ball(6), {"epsilon": 1.0, "delta": 1e-6}, "add_remove", "ε = {}, δ = 1e-06"),
    ],
)
def test_every_block_has_the_numbers_of_its_own_forecast(
    schema: dpm.Schema, budget: dict[str, float], neighbors: str, symbol: str
) -> None:
    found = dpm.forecast(schema, n_rows=4000, neighbors=neighbors, **budget)
    source = planner_page(found)
    name = "rho" if "rho" in budget else "epsilon"
    for times, n_rows in ((1.0, 4000), (0.25, 4000), (4.0, 1000), (2.0, 16_000)):
        again = dpm.forecast(schema, n_rows=n_rows, neighbors=neighbors, **(budget | {name: budget[name] * times}))
        noise = again.noise_of("auto")
        text = block(source, f"{symbol.format(f'{budget[name] * times:g}')}, {n_rows:,} rows")
        for row in noise.table():
            assert " ".join(row) in text
        for said in (noise.correlation_text, noise.coefficient_text):
            assert f"± {said} on a" in text or f"{said} on a" in text
        assert f"By {noise.release.mechanism}: {noise.readable_text}" in text


def test_a_budget_without_a_release_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dpm.forecast(TYPICAL, n_rows=900, epsilon=1.0)
    original = type(found.setting).with_budget

    def refused(plan: Any, size: float) -> Any:
        made = original(plan, size)
        return replace(made, mechanism=dpm.mechanisms.InverseGaussian()) if size < 1.0 else made

    monkeypatch.setattr(type(found.setting), "with_budget", refused)
    assert "No release is possible with this budget." in block(planner_page(found), "ε = 0.25, 900 rows")


def test_the_page_has_no_script_and_no_name_does_anything() -> None:
    name = "</script><script>alert(1)</script>&\u202e"
    schema = dpm.Schema(dpm.Numeric(name, 0, 10), dpm.Numeric("b", 0, 1), dpm.Boolean("c"))
    found = dpm.forecast(schema, n_rows=5000, epsilon=1.0)
    source = planner_page(found)
    page = Page(source)
    assert page.faults() == []
    assert "script" not in page.tags
    assert found.setting is not None
    assert all(str(change).replace("\u202e", "\\u202e") in page.text for change in found.changes)
    assert "\u202e" not in source
    assert source.count(" checked>") == 2
    assert len(source) < 80_000


@pytest.mark.slow
def test_the_page_of_many_features_is_of_moderate_size() -> None:
    schema = dpm.Schema(*(dpm.Numeric(f"a column of numbers, {place}", 0, 100) for place in range(120)))
    found = dpm.forecast(schema, n_rows=4000, rho=0.5)
    source = planner_page(found)
    assert len(source) < 400_000
    assert source.count("<section") == 9
    text = block(source, "ρ = 0.5, 4,000 rows")
    assert all(" ".join(row) in text for row in found.noise_of("auto").table())


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
    assert "no planner page" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "none.html").exists()


def test_a_forecast_has_no_regressions(tmp_path: Path) -> None:
    with refused("a forecast has no data: regressions, groups and summary are"):
        dpm.report(dpm.forecast(TYPICAL, n_rows=900, epsilon=1.0), tmp_path / "x.html", regressions=["age ~ b"])
