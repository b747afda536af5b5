"""Counts of rows by two columns of levels, with noise and a test of independence.

Counts are possible ones, and the test includes the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, confidence_level, in_floating_point, rounded
from dpmoments.analysis.confidence import Quantiles, format_probability, score_test
from dpmoments.analysis.functionals import LocalMoments, bilinear, describe_law
from dpmoments.analysis.group_sums import Levels, PresentRows, whole_counts
from dpmoments.analysis.released import Moments, cautions_by_code
from dpmoments.analysis.resolvability import decided, hidden_by_noise, not_clear
from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import shown
from dpmoments.messages.message import Message
from dpmoments.noise.cells import CountNoise
from dpmoments.noise.terms import NoiseLaw

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
    warning : str
    """

    by: str
    other: str
    rows: tuple[str, ...]
    labels: tuple[str, ...]
    counts: IntegerArray
    noise: FloatArray
    below: IntegerArray
    n_rows: int
    statistic: float
    degrees: int
    p_value: float
    level: float
    rows_per_unit: int = 1
    some_missing: bool = False
    warning: str = ""

    facts = (
        *("by", "other", "rows", "columns: labels", "counts", "noise", "n_rows", "degrees", "statistic", "p_value"),
        *("level", "verdict", "warning"),
    )

    @property
    def margins(self) -> tuple[IntegerArray, IntegerArray]:
        """Sums of the counts over each row and over each column."""
        return self.counts.sum(axis=1), self.counts.sum(axis=0)

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
        return (f"{self.by} by {self.other}: {self.n_rows:,} rows{' with both' if self.some_missing else ''}",)

    def table(self) -> list[tuple[str, ...]]:
        """Return a line per level of the first column, its margin last."""
        across, down = self.margins
        lines = [
            (
                name,
                *(f"below {end:,}" if end else f"{count:,}" for count, end in zip(counts, ends, strict=True)),
                f"{total:,}",
            )
            for name, counts, ends, total in zip(
                self.rows, self.counts.tolist(), self.below.tolist(), across.tolist(), strict=True
            )
        ]
        foot = ("total", *(f"{count:,}" for count in down.tolist()), f"{self.counts.sum():,}")
        return [("", *self.labels, "total"), *lines, foot]

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
            f"noise on a count: {span} (1 SD, before negative counts were corrected)",
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
        raise InputValueError(Message("needs-mean", analysis="cross-table"))
    first, second = Levels.of(release, by), Levels.of(release, other)
    if by == other:
        raise InputValueError(f"a cross table is of two columns, and both are {shown(by)}: name another")
    joint, noise, privacy, rows = _joint_counts(release, first, second)
    statistic, degrees, p_value = independence_test(joint, privacy, release.privacy.rows_per_unit * rows, release.noise)
    counts = _feasible_counts(release, first, second)
    return CrossTable(
        by=by,
        other=other,
        rows=first.names,
        labels=second.names,
        counts=counts,
        noise=noise,
        below=counts_below(joint, noise, counts, release.noise),
        n_rows=round(rows),
        statistic=statistic,
        degrees=degrees,
        p_value=p_value if release.noise is not None else math.nan,
        level=level,
        rows_per_unit=release.privacy.rows_per_unit,
        some_missing=PresentRows.of(release, first.features[0], second.features[0]) is not None,
        warning=cautions_by_code(release),
    )


def counts_below(
    noisy: FloatArray, noise: FloatArray, counts: IntegerArray, law: NoiseLaw | CountNoise | None
) -> IntegerArray:
    """Return upper limits of the counts that noise does not distinguish from 0; else 0."""
    tested = noise > 0.0
    hidden, ends = hidden_by_noise(noisy, noise, law, tested)
    most = np.maximum(ends, counts)
    step = 10.0 ** np.maximum(np.floor(np.log10(np.where(tested, noise, 1.0))) - 1.0, 0.0)
    result: IntegerArray = np.where(hidden, (np.floor(most / step) + 1.0) * step, 0.0).astype(np.int64)
    result.setflags(write=False)
    return result


