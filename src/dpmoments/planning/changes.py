"""Changes that would lower the noise, each planned in full, and the rows or budget needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import is_finite_number, shown
from dpmoments.messages.wording import listed
from dpmoments.planning.forecast_noise import ForecastNoise, ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import MAX_LOSS, BudgetKind, PrivacyBudget
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import longest_row_norm
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

_MAX_RATIO = 0.92
"""Maximum remaining fraction of the noise for a change to be listed."""
_SMALL_DELTA = 1e-9
_NAMED = 3
_COMPLETE_ROWS = 0.75
"""Assumed share of rows without a missing value, if rows with one are dropped."""
_MAX_CHANGES = 6
_FEW_COLUMNS = 100
"""Number of columns above which one of them makes no noticeable difference."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of the plan, with the noise before and after it."""

    kind: str  # `column`, `columns`, `bounds`, `complete`, `budget`, `rows`, `delta`, `derived` or `products`
    what: str  # description
    measure: str  # quantity that has the noise: the median correlation of the remaining columns, or another
    before: float  # with `after`: noise SDs
    after: float

    @property
    def ratio(self) -> float:
        """Remaining fraction of the noise."""
        return self.after / self.before

    def __str__(self) -> str:
        return f"{self.what}: ± {self.before:.2g} → {self.after:.2g} {self.measure}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {**asdict(self), "ratio": self.ratio}


def changes(setting: ReleasePlan) -> tuple[Change, ...]:
    """List changes that help noticeably, best first, with at most one column to leave out."""
    if setting.noise is None:
        return ()
    columns = [
        change for changed in _without_one_column(setting) if (change := _compared(setting, *changed)) is not None
    ]
    others = (*_without_half(setting), *_of_complete_rows(setting), *_of_size(setting))
    result = [
        *sorted(columns, key=lambda change: change.ratio)[:1],
        *(change for changed in others if (change := _compared(setting, *changed)) is not None),
        *_tighter_bounds(setting),
    ]
    useful = [change for change in result if change.ratio <= _MAX_RATIO]
    return tuple(sorted(useful, key=lambda change: change.ratio)[:_MAX_CHANGES])


Changed = tuple[str, str, ReleasePlan]
"""Kind of a change, its description, and the changed plan."""


def _compared(setting: ReleasePlan, kind: str, what: str, changed: ReleasePlan) -> Change | None:
    """Compare the noise on the remaining features' correlations, or one column's mean in SDs."""
    before, after = setting.noise, _noise_of(changed)
    if before is None or after is None:
        return None
    names, left = before.typical.schema.feature_names, after.typical.schema.feature_names
    stay = [name for name in left if name in names]
    chosen, those = [left.index(name) for name in stay], [names.index(name) for name in stay]
    now, then = before.typical_correlation(those), after.typical_correlation(chosen)
    measure = "on a correlation"
    if not (math.isfinite(now) and math.isfinite(then)):
        now, then = (float(np.median(noise.mean_in_deviations[of])) for noise, of in ((before, those), (after, chosen)))
        measure = "sd on a mean"
    if not (math.isfinite(now) and math.isfinite(then) and now > 0.0):
        return None
    among = {"column": " of the others", "columns": " of those"}.get(kind, "")
    return Change(kind, what, measure + among, now, then)


def cost_of_derived(setting: ReleasePlan) -> Change | None:
    """Return the noise on other features without the derived ones; None if nothing is derived."""
    names = {column.name for column in setting.typical.schema.derived_columns}
    typical = _without(setting.typical, names) if names else None
    if typical is None:
        return None
    return _compared(setting, "derived", f"without {', '.join(sorted(names))}", replace(setting, typical=typical))


def cost_of_products(setting: ReleasePlan, columns: Sequence[str]) -> Change | None:
    """Return what products for robust standard errors cost; None if the schema has them."""
    typical, schema = setting.typical, setting.typical.schema
    more = schema.with_products(columns)
    if not (added := [column.name for column in more.columns if column not in schema.columns]):
        return None
    what = f"with {', '.join(added)}, for robust standard errors"
    return _compared(setting, "products", what, replace(setting, typical=typical.for_schema(more)))


