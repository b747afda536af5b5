"""Plots of a release, as methods of ``release.plot``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpmoments.analysis.components import Scaling, pca
from dpmoments.analysis.correlations import correlations
from dpmoments.analysis.group_means import group_means
from dpmoments.analysis.regression import lasso, ols, ridge
from dpmoments.analysis.released import Moments, Release, feature_index
from dpmoments.base.arrays import FloatArray
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputTypeError, InputValueError, shown
from dpmoments.plots.canvas import captioned, plot_of_release, require_count, require_mean, sized
from dpmoments.plots.components import draw_components, draw_spectrum
from dpmoments.plots.intervals import deviations_of, draw_coefficients, draw_groups
from dpmoments.plots.matrices import draw_correlations, draw_covariances, related_together
from dpmoments.plots.steps import draw_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class MeanPlots:
    """Plots of a mean-only release: ``release.plot.steps()``."""

    release: Release
    mean: FloatArray | None = None

    @plot_of_release
    def steps(self, features: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the region of each step of a mechanism that locates the rows, or their mean.

        These are ``coinpress`` and ``private-preconditioning``, and of means ``coinpress`` and ``variance-aware``. Compare
        Biswas et al. 2020, Figure 1.

        Parameters
        ----------
        features : sequence of str, optional
            Two features, in whose plane regions are outlined; default: the size of the region in all features, unless
            there are only two.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the mechanism has no steps, or not exactly two features are given.
        """
        return draw_steps(self.release, features, self.mean, ax)


