"""The planner's page: a budget and a number of rows to slide, columns to tick, and what would be learnt and what noise."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from dpmoments.foundation.errors import visible
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.planning.forecast_table import Forecast
from dpmoments.planning.imagined_release import MORE, NOISE, NoiseInUnits, ReleasePlan, digits
from dpmoments.privacy.budget import BudgetKind
from dpmoments.reporting.forecast_page import planner_grid
from dpmoments.reporting.page import PageTable, filled_in

_MAX_PLAIN_LENGTH = 100_000
"""Characters: a longer grid is deflated, losing nothing; every browser since 2023 inflates it."""
_HEAD = ("feature", "typical sd", "± mean or share", "± sd", "of the sd", "± correlations", "learnt")


def planner_page(forecast: Forecast) -> str:
    """The page of a forecast, as text.

    Its numbers are those of :func:`dpmoments.forecast` for the columns that are ticked, by the mechanism that a release takes
    unless told. They were worked out beforehand for every budget and number of rows that the sliders stop at
    (:func:`dpmoments.reporting.forecast_page.planner_grid`); the page itself has no network, no library and no data. Without a
    script it shows the setting that was asked for.

    Raises
    ------
    ValueError
        If nothing is known beforehand in the table's units.
    """
    if forecast.setting is None or forecast.noise is None or forecast.asked_of is None:
        raise ValueError(f"there is no page to plan with: {forecast.without_units}")
    setting = replace(forecast.setting, mechanism=make_mechanism(forecast.asked_of))
    noise = forecast.noise_of(forecast.asked_of)
    zcdp = setting.budget.kind is BudgetKind.ZCDP
    unit = "one row" if forecast.privacy_unit is None else forecast.privacy_unit.in_words
    return filled_in(
        "planner.html",
        title="Plan a private release",
        facts=[
            ("Asked for", f"{forecast.n_rows:,} {forecast.rows_text}, {forecast.budget}, {forecast.neighbors}"),
            ("Protected", unit),
            (
                "Mechanism",
                f"{forecast.asked_of}{', which a release takes unless told' if forecast.asked_of == 'auto' else ''}",
            ),
        ],
        assumed=setting.typical.words,
        symbol="ρ" if zcdp else "ε",
        beside="" if setting.budget.kind is not BudgetKind.APPROXIMATE else f", δ = {setting.budget.delta:g}",
        rows_text=forecast.rows_text,
        words=_planner_words(setting, noise),
        table=PageTable.of("What would be learnt of each feature", [_HEAD, *_planner_rows(noise)]),
        helpful=[str(change) for change in forecast.changes],
        mechanisms=PageTable.of("Every mechanism, with all columns, as asked for", forecast.mechanism_table()),
        remarks=[*forecast.mechanisms_text[1:], *forecast.mechanism_remarks],
        **_written(_shown_names(planner_grid(setting))),
    )


def _written(grid: dict[str, Any]) -> dict[str, Any]:
    """The grid for the page: as it is where it can be read, deflated where it would be a megabyte of repeated numbers."""
    text = json.dumps(grid, ensure_ascii=False, separators=(",", ":"))
    if len(text) <= _MAX_PLAIN_LENGTH:
        return {"grid": grid, "packed": ""}
    return {"grid": None, "packed": base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")}


def _planner_words(setting: ReleasePlan, noise: NoiseInUnits) -> str:
    """A sentence on the release as a whole; the page's script has the same."""
    correlation, lost = noise.typical_correlation(), int(noise.correlation_is_noise.sum())
    if not math.isfinite(correlation):
        return f"By {_runs(setting)}: one column alone has no correlation."
    shown = NOISE if noise.typical_correlation_is_noise else f"±\u00a0{digits(correlation)}"
    coefficient = NOISE if noise.coefficient_is_noise else f"±\u00a0{digits(noise.coefficient)}"
    features = len(noise.mean)
    said = (
        "no feature is lost to correlations" if not lost else f"{lost} of {features} features are lost to correlations"
    )
    return (
        f"By {_runs(setting)}: a typical correlation {shown}, a standardised coefficient on all other features {coefficient}; "
        f"{said}."
    )


def _runs(setting: ReleasePlan) -> str:
    return setting.plan.mechanism.name


def _planner_rows(noise: NoiseInUnits) -> list[tuple[str, ...]]:
    """A line a feature, by the rules of the forecast's own table; the page's script has the same."""
    typical, correlations = noise.typical, noise.correlation
    lost = noise.mean_is_noise, noise.standard_deviation_is_noise, noise.correlation_is_noise
    lines: list[tuple[str, ...]] = []
    for index, name in enumerate(typical.schema.feature_names):
        share, deviation = bool(typical.shares[index]), float(typical.standard_deviations[index])
        spread, more = float(noise.standard_deviation[index]), MORE if noise.standard_deviation_is_rough[index] else ""
        others = correlations[index][np.isfinite(correlations[index])]
        median = float(np.median(others)) if len(others) else math.nan
        learnt = [
            *([] if lost[0][index] else ["share" if share else "mean"]),
            *([] if share or lost[1][index] else ["spread"]),
            *([] if lost[2][index] or not len(others) else ["correlations"]),
        ]
        lines.append(
            (
                visible(name),
                f"{'~' if typical.assumed[index] else ''}{digits(deviation, 3)}",
                NOISE if lost[0][index] else digits(float(noise.mean[index])),
                "–" if share else NOISE if lost[1][index] else f"{more}{digits(spread)}",
                "–" if share or lost[1][index] or deviation <= 0.0 else f"{more}{100.0 * spread / deviation:.1f}%",
                "–" if not len(others) else NOISE if lost[2][index] else digits(median),
                ", ".join(learnt) or "nothing",
            )
        )
    return lines


def _shown_names(grid: dict[str, Any]) -> dict[str, Any]:
    """The names in it spelled out as every text of a page is, for the script writes them."""
    for column in grid["columns"]:
        column["name"], column["needs"] = visible(column["name"]), [visible(name) for name in column["needs"]]
        for feature in column["features"]:
            feature["name"] = visible(feature["name"])
    return grid
