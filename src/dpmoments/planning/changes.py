"""Changes that would lower the noise, each planned in full, and the rows or budget needed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpmoments.analysis.answers import Column, plain, rounded
from dpmoments.analysis.goals import GoalResult, Goals
from dpmoments.base.errors import InputValueError, listed, shown
from dpmoments.base.values import is_finite_number
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.typical_table import USUAL_EFFECT, TypicalTable
from dpmoments.privacy.budget import MAX_LOSS, BudgetKind, PrivacyBudget
from dpmoments.schema.columns import Numeric
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import longest_row_norm
from dpmoments.schema.goals import Goal
from dpmoments.schema.schema import Schema

_DIGITS = (*range(100, 200, 5), *range(200, 500, 10), *range(500, 1000, 20))
_SIZES = (*(float(f"{digits}e{power}") for power in range(-7, 0) for digits in _DIGITS), 100.0)
"""Budgets that are tried, at most 5 % apart, in the digits that are printed."""
_ROWS = tuple(digits * 10**power for power in range(10) for digits in _DIGITS)


def expected(plan: ReleasePlan, goals: Sequence[Goal]) -> tuple[GoalResult, ...] | None:
    """Return what a planned release would state; None if that is not known."""
    try:
        likely = plan.likely
    except (ValueError, OverflowError):  # no such release can be planned
        return None
    if not plan.mean or likely[0].release.noise is None:
        return None
    several = [noise.results(goals) for noise in likely]
    return tuple(map(_mean, zip(*several, strict=True)))


def _mean(results: Sequence[GoalResult]) -> GoalResult:
    """Return the mean of several results; the worst if their cells are not the same."""
    worst = max(results, key=lambda result: result.reached)
    if any(result.cells != worst.cells for result in results):
        return worst
    return replace(worst, half_widths=np.mean([result.half_widths for result in results], axis=0))


def _met(plan: ReleasePlan, goals: Sequence[Goal]) -> bool:
    # one goal after the other: the first that is missed decides
    return all((results := expected(plan, [goal])) is not None and bool(results[0].met) for goal in goals)


def smallest(sizes: Sequence[float], start: float, met: Callable[[float], bool]) -> float | None:
    """Return the smallest size that is enough; None if none is."""
    low, high, index, factor = -1, len(sizes), bisect_left(sizes, start), 2.0
    while high - low > 1:
        index = min(max(index, low + 1), high - 1)
        low, high = (low, index) if met(sizes[index]) else (index, high)
        index = (low + high) // 2
        if low < 0 or high == len(sizes):
            index = bisect_left(sizes, sizes[high] / factor if low < 0 else sizes[low] * factor)
            factor **= 2
    return sizes[high] if high < len(sizes) else None


@dataclass(frozen=True, eq=False, repr=False)
class ForecastGoals(Goals):
    """Goals against what a planned release would state, and the budget that each takes.

    Attributes
    ----------
    setting : ReleasePlan
    budgets : tuple of float or None
        Smallest ε (at this δ), or ρ, that meets each goal; None if 100 is not enough.
    """

    setting: ReleasePlan
    budgets: tuple[float | None, ...]
    size: ClassVar[str] = "expected"

    facts: ClassVar[tuple[str, ...]] = (*Goals.facts, "budget_for_all", "rows_for_all", "dear: dear.question")

    @classmethod
    def of(cls, setting: ReleasePlan, goals: Sequence[Goal]) -> ForecastGoals | None:
        """Return the goals of a plan; None without goals, or if its noise is unknown."""
        results = expected(setting, goals) if goals else None
        if results is None:
            return None

        def needed(goal: Goal, start: float) -> float | None:
            return smallest(_SIZES, start, lambda size: _met(setting.with_budget(size), [goal]))

        budgets, start = list[float | None](), setting.size_of_budget
        for goal in goals:
            budgets.append(needed(goal, start))
            start = budgets[-1] or start
        return cls(results, setting, tuple(budgets))

    def at(self, size: float) -> ForecastGoals:
        """Return the goals at another budget that meets them."""
        setting = self.setting.with_budget(size)
        results = expected(setting, self.goals)
        assert results is not None, "the goals were met there"
        return replace(self, results=results, setting=setting)

    @property
    def goals(self) -> list[Goal]:
        """The goals."""
        return [result.goal for result in self.results]

    @cached_property
    def budget_for_all(self) -> float | None:
        """Smallest ε (at this δ), or ρ, that meets all goals; None if 100 is not enough."""
        # The largest of these, unless the noise jumps.
        known = [budget for budget in self.budgets if budget is not None]
        if len(known) < len(self.budgets):
            return None
        sizes = (size for size in _SIZES if size >= max(known))
        return next((size for size in sizes if _met(self.setting.with_budget(size), self.goals)), None)

    @cached_property
    def rows_for_all(self) -> int | None:
        """Smallest number of rows that meets all goals at this budget; None if 10¹² are not enough."""
        setting, goals = self.setting, self.goals
        found = smallest(_ROWS, setting.n_rows, lambda rows: _met(replace(setting, n_rows=int(rows)), goals))
        return None if found is None else int(found)

    @property
    def dear(self) -> Goal:
        """The goal that takes the largest budget."""
        sizes = [math.inf if budget is None else budget for budget in self.budgets]
        excess = [result.reached / result.goal.margin for result in self.results]
        return max(zip(sizes, excess, self.goals, strict=True), key=lambda each: each[:2])[2]

    def _columns(self) -> list[Column]:
        said = ["none" if budget is None else f"{budget:.3g}" for budget in self.budgets]
        name = {"ε": "epsilon", "ρ": "rho"}[self.setting.symbol]
        return [*super()._columns(), Column(name, [*self.budgets], f"{self.setting.symbol} needed", said)]

    @property
    def remarks(self) -> tuple[str, ...]:
        symbol, size, several = self.setting.symbol, self.budget_for_all, len(self.results) > 1
        rows = ""
        if not self.met and self.rows_for_all is not None:
            rows = f"{self.rows_for_all:,} rows at {self.setting.budget_text}"
        if size is None:
            lost = [goal for goal, budget in zip(self.goals, self.budgets, strict=True) if budget is None]
            least = expected(self.setting.with_budget(_SIZES[-1]), lost) or ()
            at_best = ", ".join(f"{best.goal.question} is {best.text(best.reached)}" for best in least)
            said = f"no budget meets all goals: at {symbol} = {_SIZES[-1]:g}, {at_best}{rows and f'; {rows} would'}"
        else:
            said = f"{'all goals take' if several else 'it takes'} {symbol} = {size:.3g}{rows and f', or {rows}'}"
            said += f"; {self.dear.question} takes most" if several else ""
        return (*super().remarks, said)


_MAX_RATIO = 0.92
"""Maximum remaining fraction of the noise for a change to be listed."""
_SMALL_DELTA = 1e-9
_NAMED = 3
_COMPLETE_ROWS = 0.75
"""Assumed share of rows without a missing value, if rows with one are dropped."""
_MAX_CHANGES = 6
_WEIGHT = 4.0
"""Weight that is tried on columns, or means, that a goal names."""
_FEW_COLUMNS = 100
"""Number of columns above which one of them makes no noticeable difference."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of the plan, with the noise before and after it.

    Noise is infinite if a release would state no number.
    """

    # `column`, `columns`, `bounds`, `complete`, `budget`, `rows`, `delta`, `weight`, `mean_weight`, `design_effect`,
    # `derived` or `products`
    kind: str
    what: str  # description
    measure: str  # quantity that has the noise: the median correlation of the remaining columns, or another
    before: float  # with `after`: noise SDs
    after: float
    why: str = ""  # reason for more than the change by itself explains

    @property
    def ratio(self) -> float:
        """Remaining fraction of the noise."""
        return self.after / self.before

    def __str__(self) -> str:
        before, after = (rounded(noise, noise) for noise in (self.before, self.after))
        noise = f"± {before} → {after}" if math.isfinite(self.before) else f"noise → ± {after}"
        return f"{self.what}: {noise} {self.measure}{self.why and f' ({self.why})'}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {**asdict(self), "before": plain(self.before, finite=True), "ratio": self.ratio}


def changes(setting: ReleasePlan, goals: Sequence[Goal] = (), dear: Goal | None = None) -> tuple[Change, ...]:
    """List changes that help noticeably, best first, with at most one column to leave out.

    With goals, they are measured by the one that takes the largest budget, and leave out no column that a goal names.
    """
    if setting.noise is None:
        return ()
    offered, found = _offered(setting, goals, dear), list[Change]()
    if dear is None:
        compared = (_compared(setting, *each) for each in offered)
        found += [change for change in compared if change is not None]
        if (tighter := _tighter_bounds(setting)) is not None:
            what, index, narrow = tighter
            before = float(setting.noise.mean[index])
            if (after := narrow.known_noise) is not None and before > 0.0:
                found.append(Change("bounds", what, "on its mean", before, float(after.mean[index])))

    # Half-widths of the interval that takes the largest budget.
    elif (known := expected(setting, [dear])) is not None and known[0].reached > 0.0:
        unit = 100.0 if dear.relative else 1.0
        measure = f"{'% ' if dear.relative else ''}on {dear.question}"
        for kind, what, changed in offered:
            results = None if changed is None else expected(changed, goals)
            if results is not None and math.isfinite(reached := results[goals.index(dear)].reached):
                why = "meets all goals" if all(result.met for result in results) else ""
                found.append(Change(kind, what, measure, unit * known[0].reached, unit * reached, why))

    found = sorted((change for change in found if change.ratio <= _MAX_RATIO), key=lambda change: change.ratio)
    columns = [change for change in found if change.kind == "column"]
    return tuple([change for change in found if change not in columns[1:]][:_MAX_CHANGES])


def _offered(
    setting: ReleasePlan, goals: Sequence[Goal], dear: Goal | None
) -> Iterator[tuple[str, str, ReleasePlan | None]]:
    """Yield kind, description and changed plan of each change; no plan if it cannot be made."""
    typical, schema, budget, n_rows = setting.typical, setting.typical.schema, setting.request.budget, setting.n_rows
    columns = schema.table_columns
    needed = {name for goal in goals for name in goal.columns(schema.columns)}
    spare = [column for column in columns if column.name not in needed]

    for column in _costliest(typical, columns) if 1 < len(columns) <= _FEW_COLUMNS and len(spare) > 1 else ():
        if column in spare:
            yield "column", f"without {column.name}", _without(setting, {column.name})
    if goals and spare:
        named = listed([column.name for column in spare], quoted=False)
        yield "columns", f"without {named}, which no goal names", _without(setting, {column.name for column in spare})
    if not goals:
        kept = (len(columns) + 1) // 2
        less = _without(setting, {column.name for column in columns[kept:]}) if len(columns) >= 4 else None
        yield "columns", f"only half of the columns (for example the first {kept})", less

    names = [column.name for column in columns if column.missing == "available"]
    if names and not {*names} & {factor.name for derived in schema.derived_columns for factor in derived.factors}:
        rules: dict[str, dict[str, Any]] = {name: {"missing": "drop"} for name in names}
        for column in columns:
            if column.name in names and getattr(column, "fill", None) is not None:
                rules[column.name]["fill"] = None
        dropping = [replace(column, **rules.get(column.name, {})) for column in schema.columns]
        complete = _with_columns(setting, dropping)
        share = complete.typical.kept_share if any(name in typical.missing for name in names) else _COMPLETE_ROWS
        rows = n_rows if share == complete.typical.kept_share else int(share * n_rows)
        named = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} columns"
        words = f"missing: drop for {named}, if {share:.0%} of the rows are complete (the release then describes these)"
        yield "complete", words, replace(complete, n_rows=rows) if rows else None

    double = 2.0 * setting.size_of_budget
    more = setting.with_budget(double) if double <= MAX_LOSS else None
    yield "budget", f"twice the budget ({setting.symbol} = {double:.4g})", more
    yield "rows", f"twice the rows ({2 * n_rows:,})", replace(setting, n_rows=2 * n_rows)
    if budget.kind is BudgetKind.PURE and BudgetKind.APPROXIMATE in setting.mechanism.budget_kinds:
        with_delta = PrivacyBudget.approximate(budget.epsilon, _SMALL_DELTA)
        yield "delta", f"δ = {_SMALL_DELTA:g} in addition to ε", setting.under(with_delta)

    if schema.sampling_weight is not None and schema.sampling_weight.is_released:
        stated = schema.to_dict()
        stated["columns"][-1]["design_effect"] = USUAL_EFFECT
        words = f"design_effect of {schema.sampling_weight.name}, if the survey's documentation has one"
        yield "design_effect", words, _stated(setting, stated)

    if dear is not None:
        named_columns = dear.columns(schema.columns)
        if (tighter := _tighter_bounds(setting, named_columns)) is not None:
            yield "bounds", tighter[0], tighter[2]
        weighted = schema.to_dict()
        for column in weighted["columns"]:
            if column.get("name") in named_columns:
                column["weight"] = _WEIGHT * column.get("weight", 1.0)
        yield (
            "weight",
            f"weight: {_WEIGHT:g} on {listed(sorted(named_columns), quoted=False)}",
            _stated(setting, weighted),
        )
        if dear.kind in ("mean", "share"):
            by_mean = schema.to_dict() | {"mean_weight": _WEIGHT * schema.mean_weight}
            yield "mean_weight", f"mean_weight: {_WEIGHT * schema.mean_weight:g}", _stated(setting, by_mean)


def _stated(setting: ReleasePlan, values: Mapping[str, Any]) -> ReleasePlan | None:
    """Return the plan for the schema of a file with these values; None if there can be none."""
    try:
        return replace(setting, typical=setting.typical.for_schema(Schema.from_dict(values)))
    except ValueError:  # this column, or these columns together, can have no weight
        return None


def _compared(setting: ReleasePlan, kind: str, what: str, changed: ReleasePlan | None) -> Change | None:
    """Compare the median noise on the remaining numbers' correlations, or their means in SDs."""
    before, after = setting.noise, None if changed is None else changed.known_noise
    if before is None or after is None:
        return None
    names, left = before.typical.schema.feature_names, after.typical.schema.feature_names
    stay = [name for name in left if name in names]
    chosen, those = [left.index(name) for name in stay], [names.index(name) for name in stay]
    now, then = before.typical_correlation(those), after.typical_correlation(chosen)
    measure, why = "on a correlation", []
    if not math.isfinite(then):
        of = ~before.typical.shares[those]  # as for correlations, shares count only if there is no number
        of |= not of.any()
        now = float(np.median(before.mean_in_deviations[those][of]))
        then = float(np.median(after.mean_in_deviations[chosen][of]))
        measure = "sd on a mean"
    elif math.isinf(now):
        lost = [name for name in before.hidden_features if name in stay and name not in after.hidden_features]
        why.append(f"noise no longer hides how much {listed(lost, quoted=False)} vary" if lost else "no longer hidden")
    if not (math.isfinite(then) and now > 0.0):
        return None
    if before.release.mechanism != after.release.mechanism:
        why.append(f"by {after.release.mechanism}")
    among = {"column": " of the others", "columns": " of those"}.get(kind, "")
    return Change(kind, what, measure + among, now, then, "; ".join(why))


