"""Forecast of a release's noise and of every mechanism's error, without data or budget.

An error that depends on the table is that on an assumed table (:mod:`dpmoments.mechanisms.synthetic_spectrum`,
:mod:`dpmoments.planning.typical_table`), by closed form or from a few runs on synthetic rows, and is marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import is_whole
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.share_for_targets import budget_of_moments, check_targets, has_gaussian_noise
from dpmoments.mechanisms.synthetic_spectrum import Assumption, SyntheticSpectrum
from dpmoments.messages.message import Message
from dpmoments.planning.changes import changes
from dpmoments.planning.forecast_table import DerivedCost, Forecast, ForecastRow, short_refusal
from dpmoments.planning.imagined_release import ForecastNoise, ReleasePlan, forecast_noise, planned, worst_run
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
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
    targets: Sequence[str] = (),
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
    epsilon, delta, rho, neighbors, mean, targets
        As for :func:`dpmoments.release`. With targets the moments have three quarters of ρ.
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
    check_targets(schema, targets)
    if refines := len(targets) > 0:
        budget_of_moments(shape, budget)
    assumption = Assumption.of(schema.with_indicators, mean=mean, spectrum=spectrum, decay=decay)
    typical = TypicalTable.of(schema, typical_sd=typical_sd, typical_mean=typical_mean, spectrum=spectrum, decay=decay)
    if mechanism is not None:
        planned(make_mechanism(mechanism), shape, budget, relation, privacy_unit, refines=refines)  # or its refusal
    assumed = assumption.table(n_rows)
    rows = [
        _row(name, kind(), shape, budget, relation, privacy_unit, assumed, typical, refines=refines)
        for name, kind in MECHANISMS.items()
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
        targets=tuple(targets),
    )
    chosen = mechanism or table.best
    if chosen is None or table[chosen].typical_noise is None:
        return table
    others = [row.mechanism for row in table.known if row.mechanism not in (chosen, "auto")]
    rivals = tuple(MECHANISMS[name]() for name in others)[:_MAX_RIVALS]
    setting = ReleasePlan(typical, n_rows, budget, relation, MECHANISMS[chosen](), rivals, privacy_unit, refines)
    return _in_units(table, setting)


def _in_units(table: Forecast, setting: ReleasePlan) -> Forecast:
    """Add the numbers of one mechanism in original units."""
    plan = setting.plan
    worst = worst_run(plan)
    return replace(
        table,
        setting=setting,
        noise=setting.noise,
        worst=None if worst is None else ForecastNoise.of(plan, setting.typical, setting.n_rows, (worst,)),
        changes=changes(setting),
    )


def _without_units(shape: MomentShape, mechanism: str | None) -> str:
    if shape.row_norm is None:
        return (
            "no numbers in original units: the noise on columns without bounds is known only when it is drawn; "
            "give every column public bounds, however wide: dpm.Numeric('income', 0, 500_000)"
        )
    if not shape.mean:
        return (
            "no numbers in original units: without a mean (mean=False) standard deviations and correlations are "
            "not available; leave mean=False out, for a release with a mean"
        )
    which = "no possible mechanism has noise that is known beforehand"
    if mechanism is not None:
        which = f"the noise of {mechanism} is not known beforehand"
    return f"no numbers in original units: {which}"


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
        raise InputValueError(Message("out-of-range", parameter="n_rows", value=n_rows, expected="positive-whole"))


def _row(
    name: str,
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    privacy_unit: PrivacyUnit | None,
    assumed: SyntheticSpectrum,
    typical: TypicalTable,
    *,
    refines: bool,
) -> ForecastRow:
    try:
        plan = planned(mechanism, shape, budget, neighbors, privacy_unit, refines=refines)
        if plan.measured_runs == 0:
            return ForecastRow(mechanism=name, arithmetic=str(plan.arithmetic), chosen_because=plan.chosen_because)
        errors = plan.errors_on(
            assumed, (PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(plan.measured_runs))
        )
    except (ValueError, OverflowError) as refusal:  # of the plan, or of numbers beyond all tables
        few = short_refusal(mechanism, shape, budget, str(refusal))
        if refines and not has_gaussian_noise(mechanism):
            few = "targets need Gaussian noise"
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
