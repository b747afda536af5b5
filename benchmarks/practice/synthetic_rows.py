"""How far moments of synthetic rows are from those of the release that they are drawn from, with the noise of the release beside.

``python -m benchmarks.practice.synthetic_rows`` measures and writes the table of ``docs/evidence/synthetic-rows.md``; some two
minutes on one core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.structure import made_of_classes
from benchmarks.practice.tables.measurements import diabetes
from benchmarks.practice.tables.synthetic import clusters
from dpmoments import Schema
from dpmoments.base.arrays import FloatArray
from dpmoments.rows.rows import Rows

PAGE = EVIDENCE / "synthetic-rows.md"
EPSILON = 1.0
N_ROWS = 10_000
SEEDS = 5
RARE = 0.03
"""Levels and flags of a smaller standard deviation are left out: those of under one row in a thousand."""
RIDGE = 0.01
"""Added to the diagonal of the correlation matrix of the regression, whose one-hot features are collinear."""
MEASURES = ("means", "standard deviations", "correlations", "coefficients")


@dataclass(frozen=True, eq=False)
class Moments:
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, data: Any, schema: Schema) -> Moments:
        """The exact moments of the rows of a table."""
        encoding, found = schema.encoding(), Rows.of(data, schema).moments()
        scale = float(found.scale)
        mean = np.array(found.sum, dtype=float) * scale / found.count
        gram = np.array(found.gram, dtype=float) * scale**2 / found.count
        return cls(encoding.decode_mean(mean), encoding.decode_covariance(gram - np.outer(mean, mean)))

    @property
    def deviations(self) -> FloatArray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlations(self) -> FloatArray:
        """Correlations, shape (d, d); 0 with a feature that no row has."""
        scale = np.outer(self.deviations, self.deviations)
        return np.divide(self.covariance, scale, out=np.eye(len(scale)), where=scale > 0.0)

    def kept(self, places: FloatArray) -> Moments:
        return Moments(self.mean[places], self.covariance[np.ix_(places, places)])


def measured(first: Moments, second: Moments, deviations: FloatArray, target: int) -> list[float]:
    """Root mean squares, over features or pairs, of what two tables' moments differ by: one for each of ``MEASURES``."""
    correlations = [one.correlations for one in (first, second)]
    pairs = np.triu_indices(len(deviations), 1)
    others = np.arange(len(deviations)) != target
    fits = [
        np.linalg.solve(one[np.ix_(others, others)] + RIDGE * np.eye(others.sum()), one[others, target])
        for one in correlations
    ]
    found = (
        (first.mean - second.mean) / deviations,
        (first.deviations - second.deviations) / deviations,
        (correlations[0] - correlations[1])[pairs],
        fits[0] - fits[1],
    )
    return [float(np.sqrt(np.mean(np.square(one)))) for one in found]


def tables() -> dict[str, tuple[Callable[[], tuple[Any, Schema]], str]]:
    def bundled(load: Callable[[], Any]) -> Callable[[], tuple[Any, Schema]]:
        def made() -> tuple[Any, Schema]:
            data = load()
            return data.frame, data.schema

        return made

    return {
        "Adult": (bundled(dpm.datasets.adult), "hours-per-week"),
        "Wine": (bundled(dpm.datasets.wine), "alcohol"),
        "diabetes": (diabetes, "target"),
        "classes, 20,000 rows": (
            lambda: made_of_classes(7, 20_000, [3, 5, 8], booleans=2, numerics=4),
            "",
        ),
        "clusters, 30,000 rows": (clusters(30_000, 6, (0.6, 0.4), 30.0, 302), "y"),
    }


def row_of(name: str) -> str:
    make, target = tables()[name]
    data, schema = make()
    own = Moments.of(data, schema)
    numbers = [isinstance(column, dpm.Numeric) for column in schema.columns for _ in column.feature_names]
    places = np.flatnonzero((own.deviations > RARE) | np.array(numbers))
    place = schema.feature_names.index(target) if target else len(schema.feature_names) - 1
    deviations, of_target = own.deviations[places], int(np.flatnonzero(places == place)[0])
    drawn, noise = [], []
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = dpm.release(data, schema, epsilon=EPSILON, insecure_seed=seed)
        released = Moments(release.mean, release.covariance).kept(places)
        rows = Moments.of(release.synthetic(N_ROWS, seed, format="arrow"), schema).kept(places)
        drawn.append(measured(rows, released, deviations, of_target))
        noise.append(measured(released, own.kept(places), deviations, of_target))
    n_rows = Rows.of(data, schema).table_size()
    cells = [f"{d:.2g} / {e:.2g}" for d, e in zip(np.mean(drawn, axis=0), np.mean(noise, axis=0), strict=True)]
    return f"| {name} | {n_rows:,} | {len(places)} | {' | '.join(cells)} |"


def main() -> None:
    head = [f"| table | n | d | {' | '.join(MEASURES)} |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    write_part(PAGE, "measured", [*head, *map(row_of, tables())])


if __name__ == "__main__":
    main()
