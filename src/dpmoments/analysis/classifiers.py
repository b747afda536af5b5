"""Classifiers from released moments: linear discriminants, and naive Bayes of groups."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.analysis.answers import NOISE, Answer, Column, confidence_level, in_floating_point, number, rounded
from dpmoments.analysis.confidence import (
    NOT_CLEAR_NOISE,
    NOT_ESTIMABLE,
    NOT_ESTIMABLE_ROWS,
    decided,
    deviations_for,
    error_rate,
    estimable,
    format_probability,
    not_clear,
)
from dpmoments.analysis.description import describe
from dpmoments.analysis.effects import discriminant_ratios
from dpmoments.analysis.estimate import Estimates, MomentErrors, estimates_of_errors
from dpmoments.analysis.frames import named_values
from dpmoments.analysis.functionals import (
    SINGULAR,
    LocalMoments,
    Standardized,
    bilinear,
    describe_law,
    gaps_of,
    joint_gaps_of,
    without_redundant_levels,
)
from dpmoments.analysis.group_means import GroupSums, Levels, repaired_means
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regression_results import ExplainedVariance
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Moments, cautions_by_code, columns_with_indices, needs_mean, unknown_feature
from dpmoments.base.errors import InputValueError, out_of_range, visible
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, directions_of, first_largest, leading_positive
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level, grouping_column, levels_of
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.schema import Schema

_SHRINKAGE = 0.1
"""Fraction of the noise edge added to the within-group covariance.

Measured: ``docs/evidence/regression-coverage.md``.
"""


_CLEAR_OF_NOISE = 2.0
"""Least within-group variance, in noise edges, at which errors to first order are stated."""
_WIDENING = 1.5
"""Relative growth of an error that is stated at the least accepted within-group variance.

