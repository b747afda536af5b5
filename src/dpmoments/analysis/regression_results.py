"""Coefficients of a regression with their errors, and what it explains.

In numbers and in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, confidence_level, in_floating_point, number, rounded, takes_level
from dpmoments.analysis.confidence import (
    NOT_CLEAR_NOISE,
    NOT_ESTIMABLE,
    Estimate,
    decided,
    estimable,
    holds_among_all,
    not_clear,
    verdict_columns,
)
from dpmoments.analysis.contrasts import (
    INTERCEPT,
    ContrastTests,
    Predictions,
    Restrictable,
    Restrictions,
    WaldTests,
    bonferroni,
    describe_statistic,
    estimate_columns,
    estimate_verdicts,
    of_estimates,
    statistics_of,
)
from dpmoments.analysis.effects import vif
from dpmoments.analysis.estimate import Estimates
from dpmoments.analysis.formula import WithTerms
from dpmoments.analysis.frames import named_values
from dpmoments.analysis.functionals import covariance_of_gaps
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.released import Moments, complete_share, dates_in, indices_of
from dpmoments.base.errors import InputAttributeError, InputValueError
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Identification:
    """Coefficients identified by a release; true as a Boolean if the whole fit is identified.

    >>> estimable = Identification(("age", "smoker"), (True, False), False)
    >>> bool(estimable), estimable["age"], list(estimable)
    (False, True, [True, False])
    """

    names: tuple[str, ...]
    coefficients: tuple[bool, ...]
    whole: bool

    def __bool__(self) -> bool:
        return self.whole

    def __len__(self) -> int:
        return len(self.coefficients)

    def __iter__(self) -> Iterator[bool]:
        return iter(self.coefficients)

    def __getitem__(self, key: int | str) -> bool:
        return self.coefficients[self.names.index(key) if isinstance(key, str) else key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.coefficients, dtype=dtype)


@dataclass(frozen=True)
class ExplainedVariance:
    """A share of the target's variance."""

    share: float  # R², in [0, 1]; 0 if the target's variance is noise-dominated
    privacy_error: float  # with `sampling_error`: standard deviations of its privacy noise and sampling error
    sampling_error: float
    degrees_of_freedom: float  # n − k
    n_rows: float
    with_constant: bool = True

    @classmethod
    def of_population(cls, equations: NormalEquations) -> ExplainedVariance:
        """Return R² of the population's least squares for identified equations."""
        # The residual sum of squares of the noisy fit is bᵀM b − gᵀM_AA⁻¹g at the true b, g = (N b)_A: too small by
        # tr(M_AA⁻¹ Cov(g)) on average, which is added back. Its error is bᵀN b to first order, and 2
        # tr((M_AA⁻¹Cov(g))²) is the variance of the second.
        return cls._of(
            equations, equations.solution, np.asarray(np.linalg.pinv(equations.gram), dtype=np.float64), times=1.0
        )

    @classmethod
    def of_line(cls, equations: NormalEquations, slopes: FloatArray, penalty: float) -> ExplainedVariance:
        """Return the R² of a released line in the population, for penalized or unidentified fits."""
        # `equations` are of encoded rows about the release's center, `slopes` exclude the constant, and `penalty` is
        # the (equivalent) addition to the diagonal of Σ x xᵀ.
        solution, ridge = slopes, penalty * np.eye(len(slopes))
        if equations.with_constant:
            moments = equations.moments
            middle = float(moments[0, -1] - moments[0, 1:-1] @ slopes) / float(moments[0, 0])
            solution = np.concatenate([[middle], slopes])
            ridge = np.diag([0.0, *np.diag(ridge)])
        eigenvalues, vectors = np.linalg.eigh(equations.psd_gram + ridge)
        inverse = (vectors / np.maximum(eigenvalues, max(equations.noise_floor, 1e-300))) @ vectors.T
        return cls._of(equations, solution, inverse, times=2.0)

    @classmethod
    def _of(
        cls, equations: NormalEquations, solution: FloatArray, inverse: FloatArray, *, times: float
    ) -> ExplainedVariance:
        moments, n_rows, k = equations.moments, equations.n_rows, equations.n_regressors
        beyond = np.append(-solution, 1.0)
        of_target = np.zeros(k + 1)
        of_target[-1] = 1.0
        if equations.with_constant:
            of_target[0] = -float(moments[0, -1]) / float(moments[0, 0])
        total = float(of_target @ moments @ of_target)
        complete, independent = n_rows * equations.complete, n_rows / equations.rows_per_unit
        degrees = max(complete - k, 1.0)
        if total <= 0.0:
            return cls(0.0, math.inf, math.inf, degrees, complete)
        product = inverse @ equations.noise_covariance(beyond)
        residual = float(beyond @ moments @ beyond) + times * float(np.trace(product))
        by_mean = 0.0  # about the noisy mean, the total is too small by the noise of that mean
        if equations.with_constant:
            by_mean = float(equations.noise_covariance(of_target)[0, 0]) / float(moments[0, 0])
        share = min(max(1.0 - residual / (total + by_mean), 0.0), 1.0)
        gradient = (1.0 - share) * np.outer(of_target, of_target) - np.outer(beyond, beyond)
        carried = equations.design_map.T @ gradient @ equations.design_map / total
        second_order = 2.0 * times * float(np.trace(product @ product)) / total**2
        privacy = float(equations.noise.variance(None, carried[None])[0]) + max(second_order, 0.0)
        # no nearer to 1 than its noise: there the sampling error would be 0
        nearest = min(share, max(1.0 - math.sqrt(privacy), 0.0))
        sampling = 4.0 * nearest * independent + 2.0 * (k - equations.with_constant)
        sampling *= ((1.0 - nearest) / independent) ** 2
        if equations.gaps is not None:
            covariance = moments / n_rows
            if equations.with_constant:
                covariance = covariance - np.outer(covariance[0], covariance[0])
            weights = gradient[None] * (n_rows / total)
            added = covariance_of_gaps(weights, covariance, equations.gaps, equations.joint_gaps)
            sampling += float(added[0, 0]) / independent
        return cls(share, math.sqrt(privacy), math.sqrt(max(sampling, 0.0)), degrees, complete, equations.with_constant)

    @property
    def adjusted(self) -> float:
        """1 − (1 − R²)(n − 1)/(n − k); n in place of n − 1 without a constant."""
        return 1.0 - (1.0 - self.share) * max(self.n_rows - self.with_constant, 1.0) / self.degrees_of_freedom

    def interval(self, level: float) -> tuple[float, float]:
        """Return a confidence interval within [0, 1]."""
        lower, upper = self.ends(level)
        return max(lower, 0.0), min(upper, 1.0)

    def ends(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval, which may be beyond [0, 1]."""
        reach = float(scipy.special.ndtri(0.5 + 0.5 * level)) * math.hypot(self.privacy_error, self.sampling_error)
        return self.share - reach, self.share + reach

    def is_known(self, level: float) -> bool:
        """Return True if what noise leaves, sampling aside, is short and inside (0, 1)."""
        lower, upper = replace(self, sampling_error=0.0).ends(level)
        return bool(estimable(np.array(lower), np.array(upper), 0.0, 1.0)) and lower > 0.0 and upper < 1.0


NOT_IN_FITS = MappingProxyType(
    {
        **dict.fromkeys(
            ("aic", "bic", "llf", "compare_f_test", "compare_lr_test"),
            "the noise of a difference of two fits would often choose another model than the table does; wald_test(...) tests "
            "whether coefficients are 0, with the noise",
        ),
        **dict.fromkeys(
            ("resid", "fittedvalues", "get_influence", "outlier_test", "resid_pearson"),
            "residuals are of rows, and a release has none; predict(frame) is for rows of your own, and scale is the variance "
            "of the residuals",
        ),
    }
)
"""Attributes of other programs' fits that moments do not determine: why, and what to use."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedLine(Answer):
    """A linear regression computed from a release.

    Attributes
    ----------
    method : str
        ``"least squares"``, ``"ridge"`` or ``"lasso"``.
    target : str
    features : tuple of str
    coefficients : ndarray of shape (k,)
        In units of the target per unit of each feature.
    intercept : float
        In units of the target; 0 without an intercept.
    alpha : float
        The penalty.
    references : mapping of str to str
        Reference level of every categorical column (and of its products).
    too_few : tuple of str
        Levels with too few rows to count despite the noise: merged into the reference level, or with ridge counted as an
        average level.
    level : float
        Default confidence level of intervals and bounds.
    equations : NormalEquations or None
        With the unpenalized least-squares coefficients of the same features but ``too_few``; None if the noise distribution is
        not known.
    explained : ExplainedVariance or None
        By the population's least squares, or by this line if it is penalized.
    unit_ball_coefficients : ndarray of shape (k,)
        The same coefficients for encoded rows, the space in which ``alpha`` and the bound are stated.
    unit_ball_error_bound : float or None
        With the confidence ``level``, ‖ŵ − w‖₂ ≤ this, w the fit of the same penalty on the table itself (encoded rows); inf
        if the data fix no bound; None if the noise distribution gives none.
    error_bound_note : str
        Remark on the bound, or the reason for its absence.
    released_r_squared : float
        Share of the target's released variance that the fit explains at the released moments: too large if they are noisy.
    n_rows : int
        Rows with values of all features and the target, at most those of the pair of columns with the fewest.
    with_intercept : bool
    release : Moments
        The release, with the terms of a formula that it has not.
    help : str
        Advice for a fit that is noise; else empty.
    warning : str
        Reason not to read the fit as a fact about the table (too few rows for the budget); usually empty.
    cutoff : float or None
        Largest p-value of a coefficient that holds among all of a page; None: by Holm's correction over this table.
    """

    method: str
    target: str
    features: tuple[str, ...]
    coefficients: FloatArray
    intercept: float
    alpha: float
    references: Mapping[str, str]
    too_few: tuple[str, ...]
    level: float
    equations: NormalEquations | None
    explained: ExplainedVariance | None
    unit_ball_coefficients: FloatArray
    unit_ball_error_bound: float | None
    error_bound_note: str
    released_r_squared: float
    n_rows: int
    with_intercept: bool
    release: Moments
    help: str = ""
    warning: str = ""
    cutoff: float | None = None

    facts = (
        *("method", "target", "intercept", "**: _of_intercept", "coefficients by features"),
        *("standard_errors by features", "privacy_errors by features", "sampling_errors by features"),
        *("p_values by features", "lower by features", "upper by features", "identified: _is_identified", "is_noise"),
        *("verdict by names", "holds_among_all by names", "p_value_of_fit", "references", "too_few", "alpha"),
        *("r_squared", "r_squared_interval", "released_r_squared", "n_rows", "unit_ball_error_bound", "level"),
        *("error_bound_note", "warning"),
    )

    @property
    def schema(self) -> Schema:
        """Schema of the release."""
        return self.release.schema

    @property
    def _terms(self) -> Mapping[str, Mapping[str, FloatArray]]:
        return self.release.terms if isinstance(self.release, WithTerms) else {}

    @property
    def identified(self) -> Identification:
        """Estimability of the whole fit and of each coefficient.

        The truth value is for the whole fit, by the delta method.
        """
        by_name = dict.fromkeys(self.features, False)
        if self.equations is not None:
            fitted = [name for name in self.features if name not in self.too_few]
            estimates = self.equations.estimates(self.level)[int(self.with_intercept) :]
            by_name |= {name: each.estimable for name, each in zip(fitted, estimates, strict=True)}
        named = tuple(by_name[name] for name in self.features)
        return Identification(self.features, named, self._is_identified)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Coefficients of ``names`` with intervals and errors; not estimable if penalized."""
        return self._estimates_at(self.level)

    def _estimates_at(self, level: float) -> tuple[Estimate, ...]:
        if self.equations is None or self._is_penalized:
            return (Estimate.not_estimable(level),) * len(self.names)
        return self.equations.estimates(level)

    def _slopes(self, part: str) -> FloatArray:
        """Return one attribute of the estimates of the features, shape (k,)."""
        return of_estimates(self.estimates[int(self.with_intercept) :], part)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors (total), shape (k,); NaN if a coefficient is not estimable."""
        return self._slopes("standard_error")

    @property
    def privacy_errors(self) -> FloatArray:
        """Standard deviations of what privacy's noise does to the coefficients, shape (k,)."""
        return self._slopes("privacy")

    @property
    def sampling_errors(self) -> FloatArray:
        """Standard errors as they are without privacy, shape (k,).

        For residuals of one variance unless the fit is ``robust``.
        """
        return self._slopes("sampling")

    @property
    def p_values(self) -> FloatArray:
        """Two-sided p-values of the hypotheses that coefficients are 0, shape (k,)."""
        return self._slopes("p_value")

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the coefficients, shape (k,)."""
        return self._slopes("lower")

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the coefficients, shape (k,)."""
        return self._slopes("upper")

    @property
    def p_value_of_fit(self) -> float:
        """P-value of the hypothesis that all coefficients but the intercept are 0."""
        return math.nan if self.equations is None else self.equations.overall_test.p_value

    @property
    def is_noise(self) -> bool:
        """True if the whole fit is not clearly different from 0 at the fit's level.

        Also if noise is unknown.
        """
        return not self.p_value_of_fit < 1.0 - self.level

    @takes_level
    def conf_int(self, level: float | None = None, adjust: Literal["bonferroni"] | None = None) -> pd.DataFrame:
        """Return confidence intervals as a pandas frame with columns lower and upper.

        They are for the least-squares coefficients of these features in the population that the table is a sample of.

        Parameters
        ----------
        level : float, optional
            Default: the fit's.
        adjust : {None, "bonferroni"}
            ``"bonferroni"``: all intervals hold together with the confidence ``level``.

        Raises
        ------
        ValueError
            If the level is below 0.5: a level is a confidence (1 less statsmodels' ``alpha``); for a penalized fit.

        Examples
        --------
        >>> import numpy as np, dpmoments as dpm
        >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, 50_000)
        >>> table = np.column_stack([x, 0.1 + 0.8 * x])
        >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
        >>> released.ols("x1 ~ x0").conf_int().loc["x0"].round(2).tolist()
        [0.8, 0.8]
        """
        self._check_not_penalized()
        level = self.level if level is None else confidence_level(level)
        estimates = self._estimates_at(bonferroni(level, adjust, len(self.names)))
        ends = np.column_stack([of_estimates(estimates, end) for end in ("lower", "upper")])
        return self._frame(ends, ["lower", "upper"])

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of ``params``, of noise and sampling together, as a frame.

        Raises
        ------
        ValueError
            If noise is too large for the delta method, or its distribution is not known; for a penalized fit.
        """
        equations = self._tested()
        if not equations.delta_method_valid:
            raise InputValueError(
                "noise is too large for a covariance matrix of the coefficients: use t_test() and wald_test(), by "
                "test inversion"
            )
        return self._frame(equations.privacy_covariance + equations.sampling_covariance, list(self.names))

    @in_floating_point
    @takes_level
    def t_test(self, restrictions: Restrictable, *, level: float | None = None) -> ContrastTests:
        """Test linear combinations of coefficients, one by one, with errors and intervals.

        Parameters
        ----------
        restrictions : str, sequence of str, mapping, ndarray or tuple
            ``"age + age:sex[Female]"`` (that it is 0), ``"age = 2*height"``, several with commas or in a list; a mapping of
            names to their coefficients in one combination; an array with a column for each of ``params``; a pair of an array
            and values. The coefficient of a reference level is 0.
        level : float, optional
            Confidence level of the intervals; default: the fit's.

        Returns
        -------
        ContrastTests

        Raises
        ------
        ValueError, TypeError
            If a name is not a coefficient, or what is given is not linear; for a penalized fit, or one of unknown noise.

        Notes
        -----
        A combination has the interval of a coefficient: by the delta method where it is valid, else by test inversion, and is
        not estimable if that is unbounded.

        Examples
        --------
        >>> import numpy as np, dpmoments as dpm
        >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
        >>> table = np.column_stack([x, x @ [0.5, 0.3]])
        >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
        >>> released.ols("x2 ~ x0 + x1").t_test("x0 - x1").effect.round(1)
        array([0.2])
        """
        level = self.level if level is None else confidence_level(level)
        return ContrastTests(self._restrictions(restrictions), self._tested(), self.target, level)

    @in_floating_point
    def wald_test(self, restrictions: Restrictable) -> WaldTests:
        """Test linear restrictions together.

        Parameters
        ----------
        restrictions : str, sequence of str, mapping, ndarray or tuple
            As for :meth:`t_test`.

        Returns
        -------
        WaldTests
            F with residual degrees of freedom, or the χ² of test inversion if noise is too large for the delta method.

        Raises
        ------
        ValueError, TypeError
            As for :meth:`t_test`; also if no coefficients fulfill all restrictions.

        Examples
        --------
        >>> import numpy as np, dpmoments as dpm
        >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
        >>> table = np.column_stack([x, x @ [0.5, 0.3]])
        >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
        >>> bool(released.ols("x2 ~ x0 + x1").wald_test("x0 = x1 = 0").pvalues[0] < 1e-6)
        True
        """
        linear = self._restrictions(restrictions)
        labels = (f"{label} = {value:.6g}" for label, value in zip(linear.labels, linear.values.tolist(), strict=True))
        test = self._tested().joint_test(linear.matrix, linear.values)
        return WaldTests((", ".join(labels),), (test,), self.target, "rejected")

    @in_floating_point
    def wald_test_terms(self) -> WaldTests:
        """Test the coefficients of each column and each derived feature together.

        Returns
        -------
        WaldTests
            One test for each: all levels of a categorical, or of its product with another column, are 0.

        Raises
        ------
        ValueError
            For a penalized fit, or one of unknown noise.
        """
        equations = self._tested()
        rows = np.eye(len(self.names))
        known = {**{column.name: column.feature_names for column in self.schema.columns}, **self._terms}
        terms = {
            term: [index for index, name in enumerate(self.names) if name in columns] for term, columns in known.items()
        }
        terms = {name: indices for name, indices in terms.items() if indices}
        tests = tuple(equations.joint_test(rows[indices], np.zeros(len(indices))) for indices in terms.values())
        return WaldTests(tuple(terms), tests, self.target)

    def _restrictions(self, given: Restrictable) -> Restrictions:
        self._tested()
        return Restrictions.of(
            given, self.names, schema=self.schema, references=tuple(self.references.values()), merged=self.too_few
        )

    def _check_not_penalized(self) -> None:
        if self._is_penalized:
            raise InputValueError(
                f"A {self.method} fit has no standard errors, intervals or tests: those of penalized coefficients are not "
                "known. Use ols()."
            )

    def _tested(self) -> NormalEquations:
        """Return the equations of a fit that has errors; raise for others."""
        self._check_not_penalized()
        if self.equations is None:
            why = self.error_bound_note or "the noise distribution is unknown"
            raise InputValueError(f"no standard errors: {why}")
        return self.equations

    def _frame(self, values: FloatArray, columns: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(values, index=list(self.names), columns=list(columns))

    @property
    def r_squared(self) -> float:
        """R² less the expected effect of noise; as released if the noise distribution is not known.

        NaN where noise leaves no number, but a limit at most: ``r_squared_interval`` has it.
        """
        if self.explained is None:
            return self.released_r_squared
        return self.explained.share if self._r_squared_is_known else math.nan

    @property
    def adjusted_r_squared(self) -> float:
        """R² adjusted for the number of features; NaN where ``r_squared`` is."""
        return math.nan if self.explained is None or not self._r_squared_is_known else self.explained.adjusted

    def r_squared_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return a confidence interval of R²; [0, 1] if the noise distribution is not known."""
        level = self.level if level is None else confidence_level(level)
        if self.explained is None:
            return 0.0, 1.0
        lower, upper = self.explained.interval(level)
        return (0.0 if self.is_noise else lower), (upper if self._is_identified else 1.0)

    @property
    def _complete(self) -> tuple[float, bool]:
        """Share of the rows with all values, and True if it is an upper bound."""
        return complete_share(self.release, indices_of(self.release.feature_names, (self.target, *self.features)))

    @property
    def _r_squared_error(self) -> float:
        lower, upper = self.r_squared_interval()
        # at most four decimals of a share
        return max((upper - lower) / (2.0 * float(scipy.special.ndtri(0.5 + 0.5 * self.level))), 1e-3)

    @property
    def _r_squared_is_known(self) -> bool:
        return self.explained is None or (self._is_identified and self.explained.is_known(self.level))

    @property
    def r_squared_text(self) -> str:
        """R² in words: a number only if noise leaves one."""
        lower, upper = self.r_squared_interval()
        shown = f"R² = {rounded(self.r_squared, self._r_squared_error)}"
        interval = f"({self.level:.0%} interval {lower:.3f} to {upper:.3f})"
        if self.explained is None:
            return f"{shown} (at the released moments; too large by an unknown amount)"
        if self._r_squared_is_known:
            return f"{shown} {interval}"
        if not estimable(np.array(lower), np.array(upper), 0.0, 1.0):
            return f"R² is {NOT_ESTIMABLE}"
        return f"R² is below {upper:.3f} {interval}" if lower <= 0.0 else f"R² is at least {lower:.3f} {interval}"

    @property
    def heading(self) -> tuple[str, ...]:
        alpha = "" if self.method == "least squares" else f", alpha = {self.alpha:.4g}"
        r_squared = self.r_squared_text
        if self.explained is not None and r_squared.startswith("R² ="):
            r_squared += f", adjusted {rounded(self.adjusted_r_squared, self._r_squared_error)}"
            # as eta², unlike a squared correlation
            if self.explained.privacy_error > 0.5 * self.explained.sampling_error:
                r_squared += ", both less what noise adds"
        noise = ""
        if self.equations is not None and self.is_noise:
            reason = NOT_CLEAR_NOISE
            if self._is_identified:
                privacy, sampling = (float(np.nansum(self._slopes(part) ** 2)) for part in ("privacy", "sampling"))
                reason = not_clear(privacy, sampling)
            noise = f"WHOLE FIT: {reason.upper()} (p = {self.p_value_of_fit:.2g}). {self.help}"
        p_value = ""
        if self.equations is not None and not self._is_penalized:
            p_value = f"; overall test: {self.equations.overall_test.description}"
            residual = self.residual_standard_deviation
            if self.equations.delta_method_valid and residual > 0.0:
                r_squared += f"; residual standard deviation {number(residual)}"
        left = {feature.rpartition("=")[0] for feature in self.features}
        compared = "; ".join(
            f"levels of {name} are compared with {level}"
            for name, level in self.references.items()
            if level.rpartition("=")[0] in left
        )
        count = f"{len(self.features)} feature{'' if len(self.features) == 1 else 's'}"
        error = 0.0 if self.equations is None else math.sqrt(self.equations.noise.count_variance)
        rows = f"{self.release.sample_size:,}" + (f" ± {rounded(error, error)} rows" if error > 0.0 else " rows")
        share, is_bound = self._complete
        if share < 1.0:
            rows = f"{'at most' if is_bound else 'about'} {self.n_rows:,} of {rows} (those with all values)"
        title = f"{self.method} regression of {self.target} on {count}{alpha}, {rows}"
        if self.too_few:
            counted = "counted as an average level" if self._is_penalized else "merged into the reference level"
            merged = f"{counted} (rare, noise hides them): {', '.join(self.too_few)}"
            compared = "; ".join(filter(None, [compared, merged]))
        numbered = {name for feature in (self.target, *self.features) for name in feature.split(":")}
        dates = [each for each in dates_in(self.schema).values() if each.name in numbered]
        counted_from = "; ".join(f"{each.name} counts {each.unit} since {each.origin}" for each in dates)
        return tuple(filter(None, [noise, title, f"{r_squared}{p_value}", compared, counted_from]))

    @property
    def remarks(self) -> tuple[str, ...]:
        about_rows = "The number of rows with all values is at most the least number with both values of two columns."
        about_rows = about_rows if self._complete[1] else ""
        if self.equations is None:
            about = f"No standard errors: {self.error_bound_note or 'the noise distribution is unknown'}."
            return tuple(filter(None, [about, about_rows, self.warning]))
        about = ""
        if self._is_penalized:
            about = "The errors of penalized coefficients are not known; ols() has errors, intervals and p-values."
        elif self._is_identified:
            about = f"Standard errors include privacy noise and sampling error{self.equations.about_sampling}"
            about += self.equations.about_residuals
        elif any(each.estimable for each in self.estimates):
            about = (
                "Too noisy for the usual standard errors: intervals come from test inversion, and standard errors are half "
                f"their widths over the normal quantile{self.equations.about_sampling}"
            )
        if not self._is_penalized and not self._is_identified and not self.is_noise:  # else the heading has it
            about = f"{about} {self.help}".strip()
        about_z = describe_statistic(self.equations) if any(each.estimable for each in self.estimates) else ""
        bound, size = self.unit_ball_error_bound, float(np.linalg.norm(self.unit_ball_coefficients))
        about_bound = ""
        if bound is not None and bound < size:  # Lemma 1's bound says something of some coefficient
            about_bound = (
                f"Privacy noise moved the encoded coefficients (norm {size:.3g}) by at most {bound:.3g}, with confidence "
                f"{self.level:.0%} ({self.error_bound_note})."
            )
        return tuple(filter(None, [about, about_z, about_bound, about_rows, self.warning]))

    def _columns(self) -> list[Column]:
        name = Column("feature", self.names, "", label=True)
        verdicts = verdict_columns(self.verdict, self.holds_among_all)
        if self._is_penalized or self.equations is None:
            errors = ("std_err", "privacy_err", "sampling_err", "p_value", "lower", "upper")
            unknown = (Column(each, np.full(len(self.names), np.nan)) for each in errors)
            verdicts = [] if self._is_penalized else verdicts[:1]
            return [name, Column("coef", self._with_constant, "coef"), *unknown, *verdicts]
        columns = estimate_columns(self.estimates, self.equations, self.level, names=("coef", "coef", ""))
        return [name, *columns, *verdicts]

    @property
    def _of_intercept(self) -> dict[str, float]:
        parts = ("standard_error", "p_value", "lower", "upper") if self.with_intercept else ()
        return {f"intercept_{part}": getattr(self.estimates[0], part) for part in parts}

    @property
    def names(self) -> tuple[str, ...]:
        """Features, preceded by the intercept if there is one."""
        return (INTERCEPT, *self.features) if self.with_intercept else self.features

    @property
    def _is_identified(self) -> bool:
        return self.equations is not None and self.equations.identified

    @property
    def _is_penalized(self) -> bool:
        return self.method != "least squares"

    @property
    def _with_constant(self) -> FloatArray:
        """Coefficients of ``names``."""
        return np.concatenate([[self.intercept], self.coefficients]) if self.with_intercept else self.coefficients

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sign of each of ``names`` by its own interval; empty for the intercept and penalized fits."""
        if self._is_penalized:
            return ("",) * len(self.names)
        if self.equations is None:
            return (decided(math.nan, ""),) * len(self.names)
        signs = estimate_verdicts(self.estimates, self.level)
        return ("", *signs[1:]) if self.with_intercept else signs

    @property
    def comparisons(self) -> tuple[FloatArray, FloatArray]:
        """The p-values of the features, and the comparisons that each counts as, shape (k,)."""
        return self.p_values, np.ones(len(self.features))

    @property
    def holds_among_all(self) -> BoolArray:
        """True for each of ``names`` whose sign also holds among all comparisons of the page.

        The chance that any of them is false is at most 1 − ``level``.
        """
        held = holds_among_all(*self.comparisons, self.level, self.cutoff)
        return np.append(False, held) if self.with_intercept else held

    def predict(self, frame: Any) -> FloatArray:
        """Predict for the rows of a frame, shape (m,); NaN if a value is missing.

        Columns are read by name.

        Raises
        ------
        ValueError, TypeError
            If a column is absent, holds levels that the schema does not list, or ``frame`` is not a frame.
        """
        values = named_values(self.schema, frame, self.features, self._terms)
        return np.asarray(values @ self.coefficients + self.intercept, dtype=np.float64)

    @in_floating_point
    def get_prediction(self, frame: Any, *, level: float | None = None) -> Predictions:
        """Predict with standard errors, and intervals of the line and of new rows.

        Parameters
        ----------
        frame : frame or mapping
            As for :meth:`predict`; at most 1,000 rows if noise is too large for the delta method.
        level : float, optional
            Confidence level of the intervals; default: the fit's.

        Returns
        -------
        Predictions
            ``predicted_mean``, ``se_mean``, ``conf_int(obs=False)`` and ``summary_frame()`` are statsmodels' names.

        Raises
        ------
        ValueError, TypeError
            As :meth:`predict`; also for a penalized fit, or one of unknown noise.
        """
        level = self.level if level is None else confidence_level(level)
        equations = self._tested()
        values = named_values(self.schema, frame, self.features, self._terms)
        rows = np.column_stack([np.ones(len(values)), values]) if self.with_intercept else values
        return Predictions(rows, equations, self.predict(frame), level, dates_in(self.schema).get(self.target))

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients with the intercept first, as a pandas Series; NaN if not estimable.

        The name comes from statsmodels.
        """
        known = not self._is_penalized and self.equations is not None
        return self._series(of_estimates(self.estimates, "value") if known else self._with_constant)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors of ``params``."""
        return self._series(of_estimates(self.estimates, "standard_error"))

    @property
    def pvalues(self) -> pd.Series[float]:
        """p-values of ``params``."""
        return self._series(of_estimates(self.estimates, "p_value"))

    @property
    def tvalues(self) -> pd.Series[float]:
        """Statistics of ``pvalues``: t with ``df_resid``, or normal for test inversion."""
        if self.equations is None:
            return self._series(np.full(len(self.names), np.nan))
        return self._series(statistics_of(self.estimates, self.equations))

    @property
    def df_resid(self) -> float:
        """Residual degrees of freedom: rows less coefficients."""
        return max(self.n_rows - len(self.names), 1.0) if self.equations is None else self.equations.degrees_of_freedom

    @property
    def df_model(self) -> float:
        """Number of features."""
        return float(len(self.features))

    @property
    def residual_standard_deviation(self) -> float:
        """Standard deviation of least squares' residuals; NaN if noise hides it."""
        if self.equations is None or self.equations.residuals_are_noise:
            return math.nan
        return self.equations.residual_deviation()

    @property
    def fvalue(self) -> float:
        """F of the test that all slopes are 0.

        Of a noisy fit the χ² of test inversion over its degrees, which is F with infinite residual degrees.
        """
        return math.nan if self.equations is None else self.equations.overall_test.f

    @property
    def scale(self) -> float:
        """Residual variance; NaN if noise hides it."""
        return self.residual_standard_deviation**2

    @property
    def ssr(self) -> float:
        """Sum of the squared residuals; NaN if noise hides it."""
        return self.scale * self.df_resid

    # statsmodels' names; F has the p-value of the fit where noise is small
    f_pvalue = p_value_of_fit
    rsquared = r_squared
    rsquared_adj = adjusted_r_squared
    mse_resid = scale
    f_test = wald_test

    @property
    def condition_number(self) -> float:
        """Root of the ratio of the extreme eigenvalues of Σ x xᵀ; NaN if noise hides it.

        In original units, as statsmodels has it.
        """
        if self.equations is None:
            return math.nan
        inverse = np.linalg.inv(self.equations.units_map)
        values = np.linalg.eigvalsh(inverse.T @ self.equations.gram @ inverse)
        return math.sqrt(values[-1] / values[0]) if values[0] > 0.0 else math.nan

    @property
    def vif(self) -> Estimates:
        """Variance inflation factors of the features: :func:`dpmoments.analysis.effects.vif`."""
        return vif(self.release, [name for name in self.features if name not in self.too_few], level=self.level)

    if not TYPE_CHECKING:  # type checkers know which names there are

        def __getattr__(self, name: str) -> Any:
            """Raise an error with the reason and the alternative if a fit has no such attribute."""
            if name in NOT_IN_FITS:
                raise InputAttributeError(f"a fit has no {name}: {NOT_IN_FITS[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def nobs(self) -> int:
        """``n_rows``."""
        return self.n_rows

    def _series(self, values: FloatArray) -> pd.Series[float]:
        from dpmoments.analysis.named_series import Coefficients

        return Coefficients(values, index=list(self.names))
