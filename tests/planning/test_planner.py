"""The planner's page: every block has the numbers of its own forecast, without a script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.reporting.report import planner_page
from support.read_page import Page
from support.said import refused

pytestmark = pytest.mark.long

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


def tables(source: str) -> dict[str, list[str]]:
    """The rows of every table of the page as text, by its caption."""
    found = {}
    for table in re.findall(r"(?s)<table>.*?</table>", source):
        rows = re.findall(r"(?s)<caption>.*?</caption>|<tr.*?</tr>", table)
        caption, _, *lines = [" ".join(Page(f"<!DOCTYPE html><title></title>{row}").text.split()) for row in rows]
        found.setdefault(caption, []).extend(lines)
    return found


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_forecast_and_of_other_budgets() -> None:
    found = dpm.forecast(CODEBOOK, n_rows=4000, epsilon=1.0)
    source = planner_page(found)
    text, rows = Page(source).text, tables(source)
    assert f"{found.headline}." in text
    assert found.clear in text
    described = rows["What describe() would show if the table is as assumed, in original units"]
    assert all(" ".join(row) in described for row in [*found.table()[1:], *found.noise.table_of_columns()[1:]])
    of_budgets = rows["The smallest correlation of clear sign, by budget"]
    assert len(of_budgets) == 6
    for row, times in zip(of_budgets, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), strict=True):
        again = dpm.forecast(CODEBOOK, n_rows=4000, epsilon=times)
        sizes = again.noise.smallest_between
        assert row == " ".join(
            [again.setting.budget_text, *(f"{size:.2g}".replace("inf", "none") for size in sizes.values())]
        )


def test_a_column_of_levels_is_one_line_of_its_noisiest_level() -> None:
    noise = dpm.forecast(
        CODEBOOK, n_rows=4000, epsilon=1.0, typical_mean={"ward=a": 0.6, "ward=b": 0.3, "ward=c": 0.1}
    ).noise
    lines = {row[0]: row for row in noise.table()}
    folded = {row[0]: row for row in noise.table_of_columns()}
    levels = [index for index, name in enumerate(CODEBOOK.feature_names) if name.startswith("ward=")]
    noisiest = CODEBOOK.feature_names[max(levels, key=lambda index: noise.mean[index])]
    assert [*folded] == ["feature", "x0", "x1", "x2", "x3", "x4", "smoker", "ward (3 levels)", "one=z", "x0^2"]
    of = lines[noisiest]
    assert folded["ward (3 levels)"][1:] == (*of[1:3], *of[5:])
    assert all(folded[name][1:] == (*lines[name][1:3], *lines[name][5:]) for name in ("x0", "smoker", "x0^2"))


@pytest.mark.slow
def test_a_hopeless_forecast_says_what_it_would_take() -> None:
    found = dpm.forecast(TYPICAL, n_rows=60, epsilon=0.01)
    assert not found.setting.is_readable
    text = Page(planner_page(found)).text
    assert "nothing can be read" in text
    (budget, rows) = re.findall(r"It would take about ε = ([\d.]+) or ([\d,]+) rows\.", text)[0]
    for factor, readable in ((1.0, True), (0.5, False)):
        of_budget = dpm.forecast(TYPICAL, n_rows=60, epsilon=float(budget) * factor)
        of_rows = dpm.forecast(TYPICAL, n_rows=round(int(rows.replace(",", "")) * factor), epsilon=0.01)
        assert of_budget.setting.is_readable == of_rows.setting.is_readable == readable
    assert "<svg" not in planner_page(found)
    assert "<svg" in planner_page(dpm.forecast(TYPICAL, n_rows=6000, epsilon=1.0))


@pytest.mark.slow
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
    assert len(source) < 80_000


@pytest.mark.slow
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
    with refused("a forecast has no data: regressions, groups, summary, title and headline are"):
        dpm.report(dpm.forecast(TYPICAL, n_rows=900, epsilon=1.0), tmp_path / "x.html", regressions=["age ~ b"])