Measured: ``docs/derivations/regression-inference.md``.
"""
_MAX_BLOCK = 4_000_000
"""Max number of weights computed at a time."""


@dataclass(frozen=True, eq=False)
class CoefficientErrors:
    """Errors of discriminant coefficients W⁻¹(m_g − m), in encoded units about the mean.

    A coefficient moves by W⁻¹(d(m_g − m) − dW β_g) to first order. Σ(x − m_h)(x − m_h)ᵀ = nW, the group sums and the counts are
    functionals of the released moments, and so is that; the sampling part is for normal rows within groups. Errors are stated
    only if W is clear of noise, which is more often so if noise has made W larger and the coefficients smaller. So what the
    noise on the smallest eigenvalue of W adds counts 1 + 1.5 exp(−t) times, t its distance from the least accepted one in SDs.
    """

    moments: LocalMoments
    indices: IntegerArray  # of the constant, the levels and the features in `moments`
    groups: FloatArray  # (k, m), indicators of the groups over `indices`
    shifts: FloatArray  # (k, d), m_g − m
    within: FloatArray  # with `inverse`: (d, d): W, and the inverse of W with what was added to its diagonal
    inverse: FloatArray
    priors: FloatArray  # (k,)
    least: float  # least eigenvalue of W at which errors are stated
    # (1 + d,) and (1 + d, 1 + d), those of the class and the features in `moments`; None without missing values
    gaps: FloatArray | None = None
    joint_gaps: FloatArray | None = None

    @cached_property
    def privacy(self) -> FloatArray:
        """Standard deviations of the privacy noise on the coefficients, shape (k, d)."""
        d, size = len(self.within), len(self.indices)
        step = max(1, _MAX_BLOCK // size**2)

        # the least eigenvalue's noise: the factor of what it adds, and its weights in SDs
        eigenvalues, vectors = np.linalg.eigh(self.within)
        direction = vectors[:, 0]
        smallest = self._weights_within(direction[None, :], direction)
        noise = math.sqrt(float(self.moments.variances(self.indices[None, :], smallest)[0]))
        beyond = (float(eigenvalues[0]) - self.least) * self.moments.n_rows
        widening, smallest = 1.0 + _WIDENING * math.exp(-beyond / noise), smallest / noise

        result = np.full(self.shifts.shape, np.nan)
        for group in np.flatnonzero(self.priors > 0.0).tolist():
            for start in range(0, d, step):
                weights = self._weights(group, self.inverse[start : start + step])
                columns = np.broadcast_to(self.indices, (len(weights), size))
                own, both = (self.moments.variances(columns, each) for each in (weights, weights + smallest))
                shared = (both - own - 1.0) / 2.0
                result[group, start : start + step] = own + (widening**2 - 1.0) * shared**2
        return np.asarray(np.sqrt(np.maximum(result, 0.0)))

    def _weights(self, group: int, rows: FloatArray) -> FloatArray:
        """Return the gradients of a group's coefficients, for some rows of the inverse."""
        n, shifts, count = self.moments.n_rows, self.shifts, self.moments.n_rows * self.priors[group]
        beta = self.inverse @ shifts[group]
        one, lines = np.eye(len(self.indices))[0], self._lines(rows)
        counts = self.groups[group]
        of_means = bilinear(counts, lines) - (rows @ shifts[group])[:, None, None] * bilinear(counts, one)
        of_count = (rows @ self.within @ beta)[:, None, None] * np.outer(one, one)
        within = self._weights_within(rows, beta)
        return np.asarray(of_means / count - (bilinear(lines, one) + within - of_count) / n)

    def _weights_within(self, rows: FloatArray, beta: FloatArray) -> FloatArray:
        """Return the gradients of n rᵀWβ for rows r."""
        one, lines, line = np.eye(len(self.indices))[0], self._lines(rows), self._lines(beta)
        own, along = rows @ self.shifts.T, self.shifts @ beta
        result = bilinear(lines, line)
        for other, indicator in enumerate(self.groups):
            result = result - own[:, other, None, None] * bilinear(indicator, line - along[other] * one)
            result = result - along[other] * bilinear(indicator, lines)
        return result

    def _lines(self, rows: FloatArray) -> FloatArray:
        """Return weights on the features as weights on the constant, the levels and the features."""
        lead = len(self.indices) - len(self.within)
        return np.concatenate([np.zeros((*rows.shape[:-1], lead)), rows], axis=-1)

    @cached_property
    def sampling(self) -> FloatArray:
        """Sampling errors of the coefficients, shape (k, d)."""
        beta = self.shifts @ self.inverse
        own = np.einsum("ij,jk,ik->i", self.inverse, self.within, self.inverse)
        with np.errstate(divide="ignore"):
            linear = own * (1.0 / self.priors - 1.0)[:, None]
        along = np.einsum("gj,jk,gk->g", beta, self.within, beta)
        crossed = beta @ self.within @ self.inverse
        apart = self.priors @ (self.shifts @ self.inverse) ** 2
        result = (linear + own * along[:, None] + crossed**2 + apart) / self.moments.independent_rows
        if self.gaps is not None:
            for group in np.flatnonzero(self.priors > 0.0).tolist():
                result[group] += self._of_gaps(self._weights(group, self.inverse), self.gaps)
        return np.where(self.priors[:, None] > 0.0, np.sqrt(result), np.nan)

    def _of_gaps(self, weights: FloatArray, gaps: FloatArray) -> FloatArray:
        """Return what missing values add to sampling variances, for gradients of shape (P, m, m)."""
        # docs/evidence/derivations/missing-values.md, section 5, for normal rows within groups
        d, size = len(self.within), len(self.indices)
        lead, priors, within, means = size - d, self.priors, self.within, self.shifts
        levels = np.linalg.lstsq(self.groups[:, 1:lead], np.eye(len(priors)) - self.groups[:, :1], rcond=None)[0].T
        centered = np.eye(size)
        centered[1:lead, 0] = priors @ levels
        about = centered.T @ weights @ centered
        levels = levels - priors @ levels
        of_class = 2.0 * levels @ about[:, 1:lead, lead:]  # (P, k, d), factors of the features by group
        constant = 2.0 * about[:, 0, 1:lead] @ levels.T
        constant = constant + np.einsum("hl,plm,hm->ph", levels, about[:, 1:lead, 1:lead], levels)
        pairs = 2.0 * about[:, lead:, lead:]
        lines = pairs * (1.0 - np.eye(d) / 2.0)  # (P, d, d), of the others that a feature is multiplied with
        own = np.diag(within)

        def spread(mean: FloatArray, variance: FloatArray) -> FloatArray:
            """Return the variance over groups, the second axis, of terms with these moments in each."""
            middle = np.einsum("ph...,h->p...", mean, priors)
            return np.asarray(np.einsum("ph...,h->p...", variance + mean**2, priors) - middle**2)

        result = gaps[0] * spread(
            constant + np.einsum("phj,hj->ph", of_class, means), np.einsum("phj,jk,phk->ph", of_class, within, of_class)
        )
        factor = 2.0 * about[:, None, 0, lead:] + of_class + np.einsum("pjk,hk->phj", lines, means)
        crossed = np.einsum("pjk,kj->pj", lines, within)[:, None]
        along = np.einsum("pjk,kl,pjl->pj", lines, within, lines)[:, None]
        variance = means**2 * along + factor**2 * own + 2.0 * means * factor * crossed + own * along + crossed**2
        result = result + spread(means * factor + crossed, variance) @ gaps[1:]
        if self.joint_gaps is not None:
            both = np.maximum(self.joint_gaps, 0.0)
            result = result + spread(of_class * means, of_class**2 * own) @ both[0, 1:]
            for j, k in np.argwhere(np.triu(both[1:, 1:], 1)):
                product = means[:, j] * means[:, k] + within[j, k]
                square = means[:, j] ** 2 * own[k] + means[:, k] ** 2 * own[j] + own[j] * own[k] + within[j, k] ** 2
                square = square + 2.0 * means[:, j] * means[:, k] * within[j, k]
                of_pair = pairs[:, j, k, None]
                result = result + both[1 + j, 1 + k] * spread(of_pair * product, of_pair**2 * square)
        return np.asarray(self.moments.rows_per_unit * self.moments.n_rows * result)


