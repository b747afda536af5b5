"""Synthetic rows: a random table whose moments are close to the moments of a release.

Every feature has a latent normal, and all of them one correlation matrix R (a normal copula). A numeric column is a quantile
function of its latent: the beta distribution on its bounds with the released mean and variance. A Boolean is true if its
latent passes a threshold. A categorical is the level with the largest latent plus offset (a multinomial probit). R and the
offsets are calibrated by simulation: compared with the released covariance and shares, and corrected, on fixed latents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.released import Moments, columns_with_indices
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputModuleNotFoundError, InputValueError, shown
from dpmoments.base.table_libraries import pa
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.dates import Date

_ROUNDS = 25
_DAMPING = 0.6
_SETTLED = 1e-10
"""Mean squared error of a correlation at which a calibration ends."""
_STALLED, _MAX_STALLED = 0.99, 3
"""Largest share of the squared error after a useful round; how many useless rounds end it."""
_FARTHEST_WISH = 1.5
"""Max absolute correlation requested of the latents, before R is made positive semidefinite."""
_LAST_ROUNDS = 20
_MAX_ROWS, _MIN_ROWS, _MAX_CELLS = 1 << 14, 1 << 12, 1 << 21
"""Max and min number of rows of latents in a calibration, and the max number of entries."""
_GRID = np.linspace(-8.0, 8.0, 2001)
_NARROW = 1e7
"""Min parameters at which a beta distribution is normal to six digits."""
_NOT_PRIVATE = (
    "NOT PRIVATE: these rows were drawn from a release that was made with an insecure seed, and protect nobody. Never publish "
    "them."
)
_WHAT_THEY_ARE = (
    "Rows drawn at random with the moments of a private release: no row is a person's, and what the release does not hold "
    "(tails, skewness, dependence beyond correlation) is made up."
)


def _margin(mean: float, variance: float, lower: float, upper: float) -> FloatArray:
    """Return a numeric feature as a function of its latent, on the grid."""
    # Of the beta distribution with this mean and variance on the bounds, or of a normal one.
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return mean + math.sqrt(max(variance, 0.0)) * _GRID
    width = upper - lower
    share = min(max((mean - lower) / width, 0.0), 1.0)
    largest, spread = share * (1.0 - share), max(variance, 0.0) / width**2
    if spread <= 0.0 or largest <= 0.0:
        return np.full(len(_GRID), lower + width * share)
    if spread >= largest * (1.0 - 1e-6):  # at the bounds alone
        return np.where(scipy.special.ndtr(_GRID) < 1.0 - share, lower, upper)
    size = largest / spread - 1.0
    if size > _NARROW:
        return np.clip(lower + width * (share + math.sqrt(spread) * _GRID), lower, upper)
    quantiles = scipy.special.betaincinv(size * share, size * (1.0 - share), scipy.special.ndtr(_GRID))
    return lower + width * quantiles


@dataclass(frozen=True, eq=False)
class _Block:
    """Features of one column: their indices, and the function from latents to values."""

    column: Numeric | Date | Boolean | Categorical | Coordinate
    indices: npt.NDArray[np.intp]
    margin: FloatArray | None
    shares: FloatArray
    may_be_none: bool = False

    def values(self, latents: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return features, shape (n, len(indices)), from the latents of all features."""
        own = latents[:, self.indices]
        if self.margin is not None:  # as `np.interp` does, without a search: the grid is even
            at = np.clip((own - _GRID[0]) / (_GRID[1] - _GRID[0]), 0.0, len(_GRID) - 1.0)
            index = np.minimum(at.astype(np.intp), len(_GRID) - 2)
            lower = self.margin[index]
            return np.asarray(lower + (at - index) * (self.margin[index + 1] - lower))
        if isinstance(self.column, Boolean):
            return (own + offsets[self.indices] > 0.0).astype(float)
        heights = own + offsets[self.indices]
        if self.may_be_none:
            heights = np.column_stack([heights, np.zeros(len(own))])
        result = np.zeros((len(own), heights.shape[1]))
        result[np.arange(len(own)), heights.argmax(axis=1)] = 1.0
        return result[:, : len(self.indices)]


