"""Forecasts of releases of moments, means and tables of counts, without data or budget.

An error that depends on the table is that on an assumed table (:mod:`dpmoments.mechanisms.synthetic_spectrum`,
:mod:`dpmoments.planning.typical_table`), by closed form or from a few runs on synthetic rows, and is marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.analysis.answers import Answer, Column, aligned, format_level, number
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import is_whole
from dpmoments.foundation.errors import InputKeyError, InputValueError, out_of_range
from dpmoments.foundation.values import is_finite_number
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.counts import Counts, CountsPlan, shape_of
from dpmoments.mechanisms.means.base import MeanMechanism, NormalRows
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, make_mechanism, unknown_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.synthetic_spectrum import Assumption, SyntheticSpectrum
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.messages.message import Message
from dpmoments.noise.cells import CountNoise
from dpmoments.planning.changes import changes
from dpmoments.planning.forecast_table import DerivedCost, Forecast, ForecastRow, short_refusal
from dpmoments.planning.imagined_release import ReleasePlan, forecast_noise, planned
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.schema.schema import Schema

_MAX_RIVALS = 2
"""Number of mechanisms besides the best to plan with when something is changed."""


def forecast(
    schema: Schema,
    *,
    n_rows: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mean: bool = True,
    privacy_unit: PrivacyUnit | None = None,
    spectrum: Sequence[float] | None = None,
    decay: float | None = None,
    typical_sd: Mapping[str, float] | None = None,
    typical_mean: Mapping[str, float] | None = None,
    robust: Sequence[str] | None = None,
    mechanism: str | None = None,
) -> Forecast:
    """Forecast the noise on every column, what to change, and every mechanism's error.

    Only public numbers are used. The noise on a mean hardly depends on the table; its effect on a standard deviation or
    a correlation depends on how much the column varies. That is taken from ``typical_sd``, else from the schema's
    ``typical`` range, else it is a tenth of the range, and marked with ~. Numbers are noise SDs before repair, to first
    order, as ``release.describe()`` states them; ``docs/evidence/forecast-errors.md`` compares them with simulated releases.

    The table of mechanisms has errors in encoded units. Those of additive noise do not depend on the table; others are
    for an assumed table, and marked. Without a closed form they are the RMSE over a few runs on synthetic rows, with
    fixed seeds.

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
    spectrum : sequence of float, optional
        A public guess of the eigenvalues of the second moment E[x xᵀ] of the encoded rows, one per feature. **Never
        computed from the table.** Default: proportional to 1/i, with sum 1 if rows are given in the unit ball and ½ if
        columns have bounds (``docs/evidence/utility-bounds-eigenvectors.md`` compares that with public tables); for columns with
        scale ranges, standard deviations in the geometric middle of their ranges.
    decay : float, optional
        Eigenvalues proportional to i^−decay instead of 1/i.
    typical_sd, typical_mean : mapping of features to floats, optional
        Public guesses of standard deviations and means, in original units: ``{"age": 18}``. **Never computed from the
        table.** For a Boolean column or a level the mean is its share.
    robust : sequence of str, optional
        Columns of a regression, the target among them: the forecast says by how much its robust standard errors would raise all
        noise, which need the products of ``schema.with_products(robust)``.
    mechanism : str, optional
        Mechanism that the numbers in original units are for, ``"auto"`` among them. Default: the one with the least noise.

    Returns
    -------
    Forecast
        ``print`` shows it; ``to_pandas()`` has one row per feature; ``rows_needed(correlation=0.02)`` and
        ``epsilon_needed(…)`` solve the inverse problem; ``forecast["gaussian"].second_moment_error`` is the error of
        one mechanism.

    Raises
    ------
    ValueError
        If the budget, number of rows, spectrum, a guess or the privacy unit is invalid, a guess names an unknown
        feature, or the mechanism cannot run.
    TypeError
        If the privacy unit is not a :class:`dpmoments.PrivacyUnit`.

    Examples
    --------
    >>> from dpmoments import Boolean, Numeric, Power
    >>> schema = Schema(Numeric("age", 0, 120), Numeric("income", 0, 200_000), Boolean("smoker"))
    >>> table = forecast(schema, n_rows=5000, epsilon=1.0, typical_sd={"age": 18, "income": 30_000})
    >>> table.best, table.noise.mean.round(3).tolist()
    ('matrix-laplace', [0.076, 126.27, 0.001])

    Errors of mechanisms:

    >>> table = forecast(Schema.unit_ball(13), n_rows=178, epsilon=1.0, neighbors="replace_one", mean=False)
    >>> round(table["matrix-laplace"].second_moment_error, 3)
    0.401
    >>> eigenvectors = table["iterative-eigenvectors"]
    >>> eigenvectors.assumed, eigenvectors.second_moment_shown
    (True, '~0.41')
    >>> print(table.assumption.words)
    normal rows, eigenvalues of their second moment as 1/i with sum 1

    Derived features reduce the columns' part of the ball:

    >>> schema = Schema(Numeric("age", 0, 100), Numeric("hours", 0, 80), Power("age", 2))
    >>> print(forecast(schema, n_rows=1000, epsilon=1.0, delta=1e-6).derived_cost)
    derived features age^2 raise the noise on second moments of other features by up to 39%, on means by up to 25% (gaussian)

    What robust standard errors of a regression would cost:

    >>> schema = Schema(Numeric("age", 0, 100), Numeric("hours", 0, 80), Boolean("smoker"))
    >>> cost = forecast(schema, n_rows=1000, rho=0.5, robust=["hours", "smoker"]).robust_cost
    >>> cost.names, round(cost.second_moment, 2), round(cost.mean, 2)
    (('hours^2', 'hours:smoker'), 0.52, 0.34)

    If five rows of a person count, noise is five times that for rows:

    >>> table = forecast(schema, n_rows=1000, epsilon=1.0, privacy_unit=PrivacyUnit("person_id", max_rows=5))
    >>> print(table.title)
    Forecast for 1,000 rows that count (at most 5 for each value of person_id), ε = 1, pure, add_remove; no data read
    >>> times = table.noise_of("laplace").mean / forecast(schema, n_rows=1000, epsilon=1.0).noise_of("laplace").mean
    >>> times.round(6).tolist()
    [5.0, 5.0, 5.0]
    """
    require_row_count(n_rows)
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    relation = Neighbors.of(neighbors)
    if privacy_unit is not None:
        require_unit(privacy_unit, schema.reserved_names, relation)
    # Where the number of rows is private a release plans without it, and so does its forecast.
    shape = MomentShape.of(schema, mean=mean, n_rows=n_rows if relation.table_size_is_public else None)
    assumption = Assumption.of(schema.with_indicators, mean=mean, spectrum=spectrum, decay=decay)
    typical = TypicalTable.of(schema, typical_sd=typical_sd, typical_mean=typical_mean, spectrum=spectrum, decay=decay)
    if mechanism is not None:
        planned(make_mechanism(mechanism), shape, budget, relation, privacy_unit)  # or its refusal
    assumed = assumption.table(n_rows)
    rows = [
        _row(name, kind(), shape, budget, relation, privacy_unit, assumed, typical) for name, kind in MECHANISMS.items()
    ]
    rows.sort(key=lambda row: (row.refusal is not None, row.second_moment_error or math.inf))
    possible = [row.mechanism for row in rows if row.refusal is None]
    options = (shape, budget, relation, privacy_unit, possible)
    derived = _derived_cost(schema, schema.without_derived, *options)
    products = None if robust is None else _derived_cost(schema.with_products(robust), schema, *options)
    table = Forecast(
        tuple(rows),
        n_rows,
        budget,
        relation,
        assumption,
        derived,
        without_units=_without_units(shape, mechanism),
        privacy_unit=privacy_unit,
        mechanism=mechanism,
        robust_cost=None if products is None else replace(products, robust=True),
    )
    chosen = mechanism or table.best
    if chosen is None or table[chosen].typical_noise is None:
        return table
    others = [row.mechanism for row in table.known if row.mechanism not in (chosen, "auto")]
    rivals = tuple(MECHANISMS[name]() for name in others)[:_MAX_RIVALS]
    setting = ReleasePlan(typical, n_rows, budget, relation, MECHANISMS[chosen](), rivals, privacy_unit)
    return _in_units(table, setting)


def _in_units(table: Forecast, setting: ReleasePlan) -> Forecast:
    """Add the numbers of one mechanism in original units."""
    return replace(
        table,
        setting=setting,
        noise=setting.noise,
        changes=changes(setting),
    )


def _without_units(shape: MomentShape, mechanism: str | None) -> Message:
    if shape.row_norm is None:
        return Message("no-units-without-bounds")
    if not shape.mean:
        return Message("no-units-without-mean")
    if mechanism is None:
        return Message("no-units-of-any-mechanism")
    return Message("no-units-of-mechanism", mechanism=mechanism)


def _derived_cost(
    schema: Schema,
    less: Schema,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    privacy_unit: PrivacyUnit | None,
    mechanisms: Sequence[str],
) -> DerivedCost | None:
    """Compare plans of a schema and of one with fewer derived features."""
    # Of the first mechanism that has both.
    added = tuple(column.name for column in schema.columns if column.name not in {one.name for one in less.columns})
    if not added:
        return None
    own = np.array([name in less.feature_names for name in schema.feature_names])
    encodings = schema.encoding(mean=shape.mean), less.encoding(mean=shape.mean)
    units = encodings[0].scale[own] / encodings[1].scale
    for mechanism in mechanisms:
        shapes = [MomentShape.of(either, mean=shape.mean, n_rows=shape.n_rows) for either in (schema, less)]
        try:
            plans = [planned(MECHANISMS[mechanism](), either, budget, neighbors, privacy_unit) for either in shapes]
        except (ValueError, OverflowError):  # one column may be too few for it
            continue
        laws = [law for plan in plans if plan.model is not None and (law := plan.model.fixed_law) is not None]
        if len(laws) < 2:
            continue
        whole, part = (law.cell_variances() for law in laws)
        cells = _largest_ratio(whole[1:, 1:][np.ix_(own, own)], part[1:, 1:], np.outer(units, units))
        means = _largest_ratio(whole[0, 1:][own], part[0, 1:], units) if shape.mean else None
        return DerivedCost(added, mechanism, cells - 1.0, None if means is None else means - 1.0)
    return None


def _largest_ratio(variances: FloatArray, less: FloatArray, units: FloatArray) -> float:
    """Return the largest ratio of noise SDs in original units, of cells that have noise."""
    noisy = less > 0.0
    return float(np.max(units[noisy] * np.sqrt(variances[noisy] / less[noisy])))


def require_row_count(n_rows: int) -> None:
    """Raise ValueError unless ``n_rows`` is a possible number of rows."""
    if not (is_whole(n_rows) and n_rows >= 1):
        raise out_of_range("n_rows", n_rows, "positive-whole")


def _row(
    name: str,
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    privacy_unit: PrivacyUnit | None,
    assumed: SyntheticSpectrum,
    typical: TypicalTable,
) -> ForecastRow:
    try:
        plan = planned(mechanism, shape, budget, neighbors, privacy_unit)
        if plan.measured_runs == 0:
            return ForecastRow(mechanism=name, arithmetic=str(plan.arithmetic), chosen_because=plan.chosen_because)
        errors = plan.errors_on(
            assumed, (PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(plan.measured_runs))
        )
    except (ValueError, OverflowError) as refusal:  # of the plan, or of numbers beyond all tables
        few = short_refusal(mechanism, shape, budget, str(refusal))
        return ForecastRow(name, refusal=str(refusal), short_refusal=few)
    noise, is_noise = _typical_noise(plan, typical, assumed.n_rows)
    return ForecastRow(
        mechanism=name,
        second_moment_error=errors.gram / assumed.n_rows,
        mean_error=None if errors.sum is None else errors.sum / assumed.n_rows,
        arithmetic=str(plan.arithmetic),
        assumed=errors.gram_assumed,
        mean_assumed=errors.sum_assumed,
        guaranteed_error=plan.guaranteed_error / assumed.n_rows if plan.guaranteed_error is not None else None,
        chosen_because=plan.chosen_because,
        typical_noise=noise,
        typical_is_noise=is_noise,
        clipped=errors.clipped,
    )


def _typical_noise(plan: Plan, typical: TypicalTable, n_rows: int) -> tuple[float | None, bool]:
    """Return the noise on a typical correlation and whether it hides that."""
    # If no two columns vary, the noise is on a mean, in its standard deviations.
    noise = forecast_noise(plan, typical, n_rows)
    if noise is None:
        return None, False
    result, is_noise = noise.typical_correlation(), noise.typical_correlation_is_noise
    if not math.isfinite(result):
        with np.errstate(divide="ignore", invalid="ignore"):
            result = float(np.nanmax(noise.mean / typical.standard_deviations))
        is_noise = all(noise.description.mean_is_noise)
    return (result, is_noise) if math.isfinite(result) else (None, False)


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

    facts = ("budget: budget.to_dict", "neighbors: relation", "n_rows", "tables: *")

    @property
    def relation(self) -> str:
        """Name of the neighboring relation."""
        return str(self.neighbors)

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
            Column("relative_noise", relative, "± relative", [f"{share:.2%}" for share in relative]),
        ]


def forecast_counts(
    schema: Schema,
    *,
    by: str | Sequence[str] | Sequence[Sequence[str]],
    split: Sequence[float] | None = None,
    n_rows: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    privacy_unit: PrivacyUnit | None = None,
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
    region                3     4.2231            ± 9      7.3146           1000       0.42%
    The noise on a count does not depend on the table; a repair keeps the total and makes no count negative.
    """
    if n_rows is not None:
        require_row_count(n_rows)
    budget, relation = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho), Neighbors.of(neighbors)
    if privacy_unit is not None:
        require_unit(privacy_unit, {column.name for column in schema.columns}, relation)
    chosen = Counts.of(schema, by, split)
    counted = schema_of_tables(schema, chosen.by)
    plan: CountsPlan = plan_before_release(chosen, MomentShape.of(counted, mean=True), budget, relation, privacy_unit)
    cells = tuple(math.prod(shape_of(schema, names)) for names in chosen.by)
    return CountsForecast(chosen.by, cells, plan.noise, budget, relation, n_rows, privacy_unit)


