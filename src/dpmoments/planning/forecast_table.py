"""Forecast as it is shown: columns in original units, what to change, then all mechanisms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from dpmoments.analysis.answers import Answer, Column, plain
from dpmoments.base.errors import InputKeyError, InputValueError
from dpmoments.base.message import Message
from dpmoments.base.wordings import percent
from dpmoments.mechanisms.counts import FindingPlan
from dpmoments.mechanisms.registry import make_mechanism, unknown_mechanism
from dpmoments.planning.changes import Change, ForecastGoals, Wanted, budget_needed, rows_needed
from dpmoments.planning.forecast_noise import IN_HOW_MANY, ForecastNoise, ReleasePlan
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    OPPOSITE,
    SECONDARY,
    SHADE,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    legend_below,
)
from dpmoments.privacy.budget import MAX_LOSS, BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmoments.planning.ways import Ways


_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets of the plot, relative to that of the forecast."""
_MARKS = (("o", CERTAIN), ("s", OPPOSITE))
_SIZES = {0.1: "weak", 0.3: "moderate", 0.5: "strong"}
"""Conventions of Cohen (1988)."""
MEANING = f"In {IN_HOW_MANY}, for half of the pairs, despite privacy noise and sampling error. Shaded: stays hidden."
_LOWEST_TOP = 0.35
"""Lowest top of the axis: a moderate correlation is in the picture."""


def clear_by_budget(setting: ReleasePlan) -> dict[str, dict[str, float]]:
    """Return the smallest correlations of clear sign, by budget and kind of pair."""
    plans = [setting.with_budget(size) for f in _FACTORS if (size := f * setting.size_of_budget) <= MAX_LOSS]
    known = {plan.budget_text: plan.known_noise for plan in plans}
    return {budget: {} if noise is None else noise.smallest_between for budget, noise in known.items()}