class Classifier(Answer):
    """A classifier of rows; a class of prior 0 is never predicted."""

    by: str
    classes: tuple[Any, ...]
    priors: FloatArray
    known_share: float
    feature_names: tuple[str, ...]
    schema: Schema

    @abstractmethod
    def _scores(self, rows: FloatArray) -> FloatArray:
        """Return the scores of rows, shape (m, k), of any size for classes of prior 0."""

    @property
    def shares(self) -> FloatArray:
        """Shares of the classes among all rows; 0 for classes with noise-dominated counts."""
        return self.priors * self.known_share

    @property
    def _share_cells(self) -> list[str]:
        return [f"{share:.1%}" if share > 0.0 else NOISE for share in self.shares]

    def _describe_lost(self, names: Sequence[str]) -> str:
        """Return which classes have a number of rows that noise hides; empty without any."""
        if not self.known_share:
            return f"{', '.join(names)}: number of rows {NOT_CLEAR_NOISE}, and equal shares are assumed"
        lost = ", ".join(name for name, share in zip(names, self.priors, strict=True) if share <= 0.0)
        return f"{lost}: number of rows {NOT_CLEAR_NOISE}, never predicted" if lost else ""

    def decision_function(self, frame: Any) -> FloatArray:
        """Return scores of a frame's rows, read by column name, shape (m, k).

        NaN if a value is missing.

        Raises
        ------
        TypeError
            If ``frame`` is not a frame.
        ValueError
            If a column is absent, or holds undeclared levels.
        """
        rows = named_values(self.schema, frame, self.feature_names)
        scores = np.where(self.priors > 0.0, self._scores(rows), -math.inf)
        scores[np.isnan(rows).any(axis=1)] = np.nan
        return scores

    def predict(self, frame: Any) -> Any:
        """Predict the most likely class of each row of a frame, shape (m,).

        Raises
        ------
        ValueError
            As :meth:`decision_function` does, and if a value is missing.
        """
        return most_likely(self.classes, self.decision_function(frame))


