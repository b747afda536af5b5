"""Reference answers: numbers of forecasts from public numbers alone, in ``reference_forecasts.json``.

    python tests/planning/test_reference_forecasts.py

writes them again: read the difference. That a number is right is shown elsewhere (``test_plain_forecast.py``,
``test_forecast_units.py``, ``test_imagined_release.py``); here it is shown that it stays. Nothing is drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from dpmoments.planning.imagined_release import (
    ReleasePlan,
    forecast_noise,
    possible_runs,
    typical_regression,
    worst_run,
)

import dpmoments as dpm
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.planning import changes as planned_changes
from dpmoments.planning.changes import Change, Wanted, budget_needed, changes, rows_needed
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.schema.columns import Coordinate
from support.kept_answers import KeptAnswers, weighted_sums

# relative: budgets needed are found to 1e-6
KEPT = KeptAnswers(Path(__file__).with_name("reference_forecasts.json"), tolerance=5e-6)
WHOLE = 12
"""Longer arrays are kept as three weighted sums."""

# The releases that could be made ----------------------------------------------------------------------------------------------

PEOPLE = dpm.Schema(
    dpm.Numeric("age", 0, 100, typical=(20, 80)),
    dpm.Numeric("income", -50, 350),
    dpm.Numeric("debt", 0, 10),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
)
NUMBERS = dpm.Schema(*(dpm.Numeric(f"x{index}", 0, 10.0 * index + 5.0) for index in range(6)))
DERIVED = dpm.Schema(
    dpm.Numeric("a", 0, 10, weight=2.0),
    dpm.Numeric("b", -5, 5),
    dpm.Numeric("c", 0, 3),
    dpm.Boolean("flag"),
    dpm.Power("a", 2),
    dpm.Product("b", "flag"),
)
SHORT = dpm.Schema(*(dpm.Numeric(name, -1, 3) for name in "abcd"), row_norm=1.2)
MISSING = dpm.Schema(
    dpm.Numeric("a", 0, 10, missing="available", fill=3.0),
    dpm.Categorical("kind", ["x", "y", "z"], "available"),
    dpm.Numeric("b", -5, 5),
    dpm.Boolean("flag", "available"),
    dpm.Numeric("c", 0, 4),
)
ROUND = dpm.Schema(*(Coordinate(name) for name in "abc"), row_norm=2.0)
LEVELS = dpm.Schema(
    dpm.Categorical("kind", list("pqrs")),
    dpm.Boolean("flag"),
    dpm.Categorical("group", ["u", "v"]),
    dpm.Boolean("other"),
)
MIXED = dpm.Schema(*NUMBERS.columns[:2], dpm.Categorical("kind", ["x", "y", "z"]), dpm.Boolean("flag"))
PURE, RHO, BOTH = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(1.0, 1e-6)


def plan(
    schema: dpm.Schema,
    mechanism: str,
    budget: PrivacyBudget,
    n_rows: int = 5_000,
    *,
    neighbors: str = "add_remove",
    rivals: Sequence[str] = (),
    max_rows: int | None = None,
    **guesses: Any,
) -> ReleasePlan:
    unit = None if max_rows is None else dpm.PrivacyUnit("person", max_rows)
    others = tuple(MECHANISMS[name]() for name in rivals)
    made = TypicalTable.of(schema, **guesses)
    return ReleasePlan(made, n_rows, budget, Neighbors.of(neighbors), MECHANISMS[mechanism](), others, unit)


SPREADS = {
    "typical_sd": {"income": 40.0, "debt": 0.7},
    "typical_mean": {"age": 44.0, "smoker": 0.2, "region=east": 0.1},
}
LARGE, FILLED = ({"typical_sd": {f"x{index}": a + a * index + index for index in range(6)}} for a in (1.0, 2.0))
SMALL = {"typical_sd": {f"x{index}": 0.3 + 0.1 * index for index in range(6)}}
SETTINGS: Mapping[str, Callable[[], ReleasePlan]] = {
    "people, pure": lambda: plan(PEOPLE, "matrix-laplace", PURE, rivals=["laplace", "isotropic"]),
    "people, laplace": lambda: plan(PEOPLE, "laplace", PURE, 900, neighbors="replace_one", **SPREADS),
    "people, rho": lambda: plan(PEOPLE, "gaussian", RHO, rivals=["adaptive-ball"], **SPREADS),
    "people, delta": lambda: plan(PEOPLE, "gaussian", BOTH, 20_000, max_rows=3),
    "few people": lambda: plan(PEOPLE, "laplace", PURE, 60, rivals=["matrix-laplace"]),
    "ball, rho": lambda: plan(NUMBERS, "adaptive-ball", RHO, **SMALL),
    "ball, pure": lambda: plan(NUMBERS, "adaptive-ball", PURE, neighbors="replace_one", decay=0.5, **SMALL),
    "ball, delta": lambda: plan(NUMBERS, "adaptive-ball", BOTH, 40_000, rivals=["gaussian"]),
    "ball, few rows": lambda: plan(NUMBERS, "adaptive-ball", RHO, 25),
    "ball, some rows": lambda: plan(NUMBERS, "adaptive-ball", PURE, 400, **SMALL),
    "ball, in doubt": lambda: plan(NUMBERS, "adaptive-ball", RHO, 100, **FILLED),
    "ball, hardly": lambda: plan(NUMBERS, "adaptive-ball", RHO, 150, **FILLED),
    "ball, pure, in doubt": lambda: plan(NUMBERS, "adaptive-ball", PURE, 400, neighbors="replace_one", **LARGE),
    "ball, of many rows": lambda: plan(NUMBERS, "adaptive-ball", PURE, 10_000, neighbors="replace_one", **LARGE),
    "ball of numbers, rho": lambda: plan(MIXED, "adaptive-ball", RHO, typical_sd={"x0": 0.2, "x1": 0.5}),
    "ball of numbers, pure": lambda: plan(
        MIXED, "adaptive-ball", PURE, 9_000, typical_sd={"x0": 0.2, "x1": 0.5}, rivals=["laplace"]
    ),
    "ball of numbers, few rows": lambda: plan(MIXED, "adaptive-ball", PURE, 90, neighbors="replace_one"),
    "derived": lambda: plan(DERIVED, "gaussian", RHO, rivals=["isotropic"], typical_sd={"a": 1.5, "a^2": 20.0}),
    "short rows": lambda: plan(SHORT, "gaussian", RHO, 700, typical_mean={"a": 0.0}),
    "missing": lambda: plan(MISSING, "laplace", PURE, 8_000, rivals=["matrix-laplace"], typical_sd={"b": 1.0}),
    "missing, ball": lambda: plan(MISSING, "adaptive-ball", RHO, 60_000, typical_sd={"a": 0.5, "b": 0.5, "c": 0.2}),
    "levels": lambda: plan(LEVELS, "matrix-laplace", PURE, 2_000, typical_mean={"kind=p": 0.7, "flag": 0.02}),
    "levels, ball": lambda: plan(LEVELS, "adaptive-ball", RHO, 20_000, typical_mean={"other": 0.9}),
    "unit ball": lambda: plan(dpm.Schema.unit_ball(4), "isotropic", PURE, 3_000, rivals=["laplace"], typical_sd={"x1": 0.1}),
    "two units": lambda: plan(ROUND, "gaussian", RHO, 3_000, neighbors="replace_one"),
    "one column": lambda: plan(dpm.Schema(dpm.Numeric("age", 0, 120)), "laplace", PURE, 500, typical_sd={"age": 18.0}),
    "two columns": lambda: plan(
        dpm.Schema(dpm.Numeric("age", 0, 120), dpm.Boolean("flag")), "gaussian", BOTH, 500, typical_mean={"flag": 0.0}
    ),
}  # fmt: skip


@cache
def setting(name: str) -> ReleasePlan:
    return SETTINGS[name]()


# The questions ----------------------------------------------------------------------------------------------------------------


def table(of: ReleasePlan) -> Any:
    typical = of.typical
    every = range(len(typical.columns))
    return {
        "deviations": typical.standard_deviations,
        "means": typical.means,
        "assumed": [*typical.assumed, *typical.assumed_means],
        "spectrum": typical.spectrum,
        "distance": typical.squared_distance,
        "of some": [typical.squared_distance_of([index for index in every if index % 2 == odd]) for odd in (0, 1)],
    }


def runs(of: ReleasePlan) -> Any:
    found = possible_runs(of.plan, of.typical, of.n_rows) or ()
    worst = worst_run(of.plan)
    return {
        "runs": [[run.probability, run.centered, run.law.cell_variances()] for run in found],
        "worst": None if worst is None else worst.law.cell_variances(),
    }


def noise(of: ReleasePlan) -> Any:
    found = of.noise
    assert found is not None
    first, second, worst, hidden = found.worst_correlation
    return {
        "releases": [[probability, release.centered] for probability, release in found.releases],
        "tails": [release.tails.cell_variances() for _, release in found.releases],
        "mean": found.mean,
        "deviation": found.standard_deviation,
        "is noise": [*found.description.mean_is_noise, *found.description.standard_deviation_is_noise],
        "correlation": found.correlation,
        "hidden": found.correlation_is_noise.ravel(),
        "typical": [found.typical_correlation(), found.typical_correlation_is_noise],
        "smallest": found.smallest_correlation if found.n_pairs else None,
        "pairs": [found.n_pairs, first, second, worst, hidden],
        "seen from": found.smallest_correlations() if found.n_pairs else None,
    }


def regressions(of: ReleasePlan) -> Any:
    found = of.noise
    assert found is not None
    if (made := found.regression) is None:
        return None
    last = len(found.release.feature_names) - 1
    other = typical_regression(found.release, last, first_order=True)
    of_other = None if other is None else [other.target, other.regressors, other.noise]
    return [made.target, made.regressors, made.noise, found.coefficient, of_other]


def helpful(of: ReleasePlan) -> Any:
    return [in_short(of, change) for change in changes(of)]


def possible_changes(of: ReleasePlan) -> Any:
    """All that are planned, whether they help or not."""
    found = of.noise
    assert found is not None
    return [[in_short(of, change) for change in plans(of, found)] for plans in PLANS]


def in_short(of: ReleasePlan, change: Change) -> list[Any]:
    """Of the words only the names, the symbols and the numbers in them."""
    known = {*of.typical.schema.names, *MECHANISMS, "ε", "ρ", "δ"}
    words = [word for word in re.split(r"[ ,():]+", change.what) if word in known or word[:1].isdigit()]
    return [change.kind, " ".join(words), change.before, change.after, change.ratio]


PLANS = tuple(
    getattr(planned_changes, f"_{name}")
    for name in ("without_one_column", "without_half", "tighter_bounds", "of_complete_rows", "of_size", "with_delta")
)
CHANGED = ("people, pure", "people, rho", "people, delta", "derived", "short rows", "missing", "levels", "one column")


def rows(of: ReleasePlan) -> Any:
    number = next((name for name in ("age", "x1", "a") if name in of.typical.schema.names), None)
    wanted: list[dict[str, Any]] = [{"share": 0.01}] if of.typical.shares.any() else []
    wanted += [{"mean": {number: 0.2}}, {"sd": {number: 0.5}}] if number else []
    return [rows_needed(of, Wanted.of(of.typical, **one)) for one in (*wanted, {"correlation": 0.03})]


def budgets(of: ReleasePlan) -> Any:
    return [budget_needed(of, Wanted.of(of.typical, **one)) for one in ({"correlation": 0.02}, {"mean": 0.01})]


def other_sizes(of: ReleasePlan) -> Any:
    """The median noise from an eighth of the rows to a thousand times as many."""
    answers = []
    for times in (0.125, 4.0, 1_000.0):
        n_rows = max(1, int(times * of.n_rows))
        found = forecast_noise(of.plan, of.typical, n_rows)
        assert found is not None
        answers.append([found.mean.max(), found.typical_correlation(), len(found.releases)])
    return answers


# Whole forecasts: of mechanisms whose noise is known, since others take a while -------------------------------------------------

KNOWN = ("auto", "laplace", "matrix-laplace", "isotropic", "gaussian", "adaptive-ball")
FORECASTS: Mapping[str, Callable[[], dpm.Forecast]] = {
    "pure": lambda: dpm.forecast(PEOPLE, n_rows=2_000, epsilon=0.5, robust=["income", "age", "smoker"], **SPREADS),
    "rho": lambda: dpm.forecast(NUMBERS, n_rows=4_000, rho=0.3, neighbors="replace_one", mechanism="gaussian", **SMALL),
    "delta": lambda: dpm.forecast(
        DERIVED, n_rows=900, epsilon=1.0, delta=1e-6, mechanism="auto", privacy_unit=dpm.PrivacyUnit("person", 4)
    ),
    "without means": lambda: dpm.forecast(PEOPLE, n_rows=2_000, rho=0.3, mean=False, robust=["income", "debt"]),
    "one column": lambda: dpm.forecast(dpm.Schema(dpm.Numeric("age", 0, 90)), n_rows=60, epsilon=1.0),
    "rough": lambda: dpm.forecast(dpm.Schema.unbounded(3), n_rows=500, rho=0.3),
}  # fmt: skip
MEANS: Mapping[str, Callable[[], Any]] = {
    "bounds": lambda: dpm.forecast_mean(PEOPLE, n_rows=3_000, rho=0.2, standard_deviation={"age": 3.0}),
    "unit ball": lambda: dpm.forecast_mean(dpm.Schema.unit_ball(3), n_rows=3_000, epsilon=0.7, neighbors="replace_one"),
    "unbounded": lambda: dpm.forecast_mean(
        dpm.Schema.unbounded(2), n_rows=8_000, epsilon=1.0, delta=1e-7, radius=9.0, scale=2.0
    ),
}
COUNTS: Mapping[str, Callable[[], Any]] = {
    "pure": lambda: dpm.forecast_counts(
        PEOPLE, by=[["region", "smoker"], ["region"]], split=[3, 1], n_rows=700, epsilon=1.0
    ),
    "rho": lambda: dpm.forecast_counts(
        PEOPLE, by="smoker", rho=0.1, privacy_unit=dpm.PrivacyUnit("person", 3)
    ),
}  # fmt: skip


def numbers_in(text: str) -> str:
    return " ".join(re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?%?|∞|noise|~|–", text))


def whole_forecast(name: str) -> Any:
    with mock.patch.dict(dpm.forecast.__globals__, MECHANISMS={each: MECHANISMS[each] for each in KNOWN}):
        made = FORECASTS[name]()
    rows = [
        [
            row.mechanism,
            row.second_moment_shown,
            row.mean_shown,
            row.correlation_shown,
            row.arithmetic,
            row.short_refusal,
        ]
        + [row.assumed, row.mean_assumed, row.guaranteed_error, row.typical_noise, row.typical_is_noise, row.clipped]
        + [None if row.assumed else row.second_moment_error, None if row.mean_assumed else row.mean_error]
        for row in made.rows
    ]
    chosen, costs = made.setting, (made.derived_cost, made.robust_cost)
    return {
        "rows": rows,
        "costs": [cost and [*cost.names, cost.mechanism, cost.second_moment, cost.mean, cost.robust] for cost in costs],
        "best": [made.best, made.asked_of, [row.mechanism for row in made.known], made.mechanism, made.units],
        "setting": chosen and [chosen.mechanism.name, chosen.n_rows, *(rival.name for rival in chosen.rivals)],
        "unit": [made.rows_text, chosen is not None and chosen.privacy_unit == made.privacy_unit],
        "changes": [[change.kind, change.before, change.after] for change in made.changes],
        "worst": made.worst and [made.worst.mean, made.worst.typical_correlation()],
        "assumption": made.assumption.spectrum,
        "without": made.without_units.code,
        "printed": [numbers_in(line) for line in made.text().split("\n")],
    }  # fmt: skip


def means_forecast(name: str) -> Any:
    made = MEANS[name]()
    rows = [[row.mechanism, row.error, row.feature_errors, row.assumes_rows, row.arithmetic] for row in made.rows]
    shown = [" ".join(line) for line in (*made.table(), *made.feature_table())]
    facts = [
        len(made),
        made.n_rows,
        len(made.refusals()),
        bool(made.assumption_text),
        len(made.assumption_text.split(".")),
    ]
    return [rows, made.standard_deviations, shown, facts]


def counts_forecast(name: str) -> Any:
    made = COUNTS[name]()
    numbers = [[*column.values] for column in made._columns() if not column.label]
    return [
        made.cells,
        made.standard_errors,
        made.half_widths,
        numbers,
        numbers_in(str(made)),
        made.relation,
        made.n_rows,
    ]


BALLS = [name for name in SETTINGS if "ball" in name and name != "unit ball"]
QUESTIONS: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] = {
    "table": (table, tuple(SETTINGS)),
    "runs": (runs, tuple(SETTINGS)),
    "noise": (noise, tuple(SETTINGS)),
    "regressions": (regressions, tuple(SETTINGS)),
    "changes": (helpful, [name for name in SETTINGS if "few rows" not in name and name not in CHANGED]),
    "possible changes": (possible_changes, CHANGED),
    "rows needed": (rows, ("unit ball",)),
    "budgets needed": (budgets, ("unit ball",)),
    "other sizes": (other_sizes, BALLS),
    "forecast": (whole_forecast, tuple(FORECASTS)),
    "forecast of means": (means_forecast, tuple(MEANS)),
    "forecast of counts": (counts_forecast, tuple(COUNTS)),
}


def answered(question: str, name: str) -> Any:
    ask, _ = QUESTIONS[question]
    return plain(ask(setting(name) if name in SETTINGS and "forecast" not in question else name))


# What is compared -------------------------------------------------------------------------------------------------------------


def plain(answer: Any) -> Any:
    """Return numbers and names; not a number as text, since JSON has none."""
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    if answer is None or isinstance(answer, str | int):
        return answer
    if isinstance(answer, float | np.number):
        return float(f"{answer:.10g}") if math.isfinite(answer) else str(float(answer))
    if isinstance(answer, Mapping):
        return {name: plain(value) for name, value in answer.items()}
    if isinstance(answer, np.ndarray) and answer.size > WHOLE:
        return in_sums(answer)
    if all(isinstance(value, bool | np.bool_) for value in answer):
        return "".join("01"[int(value)] for value in answer)
    return [plain(value) for value in answer]


def in_sums(values: np.ndarray) -> Any:
    """Return the size of an array and sums of its entries; of truth values each."""
    if values.dtype == bool:
        return "".join("01"[int(value)] for value in values.ravel())
    size, sums, known = weighted_sums(values)
    return [plain(size), *(float(f"{value:.9g}") for value in sums), known]


@pytest.mark.parametrize(
    ("question", "name"), [(question, name) for question, (_, names) in QUESTIONS.items() for name in names]
)
def test_answers_are_those_kept(question: str, name: str) -> None:
    KEPT.require(answered(question, name), f"{question}: {name}")


def test_nothing_else_is_kept() -> None:
    assert set(KEPT.answers) == {f"{question}: {name}" for question, (_, names) in QUESTIONS.items() for name in names}


def main() -> None:
    KEPT.write(
        {
            f"{question}: {name}": answered(question, name)
            for question, (_, names) in QUESTIONS.items()
            for name in names
        }
    )


if __name__ == "__main__":
    main()