def _noise_of(setting: ReleasePlan) -> ForecastNoise | None:
    """Return the noise of a plan; None if nothing of the kind can be planned."""
    try:
        return setting.noise
    except (ValueError, OverflowError):
        return None


def _without_one_column(setting: ReleasePlan) -> Iterator[Changed]:
    columns = setting.typical.schema.table_columns
    for column in _costliest(setting.typical, columns) if 1 < len(columns) <= _FEW_COLUMNS else ():
        if (typical := _without(setting.typical, {column.name})) is not None:
            yield "column", f"without {column.name}", replace(setting, typical=typical)


def _costliest(typical: TypicalTable, columns: Sequence[SchemaColumn]) -> list[SchemaColumn]:
    """Return, of similar columns, those with the largest spread."""
    deviations = typical.standard_deviations / typical.schema.encoding(mean=True).scale
    weights = typical.schema.encoding(mean=True).weight
    alike: dict[tuple[object, ...], tuple[float, int]] = {}
    for index, column in enumerate(columns):
        own = list(typical.features_of_columns[column.name])
        needed = sum(column in derived.factors for derived in typical.schema.derived_columns)
        weight = 1.0 if weights is None else float(weights[own[0]])
        kind = type(column), len(own), column.missing, needed, weight
        spread = float(np.sum(deviations[own] ** 2))
        alike[kind] = max(alike.get(kind, (spread, -index)), (spread, -index))
    return [columns[-index] for _, index in sorted(alike.values(), key=lambda entry: -entry[1])]


def _without_half(setting: ReleasePlan) -> Iterator[Changed]:
    columns = setting.typical.schema.table_columns
    kept = (len(columns) + 1) // 2
    if len(columns) < 4:
        return
    typical = _without(setting.typical, {column.name for column in columns[kept:]})
    if typical is not None:
        yield "columns", f"only half of the columns (for example the first {kept})", replace(setting, typical=typical)


def _tighter_bounds(setting: ReleasePlan) -> Iterator[Change]:
    """Plan half the range, about its mean, of the noisiest numeric column."""
    schema, noise = setting.typical.schema, setting.noise
    assert noise is not None
    columns = [column for column in schema.columns if isinstance(column, Numeric) and column.scale is None]
    if len(schema.table_columns) > _FEW_COLUMNS:
        return
    columns.sort(key=lambda column: -float(noise.mean_in_deviations[schema.feature_names.index(column.name)]))
    for column in columns:
        tight = _half_as_wide(column, schema, setting.typical)
        if tight is not None:
            after = _noise_of(replace(setting, typical=setting.typical.for_schema(tight)))
            index = schema.feature_names.index(column.name)
            if after is not None and noise.mean[index] > 0.0:
                what = f"half the range of {column.name}, if public knowledge allows"
                yield Change("bounds", what, "on its mean", float(noise.mean[index]), float(after.mean[index]))
            return


def _of_complete_rows(setting: ReleasePlan) -> Iterator[Changed]:
    """Plan to drop rows with missing values in place of ``available``."""
    schema, n_rows = setting.typical.schema, int(_COMPLETE_ROWS * setting.n_rows)
    names = [column.name for column in schema.table_columns if column.missing == "available"]
    factors = {factor.name for derived in schema.derived_columns for factor in derived.factors}
    if not names or not n_rows or factors & {*names}:
        return
    dropping: list[SchemaColumn] = []
    for column in schema.columns:
        change: dict[str, Any] = {"missing": "drop"}
        if getattr(column, "fill", None) is not None:
            change["fill"] = None
        dropping.append(replace(column, **change) if column.name in names else column)
    complete = setting.typical.for_schema(schema.with_columns(dropping, row_norm=_own_row_norm(schema)))
    named = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} columns"
    share = f"if {_COMPLETE_ROWS:.0%} of the rows are complete (the release then describes these)"
    what = f"missing: drop for {named}, {share}"
    yield "complete", what, replace(setting, typical=complete, n_rows=n_rows)