@dataclass(frozen=True, eq=False, repr=False)
class LinearDiscriminant(Classifier):
    """A linear discriminant as in scikit-learn, one score per class.

    Attributes
    ----------
    by : str
    classes : tuple of str or int or bool
        The levels, as a frame holds them.
    class_names : tuple of str
        ``region=north``, ….
    priors : ndarray of shape (k,)
        Shares that scores use: 0 for classes with noise-dominated counts, which are never predicted. Equal ones if all are.
    known_share : float
        Share of the rows in the other classes, 0 without any.
    feature_names : tuple of str
    means : ndarray of shape (k, d)
        Of every class, in the table's units, within the bounds.
    coef : ndarray of shape (k, d)
    intercept : ndarray of shape (k,)
        Scores are coef · x + intercept, x in the table's units; −∞ for a class of prior 0.
    shrinkage : float
        What was added to the diagonal of the within-group covariance, in units in which the noise is the same in all directions
        (the encoding's).
    wilks : float
        Wilks' lambda, the share of the generalized variance that is within groups; of two groups 1 − R² of the regression of
        one on the features. Groups whose number of rows noise hides count with the largest. NaN where noise leaves no number.
    wilks_interval : tuple of float
        Its interval, noise and sampling together; NaN without two groups.
    p_value : float
        Of no difference between groups in any feature, by Rao's F (1951) of scores over their noise and sampling error.
    reason : str
        Verdict where the groups do not differ clearly: by the larger part of the error, noise or sampling.
    level : float
    schema : Schema
        Of the frames that :meth:`predict` reads.
    errors : CoefficientErrors or None
        None if noise is unknown, or too large within the groups.
    warning : str
    release : Moments
    """

    by: str
    classes: tuple[Any, ...]
    class_names: tuple[str, ...]
    priors: FloatArray
    known_share: float
    feature_names: tuple[str, ...]
    means: FloatArray
    coef: FloatArray
    intercept: FloatArray
    shrinkage: float
    wilks: float
    wilks_interval: tuple[float, float]
    p_value: float
    reason: str
    level: float
    schema: Schema
    errors: CoefficientErrors | None
    warning: str
    release: Moments

    facts = (
        *("by", "classes", "priors", "shares", "feature_names", "means", "coef", "intercept", "shrinkage"),
        *("privacy_errors", "sampling_errors"),
        *("wilks", "wilks_interval", "p_value", "verdict", "level", "warning"),
    )

    @property
    def privacy_errors(self) -> FloatArray:
        """SDs of the privacy noise on ``coef``, shape (k, d), to first order; NaN if not known."""
        return np.full(self.coef.shape, np.nan) if self.errors is None else self.errors.privacy / self._scale

    @property
    def sampling_errors(self) -> FloatArray:
        """Sampling errors of ``coef`` for normal rows within classes, shape (k, d), or NaN."""
        return np.full(self.coef.shape, np.nan) if self.errors is None else self.errors.sampling / self._scale

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors (total) of ``coef``, shape (k, d); NaN if not known."""
        return np.hypot(self.privacy_errors, self.sampling_errors)

    @property
    def _scale(self) -> FloatArray:
        """Original units in one encoded unit of each feature."""
        assert self.errors is not None
        features = self.errors.indices[-len(self.feature_names) :] - 1
        return np.asarray(self.errors.moments.unit[features])

    @in_floating_point
    def odds_ratios(self, level: float | None = None) -> Estimates:
        """Return the odds ratios of the second of two classes, per unit of each feature.

        Approximately those of a logistic regression: exactly, if features are normal with the same covariance in both classes.

        Raises
        ------
        ValueError
            If there are not two classes, or the level is below 0.5.
        """
        if len(self.classes) != 2:
            raise InputValueError(
                f"odds ratios are of two classes, and '{self.by}' has {len(self.classes)}: a Boolean has two"
            )
        level = self.level if level is None else confidence_level(level)
        names = self.release.feature_names
        group = names.index(self.by if self.by in names else self.class_names[1])
        return discriminant_ratios(self.release, group, [names.index(name) for name in self.feature_names], level)

    def _scores(self, rows: FloatArray) -> FloatArray:
        return rows @ self.coef.T + np.where(self.priors > 0.0, self.intercept, 0.0)

    @property
    def axes(self) -> FloatArray:
        """Directions in which class means differ most, shape (r, d), of variance 1 within classes.

        r ≤ k − 1.

        v = W⁻¹Sᵀ√P a/√λ, S the class means less their mean, P the priors, a and λ of √P S W⁻¹ Sᵀ √P (Fisher 1936; Rao 1948).
        """
        root = np.sqrt(self.priors)
        towards = (self.coef - self.priors @ self.coef) * root[:, None]
        apart = (self.means - self.priors @ self.means) * root[:, None]
        between = towards @ apart.T
        eigenvalues, directions = directions_of((between + between.T) / 2.0)
        kept = eigenvalues > SINGULAR * max(float(eigenvalues[0]), 0.0)
        kept[len(kept) - 1 :] = False  # k deviations from their mean span k − 1 directions
        return leading_positive((directions[kept] @ towards) / np.sqrt(eigenvalues[kept])[:, None])

    def transform(self, frame: Any) -> FloatArray:
        """Return scores of rows on :attr:`axes`, about the mean of the classes, (m, r).

        NaN if missing.

        Raises
        ------
        TypeError, ValueError
            As :meth:`decision_function`.
        """
        rows = named_values(self.schema, frame, self.feature_names)
        return (rows - self.priors @ self.means) @ self.axes.T

    @property
    def verdict(self) -> str:
        """Verdict on a difference of the groups in some feature."""
        return decided(self.p_value, "groups differ" if self.p_value < 1.0 - self.level else self.reason)

    @property
    def heading(self) -> tuple[str, ...]:
        lower, upper = self.wilks_interval
        shown = "" if math.isnan(self.wilks) else f" = {rounded(self.wilks, max((upper - lower) / 4.0, 1e-3))}"
        within = f"{shown}, {self.level:.0%} interval {lower:.3f} to {upper:.3f}"
        within = within if estimable(np.array(lower), np.array(upper), 0.0, 1.0) else f" is {NOT_ESTIMABLE}"
        within = "" if math.isnan(lower) else f"Wilks' lambda{within}; "
        untested = math.isnan(self.p_value) or self.verdict in (NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS)
        tested = "" if untested else f" ({within}{format_probability(self.p_value)})"
        return (f"linear discriminant of {self.by}: between-group differences: {self.verdict}{tested}",)

    def table(self) -> list[tuple[str, ...]]:
        """Return share, intercept and coefficients, one class per column."""
        lines = [
            (
                name,
                *(
                    number(value) if math.isnan(error) else f"{rounded(value, error)} ± {rounded(error, error)}"
                    for value, error in zip(column.tolist(), errors.tolist(), strict=True)
                ),
            )
            for name, column, errors in zip(self.feature_names, self.coef.T, self.standard_errors.T, strict=True)
        ]
        return [
            ("", *self.class_names),
            ("share", *self._share_cells),
            ("(intercept)", *map(number, self.intercept)),
            *lines,
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        shrunk = f"; of coefficients with a shrinkage of {number(self.shrinkage)}" if self.shrinkage > 0.0 else ""
        about = f"±: standard error of noise and sampling together, for normal rows within the groups{shrunk}."
        if self.errors is None:
            about = "Noise is too large within the groups for errors of the coefficients. Use fewer columns."
        if math.isnan(self.p_value):
            about = describe_law(None)
        return self._describe_lost(self.class_names), about, self.warning

    def _columns(self) -> list[Column]:
        errors, names = self.standard_errors, self.feature_names
        return [
            Column("class", self.class_names, label=True),
            Column("prior", self.priors),
            Column("intercept", self.intercept),
            *(Column(f"coef {name}", self.coef[:, index]) for index, name in enumerate(names)),
            *(Column(f"std_err {name}", errors[:, index]) for index, name in enumerate(names)),
        ]


def most_likely(classes: Sequence[Any] | npt.NDArray[Any], scores: FloatArray) -> Any:
    """Return the class with the largest score of each row, shape (m,); raise ValueError for NaN."""
    if np.isnan(scores).any():
        raise InputValueError("rows with a missing value have no prediction: fill the values, or leave those rows out")
    return np.array(classes)[first_largest(scores)]


@in_floating_point
def lda(
    release: Moments,
    by: str,
    columns: Sequence[str] | None = None,
    *,
    shrinkage: float | Literal["auto"] = "auto",
    level: float = 0.95,
) -> LinearDiscriminant:
    """Fit linear discriminant analysis of the groups of a column: free of privacy cost.

    Parameters
    ----------
    release : Moments
    by : str
        A categorical or Boolean column: the classes.
    columns : sequence of str, optional
        Columns or features to separate the classes by; default: all others, less the most frequent level of a categorical whose
        levels add up to one.
    shrinkage : float or "auto"
        Added to the diagonal of the within-group covariance in encoded units, in which the noise is the same in all
        directions; "auto": a tenth of the noise edge.
    level : float
        Groups are said to differ if the p-value is below 1 − level.

    Returns
    -------
    LinearDiscriminant
        With ``predict`` and ``decision_function``.

    Raises
    ------
    ValueError
        If a name is unknown, ``by`` holds numbers or is among the columns, the shrinkage is negative, the level is below 0.5,
        nothing varies, or no mean was released.

    Notes
    -----
    Scores are xᵀW⁻¹m_g − m_gᵀW⁻¹m_g/2 + ln p_g, W the repaired covariance less Σ p_g(m_g − m)(m_g − m)ᵀ (Fisher 1936).

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.choice(["a", "b"], 20_000)
    >>> table = pa.table({"kind": kind, "size": rng.normal(np.where(kind == "a", 2.0, 6.0))})
    >>> schema = dpm.Schema(dpm.Categorical("kind", ["a", "b"]), dpm.Numeric("size", 0, 10))
    >>> dpm.release(table, schema, epsilon=1.0, insecure_seed=0).lda("kind").predict({"size": [1.0, 8.0]})
    array(['a', 'b'], dtype='<U1')
    """
    level = confidence_level(level)
    require_shrinkage(shrinkage)
    if release.noisy_sum is None:
        raise needs_mean("a discriminant")
    levels = Levels.of(release, by)
    chosen = without_redundant_levels(release, columns)
    if columns is None:
        chosen = [feature for feature in chosen if feature not in levels.features]
    elif among := [release.feature_names[feature] for feature in chosen if feature in levels.features]:
        raise InputValueError(f"'{among[0]}' is of the column '{by}' that makes the classes: name other columns")
    standardized = Standardized.of(release, chosen, by_deviation=False)
    features, scale = standardized.features, standardized.scale
    sums = GroupSums.of(release, int(features[0]), levels)
    priors, known_share = _priors(release, levels, sums)
    means = repaired_means(release, levels, features.tolist()).T
    shift = np.where(priors[:, None] > 0.0, means - release.mean[features], 0.0) / scale
    within = standardized.covariance - (shift.T * priors) @ shift
    edge = float(np.nan_to_num(standardized.edge.max(), nan=0.0))
    added = _SHRINKAGE * edge if shrinkage == "auto" else float(shrinkage)
    eigenvalues, vectors = np.linalg.eigh((within + within.T) / 2.0)
    kept = np.maximum(eigenvalues, SINGULAR * float(eigenvalues[-1])) + added
    errors = None
    least = _CLEAR_OF_NOISE * edge
    moments = LocalMoments.of(release, levels.features)
    indices = np.concatenate([[0], np.array(levels.features) + 1, features + 1])
    groups = np.pad(levels.weights, ((0, 0), (0, len(features))))
    if release.noise is not None and float(eigenvalues[0]) > least:
        used, some_missing = [levels.features[0], *features.tolist()], release.present is not None
        errors = CoefficientErrors(
            moments,
            indices,
            groups,
            shift,
            within,
            (vectors / kept) @ vectors.T,
            priors,
            least,
            gaps_of(release)[used] if some_missing else None,
            joint_gaps_of(release)[np.ix_(used, used)] if some_missing else None,
        )
    directions = ((shift @ vectors) / kept) @ vectors.T
    middle = np.einsum("gj,gj->g", directions, shift) / 2.0
    present = priors > 0.0
    intercept = np.full(len(priors), -np.inf)
    coef = directions / scale
    intercept[present] = np.log(priors[present]) - middle[present] - coef[present] @ standardized.mean
    p_value, reason = _rao(moments, indices, groups, standardized, sums.count_noise)
    known = dict(zip(levels.features, priors[-len(levels.features) :] > 0.0, strict=True))
    compared = [level for level in without_redundant_levels(release, [by]) if known[level]]
    wilks, (lower, upper) = _wilks(release, compared, features.tolist(), level)
    return LinearDiscriminant(
        by=by,
        classes=levels_of(grouping_column(release.schema, by)),
        class_names=levels.names,
        priors=priors,
        known_share=known_share,
        feature_names=tuple(release.feature_names[feature] for feature in features),
        means=standardized.mean + shift * scale,
        coef=coef,
        intercept=intercept,
        shrinkage=added,
        wilks=wilks,
        wilks_interval=(lower, upper if p_value < error_rate(level) else max(upper, 1.0)),
        p_value=p_value,
        reason=reason,
        level=level,
        schema=release.schema,
        errors=errors,
        warning=cautions_by_code(release),
        release=release,
    )


def _wilks(
    release: Moments, levels: Sequence[int], features: Sequence[int], level: float
) -> tuple[float, tuple[float, float]]:
    """Return Wilks' lambda of levels, compared with the rows of none, and its interval."""
    if not levels:
        return math.nan, (math.nan, math.nan)
    k, (one, many) = len(levels), sorted([levels, features], key=len)
    equations = NormalEquations.of(release, Regressors(one[0], (*one[1:], *many), True, {}))
    if equations is None or not equations.identified:
        return math.nan, (0.0, 1.0)
    if len(one) == 1:  # 1 − R² of a regression
        explained = ExplainedVariance.of_population(equations)
        lower, upper = explained.interval(level)
        return 1.0 - explained.share if explained.is_known(level) else math.nan, (1.0 - upper, 1.0 - lower)

    def unexplained(_: FloatArray, covariance: FloatArray) -> FloatArray:
        parts = covariance, covariance[:k, :k], covariance[k:, k:]
        signs, (both, one, other) = np.transpose([np.linalg.slogdet(part) for part in parts])
        return np.array([both - one - other if (signs > 0.0).all() else np.nan])

    errors = MomentErrors.of(release, [*levels, *features])
    value, *gradients = errors.gradients(unexplained)
    privacy, sampling = map(np.diag, errors.errors(*gradients))
    found = estimates_of_errors(
        ["lambda"], value, privacy, sampling, release.noise, level, math.inf, "log", features=()
    )
    known = estimable(found.privacy_lower, found.privacy_upper, 0.0, 1.0) & (found.privacy_upper < 1.0)
    lower, upper = np.clip([found.lower[0], found.upper[0]], 0.0, 1.0).tolist()
    return float(np.where(known, found.value, np.nan)[0]), (lower, upper)