def plot_clear(setting: ReleasePlan, title: str, ax: Axes | None) -> Axes:
    """Plot the smallest correlation whose sign would be clear, against the budget."""
    by_budget = clear_by_budget(setting)
    grow = ax is None
    ax = axes_of(ax, 5.6, 3.4)
    places = np.arange(len(by_budget))
    asked = by_budget[setting.budget_text]
    sizes = {kind: np.array([smallest.get(kind, math.inf) for smallest in by_budget.values()]) for kind in asked}
    everything = np.concatenate([*sizes.values()])
    top = 1.0 if np.isinf(everything).any() else min(max(_LOWEST_TOP, 1.15 * float(everything.max())), 1.0)

    hidden = np.minimum(np.min([*sizes.values()], axis=0), top)
    ax.fill_between(places, 0.0, hidden, color=SHADE, linewidth=0.0, zorder=0)
    for (kind, smallest), (marker, color) in zip(sizes.items(), _MARKS, strict=False):
        none = np.isinf(smallest)
        ax.plot(places, np.where(none, top, smallest), ":", color=color, linewidth=1.6)
        ax.plot(places, np.where(none, math.nan, smallest), f"{marker}-", color=color, label=f"between {kind}")
        ax.plot(places[none], np.full(none.sum(), top), marker, color=color, markerfacecolor="white", clip_on=False)
    for size, word in _SIZES.items():
        if size <= top:
            ax.axhline(size, color=SECONDARY, linestyle=":", linewidth=0.8, zorder=0)
            ax.text(places[-1] + 0.22, size, f"{word}\n", va="center", ha="right", fontsize=SMALL_TEXT, color=SECONDARY)
    ax.axvline([*by_budget].index(setting.budget_text), color=INK, linestyle="--", linewidth=1.2, label="asked for")
    ax.set_ylim(0.0, top)
    ax.set_xlim(-0.25, places[-1] + 0.25)
    ax.set_xticks(places, labels=[budget.partition(",")[0] for budget in by_budget])
    ax.tick_params(labelsize=SMALL_TEXT)
    ax.set_ylabel("smallest correlation of clear sign", fontsize=TEXT_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    entitle(ax, title, MEANING, "Hollow: no sign is clear." if np.isinf(everything).any() else "", grow=grow)
    return ax


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Forecast for one mechanism."""

    mechanism: str


RowType = TypeVar("RowType", bound=Row)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ByMechanism(Answer, Generic[RowType]):
    """Forecasts of every mechanism for one table and budget, the smallest error first."""

    rows: tuple[RowType, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    privacy_unit: PrivacyUnit | None = None
    of_means: ClassVar[bool] = False

    facts: ClassVar[tuple[str, ...]] = (
        "n_rows",
        "budget: budget.to_dict",
        "neighbors: neighbors.value",
        "protected_unit",
    )

    def __iter__(self) -> Iterator[RowType]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, mechanism: str) -> RowType:
        """Return the row of the named mechanism."""
        by_name = {row.mechanism: row for row in self.rows}
        if mechanism in by_name:
            return by_name[mechanism]
        raise InputKeyError(unknown_mechanism(mechanism, [*by_name], of_means=self.of_means))

    @property
    def rows_text(self) -> str:
        """Noun for ``n_rows``."""
        return "rows" if self.privacy_unit is None else self.privacy_unit.rows_text

    @property
    def protected_unit(self) -> Any:
        """The privacy unit as plain values."""
        return "row" if self.privacy_unit is None else self.privacy_unit.to_dict()


_NEEDED = {
    frozenset({BudgetKind.PURE}): "ε alone",
    frozenset({BudgetKind.APPROXIMATE}): "δ > 0",
    frozenset({BudgetKind.ZCDP}): "ρ",
    frozenset({BudgetKind.APPROXIMATE, BudgetKind.ZCDP}): "δ > 0 or ρ",
    frozenset({BudgetKind.PURE, BudgetKind.APPROXIMATE}): "ε",
    frozenset({BudgetKind.PURE, BudgetKind.ZCDP}): "ε alone or ρ",
}


@dataclass(frozen=True, slots=True)
class ForecastRow(Row):
    """Forecast for one mechanism: root mean square errors before repair.

    They are of noise and of clipped typical rows.
    """

    correlation_error: float | None = None  # over pairs of columns; None if unknown
    mean_error: float | None = None  # over features, in typical standard deviations; None if unknown
    # without a mean, as papers compare mechanisms: ‖Ĝ − G‖_F/n in encoded units; None if unknown
    second_moment_error: float | None = None
    arithmetic: str | None = None  # arithmetic of the guarantee
    refusal: str | None = None  # reason why the mechanism cannot run
    short_refusal: str | None = None  # the refusal in a few words
    chosen_because: Message | None = None  # why `auto` chose its mechanism

    @property
    def errors(self) -> tuple[float, float, float]:
        """Errors by which mechanisms are compared, the first known decides; infinite if unknown."""
        known = (self.correlation_error, self.mean_error, self.second_moment_error)
        first, second, third = (math.inf if error is None else error for error in known)
        return first, second, third

    @property
    def is_known(self) -> bool:
        """True if an error is known."""
        return any(map(math.isfinite, self.errors))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        entries = {name: value for name, value in asdict(self).items() if name != "short_refusal"}
        return entries | {"chosen_because": None if self.chosen_because is None else self.chosen_because.to_dict()}


def short_refusal(setting: ReleasePlan, refusal: str) -> str:
    """Return a refusal in a few words."""
    mechanism, schema = setting.mechanism, setting.typical.schema
    if setting.request.budget.kind not in mechanism.budget_kinds:
        return f"needs {_NEEDED[mechanism.budget_kinds]}"
    if mechanism.most_features is not None and schema.n_features > mechanism.most_features:
        return f"takes at most {mechanism.most_features} feature"
    if mechanism.needs_row_norm and schema.row_norm is None:
        return "needs bounds on every column"
    words = re.sub(rf"^(mechanism )?'?{re.escape(mechanism.name)}'? ", "", refusal)
    return re.split(r"[:(;]|\. ", words)[0].strip()


class _Mechanisms(Answer):
    """The table of mechanisms, with the lines above and below it."""

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast

    @property
    def heading(self) -> tuple[str, ...]:
        what = "typical rows" if self._forecast.mean else "encoded units"
        return (f"Error of every mechanism (root mean square over all features or pairs, {what}, before repair)",)

    def _columns(self) -> list[Column]:
        rows = [row for row in self._forecast.rows if row.refusal is None]
        stated = {name: [getattr(row, name) for row in rows] for name in ForecastRow.__dataclass_fields__}
        errors = {"second_moment_error": "second moment"}
        if self._forecast.mean:
            errors = {"correlation_error": "correlations", "mean_error": "means, in sd"}
        return [
            Column("mechanism", stated["mechanism"], "mechanism", label=True),
            *(
                Column(name, stated[name], head, ["–" if error is None else f"{error:.2g}" for error in stated[name]])
                for name, head in errors.items()
            ),
            Column("arithmetic", stated["arithmetic"], "arithmetic"),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        forecast = self._forecast
        costs = [str(cost) for cost in (forecast.derived_cost, forecast.robust_cost) if cost is not None]
        chosen = [f"{row.mechanism}: {row.chosen_because.text('curator')}" for row in forecast if row.chosen_because]

        # Mechanisms that cannot run, by reason.
        reasons: dict[str, list[str]] = {}
        for row in forecast:
            if row.refusal is not None:
                reasons.setdefault(row.short_refusal or row.refusal, []).append(row.mechanism)
        refused = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
        return (*costs, *chosen, *([f"cannot run here: {refused}"] if refused else []))


_ABOUT_AS_MUCH = 1.05


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Forecast(ByMechanism[ForecastRow]):
    """Forecast of a release: noise in original units, and a row per mechanism, refusals last.

    Attributes
    ----------
    rows : tuple of ForecastRow
        Smallest error first.
    n_rows : int
        With a privacy unit, the number of rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    mechanism : str or None
        Mechanism of the numbers in original units: the one asked for, else ``auto``, else the best that can run.
    setting : ReleasePlan or None
        The release that these numbers are for; None if they are not known.
    goals : ForecastGoals or None
        Goals against what the release would state, and the budget that each takes; None without goals.
    changes : tuple of Change
        Changes that would lower the noise, best first: with goals, that of the goal which takes the largest budget.
    derived_cost : Change or None
        What the noise on other features would be without the derived ones; None if the schema has none.
    robust_cost : Change or None
        What the products for robust standard errors would cost; None if they were not asked for, or are all there.
    without_units : InputValueError
        Reason for missing numbers in original units.
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    mean : bool
        False if only the second moment is released.
    """

    mechanism: str | None = None
    setting: ReleasePlan | None = None
    goals: ForecastGoals | None = None
    changes: tuple[Change, ...] = ()
    derived_cost: Change | None = None
    robust_cost: Change | None = None
    without_units: InputValueError
    mean: bool = True

    @property
    def noise(self) -> ForecastNoise | None:
        """Noise in original units; None if it is not known."""
        return None if self.setting is None else self.setting.noise

    @property
    def best(self) -> str | None:
        """Mechanism with the least error, ``auto`` by the name of its choice; None if none is known."""
        known = [row for row in self.rows if row.is_known]
        return min(known, key=lambda row: (row.errors, row.mechanism == "auto")).mechanism if known else None

    def rows_needed(self, *, mechanism: str | None = None, **wanted: Any) -> int:
        """Find the smallest number of rows with noise as small as wanted, at this budget.

        Parameters
        ----------
        mechanism : str, optional
            Default: that of the forecast.
        **wanted
            Noise SDs: ``correlation=0.02``, ``coefficient=0.05`` for the typical ones; ``mean={"age": 0.5}``,
            ``sd={"age": 0.5}`` in original units, ``share={"smoker": 0.01}``; one number applies to all features. A 95
            % interval is ± 1.96 of them.

        Returns
        -------
        int
            By search over imagined releases. With a privacy unit, the number of rows that count.

        Raises
        ------
        ValueError
            If nothing is wanted, a name is unknown, or 10¹² rows are not enough.

        Examples
        --------
        >>> import dpmoments as dpm
        >>> schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("weight", 0, 200))
        >>> table = dpm.forecast(schema, n_rows=1000, epsilon=1.0, typical_sd={"age": 18, "weight": 15})
        >>> needed = table.rows_needed(correlation=0.02, mechanism="laplace")
        >>> again = dpm.forecast(schema, n_rows=needed, epsilon=1.0, typical_sd={"age": 18, "weight": 15})
        >>> again.noise_of("laplace").typical_correlation() <= 0.02
        True
        """
        return rows_needed(*self._wanted(mechanism, wanted))

    def epsilon_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """Find the smallest ε (at this δ) with noise as small as wanted, at this number of rows.

        Parameters
        ----------
        mechanism, **wanted
            As for :meth:`rows_needed`.

        Raises
        ------
        ValueError
            If ε = 100 is not enough, or the budget is in ρ.
        """
        if self.budget.kind is BudgetKind.ZCDP:
            raise InputValueError(f"the budget of the forecast is {self.budget}: use rho_needed")
        return budget_needed(*self._wanted(mechanism, wanted))

    def rho_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """Find the smallest ρ, as :meth:`epsilon_needed`, for a forecast made with ``rho``."""
        if self.budget.kind is not BudgetKind.ZCDP:
            raise InputValueError(f"the budget of the forecast is {self.budget}: use epsilon_needed")
        return budget_needed(*self._wanted(mechanism, wanted))

    def _wanted(self, mechanism: str | None, wanted: Mapping[str, Any]) -> tuple[ReleasePlan, Wanted]:
        setting = self._setting_of(mechanism)
        return setting, Wanted(setting.typical, **wanted)

    def ways(
        self, *, means: bool = False, tables: Sequence[Sequence[str]] = (), regressions: Sequence[Sequence[str]] = ()
    ) -> Ways:
        """Compare one release of everything with releases made for stated questions.

        Parameters
        ----------
        means : bool
            The means of all columns, which :func:`dpmoments.release_mean` also gives.
        tables : sequence of sequences of str
            Contingency tables by these columns, which :func:`dpmoments.release_counts` also gives: ``[["region", "sex"]]``.
        regressions : sequence of sequences of str
            Each a target and its regressors, which a release of these columns also gives: ``[["income", "age", "sex"]]``.

        Returns
        -------
        Ways
            The error of each way, and the best. Errors are noise SDs, on the forecast's assumptions.

        Raises
        ------
        ValueError
            If no question is stated, a column is unknown, or the noise is not known beforehand.
        TypeError
            If a name is given in place of a list of names.

        Examples
        --------
        >>> from dpmoments import Boolean, Numeric, Schema, forecast
        >>> schema = Schema(Numeric("age", 0, 120), Numeric("income", 0, 200_000), Boolean("smoker"), Boolean("insured"))
        >>> found = forecast(schema, n_rows=5000, epsilon=1.0).ways(tables=[["smoker", "insured"]])
        >>> found.best, round(found.ways[0].own_release, 2)
        ('release_counts(…)', 1.36)
        """
        from dpmoments.planning.ways import ways_to_answer

        return ways_to_answer(self._setting_of(None), self.title, means=means, tables=tables, regressions=regressions)

    def noise_of(self, mechanism: str) -> ForecastNoise:
        """Return the noise of a mechanism in original units.

        Raises
        ------
        ValueError
            If it cannot run, or its noise is not known beforehand.
        """
        noise = self._setting_of(mechanism).noise
        assert noise is not None
        return noise

    def _setting_of(self, mechanism: str | None) -> ReleasePlan:
        if self.setting is None:
            raise self.without_units.preceded_by("nothing is known in original units: ")
        setting = self.setting if mechanism is None else replace(self.setting, mechanism=make_mechanism(mechanism))
        if setting.noise is None:
            raise InputValueError(f"the noise of {setting.mechanism.name} in original units is not known beforehand")
        return setting

    @property
    def title(self) -> str:
        """Title: rows, budget and relation."""
        return f"Forecast for {self.n_rows:,} {self.rows_text}, {self.budget}, {self.neighbors}; no data read"

    @property
    def asked(self) -> str:
        """Budget and rows, as a sentence begins; empty without numbers in original units."""
        return "" if self.setting is None else f"At {self.setting.budget_text}, {self.n_rows:,} {self.rows_text}"

    @property
    def headline(self) -> str:
        """Kinds of numbers that could be read in a release; empty if that is not known."""
        return "" if self.noise is None else f"{self.asked}: {self.noise.readable_text}"

    @property
    def clear(self) -> str:
        """From which size on signs of correlations are clear; empty if unknown."""
        return "" if self.noise is None or not self.noise.n_pairs else f"{self.asked}: {self.noise.clear_text}"

    @property
    def heading(self) -> tuple[str, ...]:
        if self.noise is None:
            return self.title, f"no numbers in original units: {self.without_units}", *self.mechanisms.heading
        assert self.mechanism is not None
        assert self.best is not None
        pairs = zip(self[self.best].errors, self[self.mechanism].errors, ("correlations", "means", ""), strict=True)
        least, own, of = next(pair for pair in pairs if math.isfinite(pair[0]))
        compared = f"{self.best} has {least / own:.2g} times its error of {of}"
        if least * _ABOUT_AS_MUCH >= own:
            compared = f"none has a smaller error of {of}"
        in_units = "what describe() would show if the table is as assumed, in original units:"
        asked = () if self.goals is None else (self.goals.text(),)
        return self.title, self.headline, f"mechanism: {self.mechanism_text} ({compared})", *asked, in_units

    @property
    def mechanism_text(self) -> str:
        """Mechanism of the numbers in original units, with what ``auto`` takes."""
        assert self.setting is not None
        taken = self.setting.plan.mechanism.name
        return f"{self.mechanism}" if taken == self.mechanism else f"{self.mechanism}, which takes {taken}"

    @property
    def mechanisms(self) -> Answer:
        """The table of mechanisms."""
        return _Mechanisms(self)

    def _columns(self) -> Sequence[Column]:
        if self.noise is None:
            fields = ("mechanism", "second_moment_error", "arithmetic", "refusal")
            return [Column(name, [getattr(row, name) for row in self.rows]) for name in fields]
        return self.noise._columns()

    def table(self) -> Sequence[Sequence[str]]:
        """Return one line per feature: assumed mean and SD with their noise; else the mechanisms."""
        return self.mechanisms.table() if self.noise is None else self.noise.table()

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.noise is None:
            return self.mechanisms.remarks
        assert self.setting is not None
        costs, weight = list[str](), self.setting.typical.schema.sampling_weight
        if weight is not None:
            factor = "about 3 (cap over mean weight)" if weight.cost_factor is None else f"{weight.cost_factor:.3g}"
            costs.append(
                f"weights by {weight.name}: noise is {factor} times that of unweighted means and covariances, the effective "
                f"number of rows is {self.noise.release.effective_n:,.0f}"
            )
        return (*self.noise.remarks, *costs, *self.found_levels, self.helpful)

    @property
    def helpful(self) -> str:
        """Lines on the changes; empty if none helps noticeably."""
        lines = [f"what would help, with {self.mechanism}:", *(f"  {change}" for change in self.changes)]
        return "\n".join(lines) if self.changes else ""

    @property
    def found_levels(self) -> tuple[str, ...]:
        """From how many rows on a name is published, for each column whose levels a release finds."""
        assert self.setting is not None
        plan = FindingPlan.of(self.setting.typical.schema, self.setting.request)
        if plan is None:
            return ()

        def have_it(rows: int) -> str:
            if plan.privacy_unit is not None:  # of which one row counts
                return f"{rows:,} values of {plan.privacy_unit.column} have it"
            return f"{rows:,} rows ({percent(rows / self.n_rows)}) have it"

        return tuple(
            f"{column.name}: at most {column.max_levels:,} names, found with {percent(column.levels_share)} of the budget; a "
            f"name is published with probability 1/2 if {have_it(law.rows_for(0.5))}, and 99% if {have_it(law.rows_for(0.99))}"
            for column, law in zip(plan.columns, plan.laws, strict=True)
        )

    def text(self) -> str:
        """Return the columns and the mechanisms as text."""
        below = () if self.noise is None else (self.mechanisms.text(),)
        return "\n".join([super().text(), *below])

    def _repr_html_(self) -> str:
        """Return two escaped tables for notebooks."""
        return super()._repr_html_() + ("" if self.noise is None else self.mechanisms._repr_html_())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        costs = {"derived_cost": self.derived_cost, "robust_cost": self.robust_cost}
        result = super().to_dict() | {
            "mechanism": self.mechanism,
            "best": self.best,
            "mechanisms": [row.to_dict() for row in self.rows],
            **{name: None if cost is None else cost.to_dict() for name, cost in costs.items()},
            "goals": None if self.goals is None else self.goals.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
            "headline": self.headline,
            "found_levels": [] if self.setting is None else list(self.found_levels),
            "in_units": None,
        }
        if (noise := self.noise) is not None:
            regression = noise.regression
            result["in_units"] = {
                "columns": self.columns(),
                "readable": {what: list(counts) for what, counts in noise.readable.items()},
                "correlation": plain(noise.typical_correlation(), finite=True),
                "correlation_is_noise": math.isinf(noise.typical_correlation()),
                "coefficient": plain(noise.coefficient, finite=True),
                "coefficient_is_noise": math.isinf(noise.coefficient),
                "regressors": None if regression is None else regression.regressors,
                "target": None if regression is None else regression.target,
                "assumes": noise.typical.words,
            }
        return result

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the smallest correlation whose sign would be clear, by budget.

        Raises
        ------
        ValueError
            If nothing is known in original units, or no two columns can be correlated.
        """
        if self.setting is None or self.noise is None:
            raise self.without_units.preceded_by(
                "cannot plot this forecast: it has no numbers in original units, since "
            )
        if not self.clear:
            raise InputValueError("cannot plot this forecast: it is of correlations, and the schema has no two columns")
        return plot_clear(self.setting, self.clear, ax)
