"""Forecasts of releases of moments, means and tables of counts, without data or budget.

A forecast of moments is what the analyses say of an imagined release: the plan's run on typical rows
(:mod:`dpmoments.planning.typical_table`), without noise in its numbers (:mod:`dpmoments.spending.imagined`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from dpmoments.analysis.answers import Answer, Column, aligned, format_level, number
from dpmoments.base.checks import is_whole
from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.base.values import FloatArray
from dpmoments.base.wordings import percent
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.counts import Counts, CountsPlan, shape_of
from dpmoments.mechanisms.means.base import NormalRows
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.cells import CountNoise
from dpmoments.planning.changes import ForecastGoals, changes, cost_of_derived, cost_of_products, positive
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.forecast_table import ByMechanism, Forecast, ForecastRow, Row, short_refusal
from dpmoments.planning.typical_table import TypicalTable, checked_guesses
from dpmoments.privacy.budget import AskedPrivacy, PrivacyBudget, PrivacyRequest, takes_request
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.constraints import require_no_available, require_unweighted, schema_of_tables
from dpmoments.schema.goals import Goal, checked_goals
from dpmoments.schema.schema import Schema


@takes_request(AskedPrivacy)
def forecast(
    schema: Schema,
    *,
    n_rows: int,
    mean: bool = True,
    typical_sd: Mapping[str, float] | None = None,
    typical_mean: Mapping[str, float] | None = None,
    missing_share: Mapping[str, float] | None = None,
    robust: Sequence[str] | None = None,
    mechanism: str | None = None,
    goals: Sequence[str | Goal] | Mapping[str, float | str] | None = None,
    **asked: Unpack[AskedPrivacy],
) -> Forecast:
    """Forecast the noise on every column, what to change, and every mechanism's error.

    Only public numbers are used. The plan of a release is run on typical rows without noise in its answers, and the analyses
    of that imagined release say what noise to expect. The noise on a mean hardly depends on the table; that on a standard
    deviation or a correlation depends on how much a column varies. That is taken from ``typical_sd``, else from the schema's
    ``typical`` range, else it is a tenth of the range, and marked with ~. A mean is ``typical_mean``, else the schema's ``fill``
    (with ``missing="available"``) or the middle of the typical range, else at a quarter of the range. Numbers are noise SDs
    before repair, to first order, as ``release.describe()`` states them; ``docs/evidence/forecast-errors.md`` compares them
    with simulated releases.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        Expected number of rows; it only scales the errors. With a privacy unit, the number of rows that count: at most
        ``max_rows`` of each unit.
    epsilon, delta, rho, neighbors, mean
        As for :func:`dpmoments.release`.
    privacy_unit : PrivacyUnit, optional
        As for :func:`dpmoments.release`: the budget is then for all rows of a unit together, and so are all results,
        including ``epsilon_needed``. **n_rows must then also come from public knowledge.**
    typical_sd, typical_mean : mapping of features to floats, optional
        Public guesses of standard deviations and means, in original units: ``{"age": 18}``. **Never computed from the
        table.** For a Boolean column or a level the mean is its share. A pattern is of all features that it matches, as in
        ``{"A*": 1.4}``; a name comes before it.
    missing_share : mapping of columns to floats, optional
        Public guesses of the fraction of missing values, by name or pattern. Default: ``missing_share`` of the schema, else 0.
    robust : sequence of str, optional
        Columns of a regression, the target among them: the forecast says by how much its robust standard errors would raise all
        noise, which need the products of ``schema.with_products(robust)``.
    mechanism : str, optional
        Mechanism that the numbers in original units are for. Default: ``"auto"``, as for a release, or the best if that
        cannot run.
    goals : list of str, or mapping of str to float, optional
        How precise answers should be, as for :class:`dpmoments.Schema`. Default: the goals of the schema. If no budget is given,
        the forecast is for the smallest ε that meets all goals, or for ε = 1 if none does.

    Returns
    -------
    Forecast
        ``print`` shows it; ``goals`` has one row per goal, ``to_pandas()`` one row per feature;
        ``rows_needed(correlation=0.02)`` and ``epsilon_needed(…)`` solve the inverse problem;
        ``forecast["gaussian"].correlation_error`` is the error of one mechanism.

    Raises
    ------
    ValueError
        If the budget, number of rows, a guess or the privacy unit is invalid, a guess names an unknown feature, or the
        mechanism cannot run.
    TypeError
        If the privacy unit is not a :class:`dpmoments.PrivacyUnit`.

    Examples
    --------
    >>> from dpmoments import Boolean, Numeric, Power
    >>> schema = Schema(Numeric("age", 0, 120), Numeric("income", 0, 200_000), Boolean("smoker"))
    >>> table = forecast(schema, n_rows=5000, epsilon=1.0, typical_sd={"age": 18, "income": 30_000})
    >>> table.mechanism, table.noise.mean.round(3).tolist()
    ('auto', [0.177, 295.351, 0.003])

    Errors of mechanisms, of correlations and of means in standard deviations:

    >>> round(table["standardized"].correlation_error, 4), round(table["matrix-laplace"].correlation_error, 4)
    (0.0117, 0.0124)

    What robust standard errors of a regression would cost:

    >>> schema = Schema(Numeric("age", 0, 100), Numeric("hours", 0, 80), Boolean("smoker"))
    >>> print(forecast(schema, n_rows=1000, rho=0.5, robust=["hours", "smoker"]).robust_cost)
    with hours^2, hours:smoker, for robust standard errors: ± 0.024 → 0.035 on a correlation

    If five rows of a person count, additive noise is five times that for rows:

    >>> table = forecast(schema, n_rows=1000, epsilon=1.0, privacy_unit=PrivacyUnit("person_id", max_rows=5))
    >>> print(table.title)
    Forecast for 1,000 rows that count (at most 5 for each value of person_id), ε = 1, pure, add_remove; no data read
    >>> times = table.noise_of("laplace").mean / forecast(schema, n_rows=1000, epsilon=1.0).noise_of("laplace").mean
    >>> times.round(6).tolist()
    [5.0, 5.0, 5.0]

    Goals in place of a budget:

    >>> table = forecast(schema, n_rows=5000, goals=["mean(age) ± 1", "share(smoker) ± 0.02 at 0.9"])
    >>> print(table.budget, table.goals.to_pandas()["met"].tolist(), table.goals.dear)
    ε = 0.24, pure [True, True] mean(age) ± 1
    """
    require_row_count(n_rows)
    stated = schema.goals if goals is None else checked_goals(goals, schema.columns)
    no_budget = bool(stated) and asked.get("epsilon") is None and asked.get("rho") is None
    request = PrivacyRequest.of_options({**asked, "epsilon": 1.0} if no_budget else asked, schema, finds_levels=True)
    schema = schema.capped(request.budget.nominal_epsilon)
    request.divided(schema)  # or its refusal
    typical = TypicalTable.of(schema, typical_sd=typical_sd, typical_mean=typical_mean, missing_share=missing_share)

    def planned_by(kind: Mechanism) -> ReleasePlan:
        return ReleasePlan(typical, n_rows, request, kind, mean)

    found = ForecastGoals.of(planned_by(make_mechanism(mechanism or "auto")), stated) if no_budget else None
    if found is not None and found.budget_for_all is not None:
        found = found.at(found.budget_for_all)
        request = found.setting.request
    settings = {name: planned_by(kind()) for name, kind in MECHANISMS.items()}
    if mechanism is not None:
        settings[mechanism] = planned_by(make_mechanism(mechanism))
        _ = settings[mechanism].plan  # or its refusal
    rows = [row_of(name, setting) for name, setting in settings.items()]
    if not mean:
        refused = "standard deviations and correlations need the mean, which is not released; release "
        without_units = InputValueError(f"{refused}with mean=True", shell=f"{refused}without --no-mean")
    elif mechanism is None:
        without_units = InputValueError("the noise of no possible mechanism is known beforehand")
    else:
        without_units = InputValueError(f"the noise of {mechanism} is not known beforehand")
    table = Forecast(
        rows=tuple(sorted(rows, key=lambda row: (row.refusal is not None, row.errors))),
        n_rows=n_rows,
        budget=request.budget,
        neighbors=request.neighbors,
        privacy_unit=request.privacy_unit,
        without_units=without_units,
        mean=mean,
    )
    if mechanism is None:
        mechanism = "auto" if table["auto"].is_known else table.best
    if mechanism is None or not mean or not table[mechanism].is_known:
        if goals:
            raise without_units.preceded_by("goals cannot be forecast: ")
        return replace(table, mechanism=mechanism)
    setting = settings[mechanism]
    of_goals = ForecastGoals.of(setting, stated) if found is None else found
    return replace(
        table,
        mechanism=mechanism,
        setting=setting,
        goals=of_goals,
        changes=changes(setting, *((stated, of_goals.dear) if of_goals is not None else ())),
        derived_cost=cost_of_derived(setting),
        robust_cost=None if robust is None else cost_of_products(setting, robust),
    )


def require_row_count(n_rows: int) -> None:
    """Raise ValueError unless ``n_rows`` is a possible number of rows."""
    if not (is_whole(n_rows) and n_rows >= 1):
        raise out_of_range("n_rows", n_rows, "a positive whole number")


def row_of(name: str, setting: ReleasePlan) -> ForecastRow:
    """Return the errors of a mechanism, or its refusal."""
    try:
        plan, noise, law = setting.plan, setting.noise, setting.imagined.release.noise
        second_moment = math.sqrt(law.energy) / setting.n_rows if law is not None and not setting.mean else math.nan
        errors = (math.nan,) * 2 if noise is None else (noise.correlation_error, noise.mean_error)
    except (ValueError, OverflowError) as refusal:  # of the plan, or of numbers beyond all tables
        few = short_refusal(setting, str(refusal))
        return ForecastRow(name, refusal=str(refusal), short_refusal=few)
    of_correlations, of_means, of_gram = (error if math.isfinite(error) else None for error in (*errors, second_moment))
    arithmetic, reason = str(plan.arithmetic), plan.chosen_because
    return ForecastRow(name, of_correlations, of_means, of_gram, arithmetic, chosen_because=reason)


_LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class CountsForecast(Answer):
    """Noise of contingency tables, which depends on public numbers only."""

    by: tuple[tuple[str, ...], ...]  # columns of every table
    cells: tuple[int, ...]  # number of cells of every table
    noise: tuple[CountNoise, ...]  # noise distribution of a count of every table
    budget: PrivacyBudget
    neighbors: Neighbors
    n_rows: int | None = None  # expected number of rows
    privacy_unit: PrivacyUnit | None = None

    facts = ("budget: budget.to_dict", "neighbors: neighbors.value", "n_rows", "tables: *")

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Noise SD of a count of every table, in rows."""
        return tuple(noise.standard_deviation for noise in self.noise)

    @property
    def half_widths(self) -> tuple[float, ...]:
        """Half-width of the 95 % interval of a count of every table, in rows."""
        return tuple(noise.half_width(_LEVEL) for noise in self.noise)

    @property
    def heading(self) -> tuple[str, ...]:
        unit = "" if self.privacy_unit is None else f", {self.privacy_unit.rows_text}"
        return (f"Noise of counts in rows, {self.budget}, {self.neighbors}{unit}; no data read",)

    @property
    def remarks(self) -> tuple[str, ...]:
        return (
            "The noise on a count does not depend on the table; a repair keeps the total and makes no count negative.",
        )

    def _columns(self) -> list[Column]:
        totals = [noise.of_sum(cells).standard_deviation for noise, cells in zip(self.noise, self.cells, strict=True)]
        columns = [
            Column("table", [" by ".join(by) for by in self.by], "table", label=True),
            Column("cells", np.array(self.cells), "cells", [f"{cells:,}" for cells in self.cells]),
            Column("noise", np.array(self.standard_errors), "± a count"),
            Column(
                "half_width",
                np.array(self.half_widths),
                f"{format_level(_LEVEL)} interval",
                [f"± {number(half)}" for half in self.half_widths],
            ),
            Column("noise_of_total", np.array(totals), "± all rows"),
        ]
        if self.n_rows is None:
            return columns
        typical = [self.n_rows / cells for cells in self.cells]
        relative = np.array([error / count for error, count in zip(self.standard_errors, typical, strict=True)])
        return [
            *columns,
            Column("typical_count", np.array(typical), "rows per cell"),
            Column("relative_noise", relative, "± relative", list(map(percent, relative))),
        ]


