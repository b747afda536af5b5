"""MeanRelease: a mean alone, as it leaves the curator's hands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpmoments.analysis.answers import aligned, in_floating_point, number
from dpmoments.analysis.description import card
from dpmoments.analysis.released import Release
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.documents import DocumentKind
from dpmoments.foundation.errors import InputOverflowError, InputValueError
from dpmoments.foundation.values import (
    finite_numbers,
    is_finite_number,
    require_known,
)
from dpmoments.messages.message import Message
from dpmoments.noise.models import MeanModel
from dpmoments.plots.accessor import MeanPlots
from dpmoments.releases.disclosed import Disclosed

MEAN_RELEASE_FILE = DocumentKind("dpmoments-mean-release", 1, "mean release")


@dataclass(frozen=True, eq=False)
class MeanRelease(Release, Disclosed):
    """A mean released under differential privacy.

    Made by :func:`dpmoments.release_mean` or :func:`dpmoments.load`.

    Attributes
    ----------
    noisy_mean : ndarray of shape (d,)
        In the units in which rows are encoded.
    noisy_count : float
        Exact where the number of rows is public.
    noise : MeanModel or None
        The law of the noise on ``noisy_mean``, in the units in which rows are encoded; None where it has no closed form.

    Beside these it has what every :class:`Release` has: ``schema``, ``privacy``, ``receipt``, ``mechanism``, ``origin``, and
    ``diagnostics``: every step's ball, in the units in which rows are encoded.
    """

    noisy_mean: FloatArray
    noisy_count: float
    noise: MeanModel | None = None

    file_kind = MEAN_RELEASE_FILE

    def __post_init__(self) -> None:
        super().__post_init__()
        self.noisy_mean.setflags(write=False)

    @property
    def plot(self) -> MeanPlots:
        """Pictures: ``release.plot.steps()``; matplotlib is imported when the first is drawn."""
        return MeanPlots(self, self.mean)

    @property
    @in_floating_point
    def mean(self) -> FloatArray:
        """E[value], shape (d,), in the table's units."""
        return self.schema.encoding(mean=True).decode_mean(self.noisy_mean)

    @property
    def n_rows(self) -> int:
        """The number of rows that count (dropped ones do not): exact where it is public, else noisy, rounded, at least 1."""
        return max(1, round(self.noisy_count))

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows carries no noise."""
        return self.privacy.neighbors.count_is_public(self.schema.drops_rows)

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the mechanism found, privately, that speaks against trusting the release; mostly nothing."""
        found = super().warnings
        if not found and self.noise is not None and self.noise.bias_suspected:
            return (Message("noise-incomplete"),)
        return found

    @property
    @in_floating_point
    def standard_errors(self) -> FloatArray:
        """Standard deviation of the noise that privacy adds to :attr:`mean`, shape (d,), in the table's units.

        NaN where the noise has no closed form. It is the noise alone: see :meth:`conf_int`.
        """
        if self.noise is None:
            return np.full(len(self.feature_names), np.nan)
        return self.schema.encoding(mean=True).scale * self.noise.standard_deviations

    @in_floating_point
    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Where the mean of the table's rows lies, but for the noise that privacy adds: an interval for every feature.

        Parameters
        ----------
        level : float
            Of each interval by itself; all of them together hold their means less often.

        Returns
        -------
        ndarray of shape (d, 2)
            Lower and upper ends, in the table's units.

        Raises
        ------
        ValueError
            If ``level`` is not above 0 and below 1, or the noise has no closed form.

        Notes
        -----
        The interval is that of the law of the noise. It leaves out what clipping moves the mean by: nothing where no row is
        clipped, next to nothing where rows are symmetric, and more than the noise for skewed rows or very many rows. It leaves
        out, too, that the rows are a sample: it is about the mean of these rows, not of those they come from. How often
        intervals held their mean, by estimator and kind of rows, is measured in ``docs/mean-error-bounds.md``.

        Post-processing of what was paid for: it costs no privacy, whatever the level and however often.

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
            raise InputValueError(f"there is no interval: {self._without_law}")
        half = self.schema.encoding(mean=True).scale * self.noise.half_widths(level)
        if not np.isfinite(half).all():
            raise InputOverflowError("refused in words of its own by in_floating_point")
        return np.stack([self.mean - half, self.mean + half], axis=1)

    @property
    def _without_law(self) -> str:
        return f"the error of {self.mechanism!r} has no closed form, and the release states no law of its noise"

    @property
    def noise_text(self) -> str:
        """What the noise beside the mean is, and what it leaves out."""
        if self.noise is None:
            return f"± noise: not known; {self._without_law}."
        clipped = {
            None: "",
            0.0: " (no clipped rows stood out of the noise on their number)",
        }.get(self.noise.clipped, f" (about {100.0 * (self.noise.clipped or 0.0):.2g} % of the rows were clipped)")
        return (
            "± noise: standard deviation of the noise that privacy adds to the mean of the clipped rows. It leaves out what "
            f"clipping moved that mean by{clipped}, and that the rows are a sample."
        )

    def table(self) -> list[tuple[str, str, str]]:
        """Rows of text, the head first: feature, mean (to the second digit of its noise, or further), noise on it."""
        cells = zip(self.feature_names, self.mean.tolist(), self.standard_errors.tolist(), strict=True)
        return [
            ("feature", "mean", "± noise"),
            *((name, f"{mean:.{_digits(mean, noise)}g}", number(noise)) for name, mean, noise in cells),
        ]

    def summary(self) -> str:
        """The release as text: the number of rows, a line a feature, what the noise is, and what speaks against trusting it."""
        exactness = "public, exact" if self.count_is_public else "noisy"
        lines = [
            f"mean by {self.mechanism}, {self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}",
            f"rows: {self.n_rows:,} ({exactness})",
            aligned(self.table()),
            self.noise_text,
            *(f"Warning: {message.text()}" for message in self.warnings),
        ]
        if not self.privacy.private:
            lines.append("NOT PRIVATE: made with an insecure seed.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        exactness = "public, exact" if self.count_is_public else "noisy"
        return card(
            f"Mean of {len(self.feature_names):,} features by {self.mechanism}",
            [f"rows: {self.n_rows:,} ({exactness})", self.noise_text],
            self.table(),
            self.privacy,
            [f"Warning: {message.text()}" for message in self.warnings],
            [f"release.{call}" for call in ("mean", "conf_int()", 'save("mean.json")')],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""
        return {
            **self._statements(),
            "noisy_mean": self.noisy_mean.tolist(),
            "noisy_count": self.noisy_count,
            "noise": None if self.noise is None else self.noise.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MeanRelease:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        require_known(content, {entry.name for entry in fields(cls)} | {"warnings"}, "it")
        stated = cls._read_statements(content)
        d, noise = stated["schema"].n_features, content["noise"]
        if not is_finite_number(content["noisy_count"]):
            raise InputValueError("noisy_count is not a finite number")
        return cls(
            **stated,
            noisy_mean=finite_numbers(content["noisy_mean"], d, "noisy_mean"),
            noisy_count=float(content["noisy_count"]),
            noise=None if noise is None else MeanModel.from_dict(noise, d),
        )

    def __repr__(self) -> str:
        return self._described(f"{len(self.feature_names)} features, n_rows={self.n_rows}")


def _digits(mean: float, noise: float) -> int:
    """Significant digits of a mean up to the second digit of its noise; 5 at least, as all numbers have.

    Examples
    --------
    >>> _digits(100_001.36, 0.049), _digits(0.03, 0.037), _digits(3.0, math.nan)
    (9, 5, 5)
    """
    if not (math.isfinite(noise) and noise > 0.0 and math.isfinite(mean) and mean != 0.0):
        return 5
    return min(max(math.floor(math.log10(abs(mean))) - math.floor(math.log10(noise)) + 2, 5), 17)
