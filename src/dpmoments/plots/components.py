"""The picture of principal components: how much of each feature is in them, and which are noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.components import SCALINGS, PrincipalComponents, Scaling, pca
from dpmoments.analysis.functionals import NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import IntegerArray
from dpmoments.plots.canvas import SMALL_TEXT, TEXT_SIZE, entitle
from dpmoments.plots.letters import as_it_stands
from dpmoments.plots.matrices import NumberedCells, draw_matrix, matrix_axes, with_color_bar
from dpmoments.plots.refusals import require_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_components", "plot_components"]

MOST_COMPONENTS = 5
MOST_FEATURES = 25


def plot_components(
    release: Released,
    n_components: int | None = None,
    columns: Sequence[str] | None = None,
    *,
    scaling: Scaling = "bounds",
    n_features: int = MOST_FEATURES,
    ax: Axes | None = None,
) -> Axes:
    """Loadings as coloured cells; see :meth:`dpmoments.plots.accessor.ReleasePlots.components`."""
    require_count(release, "principal components")
    if n_components is None:
        n_components = min(MOST_COMPONENTS, len(pca(release, 1, columns).feature_names))
    return draw_components(pca(release, n_components, columns, scaling=scaling), n_features, ax)


def draw_components(found: PrincipalComponents, n_features: int = MOST_FEATURES, ax: Axes | None = None) -> Axes:
    """The picture of the components of an answer of ``release.pca()``.

    Raises
    ------
    ValueError
        If no feature is to be shown.
    """
    from matplotlib.colors import Normalize

    if n_features < 1:
        raise ValueError(f"n_features={n_features!r} shows nothing: give 1 or more")
    chosen = _weighing_most(found, n_features)
    loadings = found.components[:, chosen].T
    is_noise, known = found.is_noise, found.noise is not None
    k, largest = len(is_noise), float(np.abs(loadings).max())
    grow = ax is None
    ax = matrix_axes(ax, len(chosen), k)
    image = draw_matrix(
        ax,
        loadings,
        Normalize(-largest, largest),
        rows=[found.feature_names[place] for place in chosen],
        columns=[str(place) for place in range(1, k + 1)],
        is_noise=np.broadcast_to(is_noise, loadings.shape) | (not known),
        cells=NumberedCells(
            [[f"{round(value, 2) + 0.0:+.2f}" for value in line] for line in loadings.tolist()],
            [[""] * k] * len(chosen),
        ),
    )
    words = [
        "noise" if noise else f"{share:.0%}"
        for noise, share in zip(is_noise, found.explained_variance_ratio, strict=True)
    ]
    ax.set_xticks(range(k))
    ax.set_xticklabels(
        [f"{place}\n{said}" for place, said in enumerate(words, 1)], fontsize=SMALL_TEXT, rotation=0, **as_it_stands()
    )
    ax.set_xlabel("component, and its share of the total variance", fontsize=TEXT_SIZE)
    with_color_bar(ax, image, "loading")
    fewer = len(chosen) < len(found.feature_names)
    entitle(
        ax,
        f"principal components: {int((~is_noise).sum())} of the first {k} stand out of the noise"
        if known
        else "principal components: noise unknown",
        SCALINGS[found.scaling],
        f"hatched: {NOT_DISTINGUISHABLE}" if is_noise.any() else law_in_words(found.noise),
        f"the {len(chosen)} of {len(found.feature_names)} features that weigh most in them" if fewer else "",
        found.warning,
        grow=grow,
    )
    return ax


def _weighing_most(found: PrincipalComponents, n_features: int) -> IntegerArray:
    """Places of the features with the largest loadings, on components that stand out where there are any, in their order."""
    looked_at = found.components if found.is_noise.all() else found.components[~found.is_noise]
    order = np.argsort(-np.abs(looked_at).max(axis=0), kind="stable")[:n_features]
    return np.sort(order)
