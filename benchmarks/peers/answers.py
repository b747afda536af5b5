"""What readers ask of a table, and how far a private answer is from the table's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.regression.single_regression import others_of
from benchmarks.practice.tables.entry import exact_moments, root_mean_square
from dpmoments.base.values import FloatArray

QUESTIONS = (
    "correlations", "pairs found", "means", "one regression", "five regressions", "group means", "one cross table",
    "all cross tables", "components",
)  # fmt: skip
RARE = 0.03
"""Levels and flags of a smaller standard deviation are left out: those of under one row in a thousand."""
RELATED = 0.05
"""Pairs of features with more correlation than this, in the table, are there to be found."""
FALSE = 0.05
RIDGE = 0.01
"""On the correlation matrix, for every way that has no regression of its own: levels of a category are collinear."""
N_COMPONENTS = 3
LARGE_GROUP = 0.01
"""Groups with at least this share of the rows are asked for their means."""
CAP = 1.0
"""Largest error of a group's mean, in SDs, and largest loss of R²: an answer that is worse has failed, however badly."""
LEVELS = (dpm.Categorical, dpm.Boolean)

Tables = Mapping[tuple[str, str], FloatArray]


@dataclass(frozen=True, eq=False)
class Moments:
    """Exact moments of a table's rows, and what follows from them."""

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema) -> Moments:
        """The exact moments of the rows of a table."""
        encoding, (_, mean, covariance) = schema.encoding(mean=True), exact_moments(data, schema)
        return cls(encoding.decode_mean(mean), encoding.decode_covariance(covariance))

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


@dataclass(frozen=True)
class Asked:
    """What is asked of a table: a feature to predict, and the mean of a number in the groups of a category."""

    target: str
    value: str = ""
    groups: str = ""


@dataclass(frozen=True, eq=False)
class Line:
    """A regression in the table's units: coefficients of all features, 0 where a feature is not used."""

    coefficients: FloatArray
    intercept: float


