"""The law of the noise of one run: the one that the release states, or what follows from the pivot or the record of the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmoments.analysis.inference import NoiseOfMoments
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number
from dpmoments.noise.dependent import InverseNormalPivot, LastStepPivot, WishartPivot
from dpmoments.noise.eigenvector_noise import projected_cells, subtracted_cells
from dpmoments.noise.law import MomentPivot, RotatedNoise
from dpmoments.privacy.budget import BudgetKind

_LINEARISED = "The law of the noise is linearised about the release: it holds where noise is small beside the moments."
_LAST_STEP = "The noise is known about the rows as the last step clipped them: what clipping took away comes on top."
_EIGENVECTORS = {"iterative-eigenvectors": projected_cells, "kapralov-talwar": subtracted_cells}
"""The mean squares of the cells in the released eigenbasis, by mechanism."""


def noise_of_run(release: Released) -> NoiseOfMoments | None:
    """The law of the noise on Σ z zᵀ, z = (1, x) about the release's centre.

    Parameters
    ----------
    release : Released

    Returns
    -------
    NoiseOfMoments or None
        ``release.noise`` where there is one. Else a :class:`dpmoments.noise.law.RotatedNoise`, made of what was released:
        exact for given rows as the last step clipped them (coinpress, private-preconditioning) and for additive Wishart noise of
        another scale; **linearised about the release** for draws around the moments (johnson-lindenstrauss, inverse-wishart),
        noise on their inverse, and eigenvectors (``docs/derivations/noise-of-runs.md``). None where moments are biased by an
        amount that was left in on purpose (``subtract_padding=False``, a kept shift), or where a file does not say enough.
    """
    if release.noise is not None:
        return release.noise
    try:
        return _of_pivot(release, release.pivot) if release.pivot is not None else _of_record(release)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return None  # a file whose numbers are those of no run


def _of_pivot(release: Released, pivot: MomentPivot) -> RotatedNoise | None:
    if isinstance(pivot, WishartPivot):
        return _of_draw(release, pivot)
    if isinstance(pivot, LastStepPivot):
        return _of_last_step(release, pivot)
    if isinstance(pivot, InverseNormalPivot):
        d, square = pivot.n_features, pivot.inverse_scale**2
        # (G⁻¹ + Y)⁻¹ − G = −ĜYĜ to first order
        gram, cells = release.noisy_gram, _symmetric_cells(d, square)
        of_sum = 0.0 if pivot.sum_scale is None else pivot.sum_scale**2
        return _beside(_count_variance(pivot), of_sum, gram, cells, f"{_LINEARISED} It holds {pivot.covers}.")
    return None


def _of_draw(release: Released, pivot: WishartPivot) -> RotatedNoise | None:
    """W = Σ^½(I + C)Σ^½, with Σ for its own draw W: any root does, since the law of C is that of all its rotations."""
    if not pivot.subtracted:
        return None
    beyond = pivot.degrees - pivot.dimension - 3.0
    if pivot.inverse and beyond <= 0.0:
        return None
    d, constant = pivot.n_features, bool(pivot.augmentation)
    drawn = release.noisy_gram + pivot.padding * np.eye(d)
    if constant:
        if release.noisy_sum is None:
            return None
        beside = pivot.augmentation * release.noisy_sum
        drawn = np.block([[np.array([[pivot.corner]]), beside[None, :]], [beside[:, None], drawn]])
    cells = _symmetric_cells(len(drawn), 2.0 / (beyond if pivot.inverse else pivot.degrees))
    eigenvalues, vectors = np.linalg.eigh(drawn)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    about = f"{_LINEARISED} It holds {pivot.covers}." if pivot.covers else _LINEARISED
    if not constant:
        return _beside(_count_variance(pivot), 0.0, root, cells, about)
    root[0] /= pivot.augmentation
    return RotatedNoise(root, cells, release.count_is_public, about)


def _of_last_step(release: Released, pivot: LastStepPivot) -> RotatedNoise:
    """Noise on the moments of (1, w), w = A(x − c), carried to x about the release's centre."""
    d = pivot.n_features
    matrix = np.eye(d + 1)
    matrix[1:, 1:] = np.linalg.inv(pivot.linear)
    matrix[1:, 0] = pivot.center if release.center is None else pivot.center - release.center
    cells = np.zeros((d + 1, d + 1))
    cells[0, 0] = _count_variance(pivot)
    cells[0, 1:] = cells[1:, 0] = pivot.sum_scale**2
    cells[1:, 1:] = _symmetric_cells(d, pivot.gram_scale**2)
    return RotatedNoise(matrix, cells, about=_LAST_STEP)


