"""Two-stage least squares with the noise of a release in every error and test."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from dpmoments.analysis.answers import (
    Answer,
    Column,
    confidence_level,
    format_level,
    in_floating_point,
    number,
    takes_level,
)
from dpmoments.analysis.confidence import error_rate, format_probability, holds_among_all, verdict_columns
from dpmoments.analysis.contrasts import format_end
from dpmoments.analysis.estimate import Estimates, estimates_of_errors
from dpmoments.analysis.functionals import bilinear, covariance_of_gaps, gaps_of, joint_gaps_of, semidefinite
from dpmoments.analysis.normal_equations import JointTest, NormalEquations
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Moments, cautions_by_code, complete_share, needs_mean, rows_per_independent
from dpmoments.analysis.robust_errors import moments_with_constant
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.moments.law import NoiseLaw

if TYPE_CHECKING:
    import pandas as pd

_WEAK = 10.0
"""First-stage F below which instruments are weak (Staiger & Stock 1997)."""
_ANGLES = 721
"""Values of a coefficient that are tried for the Anderson–Rubin set, evenly by their angle."""


@dataclass(frozen=True, eq=False)
class Equations:
    """Moment conditions Σ z(y − x'β) = 0 with noise: z and x are columns of v.

    At the true β, with b = (−β, 1) on regressors and target, the error of the conditions is (N b) of the noise N on Σ v vᵀ and
    Σ v e of sampling, of covariance s² Σ v vᵀ: (M b)_z has Cov((N b)_z) + s² M_zz.
    """

    moments: FloatArray  # M = Σ v vᵀ, (v, v)
    law: NoiseLaw  # of N
    n_rows: float
    rows_per_unit: float
    gaps: FloatArray
    joint_gaps: FloatArray
    instruments: list[int]  # with the exogenous regressors, which come first
    regressors: list[int]  # the exogenous, then the endogenous
    target: int
    n_exogenous: int
    complete: float  # share of the rows with all values

    def combination(self, coefficients: FloatArray) -> FloatArray:
        """Return b on v."""
        result = np.zeros(len(self.moments))
        result[self.regressors] = -coefficients
        result[self.target] += 1.0
        return result

    def residual_variance(self, b: FloatArray) -> float:
        """Return bᵀM b/n, 0 or above."""
        return max(float(b @ self.moments @ b) / self.n_rows, 0.0)

    def errors(self, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariances of M b by noise and by sampling, (v, v)."""
        shape = self.moments.copy()
        if self.gaps.any():
            spread = self.moments / self.n_rows
            spread = spread - np.outer(spread[0], spread[0])
            weights = bilinear(np.eye(len(b)), b)
            total = max(self.residual_variance(b), np.finfo(float).tiny)
            shape = shape + covariance_of_gaps(weights, spread, self.gaps, self.joint_gaps) * (self.n_rows / total)
        sampling = self.residual_variance(b) * self.rows_per_unit * semidefinite(shape)
        return self.law.covariance_of_product(b), sampling

    @cached_property
    def _projection(self) -> FloatArray:
        """K: β̂ = K M_zy, (k, z)."""
        block = self.moments[np.ix_(self.instruments, self.regressors)]
        weighted = np.linalg.solve(self.moments[np.ix_(self.instruments, self.instruments)], block)
        return np.linalg.solve(block.T @ weighted, weighted.T)

    @cached_property
    def coefficients(self) -> FloatArray:
        """Two-stage least squares, (k,)."""
        return self._projection @ self.moments[self.instruments, self.target]

    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Return the covariances of the coefficients by noise and by sampling, (k, k)."""
        block, carried = np.ix_(self.instruments, self.instruments), self._projection
        noise, sampling = self.errors(self.combination(self.coefficients))
        return carried @ noise[block] @ carried.T, carried @ sampling[block] @ carried.T

    def scores(self, one: FloatArray, other: FloatArray) -> Callable[[float], float]:
        """Return the Anderson–Rubin statistic of cos(t)·``one`` + sin(t)·``other``, by t.

        Anderson & Rubin (1949), with exogenous regressors fitted and the noise in the covariance: χ² of as many degrees as there
        are excluded instruments.
        """
        within, outside = self.instruments[: self.n_exogenous], self.instruments[self.n_exogenous :]
        fitted = np.linalg.solve(self.moments[np.ix_(within, within)], self.moments[within])
        carried = np.zeros((len(outside), len(self.moments)))
        carried[:, outside] = np.eye(len(outside))
        carried[:, within] = -fitted[:, outside].T

        def of(b: FloatArray) -> tuple[FloatArray, FloatArray]:
            b = b.copy()
            b[within] -= fitted @ b
            return carried @ self.moments @ b, carried @ sum(self.errors(b)) @ carried.T

        # both are a quadratic form of b: three values are all of it
        (first, of_first), (second, of_second), (_, of_both) = of(one), of(other), of(one + other)
        between = of_both - of_first - of_second

        def statistic(angle: float) -> float:
            cosine, sine = math.cos(angle), math.sin(angle)
            spread = cosine**2 * of_first + sine**2 * of_second + cosine * sine * between
            score, own = cosine * first + sine * second, 1.0 / np.sqrt(np.diag(spread))
            return float((score * own) @ np.linalg.solve(spread * np.outer(own, own), score * own))

        return statistic

    def over_identification(self) -> JointTest | None:
        """Return Sargan's (1958) test with noise in its weights; None without degrees of freedom."""
        degrees = len(self.instruments) - len(self.regressors)
        if degrees < 1:
            return None
        block = np.ix_(self.instruments, self.instruments)
        b = self.combination(self.coefficients)
        noise, sampling = self.errors(b)
        conditions = self.moments[np.ix_(self.instruments, self.regressors)]
        own = 1.0 / np.sqrt(np.diag(noise + sampling)[self.instruments])
        weight = np.linalg.inv((noise[block] + sampling[block]) * np.outer(own, own)) * np.outer(own, own)
        left = self.moments[self.instruments, self.target]
        at = np.linalg.solve(conditions.T @ weight @ conditions, conditions.T @ weight @ left)
        rest = left - conditions @ at
        statistic = float(rest @ weight @ rest)
        return JointTest(statistic, degrees, math.inf, float(scipy.special.chdtrc(degrees, statistic)), math.nan)

    def exogeneity(self) -> JointTest:
        """Return the F test of Wu (1973) and Hausman (1978) with noise."""
        within = np.linalg.inv(self.moments[np.ix_(self.regressors, self.regressors)])
        plain = within @ self.moments[self.regressors, self.target]
        endogenous = list(range(self.n_exogenous, len(self.regressors)))
        difference = np.zeros((len(self.regressors), len(self.moments)))
        difference[:, self.regressors] += within
        difference[:, self.instruments] -= self._projection
        noise, sampling = self.errors(self.combination(plain))
        spread = (difference @ (noise + sampling) @ difference.T)[np.ix_(endogenous, endogenous)]
        apart = (plain - self.coefficients)[endogenous]
        durbin, p = float(apart @ np.linalg.solve(spread, apart)), len(endogenous)
        rows = self.n_rows * self.complete / self.rows_per_unit
        degrees = rows - len(self.regressors) - p
        statistic = durbin / p * degrees / max(rows - durbin, np.finfo(float).tiny)
        return JointTest(statistic, p, degrees, float(scipy.special.fdtrc(p, degrees, statistic)), math.nan)


@dataclass(frozen=True, eq=False, repr=False)
class InstrumentalVariables(Answer):
    """Two-stage least squares, as linearmodels names it.

    Attributes
    ----------
    target : str
    estimates : Estimates
        Coefficients in original units.
    exogenous, endogenous, instruments : tuple of str
        Regressors that are their own instruments, the others, and the instruments of these.
    feature_names : tuple of str
        All of them and the target, in the release's order.
    first_stage : dict
        For each endogenous regressor F of its instruments, with the noise, and the p-value and ``partial_r2``.
    sargan, wu_hausman : JointTest or None
        Over-identification, None if there are as many instruments as endogenous regressors; and exogeneity.
    level : float
    warning : str
    """

    target: str
    estimates: Estimates
    exogenous: tuple[str, ...]
    endogenous: tuple[str, ...]
    instruments: tuple[str, ...]
    feature_names: tuple[str, ...]
    first_stage: dict[str, dict[str, float]]
    sargan: JointTest | None
    wu_hausman: JointTest
    equations: Equations
    level: float
    warning: str = ""

    facts = (
        *("target", "exogenous", "endogenous", "instruments", "level", "coefficients: estimates", "first_stage"),
        *("weak", "anderson_rubin: anderson_rubin_set", "warning"),
    )

    @property
    def weak(self) -> bool:
        """True if a first-stage F is below 10: only the Anderson–Rubin set is then to be read."""
        return any(not stage["f"] >= _WEAK for stage in self.first_stage.values())

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients by name."""
        return self._series(self.estimates.value)

    @property
    def std_errors(self) -> pd.Series[float]:
        """Standard errors of noise and sampling together, by name."""
        return self._series(np.hypot(self.estimates.privacy_noise, self.estimates.sampling_noise))

    bse = std_errors

    @property
    def pvalues(self) -> pd.Series[float]:
        """P-values by name."""
        return self._series(self.estimates.p_value)

    @property
    def tstats(self) -> pd.Series[float]:
        """Estimates over their standard errors, by name."""
        return self._series(
            self.estimates.value / np.hypot(self.estimates.privacy_noise, self.estimates.sampling_noise)
        )

    @property
    def nobs(self) -> int:
        """Rows with all values, at most those of the pair of columns with the fewest."""
        return round(self.equations.n_rows * self.equations.complete)

    @takes_level
    def conf_int(self, level: float | None = None) -> pd.DataFrame:
        """Return the intervals by name, columns ``lower`` and ``upper``."""
        import pandas as pd

        if level is not None and confidence_level(level) != self.level:
            raise InputValueError(f"these intervals have the level {self.level}: pass level={level} to iv()")
        return pd.DataFrame({"lower": self._series(self.estimates.lower), "upper": self._series(self.estimates.upper)})

    def _series(self, values: FloatArray) -> pd.Series[float]:
        from dpmoments.analysis.named_series import Coefficients

        return Coefficients(values, index=list(self.estimates.names))

    def anderson_rubin_set(self, level: float | None = None) -> tuple[tuple[float, float], ...]:
        """Return the values of the endogenous coefficient that instruments do not refute.

        Valid however weak the instruments are. It may be empty (no value fits the instruments), unbounded, or in two pieces.

        Raises
        ------
        ValueError
            If there are several endogenous regressors, or the level is below 0.5.
        """
        level = self.level if level is None else confidence_level(level)
        if len(self.endogenous) != 1:
            raise InputValueError(
                f"an Anderson–Rubin set is of one endogenous regressor, and here are {len(self.endogenous)}"
            )
        equations = self.equations
        at = equations.regressors[-1]
        # noise may leave a sum of squares below 0
        size = math.sqrt(abs(equations.moments[equations.target, equations.target] / equations.moments[at, at]))
        limit = float(scipy.special.chdtri(len(equations.instruments) - equations.n_exogenous, error_rate(level)))

        one, other = np.zeros(len(equations.moments)), np.zeros(len(equations.moments))
        one[equations.target], other[at] = 1.0, -size
        statistic = equations.scores(one, other)

        def beyond(angle: float) -> float:
            return statistic(angle) - limit

        angles = np.linspace(-math.pi / 2.0, math.pi / 2.0, _ANGLES)
        estimate = math.atan(float(equations.coefficients[-1]) / size)
        angles = np.unique(np.append(angles, estimate))
        heights = np.array([beyond(float(angle)) for angle in angles])
        ends = [-math.inf] if heights[0] <= 0.0 else []
        for index in np.flatnonzero(np.diff(heights <= 0.0)):
            crossing = scipy.optimize.brentq(beyond, angles[index], angles[index + 1], xtol=1e-14)
            ends.append(math.tan(crossing) * size)
        if heights[-1] <= 0.0:
            ends.append(math.inf)
        return tuple(zip(ends[::2], ends[1::2], strict=True))

    @cached_property
    def verdict(self) -> tuple[str, ...]:
        """Sign of each coefficient by its interval; none of weak instruments."""
        return tuple(
            "weak instruments" if self.weak and name in self.endogenous else verdict
            for name, verdict in zip(self.estimates.names, self.estimates.verdict, strict=True)
        )

    @property
    def holds_among_all(self) -> BoolArray:
        """True for coefficients whose sign also holds among all of this answer."""
        counted = np.array([verdict != "weak instruments" for verdict in self.verdict])
        return counted & holds_among_all(self.estimates.p_value, np.ones(len(counted)), self.level)

    @property
    def heading(self) -> tuple[str, ...]:
        through = f"{', '.join(self.endogenous)} by {', '.join(self.instruments)}"
        stages = "; ".join(
            f"first stage of {name}: F = {number(stage['f'])}, {format_probability(stage['p_value'], 3)}, "
            f"partial R² = {f'{share:.3f}' if math.isfinite(share := stage['partial_r2']) else '–'}"
            for name, stage in self.first_stage.items()
        )
        return f"two-stage least squares of {self.target}: {through}", stages

    @property
    def remarks(self) -> tuple[str, ...]:
        weak = "Weak instruments (F below 10): only the Anderson–Rubin set is to be read." if self.weak else ""
        rubin = ""
        if len(self.endogenous) == 1:
            found = self.anderson_rubin_set()
            pieces = " or ".join(f"[{format_end(low, math.nan)}, {format_end(high, math.nan)}]" for low, high in found)
            pieces = pieces or "empty, no value fits the instruments"
            rubin = f"Anderson–Rubin set of {self.endogenous[0]} ({format_level(self.level)}): {pieces}"
        sargan = "" if self.sargan is None else f"; test that instruments agree (Sargan): {self.sargan.description}"
        tests = f"test of exogeneity (Wu–Hausman): {self.wu_hausman.description}{sargan}"
        return weak, rubin, tests, *self.estimates.remarks

    def _columns(self) -> list[Column]:
        columns = [column for column in self.estimates._columns() if column.name not in ("verdict", "holds_among_all")]
        return [*columns, *verdict_columns(self.verdict, self.holds_among_all)]


_BRACKETS = re.compile(r"\[([^\[\]~]+)~([^\[\]~]+)\]")


@in_floating_point
def iv(release: Moments, formula: str, *, level: float = 0.95) -> InstrumentalVariables:
    """Fit two-stage least squares with instruments: free of privacy cost.

    Parameters
    ----------
    release : Moments
    formula : str
        ``y ~ w + [x ~ z1 + z2]``: in brackets endogenous regressors and their instruments, as linearmodels writes them.
        A constant is fitted; ``1 +`` may say so.
    level : float
        Confidence of intervals and of the Anderson–Rubin set.

    Returns
    -------
    InstrumentalVariables

    Raises
    ------
    ValueError
        If the formula cannot be read or has fewer instruments than endogenous regressors, a name is unknown, or no mean was
        released.

    Notes
    -----
    With b = (−β, 1) the moment conditions have the covariance Cov((N b)_z) + s² M_zz of noise and sampling, for residuals
    of equal variance: it is in the errors, in the first stage's F, in the tests, and in the Anderson–Rubin set. A Boolean
    instrument and treatment give Wald's estimator of a local effect.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> z, u = rng.normal(0, 1, (2, 50_000))
    >>> x = z + u + rng.normal(0, 1, 50_000)
    >>> table = pa.table({"z": z, "x": x, "y": 2 * x - u})
    >>> numbers = dpm.Numeric("z", -4, 4), dpm.Numeric("x", -7, 7), dpm.Numeric("y", -15, 15)
    >>> released = dpm.release(table, dpm.Schema(*numbers), epsilon=3.0, insecure_seed=0)
    >>> released.iv("y ~ [x ~ z]").params.round(1).to_dict()
    {'(intercept)': 0.0, 'x': 2.0}
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise needs_mean("instrumental variables")
    found = _BRACKETS.findall(formula) if isinstance(formula, str) else []
    if len(found) != 1:
        raise InputValueError(
            f"the formula {shown(formula)} needs one pair of brackets with endogenous regressors and their instruments: "
            "'y ~ w + [x ~ z1 + z2]'"
        )
    inside, outside = (part.strip() for part in found[0])
    exogenous = re.sub(r"(\+\s*)?" + _BRACKETS.pattern, "", formula).rstrip(" +")
    exogenous += " 1" if exogenous.rstrip().endswith("~") else ""
    release, _ = Regressors.read(release, f"{exogenous} + {inside} + {outside}")

    law = release.noise
    if law is None:
        raise InputValueError(
            "the mechanism does not state its noise, which instruments need: release with another mechanism"
        )
    _, with_endogenous = Regressors.read(release, f"{exogenous} + {inside}")
    _, with_instruments = Regressors.read(release, f"{exogenous} + {outside}")
    with_endogenous.require_independent(release)
    with_instruments.require_independent(release)
    if not with_endogenous.intercept:
        raise InputValueError(
            f"the formula {shown(formula)} has no constant, which the moment conditions are about: leave '0 +' out"
        )
    plain = () if exogenous.rstrip().endswith("1") else Regressors.read(release, exogenous)[1].features
    endogenous = [feature for feature in with_endogenous.features if feature not in plain]
    excluded = [feature for feature in with_instruments.features if feature not in plain]
    if both := set(endogenous) & set(excluded):
        raise InputValueError(
            f"{release.feature_names[min(both)]!r} is its own instrument: write it outside the brackets"
        )
    if len(excluded) < len(endogenous):
        raise InputValueError(
            f"{len(endogenous)} endogenous regressors need as many instruments or more, and here are {len(excluded)}"
        )
    features = [*plain, *endogenous, *excluded, with_endogenous.target]
    scale, zero = release.encoding.scale[features], (release.zero_of_units * release.encoding.scale)[features]
    design = np.zeros((len(features) + 1, len(release.feature_names) + 1))
    design[0, 0] = 1.0
    design[np.arange(len(features)) + 1, np.array(features) + 1] = scale
    moments = design @ moments_with_constant(release) @ design.T
    about = np.eye(len(moments))  # about the released means, where sums of products do not lose digits
    about[1:, 0] = -moments[0, 1:] / moments[0, 0]
    moments, design, zero = about @ moments @ about.T, about @ design, zero - about[1:, 0]
    n_plain, n_endogenous = len(plain) + 1, len(endogenous)
    equations = Equations(
        (moments + moments.T) / 2.0,
        law.carried(design),
        float(moments[0, 0]),
        rows_per_independent(release, with_endogenous.target),
        np.append(0.0, gaps_of(release)[features]),
        np.pad(joint_gaps_of(release)[np.ix_(features, features)], (1, 0)),
        [*range(n_plain), *range(n_plain + n_endogenous, len(features))],
        list(range(n_plain + n_endogenous)),
        len(features),
        n_plain,
        complete_share(release, features)[0],
    )
    try:
        coefficients = equations.coefficients
        privacy, sampling = equations.covariances()
    except np.linalg.LinAlgError:
        raise InputValueError(
            "noise leaves no moments of these instruments to invert: name fewer of them, or release with more budget"
        ) from None
    units = np.eye(len(coefficients))
    units[0, 1:] = -zero[: len(coefficients) - 1]
    value = units @ coefficients
    value[0] += zero[-1]
    of_noise, of_rows = (np.maximum(np.diag(units @ part @ units.T), 0.0) for part in (privacy, sampling))

    def named(some: Sequence[int]) -> tuple[str, ...]:
        return tuple(release.feature_names[index] for index in some)

    names = ["(intercept)", *named([*plain, *endogenous])]
    estimates = estimates_of_errors(
        names,
        value,
        of_noise,
        of_rows,
        law,
        level,
        math.inf,
        features=tuple(names[1:]),
        warning=cautions_by_code(release),
    )
    return InstrumentalVariables(
        release.feature_names[with_endogenous.target],
        estimates,
        named(plain),
        named(endogenous),
        named(excluded),
        named(sorted(features)),
        {release.feature_names[index]: _first_stage(release, index, plain, excluded) for index in endogenous},
        equations.over_identification(),
        equations.exogeneity(),
        equations,
        level,
        cautions_by_code(release),
    )


def _first_stage(release: Moments, target: int, plain: tuple[int, ...], excluded: list[int]) -> dict[str, float]:
    """Return F of the excluded instruments with noise, its p-value, and their partial R²."""
    equations = NormalEquations.of(release, Regressors(target, (*plain, *excluded), True, {}))
    if equations is None:
        return {"f": math.nan, "p_value": math.nan, "partial_r2": math.nan}
    matrix = np.eye(equations.n_regressors)[len(plain) + 1 :]
    test = equations.joint_test(matrix, np.zeros(len(matrix)))
    moments, inner = equations.moments, list(range(len(plain) + 1))

    def left(given: list[int]) -> float:
        solved = np.linalg.lstsq(moments[np.ix_(given, given)], moments[given, -1], rcond=None)[0]
        return float(moments[-1, -1] - moments[given, -1] @ solved)

    without, with_them = left(inner), left(list(range(equations.n_regressors)))
    share = (without - with_them) / without if without > 0.0 else math.nan
    return {"f": test.f, "p_value": test.p_value, "partial_r2": min(max(share, 0.0), 1.0)}