@dataclass(frozen=True, eq=False)
class Truth:
    """A table with its own answers."""

    data: Any
    schema: dpm.Schema
    asked: Asked
    n_rows: int
    moments: Moments
    places: Any  # the features that correlations, means and components are of: numbers, and levels that are not rare
    pairs: Any  # pairs of them, of different columns
    targets: tuple[int, ...]  # what five regressions predict; the first is that of one
    tables: Tables = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, asked: Asked) -> Truth:
        """The exact answers of a table."""
        moments, names = Moments.of(data, schema), list(schema.feature_names)
        columns = [(column, name) for column in schema.columns for name in column.feature_names]
        numbers = np.array([isinstance(column, dpm.Numeric) for column, _ in columns])
        places = np.flatnonzero(np.where(numbers, moments.deviations > 0.0, moments.deviations > RARE))
        first, second = np.triu_indices(len(places), 1)
        apart = np.array(
            [columns[places[i]][0] is not columns[places[j]][0] for i, j in zip(first, second, strict=True)]
        )
        single = [k for k, (column, _) in enumerate(columns) if len(column.feature_names) == 1 and k in places]
        target = names.index(asked.target)
        targets = (target, *[k for k in single if k != target][:4])
        return cls(
            data, schema, asked, len(data), moments, places, (first[apart], second[apart]), targets, cross_tables(data, schema)
        )  # fmt: skip

    def errors(
        self, found: Moments | None, tables: Tables | None = None, line: Callable[[int], Line] | None = None
    ) -> dict[str, float]:
        """One number a question that is answered; ``line`` makes the regressions of a way that has its own."""
        errors = {}
        if found is not None:
            kept, exact = found.kept(self.places), self.moments.kept(self.places)
            r, truth = kept.correlations[self.pairs], exact.correlations[self.pairs]
            errors["correlations"] = root_mean_square(r - truth)
            errors["pairs found"] = share_found(r, np.abs(truth) > RELATED)
            errors["means"] = root_mean_square((kept.mean - exact.mean) / exact.deviations)
            errors["components"] = missed_variance(kept.correlations, exact.correlations)
            if self.asked.groups:
                errors["group means"] = self.error_of_groups(found)
        if found is not None or line is not None:
            fit = line or (lambda target: self.ridge(found, target))  # type: ignore[arg-type]
            losses = [self.lost(fit(target), target) for target in self.targets]
            errors |= {"one regression": losses[0], "five regressions": float(np.mean(losses))}
        if tables:
            misplaced = [
                float(np.abs(tables[pair] - exact).sum()) / 2.0 / self.n_rows for pair, exact in self.tables.items()
            ]
            errors |= {"one cross table": misplaced[0], "all cross tables": float(np.mean(misplaced))}
        return errors

    def others(self, target: int) -> Any:
        """The features of all other columns."""
        return others_of(self.schema, self.schema.feature_names[target])

    def ridge(self, found: Moments, target: int) -> Line:
        """The line that moments give, on features that vary in them."""
        a = self.others(target)
        a = a[found.deviations[a] > 0.0]
        scale = found.deviations[a]
        system = found.correlations[np.ix_(a, a)] + RIDGE * np.eye(len(a))
        coefficients = np.zeros(len(found.mean))
        coefficients[a] = np.linalg.solve(system, found.covariance[a, target] / scale) / scale
        return Line(coefficients, float(found.mean[target] - coefficients @ found.mean))

    def lost(self, line: Line, target: int) -> float:
        """R² of least squares on the table, less that of the line."""
        a, covariance = self.others(target), self.moments.covariance
        scale = np.where(self.moments.deviations > 0.0, self.moments.deviations, 1.0)
        correlations = (covariance / np.outer(scale, scale))[np.ix_(a, a)]
        best = np.linalg.pinv(correlations, rcond=1e-9, hermitian=True) @ (covariance[a, target] / scale[a]) / scale[a]
        off = line.coefficients[a] - best
        shift = line.intercept + line.coefficients @ self.moments.mean - self.moments.mean[target]
        lost = (off @ covariance[np.ix_(a, a)] @ off + shift**2) / covariance[target, target]
        return float(min(lost, CAP))

    def error_of_groups(self, found: Moments) -> float:
        """Root mean square over the groups' means, in SDs of the table's value."""
        names = list(self.schema.feature_names)
        value = names.index(self.asked.value)
        groups = [k for k, name in enumerate(names) if name.startswith(f"{self.asked.groups}=")]
        groups = [k for k in groups if self.moments.mean[k] >= LARGE_GROUP]

        def means(moments: Moments) -> FloatArray:
            return moments.mean[value] + moments.covariance[groups, value] / np.maximum(moments.mean[groups], 1e-9)

        errors = (means(found) - means(self.moments)) / self.moments.deviations[value]
        return root_mean_square(np.clip(errors, -CAP, CAP))


def cross_tables(data: Any, schema: dpm.Schema) -> Tables:
    """Counts of each pair of columns with levels, in the order of their levels."""
    frame = data if isinstance(data, pd.DataFrame) else data.to_pandas()
    columns = {column.name: column for column in schema.columns if isinstance(column, LEVELS)}
    cells = frame[list(columns)].astype(
        {name: bool for name, column in columns.items() if isinstance(column, dpm.Boolean)}
    )
    for name, column in columns.items():
        levels = [False, True] if isinstance(column, dpm.Boolean) else list(column.levels)
        cells[name] = pd.Categorical(cells[name], categories=levels)
    counts = {pair: cells.groupby(list(pair), observed=False).size() for pair in combinations(columns, 2)}
    return {pair: found.unstack().to_numpy(float) for pair, found in counts.items()}


def share_found(found: FloatArray, related: Any) -> float:
    """The share of related pairs in the longest list, from the largest correlation down, of which at most 5 % are not related."""
    order = np.argsort(-np.abs(found))
    right = np.cumsum(related[order])
    length = np.arange(1, len(right) + 1)
    allowed = (length - right <= FALSE * length) & (np.abs(found[order]) > 0.0)
    return float(np.max(right[allowed], initial=0) / max(right[-1], 1))


def missed_variance(found: FloatArray, exact: FloatArray) -> float:
    """The share of the variance of the best three components that those of ``found`` miss."""
    top = np.linalg.eigh(found)[1][:, -N_COMPONENTS:]
    return 1.0 - float(np.trace(top.T @ exact @ top)) / float(np.linalg.eigvalsh(exact)[-N_COMPONENTS:].sum())