def cost_of_derived(setting: ReleasePlan) -> Change | None:
    """Return the noise on other features without the derived ones; None if nothing is derived."""
    names = {column.name for column in setting.typical.schema.derived_columns}
    if not names:
        return None
    return _compared(setting, "derived", f"without {', '.join(sorted(names))}", _without(setting, names))


def cost_of_products(setting: ReleasePlan, columns: Sequence[str]) -> Change | None:
    """Return what products for robust standard errors cost; None if the schema has them."""
    schema = setting.typical.schema
    more = schema.with_products(columns)
    if not (added := [column.name for column in more.columns if column not in schema.columns]):
        return None
    what = f"with {', '.join(added)}, for robust standard errors"
    return _compared(setting, "products", what, replace(setting, typical=setting.typical.for_schema(more)))


def _costliest(typical: TypicalTable, columns: Sequence[SchemaColumn]) -> list[SchemaColumn]:
    """Return, of similar columns, those with the largest spread."""
    encoding = typical.schema.encoding(mean=True)
    deviations = typical.standard_deviations / encoding.scale
    spread = {
        column.name: np.sum(deviations[list(typical.features_of_columns[column.name])] ** 2) for column in columns
    }
    alike: dict[tuple[object, ...], SchemaColumn] = {}
    for column in sorted(columns, key=lambda column: -float(spread[column.name])):
        needed = sum(column in derived.factors for derived in typical.schema.derived_columns)
        size, weight = len(column.feature_names), getattr(column, "weight", None)
        alike.setdefault((type(column), size, column.missing, needed, weight), column)
    return [column for column in columns if column in alike.values()]


