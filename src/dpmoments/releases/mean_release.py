"""Mean-only release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.analysis.answers import aligned, count_text, in_floating_point, rounded
from dpmoments.analysis.description import card
from dpmoments.analysis.released import Release
from dpmoments.base.documents import DocumentKind
from dpmoments.base.errors import InputOverflowError, InputValueError, shown
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.moments.models import MeanModel
from dpmoments.releases.disclosed import Disclosed

if TYPE_CHECKING:
    from dpmoments.plots.accessor import MeanPlots


@dataclass(frozen=True, eq=False)
class MeanRelease(Release, Disclosed):
    """Mean released under differential privacy.

    Made by :func:`dpmoments.release_mean` or :func:`dpmoments.load`.

    Attributes
    ----------
    noisy_mean : ndarray of shape (d,)
        In encoded units.
    noisy_count : float
        Exact if the number of rows is public.
    noise : MeanModel or None
        Noise distribution of ``noisy_mean``, in encoded units; None if it has no closed form.

    It also has the attributes of every :class:`Release`: ``schema``, ``privacy``, ``receipt``, ``mechanism``,
    ``origin``, and ``diagnostics``: the clipping ball of every step, in encoded units.
    """

    noisy_mean: FloatArray
    noisy_count: float
    noise: MeanModel | None = None

    file_kind = DocumentKind("dpmoments-mean-release", 1, "mean release")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.noisy_mean.setflags(write=False)

    @property
    def plot(self) -> MeanPlots:
        """Plots: ``release.plot.steps()``; the first plot imports matplotlib."""
        from dpmoments.plots.accessor import MeanPlots

        return MeanPlots(self)

    @property
    @in_floating_point
    def mean(self) -> FloatArray:
        """Mean of every feature, shape (d,), in original units."""
        return self.schema.encoding(mean=True).decode_mean(self.noisy_mean)

    @property
    def n_rows(self) -> int:
        """Number of kept rows: exact if it is public, else noisy, rounded, at least 1."""
        return max(1, round(self.noisy_count))

    @property
    def count_is_public(self) -> bool:
        """True if the number of rows has no noise."""
        return self.privacy.neighbors.count_is_public(self.schema.drops_rows)

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Reasons not to trust the release that the mechanism found privately; usually none."""
        result = super().warnings
        if not result and self.noise is not None and self.noise.bias_suspected:
            return (Message("noise-incomplete"),)
        return result

    @property
    @in_floating_point
    def standard_errors(self) -> FloatArray:
        """Privacy noise SD of :attr:`mean`, shape (d,), in original units.

        NaN if the noise has no closed form. It does not include sampling error: see :meth:`conf_int`.
        """
        if self.noise is None:
            return np.full(len(self.feature_names), np.nan)
        return self.schema.encoding(mean=True).scale * self.noise.standard_deviations

    @in_floating_point
    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Compute confidence intervals for the mean of the table's rows, up to clipping.

        Parameters
        ----------
        level : float
            Confidence level of each interval; all of them hold jointly less often.

        Returns
        -------
        ndarray of shape (d, 2)
            Lower and upper ends, in original units, within the public bounds.

        Raises
        ------
        ValueError
            If ``level`` is not between 0 and 1, or the noise has no closed form.

        Notes
        -----
        The interval includes privacy noise only. It omits the change of the mean by clipping: zero if no row is
        clipped, almost zero if rows are symmetric, and more than the noise for skewed rows or very many rows. It also
        omits sampling error: it is for the mean of these rows, not of their population. ``docs/evidence/regression-coverage.md``
        measures how often intervals contained the mean, by estimator and kind of rows.

        Post-processing: it costs no privacy, at any level and however often.

        Examples
        --------
        >>> import dpmoments as dpm
        >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 2))
        >>> options = dict(rho=0.5, neighbors="replace_one", mechanism="naive", insecure_seed=0)
        >>> released = dpm.release_mean(table, dpm.Schema.unit_ball(2), **options)
        >>> low, high = released.conf_int(0.95).T
        >>> bool((low < table.mean(axis=0)).all() and (table.mean(axis=0) < high).all())
        True
        """
        if self.noise is None:
            raise InputValueError(f"no interval is available: {self._without_law}")
        half = self.schema.encoding(mean=True).scale * self.noise.half_widths(level)
        lower, upper = self.schema.feature_bounds
        if not np.isfinite(half).all():
            raise InputOverflowError(
                "the numbers of this release exceed the range of floating point: they are very large, very small, "
                "or very far apart"
            )
        ends = np.stack([self.mean - half, self.mean + half])
        return np.asarray(np.clip(ends, np.minimum(lower, self.mean), np.maximum(upper, self.mean)).T)

    @property
    def _without_law(self) -> str:
        return f"the error of {shown(self.mechanism)} has no closed form, so the noise distribution is unknown"

    @property
    def noise_text(self) -> str:
        """Explanation of the noise next to the mean, and of what it omits."""
        if self.noise is None:
            return f"± noise: not known; {self._without_law}."
        clipped = {None: "", 0.0: " (the number of clipped rows is not distinguishable from noise)"}.get(
            self.noise.clipped, f" (about {100.0 * (self.noise.clipped or 0.0):.2g} % of the rows were clipped)"
        )
        return (
            "± noise: SD of the privacy noise on the mean of the clipped rows. It does not include the effect of "
            f"clipping{clipped} or sampling error."
        )

    def table(self) -> list[tuple[str, str, str]]:
        """Return rows of text, head first: feature, mean (to its noise's second digit), noise."""
        cells = zip(self.feature_names, self.mean.tolist(), self.standard_errors.tolist(), strict=True)
        return [
            ("feature", "mean", "± noise"),
            *((name, rounded(mean, noise), rounded(noise, noise)) for name, mean, noise in cells),
        ]

    def summary(self) -> str:
        """Return the release as text, with its noise and warnings."""
        lines = [
            "Mean only: no second moment was released, so analyses do not work on it.",
            f"by {self.mechanism_text}, {self.privacy.budget}, {self.privacy.neighbors}",
            f"rows: {count_text(self.n_rows, 0.0 if self.count_is_public else None)}",
            aligned(self.table()),
            self.noise_text,
            *self._warned,
        ]
        if not self.privacy.private:
            lines.append("NOT PRIVATE: made with an insecure seed.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return card(
            f"Mean of {len(self.feature_names):,} features by {self.mechanism}",
            [f"rows: {count_text(self.n_rows, 0.0 if self.count_is_public else None)}", self.noise_text],
            self.table(),
            self.privacy,
            self._warned,
            [f"release.{call}" for call in ("mean", "conf_int()", 'save("mean.json")')],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, without loss of precision."""
        return {
            **self._statements(),
            "noisy_mean": self.noisy_mean.tolist(),
            "noisy_count": self.noisy_count,
            "noise": None if self.noise is None else self.noise.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MeanRelease:
        """Invert :meth:`to_dict`; raise KeyError, TypeError or ValueError if an entry is wrong."""
        kinds = {"noisy_mean": FloatArray, "noisy_count": float, "noise": MeanModel | None}
        given = cls._read(content, kinds)
        d, noise = given["schema"].n_features, given["noise"]
        if len(given["noisy_mean"]) != d or (noise is not None and len(noise.deviations) != d):
            raise InputValueError(f"noisy_mean and noise.deviations must hold {d} finite numbers")
        return cls(**given)

    def __repr__(self) -> str:
        return self._described(f"{len(self.feature_names)} features, n_rows={self.n_rows}")
