"""Principal components of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpmoments.analysis.answers import finite_or_none, in_floating_point
from dpmoments.analysis.released import Released
from dpmoments.array_types import FloatArray
from dpmoments.repair.count_floor import few_rows_in_words

__all__ = ["PrincipalComponents", "pca"]

Scaling: TypeAlias = Literal["units", "bounds", "correlation"]

SCALINGS: Mapping[Scaling, str] = MappingProxyType(
    {
        "units": "features in the table's own units",
        "bounds": "numeric columns divided by the half-width of their bounds",
        "correlation": "features divided by their released standard deviation",
    }
)
"""Every scaling in words."""


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Principal components in the terms of scikit-learn's ``PCA``.

    Attributes
    ----------
    components : ndarray of shape (k, d)
        Unit vectors, rows, the largest variance first, each with its largest entry positive; in scaled feature space.
    explained_variance : ndarray of shape (k,)
    explained_variance_ratio : ndarray of shape (k,)
        Shares of the total variance.
    mean : ndarray of shape (d,)
        What is subtracted first, in the table's units; zeros where no mean was released.
    scale : ndarray of shape (d,)
        What each feature is divided by; ones with ``scaling="units"``.
    feature_names : tuple of str
    scaling : {"units", "bounds", "correlation"}
    centered : bool
        Whether they are of the covariance; else of the second moment about zero, since no mean was released.
    warning : str
        What speaks against reading them as those of the table: too few rows for the budget; mostly empty.
    """

    components: FloatArray
    explained_variance: FloatArray
    explained_variance_ratio: FloatArray
    mean: FloatArray
    scale: FloatArray
    feature_names: tuple[str, ...]
    scaling: Scaling
    centered: bool
    warning: str = ""

    def transform(self, values: npt.ArrayLike) -> FloatArray:
        """Scores of rows given in the table's units, (m, d) → (m, k)."""
        rows = np.asarray(values, dtype=np.float64)
        return ((rows - self.mean) / self.scale) @ self.components.T

    def summary(self) -> str:
        """The components as text: scaling and centring, then share of variance and the features that weigh most."""
        about = "about the released mean" if self.centered else "about zero (no mean was released)"
        lines = [f"principal components {about}, {SCALINGS[self.scaling]}"]
        for index, component in enumerate(self.components):
            order = np.argsort(-np.abs(component), kind="stable")[:5]
            loadings = ", ".join(f"{component[i]:+.2f} {self.feature_names[i]}" for i in order)
            lines.append(f"component {index + 1}: {self.explained_variance_ratio[index]:6.1%}  {loadings}")
        return "\n".join(filter(None, [*lines, self.warning]))

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """The attributes as JSON holds them, components row by row."""
        return {
            "feature_names": list(self.feature_names),
            "components": [finite_or_none(component) for component in self.components],
            "explained_variance": finite_or_none(self.explained_variance),
            "explained_variance_ratio": finite_or_none(self.explained_variance_ratio),
            "mean": finite_or_none(self.mean),
            "scale": finite_or_none(self.scale),
            "scaling": self.scaling,
            "centered": self.centered,
            "warning": self.warning,
        }


@in_floating_point
def pca(release: Released, n_components: int | None = None, *, scaling: Scaling = "units") -> PrincipalComponents:
    """Principal components of a release: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Released
    n_components : int, optional
        How many, k; default: all.
    scaling : {"units", "bounds", "correlation"}
        ``"units"``: the table's own units, as scikit-learn does. ``"bounds"``: every numeric column divided by the half-width
        of its public bounds, which treats columns alike and keeps the noise isotropic. ``"correlation"``: every feature
        divided by its released standard deviation.

    Raises
    ------
    ValueError
        If ``n_components`` or ``scaling`` is not possible.

    Notes
    -----
    Without a mean (``mean=False``) these are the eigenvectors of the second moment about zero.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, [0.3, 0.1], (5000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.pca(1).components.round(1)
    array([[ 1., -0.]])
    """
    d = len(release.feature_names)
    k = d if n_components is None else n_components
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= d:
        raise ValueError(f"n_components={n_components!r} must be a whole number from 1 to {d}")
    encoding = release.encoding
    centered = release.noisy_sum is not None
    if centered:
        matrix, mean = release.covariance, release.mean
    else:
        matrix, mean = release.second_moment, np.zeros(d)
    if scaling == "units":
        scale = np.ones(d)
    elif scaling == "bounds":
        scale = encoding.unit
    elif scaling == "correlation":
        variance = np.diag(matrix)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    else:
        raise ValueError(f"scaling={scaling!r}: use 'units', 'bounds' or 'correlation'")
    eigenvalues, eigenvectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    eigenvalues, components = eigenvalues[::-1], eigenvectors.T[::-1]
    leading = components[np.arange(d), np.argmax(np.abs(components), axis=1)]
    components = components * np.where(leading < 0, -1.0, 1.0)[:, None]
    total = float(np.maximum(eigenvalues, 0.0).sum())
    ratio = eigenvalues / total if total > 0 else np.zeros(d)
    return PrincipalComponents(
        components=components[:k],
        explained_variance=eigenvalues[:k],
        explained_variance_ratio=ratio[:k],
        mean=mean,
        scale=scale,
        feature_names=release.feature_names,
        scaling=scaling,
        centered=centered,
        warning=few_rows_in_words(release.noisy_count, release.noise),
    )
