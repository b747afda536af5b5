"""The rule of regimes (Amin et al. 2019, section 3.1; the replication's "hybrid") beside `auto`, and beside its two sides.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.regimes [--trials 20] [--adult-trials 5]

Replace-one, second moment alone, ‖Ĝ − G‖_F/n, eigenvalues moved into [0, n]; `auto` with its own repair. Fixed seeds. Half
a minute. Writes the table of docs/regime-rule.md (its prose stays as it is).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.pages import DOCS, write_part
from benchmarks.papers.amin.acceptance_counts import algorithm_3
from benchmarks.papers.amin.table import DATA, Line, errors
from benchmarks.papers.summed_once import SummedOnce
from dpmoments.mechanisms.auto import Auto
from dpmoments.mechanisms.base import MomentShape
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.iterative_eigenvectors import IterativeEigenvectors
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.repair.repair import Repair

PAGE = DOCS / "regime-rule.md"
EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
DELTAS = (1e-16, 1e-10, 1e-3)
EIGENVECTORS = Line("eigenvectors", IterativeEigenvectors())
PAPER = Line("AD", IterativeEigenvectors(allocation="adaptive", calibration="paper"))
GAUSSIAN = Line("Gaussian", Gaussian())
AUTO = Line("auto", Auto(), Repair.AUTO)


@dataclass(frozen=True)
class Cell:
    """Mean errors at one budget, and what the rule takes: with the table's λ₁, and with n."""

    epsilon: float
    delta: float
    eigenvectors: float
    paper: float
    gaussian: float
    auto: float
    takes_eigenvectors: bool
    takes_eigenvectors_by_n: bool

    @property
    def regime(self) -> float:
        """Error of the rule with the table's λ₁."""
        return self.eigenvectors if self.takes_eigenvectors else self.gaussian

    @property
    def by_n(self) -> float:
        """Error of the rule with n."""
        return self.eigenvectors if self.takes_eigenvectors_by_n else self.gaussian

    @property
    def best(self) -> float:
        """The lesser error of its two sides."""
        return min(self.eigenvectors, self.gaussian)


def cells(rows: SummedOnce, trials: int) -> list[Cell]:
    """All budgets on one table."""
    largest = float(np.linalg.eigvalsh(rows.gram)[-1])
    shape, found = MomentShape(rows.n_features, n_rows=rows.n_rows, mean=False), []

    def takes_eigenvectors(epsilon: float, delta: float, value: float | None) -> bool:
        rule = Auto(rule="regime", largest_eigenvalue=value)
        plan = rule.plan(shape, PrivacyBudget.approximate(epsilon, delta), "replace_one")
        return plan.mechanism.name == "iterative-eigenvectors"

    for epsilon in EPSILONS:
        pure = {line.label: errors(line, rows, epsilon, trials).mean() for line in (EIGENVECTORS, PAPER)}
        for delta in DELTAS:
            approximate = {line.label: errors(line, rows, epsilon, trials, delta).mean() for line in (GAUSSIAN, AUTO)}
            found.append(
                Cell(
                    epsilon,
                    delta,
                    float(pure["eigenvectors"]),
                    float(pure["AD"]),
                    float(approximate["Gaussian"]),
                    float(approximate["auto"]),
                    takes_eigenvectors(epsilon, delta, largest),
                    takes_eigenvectors(epsilon, delta, None),
                )
            )
    return found


def table(name: str, rows: SummedOnce, found: list[Cell], trials: int) -> list[str]:
    """One table, a line a budget."""
    largest = float(np.linalg.eigvalsh(rows.gram)[-1])
    lines = [
        f"### {name}: n = {rows.n_rows:,}, d = {rows.n_features}, λ₁ = {largest:,.0f}, {trials} trials",
        "",
        "| δ | ε | eigenvectors | AD, paper's calibration | Gaussian | the rule takes | `auto` | rule / `auto` |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in sorted(found, key=lambda cell: cell.delta):
        taken = "eigenvectors" if cell.takes_eigenvectors else "Gaussian"
        wrong = "" if cell.regime <= cell.best * 1.02 else " (the worse)"
        lines.append(
            f"| {cell.delta:g} | {cell.epsilon:g} | {cell.eigenvectors:.3g} | {cell.paper:.3g} | {cell.gaussian:.3g} "
            f"| {taken}{wrong} | {cell.auto:.3g} | {cell.regime / cell.auto:.2f} |"
        )
    return [*lines, ""]


def summary(found: list[Cell]) -> list[str]:
    """All tables together."""
    lines = [
        "| rule | takes the better of its two | worst error over the better | error over that of `auto`: least, median, most |"
    ]
    lines.append("| --- | --- | --- | --- |")
    for label, of in (
        ("with the table's λ₁", Cell.regime),
        ("with n in its place", Cell.by_n),
        ("the better of the two", Cell.best),
    ):
        against = np.array([of.fget(cell) / cell.auto for cell in found])  # type: ignore[misc]
        lost = np.array([of.fget(cell) / cell.best for cell in found])  # type: ignore[misc]
        shares = f"{against.min():.2f}, {np.median(against):.2f}, {against.max():.2f}"
        lines.append(f"| {label} | {(lost <= 1.02).sum()} of {len(found)} | {lost.max():.2f} | {shares} |")
    return [*lines, ""]


def main() -> None:
    """Measure, and put the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--adult-trials", type=int, default=5)
    options = parser.parse_args()
    started, pages, everything = time.perf_counter(), list[str](), list[Cell]()
    synthetic = [(f"Algorithm 3, n = {n:,}", lambda n=n: algorithm_3(n, 10)) for n in (1000, 10_000)]
    for name, load in (*DATA, *synthetic):
        rows = SummedOnce(load())
        trials = options.adult_trials if rows.n_rows > 40_000 else options.trials
        found = cells(rows, trials)
        everything += found
        pages += table(name.split(" (")[0].split(",")[0], rows, found, trials)
        print("\n".join(pages[-len(found) :]), flush=True)
    seconds = time.perf_counter() - started
    write_part(PAGE, "regimes", [*summary(everything), *pages, f"Measured in {seconds:.0f} s."])


if __name__ == "__main__":
    main()
