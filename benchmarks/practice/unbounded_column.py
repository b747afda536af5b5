"""One column with no bound: errors of ``log-scale-histogram``, and whether a release warns where it is wrong.

``python -m benchmarks.practice.unbounded_column [table …]`` prints the tables of ``docs/evidence/unbounded-column.md``: sampling,
scales, comparison, columns, pure, zcdp; some 15 minutes on one core.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.mechanisms import Auto, CoinPress, LogScaleHistogram
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Numeric
from dpmoments.schema.schema import Schema

TRIALS = 10
FIRST_SEED = 500
SIZES = (200, 1000, 10_000, 100_000)
EPSILONS = (0.1, 1.0, 3.0)
OFFSETS = (0.0, 1e3, 1e9)
SCALES = (1e-6, 1.0, 1e6)
KINDS = ("ε", "ρ")
FAILED = 1.0
"""A release has failed where its mean is more than a standard deviation off, or its standard deviation by a factor e."""

Drawn = Callable[[np.random.Generator, int], FloatArray]
COLUMNS: Mapping[str, Drawn] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 3 degrees": lambda rng, n: rng.standard_t(3, n) / 3.0**0.5,
    "uniform": lambda rng, n: rng.uniform(-(3.0**0.5), 3.0**0.5, n),
    "Laplace": lambda rng, n: rng.laplace(size=n) / 2.0**0.5,
    "lognormal": lambda rng, n: np.exp(rng.normal(size=n)) / 2.161,
    "two points": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "90 % zeros": lambda rng, n: np.where(rng.random(n) < 0.1, rng.exponential(1.0, n), 0.0) / 0.436,
    "constant": lambda _, n: np.zeros(n),
}
"""Columns of standard deviation 1, but the last. Constants were set on the first two."""


@dataclass(frozen=True)
class Cell:
    """Errors of several releases.

    Attributes
    ----------
    mean : ndarray
        |released mean − mean of the rows| in standard deviations of the rows.
    deviation : ndarray
        |ln(released standard deviation / that of the rows)|, infinite where the released variance is not positive. Of constant
        columns the released standard deviation.
    warned : ndarray of bool
    """

    mean: FloatArray
    deviation: FloatArray
    warned: BoolArray

    @property
    def failed(self) -> BoolArray:
        bad: BoolArray = ~((self.mean <= FAILED) & (self.deviation <= FAILED))
        return bad

    @classmethod
    def pooled(cls, cells: list[Cell]) -> Cell:
        return cls(*(np.concatenate([getattr(one, name) for one in cells]) for name in ("mean", "deviation", "warned")))

    def __str__(self) -> str:
        failed = f"; **{self.failed.mean():.0%}**" if self.failed.any() else ""
        silent = f", {(self.failed & ~self.warned).mean():.0%} silent" if (self.failed & ~self.warned).any() else ""
        return f"{quantiles(self.mean)}; {quantiles(self.deviation)}{failed}{silent}"


def quantiles(errors: FloatArray) -> str:
    return " / ".join(f"{np.quantile(errors, level, method='inverted_cdf'):.2g}" for level in (0.5, 0.95))


def budget_of(kind: str, epsilon: float) -> PrivacyBudget:
    """ε, (ε, 10⁻⁶), or ρ = ε²/2."""
    if kind == "ε":
        return PrivacyBudget.pure(epsilon)
    return PrivacyBudget.approximate(epsilon, 1e-6) if kind == "(ε, δ)" else PrivacyBudget.zcdp(epsilon**2 / 2.0)


def run(
    mechanism: Any, schema: Schema, values: FloatArray, budget: PrivacyBudget, relation: Neighbors, seed: int
) -> Any:
    n_rows = len(values) if relation.table_size_is_public else None
    shape = MomentShape.of(schema, mean=True, n_rows=n_rows)
    plan = mechanism.plan(shape, budget, relation)
    rows = Rows.of(values[:, None], schema, neighbors=relation, threads=1)
    return plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))


def cell(
    column: str,
    n: int,
    budget: PrivacyBudget,
    relation: Neighbors,
    *,
    offset: float = 0.0,
    scale: float = 1.0,
    mechanism: Any = None,
    schema: Schema | None = None,
    trials: int = TRIALS,
    first_seed: int = FIRST_SEED,
) -> Cell:
    schema = schema or Schema.unbounded(1)
    encoding = schema.encoding(mean=True)
    unit, origin = float(encoding.scale[0]), float(encoding.offset[0])
    errors, warned = np.empty((trials, 2)), np.empty(trials, dtype=bool)
    for seed in range(first_seed, first_seed + trials):
        values = scale * (offset + COLUMNS[column](np.random.default_rng(seed), n))
        from_first = values - values[0]  # beside 10⁹ squares lose the spread
        spread = float(np.std(from_first))
        noisy = run(mechanism or LogScaleHistogram(), schema, values, budget, relation, seed)
        # Of a mean alone the mean of a NoisyMean, which has no covariance.
        mean = origin + unit * float(noisy.mean[0])
        variance = unit**2 * float(noisy.covariance[0, 0]) if hasattr(noisy, "covariance") else spread**2
        released = max(variance, 0.0) ** 0.5
        relative = released / scale
        if spread:
            relative = abs(np.log(released / spread)) if released else np.inf
        error = abs((mean - values[0]) - float(np.mean(from_first))) / (spread or scale)
        errors[seed - first_seed] = error, relative
        warned[seed - first_seed] = bool(noisy.diagnostics.get("warnings"))
    return Cell(errors[:, 0], errors[:, 1], warned)


def main_tables(kind: str) -> Iterator[str]:
    """Every column, size, budget and relation; means 0, 10³ and 10⁹ standard deviations away pooled, then where they fail."""
    failures = []
    yield f"\n| budget | relation | n | ε | {' | '.join(COLUMNS)} |"
    yield f"| --- | --- | ---: | ---: |{' --- |' * len(COLUMNS)}"
    for relation in Neighbors:
        for n, epsilon in itertools.product(SIZES, EPSILONS):
            shown = []
            for column in COLUMNS:
                found = {
                    offset: cell(column, n, budget_of(kind, epsilon), relation, offset=offset) for offset in OFFSETS
                }
                shown.append(str(Cell.pooled(list(found.values()))))
                failures += [
                    f"| {kind} | {relation} | {column} | {offset:.0e} | {n:,} | {epsilon:g} | {one.failed.mean():.0%} | "
                    f"{(one.failed & one.warned).sum() / one.failed.sum():.0%} |"
                    for offset, one in found.items()
                    if one.failed.any()
                ]
            yield f"| {kind if kind == 'ε' else 'ρ = ε²/2'} | {relation} | {n:,} | {epsilon:g} | {' | '.join(shown)} |"
    yield "\n**Cells with releases that fail**\n"
    yield "| budget | relation | column | mean, in sd | n | ε | fail | of these warn |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    yield from failures


def sampling_table() -> Iterator[str]:
    """What sampling alone does to mean and standard deviation."""
    yield f"\n| n | {' | '.join(COLUMNS)} |"
    yield f"| ---: |{' --- |' * len(COLUMNS)}"
    for n in SIZES:
        shown = []
        for drawn in COLUMNS.values():
            large = drawn(np.random.default_rng(10**6), 10**6)
            samples = [drawn(np.random.default_rng(seed), n) for seed in range(200)]
            means = np.array([abs(np.mean(one) - np.mean(large)) for one in samples])
            spreads = np.array([abs(np.log(np.std(one) / np.std(large))) if large.any() else 0.0 for one in samples])
            shown.append(f"{quantiles(means)}; {quantiles(spreads)}")
        yield f"| {n:,} | {' | '.join(shown)} |"


def scale_table() -> Iterator[str]:
    """Units of any size, and (ε, δ), where ε alone is spent."""
    yield "\n| budget | relation | column | scale 10⁻⁶ | 1 | 10⁶ |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for kind, relation, column in itertools.product(("ε", "(ε, δ)", "ρ"), Neighbors, ("normal", "lognormal")):
        shown = [str(cell(column, 10_000, budget_of(kind, 1.0), relation, offset=1e3, scale=scale)) for scale in SCALES]
        yield f"| {kind} | {relation} | {column} | {' | '.join(shown)} |"


def within(bound: float) -> Schema:
    return Schema(Numeric("x", -bound, bound))


OTHERS: Mapping[str, tuple[Any, Schema | None]] = {
    "log-scale-histogram": (LogScaleHistogram(), None),
    "coinpress, variance 10^±2, mean within 10": (CoinPress(eigenvalue_bounds=(0.01, 100.0), mean_radius=10.0), None),
    "coinpress, variance 10^±12, mean within 10⁶": (CoinPress(eigenvalue_bounds=(1e-12, 1e12), mean_radius=1e6), None),
    "auto, bounds of ±5 sd": (Auto(), within(5.0)),
    "auto, bounds of ±100 sd": (Auto(), within(100.0)),
    "means: log-scale-histogram": (make_mean_mechanism("log-scale-histogram"), None),
    "means: variance-aware": (make_mean_mechanism("variance-aware"), None),
    "means: coinpress, radius 10⁶, scale 1": (make_mean_mechanism("coinpress", radius=1e6, scale=1.0), None),
    "means: karwa-vadhan, radius 10⁶": (make_mean_mechanism("karwa-vadhan", radius=1e6), None),
    "means: symq, radius 10⁶": (make_mean_mechanism("symq", radius=1e6), None),
    "means: naive, radius 10, scale 1": (make_mean_mechanism("naive", radius=10.0, scale=1.0), None),
}


def comparison_table() -> Iterator[str]:
    """Others where they can run, told what they ask for."""
    columns = ("normal", "t, 3 degrees", "lognormal")
    yield f"\n| budget | n | mechanism | {' | '.join(columns)} |"
    yield f"| --- | ---: | --- |{' --- |' * len(columns)}"
    for kind, n, (name, (mechanism, schema)) in itertools.product(KINDS, (1000, 10_000), OTHERS.items()):
        budget = budget_of(kind, 1.0)
        if budget.kind not in mechanism.budget_kinds:
            continue
        found = [
            cell(column, n, budget, Neighbors.REPLACE_ONE, mechanism=mechanism, schema=schema) for column in columns
        ]
        shown = [quantiles(one.mean) if name.startswith("means") else str(one) for one in found]
        yield f"| {kind} = {'1' if kind == 'ε' else '½'} | {n:,} | {name} | {' | '.join(shown)} |"


def columns_table() -> Iterator[str]:
    """Means of several columns, 1,000 rows, replace-one: ‖error‖/√d over 50 tables."""
    names = ("log-scale-histogram", "variance-aware", "coinpress")
    yield f"\n| budget | column | d | {' | '.join(names)} |"
    yield f"| --- | --- | ---: |{' --- |' * len(names)}"
    for kind, column, d in itertools.product(KINDS, ("normal", "t, 3 degrees", "lognormal"), (1, 3, 10, 30)):
        shown = []
        for name in names:
            mechanism = make_mean_mechanism(name, **({"radius": 1e6, "scale": 1.0} if name == "coinpress" else {}))
            budget, errors = budget_of(kind, 1.0), []
            if budget.kind in mechanism.budget_kinds:
                for seed in range(50):
                    table = COLUMNS[column](np.random.default_rng(seed), 1000 * d).reshape(1000, d)
                    plan = mechanism.plan(MomentShape(d, n_rows=1000, row_norm=None), budget, Neighbors.REPLACE_ONE)
                    rows = Rows.of(table, Schema.unbounded(d), neighbors=Neighbors.REPLACE_ONE, threads=1)
                    noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
                    errors.append(float(np.linalg.norm(noisy.mean - table.mean(axis=0))) / d**0.5)
            shown.append(quantiles(np.array(errors)) if errors else "")
        yield f"| {kind} = {'1' if kind == 'ε' else '½'} | {column} | {d} | {' | '.join(shown)} |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "sampling": sampling_table,
    "scales": scale_table,
    "comparison": comparison_table,
    "columns": columns_table,
    "pure": lambda: main_tables("ε"),
    "zcdp": lambda: main_tables("ρ"),
}

if __name__ == "__main__":
    for line in itertools.chain.from_iterable(TABLES[name]() for name in sys.argv[1:] or TABLES):
        print(line, flush=True)