def _rao(
    moments: LocalMoments,
    indices: IntegerArray,
    groups: FloatArray,
    standardized: Standardized,
    count_noise: FloatArray,
) -> tuple[float, str]:
    """Test that no group differs: the p-value, and the larger part of the error."""
    # The scores S_gj = Σ x_j over group g, x about the mean, have the sampling covariance (diag(n) − n nᵀ/N) ⊗ T. In the
    # eigenvectors of both, where it is the identity, each score is divided by its deviation of sampling and noise; the
    # noise on two of them is uncorrelated where it is the same in all directions of encoded rows. Without noise the
    # squares of the singular values over N are those of the canonical correlations, and what they leave multiplies to lambda.
    released, n, d = moments.moments[np.ix_(indices, indices)], moments.n_rows, len(standardized.features)
    counts = np.maximum(groups @ released[:, 0], 0.0)
    sizes, vectors = np.linalg.eigh(np.diag(counts) - np.outer(counts, counts) / n)
    classes = (vectors[:, sizes > 0.5].T @ groups) / np.sqrt(sizes[sizes > 0.5])[:, None]
    classes[:, 0] -= vectors[:, sizes > 0.5].T @ counts / n / np.sqrt(sizes[sizes > 0.5])
    gaps = moments.gaps[indices[1:] - 1]
    total = standardized.covariance + np.diag(gaps[-d:] * np.diag(standardized.covariance))
    spread, directions = directions_of(total * (1.0 + gaps[0]))
    kept = spread > SINGULAR * float(spread[0])
    lines = np.pad(directions[kept] / np.sqrt(spread[kept])[:, None], ((0, 0), (len(indices) - d, 0)))
    q, p, rows = len(classes), len(lines), moments.independent_rows
    if moments.law is None:
        return math.nan, NOT_CLEAR_NOISE
    if not q:  # one group has all rows: is it noise that hides those of others, of half a row or more?
        return 1.0, not_clear(float(count_noise.max()), 0.5, can_be_estimated=False)
    step = max(1, _MAX_BLOCK // len(indices) ** 2)
    noise = np.empty((q, p))
    for row, combined in enumerate(classes):
        for start in range(0, p, step):
            weights = bilinear(combined, lines[start : start + step])
            noise[row, start : start + step] = moments.variances(np.tile(indices, (len(weights), 1)), weights)
    variance = noise + moments.rows_per_unit
    share = np.array(np.mean(noise / variance))
    tails = [deviations_for(0.95, law, share, 1.0 - share) for law in (None, moments.law)]
    scores = classes @ released @ lines.T / np.sqrt(variance) * (tails[0] / tails[1])
    explained = np.minimum(np.linalg.svd(scores, compute_uv=False) ** 2 / rows, 1.0 - 1e-15)
    logarithm = float(np.log1p(-explained).sum())
    both = p**2 + q**2 - 5
    root = math.sqrt((p**2 * q**2 - 4.0) / both) if both > 0 else 1.0
    degrees = (rows - q - 1.0 - (p - q + 1.0) / 2.0) * root - (p * q - 2.0) / 2.0
    f = math.expm1(-logarithm / root) * degrees / (p * q)
    p_value = float(scipy.special.fdtrc(p * q, degrees, f)) if degrees > 0.0 else 1.0
    return p_value, not_clear(float(noise.mean()), float(moments.rows_per_unit))


def require_shrinkage(shrinkage: float | str) -> None:
    """Raise ValueError unless it is "auto", or a number from 0."""
    if shrinkage != "auto" and not (isinstance(shrinkage, int | float) and math.isfinite(shrinkage) and shrinkage >= 0):
        raise out_of_range("shrinkage", shrinkage, "'auto', 0 or a positive number")


def _priors(release: Moments, levels: Levels, sums: GroupSums) -> tuple[FloatArray, float]:
    """Return repaired shares of classes, and what is left of all rows."""
    # They are 0 for counts within two SDs of their noise, and over what is left; equal ones if nothing is.
    shares = np.clip(levels.shares(release.mean), 0.0, 1.0)
    lost = sums.counts <= np.maximum(2.0 * np.nan_to_num(sums.count_noise, nan=0.0), 0.5)
    kept = np.where(lost, 0.0, shares / max(float(shares.sum()), np.finfo(float).tiny))
    total = float(kept.sum())
    return (kept / total if total > 0.0 else np.full(len(kept), 1.0 / len(kept))), min(total, 1.0)


_LOST_COUNT = 2.0
"""Noise SDs of a group's count below which the group is never predicted."""


@dataclass(frozen=True, eq=False, repr=False)
class NaiveBayes(Classifier):
    """A naive Bayes classifier as in scikit-learn, with scores ln(prior · density).

    Numbers are normal in each class; Booleans and levels have shares.

    Attributes
    ----------
    by : str
    classes : tuple of str or int or bool
        The groups.
    priors : ndarray of shape (k,)
        Shares that scores use: 0 for classes with noise-dominated counts, which are never predicted. Equal ones if all are.
    known_share : float
        Share of the rows in the other classes, 0 without any.
    feature_names : tuple of str
    means : ndarray of shape (k, d)
        Of every class, in original units; shares of Booleans and levels, none of them 0 or 1.
    variances : ndarray of shape (k, d)
        Of every class, plus the variance of the noise on its mean; NaN for Booleans and levels.
    mean_noise : ndarray of shape (k, d)
        Noise SDs of the means as released; 0 if the noise distribution is not known.
    mean_is_noise : ndarray of bool, shape (k, d)
        True for means of which nothing is known but the public bounds.
    is_share : ndarray of shape (d,)
        True for Booleans and levels.
    schema : Schema
        Of the frames that :meth:`predict` reads.
    warning : str
    """

    by: str
    classes: tuple[Level, ...]
    priors: FloatArray
    known_share: float
    feature_names: tuple[str, ...]
    means: FloatArray
    variances: FloatArray
    mean_noise: FloatArray
    mean_is_noise: BoolArray
    is_share: BoolArray
    is_level: BoolArray
    schema: Schema
    warning: str = ""

    facts = ("by", "classes", "priors", "shares", "feature_names", "means", "variances", "warning")

    def _scores(self, rows: FloatArray) -> FloatArray:
        numbers, levels, flags = ~self.is_share, self.is_level, self.is_share & ~self.is_level
        scores = np.full((len(rows), len(self.classes)), -math.inf)
        for index in np.flatnonzero(self.priors > 0.0):
            mean, variance = self.means[index], self.variances[index]
            away = (rows[:, numbers] - mean[numbers]) ** 2 / variance[numbers] + np.log(variance[numbers])
            shares = rows[:, levels] @ np.log(mean[levels])
            true = rows[:, flags] @ np.log(mean[flags]) + (1.0 - rows[:, flags]) @ np.log1p(-mean[flags])
            scores[:, index] = math.log(self.priors[index]) - 0.5 * away.sum(axis=1) + shares + true
        return scores

    def predict_proba(self, frame: Any) -> FloatArray:
        """Return the probabilities of the classes, shape (m, k); NaN if a value is missing."""
        scores = self.decision_function(frame)
        result: FloatArray = scipy.special.softmax(scores, axis=1)
        return result

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"naive Bayes of {self.by}: mean ± standard deviation of each feature in each class, or its share",)

    def table(self) -> list[tuple[str, ...]]:
        """Return shares of classes, and means and SDs or shares of features, a class per column."""
        lines = list[tuple[str, ...]]()
        for index, (name, share) in enumerate(zip(self.feature_names, self.is_share, strict=True)):
            cells = [name]
            for of_class in range(len(self.classes)):
                mean, noise = float(self.means[of_class, index]), float(self.mean_noise[of_class, index])
                if self.mean_is_noise[of_class, index]:
                    cells.append("noise")
                elif share:
                    cells.append(f"{rounded(100.0 * mean, 100.0 * noise)}%")
                else:
                    deviation = math.sqrt(self.variances[of_class, index])
                    cells.append(f"{rounded(mean, noise)} ± {rounded(deviation, noise)}")
            lines.append(tuple(cells))
        return [("", *(f"{self.by}={level}" for level in self.classes)), ("share", *self._share_cells), *lines]

    @property
    def remarks(self) -> tuple[str, ...]:
        names = [f"{self.by}={level}" for level in self.classes]
        return self._describe_lost(names), self.warning

    def _columns(self) -> list[Column]:
        return [
            Column("class", [str(level) for level in self.classes], label=True),
            Column("prior", self.priors),
            *(Column(f"mean {name}", self.means[:, index]) for index, name in enumerate(self.feature_names)),
            *(
                Column(f"variance {name}", self.variances[:, index])
                for index, name in enumerate(self.feature_names)
                if not self.is_share[index]
            ),
        ]


