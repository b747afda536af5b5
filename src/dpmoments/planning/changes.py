"""Changes that would lower the noise, each planned in full, and the rows or budget needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.standardized import Standardized
from dpmoments.messages.message import Message
from dpmoments.planning.imagined_release import ForecastNoise, ReleasePlan
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
_GAUSSIAN = (Gaussian, Standardized)
"""Mechanisms that a small δ makes possible."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of the plan, with the noise before and after it."""

    kind: str  # `column`, `columns`, `bounds`, `complete`, `budget`, `rows`, `delta` or `mechanism`
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
    noise = setting.noise
    if noise is None:
        return ()
    result = [
        *_most_helpful(_without_one_column(setting, noise)),
        *_without_half(setting, noise),
        *_tighter_bounds(setting, noise),
        *_of_complete_rows(setting, noise),
        *_of_size(setting, noise),
        *_with_delta(setting, noise),
    ]
    useful = [change for change in result if change.before > 0.0 and change.ratio <= _MAX_RATIO]
    return tuple(sorted(useful, key=lambda change: change.ratio)[:_MAX_CHANGES])


def _most_helpful(changes: Iterator[Change]) -> list[Change]:
    possible = [change for change in changes if change.before > 0.0]
    return [min(possible, key=lambda change: change.ratio)] if possible else []


def _planned(setting: ReleasePlan) -> tuple[ForecastNoise, str] | None:
    """Return the noise of the best mechanism, and its name if it is a rival."""
    result = list[tuple[ForecastNoise, str]]()
    for mechanism in (setting.mechanism, *setting.rivals):
        try:
            noise = replace(setting, mechanism=mechanism).noise
        except (ValueError, OverflowError):  # what is left may be too little for it
            continue
        if noise is not None:
            said = "" if mechanism is setting.mechanism else f", with {mechanism.name}"
            result.append((noise, said))
    noises = [noise for noise, _ in result]
    kept = [
        entry for index, entry in enumerate(result) if not _has_more(entry[0], noises[:index] + noises[index + 1 :])
    ]
    if len(kept) < 2:
        return next(iter(kept or result), None)
    return min(kept, key=lambda entry: _measured(entry[0], range(len(entry[0].typical.columns)))[0])


def _has_more(noise: ForecastNoise, others: Sequence[ForecastNoise]) -> bool:
    """Return True if every cell has more noise than with another mechanism."""

    def is_plain(known: ForecastNoise) -> bool:
        return len(known.releases) == 1 and not known.release.centered

    own = noise.release.noise.cell_variances()
    known = [other.release.noise.cell_variances() for other in others if is_plain(other)]
    return is_plain(noise) and any(bool((less <= own).all() and (less < own).any()) for less in known)


def _measured(noise: ForecastNoise, features: Sequence[int]) -> tuple[float, str]:
    """Return the median noise on correlations, or for one column the relative noise on its mean."""
    result = noise.typical_correlation(features)
    if math.isfinite(result):
        return result, "on a correlation"
    known = noise.typical.standard_deviations[list(features)]
    relative = np.divide(noise.mean[list(features)], known, out=np.full(len(known), np.nan), where=known > 0.0)
    return (float(np.median(relative)) if np.isfinite(relative).all() else math.nan), "sd on a mean"


def _compared(
    kind: str, what: str, before: ForecastNoise, planned: tuple[ForecastNoise, str] | None
) -> Iterator[Change]:
    """Compare the noise on the features that remain."""
    if planned is None:
        return
    after, said = planned
    names = before.typical.schema.feature_names
    stay = [name for name in after.typical.schema.feature_names if name in names]
    then, measure = _measured(after, [after.typical.schema.feature_names.index(name) for name in stay])
    now, _ = _measured(before, [names.index(name) for name in stay])
    if math.isfinite(now) and math.isfinite(then):
        among = {"column": " of the others", "columns": " of those"}.get(kind, "")
        yield Change(kind, what + said, measure + among, now, then)


