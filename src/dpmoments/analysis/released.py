"""What an analysis may ask of a release."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.models import AdditiveModel, NoiseModel, PooledModel
from dpmoments.noise.terms import NoiseLaw
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.repair.repair import Repair, few_rows_message
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema


class Released(Protocol):
    """Released moments as analyses see them; :class:`dpmoments.MomentRelease` describes each member.

    Every analysis takes one of these as its first argument, which makes it a method of ``MomentRelease`` as it stands.
    """

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def privacy(self) -> PrivacyStatement:
        """What was spent."""

    @property
    def repair(self) -> Repair:
        """How the moments are made those of a possible table."""

    @property
    def noise(self) -> NoiseLaw | None:
        """The law of the noise, which gives variances of functionals; None if the moments are biased on purpose."""

    @property
    def noise_model(self) -> NoiseModel | None:
        """What the file says of the noise."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism that ran."""

    @property
    def mechanism_options(self) -> Mapping[str, Any]:
        """Its options."""

    @property
    def details(self) -> Mapping[str, Any]:
        """The numbers that its plan settled on."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""

    @property
    def encoding(self) -> Encoding:
        """The affine map between the table's units and the unit ball."""

    @property
    def noisy_count(self) -> float | None:
        """The number of rows as released; None where it was not."""

    @property
    def noisy_sum(self) -> FloatArray | None:
        """The sum of encoded rows before repair; None where no mean was released."""

    @property
    def noisy_gram(self) -> FloatArray:
        """The Gram matrix of encoded rows before repair, about the release's centre."""

    @property
    def zero_of_units(self) -> FloatArray:
        """What is added to x about the release's centre to give value/scale, shape (d,)."""

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What else the mechanism learned privately."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release."""

    @property
    def center(self) -> FloatArray | None:
        """What sum and Gram matrix are about; None for 0."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows is here and carries no noise."""

    @property
    def unit_ball_mean(self) -> FloatArray:
        """E[x] of the encoded rows, shape (d,)."""

    @property
    def unit_ball_gram(self) -> FloatArray:
        """Σ x xᵀ of the encoded rows, shape (d, d)."""

    @property
    def unit_ball_covariance(self) -> FloatArray:
        """Cov(x) of the encoded rows, shape (d, d)."""

    @property
    def mean(self) -> FloatArray:
        """E[value], shape (d,)."""

    @property
    def second_moment(self) -> FloatArray:
        """E[value valueᵀ], shape (d, d)."""

    @property
    def covariance(self) -> FloatArray:
        """Cov(value), shape (d, d)."""

    @property
    def correlation(self) -> FloatArray:
        """Corr(value), shape (d, d)."""

    def with_repair(self, repair: str) -> Released:
        """The same release read with another repair."""


# What speaks against reading an answer as that of the table, said below every answer.


def cautions(release: Released) -> str:
    """Too few rows for the budget, and what the mechanism learned that speaks against its answer; mostly empty.

    Intervals hold noise and sampling. What moving rows into a ball did to the moments is in none of them: the mechanism's own
    warning stands here.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.zeros((20, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=0.1, insecure_seed=0)
    >>> cautions(released)[:32]
    'too few rows for this budget: th'
    """
    few = few_rows_message(release.noisy_count, release.noise)
    said = (few, describe_contribution(release), describe_caveats(release.noise), *release.warnings)
    return ". ".join(dict.fromkeys(words.rstrip(".") for words in said if words))


def noise_is_additive(release: Released) -> bool:
    """Whether noise was added cell by cell."""
    return isinstance(release.noise_model, AdditiveModel | PooledModel)


_CAVEATS = MappingProxyType(
    {
        "linearized": "The law of the noise is linearized about the release: it holds where noise is small beside the moments",
        "clipped-in-last-step": (
            "The noise is known about the rows as the last step clipped them: what clipping took away comes on top"
        ),
        "asserted-smallest-eigenvalue": (
            "The law of the noise holds where no eigenvalue is below the stated smallest_eigenvalue"
        ),
    }
)


def describe_caveats(law: NoiseLaw | None) -> str:
    """What the law of the noise is conditional on, in sentences; empty if it holds as it is."""
    return ". ".join(_CAVEATS[code] for code in law.caveats) if law is not None else ""


def describe_contribution(release: Released) -> str:
    """That rows of one unit may be alike, where several of them count and intervals take rows as independent; else empty."""
    unit = release.privacy.privacy_unit
    if unit is None or unit.max_rows == 1:
        return ""
    return (
        f"Up to {unit.max_rows:,} rows of one {unit.column} count, and what is said of sampling takes rows as independent: where "
        "rows of one are alike, intervals are too short and tests reject too often"
    )