@in_floating_point
def naive_bayes(by: str, groups: Mapping[Level, Moments], columns: Sequence[str] | None = None) -> NaiveBayes:
    """Fit naive Bayes for the groups of a column: free of privacy cost.

    Noise makes a classifier too sure if it is left out: the variance of the noise on a class's mean is added to the class's
    variance, and a share is kept at least its noise away from 0 and 1. A variance hidden by noise is replaced by the variance
    within the other classes, or by the variance of a uniform column within its bounds.
    """
    first = next(iter(groups.values()))
    if any(release.noisy_sum is None for release in groups.values()):
        raise needs_mean("naive Bayes")
    chosen = [column for column in first.schema.columns if not isinstance(column, DerivedColumn)]
    if columns is not None:
        names, known = [columns] if isinstance(columns, str) else list(columns), [column.name for column in chosen]
        for name in names:
            if name not in known:
                raise unknown_feature(name, known, len(known))
        chosen = [column for column in chosen if column.name in names]
    indices = np.concatenate([own for column, own in columns_with_indices(first) if column in chosen])
    is_level = np.array([isinstance(column, Categorical) for column in chosen for _ in column.feature_names])
    is_share = is_level | np.array([isinstance(column, Boolean) for column in chosen for _ in column.feature_names])
    described = [describe(release) for release in groups.values()]
    counts = np.array([float(release.noisy_count or 0.0) for release in groups.values()])
    laws = [release.noise for release in groups.values()]  # of weighted rows, the count is the effective number
    errors = np.array([0.0 if law is None else math.sqrt(law.count_variance) for law in laws])
    priors = np.where(counts > np.maximum(_LOST_COUNT * errors, 0.5), counts, 0.0)
    known_share = float(priors.sum() / max(np.maximum(counts, 0.0).sum(), 1.0))
    if not priors.any():
        priors = np.ones(len(counts))
    noise = np.nan_to_num(np.array([each.mean_noise for each in described])[:, indices], nan=0.0)
    means = np.array([release.mean for release in groups.values()])[:, indices]
    variances = _variances(first.schema, described, priors, indices) + noise**2
    least = np.minimum(np.maximum(noise, 0.5 / np.maximum(counts, 1.0)[:, None]), 0.5)
    shares = np.clip(means, least, 1.0 - least)
    warned = dict.fromkeys(f"{said.code} of {by}={level}" for level, one in groups.items() for said in one.warnings)
    return NaiveBayes(
        by=by,
        classes=tuple(groups),
        priors=priors / priors.sum(),
        known_share=known_share,
        feature_names=tuple(first.feature_names[index] for index in indices),
        means=np.where(is_share, shares, means),
        variances=np.where(is_share, np.nan, variances),
        mean_noise=noise,
        mean_is_noise=np.array([each.mean_is_noise for each in described], dtype=bool)[:, indices],
        is_share=is_share,
        is_level=is_level,
        schema=first.schema,
        warning=f"Warnings about these releases, explained by describe: {visible(', '.join(warned))}."
        if warned
        else "",
    )


def _variances(schema: Schema, described: Sequence[Any], priors: FloatArray, indices: IntegerArray) -> FloatArray:
    """Return the variances of classes, shape (k, d)."""
    # Pooled if noise hides one, of the bounds if it hides all.
    deviations = np.array([each.standard_deviation for each in described], dtype=float)[:, indices]
    hidden = np.array([each.deviation_limits for each in described])[:, indices] > 0.0
    hidden |= ~(deviations > 0.0)
    lower, upper = (bound[indices] for bound in schema.feature_bounds)
    weights = np.where(hidden, 0.0, priors[:, None])
    total = weights.sum(axis=0)
    pooled = np.divide(
        (weights * np.where(hidden, 0.0, deviations) ** 2).sum(axis=0),
        total,
        out=(upper - lower) ** 2 / 12.0,
        where=total > 0.0,
    )
    return np.where(hidden, pooled, deviations**2)