@dataclass(frozen=True, eq=False, repr=False)
class ReleasePlots(MeanPlots):
    """Plots of a release with its noise; post-processing, at no privacy cost.

    Each method draws into ``ax``, or into a new figure, and returns the axes. Values decided by noise are marked by the
    rules of ``release.correlations()``, ``describe()``, ``pca()``, ``ols()`` and ``group_means()``. Nothing is shown or
    saved: ``ax.figure.savefig("correlation.png")``.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> from matplotlib.figure import Figure
    >>> table = np.random.default_rng(0).uniform(-0.4, 0.4, (5000, 3))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=1.0, insecure_seed=1)
    >>> axes = released.plot.correlation(ax=Figure().subplots())
    >>> axes.get_title(loc="left")
    'correlations: 0 of 3 pairs hold among all'
    """

    release: Moments

    @plot_of_release
    def correlation(
        self,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        sort: Literal["schema", "alike"] = "schema",
        triangle: bool = False,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot correlations as colored cells, hatched unless they hold among all pairs.

        Parameters
        ----------
        columns : sequence of str, optional
            At least two columns or features; default: all.
        level : float
            Confidence level of the intervals.
        sort : {"schema", "alike"}
            Order of the features: the schema's, or related ones together, by clustering.
        triangle : bool
            Show each pair once, below the diagonal.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; default: those of a new figure.
        figsize : pair of float, optional
            Width and height of the new figure in inches; default: what the cells need.
        caption : bool
            Say below the title what marks mean, and what speaks against the numbers.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a name is unknown, the level is below 0.5, or no mean was released.
        """
        require_mean(self.release, "correlations")
        check_one_of("sort", sort, ("schema", "alike"))
        answer = correlations(self.release, columns, level=level)
        if sort == "alike":
            answer = related_together(answer)
        return captioned(draw_correlations(answer, sized(ax, figsize), triangle=triangle), caption)

    @plot_of_release
    def covariance(
        self,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot covariances as colored cells, each column relative to half its range.

        Cells show numbers in original units if they have room. Variances are hatched if ``release.describe()`` shows
        the standard deviation as noise, covariances unless their correlation holds among all pairs. Colors are
        linear up to the noise and logarithmic above.

        Parameters
        ----------
        columns, level, ax, figsize, caption
            As for :meth:`correlation`; one column suffices.

        Raises
        ------
        ValueError
            As for :meth:`correlation`.
        """
        require_mean(self.release, "covariances")
        return captioned(draw_covariances(self.release, columns, level, sized(ax, figsize)), caption)

    @plot_of_release
    def spectrum(
        self,
        columns: Sequence[str] | None = None,
        *,
        scaling: Scaling = "bounds",
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot variances of the principal components and the noise floor; hollow below it.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns or features to use; default: all.
        scaling : {"bounds", "units", "correlation"}
            As for ``release.pca()``. The default here is ``"bounds"``, every column relative to half its range, so that
            one axis fits all and the floor is nearly level.
        ax, figsize, caption
            As for :meth:`correlation`.

        Raises
        ------
        ValueError
            If a name is unknown, or no number of rows was released.
        """
        require_count(self.release, "a spectrum")
        answer = pca(self.release, columns=columns, scaling=scaling)
        return captioned(draw_spectrum(answer, sized(ax, figsize)), caption)

    @plot_of_release
    def components(
        self,
        n_components: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        scaling: Scaling = "bounds",
        n_features: int = 25,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot loadings of the first principal components; hatched if a component is noise.

        Parameters
        ----------
        n_components : int, optional
            Default: 5, or all if there are fewer.
        columns, scaling, ax, figsize, caption
            As for :meth:`spectrum`.
        n_features : int
            Number of features to show, those with the largest loadings.

        Raises
        ------
        ValueError
            As for :meth:`spectrum`; also if ``n_components`` or ``n_features`` is out of range.
        """
        require_count(self.release, "principal components")
        if n_components is None:
            n_components = min(5, len(pca(self.release, 1, columns).feature_names))
        answer = pca(self.release, n_components, columns, scaling=scaling)
        return captioned(draw_components(answer, n_features, sized(ax, figsize)), caption)

    @plot_of_release
    def coefficients(
        self,
        target: str,
        features: Sequence[str] | None = None,
        *,
        method: Literal["ols", "ridge", "lasso"] = "ols",
        per: Literal["deviation", "unit"] = "deviation",
        n_coefficients: int = 25,
        sort: Literal["fit", "size", "p"] = "fit",
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
        **options: Any,
    ) -> Axes:
        """Plot regression coefficients with intervals.

        Hollow if not distinguishable from noise or 0.

        Parameters
        ----------
        target, features
            As for ``release.ols()``; a formula is also possible.
        method : {"ols", "ridge", "lasso"}
        per : {"deviation", "unit"}
            Show coefficients per standard deviation of their feature, so that one axis fits all, or per unit.
        n_coefficients : int
            Number of coefficients to show, the clearest ones.
        sort : {"fit", "size", "p"}
            Order: the fit's, the largest first, or the clearest first.
        ax, figsize, caption
            As for :meth:`correlation`.
        **options
            Options of the regression: ``level``, ``intercept``, ``reference``, ``alpha``.

        Raises
        ------
        ValueError
            As for the regression; also if ``method``, ``per`` or ``n_coefficients`` is invalid.
        """
        fits: dict[str, Any] = {"ols": ols, "ridge": ridge, "lasso": lasso}
        check_one_of("method", method, fits)
        check_one_of("per", per, ("deviation", "unit"))
        check_one_of("sort", sort, ("fit", "size", "p"))
        if n_coefficients < 1:
            raise InputValueError(f"n_coefficients must be at least 1, got {shown(n_coefficients)}")
        require_count(self.release, "coefficients")
        fit = fits[method](self.release, target, features, **options)
        deviations = deviations_of(self.release, fit) if per == "deviation" else None
        return captioned(draw_coefficients(fit, deviations, n_coefficients, sized(ax, figsize), sort=sort), caption)

    @plot_of_release
    def groups(
        self,
        by: str,
        of: str,
        *,
        level: float = 0.95,
        sort: Literal["schema", "mean", "rows"] = "schema",
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot means of a feature by group with intervals; hatched if a group is lost in noise.

        Parameters
        ----------
        by : str
            A categorical or Boolean column.
        of : str
            A feature.
        sort : {"schema", "mean", "rows"}
            Order of the groups: the schema's, or the largest mean or number of rows first.
        level, ax, figsize, caption
            As for :meth:`correlation`.

        Raises
        ------
        ValueError
            As for ``release.group_means()``.
        """
        require_mean(self.release, "means of groups")
        if not isinstance(of, str):
            raise InputTypeError(f"of={shown(of)}: a plot shows the means of one feature; name one")
        of = self.release.feature_names[feature_index(self.release, of)]
        check_one_of("sort", sort, ("schema", "mean", "rows"))
        answer = group_means(self.release, by, [of], level=level)
        return captioned(draw_groups(answer, sized(ax, figsize), sort=sort), caption)
