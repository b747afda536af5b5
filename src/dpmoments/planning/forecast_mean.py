"""Forecast of every mean estimator's error, without data or budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import aligned
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputKeyError, InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.mechanisms.means.base import MeanMechanism, NormalRows
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, unknown_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.messages.message import Message
from dpmoments.planning.forecast import require_row_count
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.schema import Schema

_ASSUMED = "~"
"""Mark of an error that depends on the assumed rows."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanForecastRow:
    """Forecast for one mean estimator.

    Attributes
    ----------
    error : float or None
        RMSE ‖mean error‖₂ about the rows' own mean, in original units; None if unknown.
    feature_errors : ndarray of shape (d,) or None
        RMSE of every feature.
    assumes_rows : bool
        True if it depends on the assumed standard deviation and normal tails of the rows, not only on public numbers.
    arithmetic : str or None
        Arithmetic of the guarantee.
    refusal : str or None
        Reason why the estimator cannot run.
    """

    mechanism: str
    error: float | None = None
    feature_errors: FloatArray | None = None
    assumes_rows: bool = False
    arithmetic: str | None = None
    refusal: str | None = None


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
        _row(kind, options, shape, budget, relation, privacy_unit, n_rows, units, assumed)
        for kind in MEAN_MECHANISMS.values()
    ]
    rows.sort(key=lambda row: (row.refusal is not None, row.error or math.inf))
    return MeanForecast(tuple(rows), schema.feature_names, assumed, n_rows, budget, relation, privacy_unit)


def _row(
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
