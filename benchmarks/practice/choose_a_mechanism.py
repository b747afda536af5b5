"""When each mechanism wins, by the forecast alone: `python -m benchmarks.practice.choose_a_mechanism` (a minute; reads no data).

Writes the pictures and the table of docs/evidence/every-mechanism.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part

PAGE = EVIDENCE / "every-mechanism.md"
IMAGES = EVIDENCE / "images"
FEATURES = (3, 10, 50)
ROWS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
BUDGETS: Mapping[str, dict[str, float]] = {
    "pure, ε = 1": {"epsilon": 1.0},
    "ε = 1, δ = 1e-9": {"epsilon": 1.0, "delta": 1e-9},
}
SPREADS = (0.4, 0.29, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Standard deviations as shares of the range; 0.29 is a uniform column's, which fills its bounds."""
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


def schema_of(n_features: int) -> dpm.Schema:
    return dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 1) for place in range(n_features)))


def errors_by_rows(n_features: int, budget: dict[str, float]) -> Errors:
    """Expected error of correlations, by mechanism, at every number of rows; NaN where it cannot run."""
    found: Errors = {}
    for place, n_rows in enumerate(ROWS):
        for row in dpm.forecast(schema_of(n_features), n_rows=n_rows, **budget).rows:
            if row.mechanism != "auto" and row.mechanism not in NEEDS_NO_BOUNDS and row.correlation_error is not None:
                found.setdefault(row.mechanism, [float("nan")] * len(ROWS))[place] = row.correlation_error
    return found


def noise_by_spread(n_features: int, budget: dict[str, float], mechanisms: Sequence[str]) -> Errors:
    """Noise on a typical correlation at 20,000 rows, by how much of the bounds the rows fill."""
    found: Errors = {name: [] for name in mechanisms}
    schema = schema_of(n_features)
    for spread in SPREADS:
        table = dpm.forecast(schema, n_rows=20_000, typical_sd=dict.fromkeys(schema.feature_names, spread), **budget)
        for row in table.rows:
            if row.mechanism in found:
                found[row.mechanism].append(float("nan") if row.correlation_error is None else row.correlation_error)
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


def draw_by_spread(found: Mapping[str, Errors], path: Path) -> None:
    """A panel for each budget: noise on a correlation over the share of the bounds that rows fill."""
    figure, panels = plt.subplots(1, len(found), figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, (budget, errors) in zip(panels, found.items(), strict=True):
        for name, noise in errors.items():
            panel.loglog(SPREADS, noise, label=name, **style(name))
        panel.axhline(1.0, color="0.6", linewidth=0.8, linestyle="--")
        panel.invert_xaxis()
        panel.set_title(f"{budget}, 10 columns, 20,000 rows", fontsize=10)
        panel.set_xlabel("standard deviation / range (looser bounds →)")
        panel.grid(color="0.92")
        panel.legend(frameon=False)
    panels[0].set_ylabel("noise on a correlation")
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
    lines = [
        "| asked | question | budget | one release | own release | its share of the budget | best |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    for budget, options in (("ε = 1", {"epsilon": 1.0}), ("ρ = 0.1", {"rho": 0.1})):
        forecast = dpm.forecast(QUESTIONS, n_rows=50_000, **options)
        for asked, questions in SETS_OF_QUESTIONS.items():
            for way in forecast.ways(**questions).ways:
                errors = " | ".join(f"{error:.3g}" for error in (way.one_release, way.own_release, way.own_share))
                lines.append(f"| {asked} | {way.question}, in {way.unit} | {budget} | {errors} | `{way.best}` |")
    return lines


def main() -> None:
    by_rows = {(name, d): errors_by_rows(d, budget) for name, budget in BUDGETS.items() for d in FEATURES}
    draw_by_rows(by_rows, IMAGES / "mechanisms-by-rows.png")
    write_part(PAGE, "winners", table_of_winners(by_rows))
    write_part(PAGE, "questions", table_of_questions())
    additive = {"pure, ε = 1": "matrix-laplace", "ε = 1, δ = 1e-9": "gaussian"}
    by_spread = {
        name: noise_by_spread(10, budget, ("standardized", additive[name])) for name, budget in BUDGETS.items()
    }
    draw_by_spread(by_spread, IMAGES / "mechanisms-by-spread.png")
    lines = [
        "| budget | sd / range | `standardized` | noise for the longest row | ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, errors in by_spread.items():
        ball, public = errors["standardized"], errors[additive[name]]
        lines += [
            f"| {name} | {spread:g} | ± {found:.2g} | `{additive[name]}` ± {against:.2g} | {found / against:.2f} |"
            for spread, found, against in zip(SPREADS, ball, public, strict=True)
        ]
    write_part(PAGE, "spreads", lines)


if __name__ == "__main__":
    main()
