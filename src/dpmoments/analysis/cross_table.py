"""Counts of rows by two columns or more, with their noise and a test of independence.

Cross tables are of moments, count tables of noisy counts. Counts are possible ones, and the test includes the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import (
    Answer,
    Column,
    confidence_level,
    count_text,
    format_level,
    in_floating_point,
    rounded,
    takes_level,
)
from dpmoments.analysis.confidence import (
    decided,
    format_probability,
    hidden_by_noise,
    most_with_noise,
    not_clear,
    score_test,
)
from dpmoments.analysis.effects import odds_ratio
from dpmoments.analysis.estimate import Estimates
from dpmoments.analysis.functionals import LocalMoments, bilinear, describe_law
from dpmoments.analysis.group_means import Levels, PresentRows, whole_counts
from dpmoments.analysis.released import Moments, cautions_by_code, needs_mean
from dpmoments.base.errors import InputValueError, closest, shown
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.moments.cells import CountNoise
from dpmoments.moments.law import NoiseLaw
from dpmoments.schema.constraints import Constraints, Level

_ROUNDS = 50
"""Rounds of fitting counts to their margins in turn."""
_MIN = 1e-3
"""A cell's share at least, of what it would be under independence."""


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable(Answer):
    """Counts of rows by the levels of two columns, and a test of their independence.

    Attributes
    ----------
    by, other : str
        The columns; the first makes the rows.
    rows, labels : tuple of str
        Their levels.
    counts : integer ndarray of shape (k, l)
        Whole numbers, 0 or above; their sums over rows and columns are the margins, and all together at most ``n_rows``.
    noise : ndarray of shape (k, l)
        Noise SDs of the counts, before repair; NaN if not known.
    below : integer ndarray of shape (k, l)
        Above the largest counts (95 % confidence, not of a population) of the cells that noise does not distinguish from empty
        ones, by Holm's correction over the table at 5 %; 0 for the others.
    margin_noise : tuple of two ndarrays and float
        Noise SDs of the margins, and of the number of rows; NaN if not known.
    n_rows : int
        Rows that have a value of both columns.
    statistic : float
        χ² of the score test of independence, noise and sampling together; NaN if the noise is not known.
    degrees : int
    p_value : float
    level : float
    rows_per_unit : int
        Most rows of one privacy unit: factor of the sampling variance.
    some_missing : bool
        True if values of the columns can be missing.
    population : float or None
        Public size of the population that weighted rows stand for.
    population_error : ndarray of shape (k + 1, l + 1) or None
        SDs of ``population_counts`` by noise, sampling and the cap of weights; None without a public population.
    warning : str
    release : Moments or None
        None of a table of noisy counts.
    """

    by: str
    other: str
    rows: tuple[str, ...]
    labels: tuple[str, ...]
    counts: IntegerArray
    noise: FloatArray
    below: IntegerArray
    margin_noise: tuple[FloatArray, FloatArray, float]
    n_rows: int
    statistic: float
    degrees: int
    p_value: float
    level: float
    rows_per_unit: int = 1
    some_missing: bool = False
    population: float | None = None
    population_error: FloatArray | None = None
    warning: str = ""
    release: Moments | None = None

    facts = (
        *("by", "other", "rows", "columns: labels", "counts", "noise", "n_rows", "degrees", "statistic", "p_value"),
        *("population_counts?", "population_error?", "level", "verdict", "warning"),
    )

    @property
    def margins(self) -> tuple[IntegerArray, IntegerArray]:
        """Sums of the counts over each row and over each column."""
        return self.counts.sum(axis=1), self.counts.sum(axis=0)

    @property
    def population_counts(self) -> FloatArray | None:
        """People of each cell, margins last, (k + 1, l + 1); None without a public population."""
        if self.population is None:
            return None
        across, down = self.margins
        return np.block([[self.counts, across[:, None]], [down, down.sum()]]) * (self.population / self.n_rows)

    @cached_property
    def _ratios(self) -> Estimates:
        if self.release is None or self.counts.shape != (2, 2):
            raise InputValueError(
                "odds and risk ratios are of two columns of two levels in a release of moments: release.odds_ratio(outcome, "
                "exposure) takes any two levels"
            )
        own = self.release.feature_names
        outcome, exposure = (
            name if name in own else levels[1] for name, levels in ((self.other, self.labels), (self.by, self.rows))
        )
        return odds_ratio(self.release, outcome, exposure, level=self.level)

    @property
    def oddsratio(self) -> float:
        """Odds ratio of a 2×2 table, as :func:`dpmoments.analysis.effects.odds_ratio` has it."""
        return self._ratios["oddsratio"][0]

    @property
    def riskratio(self) -> float:
        """Share of the second level of ``other`` in the second row over that in the first."""
        return self._ratios["riskratio"][0]

    @takes_level
    def oddsratio_confint(self, level: float | None = None) -> tuple[float, float]:
        """Return the interval of the odds ratio."""
        return (self if level is None else replace(self, level=confidence_level(level)))._ratios["oddsratio"][1:]

    @takes_level
    def riskratio_confint(self, level: float | None = None) -> tuple[float, float]:
        """Return the interval of the risk ratio."""
        return (self if level is None else replace(self, level=confidence_level(level)))._ratios["riskratio"][1:]

    @property
    def verdict(self) -> str:
        """Verdict on the dependence of the columns."""
        if self.p_value < 1.0 - self.level:
            return "dependent"
        across, down = (_shares(margin.astype(float)) for margin in self.margins)
        expected = np.outer(across, down)
        sampling = self.rows_per_unit * self.n_rows * float(np.sum(expected * (1.0 - expected)))
        return decided(self.p_value, not_clear(float(np.sum(self.noise**2)), sampling))

    @property
    def heading(self) -> tuple[str, ...]:
        kind = "rows" if self.release is None or self.release.weighting is None else "effective rows"
        rows = f"{_with_noise(self.n_rows, self.margin_noise[2])} {kind}{' with both' if self.some_missing else ''}"
        people = "" if self.population is None else f", as shares of {self.population:,.0f} people"
        return (f"{self.by} by {self.other}: {rows}{people}",)

    def table(self) -> list[tuple[str, ...]]:
        """Return a line per level of the first column, its margin last."""
        across, down = (
            [_with_noise(*pair) for pair in zip(margin.tolist(), noise.tolist(), strict=True)]
            for margin, noise in zip(self.margins, self.margin_noise[:2], strict=True)
        )
        given = self._given_by_margins.tolist()
        if (people := self.population_counts) is not None and self.population_error is not None:
            pairs = zip(people.ravel().tolist(), self.population_error.ravel().tolist(), strict=True)
            texts = [
                f"{rounded(*pair)} ± {rounded(pair[1], pair[1])}" if pair[1] else f"{pair[0]:,.0f}" for pair in pairs
            ]
            of_people = np.array(texts, dtype=object).reshape(people.shape)
            for i, j in np.argwhere(~self._given_by_margins):
                of_people[i, j] = f"below {self.below[i, j] * people[-1, -1] / self.counts.sum():,.0f}"
            with_margin = zip((*self.rows, "total"), of_people.tolist(), strict=True)
            return [("", *self.labels, "total"), *((name, *map(str, line)) for name, line in with_margin)]
        lines = []
        for name, *cells, total in zip(
            self.rows, self.counts.tolist(), self.below.tolist(), given, across, strict=True
        ):
            shown = [
                f"{count:,} (below {end:,})" if known and end else f"below {end:,}" if end else f"{count:,}"
                for count, end, known in zip(*cells, strict=True)
            ]
            lines.append((name, *shown, total))
        foot = ("total", *down, _with_noise(int(self.counts.sum()), self.margin_noise[2]))
        return [("", *self.labels, "total"), *lines, foot]

    @property
    def _given_by_margins(self) -> BoolArray:
        """Cells that follow from their margins and the counts that are shown."""
        hidden = self.below > 0
        while True:
            one = hidden & ((hidden.sum(axis=0) == 1) | (hidden.sum(axis=1) == 1)[:, None])
            if not one.any():
                return ~hidden
            hidden &= ~one

    @property
    def test_text(self) -> str:
        """The test of independence in words."""
        words = {"dependent": "the columns are dependent"}.get(self.verdict, f"dependence {self.verdict}")
        return (
            f"Independence test: χ²({self.degrees}) = {self.statistic:,.1f}, {format_probability(self.p_value)}, including "
            f"privacy noise: {words}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        if math.isnan(self.p_value):
            return describe_law(None), self.warning
        least, most = float(self.noise.min()), float(self.noise.max())
        low, high = rounded(least, least), rounded(most, most)
        span = f"± {low}" if low == high else f"± {low} to {high}"
        return (
            "±: 1 SD, privacy noise, sampling and what the cap of weights may hide together"
            if self.population is not None
            else f"noise on a count: {span} (1 SD, before negative counts were corrected)",
            "“below”: noise does not distinguish the cell from an empty one; its largest count (95 % confidence)"
            if self.below.any()
            else "",
            self.test_text,
            self.warning,
        )

    def _columns(self) -> list[Column]:
        other = self.other if self.other != self.by else f"{self.other} "
        return [
            Column(self.by, [name for name in self.rows for _ in self.labels], label=True),
            Column(other, [*self.labels] * len(self.rows), label=True),
            Column("count", self.counts.ravel()),
            Column("noise", self.noise.ravel()),
        ]


def _with_noise(count: int, noise: float) -> str:
    return f"{count:,} ± {rounded(noise, noise)}" if noise > 0.0 else f"{count:,}"


@in_floating_point
def cross_table(release: Moments, by: str, other: str, *, level: float = 0.95) -> CrossTable:
    """Count rows by two columns and test their independence by chi-square: free of privacy cost.

    Parameters
    ----------
    release : Moments
    by, other : str
        Two categorical or Boolean columns; the first makes the rows of the table.
    level : float
        The columns are called dependent if the p-value is below 1 − level.

    Returns
    -------
    CrossTable

    Raises
    ------
    ValueError
        If a name is not of such a column, both are the same, the level is below 0.5, or no mean was released.

    Notes
    -----
    Counts come from the ``structured`` repair, fitted and rounded to the rows of the groups. The test compares the
    counts before repair, less the counts expected under independence, with their covariance by multinomial sampling and noise:
    Pearson's χ² would call noise dependence.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> smoker = rng.random(10_000) < 0.3
    >>> table = pa.table({"smoker": smoker, "insured": rng.random(10_000) < 0.9 - 0.5 * smoker})
    >>> schema = dpm.Schema(dpm.Boolean("smoker"), dpm.Boolean("insured"))
    >>> found = dpm.release(table, schema, epsilon=1.0, insecure_seed=0).cross_table("smoker", "insured")
    >>> found.verdict, bool(found.counts.sum() == found.n_rows)
    ('dependent', True)
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise needs_mean("a cross table")
    first, second = Levels.of(release, by), Levels.of(release, other)
    if by == other:
        raise InputValueError(f"a cross table is of two columns, and both are {shown(by)}: name another")
    joint, noise, privacy, rows = _joint_counts(release, first, second)
    across, down = np.ones(len(first.names)), np.ones(len(second.names))
    dependence, population = float(release.privacy.rows_per_unit), None
    if (weighting := release.weighting) is not None:
        across, down = (
            weighting.of_groups(levels.weights, levels.features, release.mean) for levels in (first, second)
        )
        population = weighting.population
        dependence *= float(weighting.stated[[*first.features, *second.features]].max())
    weights = np.maximum(across[:, None] + down - 1.0, 0.25)
    statistic, degrees, p_value = independence_test(joint, privacy, dependence * rows, release.noise, weights)
    counts = _feasible_counts(release, first, second)
    some_missing = PresentRows.of(release, first.features[0], second.features[0]) is not None
    if some_missing:  # of the rows with both
        of_pairs = privacy.reshape(*counts.shape, *counts.shape)
        variances = np.einsum("iaib->i", of_pairs), np.einsum("iaja->a", of_pairs), privacy.sum()
        margin_noise = np.sqrt(variances[0]), np.sqrt(variances[1]), float(np.sqrt(variances[2]))
    else:
        of_rows = (
            0.0 if release.count_is_public else math.nan if release.noise is None else release.noise.count_variance
        )
        margin_noise = first.noisy_counts(release)[1], second.noisy_counts(release)[1], math.sqrt(of_rows)
    population_error = None
    if weighting is not None and population is not None:
        shares = np.block([[counts, counts.sum(1)[:, None]], [counts.sum(0), counts.sum()]]) / max(round(rows), 1)
        ratios = np.block([[weights, across[:, None]], [down, 1.0]])
        of_counts = np.block([[noise, margin_noise[0][:, None]], [margin_noise[1], 0.0]]) ** 2
        of_counts += (shares * margin_noise[2]) ** 2  # what they are divided by is noisy as well
        of_counts[-1, -1] = ((1.0 - shares[-1, -1]) * margin_noise[2]) ** 2
        of_counts += dependence * rows * np.maximum(shares * ((1.0 - 2.0 * shares) * ratios + shares), 0.0)
        # what a cap may hide is the most that was measured: two SDs of it
        hidden = weighting.hidden_by_cap(np.sqrt(np.maximum(shares * (1.0 - shares), 0.0)))
        of_counts += (rows * hidden / 2.0) ** 2
        population_error = np.sqrt(of_counts) * (population / rows)
    return CrossTable(
        by=by,
        other=other,
        rows=first.names,
        labels=second.names,
        counts=counts,
        noise=noise,
        population=population,
        population_error=population_error,
        below=counts_below(joint, noise, counts, release.noise),
        margin_noise=margin_noise,
        n_rows=round(rows),
        statistic=statistic,
        degrees=degrees,
        p_value=p_value if release.noise is not None else math.nan,
        level=level,
        rows_per_unit=release.privacy.rows_per_unit,
        some_missing=some_missing,
        warning=cautions_by_code(release),
        release=release,
    )


def counts_below(
    noisy: FloatArray, noise: FloatArray, counts: IntegerArray, law: NoiseLaw | CountNoise | None
) -> IntegerArray:
    """Return upper limits of the counts that noise does not distinguish from 0; else 0."""
    tested = noise > 0.0
    hidden = hidden_by_noise(noisy, noise, law, tested)
    most = np.maximum(most_with_noise(noisy, noise, law), counts)
    step = 10.0 ** np.maximum(np.floor(np.log10(np.where(tested, noise, 1.0))) - 1.0, 0.0)
    result: IntegerArray = np.where(hidden, (np.floor(most / step) + 1.0) * step, 0.0).astype(np.int64)
    result.setflags(write=False)
    return result


def independence_test(
    joint: FloatArray,
    privacy: FloatArray,
    rows: float,
    law: NoiseLaw | CountNoise | None,
    weights: FloatArray | float = 1.0,
) -> tuple[float, int, float]:
    """Return χ² of the score test of independence, its degrees of freedom and its p-value."""
    # `joint` are noisy counts without bias, shape (k, l); `privacy` is the covariance of their noise, shape (kl, kl).
    # `rows` is the number of rows, times the most rows of a privacy unit: it scales the sampling variance, and so do the
    # mean `weights` of the rows in a cell, over that of all, (k, l).
    p, q = _shares(joint.sum(axis=1)), _shares(joint.sum(axis=0))
    expected = np.outer(p, q).ravel()
    sampling = rows * (np.diag(expected * np.ravel(weights)) - np.outer(expected, expected))
    # (I − p1ᵀ) J (I − 1qᵀ): what is left of the counts when margins are taken away
    doubly = np.kron(np.eye(len(p)) - np.outer(p, np.ones(len(p))), np.eye(len(q)) - np.outer(q, np.ones(len(q))))
    wanted = (len(p) - 1) * (len(q) - 1)
    return score_test(doubly @ joint.ravel(), doubly @ privacy @ doubly.T, doubly @ sampling @ doubly.T, wanted, law)


def _joint_counts(release: Moments, first: Levels, second: Levels) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return unrepaired joint counts and noise, (k, l)."""
    # Also the noise's covariance, (kl, kl), and the number of rows that have both levels.
    k, c = len(first.names), len(second.names)
    if (present := PresentRows.of(release, first.features[0], second.features[0])) is not None:
        across, down = (present.of_groups(levels) for levels in (first, second))
        released, privacy = present.totals(np.repeat(across, c, axis=0), np.tile(down, (k, 1)))
        noise = np.sqrt(np.diag(privacy)).reshape(k, c)
        return released.reshape(k, c), noise, privacy, max(_rows_with_both(release, first, second), 1.0)
    moments = LocalMoments.of(release, [*first.features, *second.features])
    indices = np.array([0, *(index + 1 for index in first.features + second.features)])
    m = len(first.features)
    across, down = (_adding_up(release, levels) for levels in (first, second))
    rows = np.concatenate([across, np.zeros((k, len(indices) - 1 - m))], axis=1)
    columns = np.concatenate([down[:, :1], np.zeros((c, m)), down[:, 1:]], axis=1)
    weights = bilinear(np.repeat(rows, c, axis=0), np.tile(columns, (k, 1)))
    joint = np.einsum("pij,ij->p", weights, moments.moments[np.ix_(indices, indices)]).reshape(k, c)
    privacy = moments.covariance(indices, weights)
    noise = np.sqrt(np.diag(privacy)).reshape(k, c)
    return joint, noise, privacy, moments.n_rows


def _adding_up(release: Moments, levels: Levels) -> FloatArray:
    """Return the weights of groups, which add up to 1 where all rows have a level."""
    weights, blocks = levels.weights, Constraints.of(release.schema, mean=True).blocks
    if any(block.complete and block.start == levels.features[0] for block in blocks):
        weights = weights + (np.eye(1, weights.shape[1]) - weights.sum(axis=0)) / len(weights)
    return weights


def _rows_with_both(release: Moments, first: Levels, second: Levels) -> float:
    share = release.both_present
    return release.sample_size * (1.0 if share is None else float(share[first.features[0], second.features[0]]))


def _shares(counts: FloatArray) -> FloatArray:
    """Return the shares of a margin, each at least the share of a tenth of a row."""
    possible = np.maximum(counts, 0.1)
    return np.asarray(possible / possible.sum())


def _feasible_counts(release: Moments, first: Levels, second: Levels) -> IntegerArray:
    """Return whole counts ≥ 0 near the repaired ones, whose margins are the groups' rows."""
    repaired = release.with_repair("structured")
    margins = first.row_counts(repaired), second.row_counts(repaired)
    # a row without a level is in no cell: then the larger margin has rows that the table has not
    total = min(*(int(margin.sum()) for margin in margins), round(_rows_with_both(release, first, second)))
    across, down = (whole_counts(margin * (total / max(int(margin.sum()), 1)), total) for margin in margins)
    p, q = (np.clip(levels.shares(repaired.mean), 0.0, 1.0) for levels in (first, second))
    covariance = repaired.covariance[np.ix_(first.features, second.features)]
    crossed = first.weights[:, 1:] @ covariance @ second.weights[:, 1:].T
    # no cell is quite 0, so that every margin can be met
    fitted = np.maximum(crossed + np.outer(p, q), _MIN * np.outer(p, q)) * release.sample_size
    for _ in range(_ROUNDS):
        for axis, wanted in ((1, across), (0, down)):
            actual = fitted.sum(axis=axis)
            ratio = np.divide(wanted, actual, out=np.ones(len(wanted)), where=actual > 0.0)
            fitted = fitted * np.expand_dims(ratio, axis)
    return _rounded_to_margins(fitted, across, down)


def _rounded_to_margins(counts: FloatArray, across: IntegerArray, down: IntegerArray) -> IntegerArray:
    """Return the nearest whole numbers ≥ 0 with these sums over rows and columns."""
    # Σ|whole − counts| is least. In each cell the first unit above the floor, more of them, and units taken off it cost
    # different amounts: a transport problem, whose vertices are whole numbers.
    k, m = counts.shape
    floor = np.floor(counts)
    above = (counts - floor).ravel()
    of_rows = scipy.sparse.kron(scipy.sparse.eye(k), np.ones((1, m)))
    of_columns = scipy.sparse.kron(np.ones((1, k)), scipy.sparse.eye(m))
    sums: Any = scipy.sparse.hstack([scipy.sparse.vstack([of_rows, of_columns])] * 3) @ scipy.sparse.diags(
        np.repeat([1.0, 1.0, -1.0], k * m)
    )
    lacking = np.concatenate([across - floor.sum(axis=1), down - floor.sum(axis=0)])
    solved = scipy.optimize.linprog(
        np.concatenate([1.0 - 2.0 * above, np.ones(2 * k * m)]),
        A_eq=sums,
        b_eq=lacking,
        bounds=[*[(0.0, 1.0)] * (k * m), *[(0.0, None)] * (k * m), *((0.0, most) for most in floor.ravel().tolist())],
        method="highs-ds",
    )
    one, more, fewer = np.round(np.asarray(solved.x, dtype=float)).astype(np.int64).reshape(3, k, m)
    whole: IntegerArray = floor.astype(np.int64) + one + more - fewer
    whole.setflags(write=False)
    return whole


def possible_counts(noisy: FloatArray, total: int | None = None) -> IntegerArray:
    """Return the possible counts of this total nearest to noisy counts, as whole numbers.

    The least-squares projection on counts of 0 or above that sum to the total subtracts one number from all counts and sets
    what is negative to 0. The total is the public one, or else the sum of the noisy counts, which has no bias; setting each
    negative count to 0 by itself would add rows. Rounding keeps the total: the largest fractions are rounded up. A tie goes to
    the first cell.
    """
    cells = noisy.ravel()
    wanted = max(0, round(float(cells.sum()))) if total is None else total
    ordered = np.sort(cells)[::-1]
    excess = (np.cumsum(ordered) - wanted) / np.arange(1, len(cells) + 1)
    kept = max(1, int(np.count_nonzero(ordered > excess)))
    exact = np.maximum(cells - excess[kept - 1], 0.0)
    whole = np.floor(exact).astype(np.int64)
    missing = wanted - int(whole.sum())
    by_fraction = np.argsort(-(exact - whole), kind="stable")
    whole[by_fraction[: max(0, missing)]] += 1
    counts: IntegerArray = whole.reshape(noisy.shape)
    return counts


MAX_TESTED = 2_000
"""Most cells of a table whose independence is tested: it inverts a matrix of this size."""


@dataclass(frozen=True, eq=False, repr=False)
class CountTable(Answer):
    """Counts of rows in the cells of a contingency table, or of a margin of it.

    Attributes
    ----------
    by : tuple of str
        Columns of the table; one axis of every array each.
    levels : tuple of tuples
        Levels of every column.
    noisy_counts : ndarray
        Counts as released, without bias: some may be negative.
    counts : integer ndarray
        Possible counts nearest to them: whole numbers, 0 or above; those of a margin are sums of the table's.
    noise : CountNoise
        Noise distribution of an entry of ``noisy_counts``.
    public_rows : int or None
        The sum of all counts, if it is public.
    rows_per_unit : int
        Most rows of one privacy unit: factor of the sampling variance.
    level : float
        Confidence level of the intervals.
    """

    by: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    noisy_counts: FloatArray
    counts: IntegerArray
    noise: CountNoise
    public_rows: int | None = None
    rows_per_unit: int = 1
    level: float = 0.95

    facts = ("by", "n_rows", "standard_error", "level", "cells: *")

    @classmethod
    def of(
        cls,
        by: tuple[str, ...],
        levels: tuple[tuple[Level, ...], ...],
        noisy_counts: FloatArray,
        noise: CountNoise,
        public_rows: int | None = None,
        rows_per_unit: int = 1,
    ) -> CountTable:
        """Return the table of noisy counts, with possible ones."""
        counts = possible_counts(noisy_counts, public_rows)
        for array in (noisy_counts, counts):
            array.setflags(write=False)
        return cls(by, levels, noisy_counts, counts, noise, public_rows, rows_per_unit)

    @property
    def n_rows(self) -> int:
        """Number of rows in the table: the sum of its counts."""
        return int(self.counts.sum())

    @property
    def shares(self) -> FloatArray:
        """Counts as shares of all rows in the table; zeros if it has none."""
        return self.counts / max(self.n_rows, 1)

    @property
    def standard_error(self) -> float:
        """Privacy noise SD of each count, before repair."""
        return self.noise.standard_deviation

    @property
    def total_error(self) -> float:
        """Privacy noise SD of the sum of all counts."""
        return 0.0 if self.public_rows is not None else self.noise.of_sum(self.counts.size).standard_deviation

    @takes_level
    def conf_int(self, level: float | None = None) -> FloatArray:
        """Compute confidence intervals for the table's counts, from the exact noise distribution.

        Parameters
        ----------
        level : float, optional
            Confidence level of each interval; default: the table's. All of them hold jointly less often.

        Returns
        -------
        ndarray of shape (..., 2)
            Lower and upper ends: the noisy count and what its noise may be, within what is possible, and widened to include
            the repaired count.

        Notes
        -----
        It includes privacy noise only: it is for the counts of this table's rows, not of their population.
        """
        half = self.noise.half_width(confidence_level(self.level if level is None else level))
        highest = np.inf if self.public_rows is None else float(self.public_rows)
        lower = np.minimum(np.clip(self.noisy_counts - half, 0.0, highest), self.counts)
        upper = np.maximum(np.clip(self.noisy_counts + half, 0.0, highest), self.counts)
        return np.stack([np.ceil(lower), np.floor(upper)], axis=-1)

    def margin(self, *by: str) -> CountTable:
        """Return the counts by some of its columns, summed over the others; their noise adds up."""
        for name in by:
            if name not in self.by:
                close = closest(name, self.by)
                question = f" (did you mean '{close}'?)" if close else ""
                raise InputValueError(f"'{name}' is not a column of this table of {', '.join(self.by)}{question}")
        axes = tuple(map(self.by.index, by))
        if len(set(axes)) < len(axes):
            raise InputValueError(f"a margin names a column twice: {shown(by)}")
        others = tuple(axis for axis in range(len(self.by)) if axis not in axes)
        summed = int(np.prod([len(self.levels[axis]) for axis in others], dtype=np.int64))
        order = tuple(map(sorted(axes).index, axes))
        return replace(
            self,
            by=tuple(by),
            levels=tuple(self.levels[axis] for axis in axes),
            noisy_counts=np.asarray(self.noisy_counts.sum(axis=others)).transpose(order),
            counts=np.asarray(self.counts.sum(axis=others)).transpose(order),
            noise=self.noise.of_sum(summed),
        )

    def cross_table(self, by: str, other: str, *, level: float = 0.95) -> CrossTable:
        """Count rows by two of its columns and test their independence by chi-square."""
        level = confidence_level(level)
        if by == other:
            raise InputValueError(f"a cross table is of two columns, and both are {shown(by)}: name another")
        table = self.margin(by, other)
        if table.counts.size > MAX_TESTED:
            raise InputValueError(
                f"a cross table of {table.counts.size:,} cells cannot be tested, and {MAX_TESTED:,} are the most: "
                "name columns of fewer levels; release.table(...) has its counts"
            )
        variance = table.standard_error**2
        privacy = variance * np.eye(table.counts.size)
        k, c = table.counts.shape
        of_margins = [np.full(size, table.noise.of_sum(summed).standard_deviation) for size, summed in ((k, c), (c, k))]
        statistic, degrees, p_value = independence_test(
            table.noisy_counts, privacy, float(table.rows_per_unit * table.n_rows), table.noise
        )
        noise = np.full(table.counts.shape, table.standard_error)
        hidden = hidden_by_noise(table.noisy_counts, noise, table.noise, noise > 0.0)
        return CrossTable(
            by=by,
            other=other,
            rows=_named(by, table.levels[0]),
            labels=_named(other, table.levels[1]),
            counts=table.counts,
            noise=noise,
            below=np.where(hidden, table.conf_int(0.95)[..., 1] + 1.0, 0.0).astype(np.int64),
            margin_noise=(of_margins[0], of_margins[1], table.total_error),
            n_rows=table.n_rows,
            statistic=statistic,
            degrees=degrees,
            p_value=p_value,
            level=level,
            rows_per_unit=table.rows_per_unit,
        )

    def at_level(self, level: float) -> CountTable:
        """Return the table with intervals of another confidence level."""
        return replace(self, level=confidence_level(level))

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"counts by {', '.join(self.by)}; rows: {count_text(self.n_rows, self.total_error)}",)

    @property
    def remarks(self) -> tuple[str, ...]:
        error = rounded(self.standard_error, self.standard_error)
        lowest = self.conf_int()[..., 0]
        empty = int(np.count_nonzero(lowest <= 0.0))
        unknown = f"Not distinguishable from empty cells: {empty:,} of {lowest.size:,}." if empty else ""
        return (
            f"Privacy noise on each count: ± {error} (SD, before repair: whole numbers, none negative, with an unbiased total).",
            f"{format_level(self.level)} intervals are for the counts of this table's rows; they do not include sampling error.",
            unknown,
        )

    def _columns(self) -> list[Column]:
        cells = list(product(*self.levels))
        levels = [[cell[axis] for cell in cells] for axis in range(len(self.by))]
        taken = set(self.by)
        lower, upper = np.moveaxis(self.conf_int(), -1, 0).reshape(2, -1)
        counts = self.counts.ravel()

        def named(name: str) -> str:
            return f"{name} " if name in taken else name

        return [
            *(
                Column(name, values, name, [str(level) for level in values], label=True)
                for name, values in zip(self.by, levels, strict=True)
            ),
            Column(named("count"), counts, "count", [f"{count:,}" for count in counts.tolist()]),
            Column(named("noisy_count"), self.noisy_counts.ravel()),
            Column(named("noise"), np.full(counts.size, self.standard_error)),
            Column(named("share"), self.shares.ravel(), "share", [f"{share:.1%}" for share in self.shares.ravel()]),
            Column(named("lower"), lower),
            Column(named("upper"), upper),
            Column(
                head=f"{format_level(self.level)} interval",
                cells=[f"[{low:,.0f}, {high:,.0f}]" for low, high in zip(lower.tolist(), upper.tolist(), strict=True)],
            ),
        ]


def _named(column: str, levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the names of levels as cross tables of moments have them."""
    return tuple(f"{column}={str(level).lower() if isinstance(level, bool) else level}" for level in levels)