def _without(setting: ReleasePlan, names: set[str]) -> ReleasePlan | None:
    """Drop columns, and the features derived from them."""
    kept = [
        column
        for column in setting.typical.schema.columns
        if column.name not in names
        and not (isinstance(column, DerivedColumn) and any(factor.name in names for factor in column.factors))
    ]
    try:
        return _with_columns(setting, kept)
    except ValueError:  # nothing is left
        return None


def _tighter_bounds(setting: ReleasePlan, among: Collection[str] | None = None) -> tuple[str, int, ReleasePlan] | None:
    """Plan half the range, about its mean, of the noisiest numeric column that can have it."""
    typical, schema, noise = setting.typical, setting.typical.schema, setting.noise
    if noise is None or len(schema.table_columns) > _FEW_COLUMNS:
        return None
    factors = {factor.name for derived in schema.derived_columns for factor in derived.factors}
    columns = {
        schema.feature_names.index(column.name): column
        for column in schema.columns
        if isinstance(column, Numeric) and column.scale is None and column.name not in factors
        if among is None or column.name in among
    }
    for index in sorted(columns, key=lambda index: -float(noise.mean_in_deviations[index])):
        column = columns[index]
        lower, upper = column.bounds
        width, mean = (upper - lower) / 2.0, float(typical.means[index])
        if 4.0 * float(typical.standard_deviations[index]) > width:
            continue
        least = min(max(mean - width / 2.0, lower), upper - width)
        try:
            tight = replace(column, lower=least, upper=least + width)
        except ValueError:  # a typical range may lie outside
            continue
        stated = [tight if known is column else known for known in schema.columns]
        what = f"half the range of {column.name}, if public knowledge allows"
        return what, index, _with_columns(setting, stated)
    return None


