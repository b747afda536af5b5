"""Forecast: what a release would be worth, in the table's units and by mechanism, before any data is read or budget is spent.

Where the error depends on the table, it is that on a table that is assumed (:mod:`dpmoments.mechanisms.synthetic_spectrum`,
:mod:`dpmoments.planning.typical_table`), by closed form or from a few runs on made-up rows; such numbers are marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np

from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.synthetic_spectrum import Assumption, SyntheticSpectrum
from dpmoments.planning.changes import changes
from dpmoments.planning.forecast_table import DerivedCost, Forecast, ForecastRow, short_refusal
from dpmoments.planning.imagined_release import ForecastNoise, ReleasePlan, forecast_noise, planned, worst_run
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.schema import Schema

_MAX_RIVALS = 2
"""So many mechanisms beside the best are looked at when something is changed."""


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
) -> Forecast:
    """The noise on every column in the table's units, what to change, and every mechanism's error, from public numbers alone.

    The noise on a mean hardly depends on the table; what it does to a standard deviation or a correlation depends on how much
    the column varies. That is taken from ``typical_sd``, else from the schema's ``typical`` range, else it is a tenth of the
    range, and marked with ~. Numbers are standard deviations of the noise before repair, to first order, as
    ``release.describe()`` states them; how near they come to simulated releases is measured in ``docs/forecast-errors.md``.

    The table of mechanisms has errors in the unit ball. Those of additive noise do not depend on the table; others are stated for
    a table that is assumed, and marked. Where there is no closed form, they are the root mean square over a few runs on made-up
    rows, at fixed seeds.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        The number of rows expected; it only scales the errors. With a privacy unit, the number of rows that count: of each
        unit ``max_rows`` at most.
    epsilon, delta, rho, neighbors, mean
        As for :func:`dpmoments.release`.
    privacy_unit : PrivacyUnit, optional
        As for :func:`dpmoments.release`: the budget is then for all rows of a unit together, and so is whatever is said of it,
        ``epsilon_needed`` included. **What n_rows then is comes from public knowledge, too.**
    spectrum : sequence of float, optional
        A public guess of the eigenvalues of the second moment E[x xᵀ] of the encoded rows, one for every feature after encoding.
        **Never computed from the table.** Default: proportional to 1/i, with sum 1 where rows are given in the unit ball and
        ½ where columns have bounds (``docs/utility-bounds-eigenvectors.md`` says how near that is on public tables); for
        columns with rough scales, standard deviations in the geometric middle of their ranges.
    decay : float, optional
        Eigenvalues proportional to i^−decay in place of 1/i.
    typical_sd, typical_mean : mapping of features to floats, optional
        Public guesses of standard deviations and means, in the table's units: ``{"age": 18}``. **Never computed from the table.**
        Of a flag or a level the mean is its share.

    Returns
    -------
    Forecast
        ``print`` shows it; ``to_pandas()`` has a row a feature, ``rows_needed(correlation=0.02)`` and ``epsilon_needed(…)`` turn
        it round, and ``forecast["gaussian"].second_moment_error`` is one of the mechanisms' numbers.

    Raises
    ------
    ValueError
        If the budget, the number of rows, the spectrum or a guess is not possible, a guess names an unknown feature, or the
        privacy unit cannot serve.
    TypeError
        If the privacy unit is not a :class:`dpmoments.PrivacyUnit`.

    Examples
    --------
    >>> from dpmoments import Boolean, Numeric, Power
    >>> schema = Schema(Numeric("age", 0, 120), Numeric("income", 0, 200_000), Boolean("smoker"))
    >>> table = forecast(schema, n_rows=5000, epsilon=1.0, typical_sd={"age": 18, "income": 30_000})
    >>> table.best, table.noise.mean.round(3).tolist()
    ('matrix-laplace', [0.076, 126.27, 0.001])

    The errors of mechanisms:

    >>> table = forecast(Schema.unit_ball(13), n_rows=178, epsilon=1.0, neighbors="replace_one", mean=False)
    >>> round(table["matrix-laplace"].second_moment_error, 3)
    0.401
    >>> eigenvectors = table["iterative-eigenvectors"]
    >>> eigenvectors.assumed, eigenvectors.second_moment_shown
    (True, '~0.41')
    >>> print(table.assumption.words)
    normal rows, eigenvalues of their second moment as 1/i with sum 1

    Derived features take their part of the ball from the columns:

    >>> schema = Schema(Numeric("age", 0, 100), Numeric("hours", 0, 80), Power("age", 2))
    >>> print(forecast(schema, n_rows=1000, epsilon=1.0, delta=1e-6).derived_cost)
    derived features age^2 raise the noise on every second moment of other features by 55%, on means by 39% (auto)

    Where five rows of a person count, noise is five times that for rows:

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
        require_unit(privacy_unit, {column.name for column in schema.columns}, relation)
    # Where the number of rows is private a release plans without it, and so does its forecast.
    shape = MomentShape.of(schema, mean=mean, n_rows=n_rows if relation.table_size_is_public else None)
    assumption = Assumption.of(schema, mean=mean, spectrum=spectrum, decay=decay)
    typical = TypicalTable.of(schema, typical_sd=typical_sd, typical_mean=typical_mean, spectrum=spectrum, decay=decay)
    assumed = assumption.table(n_rows)
    rows = [
        _row(name, kind(), shape, budget, relation, privacy_unit, assumed, typical) for name, kind in MECHANISMS.items()
    ]
    rows.sort(key=lambda row: (row.refusal is not None, row.second_moment_error or math.inf))
    possible = [row.mechanism for row in rows if row.refusal is None]
    derived = _derived_cost(schema, shape, budget, relation, privacy_unit, possible)
    table = Forecast(
        tuple(rows),
        n_rows,
        budget,
        relation,
        assumption,
        derived,
        without_units=_without_units(shape),
        privacy_unit=privacy_unit,
    )
    known = [row for row in rows if row.typical_noise is not None]
    if not known:
        return table
    best, *others = sorted(known, key=lambda row: (row.typical_noise or math.inf, row.mechanism == "auto"))
    rivals = tuple(MECHANISMS[row.mechanism]() for row in others if row.mechanism != "auto")[:_MAX_RIVALS]
    setting = ReleasePlan(typical, n_rows, budget, relation, MECHANISMS[best.mechanism](), rivals, privacy_unit)
    return _in_units(table, setting)


