"""What the planner's page knows beforehand: features as they are guessed to be, and laws of noise by budget and number of rows.

The noise in the table's units follows from a law of noise and from which columns are released by a closed form
(:mod:`dpmoments.planning.imagined_release`). The law itself depends on the columns by little: how many features there are,
whether some hold numbers, whether a row can be dropped. So a law for each such shape and each budget is all that is needed for
every choice of columns, of which there are 2^k. What ``adaptive-ball`` is expected to find depends on the columns' spreads,
too, and its steps are recomputed from them (:mod:`dpmoments.planning.imagined_release`); what they are given for each budget and
number of rows is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpmoments.analysis.correlations import KNOWN_VARIANCE
from dpmoments.mechanisms.adaptive_ball import LENIENT_BELOW, MAX_CLIPPING_PER_NOISE, MAX_RADIUS, AdaptiveBallPlan
from dpmoments.mechanisms.ball_search import (
    BEYOND_SHARE,
    COMPARISONS,
    COUNT_SHARE,
    SCREEN_PLACE,
    BallBudget,
    preference,
    radius_at,
    radius_places,
)
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.lattice_noise import count_error
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.noise.models import AdditiveModel
from dpmoments.planning.imagined_release import EXPLAINED, MAX_LEFT_OUT, MIN_PROBABILITY, ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import MAX_LOSS
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import LATTICE, may_be_shortened
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema
from dpmoments.schema.typical import DOUBT, MAX, TRUST, asked_share

_MAX_LAWS = 420
"""So many laws are planned at most, shapes by budgets: with more shapes there are fewer budgets."""
_MIN_BUDGETS = 3
_KEPT_DIGITS = 10


def _rows_of_grid(n_rows: int) -> list[int]:
    """Numbers of rows from an eighth of those asked for to eight times as many, to two digits; that asked for as it is.

    Examples
    --------
    >>> _rows_of_grid(5000)
    [620, 880, 1200, 1800, 2500, 3500, 5000, 7100, 10000, 14000, 20000, 28000, 40000]
    """
    result = {_two_digits(n_rows * 2.0 ** (step / 2.0)) for step in range(-6, 7) if step}
    return sorted({number for number in result if number >= 1 and number != n_rows} | {n_rows})


def _budgets_of_grid(size: float, n_shapes: int) -> list[float]:
    """ε or ρ about the one asked for: from an eighth to eight times as much, in steps of √2, or fewer where shapes are many.

    Examples
    --------
    >>> _budgets_of_grid(1.0, 150)
    [0.5, 1.0, 2.0]
    """
    allowed = max(_MIN_BUDGETS, _MAX_LAWS // n_shapes)
    if allowed >= 13:
        factors = [2.0 ** (step / 2.0) for step in range(-6, 7)]
    else:
        around = min(3, (allowed - 1) // 2)
        factors = [2.0**step for step in range(-around, around + 1)]
    return [size if factor == 1.0 else float(f"{size * factor:.2g}") for factor in factors if size * factor <= MAX_LOSS]


def planner_grid(setting: ReleasePlan) -> dict[str, Any]:
    """Everything the page computes with, as JSON holds it.

    Parameters
    ----------
    setting : Setting
        With the mechanism that the page is about, ``auto`` as a rule.
    """
    typical, schema = setting.typical, setting.typical.schema
    shapes = _shapes(setting)
    budgets = _budgets_of_grid(setting.size_of_budget, len(shapes))
    rows = _rows_of_grid(setting.n_rows)
    shared = _Shared()
    laws = {
        _key(shape): [_law_entry(setting.with_budget(size), shape, rows, shared) for size in budgets]
        for shape in shapes
    }
    result: dict[str, Any] = {
        "budgets": budgets,
        "rows": rows,
        "asked": {"budget": budgets.index(setting.size_of_budget), "rows": rows.index(setting.n_rows)},
        "row_norm": _row_norm_of_its_own(schema),
        "columns": [_column_entry(column, setting) for column in schema.columns],
        "spectrum": list(typical.spectrum),
        "spectrum_is_of_numbers": len(typical.spectrum) == max(1, int((~typical.shares).sum())),
        "laws": laws,
        "deviations": shared.kept,
        "radii": {str(pure).lower(): [radius_at(index) for index in radius_places(pure)] for pure in (True, False)},
        "constants": _constants(),
    }
    short: dict[str, Any] = _short(result)
    return short


def _short(value: Any) -> Any:
    """The same with numbers of ten digits, which are half as long."""
    if isinstance(value, float):
        return float(f"{value:.{_KEPT_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(entry) for key, entry in value.items()}
    return [_short(entry) for entry in value] if isinstance(value, list) else value


def _constants() -> dict[str, float]:
    """Numbers of the algorithms, under their names."""
    return {
        "known_variance": KNOWN_VARIANCE,
        "explained": EXPLAINED,
        "least_probability": MIN_PROBABILITY,
        "most_left_out": MAX_LEFT_OUT,
        "largest_radius": MAX_RADIUS,
        "excess_for_noise": MAX_CLIPPING_PER_NOISE,
        "lenient_below": LENIENT_BELOW,
        "beyond_share": BEYOND_SHARE,
        "comparisons": COMPARISONS,
        "screen_radius": radius_at(SCREEN_PLACE),
        "doubt": DOUBT,
        "most": MAX,
        "trust": TRUST,
        "lattice": LATTICE,
    }


def _two_digits(value: float) -> int:
    digits = max(0, math.floor(math.log10(value)) - 1) if value >= 1.0 else 0
    return int(round(value, -digits))


def _row_norm_of_its_own(schema: Schema) -> float | None:
    """The bound on a row where it is not the one that no row exceeds, √(number of columns)."""
    assert schema.row_norm is not None
    if any(isinstance(column, Coordinate) for column in schema.columns) or may_be_shortened(
        schema.columns, schema.row_norm
    ):
        return schema.row_norm
    return None


def _key(shape: MomentShape) -> str:
    """Under what a law is found again: the page builds the same."""
    return f"{shape.n_features} {int(shape.has_numbers)} {int(shape.drops_rows)}"


def _shapes(setting: ReleasePlan) -> list[MomentShape]:
    """Of every choice of columns; that a row may be dropped matters only where the number of rows would be public else."""
    n_rows = setting.n_rows if setting.neighbors.table_size_is_public else None
    whole = MomentShape.of(setting.typical.schema, mean=True, n_rows=n_rows)
    result: set[tuple[int, bool, bool]] = {(0, False, False)}
    for column in setting.typical.schema.columns:
        size, numbers, drops = len(column.feature_names), _is_number(column), _drops(column, setting)
        result |= {(d + size, has or numbers, may or drops) for d, has, may in result}
    result -= {(0, False, False)}
    return [replace(whole, n_features=d, has_numbers=has, drops_rows=may) for d, has, may in sorted(result)]


def _is_number(column: SchemaColumn) -> bool:
    return not isinstance(column, Boolean | Categorical | DerivedColumn)


def _drops(column: SchemaColumn, setting: ReleasePlan) -> bool:
    if not setting.neighbors.table_size_is_public or isinstance(column, DerivedColumn):
        return False
    return column.missing == "drop" or (isinstance(column, Categorical) and column.other == "drop")


@dataclass
class _Shared:
    """Lists of numbers that many entries have in common, kept once."""

    kept: list[list[float]] = field(default_factory=list)
    places: dict[tuple[float, ...], int] = field(default_factory=dict)

    def place(self, numbers: Sequence[float]) -> int:
        """Where they are kept."""
        key = tuple(numbers)
        if key not in self.places:
            self.places[key] = len(self.kept)
            self.kept.append(list(key))
        return self.places[key]


def _law_entry(
    setting: ReleasePlan, shape: MomentShape, rows: Sequence[int], shared: _Shared
) -> Mapping[str, Any] | None:
    """The law of one shape at one budget; None where no release is possible."""
    try:
        plan: Plan = plan_before_release(
            setting.mechanism, shape, setting.budget, setting.neighbors, setting.privacy_unit
        )
    except (ValueError, OverflowError):  # a budget can be too small for any
        return None
    if isinstance(plan, AdaptiveBallPlan):
        return _ball_entry(plan, rows, shared)
    law = plan.model
    if not isinstance(law, AdditiveModel) or law.sum_variance is None or law.count_variance is None:
        return None
    return {"by": plan.mechanism.name, "law": _variances(law)}


def _ball_entry(plan: AdaptiveBallPlan, rows: Sequence[int], shared: _Shared) -> Mapping[str, Any]:
    budget = plan.budget
    outside = plan.last_step(budget.whole).model
    inside = plan.last_step(budget.whole, in_ball=True).model
    radii = [radius_at(index) for index in radius_places(budget.pure)]
    return {
        "by": plan.mechanism.name,
        "pure": budget.pure,
        "outside": _variances(outside),
        "inside": _variances(inside),
        "error": outside.frobenius_error,
        "excess_shares": shared.place([budget.excess_share(radius) for radius in radii]),
        "deviations": shared.place([budget.deviation(budget.excess_share(radius)) for radius in radii]),
        "steps": [list(_steps(plan, budget, n_rows, shared)) for n_rows in rows],
    }


def _steps(plan: AdaptiveBallPlan, budget: BallBudget, n_rows: int, shared: _Shared) -> Iterator[Any]:
    """What the steps of a run are given for so many rows, in the order in which the page reads them."""
    spent = 0.0 if plan.count_is_public else COUNT_SHARE
    least_rows = n_rows - (count_error(budget.part(COUNT_SHARE)) if spent else 0.0)
    rows_beyond = budget.rows_beyond(least_rows) if least_rows >= 1.0 else None
    yield spent
    if rows_beyond is None:
        return
    center = budget.center_share(least_rows)
    spent += center
    yield rows_beyond
    yield (budget.center_noise(center) / n_rows) ** 2
    screened = budget.screen_share(least_rows)
    yield None if screened is None else budget.screened_rows(least_rows, rows_beyond)
    spent += screened or 0.0
    yield spent
    search = budget.search_share(least_rows)
    yield spent + search
    if budget.pure:
        epsilon = budget.part(search).epsilon
        yield epsilon
        yield shared.place([float(preference(index, epsilon)) for index in radius_places(True)])
    else:
        yield budget.deviation(search / COMPARISONS)


def _variances(law: AdditiveModel) -> list[float]:
    return [law.off_diagonal_variance, law.diagonal_variance, law.sum_variance or 0.0, law.count_variance or 0.0]


def _column_entry(column: SchemaColumn, setting: ReleasePlan) -> dict[str, Any]:
    """A column and its features, in its own units: what the page needs to encode it among any others."""
    typical = setting.typical
    indices = typical.features_of_columns[column.name]
    flag = isinstance(column, Boolean | DerivedColumn) and column.is_flag
    categorical = isinstance(column, Categorical)
    complete = isinstance(column, Categorical) and column.missing != "zero" and column.other != "zero"
    return {
        "name": column.name,
        "number": _is_number(column),
        "drops": _drops(column, setting),
        "needs": [factor.name for factor in column.factors] if isinstance(column, DerivedColumn) else [],
        "has_range": isinstance(column, Numeric) and column.typical is not None,
        "asked": None if isinstance(column, Coordinate) else asked_share(column, mean=True),
        "spread_over_ball": isinstance(column, Coordinate) and bool(typical.assumed[indices[0]]),
        "block": categorical,
        "indicators": categorical or flag,
        "certain": complete and len(indices) == 1,
        "features": _features(typical, column, indices),
    }


def _features(typical: TypicalTable, column: SchemaColumn, places: Sequence[int]) -> list[dict[str, Any]]:
    lower, upper = typical.schema.feature_bounds
    offset, unit = column.offset(True), column.unit(True)
    return [
        {
            "name": typical.schema.feature_names[place],
            "sd": float(typical.standard_deviations[place]),
            "mean": float(typical.means[place]),
            "assumed": bool(typical.assumed[place]),
            "share": bool(typical.shares[place]),
            "lower": None if not math.isfinite(lower[place]) or isinstance(column, Coordinate) else float(lower[place]),
            "upper": None if not math.isfinite(upper[place]) or isinstance(column, Coordinate) else float(upper[place]),
            "offset": float(offset[index]),
            "unit": float(unit[index]),
        }
        for index, place in enumerate(places)
    ]
