"""Units of several rows: keeping k rows of each beside scaling a unit's sums down, at the same noise; and what a unit costs.

``python -m benchmarks.practice.privacy_units`` writes the tables of ``docs/evidence/people-not-rows.md``: ``TRIALS`` runs a cell,
seeds from ``FIRST_SEED``; some 3 minutes on one idle core. Contributions are bounded in NumPy; the noise is the library's.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pages import EVIDENCE, head, write_part
from dpmoments.base.values import FloatArray
from dpmoments.datasets import adult
from dpmoments.mechanisms import Gaussian, MatrixLaplace
from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Boolean, Numeric
from dpmoments.schema.schema import Schema

PAGE = EVIDENCE / "people-not-rows.md"
TRIALS = 200
FIRST_SEED = 4000
PEOPLE = 10_000
FEATURES = 5
KEPT = (1, 5, 20)
BUDGETS = {"ε = 1": PrivacyBudget.pure(1.0), "(1, 10⁻⁶)": PrivacyBudget.approximate(1.0, 1e-6)}
BOUND = 4.0
"""Public bounds of made-up columns, in their standard deviations."""


@dataclass(frozen=True)
class LongTable:
    """Rows of people in the unit ball, sorted by person."""

    rows: FloatArray  # (n, d)
    person: npt.NDArray[np.int64]  # (n,), 0, 1, …, in order

    @classmethod
    def of(cls, values: FloatArray, person: npt.NDArray[np.int64], lower: FloatArray, upper: FloatArray) -> LongTable:
        """Values in the table's units, moved into their bounds and encoded about the midpoints."""
        order = np.argsort(person, kind="stable")
        inside = (np.clip(values, lower, upper) - (lower + upper) / 2.0) / ((upper - lower) / 2.0)
        codes = np.unique(person[order], return_inverse=True)[1].astype(np.int64)
        return cls(inside[order] / np.sqrt(values.shape[1]), codes)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Rows of each person."""
        return np.bincount(self.person).astype(np.int64)


def rows_per_person(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Skewed: a median of 4, one person in a hundred with more than 80."""
    return np.minimum(np.ceil(2.2 * (1.0 + rng.pareto(1.2, PEOPLE))), 500).astype(np.int64)


def made_up(seed: int, *, shared: float, drift: float = 0.0) -> LongTable:
    """Normal columns, correlated; ``shared`` of a variance is between people, whose mean moves by ``drift`` with log rows."""
    rng = np.random.default_rng(seed)
    sizes = rows_per_person(rng)
    mixing = np.linalg.cholesky(0.7 * np.eye(FEATURES) + 0.3)
    log_size = np.log(sizes)
    own = rng.normal(size=(PEOPLE, FEATURES)) * np.sqrt(shared) + drift * (log_size - log_size.mean())[:, None]
    person = np.repeat(np.arange(PEOPLE), sizes)
    values = (own[person] + rng.normal(size=(len(person), FEATURES)) * np.sqrt(1.0 - shared)) @ mixing.T
    return LongTable.of(values, person, np.full(FEATURES, -BOUND), np.full(FEATURES, BOUND))


def adult_by_weight() -> LongTable:
    """The rows of Adult; those with one survey weight, of which there are up to 13, stand for a person's."""
    frame = adult("train", complete=False).frame
    age, weight, education, hours = (
        frame[name].to_numpy() for name in ("age", "fnlwgt", "education-num", "hours-per-week")
    )
    values = np.column_stack([age, education, hours]).astype(np.float64)
    return LongTable.of(values, weight, np.array([0.0, 0.0, 0.0]), np.array([100.0, 16.0, 100.0]))


TABLES: Mapping[str, Callable[[], LongTable]] = {
    "visits, a tenth of a variance between people": lambda: made_up(1, shared=0.1),
    "visits, four fifths between people": lambda: made_up(2, shared=0.8),
    "long-stayers differ": lambda: made_up(3, shared=0.4, drift=0.4),
    "Adult, rows of one weight": adult_by_weight,
}


def augmented(table: LongTable, w: float) -> FloatArray:
    return np.column_stack([np.full(len(table.rows), w), table.rows])


def keep_rows(table: LongTable, k: int, plan: AdditivePlan, rng: np.random.Generator) -> FloatArray:
    """k rows of each person at random."""
    order = np.lexsort((rng.random(len(table.person)), table.person))
    starts = np.concatenate([[0], np.cumsum(table.sizes)[:-1]])
    rank = np.arange(len(order)) - starts[table.person]  # the persons are sorted
    kept = augmented(table, plan.augmentation)[order[rank < k]]
    return kept.T @ kept


def scale_by_number(table: LongTable, k: int, plan: AdditivePlan, _: np.random.Generator) -> FloatArray:
    """All rows of a person, each with weight min(1, k/m)."""
    rows = augmented(table, plan.augmentation) * np.sqrt(np.minimum(1.0, k / table.sizes))[table.person, None]
    return rows.T @ rows


