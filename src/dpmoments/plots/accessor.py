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
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputTypeError, InputValueError, shown
from dpmoments.plots.canvas import captioned, plot_of_release, require_count, require_mean, sized
from dpmoments.plots.intervals import (
    chart_of_coefficients,
    chart_of_findings,
    chart_of_groups,
    deviations_of,
    draw_intervals,
    labels_of,
)
from dpmoments.plots.pictures import draw_association, draw_spectrum, draw_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class MeanPlots:
    """Plots of a mean-only release: ``release.plot.steps()``."""

    release: Release

    @plot_of_release
    def steps(self, *, ax: Axes | None = None) -> Axes:
        """Plot the width of the region after each step of a mechanism that locates the rows.

        These are ``coinpress`` and ``private-preconditioning``, and of means ``coinpress`` and ``variance-aware``.

        Raises
        ------
        ValueError
            If the mechanism has no steps.
        """
        return draw_steps(self.release, ax)


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
    '0 of 3 pairs of columns are clearly related'
    """

    release: Moments

    @plot_of_release
    def correlation(
        self,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot relations column by column: the strongest clear correlation between two.

        A dot is not clear, which is not the same as none: no correlation of the two columns holds among all pairs.

        Parameters
        ----------
        columns : sequence of str, optional
            At least two columns or features; default: all.
        level : float
            Confidence level of the intervals.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; default: those of a new figure.
        figsize : pair of float, optional
            Width and height of the new figure in inches; default: what the picture needs.
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
        answer = correlations(self.release, columns, level=level)
        return captioned(draw_association(answer, sized(ax, figsize)), caption)

    @plot_of_release
    def findings(
        self,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot the ten strongest clear correlations with intervals, one for each two columns.

        Parameters
        ----------
        columns, level, ax, figsize, caption
            As for :meth:`correlation`.

        Raises
        ------
        ValueError
            As for :meth:`correlation`.
        """
        require_mean(self.release, "correlations")
        answer = correlations(self.release, columns, level=level)
        chart = chart_of_findings(answer, self.release.noise, labels_of(self.release))
        return captioned(draw_intervals(chart, sized(ax, figsize)), caption)

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

        Hollow if the sign does not hold among all coefficients.

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
        deviations = deviations_of(fit) if per == "deviation" else None
        chart = chart_of_coefficients(fit, deviations, n_coefficients, sort=sort, labels=labels_of(self.release))
        return captioned(draw_intervals(chart, sized(ax, figsize)), caption)

    @plot_of_release
    def groups(
        self,
        by: str,
        of: str,
        *,
        level: float = 0.95,
        sort: Literal["mean", "schema", "rows"] = "mean",
        ax: Axes | None = None,
        figsize: tuple[float, float] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Plot means of a feature by group with intervals, and name the groups lost in noise.

        Parameters
        ----------
        by : str
            A categorical or Boolean column.
        of : str
            A feature.
        sort : {"mean", "schema", "rows"}
            Order of the groups: the largest mean first, the schema's, or the largest number of rows first.
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
        check_one_of("sort", sort, ("mean", "schema", "rows"))
        answer = group_means(self.release, by, [of], level=level)
        chart = chart_of_groups(self.release, answer, sort=sort)
        return captioned(draw_intervals(chart, sized(ax, figsize)), caption)