_ASSUMED = "~"
"""Mark of an error that depends on the assumed rows."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanForecastRow:
    """Forecast for one mean estimator."""

    mechanism: str
    error: float | None = None  # RMSE ‖mean error‖₂ about the rows' own mean, in original units; None if unknown
    feature_errors: FloatArray | None = None  # (d,) or None: RMSE of every feature
    # true if it depends on the assumed standard deviation and normal tails of the rows, not only on public numbers
    assumes_rows: bool = False
    arithmetic: str | None = None  # arithmetic of the guarantee
    refusal: str | None = None  # reason why the estimator cannot run


@dataclass(frozen=True, slots=True, eq=False)
class MeanForecast:
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

    rows: tuple[MeanForecastRow, ...]
    feature_names: tuple[str, ...]
    standard_deviations: FloatArray | None
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    privacy_unit: PrivacyUnit | None = None

    def __iter__(self) -> Iterator[MeanForecastRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, mechanism: str) -> MeanForecastRow:
        """Return the row of the named estimator."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise InputKeyError(unknown_mechanism(mechanism, [row.mechanism for row in self.rows], of_means=True))

    @property
    def title(self) -> str:
        """Title of the table."""
        rows = "rows" if self.privacy_unit is None else self.privacy_unit.rows_text
        return f"Expected error of the mean for {self.n_rows:,} {rows}, {self.budget}, {self.neighbors}; original units"

    @property
    def assumption_text(self) -> str:
        """Assumptions of marked errors, and what no error includes; empty if no estimator can run."""
        ran = [row for row in self.rows if row.refusal is None]
        if not ran:
            return ""
        marked = (
            f"{_ASSUMED} depends on assumed rows: independent normal values with public or given standard deviations. "
        )
        beyond = "No error includes the effect of clipping skewed rows, or more rows than the public bounds allow."
        return (marked if any(row.assumes_rows for row in ran) else "") + beyond

    def table(self) -> list[tuple[str, str, str]]:
        """Return rows of text, head first: estimator, error, arithmetic."""
        marks = {row.mechanism: _ASSUMED if row.assumes_rows else "" for row in self._known}
        shown = {row.mechanism: f"{marks[row.mechanism]}{row.error:.3g}" for row in self._known}
        ran = (row for row in self.rows if row.refusal is None)
        return [
            ("mechanism", "error", "arithmetic"),
            *((row.mechanism, shown.get(row.mechanism, "–"), str(row.arithmetic)) for row in ran),
        ]

    def feature_table(self) -> list[tuple[str, ...]]:
        """Return rows of text, head first: feature, errors of every estimator, assumed SD."""
        columns = {row.mechanism: row.feature_errors for row in self._known}
        if self.standard_deviations is not None and any(row.assumes_rows for row in self._known):
            columns["assumed"] = self.standard_deviations
        return [
            ("feature", *columns),
            *(
                (name, *("–" if values is None else f"{values[index]:.3g}" for values in columns.values()))
                for index, name in enumerate(self.feature_names)
            ),
        ]

    @property
    def _known(self) -> list[MeanForecastRow]:
        return [row for row in self.rows if row.error is not None]

    def refusals(self) -> list[str]:
        """List one line per estimator that cannot run, with the reason."""
        return [f"not {row.mechanism}: {row.refusal}" for row in self.rows if row.refusal is not None]

    def summary(self) -> str:
        """Return the forecast as text."""
        tables = [aligned(self.table()), aligned(self.feature_table())] if self._known else []
        return "\n".join(filter(None, [self.title, *tables, self.assumption_text, *self.refusals()]))

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        assumed = self.standard_deviations
        return {
            "n_rows": self.n_rows,
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "protected_unit": "row" if self.privacy_unit is None else self.privacy_unit.to_dict(),
            "feature_names": list(self.feature_names),
            "standard_deviations": None if assumed is None else assumed.tolist(),
            "mechanisms": [
                {
                    "mechanism": row.mechanism,
                    "error": row.error,
                    "feature_errors": None if row.feature_errors is None else row.feature_errors.tolist(),
                    "assumes_rows": row.assumes_rows,
                    "arithmetic": row.arithmetic,
                    "refusal": row.refusal,
                }
                for row in self.rows
            ],
        }


