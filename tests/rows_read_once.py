"""Rows for tests that run a plan thousands of times: the table is summed once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import dpmoments as dpm
from dpmoments.rows.rows import Rows


class RowsReadOnce:
    """Answers what additive and sampling plans ask of :class:`Rows`, from sums made by the real one."""

    def __init__(self, table: Any, neighbors: str = "add_remove") -> None:
        table = np.asarray(table, dtype=float)
        dropped = "as_zero" if neighbors == "replace_one" else "omit"
        rows = Rows.of(table, dpm.Schema.unit_ball(table.shape[1]), dropped=dropped)
        self.n_features, self.dropped = rows.n_features, rows.dropped
        self.moments = cache(rows.moments)