def scale_by_norm(table: LongTable, k: int, plan: AdditivePlan, _: np.random.Generator) -> FloatArray:
    """All rows of a person, their matrix scaled down to the norm that k rows of the greatest length have."""
    w = plan.augmentation
    rows = augmented(table, w)
    if isinstance(plan.mechanism, MatrixLaplace):  # the nuclear norm of a sum of squares is its trace
        lengths = np.bincount(table.person, (rows * rows).sum(axis=1))
    else:
        lengths = frobenius_norms(rows, table)
    weights = np.minimum(1.0, k * (1.0 + w * w) / lengths)
    rows = rows * np.sqrt(weights)[table.person, None]
    return rows.T @ rows


def frobenius_norms(rows: FloatArray, table: LongTable) -> FloatArray:
    """‖Σ z zᵀ‖_F over each person's rows."""
    total = np.zeros(len(table.sizes))
    for i, j in itertools.product(range(rows.shape[1]), repeat=2):
        total += np.bincount(table.person, rows[:, i] * rows[:, j]) ** 2
    return np.sqrt(total)


WAYS = {"keep k rows": keep_rows, "scale by number": scale_by_number, "scale by norm": scale_by_norm}


def mean_of(matrix: FloatArray, w: float, units: FloatArray) -> FloatArray:
    """The mean in units of the whole table's standard deviations, from Σ z zᵀ with z = (w, x)."""
    return np.asarray(matrix[0, 1:] / matrix[0, 0] * w / units)


@cache
def table_named(name: str) -> LongTable:
    return TABLES[name]()


def plan_of(d: int, budget: PrivacyBudget, k: int | None) -> AdditivePlan:
    """The additive plan for units of k rows, or for rows."""
    mechanism = MatrixLaplace() if budget.kind is BudgetKind.PURE else Gaussian()
    unit = None if k is None else PrivacyUnit("person", k)
    plan = mechanism.plan_for(MomentShape(d), PrivacyRequest(budget, Neighbors.ADD_REMOVE, unit))
    assert isinstance(plan, AdditivePlan)
    return plan


def noise_of(plan: AdditivePlan, seed: int) -> FloatArray:
    """What the plan adds to the augmented matrix."""
    nothing = np.zeros((plan.dimension,) * 2, dtype=np.int64)
    return plan.add_noise(PrivacyFilter(plan, insecure_generator(seed)), "noise alone", nothing)


@dataclass(frozen=True)
class Errors:
    """Root mean squares over the trials and columns, in % of a standard deviation."""

    from_rows: float
    from_target: float

    @classmethod
    def of(cls, runs: Iterable[FloatArray], truth: FloatArray, target: FloatArray) -> Errors:
        found = np.array(list(runs))
        return cls(*(100.0 * float(np.sqrt(np.mean((found - exact) ** 2))) for exact in (truth, target)))

    def cell(self) -> str:
        """Against the rows' truth, and against the truth of what is estimated."""
        return f"{self.from_rows:.2g} ({self.from_target:.2g})"


@cache
def errors(name: str, budget_name: str, k: int | None, way: str) -> Errors:
    """Of ``TRIALS`` releases; ``k`` None: the unit is a row."""
    table = table_named(name)
    units, plan = table.rows.std(axis=0), plan_of(table.rows.shape[1], BUDGETS[budget_name], k)
    w = plan.augmentation
    whole = augmented(table, w)
    truth = mean_of(whole.T @ whole, w, units)
    if k is None:
        exact = whole.T @ whole
        target, draw = truth, None
    else:
        of_target = scale_by_norm if way == "scale by norm" else scale_by_number
        exact = WAYS[way](table, k, plan, np.random.default_rng(0))
        target = mean_of(of_target(table, k, plan, np.random.default_rng(0)), w, units)
        draw = WAYS[way] if way == "keep k rows" else None

    def run(seed: int) -> FloatArray:
        kept = exact if draw is None or k is None else draw(table, k, plan, np.random.default_rng(seed))
        return mean_of(kept + noise_of(plan, seed), w, units)

    return Errors.of(map(run, range(FIRST_SEED, FIRST_SEED + TRIALS)), truth, target)


def tables() -> Iterator[str]:
    yield from head("table | rows | people | rows a person: median, 99 %, most", "lrrl")
    for name in TABLES:
        sizes = table_named(name).sizes
        middle, high = np.quantile(sizes, [0.5, 0.99], method="inverted_cdf")
        yield f"| {name} | {sizes.sum():,} | {len(sizes):,} | {middle}, {high}, {sizes.max()} |"


