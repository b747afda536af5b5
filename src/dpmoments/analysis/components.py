"""Structure of a covariance: principal components, distances, and a graph of dependence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from dpmoments.analysis.answers import (
    NOISE,
    Answer,
    Column,
    confidence_level,
    format_level,
    in_floating_point,
    number,
    rounded_cells,
    step_errors,
    takes_level,
)
from dpmoments.analysis.confidence import NOT_CLEAR_NOISE, deviations_for
from dpmoments.analysis.frames import feature_values, named_values
from dpmoments.analysis.functionals import (
    LocalMoments,
    Standardized,
    describe_law,
    indicator_mask,
    noise_edges,
    without_redundant_levels,
)
from dpmoments.analysis.released import Moments, cautions_by_code, chosen_features, columns_with_indices, needs_mean
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, listed, out_of_range, shown
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, directions_of, largest_first, leading_positive
from dpmoments.moments.law import NoiseLaw
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.schema import Schema

# What is known of fourth moments from shares alone: how a sample's second moments of levels and Booleans vary.


def _fourth_cumulants(
    release: Moments, chosen: IntegerArray, scale: FloatArray, vectors: FloatArray, subtracted: FloatArray
) -> FloatArray:
    """Return what levels add to the variance of xᵀ(vvᵀ − diag s)x for normal rows, shape (p,)."""
    added = np.zeros(len(vectors))
    if release.noisy_sum is None:
        return added
    zero_one, mean = indicator_mask(release), release.mean
    for _, features in columns_with_indices(release):
        indices = np.flatnonzero(np.isin(chosen, features))
        if not len(indices) or not zero_one[chosen[indices]].all():
            continue
        shares = np.clip(mean[chosen[indices]], 0.0, 1.0)
        shares = shares / max(1.0, float(shares.sum()))
        # the values that the column takes: each level, and none of those chosen
        outcomes = np.vstack([np.eye(len(indices)), np.zeros(len(indices))])
        chances = np.concatenate([shares, [1.0 - float(shares.sum())]])
        deviations = (outcomes - shares) / scale[indices]
        own, less = vectors[:, indices], subtracted[:, indices]
        forms = (own @ deviations.T) ** 2 - less @ deviations.T**2
        covariance = (deviations.T * chances) @ deviations
        normal = 2.0 * _trace_of_square(own, less, covariance)
        added += forms**2 @ chances - (forms @ chances) ** 2 - normal
    return added


def _trace_of_square(vectors: FloatArray, subtracted: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return tr((WS)²) of each W = vvᵀ − diag s, shape (p,)."""
    images = vectors @ matrix
    alone = np.einsum("pi,pi->p", images, vectors) ** 2
    both = np.einsum("pi,pi->p", subtracted, images**2)
    return np.asarray(alone - 2.0 * both + np.einsum("pi,pi->p", subtracted @ matrix**2, subtracted))


_MIN_SAMPLING = 0.05
"""The sampling variance is this share of that of normal rows at least."""