def _of_record(release: Released) -> RotatedNoise | None:
    """Of mechanisms that have no pivot, from their plan's numbers and their diagnostics."""
    if release.mechanism in _EIGENVECTORS:
        return _of_eigenvectors(release)
    return _of_wishart_rows(release) if release.mechanism == "additive-wishart" else None


def _of_eigenvectors(release: Released) -> RotatedNoise | None:
    d = len(release.feature_names)
    eigenvalues = _numbers(release.diagnostics.get("eigenvalues"))
    temperatures = _numbers(release.diagnostics.get("temperatures"))
    scale = _number(release.details.get("eigenvalue_scale"))
    sum_scale = 0.0 if release.noisy_sum is None else _number(release.details.get("sum_scale"))
    if eigenvalues is None or temperatures is None or len(eigenvalues) != d or not 0 < len(temperatures) <= d:
        return None
    if scale is None or sum_scale is None:
        return None
    laplace = 2.0 if release.privacy.budget.kind is BudgetKind.PURE else 1.0
    cells = _EIGENVECTORS[release.mechanism](eigenvalues, temperatures, laplace * scale**2)
    basis = np.linalg.eigh(release.noisy_gram)[1][:, ::-1]
    of_sum = laplace * sum_scale**2
    return _beside(0.0 if release.count_is_public else of_sum, of_sum, basis, cells, _LINEARISED)


def _of_wishart_rows(release: Released) -> RotatedNoise | None:
    """k normal rows of covariance s²V beside the table's, less their mean."""
    if release.diagnostics.get("kept_shift"):
        return None
    d, options = len(release.feature_names), release.mechanism_options
    degrees, scale, augmentation = (
        _number(release.details.get(name)) for name in ("degrees_of_freedom", "scale", "augmentation")
    )
    if degrees is None or scale is None or augmentation is None:
        return None
    root, stated = np.eye(d), options.get("scale_matrix")
    if stated is not None:
        rows = [_numbers(row) for row in stated] if isinstance(stated, list | tuple) else []
        if len(rows) != d or any(row is None or len(row) != d for row in rows):
            return None
        root = np.linalg.cholesky(np.array(rows))
    variance = degrees * scale**2
    of_sum = variance / augmentation**2 if augmentation else 0.0
    of_count = 0.0 if release.count_is_public or not augmentation else 2.0 * variance / augmentation**4
    matrix = np.zeros((d + 1, d + 1))
    matrix[0, 0], matrix[1:, 1:] = 1.0, root
    cells = np.zeros((d + 1, d + 1))
    cells[0, 0], cells[1:, 1:] = of_count, _symmetric_cells(d, 2.0 * variance)
    cells[0, 1:] = cells[1:, 0] = of_sum
    return RotatedNoise(matrix, cells)


def _beside(
    count_variance: float, sum_variance: float, matrix: FloatArray, cells: FloatArray, about: str
) -> RotatedNoise:
    """Noise M C Mᵀ on the Gram matrix, with noise of their own on the sum (alike in all directions) and the count."""
    d, m = matrix.shape
    rows = np.zeros((d + 1, 1 + d + m))
    rows[:, : d + 1] = np.eye(d + 1)
    rows[1:, d + 1 :] = matrix
    variances = np.zeros((1 + d + m,) * 2)
    variances[0, 0] = count_variance
    variances[0, 1 : d + 1] = variances[1 : d + 1, 0] = sum_variance
    variances[d + 1 :, d + 1 :] = cells
    return RotatedNoise(rows, variances, about=about)


def _symmetric_cells(size: int, diagonal: float) -> FloatArray:
    """Variances of symmetric noise whose law all rotations leave: half as large off the diagonal."""
    cells = np.full((size, size), 0.5 * diagonal)
    np.fill_diagonal(cells, diagonal)
    return cells


def _count_variance(pivot: MomentPivot) -> float:
    return pivot.count_scale**2 * (2.0 if pivot.count_is_laplace else 1.0)


def _number(value: Any) -> float | None:
    """A finite number, as a record holds it; None for anything else."""
    return float(value) if is_finite_number(value) else None


def _numbers(values: Any) -> FloatArray | None:
    """A list of finite numbers, as a record holds it; None for anything else."""
    if not isinstance(values, list | tuple) or not all(map(is_finite_number, values)):
        return None
    return np.array(values, dtype=np.float64)
