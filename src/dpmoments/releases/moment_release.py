"""MomentRelease: the one thing that leaves the curator's hands, and all that an analysis ever sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from dpmoments.analysis import methods
from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.correlations import correlation_of
from dpmoments.analysis.description import release_card
from dpmoments.analysis.synthetic import synthetic_rows
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.documents import DocumentKind
from dpmoments.foundation.values import (
    finite_numbers,
    is_finite_number,
    plain_mapping,
    require_kinds,
    require_known,
    to_plain,
)
from dpmoments.noise.models import NoiseModel
from dpmoments.noise.terms import NoiseLaw
from dpmoments.plots.accessor import ReleasePlots
from dpmoments.privacy.origin import HasOrigin, ReleaseOrigin
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.releases.disclosed import Disclosed
from dpmoments.repair.repair import Repair, exact_law, floored_count, repair_moments
from dpmoments.schema.constraints import Constraints
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

# The numbers of a release's file: its noisy moments and the model of their noise, written, and read with every check.


class _NoisyNumbers(Protocol):
    """What a release holds before any repair."""

    @property
    def noisy_count(self) -> float | None:
        """The number of rows."""

    @property
    def noisy_sum(self) -> FloatArray | None:
        """Their sum."""

    @property
    def noisy_gram(self) -> FloatArray:
        """Their Gram matrix."""

    @property
    def center(self) -> FloatArray | None:
        """What sum and Gram matrix are about."""

    @property
    def noise_model(self) -> NoiseModel | None:
        """What the file says of the noise."""


def _written_moments(release: _NoisyNumbers) -> dict[str, Any]:
    """Plain values of count, sum, Gram matrix, centre and noise model for a file; no bit is lost."""
    noisy_sum, center = release.noisy_sum, release.center
    return {
        "noise": None if release.noise_model is None else release.noise_model.to_dict(),
        "noisy_count": release.noisy_count,
        "noisy_sum": None if noisy_sum is None else noisy_sum.tolist(),
        "noisy_gram_upper_triangle": release.noisy_gram[np.triu_indices(len(release.noisy_gram))].tolist(),
        "center": None if center is None else center.tolist(),
    }


def _read_moments(content: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    """Count, sum, Gram matrix, centre and noise model of a release's file, under the names of the release's attributes."""
    d = n_features
    upper = finite_numbers(content["noisy_gram_upper_triangle"], d * (d + 1) // 2, "noisy_gram_upper_triangle")
    gram = np.empty((d, d))
    gram[np.triu_indices(d)] = upper
    gram.T[np.triu_indices(d)] = upper
    count, noisy_sum, center = content["noisy_count"], content["noisy_sum"], content["center"]
    if count is not None and not is_finite_number(count):
        raise ValueError("noisy_count is not a finite number")
    model = None if content["noise"] is None else NoiseModel.from_dict(content["noise"])
    if model is not None and model.n_features != d:
        raise ValueError(f"the noise model is for {model.n_features} features and the schema has {d}")
    return {
        "noisy_count": None if count is None else float(count),
        "noisy_sum": None if noisy_sum is None else finite_numbers(noisy_sum, d, "noisy_sum"),
        "noisy_gram": gram,
        "center": None if center is None else finite_numbers(center, d, "center"),
        "noise_model": model,
    }


RELEASE_FILE = DocumentKind("dpmoments-release", 1, "release")
_NO_MEAN = "no mean was released (mean=False): release with mean=True"


@dataclass(frozen=True, eq=False)
class MomentRelease(HasOrigin, Disclosed):
    """Count, mean and second moment of a table, released under differential privacy.

    Made by :func:`dpmoments.release` or :func:`dpmoments.load`. Whatever is computed from it costs no further privacy.

    Attributes
    ----------
    schema : Schema
    privacy : PrivacyStatement
        What was spent; ``print(release.privacy.in_words())``.
    receipt : Receipt
        Every draw of noise, and what it cost.
    noise_model : NoiseModel or None
        What the file says of the noise; None if the moments are biased on purpose. ``release.noise`` is the law that follows.
    mechanism : str
        Name of the mechanism that ran.
    mechanism_options, details : mapping
        Its options, and the numbers that its plan settled on.
    repair : Repair
        The post-processing that the properties below apply to the noisy moments.
    noisy_count : float or None
    noisy_sum : ndarray of shape (d,) or None
    noisy_gram : ndarray of shape (d, d)
        What the mechanism returned, in unit-ball units, before any repair; sum and Gram matrix about ``center``.
    center : ndarray of shape (d,) or None
        Where the mechanism found the mean, so that a covariance is not lost beside the square of a mean far away; None for 0.
    diagnostics : mapping
        What else the mechanism learned privately.
    chosen_because : str or None
        Why ``auto`` chose the mechanism, and what it would take to do better; None where it was named.
    origin : ReleaseOrigin
        Which release this is: ``release.id``, ``release.dataset``, and the group of rows it is of.
    """

    schema: Schema
    privacy: PrivacyStatement
    receipt: Receipt
    noise_model: NoiseModel | None
    mechanism: str
    mechanism_options: Mapping[str, Any]
    details: Mapping[str, Any]
    repair: Repair
    noisy_count: float | None
    noisy_sum: FloatArray | None
    noisy_gram: FloatArray
    center: FloatArray | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    chosen_because: str | None = None
    origin: ReleaseOrigin = field(default_factory=ReleaseOrigin.fresh)

    # One line an analysis, a function of a release; the command line has a command for each.
    describe = methods.describe
    ols = methods.ols
    ridge = methods.ridge
    lasso = methods.lasso
    pca = methods.pca
    correlations = methods.correlations
    group_means = methods.group_means
    anova = methods.anova
    t_test = methods.t_test
    cross_table = methods.cross_table
    partial_correlation = methods.partial_correlation
    mahalanobis = methods.mahalanobis
    lda = methods.lda
    graphical_lasso = methods.graphical_lasso
    _repr_html_ = release_card

    def __post_init__(self) -> None:
        if self.center is not None and self.noisy_sum is None:
            raise ValueError("moments about a centre need the sum about it, else their mean is not known")
        if self.noisy_sum is not None and self.noisy_count is None:
            raise ValueError("a sum of rows without their number makes no mean: release both, or neither")
        self.receipt.require_for(self.privacy)
        for array in (self.noisy_sum, self.noisy_gram, self.center):
            if array is not None:
                array.setflags(write=False)

    @property
    def plot(self) -> ReleasePlots:
        """Pictures: ``release.plot.correlation()``; matplotlib is imported when the first is drawn."""
        return ReleasePlots(self)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""
        return self.schema.feature_names

    @property
    def encoding(self) -> Encoding:
        """The affine map between the table's units and the unit ball."""
        return self.schema.encoding(mean=self.noisy_sum is not None)

    @property
    def zero_of_units(self) -> FloatArray:
        """What is added to encoded rows about ``center`` to give value/scale, shape (d,): where the zero of the units is."""
        encoding = self.encoding
        zero = encoding.offset / encoding.scale
        return zero if self.center is None else zero + self.center

    @property
    def n_rows(self) -> int:
        """The number of rows that count (dropped ones do not): exact where it is public, else noisy and rounded.

        A noisy one is at least 1, and at least the standard deviation of its noise.

        Raises
        ------
        ValueError
            If no count was released.
        """
        if self.noisy_count is None:
            raise ValueError(
                "no count was released: under add_remove the number of rows is private, and mean=False spends nothing on it. "
                "Use release.gram, release with mean=True, or pass a public n_rows to release()"
            )
        return round(floored_count(self.noisy_count, None if self.count_is_public else self.noise))

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows is here and carries no noise.

        So it is under ``replace_one`` where no rule of the schema drops a row, and under ``add_remove`` where a second
        moment alone was released beside a count that is public from elsewhere. A mean is divided by a count that was released
        with it.
        """
        return self.noisy_count is not None and (
            self.privacy.neighbors.count_is_public(self.schema.drops_rows)
            or (self.noisy_sum is None and not self.privacy.neighbors.table_size_is_public)
        )

    @cached_property
    def noise(self) -> NoiseLaw | None:
        """The law of the noise on Σ z zᵀ, z = (1, x) about ``center``, in the unit ball; None if moments are biased on purpose.

        Exact for noise that is added cell by cell, for pooled releases, for additive Wishart noise of any scale, and, given the
        rows as the last step clipped them, for coinpress and private-preconditioning. **Linearized about the release** for draws
        around the moments (johnson-lindenstrauss, inverse-wishart), noise on their inverse, and eigenvectors: the law's
        ``caveats`` say so (``docs/derivations/noise-of-runs.md``).
        """
        if self.noise_model is None:
            return None
        try:
            return self.noise_model.law(self)
        except (ValueError, FloatingPointError):
            return None  # a file whose numbers are those of no run

    @cached_property
    @in_floating_point
    def _repaired(self) -> tuple[FloatArray | None, FloatArray]:
        """Mean and Gram matrix in the unit ball after the repair, about ``center``."""
        count = None if self.noisy_count is None else self.n_rows
        mean, gram = repair_moments(
            count,
            self.noisy_sum,
            self.noisy_gram,
            exact_law(self.noise),
            self.repair,
            box=self._mean_box,
            center=self.center,
            constraints=Constraints.of(self.schema, mean=self.noisy_sum is not None),
            rows_moved=self.center is not None,  # only mechanisms that clip rows about a centre have one
        )
        for array in (mean, gram):
            if array is not None:
                if not np.isfinite(array).all():  # products of matrices overflow in silence
                    raise OverflowError
                array.setflags(write=False)  # kept, and handed out
        return mean, gram

    @property
    def _mean_box(self) -> tuple[FloatArray, FloatArray] | None:
        """Public bounds on the mean of the encoded rows; None without a bound on a row."""
        if self.schema.row_norm is None:
            return None
        lower, upper = self.encoding.values_in_ball(*self.schema.feature_bounds)
        return lower, upper

    @property
    @in_floating_point
    def unit_ball_mean(self) -> FloatArray:
        """E[x] of the encoded rows, repaired, shape (d,)."""
        mean = self._repaired[0]
        if mean is None:
            raise ValueError(_NO_MEAN)
        return mean if self.center is None else self.center + mean

    @property
    @in_floating_point
    def unit_ball_gram(self) -> FloatArray:
        """Σ x xᵀ of the encoded rows, repaired, shape (d, d)."""
        mean, gram = self._repaired
        if self.center is None or mean is None:
            return gram
        cross = np.outer(self.center, mean)
        return gram + self.n_rows * (cross + cross.T + np.outer(self.center, self.center))

    @property
    @in_floating_point
    def unit_ball_covariance(self) -> FloatArray:
        """Cov(x) of the encoded rows, repaired, shape (d, d)."""
        mean, gram = self._repaired
        if mean is None:
            raise ValueError(_NO_MEAN)
        return gram / self.n_rows - np.outer(mean, mean)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release; mostly nothing."""
        result = self.diagnostics.get("warnings", ())
        return tuple(map(str, result)) if isinstance(result, list | tuple) else ()

    @property
    @in_floating_point
    def mean(self) -> FloatArray:
        """E[value], shape (d,), in the table's units."""
        return self.encoding.decode_mean(self.unit_ball_mean)

    @property
    @in_floating_point
    def second_moment(self) -> FloatArray:
        """E[value valueᵀ], not centred, shape (d, d), in the table's units."""
        mean = None if self.noisy_sum is None else self.unit_ball_mean
        return self.encoding.decode_second_moment(self.unit_ball_gram / self.n_rows, mean)

    @property
    @in_floating_point
    def gram(self) -> FloatArray:
        """Σ value valueᵀ, shape (d, d), in the table's units."""
        if self.encoding.offset.any():
            return self.second_moment * self.n_rows
        return self.encoding.decode_covariance(self.unit_ball_gram)

    @property
    @in_floating_point
    def covariance(self) -> FloatArray:
        """Cov(value), centred, shape (d, d), in the table's units."""
        return self.encoding.decode_covariance(self.unit_ball_covariance)

    @property
    @in_floating_point
    def correlation(self) -> FloatArray:
        """Corr(value), shape (d, d), NaN where a variance is not positive; :meth:`correlations` says how sure it is."""
        return correlation_of(self.unit_ball_covariance)

    def synthetic(self, n_rows: int, seed: int = 0, *, format: Literal["pandas", "arrow"] = "pandas") -> Any:
        """Draw rows with the schema's types, levels and bounds: :func:`dpmoments.analysis.synthetic.synthetic_rows`."""
        return synthetic_rows(self, n_rows, seed, format=format)

    def with_repair(self, repair: Repair | str) -> MomentRelease:
        """The same release read with another repair: post-processing, free of privacy cost."""
        result = replace(self, repair=Repair.of(repair))
        result.__dict__["noise"] = self.noise  # what is cached of the numbers before any repair
        return result

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release as JSON, all of it or nothing; :func:`dpmoments.load` reads it.

        Raises
        ------
        FileExistsError
            If there is a file already and ``overwrite`` is False.
        OSError
            If the file cannot be written.
        """
        RELEASE_FILE.write(self.to_dict(), path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""
        return {
            **_written_moments(self),
            "origin": self.origin.to_dict(),
            "schema": self.schema.to_dict(),
            "privacy": self.privacy.to_dict(),
            "receipt": self.receipt.to_dict(),
            "mechanism": self.mechanism,
            "mechanism_options": to_plain(self.mechanism_options),
            "details": to_plain(self.details),
            "repair": str(self.repair),
            "diagnostics": to_plain(self.diagnostics),
            "chosen_because": self.chosen_because,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MomentRelease:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        known = {entry.name for entry in fields(cls)} - {"noisy_gram", "noise_model"}
        known |= {"noisy_gram_upper_triangle", "noise"}
        require_known(content, known, "it")
        schema = Schema.from_dict(content["schema"])
        moments = _read_moments(content, schema.n_features)
        require_kinds(content, mechanism=str, mechanism_options=dict, details=dict, diagnostics=dict)
        require_kinds(content, privacy=dict, receipt=dict, origin=dict)
        chosen_because = content["chosen_because"]
        if chosen_because is not None and not isinstance(chosen_because, str):
            raise TypeError("chosen_because must be text, or null")
        return cls(
            **moments,
            origin=ReleaseOrigin.from_dict(content["origin"]),
            schema=schema,
            privacy=PrivacyStatement.from_dict(content["privacy"]),
            receipt=Receipt.from_dict(content["receipt"]),
            mechanism=content["mechanism"],
            mechanism_options=plain_mapping(content, "mechanism_options"),
            details=plain_mapping(content, "details"),
            repair=Repair.of(content["repair"]),
            diagnostics=plain_mapping(content, "diagnostics"),
            chosen_because=chosen_because,
        )

    def __repr__(self) -> str:
        count = "" if self.noisy_count is None else f", n_rows={self.n_rows}"
        flag = "" if self.privacy.private else ", NOT PRIVATE"
        return (
            f"MomentRelease({len(self.feature_names)} features{count}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )
