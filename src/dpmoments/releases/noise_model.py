"""The noise model of a release: from its additive law, from the pivot of its run, or from what the mechanism recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number
from dpmoments.noise.dependent import InverseNormalPivot, LastStepPivot, WishartPivot
from dpmoments.noise.eigenvector_noise import projected_cells, subtracted_cells
from dpmoments.noise.law import MomentPivot
from dpmoments.noise.law import NoiseLaw as AdditiveLaw
from dpmoments.noise.models import (
    AdditiveModel,
    InverseNormalModel,
    LastStepModel,
    NoiseModel,
    PooledModel,
    ReleasedBasisModel,
    ScaledWishartModel,
    WishartModel,
)
from dpmoments.noise.pooled import PooledNoise
from dpmoments.noise.terms import NoiseLaw
from dpmoments.privacy.budget import BudgetKind

_EIGENVECTORS = MappingProxyType({"iterative-eigenvectors": projected_cells, "kapralov-talwar": subtracted_cells})
"""The mean squares of the cells in the released eigenbasis, by mechanism."""
_OF_PIVOT: Mapping[type[MomentPivot], type[NoiseModel]] = MappingProxyType(
    {LastStepPivot: LastStepModel, InverseNormalPivot: InverseNormalModel, WishartPivot: WishartModel}
)


def law_of_release(release: Released) -> NoiseLaw | None:
    """The law of the noise on Σ z zᵀ, z = (1, x) about the release's center.

    Parameters
    ----------
    release : Released

    Returns
    -------
    NoiseLaw or None
        Exact for noise that is added cell by cell, for pooled releases, for given rows as the last step clipped them (coinpress,
        private-preconditioning) and for additive Wishart noise of another scale. **Linearized about the release** for draws
        around the moments (johnson-lindenstrauss, inverse-wishart), noise on their inverse, and eigenvectors: the law's
        ``caveats`` say so (``docs/derivations/noise-of-runs.md``). None if moments are biased by an amount that was left in on
        purpose (``subtract_padding=False``, a kept shift), or if a file does not say enough.
    """
    try:
        if release.noise is not None:
            return _additive_model(release.noise).law()
        model = _model_of_pivot(release.pivot) if release.pivot is not None else _recorded_model(release)
        return None if model is None else model.law(release)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return None  # a file whose numbers are those of no run


def _additive_model(law: AdditiveLaw) -> AdditiveModel | PooledModel:
    if isinstance(law, PooledNoise):
        parts = tuple((_additive_model(part.law), part.delta) for part in law.parts)
        return PooledModel(n_features=law.n_features, parts=parts)
    entries = law.to_dict()
    if not entries.keys() <= {"name", *(entry.name for entry in fields(AdditiveModel))}:
        raise ValueError(f"there is no noise model for the law {law.name!r}")
    return AdditiveModel(family=entries.pop("name"), **entries)


def _model_of_pivot(pivot: MomentPivot) -> NoiseModel | None:
    made = _OF_PIVOT.get(type(pivot))
    return None if made is None else made(**{entry.name: getattr(pivot, entry.name) for entry in fields(pivot)})


def _recorded_model(release: Released) -> NoiseModel | None:
    """Of mechanisms that have no pivot, from their plan's numbers and their diagnostics."""
    if release.mechanism in _EIGENVECTORS:
        return _eigenvector_model(release)
    return _wishart_rows_model(release) if release.mechanism == "additive-wishart" else None


def _eigenvector_model(release: Released) -> NoiseModel | None:
    d = len(release.feature_names)
    eigenvalues = _numbers(release.diagnostics.get("eigenvalues"))
    temperatures = _numbers(release.diagnostics.get("temperatures"))
    scale = _number(release.details.get("eigenvalue_scale"))
    sum_scale = 0.0 if release.noisy_sum is None else _number(release.details.get("sum_scale"))
    if eigenvalues is None or temperatures is None or len(eigenvalues) != d or not 0 < len(temperatures) <= d:
        return None
    if scale is None or sum_scale is None:
        return None
    laplace = release.privacy.budget.kind is BudgetKind.PURE
    times = 2.0 if laplace else 1.0
    cells = _EIGENVECTORS[release.mechanism](eigenvalues, temperatures, times * scale**2)
    of_sum = times * sum_scale**2
    return ReleasedBasisModel(
        n_features=d,
        cells=(cells + cells.T) / 2.0,  # they differ in the last bit
        sum_variance=of_sum,
        count_variance=0.0 if release.count_is_public else of_sum,
        laplace=laplace,
    )


def _wishart_rows_model(release: Released) -> NoiseModel | None:
    """k normal rows of covariance s²V beside the table's, less their mean."""
    if release.diagnostics.get("kept_shift"):
        return None
    d, stated = len(release.feature_names), release.mechanism_options.get("scale_matrix")
    degrees, scale, augmentation = (
        _number(release.details.get(name)) for name in ("degrees_of_freedom", "scale", "augmentation")
    )
    if degrees is None or scale is None or augmentation is None:
        return None
    matrix = np.eye(d)
    if stated is not None:
        rows = [_numbers(row) for row in stated] if isinstance(stated, list | tuple) else []
        if len(rows) != d or any(row is None or len(row) != d for row in rows):
            return None
        matrix = np.array(rows)
        matrix = (matrix + matrix.T) / 2.0
    return ScaledWishartModel(
        n_features=d,
        degrees=degrees,
        scale=scale,
        scale_matrix=matrix,
        augmentation=augmentation,
        count_is_noisy=not release.count_is_public,
    )


def _number(value: Any) -> float | None:
    """A finite number, as a record holds it; None for anything else."""
    return float(value) if is_finite_number(value) else None


def _numbers(values: Any) -> FloatArray | None:
    """A list of finite numbers, as a record holds it; None for anything else."""
    if not isinstance(values, list | tuple) or not all(map(is_finite_number, values)):
        return None
    return np.array(values, dtype=np.float64)