def independence_test(
    joint: FloatArray, privacy: FloatArray, rows: float, law: Quantiles | None
) -> tuple[float, int, float]:
    """Return χ² of the score test of independence, its degrees of freedom and its p-value."""
    # `joint` are noisy counts without bias, shape (k, l); `privacy` is the covariance of their noise, shape (kl, kl).
    # `rows` is the number of rows, times the most rows of a privacy unit: it scales the sampling variance.
    p, q = _shares(joint.sum(axis=1)), _shares(joint.sum(axis=0))
    expected = np.outer(p, q).ravel()
    sampling = rows * (np.diag(expected) - np.outer(expected, expected))
    # (I − p1ᵀ) J (I − 1qᵀ): what is left of the counts when margins are taken away
    doubly = np.kron(np.eye(len(p)) - np.outer(p, np.ones(len(p))), np.eye(len(q)) - np.outer(q, np.ones(len(q))))
    wanted = (len(p) - 1) * (len(q) - 1)
    return score_test(doubly @ joint.ravel(), doubly @ privacy @ doubly.T, doubly @ sampling @ doubly.T, wanted, law)


def _joint_counts(release: Moments, first: Levels, second: Levels) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return unrepaired joint counts and noise, (k, l)."""
    # Also the noise's covariance, (kl, kl), and the number of rows that have both levels.
    k, c = len(first.names), len(second.names)
    if (present := PresentRows.of(release, first.features[0], second.features[0])) is not None:
        across, down = (present.of_groups(levels.weights, levels.features) for levels in (first, second))
        released, privacy = present.totals(np.repeat(across, c, axis=0), np.tile(down, (k, 1)))
        noise = np.sqrt(np.diag(privacy)).reshape(k, c)
        return released.reshape(k, c), noise, privacy, max(_rows_with_both(release, first, second), 1.0)
    moments = LocalMoments.of(release, [*first.features, *second.features])
    indices = np.array([0, *(index + 1 for index in first.features + second.features)])
    m = len(first.features)
    rows = np.concatenate([first.weights, np.zeros((k, len(indices) - 1 - m))], axis=1)
    columns = np.concatenate([second.weights[:, :1], np.zeros((c, m)), second.weights[:, 1:]], axis=1)
    weights = bilinear(np.repeat(rows, c, axis=0), np.tile(columns, (k, 1)))
    joint = np.einsum("pij,ij->p", weights, moments.moments[np.ix_(indices, indices)]).reshape(k, c)
    privacy = moments.covariance(indices, weights)
    noise = np.sqrt(np.diag(privacy)).reshape(k, c)
    return joint, noise, privacy, moments.n_rows


def _rows_with_both(release: Moments, first: Levels, second: Levels) -> float:
    """Return the number of rows that have a value of both columns."""
    share = release.both_present
    return release.n_rows * (1.0 if share is None else float(share[first.features[0], second.features[0]]))


def _shares(counts: FloatArray) -> FloatArray:
    """Return the shares of a margin, each at least the share of a tenth of a row."""
    possible = np.maximum(counts, 0.1)
    return np.asarray(possible / possible.sum())


def _feasible_counts(release: Moments, first: Levels, second: Levels) -> IntegerArray:
    """Return whole counts ≥ 0 near the repaired ones, whose margins are the groups' rows."""
    repaired = release.with_repair("structured")
    mean, covariance = repaired.mean, repaired.covariance
    one, other = list(first.features), list(second.features)
    margins = first.row_counts(repaired), second.row_counts(repaired)
    # a row without a level is in no cell: then the larger margin has rows that the table has not
    total = min(*(int(margin.sum()) for margin in margins), round(_rows_with_both(release, first, second)))
    across, down = (whole_counts(margin * (total / max(int(margin.sum()), 1)), total) for margin in margins)
    p = first.weights[:, 0] + first.weights[:, 1:] @ mean[one]
    q = second.weights[:, 0] + second.weights[:, 1:] @ mean[other]
    crossed = first.weights[:, 1:] @ covariance[np.ix_(one, other)] @ second.weights[:, 1:].T
    p, q = np.clip(p, 0.0, 1.0), np.clip(q, 0.0, 1.0)
    # no cell is quite 0, so that every margin can be met
    fitted = np.maximum(crossed + np.outer(p, q), _MIN * np.outer(p, q)) * release.n_rows
    for _ in range(_ROUNDS):
        fitted = fitted * _ratio(across, fitted.sum(axis=1))[:, None]
        fitted = fitted * _ratio(down, fitted.sum(axis=0))[None, :]
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


def _ratio(wanted: IntegerArray, actual: FloatArray) -> FloatArray:
    return np.divide(wanted, actual, out=np.ones(len(wanted)), where=actual > 0.0)