def _half_as_wide(column: Numeric, schema: Schema, typical: TypicalTable) -> Schema | None:
    """Return the schema with half the range of one column, or None if that is impossible."""
    if any(factor.name == column.name for derived in schema.derived_columns for factor in derived.factors):
        return None
    index = schema.feature_names.index(column.name)
    lower, upper = column.bounds
    width, mean = (upper - lower) / 2.0, float(typical.means[index])
    if 4.0 * float(typical.standard_deviations[index]) > width:
        return None
    least = min(max(mean - width / 2.0, lower), upper - width)
    try:
        tight = replace(column, lower=least, upper=least + width)
    except ValueError:  # a typical range may lie outside
        return None
    stated = (tight if known is column else known for known in schema.columns)
    return schema.with_columns([*stated], row_norm=_own_row_norm(schema))


def _own_row_norm(schema: Schema) -> bool:
    """Return True if the row-norm bound is not the longest possible row."""
    return schema.row_norm is None or not math.isclose(schema.row_norm, longest_row_norm(schema.columns), rel_tol=1e-9)


def _of_size(setting: ReleasePlan) -> Iterator[Changed]:
    """Plan a larger budget, more rows, and a small δ."""
    budget, double = setting.budget, 2.0 * setting.size_of_budget
    if double <= MAX_LOSS:
        symbol = "ρ" if budget.kind is BudgetKind.ZCDP else "ε"
        yield "budget", f"twice the budget ({symbol} = {double:.4g})", setting.with_budget(double)
    yield "rows", f"twice the rows ({2 * setting.n_rows:,})", replace(setting, n_rows=2 * setting.n_rows)
    if budget.kind is BudgetKind.PURE and BudgetKind.APPROXIMATE in setting.mechanism.budget_kinds:
        with_delta = PrivacyBudget.approximate(budget.epsilon, _SMALL_DELTA)
        yield "delta", f"δ = {_SMALL_DELTA:g} in addition to ε", replace(setting, budget=with_delta)


def _without(typical: TypicalTable, names: set[str]) -> TypicalTable | None:
    """Drop columns, and the features derived from them."""
    schema = typical.schema
    kept = [
        column
        for column in schema.columns
        if column.name not in names
        and not (isinstance(column, DerivedColumn) and any(factor.name in names for factor in column.factors))
    ]
    try:
        return typical.for_schema(schema.with_columns(kept, row_norm=_own_row_norm(schema)))
    except ValueError:  # nothing is left
        return None


# How many rows, or how much of a budget, it takes until the noise is as small as wanted: by search over plans.

_MAX_BUDGET = 100.0
_MIN_BUDGET = 1e-9
_FINENESS = 1e-6
"""Relative precision of the smallest budget, from above."""
_MAX_ROWS = 10**12


