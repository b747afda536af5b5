"""Coefficients of a regression with their errors, and what it explains: in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import TableAnswer, finite_or_none, number, number_or_none
from dpmoments.analysis.clipping_effect import ClippingEffect
from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.explained_variance import ExplainedVariance
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE
from dpmoments.analysis.inference import CoefficientInference
from dpmoments.analysis.intervals import Identification, Intervals
from dpmoments.foundation.arrays import FloatArray

__all__ = ["NO_EFFECT", "CoefficientTable"]

CONSTANT = "(intercept)"
NO_EFFECT = "not distinguishable from 0"
SHARE_OF_PRIVACY = 0.5
"""Where privacy's part is below this share of the standard error, what a coefficient cannot be told from is 0, not noise."""


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientTable(TableAnswer):
    """The coefficients of a linear regression computed from a release.

    Attributes
    ----------
    method : str
        ``"least squares"``, ``"ridge"`` or ``"lasso"``.
    target : str
    features : tuple of str
    coefficients : ndarray of shape (k,)
        In units of the target per unit of each feature.
    intercept : float
        In units of the target; 0 where none was fitted.
    alpha : float
        The penalty.
    references : mapping of str to str
        The feature left out of every categorical column (and of its products), with which its other levels are compared.
    too_few : tuple of str
        Levels of so few rows that noise hides how many: left out, their rows count with the reference.
    level : float
        Confidence of intervals and bounds, where no other is asked for.
    inference : CoefficientInference or None
        Of the least-squares coefficients of the same features, which a penalty does not shrink; None where no law of the noise
        is known.
    explained : ExplainedVariance or None
        By the population's least squares, or by this line where it is shrunk.
    clipping : ClippingEffect
    unit_ball_coefficients : ndarray of shape (k,)
        The same coefficients for encoded rows, the space in which ``alpha`` and the bound are stated.
    unit_ball_error_bound : float or None
        With the confidence ``level``, ‖ŵ − w‖₂ ≤ this, w the fit of the same penalty on the table itself (encoded rows); inf
        where the data fix no bound; None where no law gives one.
    error_bound_note : str
        What else is to be known of the bound, or why there is none.
    released_r_squared : float
        Share of the target's released variance that the fit explains at the released moments: too large where they are noisy.
    n_rows : int
    help : str
        What would make a fit that is noise a better one; empty where it is none.
    warning : str
        What speaks against reading the fit as that of the table: too few rows for the budget; mostly empty.
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
    inference: CoefficientInference | None
    explained: ExplainedVariance | None
    clipping: ClippingEffect
    unit_ball_coefficients: FloatArray
    unit_ball_error_bound: float | None
    error_bound_note: str
    released_r_squared: float
    n_rows: int
    with_intercept: bool
    help: str = ""
    warning: str = ""

    @property
    def identified(self) -> Identification:
        """Whether noise is small enough for standard errors: of the whole fit as a truth value, and of each coefficient.

        A coefficient of a fit that is not identified counts as identified where its interval is bounded.
        """
        bounded = np.isfinite(self._intervals(self.level)).all(axis=1)
        return Identification(self.features, tuple(map(bool, self._slopes(bounded))), self._is_identified)

    @property
    def standard_errors(self) -> FloatArray:
        """Of sampling and privacy together, shape (k,); NaN where the fit is not identified."""
        return np.asarray(self._slopes(self._errors("standard_errors")))

    @property
    def privacy_errors(self) -> FloatArray:
        """Standard deviations of what privacy's noise does to the coefficients, shape (k,)."""
        return np.asarray(self._slopes(self._errors("privacy_errors")))

    @property
    def sampling_errors(self) -> FloatArray:
        """Standard errors as they are without privacy, for residuals of one variance, shape (k,)."""
        return np.asarray(self._slopes(self._errors("sampling_errors")))

    @property
    def p_values(self) -> FloatArray:
        """Of the hypotheses that coefficients are 0, two-sided, shape (k,)."""
        return np.asarray(self._slopes(self._errors("p_values")))

    @property
    def p_value_of_fit(self) -> float:
        """Of the hypothesis that all coefficients but the intercept are 0."""
        return math.nan if self.inference is None else self.inference.p_value_of_fit

    @property
    def is_noise(self) -> bool:
        """Whether the whole fit is not distinguishable from noise at the fit's level; so it is where no law is known."""
        return not self.p_value_of_fit < 1.0 - self.level

    def conf_int(self, level: float | None = None) -> Intervals:
        """Confidence intervals of the coefficients, rows of shape (k, 2), found by feature name too.

        They are for the least-squares coefficients of these features in the population that the table is a sample of.

        Parameters
        ----------
        level : float, optional
            Default: the fit's.

        Raises
        ------
        ValueError
            If it is below 0.5: a level is a confidence (1 less statsmodels' ``alpha``).
        """
        level = self.level if level is None else confidence_level(level)
        found = self._intervals(level)
        extra = {CONSTANT: (float(found[0, 0]), float(found[0, 1]))} if self.with_intercept else {}
        return Intervals(self.features, self._slopes(found), level, extra)

    @property
    def r_squared(self) -> float:
        """R² less what noise is expected to add to it; as released where no law is known."""
        return self.released_r_squared if self.explained is None else self.explained.share

    @property
    def adjusted_r_squared(self) -> float:
        """R² adjusted for the number of features."""
        return math.nan if self.explained is None else self.explained.adjusted

    def r_squared_interval(self, level: float | None = None) -> tuple[float, float]:
        """A confidence interval of R²; all of [0, 1] where no law is known."""
        level = self.level if level is None else confidence_level(level)
        if self.explained is None:
            return 0.0, 1.0
        lower, upper = self.explained.interval(level)
        return (0.0 if self.is_noise else lower), (upper if self._is_identified else 1.0)

    @property
    def heading(self) -> tuple[str, ...]:
        alpha = "" if self.method == "least squares" else f", alpha = {self.alpha:.4g}"
        lower, upper = self.r_squared_interval()
        r_squared = f"R² = {self.r_squared:.4f}"
        if self.explained is not None:
            r_squared += (
                f" ({self.level:.0%} interval {lower:.3f} to {upper:.3f}), adjusted {self.adjusted_r_squared:.4f}"
            )
        else:
            r_squared += " (at the released moments; too large by an unknown amount)"
        noise = ""
        if self.inference is not None and self.is_noise:
            noise = f"THE WHOLE FIT IS {NOT_DISTINGUISHABLE.upper()} (p = {self.p_value_of_fit:.2g}). {self.help}"
        p_value = "" if self.inference is None else f"; p of the whole fit = {_p_in_words(self.p_value_of_fit)}"
        compared = "; ".join(f"levels of {name} are compared with {level}" for name, level in self._compared().items())
        count = f"{len(self.features)} feature{'' if len(self.features) == 1 else 's'}"
        title = f"{self.method} regression of {self.target} on {count}{alpha}, {self.n_rows:,} rows"
        if self.too_few:
            compared += f"; too few rows for the budget, counted with the reference: {', '.join(self.too_few)}"
        return tuple(filter(None, [noise, title, f"{r_squared}{p_value}", compared]))

    def table(self) -> list[tuple[str, ...]]:
        """Rows of text: coefficient, standard error and its two parts, p-value, interval, verdict."""
        tail = 0.5 * (1.0 - self.level)
        head = ("", "coef", "std err", "privacy", "sampling", "P>|t|", f"[{tail:.3g}", f"{1.0 - tail:.3g}]", "")
        if self.inference is None:
            rows = zip(self.names, self._with_constant(self.intercept, self.coefficients), strict=True)
            return [("", "coef", ""), *((name, number(value), NOISE_UNKNOWN) for name, value in rows)]
        parts = [self._errors(name) for name in ("standard_errors", "privacy_errors", "sampling_errors", "p_values")]
        columns = [self._with_constant(self.intercept, self.coefficients), *parts, *self._intervals(self.level).T]
        lines = []
        for name, verdict, *values in zip(self.names, self.verdict, *columns, strict=True):
            shown = [*map(number, values[:4]), _p_in_words(values[4]), *map(_limit, values[5:])]
            lines.append((name, *shown, verdict))
        return [head, *lines]

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.inference is None:
            about = f"No standard errors: {self.error_bound_note or 'the law of the noise is not known'}."
            return tuple(filter(None, [about, self.clipping.in_words, self.warning]))
        about = "Standard errors are of privacy's noise and of sampling (residuals of equal variance) together."
        if not self._is_identified:
            about = (
                "Noise hides the features from each other: no standard errors; intervals are those of the inverted test, and "
                f"infinite where the release bounds nothing. {self.help}"
            )
        elif self.method != "least squares":
            about += (
                " They, and the intervals, are of least squares without the penalty, which shrinks the coefficients."
            )
        if self._is_identified:
            about += self.inference.about_residuals
        law = self.inference.equations.noise.about
        return tuple(filter(None, [about, law, self.clipping.in_words, self._bound_in_words(), self.warning]))

    def columns(self) -> dict[str, list[Any]]:
        """Columns for frames: feature, coef, std_err, its two parts, p_value, lower, upper, identified."""
        found = self._intervals(self.level)
        values = {
            "coef": self._with_constant(self.intercept, self.coefficients),
            "std_err": self._errors("standard_errors"),
            "privacy_err": self._errors("privacy_errors"),
            "sampling_err": self._errors("sampling_errors"),
            "p_value": self._errors("p_values"),
            "lower": found[:, 0],
            "upper": found[:, 1],
        }
        return {"feature": list(self.names)} | {name: array.tolist() for name, array in values.items()}

    def to_dict(self) -> dict[str, Any]:
        """The fit as JSON holds it, by feature; what is not a finite number is None."""

        def by_feature(values: FloatArray) -> dict[str, float | None]:
            return dict(zip(self.features, finite_or_none(values), strict=True))

        bound, found = self.unit_ball_error_bound, self._intervals(self.level)
        return {
            "method": self.method,
            "target": self.target,
            "intercept": self.intercept,
            **self._intercept_to_dict(found),
            "coefficients": by_feature(self.coefficients),
            "standard_errors": by_feature(self.standard_errors),
            "privacy_errors": by_feature(self.privacy_errors),
            "sampling_errors": by_feature(self.sampling_errors),
            "p_values": by_feature(self.p_values),
            "lower": by_feature(self._slopes(found[:, 0])),
            "upper": by_feature(self._slopes(found[:, 1])),
            "identified": self._is_identified,
            "is_noise": self.is_noise,
            "p_value_of_fit": number_or_none(self.p_value_of_fit),
            "references": dict(self.references),
            "too_few": list(self.too_few),
            "alpha": self.alpha,
            "r_squared": number_or_none(self.r_squared),
            "r_squared_interval": list(self.r_squared_interval()),
            "released_r_squared": self.released_r_squared,
            "n_rows": self.n_rows,
            "clipping": self.clipping.in_words,
            "unit_ball_error_bound": None if bound is None else number_or_none(bound),
            "level": self.level,
            "error_bound_note": self.error_bound_note,
            "warning": self.warning,
        }

    def _intercept_to_dict(self, limits: FloatArray) -> dict[str, float | None]:
        if not self.with_intercept:
            return {}
        lower, upper = limits[0]
        errors = {name: float(self._errors(f"{name}s")[0]) for name in ("standard_error", "p_value")}
        found = errors | {"lower": float(lower), "upper": float(upper)}
        return {f"intercept_{name}": number_or_none(value) for name, value in found.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The features, after the intercept where there is one."""
        return (CONSTANT, *self.features) if self.with_intercept else self.features

    def _compared(self) -> Mapping[str, str]:
        """The references of columns of which some other level is left."""
        left = {feature.rpartition("=")[0] for feature in self.features}
        return {name: level for name, level in self.references.items() if level.rpartition("=")[0] in left}

    @property
    def _is_identified(self) -> bool:
        return self.inference is not None and self.inference.identified

    def _errors(self, name: str) -> FloatArray:
        """One of the inference's arrays, the intercept first; NaN where there is none."""
        found: FloatArray = (
            np.full(len(self.names), np.nan) if self.inference is None else getattr(self.inference, name)
        )
        return found

    def _intervals(self, level: float) -> FloatArray:
        if self.inference is None:
            return np.tile([-math.inf, math.inf], (len(self.names), 1))
        return self.inference.intervals(level)

    def _slopes(self, values: Any) -> Any:
        return values[1:] if self.with_intercept else values

    def _with_constant(self, constant: float, values: FloatArray) -> FloatArray:
        return np.concatenate([[constant], values]) if self.with_intercept else values

    @property
    def verdict(self) -> tuple[str, ...]:
        """What is said of each of ``names``: empty where it stands out, else what it cannot be told from; noise unknown."""
        if self.inference is None:
            return (NOISE_UNKNOWN,) * len(self.names)
        errors = [self._errors(name).tolist() for name in ("standard_errors", "privacy_errors", "p_values")]
        return tuple(self._verdict(*each) for each in zip(self.names, *errors, strict=True))

    def _verdict(self, name: str, std_err: float, privacy: float, p_value: float) -> str:
        if name == CONSTANT or p_value < 1.0 - self.level:
            return ""
        noisy = not self._is_identified or privacy > SHARE_OF_PRIVACY * std_err
        return NOT_DISTINGUISHABLE if noisy else NO_EFFECT

    def _bound_in_words(self) -> str:
        """Lemma 1's bound, where it says something of some coefficient."""
        bound = self.unit_ball_error_bound
        size = float(np.linalg.norm(self.unit_ball_coefficients))
        if bound is None or not bound < size:
            return ""
        return (
            f"Privacy noise moved the encoded coefficients (norm {size:.3g}) by at most {bound:.3g}, with confidence "
            f"{self.level:.0%} ({self.error_bound_note})."
        )


def _p_in_words(value: float) -> str:
    return "–" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def _limit(value: float) -> str:
    return ("−∞" if value < 0 else "∞") if math.isinf(value) else number(value)
