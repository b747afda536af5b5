"""How many rows, or how much of a budget, it takes until the noise is as small as wanted: by search over plans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.planning.imagined_release import ForecastNoise, ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import BudgetKind

_MAX_BUDGET = 100.0
_MIN_BUDGET = 1e-9
_FINENESS = 1e-6
"""The smallest budget is found to this share of itself, from above."""
_MAX_ROWS = 10**12


@dataclass(frozen=True, eq=False)
class Wanted:
    """Noise (standard deviations) that is small enough: each entry is a condition, and all must hold.

    Attributes
    ----------
    correlation, coefficient : float or None
        On a typical correlation, on a standardised coefficient of the typical regression.
    mean, sd, share : mapping of features to floats
        On their means, standard deviations, or shares, in the table's units.
    """

    correlation: float | None
    coefficient: float | None
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
        """One number stands for all features of the kind: numbers for ``mean`` and ``sd``, flags and levels for ``share``."""
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
                    raise InputValueError(f"{name} is of two columns, and the schema has one")
        return cls(
            correlation,
            coefficient,
            _by_feature("mean", mean, numbers, shares),
            _by_feature("sd", sd, numbers, shares),
            _by_feature("share", share, shares, numbers),
        )

    def holds(self, noise: ForecastNoise) -> bool:
        """Whether all of it is reached; not where a number is called noise."""
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
    """The smallest number of rows at which the plan has noise that small."""

    def enough(n_rows: int) -> bool:
        return _holds(replace(setting, n_rows=n_rows), wanted)

    most = 1
    while not enough(most):
        most *= 4
        if most > _MAX_ROWS:
            raise InputValueError(f"not within {_MAX_ROWS:.0e} rows: give a larger budget, or ask for less")
    least = most // 4
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def budget_needed(setting: ReleasePlan, wanted: Wanted) -> float:
    """The smallest ε (at the setting's δ), or ρ, at which the plan has noise that small."""
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
    """Not where the plan is refused: a budget can be so small that it is."""
    try:
        noise = setting.noise
    except (ValueError, OverflowError):
        return False
    if noise is None:
        raise InputValueError(
            f"the noise of {setting.mechanism.name} in the table's units is not known beforehand: name another mechanism"
        )
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
            raise InputValueError(f"{what}: the schema has no feature that it could be of")
        return dict.fromkeys(sorted(known), _positive(what, given))
    if wrong := sorted(set(given) & others, key=str):
        instead = "mean or sd" if what == "share" else "share"
        raise InputValueError(f"{what} of {', '.join(map(repr, wrong))}: ask for {instead} there")
    if unknown := sorted(set(given) - known, key=str):
        raise InputValueError(
            f"{what} names {', '.join(map(repr, unknown))}: use {', '.join(map(repr, sorted(known)[:20]))}"
        )
    return {name: _positive(f"{what} of {name!r}", value) for name, value in given.items()}


def _positive(what: str, value: float) -> float:
    if not (is_finite_number(value) and value > 0.0):
        raise InputValueError(f"{what}: {value!r} must be a positive finite number")
    return float(value)