@takes_request(AskedPrivacy)
def forecast_counts(
    schema: Schema,
    *,
    by: str | Sequence[str] | Sequence[Sequence[str]],
    split: Sequence[float] | None = None,
    n_rows: int | None = None,
    **asked: Unpack[AskedPrivacy],
) -> CountsForecast:
    """Forecast the noise of contingency tables: it is known exactly before any data is read.

    Parameters
    ----------
    schema : Schema
    by, split, epsilon, delta, rho, neighbors, privacy_unit
        As for :func:`dpmoments.release_counts`.
    n_rows : int, optional
        Expected number of rows, for the noise relative to the count of an average cell. With a privacy unit, of rows that
        count.

    Returns
    -------
    CountsForecast
        ``print`` shows it; ``forecast_counts(…).standard_errors`` are the noise SDs of the tables.

    Raises
    ------
    ValueError, TypeError
        As :func:`dpmoments.release_counts` does before a row is read.

    Examples
    --------
    >>> from dpmoments import Boolean, Categorical
    >>> schema = Schema(Categorical("region", ["north", "south", "east"]), Boolean("smoker"))
    >>> print(forecast_counts(schema, by=[["region", "smoker"], ["region"]], split=[2, 1], n_rows=3000, epsilon=1.0))
    Noise of counts in rows, ε = 1, pure, add_remove; no data read
    table             cells  ± a count  95 % interval  ± all rows  rows per cell  ± relative
    region by smoker      6     2.0825            ± 4      5.1012            500       0.42%
    region                3     4.2231            ± 9      7.3146           1000       0.43%
    The noise on a count does not depend on the table; a repair keeps the total and makes no count negative.
    """
    if n_rows is not None:
        require_row_count(n_rows)
    request = PrivacyRequest.of_options(asked, schema)
    require_unweighted(schema)
    chosen = Counts.of(schema, by, split)
    counted = schema_of_tables(schema, chosen.by)
    plan: CountsPlan = chosen.plan_for(MomentShape.of(counted, mean=True), request)
    cells = tuple(math.prod(shape_of(schema, names)) for names in chosen.by)
    return CountsForecast(chosen.by, cells, plan.noise, request.budget, request.neighbors, n_rows, request.privacy_unit)


