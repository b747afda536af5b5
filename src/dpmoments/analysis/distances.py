"""Mahalanobis distances from the released mean, in the directions that the noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import Answer, Column, in_floating_point
from dpmoments.analysis.frames import feature_values
from dpmoments.analysis.functionals import Standardized, describe_law
from dpmoments.analysis.released import Moments, cautions_by_code, chosen_features
from dpmoments.analysis.resolvability import NOT_CLEAR_NOISE
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message

_SHOWN_ROWS = 20
"""Max number of rows in the text, the most distant ones; frames and JSON hold all."""


@dataclass(frozen=True, eq=False, repr=False)
class MahalanobisDistances(Answer):
    """Distances of the rows of a frame.

    Attributes
    ----------
    feature_names : tuple of str
        Features of the distances.
    distances : ndarray of shape (m,)
        NaN for rows with a missing value, and if no direction is above the noise floor.
    n_directions : int
        Directions above the noise floor, r: the squared distance of a normal row of the population is χ² with r degrees of
        freedom.
    n_noise : int
        Directions left out.
    noise_known : bool
    warning : str
    """

    feature_names: tuple[str, ...]
    distances: FloatArray
    n_directions: int
    n_noise: int
    noise_known: bool = True
    warning: str = ""

    facts = ("feature_names", "distances", "n_directions", "n_noise", "warning")

    @property
    def heading(self) -> tuple[str, ...]:
        every = self.n_directions + self.n_noise
        if not self.n_directions:
            return (f"Mahalanobis distances: {NOT_CLEAR_NOISE}: all {every} directions are noise",)
        out = f", {self.n_noise} of {every} left out: {NOT_CLEAR_NOISE}" if self.n_noise and self.noise_known else ""
        return (f"Mahalanobis distances in {self.n_directions} direction{'s' * (self.n_directions > 1)}{out}",)

    @property
    def _shown_rows(self) -> list[int]:
        """The most distant rows, largest distance first."""
        order: list[int] = np.argsort(-np.nan_to_num(self.distances, nan=-1.0), kind="stable").tolist()
        return order[: _SHOWN_ROWS if self.n_directions else 0]

    @property
    def remarks(self) -> tuple[str, ...]:
        m = len(self.distances)
        more = f"the furthest {_SHOWN_ROWS} of {m:,} rows" if m > _SHOWN_ROWS else ""
        return more, "" if self.noise_known else describe_law(None), self.warning

    def _columns(self) -> list[Column]:
        rows = list(range(len(self.distances)))
        return [Column("row", rows, "row", list(map(str, rows))), Column("distance", self.distances, "distance")]


@in_floating_point
def mahalanobis(release: Moments, frame: Any, columns: Sequence[str] | None = None) -> MahalanobisDistances:
    """Compute Mahalanobis distances of rows from the released mean: free of privacy cost.

    The rows belong to the analyst; the released table is not read.

    Parameters
    ----------
    release : Moments
    frame : pandas, Polars or Arrow frame, or mapping of column name to values
        Read by column name; an array only if every column of the schema is a coordinate.
    columns : sequence of str, optional
        Columns or features to measure by; default: all.

    Returns
    -------
    MahalanobisDistances

    Raises
    ------
    ValueError
        If a column is absent or unknown, a value is an undeclared level, or no mean was released.

    Notes
    -----
    √((x − m)ᵀΣ⁺(x − m)), Σ⁺ the pseudo-inverse of the repaired covariance on the directions (in units in which the noise is
    the same in all) whose variance before repair is above the noise floor: the others would divide by noise.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.mahalanobis(np.array([[0.0, 0.0], [0.6, 0.0]])).distances.round(1)
    array([0., 3.])
    """
    if release.noisy_sum is None:
        raise InputValueError(Message("needs-mean", analysis="distances"))
    standardized = Standardized.of(release, chosen_features(release, columns), by_deviation=False)
    features = standardized.features
    values = feature_values(release.schema, frame, features.tolist())[:, features]
    kept = standardized.stands_out
    scores = ((values - standardized.mean) / standardized.scale) @ standardized.directions[kept].T
    squares = np.sum(scores**2 / standardized.eigenvalues[kept], axis=1)
    if not kept.any():
        squares = np.full(len(values), np.nan)
    return MahalanobisDistances(
        feature_names=tuple(release.feature_names[feature] for feature in features),
        distances=np.sqrt(squares),
        n_directions=int(kept.sum()),
        n_noise=int((~kept).sum()),
        noise_known=release.noise is not None,
        warning=cautions_by_code(release),
    )
