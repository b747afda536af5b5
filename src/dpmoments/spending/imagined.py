"""Imagined releases: a plan run on a public table of typical rows, answered without noise.

Every decision of a run (scales, a radius, further rounds) is then made on the answers to be expected, and the noise, the
receipt and what analyses say follow as they do for a table. Nothing here sees a record, spends a budget, or can be saved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy

from dpmoments.base.errors import InputTypeError
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.base import Plan, UnitsPlan
from dpmoments.moments.repair import Repair
from dpmoments.privacy.budget import PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.receipt import Draw
from dpmoments.releases.moment_release import MomentRelease, of_present_values
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Missing, Result, Running, Summary, summarize_in_threads
from dpmoments.schema.schema import Schema
from dpmoments.spending.release import moment_release

_LENGTHS = "row-lengths"
"""Code of the draw of that histogram."""


@dataclass(frozen=True, eq=False)
class RepeatedRows:
    """Source of typical rows, each counted repeatedly: exact sums are merged with themselves."""

    block: FloatArray  # (m, d), encoded
    n_rows: int
    missing: ClassVar[Missing] = "error"
    pass_length: ClassVar[int | None] = None

    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Return the result for ``n_rows`` rows."""
        times, rest = divmod(self.n_rows, len(self.block))
        total = None if not rest else self._once(summary, rest)
        part = self._once(summary, len(self.block)) if times else None
        while times and part is not None:
            if times % 2:
                total = part if total is None else summary.merge(total, part)
            times //= 2
            part = summary.merge(part, part) if times else None
        assert total is not None, "a forecast is of one row or more"
        return total

    def _once(self, summary: Summary[Running, Result], n_rows: int) -> Result:
        batches = np.array_split(self.block[:n_rows].copy(), n_rows // summary.rows_per_task + 1)
        return summarize_in_threads(summary, batches, lambda batch: batch, 1)


class ExpectedAnswers(PrivacyFilter):
    """Filter that prices and records draws, and answers without noise.

    Only for typical rows, which are public.
    """

    # probabilities of less noise on the histogram of the rows' lengths; None: no noise
    chances: FloatArray | None = None

    def _answer(self, made: Draw, query: Any) -> Any:
        if self.chances is None or made.what.code != _LENGTHS:
            return made.law.expected(query)
        assert isinstance(made.law, DiscreteGaussian | DiscreteLaplace), "counts have such noise"
        beyond = self.chances[: len(query)] - 0.5
        far = -np.sign(beyond) * np.log1p(-2.0 * np.abs(beyond))
        noise = scipy.special.ndtri(beyond + 0.5) if isinstance(made.law, DiscreteGaussian) else far
        return np.asarray(query) + np.rint(made.law.scale * noise).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ImaginedRelease(MomentRelease):
    """Release of typical rows without noise: analyses read it, no file holds it."""

    def to_dict(self) -> NoReturn:
        """Raise: nothing was released."""
        raise InputTypeError("an imagined release cannot be saved: nothing was released")


def imagined_release(
    plan: Plan, schema: Schema, block: FloatArray, n_rows: int, request: PrivacyRequest, chances: FloatArray | None
) -> MomentRelease:
    """Run a plan for rows on a table of ``n_rows`` typical rows, before any repair.

    ``block`` are the encoded rows of ``schema.with_indicators``; the request's budget is for a privacy unit. With ``chances``
    the histogram of the rows' lengths has noise, which decides on the ball.
    """
    source: Any = RepeatedRows(block, n_rows)  # which answers as a source does
    rows = Rows(schema.with_indicators, plan.neighbors, source, threads=1)
    unit = request.privacy_unit
    paid = plan if unit is None else UnitsPlan.of(plan, request.budget, unit)
    privacy_filter: Any = ExpectedAnswers.open(paid, insecure_seed=0)
    privacy_filter.chances = chances
    result = plan.run(rows, privacy_filter)
    made = moment_release(
        plan,
        result,
        privacy_filter.close(),
        rows.schema,
        repair=Repair.NONE,
        origin=ReleaseOrigin.fresh(),
        private=False,
        n_rows=n_rows,
        table_size=n_rows if plan.neighbors.table_size_is_public else None,
    )
    drawn = made.as_filed
    values = {entry.name: getattr(drawn, entry.name) for entry in fields(MomentRelease)}
    return of_present_values(ImaginedRelease(**values))