def _without_one_column(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
    columns = setting.typical.schema.table_columns
    if len(columns) < 2:
        return
    for column in _costliest(setting.typical, columns):
        typical = _without(setting.typical, {column.name})
        if typical is not None:
            after = _planned(replace(setting, typical=typical))
            yield from _compared("column", f"without {column.name}", noise, after)


def _costliest(typical: TypicalTable, columns: Sequence[SchemaColumn]) -> list[SchemaColumn]:
    """Return, of similar columns, those with the largest weight and the largest spread."""
    deviations, _ = typical.in_unit_ball
    alike: dict[tuple[object, ...], list[tuple[float, float, int]]] = {}
    for index, column in enumerate(columns):
        own = list(typical.features_of_columns[column.name])
        kind = type(column), len(own), getattr(column, "missing", None), getattr(column, "other", None)
        needed = sum(column in derived.factors for derived in typical.schema.derived_columns)
        weight = float(typical.encoding.weight[own[0]]) if typical.encoding.weight is not None else 0.0
        entry = weight, float(np.sum(deviations[own] ** 2)), -index
        alike.setdefault((*kind, needed), []).append(entry)
    chosen = {-max(entries)[2] for entries in alike.values()}
    chosen |= {-max(entries, key=lambda entry: entry[1:])[2] for entries in alike.values()}
    return [columns[index] for index in sorted(chosen)]


def _without_half(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
    columns = setting.typical.schema.table_columns
    kept = (len(columns) + 1) // 2
    if len(columns) < 4:
        return
    typical = _without(setting.typical, {column.name for column in columns[kept:]})
    if typical is not None:
        what = f"only half of the columns (for example the first {kept})"
        yield from _compared("columns", what, noise, _planned(replace(setting, typical=typical)))


def _tighter_bounds(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
    """Plan half the range, about its mean, of the noisiest numeric column."""
    schema, known = setting.typical.schema, setting.typical.standard_deviations
    relative = np.divide(noise.mean, known, out=np.zeros(len(known)), where=known > 0.0)
    columns = [column for column in schema.columns if isinstance(column, Numeric) and column.scale is None]
    columns.sort(key=lambda column: -float(relative[schema.feature_names.index(column.name)]))
    for column in columns:
        tight = _half_as_wide(column, schema, setting.typical)
        planned = None if tight is None else _planned(replace(setting, typical=replace(setting.typical, schema=tight)))
        if planned is not None:
            after, said = planned
            index = schema.feature_names.index(column.name)
            what = f"half the range of {column.name}, if public knowledge allows"
            yield Change("bounds", what + said, "on its mean", float(noise.mean[index]), float(after.mean[index]))
            return


def _of_complete_rows(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
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
    complete = replace(setting.typical, schema=schema.with_columns(dropping, row_norm=_own_row_norm(schema)))
    named = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} columns"
    share = f"if {_COMPLETE_ROWS:.0%} of the rows are complete (the release then describes these)"
    what = f"missing: drop for {named}, {share}"
    yield from _compared("complete", what, noise, _planned(replace(setting, typical=complete, n_rows=n_rows)))


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


def _of_size(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
    symbol = "ρ" if setting.budget.kind is BudgetKind.ZCDP else "ε"
    double = 2.0 * setting.size_of_budget
    if double <= MAX_LOSS:
        more = _planned(setting.with_budget(double))
        yield from _compared("budget", f"twice the budget ({symbol} = {double:.4g})", noise, more)
    rows = _planned(replace(setting, n_rows=2 * setting.n_rows))
    yield from _compared("rows", f"twice the rows ({2 * setting.n_rows:,})", noise, rows)


def _with_delta(setting: ReleasePlan, noise: ForecastNoise) -> Iterator[Change]:
    if setting.budget.kind is not BudgetKind.PURE:
        return
    budget = PrivacyBudget.approximate(setting.budget.epsilon, _SMALL_DELTA)
    after = _planned(replace(setting, budget=budget, rivals=tuple(kind() for kind in _GAUSSIAN)))
    yield from _compared("delta", f"δ = {_SMALL_DELTA:g} in addition to ε", noise, after)


def _without(typical: TypicalTable, names: set[str]) -> TypicalTable | None:
    """Drop columns, and the features derived from them."""
    schema = typical.schema
    kept = [
        column
        for column in schema.columns
        if column.name not in names
        and not (isinstance(column, DerivedColumn) and any(factor.name in names for factor in column.factors))
    ]
    indices = [index for index, name in enumerate(typical.columns) if name in {column.name for column in kept}]
    try:
        less = schema.with_columns(kept, row_norm=_own_row_norm(schema))
    except ValueError:
        return None
    return replace(
        typical,
        schema=less,
        standard_deviations=typical.standard_deviations[indices],
        means=typical.means[indices],
        assumed=typical.assumed[indices],
        shares=typical.shares[indices],
        columns=tuple(typical.columns[index] for index in indices),
    )


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
            raise InputValueError(Message("accuracy-needed"))
        for name, value in (("correlation", correlation), ("coefficient", coefficient)):
            if value is not None:
                _positive(name, value)
                if len(typical.features_of_columns) < 2:
                    raise InputValueError(Message("accuracy-of-two-columns", parameter=name))
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
            raise InputValueError(Message("not-within-rows", most=_MAX_ROWS))
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
        raise InputValueError(Message("not-within-budget", symbol=symbol, most=_MAX_BUDGET))
    most, least = _MAX_BUDGET, _MIN_BUDGET
    while most > least * (1.0 + _FINENESS):
        middle = math.sqrt(least * most)
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def _holds(setting: ReleasePlan, wanted: Wanted) -> bool:
    """Return True if a plan exists (a budget can be too small) and reaches what is wanted."""
    try:
        noise = setting.noise
    except (ValueError, OverflowError):
        return False
    if noise is None:
        raise InputValueError(Message("original-units-unknown-for", mechanism=setting.mechanism.name))
    return wanted.holds(noise)


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
            raise InputValueError(Message("accuracy-without-feature", parameter=what))
        return dict.fromkeys(sorted(known), _positive(what, given))
    if wrong := sorted(set(given) & others, key=str):
        instead = "mean or sd" if what == "share" else "share"
        raise InputValueError(Message("accuracy-of-other-kind", parameter=what, names=[*wrong], instead=instead))
    if unknown := sorted(set(given) - known, key=str):
        raise InputValueError(Message("unknown-names-in", parameter=what, names=[*unknown], known=sorted(known)[:20]))
    return {name: _positive(f"{what} of {name!r}", value) for name, value in given.items()}


def _positive(what: str, value: float) -> float:
    if not (is_finite_number(value) and value > 0.0):
        raise InputValueError(Message("not-positive", parameter=what, value=value))
    return float(value)
