"""Every mechanism that can serve, on the tables and budgets of Amin et al. (2019), beside `auto`.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.every_mechanism

Replace-one, second moment alone, rows of norm 1, ‖Ĝ − G‖_F/n, each mechanism with the repair that a release has by default.
Above 50 features there are half as many trials, and fewer of what is slow there or passes over the rows in every trial (`FEWER`).
Fixed seeds, each table summed once a lattice. Writes the tables of docs/evidence/every-mechanism.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.amin.acceptance_counts import algorithm_3
from benchmarks.papers.reproduce.figures.amin import EPSILONS
from benchmarks.papers.summed_once import SummedOnce, repaired, summed_once
from dpmoments import datasets
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.moments.repair import Repair
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter

PAGE = EVIDENCE / "every-mechanism.md"
TRIALS = 40
DELTAS = (0.0, 1e-16, 1e-10, 1e-3)
FEWER: Mapping[str, tuple[int, int]] = {
    "iterative-eigenvectors": (10, 2),
    "kapralov-talwar": (10, 2),
    "coinpress": (5, 1),
    "private-preconditioning": (3, 0),
}
"""Trials below 50 features, and above; 0: left out."""
MANY_FEATURES = 50
WITHIN = 1.05
AUTO = "auto"
DATA: tuple[tuple[str, Callable[[], np.ndarray]], ...] = (
    ("Wine", lambda: papers_datasets.standardized_unit_rows(datasets.wine())),
    ("Airfoil", lambda: papers_datasets.standardized_unit_rows(datasets.airfoil(), include_target=True)),
    ("Adult, complete rows", lambda: papers_datasets.standardized_unit_rows(datasets.adult(), include_target=True)),
    (
        "Adult, all rows",
        lambda: papers_datasets.standardized_unit_rows(datasets.adult(complete=False), unknown_is_a_level=True),
    ),
    *(
        (f"Algorithm 3, d = {d}, n = {n:,}", lambda n=n, d=d: algorithm_3(n, d))
        for d in (10, 100)
        for n in (1_000, 10_000, 50_000)
    ),
)


@dataclass(frozen=True)
class Measured:
    """One mechanism at one budget on one table; `chosen` is what made the release, another than the mechanism for `auto`."""

    mechanism: str
    epsilon: float
    delta: float
    mean: float
    standard_error: float
    trials: int
    chosen: str


@dataclass(frozen=True)
class Cell:
    """All mechanisms at one budget on one table."""

    epsilon: float
    delta: float
    found: Mapping[str, Measured]

    @property
    def best(self) -> Measured:
        """The lowest curve that is not `auto`'s."""
        return min((one for name, one in self.found.items() if name != AUTO), key=lambda one: one.mean)

    @property
    def ratio(self) -> float:
        """Error of `auto` over it."""
        return self.found[AUTO].mean / self.best.mean

    @property
    def ratio_error(self) -> float:
        """Its standard error; 0 where one made both."""
        if self.found[AUTO].chosen == self.best.mechanism:
            return 0.0
        parts = [one.standard_error / one.mean for one in (self.found[AUTO], self.best)]
        return self.ratio * math.hypot(*parts)


