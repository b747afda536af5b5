"""Mean and spread of each feature of a release, and their noise."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from dpmoments.analysis.answers import (
    Answer,
    Column,
    confidence_level,
    count_text,
    html_table,
    in_floating_point,
    label,
    rounded_cells,
    takes_level,
)
from dpmoments.analysis.confidence import (
    deviations_for,
    fieller_interval,
    hidden_by_noise,
    most_with_noise,
    within_bounds,
)
from dpmoments.analysis.functionals import WHY_NOISE_UNKNOWN, FeatureVariances, LocalMoments, comparisons_of, share_mask
from dpmoments.analysis.released import Moments, cautions_in_full, dates_in, indices_of, named_features, pairs_of_levels
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.moments.law import NoiseLaw
from dpmoments.privacy.receipt import PrivacyStatement
from dpmoments.schema.constraints import Constraints
from dpmoments.schema.dates import Date


@dataclass(frozen=True, eq=False, repr=False)
class Description(Answer):
    """Mean and spread of every feature, in original units.

    Attributes
    ----------
    feature_names : tuple of str
    mean : ndarray of shape (d,) or None
        None if no mean was released.
    mean_noise : ndarray of shape (d,)
        Noise SD of the mean, before repair, with what covers rounding; NaN if the mean or its noise is not known.
    standard_deviation : ndarray of shape (d,) or None
        NaN if noise made a variance negative; None if no mean was released.
    standard_deviation_noise : ndarray of shape (d,)
        Noise SD of the standard deviation, to first order; NaN if it is not known.
    root_mean_square : ndarray of shape (d,) or None
        Replaces the standard deviation if no mean was released; NaN without a count as well.
    n_rows : int or None
        None if no count was released.
    count_noise : float or None
        Noise SD of the count: 0 if it is public, None if the count or its noise is not known.
    count_is_public : bool
    mean_count_covariance : ndarray of shape (d,)
        Covariance of the noise on the mean with that on the count, over the count.
    sampling_variance : ndarray of shape (d,)
        Variance of the sampling error of the mean; larger if the variance of a column is noisy. NaN if no mean was released.
    sampling_degrees : ndarray of shape (d,)
        Degrees of freedom of the sampling variances: rows less 1, for Student's t.
    noisy_mean : ndarray of shape (d,) or None
        Mean before repair, the center of intervals.
    bounds : tuple of two ndarrays of shape (d,)
        Public bounds of the features.
    share_is_unclear : ndarray of bool, shape (d,)
        True for shares that noise does not distinguish from 0, by Holm's correction over all shares at 5 %. They are shown as
        below the upper end of their interval, or one noise SD if that is larger.
    deviation_below : ndarray of shape (d,)
        Upper ends (95 % confidence) of the standard deviations that noise does not distinguish from 0, by Holm's correction over
        all of them at 5 %; 0 for the others.
    noise : NoiseLaw or None
        Noise distribution of the moments.
    scaled_rows : str
        Which rows were scaled down to a private ball; empty if none were.
    warning : str
        Reason not to read the numbers as facts about the table (too few rows for the budget); usually empty.
    dates : mapping of str to Date
        Columns of dates, whose means are printed as dates; numbers are in the column's unit since its origin.
    opposites : mapping of str to str
        Second level of each complete column of two to the first, with which the text lists both as one.
    """

    feature_names: tuple[str, ...]
    mean: FloatArray | None
    mean_noise: FloatArray
    standard_deviation: FloatArray | None
    standard_deviation_noise: FloatArray
    root_mean_square: FloatArray | None
    n_rows: int | None
    count_noise: float | None
    count_is_public: bool
    mean_count_covariance: FloatArray
    sampling_variance: FloatArray
    sampling_degrees: FloatArray
    noisy_mean: FloatArray | None
    bounds: tuple[FloatArray, FloatArray]
    share_is_unclear: BoolArray
    deviation_below: FloatArray
    noise: NoiseLaw | None = None
    divisor_noise: float | None = None  # relative, of what sums are divided by; None: that of the number of rows
    hidden_by_cap: FloatArray | None = None  # (d,), most that a cap of weights hides of means
    unit: str | None = None  # column of units of which one row is counted, since their total weight is bounded
    scaled_rows: str = ""
    warning: str = ""
    dates: Mapping[str, Date] = field(default_factory=dict)
    opposites: Mapping[str, str] = field(default_factory=dict)

    facts = (
        *("n_rows", "count_noise", "count_is_public", "feature_names", "mean", "mean_noise", "mean_is_noise"),
        *("standard_deviation?", "root_mean_square?", "standard_deviation_noise", "standard_deviation_is_noise"),
        "warning",
    )

    def part(self, features: Sequence[int]) -> Description:
        """Return the description of some features, in their order."""
        chosen = list(features)
        every = ((each.name, getattr(self, each.name)) for each in fields(self))
        parts: dict[str, Any] = {name: values[chosen] for name, values in every if isinstance(values, np.ndarray)}
        names = tuple(self.feature_names[index] for index in chosen)
        return replace(self, feature_names=names, bounds=(self.bounds[0][chosen], self.bounds[1][chosen]), **parts)

    def __getitem__(self, names: str | Sequence[str]) -> Description:
        """Return the description of one feature or of several, by name."""
        return self.part(indices_of(self.feature_names, names))

    @property
    def _shown_rows(self) -> list[int]:
        names = self.feature_names
        return [index for index, name in enumerate(names) if self.opposites.get(name) not in names]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values of the rows that the text shows, for JSON."""
        rows = self._shown_rows
        return super().to_dict() if len(rows) == len(self.feature_names) else self.part(rows).to_dict()

    @property
    def rows_text(self) -> str:
        """The number of rows and how far it can be trusted."""
        if self.n_rows is None:
            return "not released (the number of rows is private and nothing was spent on it)"
        counted = count_text(self.n_rows, 0.0 if self.count_is_public else self.count_noise)
        return counted if self.unit is None else f"{counted}, one of each {self.unit}"

    @property
    def noise_text(self) -> str:
        """Note on the noise in the table; empty if it is not known."""
        if self.mean is None:
            return ""
        if not np.isfinite(self.mean_noise).any():
            return f"{WHY_NOISE_UNKNOWN}."
        words = "± noise: standard deviation of the privacy noise in the number to its left, before repair."
        if any(self.mean_is_noise) or "noise" in self.deviation_cells:
            words += " “noise”: no more is known than the public bounds say."
        if any(self._below) or any(cell.startswith("below") for cell in self.deviation_cells):
            words += " “below”: noise does not distinguish the number from 0; its largest value (95 % confidence)."
        return words

    @property
    def mean_is_noise(self) -> list[bool]:
        """True if the noise on a mean is at least the SD of a guess within the public bounds."""
        lower, upper = self.bounds
        return [bool(noise) for noise in self.mean_noise >= (upper - lower) / math.sqrt(12.0)]

    @property
    def _below(self) -> list[float]:
        """Upper ends of the shares shown as below them; 0 for other features."""
        shown = self.share_is_unclear & ~np.array(self.mean_is_noise, dtype=bool)
        if not shown.any():
            return [0.0] * len(shown)
        return [float(end) for end in np.where(shown, np.maximum(self.conf_int()[:, 1], self.mean_noise), 0.0)]

    @property
    def deviation_limits(self) -> FloatArray:
        """Upper ends of the SDs that noise hides, 95 % confidence, within the bounds; else 0."""
        if self.standard_deviation is None:
            return np.zeros(len(self.feature_names))
        noise, half = self.standard_deviation_noise, np.ptp(self.bounds, axis=0) / 2.0
        shown = np.minimum(np.nan_to_num(self.standard_deviation, nan=0.0), half)
        hidden = (noise >= shown) & (noise > 0.0)
        most = np.where(hidden, np.maximum(self.deviation_below, noise), self.deviation_below)
        return np.where(most > 0.0, np.clip(most, shown, half), 0.0)

    @property
    def standard_deviation_is_noise(self) -> list[bool]:
        """True if no more is known of an SD than the public bounds say."""
        most = self.deviation_limits
        return [bool(lost) for lost in (most > 0.0) & (most >= np.ptp(self.bounds, axis=0) / 2.0)]

    @takes_level
    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Return intervals of the means of the population, shape (d, 2).

        Sampling and noise, within the public bounds.

        NaN where no mean was released, or the noise is not known.

        Raises
        ------
        ValueError
            If the level is below 0.5.
        """
        level, privacy, sampling = confidence_level(level), self.mean_noise**2, self.sampling_variance
        if self.noisy_mean is None or self.n_rows is None:
            return np.full((len(self.feature_names), 2), np.nan)
        factor = deviations_for(level, self.noise, privacy, sampling, self.sampling_degrees)
        # the sum about the noisy mean is 0, and the count is 1, in units of the count
        zero, one = np.zeros_like(privacy), np.ones_like(privacy)
        relative = (self.count_noise or 0.0) / self.n_rows if self.divisor_noise is None else self.divisor_noise
        count = np.full_like(privacy, relative**2)
        ends = fieller_interval(zero, one, (privacy, self.mean_count_covariance, count), sampling, factor)
        if self.hidden_by_cap is not None:
            ends = ends[0] - self.hidden_by_cap, ends[1] + self.hidden_by_cap
        # the mean after repair is inside, wherever the repair has moved it
        shown = self.noisy_mean if self.mean is None else self.mean
        low, high = np.minimum(self.noisy_mean + ends[0], shown), np.maximum(self.noisy_mean + ends[1], shown)
        known = np.stack(within_bounds(low, high, *self.bounds), axis=1)
        return np.where(np.isnan(privacy)[:, None], np.nan, known)

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"rows: {self.rows_text}",)

    def _columns(self) -> list[Column]:
        centered = self.standard_deviation is not None
        spread = self.standard_deviation if centered else self.root_mean_square
        shown = ("standard_deviation", "standard deviation") if centered else ("root_mean_square", "root mean square")
        unknown = np.full(len(self.feature_names), np.nan)
        means, spreads = (unknown if values is None else values for values in (self.mean, spread))
        noise = self.standard_deviation_noise

        cells = _describe_values(means, self.mean_noise, self.mean_is_noise)
        ends = rounded_cells(np.array(self._below), self.mean_noise)
        for index, most in enumerate(self._below):
            if most > 0.0:
                cells[index] = f"below {ends[index]}"

        dates = [self.dates.get(name) for name in self.feature_names]
        return [
            Column("feature", self.feature_names, "feature", label=True),
            Column("mean", self.mean, "mean", cells, errors=self.mean_noise, dates=dates),
            Column("mean_noise", self.mean_noise, "± noise", rounded_cells(*[self.mean_noise] * 2), dates=dates),
            Column("mean_is_noise", self.mean_is_noise),
            Column(
                "" if spread is None else shown[0],
                spread,
                shown[1],
                self.deviation_cells if centered else rounded_cells(spreads, noise),
                dates=dates,
            ),
            Column("standard_deviation_noise", noise, "± noise", rounded_cells(noise, noise), dates=dates),
            Column("standard_deviation_is_noise", self.standard_deviation_is_noise),
        ]

    @property
    def deviation_cells(self) -> list[str]:
        """SDs in words: a number, below its upper limit, or noise if that is the bounds' own."""
        if self.standard_deviation is None:
            return []
        most = self.deviation_limits
        cells = _describe_values(
            self.standard_deviation, self.standard_deviation_noise, self.standard_deviation_is_noise
        )
        return [
            f"below {end}" if upper > 0.0 and cell != "noise" else cell
            for cell, end, upper in zip(cells, rounded_cells(most, self.standard_deviation_noise), most, strict=True)
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.noise_text, self.scaled_rows, self.warning


_SCALED = "Rows longer than a private ball were scaled down to it; the errors include an estimate of what that hides."


def _describe_values(values: FloatArray, errors: FloatArray, is_noise: Sequence[bool]) -> list[str]:
    cells = rounded_cells(values, errors)
    return ["noise" if noise else cell for cell, noise in zip(cells, is_noise, strict=True)]


@in_floating_point
def describe(release: Moments, columns: Sequence[str] | None = None) -> Description:
    """Describe the mean and spread of every feature with their noise: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, optional
        Columns or features; default: all.

    Returns
    -------
    Description
        ``print`` shows it as a table; ``found["age"]`` and ``found[["age", "income"]]`` are parts of it.

    Raises
    ------
    ValueError
        If a name is unknown.

    Notes
    -----
    To first order, the noise on the mean is (noise of the sum − mean · noise of the count)/n, sum and mean about the private
    center, if any; the noise on a standard deviation is half the noise on n times the variance, over n and the standard
    deviation. The variance of levels and Booleans, and its noise, follow from p(1 − p) if the repair is ``"auto"`` or
    ``"structured"``, else from the noisy second moment.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), rho=0.5, neighbors="replace_one", insecure_seed=0)
    >>> found = released.describe()
    >>> found.standard_deviation.round(2), found.rows_text
    (array([0.29, 0.29]), '50,000 (public, exact)')
    """
    result = described(release)
    return result if columns is None else result.part(sorted(named_features(release, columns, word="columns")))


def described(release: Moments, *, tested: bool = True) -> Description:
    """Describe all features; tests of shares and standard deviations against 0 take longer."""
    names, with_mean, with_count = release.feature_names, release.noisy_sum is not None, release.noisy_count is not None
    unknown = np.full(len(names), np.nan)
    spread = unknown
    if with_count:
        variance = np.diag(release.covariance if with_mean else release.second_moment)
        spread = np.sqrt(np.where(variance >= 0, variance, np.nan))  # negative: a release without repair
    noise, shared = mean_noise(release)
    rows = float(release.sample_size) if with_count else math.nan
    weighting = release.weighting
    present = np.ones(len(names)) if release.present is None else release.present
    opposites = {first + 1: first for first, near_one in pairs_of_levels(release) if near_one}

    location, sampling, deviation_noise = None, unknown, unknown
    unclear, below = np.zeros(len(names), dtype=bool), np.zeros(len(names))
    if with_mean:
        moments = LocalMoments.of(release)
        location = moments.location.copy()
        if tested:
            shares, counts_as = share_mask(release) & (noise > 0.0), comparisons_of(release, range(len(names)))
            unclear = hidden_by_noise(location, noise, release.noise, shares, counts_as)
            deviation_noise, below = _deviation_noise(release, moments, spread, unclear)
        for second, first in opposites.items():  # limits of both levels hold together
            location[second], noise[second], shared[second] = 1.0 - location[first], noise[first], -shared[first]
        sampling = _sampling_variance(release, moments, noise)
        sampling[list(opposites)] = sampling[list(opposites.values())]

    return Description(
        feature_names=names,
        mean=release.mean if with_mean else None,
        mean_noise=noise,
        standard_deviation=spread if with_mean else None,
        standard_deviation_noise=deviation_noise,
        root_mean_square=None if with_mean else spread,
        n_rows=release.n_rows if with_count else None,
        count_noise=release.rows_noise,
        count_is_public=release.rows_noise == 0.0,
        mean_count_covariance=shared,
        sampling_variance=sampling,
        sampling_degrees=np.maximum(rows / release.privacy.rows_per_unit * present - 1.0, 1.0),
        noisy_mean=location,
        bounds=release.feature_bounds,
        share_is_unclear=unclear,
        deviation_below=below,
        noise=release.noise,
        divisor_noise=None
        if weighting is None or release.noise is None
        else math.sqrt(release.noise.count_variance) / rows,
        hidden_by_cap=None if weighting is None else weighting.hidden_by_cap(spread),
        unit=None if weighting is None else weighting.unit,
        scaled_rows=_SCALED if any(rule.code == "rows-scaled-to-ball" for rule in release.privacy.rules) else "",
        warning=cautions_in_full(release),
        opposites={names[second]: names[first] for second, first in opposites.items()},
        dates=dates_in(release.schema),
    )


def mean_noise(release: Moments) -> tuple[FloatArray, FloatArray]:
    """Return the noise SDs of the means, and their covariances with the count's noise."""
    # The latter is relative to the count.
    law, d = release.noise, len(release.feature_names)
    if release.noisy_sum is None or law is None:
        return np.full(d, np.nan), np.full(d, np.nan)
    # the sum is about the center, if there is one, and so is what the noise on the count is multiplied by
    about = release.unit_ball_mean if release.center is None else release.unit_ball_mean - release.center
    weights = np.zeros((d, 2, 2))
    weights[:, 0, 1] = weights[:, 1, 0] = 0.5
    weights[:, 0, 0] = -about
    indices = np.stack([np.zeros(d, dtype=int), np.arange(d) + 1], axis=1)
    alone, together = np.zeros_like(weights), weights.copy()
    alone[:, 0, 0] = 1.0
    together[:, 0, 0] += 1.0
    variances, of_count, of_both = (law.variance(indices, each) for each in (weights, alone, together))
    noise = np.sqrt(variances) / release.sample_size * release.encoding.scale
    shared = (of_both - variances - of_count) / 2.0 / release.sample_size**2 * release.encoding.scale
    certain = list(Constraints.of(release.schema, mean=True).certain)
    noise[certain] = shared[certain] = 0.0  # a column of one level: its share is 1 in every table
    return np.asarray(noise), np.asarray(np.zeros(d) if release.count_is_public else shared)


def _sampling_variance(release: Moments, moments: LocalMoments, mean_noise: FloatArray) -> FloatArray:
    """Return the sampling variances of the means, shape (d,), by the unrepaired variances."""
    # An interval of variance T, estimated with noise of SD s, misses too often by s²/T² to first order: s²/T is added
    # to T.
    variances = FeatureVariances.of(release, moments)
    unit = moments.unit**2 / max(moments.independent_rows - 1.0, 1.0)
    if release.present is not None:  # a mean is of the rows with a value
        unit = unit / release.present
    if release.weighting is not None:
        unit = unit * release.weighting.of_means(np.clip(np.nan_to_num(moments.location), 0.0, 1.0))
    sampling = np.maximum(variances.values, 0.0) / moments.n_rows * unit
    noise = np.nan_to_num(variances.noise_per_row(moments), nan=0.0) * unit
    total = sampling + np.nan_to_num(mean_noise, nan=0.0) ** 2
    return sampling + np.divide(noise**2, total, out=np.zeros_like(total), where=total > 0.0)


def _deviation_noise(
    release: Moments, moments: LocalMoments, deviations: FloatArray, unclear_shares: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the noise of SDs, and upper limits of SDs not distinguishable from 0."""
    variances = FeatureVariances.of(release, moments, as_shown=True)
    per_row, of_share = variances.noise_per_row(moments), variances.of_share
    noise, known = per_row * moments.unit**2, np.nan_to_num(deviations, nan=0.0)
    # at a standard deviation far below its noise the first order says too much: no root moves further than √noise
    result = np.minimum(np.sqrt(noise), np.divide(noise, 2.0 * known, out=np.sqrt(noise), where=known > 0.0))
    if moments.law is None:
        return result, np.zeros(len(noise))
    # what clipping hides only adds to a variance, which is known to be above 0 without it
    drawn = variances.noise_per_row(replace(moments, law=moments.law.drawn))
    values, tested = variances.values / moments.n_rows, (per_row > 0.0) & ~of_share
    hidden = hidden_by_noise(values, drawn, moments.law, tested & (drawn > 0.0))
    most = most_with_noise(values, per_row, moments.law)
    return result, np.where(np.where(of_share, unclear_shares, hidden), np.sqrt(most) * moments.unit, 0.0)


_MAX_FEATURES = 12
_MAX_TEXT_LENGTH = 2000
_MAX_NAME_LENGTH = 48
_FRAME = "border:1px solid rgba(128,128,128,.45);border-radius:4px;padding:.6em 1em;max-width:56em"
_WARNING = "border-left:4px solid #d55e00;padding-left:.6em;margin:.5em 0"
_NOT_PRIVATE = "NOT PRIVATE: made with an insecure seed."
_WAYS_ON = ("describe()", "plot.correlation()", "ols(…)", 'save("release.json")')


def card(
    title: str,
    facts: Sequence[str],
    table: Sequence[Sequence[str]],
    privacy: PrivacyStatement,
    warnings: Sequence[str],
    ways_on: Sequence[str],
) -> str:
    """Format a card as HTML: facts, a table, warnings and next calls.

    The table has its head first, and is cut if long; warnings may be empty.

    >>> from dpmoments.privacy.budget import PrivacyBudget
    >>> from dpmoments.privacy.unit import Neighbors
    >>> said = PrivacyStatement(PrivacyBudget.pure(1.0), Neighbors.ADD_REMOVE, "exact-lattice", True, (), "0")
    >>> "<i>" in card("a <i>name</i>", [], [("feature",)], said, [], [])
    False
    """
    head, *rows = table
    hidden = len(rows) - _MAX_FEATURES
    shown = rows if hidden <= 1 else rows[:_MAX_FEATURES]
    more = f"<p>… and {hidden:,} more</p>" if hidden > 1 else ""
    insecure = "" if privacy.private else f'<p style="{_WARNING}"><strong>{_NOT_PRIVATE}</strong></p>'
    warned = "".join(f'<p style="{_WARNING}">{_escaped(said)}</p>' for said in warnings if said)
    summary = _escaped(f"Privacy: {privacy.budget}, {privacy.neighbors}")
    calls = " ".join(f'<code style="white-space:nowrap">{_escaped(call)}</code>' for call in ways_on)
    return (
        f'<div style="{_FRAME}"><p><strong>{_escaped(title)}</strong></p>{insecure}{warned}'
        f"{''.join(f'<p>{_escaped(fact)}</p>' for fact in facts if fact)}"
        f"{html_table([head, *shown], _escaped)}{more}"
        f'<details style="margin:1em 0"><summary>{summary}</summary>'
        f"{''.join(f'<p>{_escaped(line)}</p>' for line in privacy.describe().splitlines() if line)}</details>"
        f"<p>{calls}</p></div>"
    )


def release_card(release: Moments) -> str:
    """Format the card of a release of moments."""
    n_columns, d = len(release.schema.columns), len(release.feature_names)
    of_columns = f" of {n_columns} columns" if n_columns != d else ""
    title = f"Release of {d:,} feature{'s' if d != 1 else ''}{of_columns} by {release.mechanism}"
    try:
        result = describe(release)
    except ValueError as refusal:  # a file may hold any numbers, and is to be shown all the same
        return card(title, [str(refusal)], [("",)], release.privacy, [], [])
    law = "" if release.noise is not None else WHY_NOISE_UNKNOWN
    return card(
        title,
        [f"rows: {result.rows_text}", law or result.noise_text],
        [
            [label(cell, _MAX_NAME_LENGTH) if index == 0 else cell for index, cell in enumerate(row)]
            for row in result.table()
        ],
        release.privacy,
        [cautions_in_full(release)],
        [f"release.{call}" for call in _WAYS_ON],
    )


def _escaped(text: str) -> str:
    """Escape text for HTML, without characters that change its direction or control a terminal."""
    return html.escape(label(text, _MAX_TEXT_LENGTH))