def _explained_variance_noise(
    release: Moments,
    moments: LocalMoments,
    chosen: IntegerArray,
    scale: FloatArray,
    components: FloatArray,
    eigenvalues: FloatArray,
    matrix: FloatArray,
    *,
    by_deviation: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return variances of vᵀSv, S the scaled covariance, by noise and by sampling, each (k,)."""
    in_units = moments.unit[chosen] / scale
    subtracted = eigenvalues[:, None] * components**2 if by_deviation else np.zeros_like(components)
    normal = np.maximum(2.0 * _trace_of_square(components, subtracted, matrix), 0.0)
    beyond = _fourth_cumulants(release, chosen, scale, components, subtracted)
    sampling = np.maximum(normal + beyond, _MIN_SAMPLING * normal) / moments.independent_rows
    # without scaling by deviations the count divides, and has noise of its own
    of_count = np.zeros(len(components)) if by_deviation else eigenvalues
    on_moments = np.column_stack([np.zeros(len(components)), components * in_units])
    less = np.column_stack([of_count, subtracted * in_units**2])
    return moments.variances_of_squares(chosen, on_moments, less) / moments.n_rows**2, sampling


Scaling: TypeAlias = Literal["units", "bounds", "correlation"]

SCALINGS: Mapping[Scaling, str] = MappingProxyType(
    {
        "units": "features in the table's own units",
        "bounds": "numeric columns divided by the half-width of their bounds",
        "correlation": "features divided by their released standard deviation",
    }
)
"""Every scaling in words."""
_NORMAL_ROWS = (
    "± sampling and intervals assume normal rows: 95 % intervals held in 78 % of tables of exponential columns, in "
    "53 % of lognormal ones (σ = 0.75)."
)
"""Share of 1,500 tables of three correlated columns; uniform columns: 98 %, t(5): 83 %."""
_SHOWN_LOADINGS = 5
_MIN_LOADING = 0.05
"""Smallest loading that the text shows."""


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(Answer):
    """Principal components in the terms of scikit-learn's ``PCA``.

    Attributes
    ----------
    components : ndarray of shape (k, d)
        Unit vectors, rows, the largest variance first, each with its largest entry positive; in scaled feature space.
    explained_variance : ndarray of shape (k,)
    explained_variance_ratio : ndarray of shape (k,)
        Shares of the total variance.
    mean : ndarray of shape (d,)
        Subtracted first, in original units; zeros if no mean was released.
    scale : ndarray of shape (d,)
        Divisor of each feature; ones with ``scaling="units"``.
    feature_names : tuple of str
    scaling : {"units", "bounds", "correlation"}
    centered : bool
        True for the covariance; False for the second moment about zero (no mean was released).
    privacy_noise, sampling_noise : ndarray of shape (k,)
        Standard deviations of the two parts of the error of an explained variance, to first order; NaN where they are not known.
    noisy_variance : ndarray of shape (k,)
        The explained variances before repair.
    noise_edge : ndarray of shape (k,)
        Noise floor: about the 95 % quantile of a variance caused by noise, in the directions that earlier components leave; NaN
        if not known.
    largest_possible : float
        Variance that the bounds allow in any direction; infinite without bounds.
    schema : Schema
        Of the frames that :meth:`transform` reads.
    noise : NoiseLaw or None
    rare_levels : tuple of str
        Levels of few rows whose noise, divided by their deviation, hides components that would be clear without them.
    warning : str
        Reason not to read them as facts about the table (too few rows for the budget); usually empty.
    level : float
        Confidence level of the intervals.
    """

    components: FloatArray
    explained_variance: FloatArray
    explained_variance_ratio: FloatArray
    mean: FloatArray
    scale: FloatArray
    feature_names: tuple[str, ...]
    scaling: Scaling
    centered: bool
    privacy_noise: FloatArray
    sampling_noise: FloatArray
    noisy_variance: FloatArray
    noise_edge: FloatArray
    largest_possible: float
    schema: Schema
    noise: NoiseLaw | None = None
    rare_levels: tuple[str, ...] = ()
    warning: str = ""
    level: float = 0.95

    facts = (
        *("feature_names", "components", "explained_variance", "explained_variance_ratio", "interval: conf_int"),
        *("privacy_noise", "sampling_noise", "is_noise", "mean", "scale", "scaling", "centered"),
        *("rare_levels", "level", "warning"),
    )

    @property
    def is_noise(self) -> BoolArray:
        """Mask of components with a variance, before or after repair, within the floor, shape (k,)."""
        return np.minimum(self.noisy_variance, self.explained_variance) <= self.noise_edge

    @takes_level
    def conf_int(self, level: float | None = None) -> FloatArray:
        """Return intervals of the population's explained variances, shape (k, 2).

        NaN if noise is unknown.

        The interval of a component that is noise is 0 to the most that noise can hide (Weyl's inequality).

        Raises
        ------
        ValueError
            If the level is below 0.5.
        """
        level = self.level if level is None else confidence_level(level)
        privacy, sampling = self.privacy_noise**2, self.sampling_noise**2
        half = deviations_for(level, self.noise, privacy, sampling) * np.sqrt(privacy + sampling)
        lower = np.where(self.is_noise, 0.0, np.maximum(self.explained_variance - half, 0.0))
        hidden = np.maximum(self.noisy_variance, 0.0) + self.noise_edge
        upper = np.where(self.is_noise, np.maximum(hidden, self.explained_variance), self.explained_variance + half)
        if self.noise is None:
            return np.full((len(half), 2), np.nan)
        return np.asarray(np.minimum(np.stack([lower, upper], axis=1), self.largest_possible))

    def transform(self, frame: Any) -> FloatArray:
        """Return scores of a frame's rows, read by column name, shape (m, k).

        NaN if a value is missing.

        An array is accepted only if every column of the schema is a coordinate (``Schema.unit_ball``).

        Raises
        ------
        TypeError
            If ``frame`` is not a frame.
        ValueError
            If a column is absent, or holds undeclared levels.
        """
        rows = named_values(self.schema, frame, self.feature_names)
        return ((rows - self.mean) / self.scale) @ self.components.T

    @property
    def heading(self) -> tuple[str, ...]:
        about = "about the released mean" if self.centered else "about zero (no mean was released)"
        return (f"principal components {about}, {SCALINGS[self.scaling]}",)

    @property
    def remarks(self) -> tuple[str, ...]:
        rare = ""
        if self.rare_levels:
            other = "." if self.scaling == "bounds" else ', or use scaling="bounds".'
            named = listed(self.rare_levels, quoted=False)
            rare = f"Noise on levels of few rows hides components: {named}. Leave such levels out{other}"
        return describe_law(self.noise) or _NORMAL_ROWS, rare, self.warning

    def _columns(self) -> list[Column]:
        (lower, upper), ratio, numbers = self.conf_int().T, self.explained_variance_ratio, range(len(self.components))
        privacy, sampling, hidden = self.privacy_noise, self.sampling_noise, np.array(self.is_noise, dtype=bool)
        # errors of what noise hides are of the component that is drawn, and say nothing of the table's
        errors = step_errors(np.where(hidden, np.inf, np.hypot(privacy, sampling)), lower, upper)
        shown = (np.where(hidden, np.nan, each) for each in (privacy, sampling))
        of_privacy, of_sampling = (rounded_cells(each, each) for each in shown)
        lost = hidden & (privacy >= self.explained_variance)
        variances = np.where(lost, NOISE, rounded_cells(self.explained_variance, errors)).tolist()
        loadings = [
            ", ".join(
                f"{component[index]:+.2f} {self.feature_names[index]}"
                for index in largest_first(np.abs(component))[:_SHOWN_LOADINGS]
                if abs(component[index]) >= _MIN_LOADING
            )
            for component in self.components
        ]
        shares = [NOISE if noise else f"{each:.1%}" for noise, each in zip(self.is_noise, ratio.tolist(), strict=True)]
        said = [NOT_CLEAR_NOISE if noise else each for noise, each in zip(self.is_noise, loadings, strict=True)]
        return [
            Column("component", [i + 1 for i in numbers], "", [f"component {i + 1}" for i in numbers], label=True),
            Column("explained_variance", self.explained_variance, "variance", variances),
            Column("privacy_noise", privacy, "± privacy", of_privacy),
            Column("sampling_noise", sampling, "± sampling", of_sampling),
            Column("lower", lower, format_level(self.level), errors=errors, upper=upper),
            Column("upper", upper),
            Column("explained_variance_ratio", ratio, "share", shares),
            Column("is_noise", self.is_noise, "largest loadings", said),
            *(Column(f"loading {name}", self.components[:, index]) for index, name in enumerate(self.feature_names)),
        ]


@in_floating_point
def pca(
    release: Moments,
    n_components: int | None = None,
    columns: Sequence[str] | None = None,
    *,
    scaling: Scaling = "bounds",
    level: float = 0.95,
) -> PrincipalComponents:
    """Compute principal components of a release: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Moments
    n_components : int, optional
        Number of components, k; default: all.
    columns : sequence of str, optional
        Columns or features; default: all.
    scaling : {"bounds", "units", "correlation"}
        ``"bounds"``, as in the plots: every numeric column divided by the half-width of its public bounds, which treats columns
        alike and keeps the noise isotropic. ``"units"``: the table's own units, as scikit-learn does. ``"correlation"``: every
        feature divided by its released standard deviation.
    level : float
        Confidence level of the intervals.

    Raises
    ------
    ValueError
        If ``n_components``, ``columns`` or ``scaling`` is not possible, or the level is below 0.5.

    Notes
    -----
    Without a mean (``mean=False``) these are the eigenvectors of the second moment about zero.

    The noise on an explained variance is vᵀNv/n, v the component and N the noise on the moments (first-order perturbation);
    the sampling part assumes normal rows, except for levels and Booleans, whose variation follows from their shares. A
    component is noise if its variance, before or after repair, is below the edge of the noise spectrum, in the directions
    that earlier components leave.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, [0.3, 0.1], (5000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.pca(1).components.round(1)
    array([[ 1., -0.]])
    """
    chosen = np.array(chosen_features(release, columns))
    d = len(chosen)
    k = number_of_components(n_components, d)
    check_one_of("scaling", scaling, SCALINGS)
    block = np.ix_(chosen, chosen)
    centered = release.noisy_sum is not None
    if centered:
        matrix, mean = release.covariance[block], release.mean[chosen]
    else:
        matrix, mean = release.second_moment[block], np.zeros(d)
    if scaling == "units":
        scale = np.ones(d)
    elif scaling == "bounds":
        scale = release.encoding.unit[chosen]
    else:
        variance = np.diag(matrix)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    matrix = matrix / np.outer(scale, scale)
    eigenvalues, directions = directions_of(matrix)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    total = float(eigenvalues.sum())
    ratio = eigenvalues / total if total > 0 else np.zeros(d)
    eigenvalues, components = eigenvalues[:k], leading_positive(directions)[:k]

    # if all features are at their bounds (about zero: from zero)
    largest_possible = float(d)
    if scaling != "correlation":
        lower, upper = (bound[chosen] / scale for bound in release.schema.feature_bounds)
        reach = (upper - lower) / 2.0 if centered else np.maximum(np.abs(lower), np.abs(upper))
        largest_possible = float(np.sum(reach**2))

    moments = LocalMoments.of(release, about_zero=True)
    in_units = moments.unit[chosen] / scale
    raw = moments.moments[np.ix_(chosen + 1, chosen + 1)] * np.outer(in_units, in_units) / moments.n_rows
    noisy = np.einsum("pi,ij,pj->p", components, raw, components)
    cells = moments.cell_variances(chosen) * np.outer(in_units, in_units) ** 2 / moments.n_rows**2
    privacy, sampling = _explained_variance_noise(
        release, moments, chosen, scale, components, eigenvalues, matrix, by_deviation=scaling == "correlation"
    )
    edge = noise_edges(cells, components, moments.law)
    hidden = eigenvalues[np.minimum(noisy, eigenvalues) <= edge]
    return PrincipalComponents(
        components=components,
        explained_variance=eigenvalues,
        explained_variance_ratio=ratio[:k],
        mean=mean,
        scale=scale,
        feature_names=tuple(release.feature_names[feature] for feature in chosen),
        scaling=scaling,
        level=confidence_level(level),
        centered=centered,
        privacy_noise=np.sqrt(privacy),
        sampling_noise=np.sqrt(sampling),
        noisy_variance=noisy,
        noise_edge=edge,
        largest_possible=largest_possible,
        schema=release.schema,
        noise=moments.law,
        rare_levels=_rare_levels(release, chosen, cells, hidden, moments.law),
        warning=cautions_by_code(release),
    )


_NOISY_LEVEL = 4.0
"""Noise on the variance of a noisy level, in the lower quartile of all features."""


def _rare_levels(
    release: Moments, chosen: IntegerArray, cells: FloatArray, hidden: FloatArray, law: NoiseLaw | None
) -> tuple[str, ...]:
    """Return levels without which a ``hidden`` variance would be above the noise floor."""
    if law is None or not len(hidden):
        return ()
    levels = {
        index
        for column, indices in columns_with_indices(release)
        if isinstance(column, Categorical | Boolean)
        for index in indices
    }
    own = np.sqrt(np.diag(cells))
    noisy = np.array([feature in levels for feature in chosen]) & (own > _NOISY_LEVEL * np.quantile(own, 0.25))
    left = np.flatnonzero(~noisy)
    if not noisy.any() or not len(left):
        return ()
    without = noise_edges(cells[np.ix_(left, left)], np.eye(len(left))[:1], law)
    if not (hidden > without[0]).any():
        return ()
    order = np.flatnonzero(noisy)[largest_first(own[noisy])]
    return tuple(release.feature_names[chosen[index]] for index in order)


def number_of_components(n_components: float | None, d: int) -> int:
    """Return the requested number of d components; raise ValueError if there are fewer."""
    k = d if n_components is None else n_components
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= d:
        raise InputValueError(
            f"the number of components must be a whole number from 1 to {d}, got {shown(n_components)}"
        )
    return int(k)


_SHOWN_ROWS = 20
"""Max number of rows in the text, the most distant ones; frames and JSON hold all."""


@dataclass(frozen=True, eq=False, repr=False)
class MahalanobisDistances(Answer):
    """Distances of the rows of a frame.

    Attributes
    ----------
    feature_names : tuple of str
        Features of the distances.
    distances : ndarray of shape (m,)
        NaN for rows with a missing value, and if no direction is above the noise floor.
    n_directions : int
        Directions above the noise floor, r: the squared distance of a normal row of the population is χ² with r degrees of
        freedom.
    n_noise : int
        Directions left out.
    noise_known : bool
    warning : str
    """

    feature_names: tuple[str, ...]
    distances: FloatArray
    n_directions: int
    n_noise: int
    noise_known: bool = True
    warning: str = ""

    facts = ("feature_names", "distances", "n_directions", "n_noise", "warning")

    @property
    def heading(self) -> tuple[str, ...]:
        every = self.n_directions + self.n_noise
        if not self.n_directions:
            return (f"Mahalanobis distances: {NOT_CLEAR_NOISE}: all {every} directions are noise",)
        out = f", {self.n_noise} of {every} left out: {NOT_CLEAR_NOISE}" if self.n_noise and self.noise_known else ""
        return (f"Mahalanobis distances in {self.n_directions} direction{'s' * (self.n_directions > 1)}{out}",)

    @property
    def _shown_rows(self) -> list[int]:
        """The most distant rows, largest distance first."""
        order: list[int] = np.argsort(-np.nan_to_num(self.distances, nan=-1.0), kind="stable").tolist()
        return order[: _SHOWN_ROWS if self.n_directions else 0]

    @property
    def remarks(self) -> tuple[str, ...]:
        m = len(self.distances)
        more = f"the furthest {_SHOWN_ROWS} of {m:,} rows" if m > _SHOWN_ROWS else ""
        return more, "" if self.noise_known else describe_law(None), self.warning

    def _columns(self) -> list[Column]:
        rows = list(range(len(self.distances)))
        return [Column("row", rows, "row", list(map(str, rows))), Column("distance", self.distances, "distance")]


@in_floating_point
def mahalanobis(release: Moments, frame: Any, columns: Sequence[str] | None = None) -> MahalanobisDistances:
    """Compute Mahalanobis distances of rows from the released mean: free of privacy cost.

    The rows belong to the analyst; the released table is not read.

    Parameters
    ----------
    release : Moments
    frame : pandas, Polars or Arrow frame, or mapping of column name to values
        Read by column name; an array only if every column of the schema is a coordinate.
    columns : sequence of str, optional
        Columns or features to measure by; default: all.

    Returns
    -------
    MahalanobisDistances

    Raises
    ------
    ValueError
        If a column is absent or unknown, a value is an undeclared level, or no mean was released.

    Notes
    -----
    √((x − m)ᵀΣ⁺(x − m)), Σ⁺ the pseudo-inverse of the repaired covariance on the directions (in units in which the noise is
    the same in all) whose variance before repair is above the noise floor: the others would divide by noise.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.mahalanobis(np.array([[0.0, 0.0], [0.6, 0.0]])).distances.round(1)
    array([0., 3.])
    """
    if release.noisy_sum is None:
        raise needs_mean("distances")
    standardized = Standardized.of(release, chosen_features(release, columns), by_deviation=False)
    features = standardized.features
    values = feature_values(release.schema, frame, features.tolist())[:, features]
    kept = standardized.stands_out
    scores = ((values - standardized.mean) / standardized.scale) @ standardized.directions[kept].T
    squares = np.sum(scores**2 / standardized.eigenvalues[kept], axis=1)
    if not kept.any():
        squares = np.full(len(values), np.nan)
    return MahalanobisDistances(
        feature_names=tuple(release.feature_names[feature] for feature in features),
        distances=np.sqrt(squares),
        n_directions=int(kept.sum()),
        n_noise=int((~kept).sum()),
        noise_known=release.noise is not None,
        warning=cautions_by_code(release),
    )


_PENALTY = 3.0
"""Penalty as a multiple of the standard error (total) of a correlation.

Measured: ``docs/evidence/regression-coverage.md``.
"""
_MIN_EIGENVALUE = 1e-6
_SHOWN_EDGES = 60


@dataclass(frozen=True, eq=False, repr=False)
class GraphicalLasso(Answer):
    """A sparse inverse of the correlation matrix, as in scikit-learn's ``GraphicalLasso``.

    Attributes
    ----------
    feature_names : tuple of str
    covariance, precision : ndarray of shape (k, k)
        Of features divided by their released standard deviations.
    alpha : float
        The penalty on the entries of the precision off the diagonal.
    noise : float
        Noise and sampling error on a correlation, the median over pairs; NaN if the noise is not known.
    warning : str
    """

    feature_names: tuple[str, ...]
    covariance: FloatArray
    precision: FloatArray
    alpha: float
    noise: float
    warning: str = ""

    facts = ("feature_names", "alpha", "noise", "edges: *", "covariance", "precision", "warning")

    @property
    def partial_correlation(self) -> FloatArray:
        """−P_ij/√(P_ii P_jj), 1 on the diagonal, shape (k, k)."""
        root = np.sqrt(np.diag(self.precision))
        result = -self.precision / np.outer(root, root)
        np.fill_diagonal(result, 1.0)
        return np.asarray(result)

    @property
    def edges(self) -> tuple[tuple[str, str, float], ...]:
        """Pairs whose entry of the precision is not 0, with their partial correlation.

        The strongest first.
        """
        partial = self.partial_correlation
        first, second = np.nonzero(np.tril(partial, -1))
        order = largest_first(np.abs(partial[first, second]))
        names = self.feature_names
        return tuple((names[second[e]], names[first[e]], float(partial[first[e], second[e]])) for e in order)

    @property
    def heading(self) -> tuple[str, ...]:
        k, result = len(self.feature_names), len(self.edges)
        words = f"{result} of {k * (k - 1) // 2} edges"
        if not result:
            hidden = self.alpha <= _PENALTY * self.noise
            words = f"dependence {NOT_CLEAR_NOISE}" if hidden else "no edges, since no correlation exceeds alpha"
        return (f"graphical lasso, alpha = {number(self.alpha)}: {words}",)

    @property
    def _shown_rows(self) -> range:
        return range(min(len(self.edges), _SHOWN_EDGES))

    @property
    def remarks(self) -> tuple[str, ...]:
        hidden = len(self.edges) - _SHOWN_EDGES
        known = not math.isnan(self.noise)
        return (
            f"… {hidden} more edges: to_pandas() and --json hold all" if hidden > 0 else "",
            f"noise and sampling error on a correlation: {number(self.noise)}" if known else describe_law(None),
            self.warning,
        )

    def _columns(self) -> list[Column]:
        edges = self.edges
        correlation = [value for _, _, value in edges]
        return [
            Column("feature", [one for one, _, _ in edges], label=True),
            Column("other", [other for _, other, _ in edges], label=True),
            Column(head="edge", cells=[f"{one} – {other}" for one, other, _ in edges]),
            Column("partial_correlation", correlation, "partial correlation", [f"{each:.3f}" for each in correlation]),
        ]


@in_floating_point
def graphical_lasso(
    release: Moments, alpha: float | Literal["auto"] = "auto", columns: Sequence[str] | None = None
) -> GraphicalLasso:
    """Fit a sparse dependence graph by the graphical lasso on released correlations.

    No privacy cost.

    Parameters
    ----------
    release : Moments
    alpha : float or "auto"
        Penalty, above 0; "auto": three times the noise and sampling error on a correlation, the median over pairs. A pair
        with more of it then loses three times the excess first.
    columns : sequence of str, optional
        Columns or features, two at least; default: all. Of a categorical whose levels are all there, the most frequent by the
        release is left out, since they add up to one.

    Returns
    -------
    GraphicalLasso

    Raises
    ------
    ValueError
        If ``alpha`` is not above 0 or needs a noise distribution that the release does not have, a name is unknown, there
        are fewer than two features, or no mean was released.

    Notes
    -----
    Friedman, Hastie & Tibshirani (2008), as in scikit-learn. "auto" depends on the noise and not on the graph: pairs whose
    correlation is within the noise get no edge.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(0, 0.1, (50_000, 3))
    >>> x[:, 1] += x[:, 0]
    >>> released = dpm.release(x, dpm.Schema.unit_ball(3), epsilon=3.0, insecure_seed=0)
    >>> [edge[:2] for edge in released.graphical_lasso().edges]
    [('x0', 'x1')]
    """
    if alpha != "auto" and not (isinstance(alpha, int | float) and math.isfinite(alpha) and alpha > 0):
        raise out_of_range("alpha", alpha, "'auto' or a positive number")
    if release.noisy_sum is None:
        raise needs_mean("a graph of dependence")
    if alpha == "auto" and release.noise is None:
        raise InputValueError(
            "alpha is computed from the noise by default, and the noise is unknown here: give a number"
        )
    chosen = without_redundant_levels(release, columns)
    if len(chosen) < 2:
        raise InputValueError("a graph is of two features: name two columns at least")
    if int((np.diag(release.covariance)[chosen] > 0.0).sum()) < 2:
        names = tuple(release.feature_names[feature] for feature in chosen)
        penalty, alone = 1.0 if alpha == "auto" else float(alpha), np.eye(len(chosen))
        return GraphicalLasso(names, alone, alone, penalty, math.nan, cautions_by_code(release))
    standardized = Standardized.of(release, chosen)
    k = len(standardized.features)
    apart = ~np.eye(k, dtype=bool)
    errors = np.sqrt(standardized.cells + 1.0 / standardized.moments.independent_rows)
    noise = float(np.median(errors[apart]))
    penalty, correlation = _PENALTY * noise, standardized.covariance
    if alpha == "auto":
        kept = np.maximum(np.abs(correlation) - _PENALTY * np.maximum(errors - noise, 0.0), 0.0)
        correlation = np.where(apart, np.sign(correlation) * kept, correlation)
    else:
        penalty = float(alpha)
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    # mixed with the least identity for positive definiteness
    share = (_MIN_EIGENVALUE - smallest) / (1.0 - smallest) if smallest < _MIN_EIGENVALUE else 0.0
    correlation = (1.0 - share) * correlation + share * np.eye(k)
    if penalty >= float(np.abs(correlation[apart]).max()):
        covariance, precision = np.eye(k), np.eye(k)
    else:
        covariance, precision = _solved(correlation, penalty)
    return GraphicalLasso(
        feature_names=tuple(release.feature_names[feature] for feature in standardized.features),
        covariance=covariance,
        precision=precision,
        alpha=penalty,
        noise=noise,
        warning=cautions_by_code(release),
    )


def _solved(correlation: FloatArray, penalty: float) -> tuple[FloatArray, FloatArray]:
    from sklearn.covariance import graphical_lasso as solve
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap need not reach a limit near rounding
        try:
            covariance, precision = solve(correlation, penalty, max_iter=200, tol=1e-10, enet_tol=1e-13)
        except FloatingPointError:
            raise InputValueError(
                f"the correlations are too nearly singular for alpha {penalty:g}: give a larger one, or fewer columns"
            ) from None
    return np.asarray(covariance), np.asarray(precision)
