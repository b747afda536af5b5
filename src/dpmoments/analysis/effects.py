"""Sizes of effects: ratios of 2×2 tables, mediation, and gaps between two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmoments.analysis.answers import confidence_level, in_floating_point
from dpmoments.analysis.estimate import Estimates, MomentErrors, estimates_of
from dpmoments.analysis.formula import Products
from dpmoments.analysis.functionals import independent_features, indicator_mask
from dpmoments.analysis.released import Moments, cautions_by_code, feature_index
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray


def zero_one(release: Moments, name: str) -> int:
    """Return the index of a Boolean or a level."""
    index = feature_index(release, name)
    if release.rows_moved:
        raise InputValueError(
            f"the mechanism clipped whole rows about a private center, so that {name!r} is not 0 or 1 in every row: its "
            "share is not one of two groups. Release with the mechanism 'standardized'"
        )
    if not indicator_mask(release)[index]:
        raise InputValueError(f"{name!r} is neither a Boolean nor a level of a category: its rows are not two groups")
    return index


@in_floating_point
def odds_ratio(release: Moments, outcome: str, exposure: str, *, level: float = 0.95) -> Estimates:
    """Compute the odds ratio and the risk ratio of two Booleans: free of privacy cost.

    Parameters
    ----------
    release : Moments
    outcome, exposure : str
        Booleans or levels.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates
        ``oddsratio``, and ``riskratio``, of the outcome with the exposure over that without it.

    Raises
    ------
    ValueError
        If a name is unknown or not of a Boolean or a level, or no mean was released.

    Notes
    -----
    Exact functions of the shares, with intervals that are symmetric in the logarithm; the sampling error is of the four
    cells (Woolf 1955).

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> smoker = rng.random(50_000) < 0.3
    >>> table = pa.table({"smoker": smoker, "ill": rng.random(50_000) < np.where(smoker, 0.4, 0.2)})
    >>> released = dpm.release(table, dpm.Schema(dpm.Boolean("smoker"), dpm.Boolean("ill")), epsilon=1.0, insecure_seed=0)
    >>> released.odds_ratio("ill", "smoker").value.round(1).tolist()
    [2.6, 2.0]
    """
    level = confidence_level(level)
    first, second = zero_one(release, outcome), zero_one(release, exposure)
    if first == second:
        raise InputValueError(f"outcome and exposure are both {outcome!r}: name two features")
    errors = MomentErrors.of(release, [first, second])

    def ratios(mean: FloatArray, covariance: FloatArray) -> FloatArray:
        (p, q), both = mean, covariance[0, 1]
        with_it, without = q * p + both, (1.0 - q) * p - both  # shares of rows with the outcome
        odds = with_it * (1.0 - q - without) / (without * (q - with_it))
        return np.array([odds, with_it / q / (without / (1.0 - q))])

    what = f"{outcome} with {exposure} over {outcome} without"
    return estimates_of(
        errors,
        ["oddsratio", "riskratio"],
        ratios,
        "log",
        level,
        sampling=errors.sampling_of_cells,
        what=what,
        warning=cautions_by_code(release),
    )


@in_floating_point
def vif(release: Moments, columns: Sequence[str], *, level: float = 0.95) -> Estimates:
    """Compute variance inflation factors of regressors: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str
        Columns or features, two at least. Of all levels of a column the most frequent is left out.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates

    Raises
    ------
    ValueError
        If a name is unknown, there are fewer than two features, or no mean was released.

    Notes
    -----
    1/(1 − R²) of each feature on the others, with intervals that are symmetric in the logarithm and cut at 1.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.vif(["x0", "x1"]).value.round(1).tolist()
    [1.0, 1.0]
    """
    level = confidence_level(level)
    chosen = independent_features(release, columns)
    if len(chosen) < 2:
        raise InputValueError("a variance inflation factor is of two features or more: name two at least")

    def factors(_: FloatArray, covariance: FloatArray) -> FloatArray:
        root = np.linalg.inv(np.linalg.cholesky(covariance))  # of a covariance that noise leaves possible
        return np.asarray(np.diag(covariance) * np.einsum("ij,ij->j", root, root))

    names = [release.feature_names[index] for index in chosen]
    what = "variance inflation factors"
    found = estimates_of(
        MomentErrors.of(release, chosen), names, factors, "log", level, what=what, warning=cautions_by_code(release)
    )
    ends = {name: getattr(found, name) for name in ("lower", "privacy_lower")}
    return replace(found, **{name: np.where(np.isinf(end), end, np.maximum(end, 1.0)) for name, end in ends.items()})


@in_floating_point
def mediation(
    release: Moments, y: str, x: str, m: str | Sequence[str], covariates: Sequence[str] = (), *, level: float = 0.95
) -> Estimates:
    """Split an effect into one through mediators and the rest: free of privacy cost.

    Parameters
    ----------
    release : Moments
    y, x : str
        Outcome and cause.
    m : str or sequence of str
        Mediators. Of all levels of a column the most frequent is left out, here and below, as in ``ols``.
    covariates : sequence of str
        Further regressors of all equations.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates
        ``m ~ x`` and ``y ~ m`` of each mediator, ``total``, ``direct``, and ``indirect`` (of each, if there are several).

    Raises
    ------
    ValueError
        If a name is unknown or named twice, or no mean was released.

    Notes
    -----
    Products of coefficients of least squares (Baron & Kenny 1986), with an error of both equations together, since the same noise
    is in both. That an effect is causal needs assumptions that no release can check.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(0, 0.1, (50_000, 1))
    >>> table = np.hstack([x, x + rng.normal(0, 0.1, (50_000, 1)), x + rng.normal(0, 0.1, (50_000, 1))])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=3.0, insecure_seed=0)
    >>> released.mediation("x2", "x0", "x1")["total"][0].__round__(1)
    1.0
    """
    level = confidence_level(level)
    mediators = independent_features(release, [m] if isinstance(m, str) else m, word="m")
    others = independent_features(release, covariates, word="covariates") if len(covariates) else []
    chosen = [feature_index(release, y), feature_index(release, x), *mediators, *others]
    if len(set(chosen)) < len(chosen):
        raise InputValueError("y, x, m and covariates name a feature twice: each has one place")
    k = len(mediators)
    through, given = list(range(2, 2 + k)), [1, *range(2 + k, len(chosen))]

    def effects(_: FloatArray, covariance: FloatArray) -> FloatArray:
        of_x = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given][:, [0, *through]])[0]
        all_of_it = [1, *through, *given[1:]]
        on_y = np.linalg.solve(covariance[np.ix_(all_of_it, all_of_it)], covariance[all_of_it, 0])
        indirect = of_x[1:] * on_y[1 : 1 + k]
        every = [*of_x[1:], *on_y[1 : 1 + k], of_x[0], on_y[0], indirect.sum()]
        return np.array([*every, *(indirect if k > 1 else ())])

    named = [release.feature_names[index] for index in mediators]
    names = [*(f"{one} ~ {x}" for one in named), *(f"{y} ~ {one}" for one in named), "total", "direct", "indirect"]
    names += [f"indirect by {one}" for one in named] if k > 1 else []
    what = f"effect of {x} on {y} through {', '.join(named)}"
    return estimates_of(
        MomentErrors.of(release, chosen),
        names,
        effects,
        "identity",
        level,
        what=what,
        warning=cautions_by_code(release),
    )


@in_floating_point
def oaxaca(release: Moments, y: str, x: Sequence[str], by: str, *, level: float = 0.95) -> Estimates:
    """Split the difference of two means by features and coefficients: free of privacy cost.

    Parameters
    ----------
    release : Moments
    y : str
        Outcome.
    x : sequence of str
        Columns or features; the release needs the product of each with ``by``. Of all levels of a column the most frequent is
        left out.
    by : str
        A Boolean or a level: rows with it less rows without.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates
        ``gap``; ``endowments``, ``coefficients`` and ``interaction``, which add up to it; ``explained`` and
        ``unexplained``, which do so too, by the coefficients of both groups together.

    Raises
    ------
    ValueError
        If a name is unknown, a product was not released, or no mean was released.

    Notes
    -----
    Blinder (1973) and Oaxaca (1973): three-fold seen from the rows without ``by``, two-fold with the coefficients of a regression
    on ``x`` and ``by``.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> woman, years = rng.random(50_000) < 0.5, rng.uniform(0, 20, 50_000)
    >>> table = pa.table({"woman": woman, "years": years, "wage": 20 + years - 3 * woman})
    >>> numbers = dpm.Numeric("years", 0, 20), dpm.Numeric("wage", 0, 60)
    >>> schema = dpm.Schema(dpm.Boolean("woman"), *numbers, dpm.Product("woman", "years"))
    >>> released = dpm.release(table, schema, epsilon=3.0, insecure_seed=0)
    >>> released.oaxaca("wage", ["years"], by="woman")["unexplained"][0].__round__()
    -3
    """
    level = confidence_level(level)
    group, target = zero_one(release, by), feature_index(release, y)
    regressors = independent_features(release, x, word="x")
    every = Products.of(release.schema)
    products = [every.released(frozenset({*every.monomials[group], *every.monomials[index]})) for index in regressors]
    chosen, k = [target, group, *regressors, *products], len(regressors)
    if len(set(chosen)) < len(chosen):
        raise InputValueError("y, x and by name a feature twice: each has one place")

    def parts(mean: FloatArray, covariance: FloatArray) -> FloatArray:
        p = mean[1]
        apart = covariance[1] / covariance[1, 1]  # mean with the group less that without, of every feature
        moved = apart[2 : 2 + k]
        without = mean[2 : 2 + k] - p * moved
        slopes = np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])  # on group, x and products
        own, change, constant = slopes[1 : 1 + k], slopes[1 + k :], slopes[0]
        together = np.linalg.solve(covariance[1 : 2 + k, 1 : 2 + k], covariance[1 : 2 + k, 0])[1:]
        three = moved @ own, constant + without @ change, moved @ change
        return np.array([apart[0], *three, moved @ together, apart[0] - moved @ together])

    names = ["gap", "endowments", "coefficients", "interaction", "explained", "unexplained"]
    what = f"mean {y} with {by} less without"
    return estimates_of(
        MomentErrors.of(release, chosen), names, parts, "identity", level, what=what, warning=cautions_by_code(release)
    )


def discriminant_ratios(release: Moments, group: int, features: Sequence[int], level: float) -> Estimates:
    """Return the odds ratios of a group, per unit of each feature, that a discriminant implies."""

    # β = W⁻¹(difference of the means), W the covariance within the two groups
    def ratios(_: FloatArray, covariance: FloatArray) -> FloatArray:
        apart = covariance[1:, 0] / covariance[0, 0]
        within = covariance[1:, 1:] - covariance[0, 0] * np.outer(apart, apart)
        return np.exp(np.linalg.solve(within, apart))

    names = [release.feature_names[index] for index in features]
    approximate = (
        "Approximate: odds ratios of a logistic regression only if the features are normal with the same covariance in both "
        "groups."
    )
    return estimates_of(
        MomentErrors.of(release, [group, *features]),
        names,
        ratios,
        "log",
        level,
        what=f"odds ratios of {release.feature_names[group]} per unit of each feature",
        warning="\n".join(filter(None, [approximate, cautions_by_code(release)])),
    )
