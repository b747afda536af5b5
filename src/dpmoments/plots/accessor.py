"""Plots of a release, as methods of ``release.plot``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.components import Scaling
from dpmoments.analysis.released import Moments, Release
from dpmoments.foundation.arrays import FloatArray
from dpmoments.plots.canvas import captioned, sized, with_fonts_for_names
from dpmoments.plots.components import plot_components, plot_spectrum
from dpmoments.plots.intervals import plot_coefficients, plot_groups
from dpmoments.plots.matrices import plot_correlation, plot_covariance
from dpmoments.plots.steps import plot_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ReleasePlots:
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
    'correlations: 0 of 3 pairs are related'
    """

    release: Moments

    @in_floating_point
    @with_fonts_for_names
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
        """Plot correlations as colored cells, hatched if their sign is not clear.

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
        ax = sized(ax, figsize)
        return captioned(
            plot_correlation(self.release, columns, level=level, sort=sort, triangle=triangle, ax=ax), caption
        )

    @in_floating_point
    @with_fonts_for_names
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
        the standard deviation as noise, covariances if ``release.correlations()`` cannot distinguish their sign from
        noise. Colors are linear up to the noise and logarithmic above.

        Parameters
        ----------
        columns, level, ax, figsize, caption
            As for :meth:`correlation`; one column suffices.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for :meth:`correlation`.
        """
        return captioned(plot_covariance(self.release, columns, level=level, ax=sized(ax, figsize)), caption)

    @in_floating_point
    @with_fonts_for_names
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

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a name is unknown, or no number of rows was released.
        """
        return captioned(plot_spectrum(self.release, columns, scaling=scaling, ax=sized(ax, figsize)), caption)

    @in_floating_point
    @with_fonts_for_names
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

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for :meth:`spectrum`; also if ``n_components`` or ``n_features`` is out of range.
        """
        ax = sized(ax, figsize)
        return captioned(
            plot_components(self.release, n_components, columns, scaling=scaling, n_features=n_features, ax=ax), caption
        )

    @in_floating_point
    @with_fonts_for_names
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

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for the regression; also if ``method``, ``per`` or ``n_coefficients`` is invalid.
        """
        ax, how = sized(ax, figsize), {"method": method, "per": per, "sort": sort, **options}
        return captioned(
            plot_coefficients(self.release, target, features, n_coefficients=n_coefficients, ax=ax, **how), caption
        )

    @in_floating_point
    @with_fonts_for_names
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

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for ``release.group_means()``.
        """
        return captioned(plot_groups(self.release, by, of, level=level, sort=sort, ax=sized(ax, figsize)), caption)

    @in_floating_point
    @with_fonts_for_names
    def steps(self, features: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the region of each step of a mechanism that locates the rows.

        These are ``coinpress`` and ``private-preconditioning``.

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
        return plot_steps(self.release, features, ax=ax)


@dataclass(frozen=True, eq=False, repr=False)
class MeanPlots:
    """Plots of a mean-only release: ``release.plot.steps()``."""

    release: Release
    mean: FloatArray

    @in_floating_point
    @with_fonts_for_names
    def steps(self, features: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the region of each step of ``coinpress`` or ``variance-aware``.

        Compare Biswas et al. 2020, Figure 1.

        Parameters
        ----------
        features, ax
            As for :meth:`ReleasePlots.steps`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the mechanism has no steps, or not exactly two features are given.
        """
        return plot_steps(self.release, features, mean=self.mean, ax=ax)