def _in_units(table: Forecast, setting: ReleasePlan) -> Forecast:
    """The forecast with the numbers of one mechanism in the table's units."""
    plan = setting.plan
    worst = worst_run(plan)
    return replace(
        table,
        setting=setting,
        noise=setting.noise,
        worst=None if worst is None else ForecastNoise.of(plan, setting.typical, setting.n_rows, (worst,)),
        changes=changes(setting),
    )


def _without_units(shape: MomentShape) -> str:
    if shape.row_norm is None:
        return (
            "no numbers in the table's units: columns without bounds have noise that is known when it is drawn; give every "
            "column public bounds, dpm.Numeric('income', 0, 500_000), however wide, to have them"
        )
    if not shape.mean:
        return (
            "no numbers in the table's units: without a mean (mean=False) there is no standard deviation or correlation; leave "
            "mean=False out to have them, for a release with a mean"
        )
    return "no numbers in the table's units: no mechanism can run whose noise is known beforehand"


def _derived_cost(
    schema: Schema,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    privacy_unit: PrivacyUnit | None,
    mechanisms: Sequence[str],
) -> DerivedCost | None:
    """By the plans with and without the derived features, of the first mechanism that states a law of its noise for both."""
    if not schema.derived_columns:
        return None
    less = schema.without_derived
    own = [name in less.feature_names for name in schema.feature_names]
    encodings = schema.encoding(mean=shape.mean), less.encoding(mean=shape.mean)
    units = float(np.max(encodings[0].scale[own] / encodings[1].scale))
    for mechanism in mechanisms:
        shapes = shape, MomentShape.of(less, mean=shape.mean, n_rows=shape.n_rows)
        try:
            plans = [planned(MECHANISMS[mechanism](), either, budget, neighbors, privacy_unit) for either in shapes]
        except (ValueError, OverflowError):  # one column may be too few for it
            continue
        laws = [law for plan in plans if plan.model is not None and (law := plan.model.fixed_law) is not None]
        if len(laws) < 2:
            continue
        # the ratio off the diagonal is that on it, which one feature has, too
        (cells, sums), (cells_less, sums_less) = (
            (float(law.trace_variance / law.n_features), float(law.sum_variances.mean())) for law in laws
        )
        means = units * math.sqrt(sums / sums_less) - 1.0 if shape.mean else None
        names = tuple(column.name for column in schema.derived_columns)
        return DerivedCost(names, mechanism, units**2 * math.sqrt(cells / cells_less) - 1.0, means)
    return None


def require_row_count(n_rows: int) -> None:
    """Raise ValueError unless it is a possible number of rows."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 1:
        raise InputValueError(f"n_rows={n_rows!r} must be a positive whole number")


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
    """The noise on a typical correlation and whether that hides it; if no two columns vary, on a mean, in standard deviations."""
    noise = forecast_noise(plan, typical, n_rows)
    if noise is None:
        return None, False
    result, is_noise = noise.typical_correlation(), noise.typical_correlation_is_noise
    if not math.isfinite(result):
        with np.errstate(divide="ignore", invalid="ignore"):
            result = float(np.nanmax(noise.mean / typical.standard_deviations))
        is_noise = all(noise.description.mean_is_noise)
    return (result, is_noise) if math.isfinite(result) else (None, False)