def trials_of(mechanism: str, n_features: int) -> int:
    return FEWER.get(mechanism, (TRIALS, TRIALS // 2))[n_features > MANY_FEATURES]


def budgets(mechanism: Mechanism) -> Iterator[PrivacyBudget]:
    """Those of the page that it can spend; what knows no δ spends ε alone, once for all δ."""
    for epsilon in EPSILONS:
        if BudgetKind.PURE in mechanism.budget_kinds:
            yield PrivacyBudget.pure(epsilon)
        if BudgetKind.APPROXIMATE in mechanism.budget_kinds:
            yield from (PrivacyBudget.approximate(epsilon, delta) for delta in DELTAS if delta)


def errors(rows: SummedOnce, plan: Plan, trials: int) -> np.ndarray:
    n_rows = rows.n_rows
    found = []
    for seed in range(trials):
        noisy = plan.run(rows, PrivacyFilter.open(plan, insecure_seed=seed))
        about_zero = noisy.gram
        if noisy.center is not None:
            cross = np.outer(noisy.center, noisy.sum)
            about_zero = noisy.gram + cross + cross.T + noisy.count * np.outer(noisy.center, noisy.center)
        gram = repaired(plan, about_zero, n_rows, Repair.SPECTRAL)
        found.append(dpm.metrics.normalized_frobenius_error(gram, rows.gram, n_rows=n_rows))
    return np.array(found)


def measure(name: str, rows: SummedOnce) -> list[Measured]:
    """Every mechanism at every budget that serves the table."""
    found = []
    for mechanism in map(make_mechanism, MECHANISMS):
        trials, start = trials_of(mechanism.name, rows.n_features), time.perf_counter()
        for budget in budgets(mechanism) if trials else ():
            try:
                plan = rows.plan(mechanism, budget)
            except ValueError:  # it does not serve the table, or not at this budget
                continue
            of_trials = errors(rows, plan, trials)
            error = float(of_trials.std(ddof=1) / math.sqrt(trials)) if trials > 1 else math.nan
            about = mechanism.name, budget.epsilon, budget.delta
            found.append(Measured(*about, float(of_trials.mean()), error, trials, plan.mechanism.name))
        print(f"{name}: {mechanism.name}, {time.perf_counter() - start:.1f} s", flush=True)
    return found


def cells(found: Sequence[Measured]) -> list[Cell]:
    """Budget by budget; what spends ε alone stands beside every δ."""
    made = []
    for delta in DELTAS:
        for epsilon in EPSILONS:
            at = {
                one.mechanism: one
                for one in sorted(found, key=lambda one: one.delta)  # its own δ, where it has one, in place of none
                if one.epsilon == epsilon and one.delta in (0.0, delta)
            }
            made.append(Cell(epsilon, delta, at))
    return made


def table_lines(name: str, found: Sequence[Measured]) -> list[str]:
    lines = []
    for mechanism in [AUTO, *(one for one in MECHANISMS if one != AUTO)]:
        for delta in DELTAS:
            at = {one.epsilon: one for one in found if (one.mechanism, one.delta) == (mechanism, delta)}
            if at:
                trials = {one.trials for one in at.values()}
                label = f"`{mechanism}`" + (f", δ = {delta:g}" if delta else "")
                label += f" ({min(trials)} {'trial' if trials == {1} else 'trials'})" if mechanism in FEWER else ""
                values = [f"{at[epsilon].mean:.3g}" if epsilon in at else "–" for epsilon in EPSILONS]
                lines.append(f"| {name} | {label} | " + " | ".join(values) + " |")
    return lines


def summary(by_table: Mapping[str, Sequence[Cell]]) -> list[str]:
    """In how many cells `auto` is the lowest curve or near it, and the others by name."""
    all_cells = [(name, cell) for name, found in by_table.items() for cell in found]
    near = [cell for _, cell in all_cells if cell.ratio <= WITHIN]
    lines = [
        f"`auto` is the lowest curve, or within {WITHIN - 1:.0%} of it, in {len(near)} of {len(all_cells)} cells "
        f"({len(near) / len(all_cells):.1%}). The others:",
        "",
        *head("table | δ | ε | `auto` | lowest | `auto` / lowest", "lrrllr"),
    ]
    for name, cell in sorted(all_cells, key=lambda item: -item[1].ratio):
        if cell.ratio > WITHIN:
            auto, best = cell.found[AUTO], cell.best
            lines.append(
                f"| {name} | {cell.delta:g} | {cell.epsilon:g} | `{auto.chosen}` {auto.mean:.3g} | "
                f"`{best.mechanism}` {best.mean:.3g} | {cell.ratio:.2f} ± {cell.ratio_error:.2f} |"
            )
    return lines


def main() -> None:
    by_table = {}
    lines = [
        f"| table | mechanism | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |",
        "| --- | --- |" + " ---: |" * len(EPSILONS),
    ]
    for name, make in DATA:
        found = measure(name, summed_once(make()))
        by_table[name] = cells(found)
        lines += table_lines(name, found)
    trials = f"{TRIALS} trials below {MANY_FEATURES} features and half as many above, where no number is named."
    write_part(PAGE, "summary", [*summary(by_table), "", trials])
    write_part(PAGE, "tables", lines)


if __name__ == "__main__":
    main()
