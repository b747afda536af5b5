"""``release.plot``: every picture of a release of moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.components import Scaling
from dpmoments.analysis.released import Released, Stated
from dpmoments.foundation.arrays import FloatArray
from dpmoments.plots.components import plot_components, plot_spectrum
from dpmoments.plots.intervals import plot_coefficients, plot_groups
from dpmoments.plots.letters import with_fonts_for_names
from dpmoments.plots.matrices import plot_correlation, plot_covariance
from dpmoments.plots.steps import plot_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ReleasePlots:
    """Pictures of a release, each with its noise; post-processing, free of privacy cost.

    Each draws into ``ax``, or into a new figure, and returns the axes. What noise decides is marked by the rules of the analyses:
    ``release.correlations()``, ``describe()``, ``pca()``, ``ols()``, ``group_means()``. Nothing is shown or saved:
    ``ax.figure.savefig("correlation.png")``.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> from matplotlib.figure import Figure
    >>> table = np.random.default_rng(0).uniform(-0.4, 0.4, (5000, 3))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
    >>> axes = released.plot.correlation(ax=Figure().subplots())
    >>> axes.get_title(loc="left")
    'correlations: 1 of 3 stand out of the noise'
    """

    release: Released

    @in_floating_point
    @with_fonts_for_names
    def correlation(self, columns: Sequence[str] | None = None, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Correlations as coloured cells, hatched where ``release.correlations()`` cannot tell their sign from noise.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns or features, two at least; default: all.
        level : float
            Confidence of the intervals.
        ax : matplotlib.axes.Axes, optional
            To draw into; default: those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a name is unknown, the level is below 0.5, or no mean was released.
        """
        return plot_correlation(self.release, columns, level=level, ax=ax)

    @in_floating_point
    @with_fonts_for_names
    def covariance(self, columns: Sequence[str] | None = None, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Covariances as coloured cells, each column over half its range; numbers in the table's units where they have room.

        Variances are hatched where ``release.describe()`` says of the standard deviation that it is noise, covariances where
        ``release.correlations()`` cannot tell their sign from noise. Colours are linear up to the noise and logarithmic above.

        Parameters
        ----------
        columns, level, ax
            As for :meth:`correlation`; one column will do.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for :meth:`correlation`.
        """
        return plot_covariance(self.release, columns, level=level, ax=ax)

    @in_floating_point
    @with_fonts_for_names
    def spectrum(
        self, columns: Sequence[str] | None = None, *, scaling: Scaling = "bounds", ax: Axes | None = None
    ) -> Axes:
        """Variances of the principal components against the floor that noise alone makes; hollow where they are below it.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns or features they are of; default: all.
        scaling : {"bounds", "units", "correlation"}
            As for ``release.pca()``. ``"bounds"``, every column over half its range, is the default here, so that one axis serves
            all and the floor is nearly level.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a name is unknown, or no number of rows was released.
        """
        return plot_spectrum(self.release, columns, scaling=scaling, ax=ax)

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
    ) -> Axes:
        """Loadings of the first principal components as coloured cells; hatched where a component is noise.

        Parameters
        ----------
        n_components : int, optional
            Default: 5, or as many as there are.
        columns, scaling, ax
            As for :meth:`spectrum`.
        n_features : int
            So many features that weigh most in them are shown.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As for :meth:`spectrum`; also if ``n_components`` or ``n_features`` is not possible.
        """
        return plot_components(self.release, n_components, columns, scaling=scaling, n_features=n_features, ax=ax)

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
        ax: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Coefficients of a regression with their intervals; hollow and in words where noise, or 0, cannot be told from them.

        Parameters
        ----------
        target, features
            As for ``release.ols()``; a formula will do.
        method : {"ols", "ridge", "lasso"}
        per : {"deviation", "unit"}
            Whether a coefficient is shown per standard deviation of its feature, so that one axis serves all, or per unit.
        n_coefficients : int
            So many that stand out most are shown.
        ax : matplotlib.axes.Axes, optional
        **options
            Of the regression: ``level``, ``intercept``, ``reference``, ``alpha``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As the regression does; also if ``method``, ``per`` or ``n_coefficients`` is not possible.
        """
        return plot_coefficients(
            self.release, target, features, method=method, per=per, n_coefficients=n_coefficients, ax=ax, **options
        )

    @in_floating_point
    @with_fonts_for_names
    def groups(self, by: str, of: str, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Means of a feature by group with their intervals and numbers of rows; hatched where a group is lost in noise.

        Parameters
        ----------
        by : str
            A categorical or Boolean column.
        of : str
            A feature.
        level, ax
            As for :meth:`correlation`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            As ``release.group_means()`` does.
        """
        return plot_groups(self.release, by, of, level=level, ax=ax)

    @in_floating_point
    @with_fonts_for_names
    def steps(self, features: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """How ``coinpress``, ``private-preconditioning`` or ``adaptive-ball`` found the rows: the region of each step.

        Parameters
        ----------
        features : sequence of str, optional
            Two, in whose plane regions are outlined; default: the size of the region in all, unless there are two.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the mechanism has no steps, or the features are not two.
        """
        law, hidden = self.release.noise, math.nan
        if law is not None and self.release.noisy_count is not None:
            hidden = math.sqrt(math.sqrt(law.trace_variance / law.n_features) / self.release.n_rows)
        return plot_steps(self.release, features, center=self.release.center, hidden=hidden, ax=ax)


@dataclass(frozen=True, eq=False, repr=False)
class MeanPlots:
    """Pictures of a release of a mean alone: ``release.plot.steps()``."""

    release: Stated
    mean: FloatArray

    @in_floating_point
    @with_fonts_for_names
    def steps(self, features: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """How ``coinpress`` or ``variance-aware`` found the mean: the region of each step (Biswas et al. 2020, Figure 1).

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
            If the mechanism has no steps, or the features are not two.
        """
        return plot_steps(self.release, features, mean=self.mean, ax=ax)
