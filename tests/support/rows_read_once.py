"""Rows for tests that run a plan thousands of times: the table is summed once."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpmoments as dpm
from dpmoments.rows.rows import Rows


class RowsReadOnce:
    """Answers what additive and sampling plans ask of :class:`Rows`, from sums made by the real one."""

    def __init__(self, table: Any, neighbors: str = "add_remove") -> None:
        table = np.asarray(table, dtype=float)
        rows = Rows.of(table, dpm.Schema.unit_ball(table.shape[1]), neighbors=neighbors)
        self.n_features, self.neighbors, self.schema = rows.n_features, rows.neighbors, rows.schema
        self._rows, self._sums = rows, {}  # type: ignore[var-annotated]

    def moments(self, *arguments: Any, **options: Any) -> Any:
        key = repr([*arguments, *sorted(options.items())])  # arrays are of a few features here
        if key not in self._sums:
            self._sums[key] = self._rows.moments(*arguments, **options)
        return self._sums[key]