def comparison() -> Iterator[str]:
    yield from head(f"table | budget | a row is the unit | k | {' | '.join(WAYS)}", "llrrrrr")
    for name, budget, k in itertools.product(TABLES, BUDGETS, KEPT):
        of_row = f"{errors(name, budget, None, '').from_rows:.2g}" if k == KEPT[0] else ""
        label = (name, budget) if k == KEPT[0] else ("", "")
        found = [errors(name, budget, k, way) for way in WAYS]
        yield f"| {' | '.join(label)} | {of_row} | {k} | {' | '.join(one.cell() for one in found)} |"


def ratios() -> Iterator[str]:
    """Errors from the truth of what is estimated, keeping rows, as multiples of those of the other ways."""
    yield from head("k | as a multiple of scale by number | of scale by norm", "rll")
    for k in KEPT:
        shown = []
        for way in ("scale by number", "scale by norm"):
            found = [
                errors(name, budget, k, "keep k rows").from_target / errors(name, budget, k, way).from_target
                for name, budget in itertools.product(TABLES, BUDGETS)
            ]
            low, middle, high = np.quantile(found, [0.0, 0.5, 1.0])
            shown.append(f"{low:.2f} to {high:.2f}, median {middle:.2f}")
        yield f"| {k} | {' | '.join(shown)} |"


def seconds(make: Callable[[], object]) -> float:
    return min(timeit.repeat(make, number=1, repeat=3))


def speed() -> Iterator[str]:
    """The rounds that find which rows count, and a pass over those, as ratios to a plain pass: one thread."""
    rng, n, d = np.random.default_rng(0), 10**6, 10
    table = pa.table({f"x{i}": rng.uniform(0, 100, n) for i in range(d)} | {"person": rng.integers(0, 10**5, n)})
    schema = Schema(*(Numeric(f"x{i}", 0, 100) for i in range(d)))
    plain = seconds(lambda: Rows.of(table, schema, threads=1).moments())
    yield from head("k | finding which rows count | a pass over them", "rrr")
    for k in KEPT:
        rows = Rows.of(table, schema, threads=1, privacy_unit=PrivacyUnit("person", k))
        bounded = rows.bounded((1, 2))
        first, later = seconds(lambda rows=rows: rows.bounded((1, 2))), seconds(bounded.moments)  # type: ignore[misc]
        yield f"| {k} | {first / plain:.1f} | {later / plain:.1f} |"


MEMORY_OF_SELECTION = """
import sys, dpmoments as dpm
from benchmarks.speed.timing import peak_kilobytes
from dpmoments.rows.rows import Rows
schema = dpm.Schema.load(sys.argv[2])
Rows.of(sys.argv[1], schema, threads=1).moments()
before = peak_kilobytes()
rows = Rows.of(sys.argv[1], schema, threads=1, privacy_unit=dpm.PrivacyUnit("person", 5)).bounded((1, 2))
found = rows.selection
held = found.repeated.nbytes + found.ids.nbytes + found.of_units.nbytes + found.thresholds.nbytes
print(held / 2**20, (peak_kilobytes() - before) / 1024)
"""
"""Run in a fresh process: what is held for the passes, and what finding it adds to the peak of a plain pass, in megabytes."""


def memory() -> Iterator[str]:
    """Of 10⁶ rows of 10⁵ people, k = 5, resident memory (Linux), one thread: all rows alike, and all different."""
    heads = "10⁶ rows of 10⁵ people, k = 5 | held for the passes | added to the peak of a plain pass while it is found"
    yield from head(heads, "lrr")
    rng, n = np.random.default_rng(0), 10**6
    person = {"person": rng.integers(0, 10**5, n)}
    with tempfile.TemporaryDirectory() as made:
        paths = Path(made) / "rows.parquet", Path(made) / "rows.yaml"
        for d in (5, 20):
            tables = {
                "flags, all rows alike": ({f"x{i}": np.zeros(n, dtype=bool) for i in range(d)}, Boolean),
                "numbers, no two rows alike": (
                    {f"x{i}": rng.random(n) for i in range(d)},
                    partial(Numeric, lower=0, upper=1),
                ),
            }
            for name, (columns, kind) in tables.items():
                pq.write_table(pa.table(columns | person), paths[0])
                Schema(*map(kind, columns)).save(paths[1])
                run = [sys.executable, "-c", MEMORY_OF_SELECTION, *map(str, paths)]
                done = subprocess.run(run, capture_output=True, text=True, check=True)
                held, added = map(float, done.stdout.split())
                yield f"| {d} columns of {name} | {held:.0f} MB | {added:.0f} MB |"


if __name__ == "__main__":
    write_part(PAGE, "tables", tables())
    write_part(PAGE, "speed", speed())
    write_part(PAGE, "memory", memory())
    write_part(PAGE, "mean", comparison())
    write_part(PAGE, "ratios", ratios())