def _with_columns(setting: ReleasePlan, columns: Sequence[SchemaColumn]) -> ReleasePlan:
    """Return the plan for these columns; a bound that is not the longest possible row stays."""
    schema = setting.typical.schema
    own = schema.row_norm is None or not math.isclose(schema.row_norm, longest_row_norm(schema.columns), rel_tol=1e-9)
    return replace(setting, typical=setting.typical.for_schema(schema.with_columns(columns, row_norm=own)))


_DOUBLINGS = 20
_MAX_BUDGET = 100.0
_MIN_BUDGET = 1e-9
_FINENESS = 1e-6
"""Relative precision of the smallest budget, from above."""
_MAX_ROWS = 10**12


class Wanted:
    """Noise SDs to reach, all of them; one number applies to all features of its kind."""

    def __init__(
        self,
        typical: TypicalTable,
        *,
        correlation: float | None = None,
        coefficient: float | None = None,
        mean: float | Mapping[str, float] | None = None,
        sd: float | Mapping[str, float] | None = None,
        share: float | Mapping[str, float] | None = None,
    ) -> None:
        if all(entry is None for entry in (correlation, coefficient, mean, sd, share)):
            raise InputValueError(
                "say what is wanted: correlation=0.02, mean={'age': 0.5}, sd=…, share=0.01 or coefficient=0.05"
            )
        for name, value in (("correlation", correlation), ("coefficient", coefficient)):
            if value is not None:
                positive(name, value)
                if len(typical.features_of_columns) < 2:
                    raise InputValueError(f"{name} needs two columns, but the schema has one")
        self._correlation, self._coefficient = (limit or math.nan for limit in (correlation, coefficient))
        features = typical.schema.feature_names
        shares = {name for name, is_share in zip(features, typical.shares, strict=True) if is_share}
        numbers = {*features} - shares
        self._of_features = list[tuple[str, int, float]]()
        for what, given, known, others in (
            ("mean", mean, numbers, shares),
            ("sd", sd, numbers, shares),
            ("share", share, shares, numbers),
        ):
            if given is None:
                continue
            if isinstance(given, Mapping):
                if wrong := sorted(set(given) & others, key=str):
                    instead = "mean or sd" if what == "share" else "share"
                    raise InputValueError(f"{what} of {listed(wrong)}: ask for {instead} there")
                if unknown := sorted(set(given) - known, key=str):
                    raise InputValueError(f"{what} names {listed(unknown)}: use {listed(sorted(known)[:20])}")
                limits = {name: positive(f"{what} of {name!r}", value) for name, value in given.items()}
            elif known:
                limits = dict.fromkeys(sorted(known), positive(what, given))
            else:
                raise InputValueError(f"{what}: the schema has no such feature")
            self._of_features += [(what, features.index(name), limit) for name, limit in limits.items()]

    def holds(self, setting: ReleasePlan) -> bool:
        """Return True if a plan exists (a budget can be too small) and reaches all of them."""
        noise = setting.known_noise
        if noise is None or noise.typical_correlation() > self._correlation or noise.coefficient > self._coefficient:
            return False
        # A noise-dominated standard deviation is not reached.
        deviations = np.where(noise.description.deviation_limits > 0.0, math.inf, noise.standard_deviation)
        reached = {"mean": noise.mean, "share": noise.mean, "sd": deviations}
        return all(reached[what][index] <= limit for what, index, limit in self._of_features)


