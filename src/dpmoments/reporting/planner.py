"""The planner page: what a forecast says, and smaller and larger budgets."""

from __future__ import annotations

import math
from typing import Any

from dpmoments.planning.changes import takes_to_read
from dpmoments.planning.forecast_noise import clear_from
from dpmoments.planning.forecast_table import Forecast
from dpmoments.planning.picture import MEANING, clear_by_budget
from dpmoments.reporting.page import PageTable, drawn, filled_in


def planner_page(forecast: Forecast) -> str:
    """Return the page of a forecast: it has no script, no network access and no data."""
    if forecast.noise is None:
        raise forecast.without_units.preceded_by(
            "no planner page: the forecast has no numbers in original units, since "
        )
    unit = "one row" if forecast.privacy_unit is None else forecast.privacy_unit.description
    facts = [
        ("Asked for", f"{forecast.n_rows:,} {forecast.rows_text}, {forecast.budget}, {forecast.neighbors}"),
        ("Protected", unit),
        ("Mechanism", forecast.mechanism_text),
    ]
    return filled_in("planner.html", title="Plan a private release", facts=facts, **plan_content(forecast))


def plan_content(forecast: Forecast) -> dict[str, Any]:
    """Return what the planner page and the desk show of a forecast."""
    setting, noise = forecast.setting, forecast.noise
    content: dict[str, Any] = {
        "forecast": forecast,
        "mechanisms": PageTable.of(forecast.mechanisms.heading[0], forecast.mechanisms.table()),
        "picture": None,
        "goals": None,
    }
    if setting is None or noise is None:
        return content
    clear = clear_by_budget(setting) if forecast.clear else {}
    if any(math.isfinite(size) for sizes in clear.values() for size in sizes.values()):
        kinds = noise.smallest_between
        rows = [(budget, *(clear_from(of.get(kind, math.inf)) for kind in kinds)) for budget, of in clear.items()]
        head = ("budget", *(f"between {kind}" for kind in kinds))
        content["by_budget"] = PageTable.of("The smallest correlation of clear sign, by budget", [head, *rows])
        said = "; ".join(f"{name}: {', '.join(cells)}" for name, *cells in zip(head, *rows, strict=True))
        content["picture"] = drawn(
            "clear", 4.6, 3.2, lambda ax: forecast.plot(ax=ax), title=f"{forecast.clear}. {MEANING}", description=said
        )
    described = "What describe() would show if the table is as assumed, in original units"
    if forecast.goals is not None:
        content["goals"] = PageTable.of(forecast.goals.heading[0], forecast.goals.table())
    return content | {
        "takes": "" if setting.is_readable else takes_to_read(setting),
        "columns": PageTable.of(described, noise.table_of_columns()),
        "every_feature": PageTable.of(described, noise.table()),
    }
