"""When each mechanism wins, by the forecast alone: `python -m benchmarks.practice.choose_a_mechanism` (a minute; reads no data).

Writes the picture and the tables of docs/evidence/every-mechanism.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part

PAGE = EVIDENCE / "every-mechanism.md"
FEATURES = (3, 10, 50)
ROWS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
BUDGETS: Mapping[str, dict[str, float]] = {
    "pure, ε = 1": {"epsilon": 1.0},
    "ε = 1, δ = 1e-9": {"epsilon": 1.0, "delta": 1e-9},
}
NEEDS_NO_BOUNDS = ("coinpress", "private-preconditioning", "log-scale-histogram")
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "standardized": ("#0072B2", "o", "-"),
    "matrix-laplace": ("#D55E00", "s", "-"),
    "gaussian": ("#009E73", "D", "-"),
    "isotropic": ("#E69F00", "v", "-"),
    "laplace": ("#000000", "^", "-"),
    "iterative-eigenvectors": ("#CC79A7", "P", "--"),
    "kapralov-talwar": ("#8c6d31", "X", "--"),
    "additive-wishart": ("#56B4E9", "*", ":"),
    "johnson-lindenstrauss": ("#7f7f7f", "<", ":"),
    "inverse-wishart": ("#b15928", ">", ":"),
}
"""Color, marker and line of each mechanism, the same in every panel."""

Errors = dict[str, list[float]]
"""Errors by mechanism, one for each point."""


def errors_by_rows(n_features: int, budget: dict[str, float]) -> Errors:
    """Expected error of correlations, by mechanism, at every number of rows; NaN where it cannot run."""
    found: Errors = {}
    schema = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 1) for place in range(n_features)))
    for place, n_rows in enumerate(ROWS):
        for row in dpm.forecast(schema, n_rows=n_rows, **budget).rows:
            if row.mechanism != "auto" and row.mechanism not in NEEDS_NO_BOUNDS and row.correlation_error is not None:
                found.setdefault(row.mechanism, [float("nan")] * len(ROWS))[place] = row.correlation_error
    return found


def style(name: str) -> dict[str, str]:
    color, marker, line = LOOKS[name]
    return {"color": color, "marker": marker, "linestyle": line}


def draw_by_rows(found: Mapping[tuple[str, int], Errors], path: Path) -> None:
    """A panel for each budget and number of features: errors over rows, as multiples of the least."""
    figure, panels = plt.subplots(
        len(BUDGETS), len(FEATURES), figsize=(11, 6.5), sharex=True, sharey=True, layout="constrained"
    )
    for line, budget in enumerate(BUDGETS):
        for column, n_features in enumerate(FEATURES):
            panel = panels[line][column]
            errors = found[budget, n_features]
            least = np.nanmin(list(errors.values()), axis=0)
            for name, values in errors.items():
                panel.loglog(ROWS, np.array(values) / least, markersize=5, linewidth=1.4, **style(name))
            panel.fill_between(ROWS, 0.8, 1e4, where=least > 1, color="0.88", step="mid")
            panel.set_ylim(0.9, 100)
            panel.set_title(f"{budget}, {n_features} columns", fontsize=10)
            panel.grid(color="0.92")
        panels[line][0].set_ylabel("error / least error")
    for panel in panels[-1]:
        panel.set_xlabel("rows")
    names = [name for name in LOOKS if any(name in errors for errors in found.values())]
    handles = [plt.Line2D([], [], linewidth=1.4, label=name, **style(name)) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def table_of_winners(found: Mapping[tuple[str, int], Errors]) -> list[str]:
    """Per budget and number of features: who has the least error at few and at many rows, and how far the others are."""
    lines = ["| budget | columns | rows | least error | next | then |", "| --- | ---: | ---: | --- | --- | --- |"]
    for (budget, n_features), errors in found.items():
        for place in (1, 3, 5):
            ranked = sorted((values[place], name) for name, values in errors.items() if values[place] == values[place])
            cells = [f"`{ranked[0][1]}` {ranked[0][0]:.2g}"]
            cells += [f"`{name}` ×{value / ranked[0][0]:.3g}" for value, name in ranked[1:3]]
            lines.append(f"| {budget} | {n_features} | {ROWS[place]:,} | {' | '.join(cells)} |")
    return lines


QUESTIONS = dpm.Schema(
    *(dpm.Numeric(f"number {index}", 0, 1) for index in range(1, 5)),
    dpm.Categorical("region", ["north", "south", "east", "west"]),
    dpm.Boolean("member"),
)
"""Six columns, of which questions are asked."""
SETS_OF_QUESTIONS: dict[str, dict[str, Any]] = {
    "all means": {"means": True},
    "one table, region by member": {"tables": [["region", "member"]]},
    "one regression on two columns": {"regressions": [["number 1", "number 2", "member"]]},
    "means and a table": {"means": True, "tables": [["region", "member"]]},
    "means, a table and three regressions": {
        "means": True,
        "tables": [["region", "member"]],
        "regressions": [["number 1", "number 2", "member"], ["number 2", "number 3"], ["number 3", "member"]],
    },
}


def table_of_questions() -> list[str]:
    """One line for each question of each set and each budget: the errors of the ways, and the best."""
    lines = [*head("asked | question | budget | one release | own release | its share of the budget | best", "lllrrrl")]
    for budget, options in (("ε = 1", {"epsilon": 1.0}), ("ρ = 0.1", {"rho": 0.1})):
        forecast = dpm.forecast(QUESTIONS, n_rows=50_000, **options)
        for asked, questions in SETS_OF_QUESTIONS.items():
            for way in forecast.ways(**questions).ways:
                errors = " | ".join(f"{error:.3g}" for error in (way.one_release, way.own_release, way.own_share))
                lines.append(f"| {asked} | {way.question}, in {way.unit} | {budget} | {errors} | `{way.best}` |")
    return lines


if __name__ == "__main__":
    by_rows = {(name, d): errors_by_rows(d, budget) for name, budget in BUDGETS.items() for d in FEATURES}
    draw_by_rows(by_rows, EVIDENCE / "images" / "mechanisms-by-rows.png")
    write_part(PAGE, "winners", table_of_winners(by_rows))
    write_part(PAGE, "questions", table_of_questions())