def positive(what: str, value: float) -> float:
    """Return a positive finite number, or raise ValueError."""
    if not (is_finite_number(value) and value > 0.0):
        raise InputValueError(f"{what}: {shown(value)} must be a positive finite number")
    return float(value)


def rows_needed(setting: ReleasePlan, wanted: Wanted) -> int:
    """Find the smallest number of rows with noise that small."""
    found = smallest(range(1, _MAX_ROWS + 1), setting.n_rows, lambda n: wanted.holds(replace(setting, n_rows=int(n))))
    if found is None:
        raise InputValueError(f"not within {_MAX_ROWS:.0e} rows: give a larger budget, or ask for less")
    return int(found)


def budget_needed(setting: ReleasePlan, wanted: Wanted) -> float:
    """Find the smallest ε (at the setting's δ), or ρ, with noise that small."""
    if not wanted.holds(setting.with_budget(_MAX_BUDGET)):
        raise InputValueError(
            f"not within {setting.symbol} ≤ {_MAX_BUDGET:g}: more rows, fewer columns or tighter bounds would do more"
        )
    most, least = _MAX_BUDGET, _MIN_BUDGET
    while most > least * (1.0 + _FINENESS):
        middle = math.sqrt(least * most)
        least, most = (least, middle) if wanted.holds(setting.with_budget(middle)) else (middle, most)
    return most


def takes_to_read(setting: ReleasePlan) -> str:
    """Return a sentence on the budget, or the rows, at which a number can be read."""
    # Of doublings: within a factor of two.
    sizes = [size for times in range(1, _DOUBLINGS) if (size := 2.0**times * setting.size_of_budget) <= MAX_LOSS]
    budgets = [(plan.budget_text, plan) for plan in map(setting.with_budget, sizes)]
    counts = [2**times * setting.n_rows for times in range(1, _DOUBLINGS)]
    rows = [(f"{count:,} rows", replace(setting, n_rows=count)) for count in counts]
    enough = (next((what for what, plan in ways if plan.is_readable), "") for ways in (budgets, rows))
    found = " or ".join(filter(None, enough))
    return f"It would take about {found}." if found else ""