@in_floating_point
def synthetic_rows(
    release: Moments,
    n_rows: int,
    seed: int = 0,
    *,
    format: Literal["pandas", "arrow"] = "pandas",
    exact: bool = False,
) -> Any:
    """Draw rows whose moments are the release's: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Moments
        Must hold count, mean and second moment.
    n_rows : int
        Number of rows; need not equal the table's.
    seed : int
        Seed of the draw: the same seed gives the same rows. It is public; privacy does not depend on it.
    format : {"pandas", "arrow"}
        A pandas frame (needs pandas) or a ``pyarrow.Table``.

    exact : bool
        Rows whose means and covariances (over n − 1) equal the release's to the last digits: a column of real numbers for each
        feature, levels too, for programs that read rows and fit their moments.

    Returns
    -------
    pandas.DataFrame or pyarrow.Table
        The schema's columns with its types, levels and bounds. ``attrs``, or the schema's metadata under ``dpmoments``, state
        that the rows are synthetic, their release, and if it is private.

    Raises
    ------
    ValueError
        If no mean or count was released, or an argument is invalid.
    ImportError
        If pandas is requested and not installed.

    Notes
    -----
    Means, variances, shares and covariances of numeric columns equal the release's in expectation; if levels are nearly a
    function of one another, dependence is weaker (``docs/evidence/earlier-studies.md``). A sample of n rows adds its sampling
    error. A numeric column has a beta distribution on its bounds: its tails and peaks are not the table's. Rows of coordinates
    are scaled down to their row-norm bound.

    The copula follows Cario & Nelson (1997, "normal to anything"); thresholds of latent normals for levels are Emrich &
    Piedmonte's (1991), here calibrated by simulation.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(40, 9, 20_000)
    >>> table = np.column_stack([age, 100 * age + rng.normal(0, 500, 20_000)])
    >>> schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("pay", 0, 10_000))
    >>> released = dpm.release(table, schema, epsilon=10.0, insecure_seed=0)
    >>> rows = released.synthetic(10_000, seed=0)
    >>> rows.columns.tolist(), bool(abs(rows["age"].mean() - released.mean[0]) < 1.0), rows.attrs["private"]
    (['age', 'pay'], True, False)
    """
    for name, value, least in (("n_rows", n_rows, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputValueError(f"{name}={shown(value)} must be a whole number, {least} or more")
    check_one_of("format", format, ("pandas", "arrow"))
    if release.noisy_sum is None:
        refused = "rows are drawn with the released mean and covariance, and this release has no mean: one made "
        raise InputValueError(f"{refused}with mean=True has both", shell=f"{refused}without --no-mean has both")

    rng = np.random.default_rng([seed, 1])
    if exact:
        mean, d = release.mean, len(release.feature_names)
        if n_rows <= d:
            raise InputValueError(f"exact moments of {d} features need more than {d} rows, and n_rows is {n_rows}")
        values, vectors = np.linalg.eigh(release.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        free = rng.standard_normal((n_rows, d))
        orthonormal = np.linalg.qr(free - free.mean(axis=0))[0]
        exactly = mean + math.sqrt(n_rows - 1.0) * (orthonormal - orthonormal.mean(axis=0)) @ root.T
        return _stated(pa.table(dict(zip(release.feature_names, exactly.T, strict=True))), release, seed, format)
    blocks, drawn = _blocks(release)
    target = release.covariance[np.ix_(drawn, drawn)]
    root, offsets = _calibrated(blocks, target, np.random.default_rng([0, 0]))
    result = np.zeros((n_rows, len(drawn)))
    latents = rng.standard_normal((n_rows, len(root))) @ root.T
    for block in blocks:
        result[:, block.indices] = block.values(latents, offsets)
    _shorten(result, blocks, release.schema.row_norm)
    table = pa.table({block.column.name: _cells(block, result) for block in blocks})
    return _stated(table, release, seed, format)


def _stated(table: Any, release: Moments, seed: int, format: Literal["pandas", "arrow"]) -> Any:
    """Return the rows as asked for, with a statement of what they are."""
    about = {"synthetic": True, "private": release.privacy.private, "seed": int(seed), "about": _WHAT_THEY_ARE}
    if not release.privacy.private:
        about["warning"] = _NOT_PRIVATE
    if format == "arrow":
        return table.replace_schema_metadata({"dpmoments": json.dumps(about)})
    try:
        import pandas as pd
    except ImportError:
        raise InputModuleNotFoundError(
            "pandas is not installed: install it, or use format='arrow' for a pyarrow.Table"
        ) from None
    # integers of which some are absent stay integers
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame.attrs.update(about)
    return frame


def _blocks(release: Moments) -> tuple[list[_Block], npt.NDArray[np.intp]]:
    """Return one block per column of the table, and the indices of the features that they hold."""
    mean, variance = release.mean, np.diag(release.covariance)
    lower, upper = release.schema.feature_bounds
    blocks, drawn = list[_Block](), list[int]()
    for column, own in columns_with_indices(release):
        if not isinstance(column, Numeric | Date | Boolean | Categorical | Coordinate):
            continue
        indices = np.arange(len(drawn), len(drawn) + len(own))
        drawn += own
        shares, first = np.clip(mean[own], 0.0, 1.0), own[0]
        if isinstance(column, Categorical):
            may_be_none = "zero" in (column.missing, column.other)
            total = float(shares.sum())
            if not may_be_none or total > 1.0:
                shares = shares / total if total > 0.0 else np.full(len(shares), 1.0 / len(shares))
            blocks.append(_Block(column, indices, None, shares, may_be_none and float(shares.sum()) < 1.0 - 1e-9))
        elif isinstance(column, Boolean):
            blocks.append(_Block(column, indices, None, shares))
        else:
            margin = _margin(mean[first], variance[first], lower[first], upper[first])
            blocks.append(_Block(column, indices, margin, shares))
    return blocks, np.array(drawn, dtype=np.intp)


def _calibrated(
    blocks: Sequence[_Block], target: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return a root of R, shape (d, d), and the offsets of levels, shape (d,)."""
    d = len(target)
    latents = _even_latents(min(_MAX_ROWS, max(_MIN_ROWS, _MAX_CELLS // d)), d, rng)
    offsets, deviation, stretch = np.zeros(d), np.sqrt(np.maximum(np.diag(target), 0.0)), np.ones(d)
    across = np.ones((d, d), dtype=bool)
    for block in blocks:
        across[np.ix_(block.indices, block.indices)] = False
        if block.margin is None:
            share = np.clip(block.shares, 1e-9, 1.0 - 1e-9)
            offsets[block.indices] = scipy.special.ndtri(share)
            deviation[block.indices] = np.sqrt(share * (1.0 - share))
            # a correlation with a threshold of a normal is so much less than one with the normal
            density = np.exp(-0.5 * scipy.special.ndtri(share) ** 2) / math.sqrt(2.0 * math.pi)
            stretch[block.indices] = deviation[block.indices] / np.maximum(density, 1e-12)
    scale = np.outer(deviation, deviation)
    across &= scale > 0.0
    wanted_correlation = np.divide(target, scale, out=np.zeros((d, d)), where=across)
    slope = np.outer(stretch, stretch)
    # As the latents would be correlated if they could; whatever lets them be so may stand within a block, but for the diagonal.
    wish = np.where(across, wanted_correlation * slope, 0.0)
    values, best, stalled = np.zeros_like(latents), (math.inf, np.eye(d)), 0
    for _ in range(_ROUNDS):
        root = _root(wish)
        correlated = latents @ root.T
        offsets = _with_shares(blocks, correlated, offsets)
        for block in blocks:
            values[:, block.indices] = block.values(correlated, offsets)
        result = np.cov(values.T, bias=True).reshape(d, d)
        missed = np.divide(target - result, scale, out=np.zeros((d, d)), where=across)
        error = float((missed**2).sum())
        stalled = stalled + 1 if error > _STALLED * best[0] else 0
        if error < best[0]:
            best = error, root
        if stalled == _MAX_STALLED or error <= _SETTLED * max(1, int(across.sum())):
            break
        moved = np.clip(wish + _DAMPING * missed * slope, -_FARTHEST_WISH, _FARTHEST_WISH)
        wish = np.where(across, moved, root @ root.T * (1.0 - np.eye(d)))
    return best[1], _with_shares(blocks, latents @ best[1].T, offsets, rounds=_LAST_ROUNDS)


def _with_shares(blocks: Sequence[_Block], latents: FloatArray, offsets: FloatArray, rounds: int = 3) -> FloatArray:
    """Return offsets at which levels of each categorical nearly have their shares."""
    # In these latents.
    offsets, least = offsets.copy(), 0.5 / len(latents)
    for block in blocks:
        if not isinstance(block.column, Categorical):
            continue
        wanted = scipy.special.ndtri(np.clip(block.shares, least, 1.0 - least))
        best, step = (math.inf, offsets[block.indices].copy(), np.zeros_like(wanted)), 1.0
        for _ in range(rounds):
            result = block.values(latents, offsets).mean(axis=0)
            missed = float(np.abs(result - block.shares).sum())
            if missed < best[0]:
                change = wanted - scipy.special.ndtri(np.clip(result, least, 1.0 - least))
                best = missed, offsets[block.indices].copy(), change
            else:  # too far: latents of levels that another column decides are nearly equal
                step *= 0.5
            offsets[block.indices] = best[1] + step * best[2]
            if not block.may_be_none:  # offsets matter by their differences alone
                offsets[block.indices] -= offsets[block.indices].mean()
        offsets[block.indices] = best[1]
    return offsets


def _even_latents(n_rows: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return normal rows and their opposites, rotated to covariance I, shape (n_rows, d)."""
    half = rng.standard_normal((n_rows // 2, d))
    rows = np.concatenate([half, -half])
    return np.linalg.solve(np.linalg.cholesky(rows.T @ rows / len(rows)), rows.T).T


def _root(latent: FloatArray) -> FloatArray:
    """Return a root of (nearly) the nearest correlation matrix, by raising negative eigenvalues."""
    eigenvalues, eigenvectors = np.linalg.eigh(latent + np.eye(len(latent)))
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 1e-9))
    return np.asarray(root / np.linalg.norm(root, axis=1, keepdims=True))


def _shorten(rows: FloatArray, blocks: Sequence[_Block], row_norm: float | None) -> None:
    """Scale rows of coordinates down to their row-norm bound."""
    indices = [index for block in blocks if isinstance(block.column, Coordinate) for index in block.indices]
    if indices and row_norm is not None:
        lengths = np.linalg.norm(rows[:, indices], axis=1, keepdims=True)
        rows[:, indices] *= np.minimum(1.0, row_norm / np.maximum(lengths, row_norm))


def _cells(block: _Block, rows: FloatArray) -> Any:
    """Convert the column to an Arrow array."""
    values, column = rows[:, block.indices], block.column
    if isinstance(column, Categorical):
        kind = pa.int64() if isinstance(column.levels[0], int) else pa.string()
        # a row without a level has a value outside the levels, where a missing value is an error or drops its row
        outside: str | int | None = None
        if column.missing != "zero":
            outside = max(map(int, column.levels)) + 1 if isinstance(column.levels[0], int) else "other"
            while isinstance(outside, str) and outside in column.levels:
                outside = f"{outside}_"
        levels = [*column.levels, outside]
        codes = np.where(values.any(axis=1), values.argmax(axis=1), len(column.levels))
        return pa.array([levels[code] for code in codes.tolist()], kind)
    if isinstance(column, Date):
        return pa.array(column.datetimes(values[:, 0]))
    return pa.array(values[:, 0] > 0.5) if isinstance(column, Boolean) else pa.array(values[:, 0])