def forecast_mean(
    schema: Schema,
    *,
    n_rows: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    privacy_unit: PrivacyUnit | None = None,
    radius: float | None = None,
    scale: float | None = None,
    standard_deviation: float | Mapping[str, float] | None = None,
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
        If the budget, number of rows, a standard deviation or the privacy unit is invalid, or a feature is unknown.
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
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    relation = Neighbors.of(neighbors)
    if privacy_unit is not None:
        require_unit(privacy_unit, schema.reserved_names, relation)
    shape = MomentShape.of(schema, mean=True, n_rows=n_rows if relation.table_size_is_public else None)
    units = schema.encoding(mean=True).scale
    assumed = _assumed_deviations(schema, units, scale, standard_deviation)
    options = {key: value for key, value in (("radius", radius), ("scale", scale)) if value is not None}
    rows = [
        _mean_row(kind, options, shape, budget, relation, privacy_unit, n_rows, units, assumed)
        for kind in MEAN_MECHANISMS.values()
    ]
    rows.sort(key=lambda row: (row.refusal is not None, row.error or math.inf))
    return MeanForecast(tuple(rows), schema.feature_names, assumed, n_rows, budget, relation, privacy_unit)


def _mean_row(
    kind: type[MeanMechanism],
    options: Mapping[str, float],
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    privacy_unit: PrivacyUnit | None,
    n_rows: int,
    units: FloatArray,
    assumed: FloatArray | None,
) -> MeanForecastRow:
    name = kind.registry_name()
    try:
        mechanism = kind(**{key: value for key, value in options.items() if key in kind.__dataclass_fields__})
        plan = plan_before_release(mechanism, shape, budget, neighbors, privacy_unit)
        if assumed is None and plan.error_needs_rows:
            raise InputValueError(Message("deviation-needed"))
        deviations = np.ones(len(units)) if assumed is None else assumed / units
        result = plan.expected_errors(NormalRows(n_rows, deviations))
    except ValueError as refusal:
        return MeanForecastRow(name, refusal=str(refusal))
    if result is None or not np.isfinite(result).all():
        return MeanForecastRow(name, assumes_rows=plan.error_needs_rows, arithmetic=str(plan.arithmetic))
    errors = units * result
    return MeanForecastRow(
        name,
        error=float(np.linalg.norm(errors)),
        feature_errors=errors,
        assumes_rows=plan.error_needs_rows,
        arithmetic=str(plan.arithmetic),
    )


def _assumed_deviations(
    schema: Schema, units: FloatArray, scale: float | None, given: float | Mapping[str, float] | None
) -> FloatArray | None:
    """Return assumed standard deviations in original units, or None."""
    names = schema.feature_names
    default = scale
    if default is None and schema.row_norm is not None:
        default = 1.0 / math.sqrt(len(names))
    result = None if default is None else units * default
    if given is None:
        return result
    if not isinstance(given, Mapping):
        return np.full(len(names), _positive(given, "standard_deviation"))
    if unknown := sorted(set(given) - set(names)):
        raise InputValueError(Message("unknown-deviations", names=[*unknown], known=_listed(names)))
    if result is None and (absent := [name for name in names if name not in given]):
        raise InputValueError(Message("deviations-absent", names=_listed(absent)))
    values = np.ones(len(names)) if result is None else result.copy()
    for index, name in enumerate(names):
        if name in given:
            values[index] = _positive(given[name], f"standard_deviation of {name!r}")
    return values


def _positive(value: float, what: str) -> float:
    if not (is_finite_number(value) and value > 0.0):
        raise InputValueError(Message("not-positive", parameter=what, value=value))
    return float(value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
