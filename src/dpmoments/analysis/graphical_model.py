"""A sparse graph of dependence from a release: the graphical lasso on released correlations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmoments.analysis.answers import Answer, Column, in_floating_point, number
from dpmoments.analysis.functionals import Standardized, describe_law, without_redundant_levels
from dpmoments.analysis.released import Moments, cautions_by_code, needs_mean
from dpmoments.analysis.resolvability import NOT_CLEAR_NOISE
from dpmoments.foundation.arrays import FloatArray, largest_first
from dpmoments.foundation.errors import InputValueError, out_of_range

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
        words = f"{result} of {k * (k - 1) // 2} edges" if result else f"dependence {NOT_CLEAR_NOISE}"
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
        raise InputValueError('alpha="auto" is computed from the noise, which is unknown here: give a number')
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
    correlation = _definite(correlation)
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


def _definite(correlation: FloatArray) -> FloatArray:
    """Return the correlation matrix mixed with the least identity for positive definiteness."""
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    share = max(0.0, (_MIN_EIGENVALUE - smallest) / (1.0 - smallest)) if smallest < _MIN_EIGENVALUE else 0.0
    return np.asarray((1.0 - share) * correlation + share * np.eye(len(correlation)))


def _solved(correlation: FloatArray, penalty: float) -> tuple[FloatArray, FloatArray]:
    from sklearn.covariance import graphical_lasso as solve
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap need not reach a limit near rounding
        try:
            covariance, precision = solve(correlation, penalty, max_iter=200, tol=1e-10, enet_tol=1e-13)
        except FloatingPointError:
            raise InputValueError(
                f"the correlations are too nearly singular for alpha={penalty:g}: give a larger one, or fewer columns"
            ) from None
    return np.asarray(covariance), np.asarray(precision)
