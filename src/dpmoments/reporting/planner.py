"""The planner page: precomputed forecasts for a few budgets and numbers of rows."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

from dpmoments.planning.forecast_noise import ForecastNoise, ReleasePlan
from dpmoments.planning.forecast_table import Forecast
from dpmoments.privacy.budget import MAX_LOSS, BudgetKind
from dpmoments.reporting.page import PageTable, filled_in

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets and row counts of the page, relative to those of the forecast."""
_FEW_FACTORS = (0.5, 1.0, 2.0)
_MANY_FEATURES = 40
"""Number of features above which the page has fewer forecasts, to limit its size."""
_MAX_TABLES = 150
"""Number of features above which only the requested forecast has a table."""


def planner_page(forecast: Forecast) -> str:
    # It shows `dpmoments.forecast` for the budget and row count of the forecast and for smaller and larger ones. A
    # reader chooses among them; the page has no script, no network access and no data.
    if forecast.setting is None:
        raise forecast.without_units.preceded_by(
            "no planner page: the forecast has no numbers in original units, since "
        )
    plan = forecast.setting
    factors = _FACTORS if len(plan.typical.columns) <= _MANY_FEATURES else _FEW_FACTORS
    budgets = [size for size in (plan.size_of_budget * factor for factor in factors) if size <= MAX_LOSS]
    rows = sorted({max(1, round(plan.n_rows * factor)) for factor in factors})
    blocks = []
    for (budget, size), (row, n_rows) in product(enumerate(budgets), enumerate(rows)):
        block = replace(plan.with_budget(size), n_rows=n_rows)
        noise, table = block.known_noise, None
        as_asked = n_rows == forecast.n_rows and block.request.budget == forecast.budget
        if noise is not None and (len(plan.typical.columns) <= _MAX_TABLES or as_asked):
            table = PageTable.of("What describe() would show, if the table is as assumed", noise.table())
        title = f"{_budget_text(plan, size)}, {n_rows:,} {forecast.rows_text}"
        blocks.append({"budget": budget, "rows": row, "title": title, "words": _words(noise), "table": table})
    unit = "one row" if forecast.privacy_unit is None else forecast.privacy_unit.description
    return filled_in(
        "planner.html",
        title="Plan a private release",
        facts=[
            ("Asked for", f"{forecast.n_rows:,} {forecast.rows_text}, {forecast.budget}, {forecast.neighbors}"),
            ("Protected", unit),
            ("Mechanism", forecast.mechanism_text),
        ],
        choices=[
            ("budget", "Budget", [_budget_text(plan, size) for size in budgets], budgets.index(plan.size_of_budget)),
            ("rows", "Rows", [f"{n_rows:,}" for n_rows in rows], rows.index(plan.n_rows)),
        ],
        blocks=blocks,
        assumed=plan.typical.words,
        helpful=[str(change) for change in forecast.changes],
        mechanisms=PageTable.of("Every mechanism, as requested", forecast.mechanisms.table()),
        remarks=forecast.mechanisms.remarks,
    )


def budgets_table(forecast: Forecast) -> PageTable | None:
    """Return what smaller and larger budgets resolve; None without numbers in original units."""
    if forecast.setting is None:
        return None
    plan = forecast.setting
    sizes = [size for factor in _FACTORS if (size := plan.size_of_budget * factor) <= MAX_LOSS]
    rows = [(_budget_text(plan, size), _words(plan.with_budget(size).known_noise)) for size in sizes]
    return PageTable.of(f"Noise of {forecast.mechanism}, by budget", [("budget", "noise"), *rows])


def _budget_text(plan: ReleasePlan, size: float) -> str:
    delta = f", δ = {plan.request.budget.delta:g}" if plan.request.budget.kind is BudgetKind.APPROXIMATE else ""
    return f"{plan.symbol} = {size:.4g}{delta}"


def _words(noise: ForecastNoise | None) -> str:
    if noise is None:
        return "No release is possible with this budget."
    words = [noise.readable_text]
    if not math.isnan(noise.typical_correlation()):
        words.append(f"± {noise.correlation_text} on a typical correlation")
        if noise.regression is not None:
            words.append(
                f"± {noise.coefficient_text} on a standardized coefficient of {noise.regression.target} on the others"
            )
    return f"By {noise.release.mechanism}: {', '.join(words)}.".replace("± noise", "noise")
