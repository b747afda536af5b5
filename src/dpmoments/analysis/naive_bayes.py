"""Naive Bayes from the moments of groups: features independent within each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, in_floating_point, rounded
from dpmoments.analysis.description import describe
from dpmoments.analysis.discriminant import describe_lost_classes, most_likely
from dpmoments.analysis.frames import named_values
from dpmoments.analysis.released import Moments, columns_with_indices
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.messages.wording import closest
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.schema import Schema

_LOST_COUNT = 2.0
"""Noise SDs of a group's count below which the group is never predicted."""


@dataclass(frozen=True, eq=False, repr=False)
class NaiveBayes(Answer):
    """A naive Bayes classifier as in scikit-learn.

    Numbers are normal in each class; Booleans and levels have shares.

    Attributes
    ----------
    by : str
    classes : tuple of str or int or bool
        The groups.
    priors : ndarray of shape (k,)
        Released shares; 0 for classes with noise-dominated counts, which are never predicted.
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
    feature_names: tuple[str, ...]
    means: FloatArray
    variances: FloatArray
    mean_noise: FloatArray
    mean_is_noise: BoolArray
    is_share: BoolArray
    is_level: BoolArray
    schema: Schema
    warning: str = ""

    facts = ("by", "classes", "priors", "feature_names", "means", "variances", "warning")

    def decision_function(self, frame: Any) -> FloatArray:
        """Return ln(prior · density) of a frame's rows, read by column name, shape (m, k).

        NaN if a value is missing.

        Raises
        ------
        TypeError
            If ``frame`` is not a frame.
        ValueError
            If a column is absent, or holds undeclared levels.
        """
        rows = named_values(self.schema, frame, self.feature_names)
        numbers, levels, flags = ~self.is_share, self.is_level, self.is_share & ~self.is_level
        scores = np.full((len(rows), len(self.classes)), -math.inf)
        for index in np.flatnonzero(self.priors > 0.0):
            mean, variance = self.means[index], self.variances[index]
            away = (rows[:, numbers] - mean[numbers]) ** 2 / variance[numbers] + np.log(variance[numbers])
            shares = rows[:, levels] @ np.log(mean[levels])
            true = rows[:, flags] @ np.log(mean[flags]) + (1.0 - rows[:, flags]) @ np.log1p(-mean[flags])
            scores[:, index] = math.log(self.priors[index]) - 0.5 * away.sum(axis=1) + shares + true
        scores[np.isnan(rows).any(axis=1)] = np.nan
        return scores

    def predict_proba(self, frame: Any) -> FloatArray:
        """Return the probabilities of the classes, shape (m, k); NaN if a value is missing."""
        scores = self.decision_function(frame)
        result: FloatArray = scipy.special.softmax(scores, axis=1)
        return result

    def predict(self, frame: Any) -> Any:
        """Predict the most likely class of each row of a frame, shape (m,).

        Raises
        ------
        ValueError
            As :meth:`decision_function` does, and if a value is missing.
        """
        return most_likely(self.classes, self.decision_function(frame))

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"naive Bayes of {self.by}: mean ± standard deviation of each feature in each class, or its share",)

    def table(self) -> list[tuple[str, ...]]:
        """Return prior, mean and standard deviation or share of each feature, a class per column."""
        parts = self.means, self.variances, self.mean_noise, self.mean_is_noise
        lines = [
            (
                name,
                *(
                    "noise"
                    if hidden
                    else f"{rounded(100.0 * mean, 100.0 * noise)}%"
                    if share
                    else f"{rounded(mean, noise)} ± {rounded(math.sqrt(variance), noise)}"
                    for mean, variance, noise, hidden in zip(*(part[:, index].tolist() for part in parts), strict=True)
                ),
            )
            for index, (name, share) in enumerate(zip(self.feature_names, self.is_share, strict=True))
        ]
        priors = (f"{share:.1%}" if share > 0.0 else "noise" for share in self.priors)
        return [("", *(f"{self.by}={level}" for level in self.classes)), ("prior", *priors), *lines]

    @property
    def remarks(self) -> tuple[str, ...]:
        names = [f"{self.by}={level}" for level in self.classes]
        return describe_lost_classes(names, self.priors), self.warning

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
    if any(release.noisy_sum is None or release.noisy_count is None for release in groups.values()):
        raise InputValueError(Message("needs-mean", analysis="naive-bayes"))
    chosen = _chosen(first.schema, columns)
    indices = np.concatenate([own for column, own in columns_with_indices(first) if column in chosen])
    is_level = np.array([isinstance(column, Categorical) for column in chosen for _ in column.feature_names])
    is_share = is_level | np.array([isinstance(column, Boolean) for column in chosen for _ in column.feature_names])
    described = [describe(release) for release in groups.values()]
    counts = np.array([float(release.noisy_count or 0.0) for release in groups.values()])
    errors = np.array(
        [0.0 if law is None else math.sqrt(law.count_variance) for law in (r.noise for r in groups.values())]
    )
    priors = np.where(counts > np.maximum(_LOST_COUNT * errors, 0.5), counts, 0.0)
    if not priors.any():
        priors = np.ones(len(counts))
    noise = np.nan_to_num(np.array([each.mean_noise for each in described])[:, indices], nan=0.0)
    means = np.array([release.mean for release in groups.values()])[:, indices]
    variances = _variances(first.schema, described, priors, indices) + noise**2
    least = np.minimum(np.maximum(noise, 0.5 / np.maximum(counts, 1.0)[:, None]), 0.5)
    shares = np.clip(means, least, 1.0 - least)
    warned = dict.fromkeys(message.code for release in groups.values() for message in release.warnings)
    return NaiveBayes(
        by=by,
        classes=tuple(groups),
        priors=priors / priors.sum(),
        feature_names=tuple(first.feature_names[index] for index in indices),
        means=np.where(is_share, shares, means),
        variances=np.where(is_share, np.nan, variances),
        mean_noise=noise,
        mean_is_noise=np.array([each.mean_is_noise for each in described], dtype=bool)[:, indices],
        is_share=is_share,
        is_level=is_level,
        schema=first.schema,
        warning=f"Warnings about these releases, explained by describe: {', '.join(warned)}." if warned else "",
    )


def _chosen(schema: Schema, columns: Sequence[str] | None) -> list[Any]:
    """Return the columns to use, in the schema's order."""
    known = [column for column in schema.columns if not isinstance(column, DerivedColumn)]
    if columns is None:
        return known
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in [column.name for column in known]:
            near = closest(name, [column.name for column in known])
            raise InputValueError(Message("unknown-feature", name=name, features=len(known), **near))
    return [column for column in known if column.name in names]


def _variances(schema: Schema, described: Sequence[Any], priors: FloatArray, indices: IntegerArray) -> FloatArray:
    """Return the variances of classes, shape (k, d)."""
    # Pooled if noise hides one, of the bounds if it hides all.
    deviations = np.array([each.standard_deviation for each in described], dtype=float)[:, indices]
    hidden = np.array([each.standard_deviation_is_noise for each in described], dtype=bool)[:, indices]
    hidden |= ~(deviations > 0.0)
    lower, upper = (bound[indices] for bound in schema.feature_bounds)
    weights = np.where(hidden, 0.0, priors[:, None])
    total = weights.sum(axis=0)
    pooled = np.divide(
        (weights * np.where(hidden, 0.0, deviations) ** 2).sum(axis=0),
        total,
        out=np.asarray((upper - lower) ** 2 / 12.0),
        where=total > 0.0,
    )
    return np.where(hidden, pooled, deviations**2)