@dataclass(frozen=True, eq=False)
class Wanted:
    """Noise SDs to reach, all of them."""

    # with `coefficient`: noise on a typical correlation, and on a standardized coefficient of the typical regression
    correlation: float | None
    coefficient: float | None
    # with `sd` and `share`: noise on means, standard deviations and shares, in original units
    mean: Mapping[str, float]
    sd: Mapping[str, float]
    share: Mapping[str, float]

    @classmethod
    def of(
        cls,
        typical: TypicalTable,
        *,
        correlation: float | None = None,
        coefficient: float | None = None,
        mean: float | Mapping[str, float] | None = None,
        sd: float | Mapping[str, float] | None = None,
        share: float | Mapping[str, float] | None = None,
    ) -> Wanted:
        """Check the requests; one number applies to all features of its kind."""
        names = np.array(typical.schema.feature_names, dtype=object)
        numbers, shares = set(names[~typical.shares]), set(names[typical.shares])
        everything = (correlation, coefficient, mean, sd, share)
        if all(entry is None for entry in everything):
            raise InputValueError(
                "say what is wanted: correlation=0.02, mean={'age': 0.5}, sd=…, share=0.01 or coefficient=0.05"
            )
        for name, value in (("correlation", correlation), ("coefficient", coefficient)):
            if value is not None:
                _positive(name, value)
                if len(typical.features_of_columns) < 2:
                    raise InputValueError(f"{name} needs two columns, but the schema has one")
        return cls(
            correlation,
            coefficient,
            _by_feature("mean", mean, numbers, shares),
            _by_feature("sd", sd, numbers, shares),
            _by_feature("share", share, shares, numbers),
        )

    def holds(self, noise: ForecastNoise) -> bool:
        """Return True if all of them are reached; a noise-dominated value is not."""
        names = noise.typical.schema.feature_names
        if self.correlation is not None and not (
            noise.typical_correlation() <= self.correlation and not noise.typical_correlation_is_noise
        ):
            return False
        if self.coefficient is not None and not noise.coefficient <= self.coefficient:
            return False
        deviations = np.where(noise.description.standard_deviation_is_noise, math.inf, noise.standard_deviation)
        return (
            _all_below(noise.mean, self.mean, names)
            and _all_below(noise.mean, self.share, names)
            and _all_below(deviations, self.sd, names)
        )


def rows_needed(setting: ReleasePlan, wanted: Wanted) -> int:
    """Find the smallest number of rows with noise that small."""

    def enough(n_rows: int) -> bool:
        return _holds(replace(setting, n_rows=n_rows), wanted)

    least, most = 0, 1
    while not enough(most):
        if most == _MAX_ROWS:
            raise InputValueError(f"not within {_MAX_ROWS:.0e} rows: give a larger budget, or ask for less")
        least, most = most, min(4 * most, _MAX_ROWS)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def budget_needed(setting: ReleasePlan, wanted: Wanted) -> float:
    """Find the smallest ε (at the setting's δ), or ρ, with noise that small."""
    symbol = "ρ" if setting.budget.kind is BudgetKind.ZCDP else "ε"

    def enough(size: float) -> bool:
        return _holds(setting.with_budget(size), wanted)

    if not enough(_MAX_BUDGET):
        raise InputValueError(
            f"not within {symbol} ≤ {_MAX_BUDGET:g}: more rows, fewer columns or tighter bounds would do more"
        )
    most, least = _MAX_BUDGET, _MIN_BUDGET
    while most > least * (1.0 + _FINENESS):
        middle = math.sqrt(least * most)
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def _holds(setting: ReleasePlan, wanted: Wanted) -> bool:
    """Return True if a plan exists (a budget can be too small) and reaches what is wanted."""
    noise = _noise_of(setting)
    return noise is not None and wanted.holds(noise)


def _all_below(
    noise: np.ndarray[tuple[int], np.dtype[np.float64]], wanted: Mapping[str, float], names: tuple[str, ...]
) -> bool:
    return all(noise[names.index(name)] <= most for name, most in wanted.items())


def _by_feature(
    what: str, given: float | Mapping[str, float] | None, known: set[str], others: set[str]
) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if not known:
            raise InputValueError(f"{what}: the schema has no such feature")
        return dict.fromkeys(sorted(known), _positive(what, given))
    if wrong := sorted(set(given) & others, key=str):
        instead = "mean or sd" if what == "share" else "share"
        raise InputValueError(f"{what} of {listed([*wrong])}: ask for {instead} there")
    if unknown := sorted(set(given) - known, key=str):
        raise InputValueError(f"{what} names {listed([*unknown])}: use {listed(sorted(known)[:20])}")
    return {name: _positive(f"{what} of {name!r}", value) for name, value in given.items()}


def _positive(what: str, value: float) -> float:
    if not (is_finite_number(value) and value > 0.0):
        raise InputValueError(f"{what}: {shown(value)} must be a positive finite number")
    return float(value)