_ASSUMED = "~"
"""Mark of an error that depends on the assumed rows."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanForecastRow(Row):
    """Forecast for one mean estimator."""

    error: float | None = None  # RMSE ‖mean error‖₂ about the rows' own mean, in original units; None if unknown
    feature_errors: FloatArray | None = None  # (d,) or None: RMSE of every feature
    # true if it depends on the assumed standard deviation and normal tails of the rows, not only on public numbers
    assumes_rows: bool = False
    arithmetic: str | None = None  # arithmetic of the guarantee
    refusal: str | None = None  # reason why the estimator cannot run


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeanForecast(ByMechanism[MeanForecastRow]):
    """Forecasts of mean estimators, smallest expected error first, refusals last.

    Attributes
    ----------
    rows : tuple of MeanForecastRow
    feature_names : tuple of str
    standard_deviations : ndarray of shape (d,) or None
        Assumed standard deviations in original units; None if none were given and the schema implies none.
    n_rows : int
        With a privacy unit, the number of rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    """

    feature_names: tuple[str, ...]
    standard_deviations: FloatArray | None
    of_means: ClassVar[bool] = True

    facts = (*ByMechanism.facts, "feature_names", "standard_deviations", "mechanisms: plain_rows")

    @property
    def heading(self) -> tuple[str, ...]:
        what = f"{self.n_rows:,} {self.rows_text}, {self.budget}, {self.neighbors}"
        return (f"Expected error of the mean for {what}; original units",)

    @property
    def plain_rows(self) -> list[dict[str, Any]]:
        """The rows as plain values."""
        return [asdict(row) for row in self.rows]

    def _columns(self) -> list[Column]:
        ran = [row for row in self.rows if row.refusal is None]
        errors = [
            "–" if row.error is None else f"{_ASSUMED if row.assumes_rows else ''}{number(float(f'{row.error:.3g}'))}"
            for row in ran
        ]
        return [
            Column("mechanism", [row.mechanism for row in ran], "mechanism", label=True),
            Column("error", [row.error for row in ran], "error", errors),
            Column("arithmetic", [row.arithmetic for row in ran], "arithmetic"),
        ]

    def feature_table(self) -> list[tuple[str, ...]]:
        """Return rows of text, head first: feature, errors of every estimator, assumed SD."""
        known = [row for row in self.rows if row.error is not None]
        columns = {row.mechanism: row.feature_errors for row in known}
        if self.standard_deviations is not None and any(row.assumes_rows for row in known):
            columns["assumed"] = self.standard_deviations
        cells = [
            ["–"] * len(self.feature_names) if of is None else [number(float(f"{one:.3g}")) for one in of]
            for of in columns.values()
        ]
        return [("feature", *columns), *zip(self.feature_names, *cells, strict=True)]

    @property
    def remarks(self) -> tuple[str, ...]:
        by_feature = self.feature_table()
        ran = [row for row in self.rows if row.refusal is None]
        refused = (f"not {row.mechanism}: {row.refusal}" for row in self.rows if row.refusal is not None)

        # Assumptions of marked errors, and what no error includes.
        said = "No error includes the effect of clipping skewed rows, or more rows than the public bounds allow."
        if any(row.assumes_rows for row in ran):
            assumed = "independent normal values with public or given standard deviations"
            said = f"{_ASSUMED} depends on assumed rows: {assumed}. {said}"
        return (aligned(by_feature) if len(by_feature[0]) > 1 else "", said if ran else "", *refused)


@takes_request(AskedPrivacy)
def forecast_mean(
    schema: Schema,
    *,
    n_rows: int,
    radius: float | None = None,
    scale: float | None = None,
    standard_deviation: float | Mapping[str, float] | None = None,
    **asked: Unpack[AskedPrivacy],
) -> MeanForecast:
    """Forecast the error of every mean estimator from public numbers.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        Expected number of rows; it only scales the errors. With a privacy unit, the number of rows that count.
    epsilon, delta, rho, neighbors, privacy_unit
        As for :func:`dpmoments.release_mean`.
    radius, scale : float, optional
        Options of the estimators that have them, as for :func:`dpmoments.release_mean`.
    standard_deviation : float or mapping of feature names to floats, optional
        Assumed standard deviations in original units: one number for all features, or one per feature (others keep the
        default). Default: ``scale``, or, for rows in the unit ball, 1/√d of it. Only marked errors depend on it.

    Returns
    -------
    MeanForecast
        ``print`` shows it as a table; ``forecast_mean(…)["coinpress"].error`` is one of its numbers.

    Raises
    ------
    ValueError
        If the budget, number of rows, a standard deviation or the privacy unit is invalid, a feature is unknown, or a
        column has ``missing="available"``, which no mean-only release takes.
    TypeError
        If the privacy unit is not a :class:`dpmoments.PrivacyUnit`.

    Notes
    -----
    The error is about the mean of the rows. It includes noise and, if it is predicted, clipping of normal rows.
    ``naive`` is exact from public numbers, and so is ``coinpress`` with ``clip="gaussian"``, except for the budget that
    its default spends on looking at the rows' tails. The others state their error on the assumed rows; for such rows
    the measured error was within a fifth of it, that of ``variance-aware`` within a third (``test_forecast_mean.py``).
    ``karwa-vadhan`` without a public scale searches it by powers of two: if two of them are about equally likely it may
    differ by a half.

    Examples
    --------
    >>> table = forecast_mean(Schema.unit_ball(3), n_rows=10_000, rho=0.5, neighbors="replace_one")
    >>> [row.mechanism for row in table][:2], round(table["naive"].error, 5)
    (['bounded-sums', 'coinpress'], 0.00167)
    """
    require_row_count(n_rows)
    request = PrivacyRequest.of_options(asked, schema)
    require_no_available(schema)
    require_unweighted(schema)
    shape = MomentShape.of(schema, mean=True, n_rows=n_rows if request.neighbors.table_size_is_public else None)
    names, units = schema.feature_names, schema.encoding(mean=True).scale

    # Assumed standard deviations in original units, or None.
    default = scale
    if default is None and schema.row_norm is not None:
        default = 1.0 / math.sqrt(len(names))
    assumed = None if default is None else units * default
    if isinstance(standard_deviation, Mapping):
        guesses = checked_guesses(schema, "standard deviation", standard_deviation, names)
        if assumed is None and (absent := [name for name in names if name not in guesses]):
            left_out = ", ".join(map(repr, absent))
            raise InputValueError(
                f"the standard deviations leave out {left_out}: give scale, for those, or all of them"
            )
        assumed = np.ones(len(names)) if assumed is None else assumed
        for name, value in guesses.items():
            assumed[names.index(name)] = value
    elif standard_deviation is not None:
        assumed = np.full(len(names), positive("standard_deviation", standard_deviation))

    options = {key: value for key, value in (("radius", radius), ("scale", scale)) if value is not None}
    typical = NormalRows(n_rows, np.ones(len(names)) if assumed is None else assumed / units)
    rows = []
    for name, kind in MEAN_MECHANISMS.items():
        try:
            mechanism = kind(**{key: value for key, value in options.items() if key in kind.__dataclass_fields__})
            plan = mechanism.plan_for(shape, request)
            if assumed is None and plan.error_needs_rows:
                raise InputValueError(
                    "its error depends on how much the values vary: give a standard deviation, to assume it"
                )
            result = plan.expected_errors(typical)
        except ValueError as refusal:
            rows.append(MeanForecastRow(name, refusal=str(refusal)))
            continue
        row = MeanForecastRow(name, assumes_rows=plan.error_needs_rows, arithmetic=str(plan.arithmetic))
        if result is not None and np.isfinite(result).all():
            errors = units * result
            row = replace(row, error=float(np.linalg.norm(errors)), feature_errors=errors)
        rows.append(row)
    rows.sort(key=lambda row: (row.refusal is not None, row.error or math.inf))
    return MeanForecast(
        rows=tuple(rows),
        feature_names=names,
        standard_deviations=assumed,
        n_rows=n_rows,
        budget=request.budget,
        neighbors=request.neighbors,
        privacy_unit=request.privacy_unit,
    )
