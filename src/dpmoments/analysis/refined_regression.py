"""Refined coefficients of a target.

``docs/evidence/derivations/refined-regression.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.clipping import ClippingEffect
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Stated
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_known
from dpmoments.messages.message import Message

TARGETS = "targets"
"""Entry of a release's diagnostics with its refined regressions."""
_ARRAYS, _NUMBERS = ("center", "whitening", "coefficients"), ("clipped", "clipped_error", "kept", "moved")


@dataclass(frozen=True, eq=False)
class RefinedRegression:
    """Refined coefficients w of a target y on the regressors a = (1, B(x − center)).

    Of encoded rows.
    """

    target: str
    features: tuple[str, ...]
    center: FloatArray  # (k + 1,), of the features, then of the target
    whitening: FloatArray  # (k, k): B
    coefficients: FloatArray  # (k + 1,), w, the constant first: y is predicted as center + wᵀa
    # with `clipped_error`: number of rows whose products were clipped, averaged over the steps, and the standard
    # deviation of its noise
    clipped: float
    clipped_error: float
    # share of what the steps changed that was kept. 0 if they show only noise: the release's own ridge fit stays.
    kept: float
    moved: float  # distance of the encoded slopes from the center of their error
    error: float | None  # root of their summed variances; None if the moments are too noisy for a bound

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in entries.items()} | {
            "features": list(self.features)
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RefinedRegression:
        """Read a file's entry, with every check."""
        _check_entry(values)
        return cls.of_entry(values)

    @classmethod
    def of_entry(cls, values: Mapping[str, Any]) -> RefinedRegression:
        """Return the regression of an entry that was checked when its release was made or read."""
        center, whitening, coefficients = (np.array(values[name], dtype=float) for name in _ARRAYS)
        clipped, clipped_error, kept, moved = (float(values[name]) for name in _NUMBERS)
        error = None if values["error"] is None else float(values["error"])
        line = (tuple(values["features"]), center, whitening, coefficients)
        return cls(str(values["target"]), *line, clipped, clipped_error, kept, moved, error)

    def ordered(self, features: Sequence[str]) -> RefinedRegression:
        """Return the same regression with its features in another order."""
        order = [self.features.index(name) for name in features]
        center = np.append(self.center[order], self.center[-1])
        return replace(self, features=tuple(features), center=center, whitening=self.whitening[:, order])

    @property
    def slopes(self) -> FloatArray:
        """Slopes of encoded features, shape (k,)."""
        return np.asarray(self.whitening.T @ self.coefficients[1:])

    @property
    def constant(self) -> float:
        """Encoded target where all encoded features are 0."""
        return float(self.center[-1] + self.coefficients[0] - self.slopes @ self.center[:-1])

    def error_bound(self, level: float) -> float | None:
        """Return a bound on the distance of the encoded slopes from those of least squares."""
        # Of all normal vectors with this sum of variances one of a single coordinate is longest, at 0.785 and above
        # (Székely and Bakirov 2003).
        if self.error is None:
            return None
        return self.moved + float(scipy.special.ndtri((1.0 + max(level, 0.8)) / 2.0)) * self.error

    def clipping(self, n_rows: float) -> ClippedResiduals:
        """Return the share of rows that were clipped, at most with 95 % confidence."""
        most = max(self.clipped, 0.0) + float(scipy.special.ndtri(0.95)) * self.clipped_error
        return ClippedResiduals(min(most / n_rows, 1.0), kept=self.kept)


@dataclass(frozen=True, eq=False)
class ClippedResiduals(ClippingEffect):
    """Largest share of rows with clipped residual products, and share of the refinement kept."""

    share: float
    kept: float = 1.0

    @property
    def description(self) -> str:
        """Text of a sentence."""
        if self.kept == 0.0:
            return (
                "The steps that refine coefficients show nothing but noise: these are the slopes of ridge regression on the "
                "released moments."
            )
        taken = ""
        if self.kept < 0.995:
            taken = f" Of what the steps changed, {1.0 - self.kept:.0%} was taken back as noise."
        return (
            "Coefficients are refined, and of clipped residuals: in the equations, the products of residual and features were "
            f"clipped for at most {self.share:.2%} of the rows (95 % confidence).{taken}"
        )


def _entries(diagnostics: Mapping[str, Any]) -> list[Any]:
    entries = diagnostics.get(TARGETS, [])
    if not isinstance(entries, list):
        raise InputValueError(Message("refined-features"))
    return entries


def _check_entry(values: object) -> None:
    """Raise unless a file's entry is a refined regression."""
    if not isinstance(values, Mapping):
        raise InputValueError(Message("refined-features"))
    require_known(values, [entry.name for entry in fields(RefinedRegression)], "a refined regression")
    features, whitening = values["features"], values["whitening"]
    if not isinstance(features, list) or not features or not all(isinstance(name, str) for name in features):
        raise InputValueError(Message("refined-features"))
    k = len(features)
    if not isinstance(whitening, list) or len(whitening) != k:
        raise InputValueError(Message("refined-whitening"))
    rows = [finite_numbers(row, k, "whitening") for row in whitening]
    for name in ("center", "coefficients"):
        finite_numbers(values[name], k + 1, name)
    for name in (*_NUMBERS, *(() if values["error"] is None else ("error",))):
        if (
            not is_finite_number(values[name])
            or (name in ("clipped_error", "error") and values[name] <= 0.0)
            or (name == "kept" and not 0.0 <= values[name] <= 1.0)
            or (name == "moved" and values[name] < 0.0)
        ):
            raise InputValueError(Message("refined-number", parameter=name))
    if np.linalg.matrix_rank(np.array(rows)) < k:
        raise InputValueError(Message("refined-whitening"))


def check_refined_features(diagnostics: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise unless the refined regressions of a file are of these features."""
    for entry in _entries(diagnostics):
        refined = RefinedRegression.from_dict(entry)
        if not {refined.target, *refined.features} <= set(names) or refined.target in refined.features:
            raise InputValueError(Message("refined-features"))


def refined_targets(release: Stated) -> tuple[str, ...]:
    """Return the targets whose coefficients were refined."""
    return tuple(entry["target"] for entry in release.diagnostics.get(TARGETS, ()))


def refined_regression(release: Stated, chosen: Regressors) -> RefinedRegression | None:
    """Return the refined regression of this target on exactly these features. None without one."""
    names = release.feature_names
    features = chosen.with_rare_levels.features
    asked = {names[index] for index in features}
    for entry in release.diagnostics.get(TARGETS, ()):
        if chosen.intercept and entry["target"] == names[chosen.target] and set(entry["features"]) == asked:
            return RefinedRegression.of_entry(entry).ordered([names[index] for index in features])
    return None
