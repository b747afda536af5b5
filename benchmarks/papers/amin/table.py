"""Pure-ε mechanisms on Wine, Airfoil and Adult at the budgets of Amin et al. (2019).

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.table [--trials 30] [--adult-trials 5]

Figure 1 itself is a figure of ``benchmarks.papers.reproduce``; here are both calibrations, the printed acceptance and the
forms that the tables may have. Replace-one, second moment alone (mean=False), rows standardised and scaled to norm 1 (not
private: for comparison on public tables; with and without their targets, Adult in three forms). The error is ‖Ĝ − G‖_F/n
against the exact Gram matrix, eigenvalues moved into [0, n]. Each table is summed once a lattice. Fixed seeds. Five minutes
on one core. Writes the tables of docs/amin-table.md (its prose stays as it is).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

import dpmoments as dpm
from benchmarks.pages import DOCS, write_part
from benchmarks.papers.amin.misprinted_bingham import printed_law, successive_directions
from benchmarks.papers.summed_once import SummedOnce
from dpmoments import datasets
from dpmoments.mechanisms.base import Mechanism, MomentShape, Plan
from dpmoments.mechanisms.iterative_eigenvectors import IterativeEigenvectors, IterativeEigenvectorsPlan
from dpmoments.mechanisms.kapralov_talwar import KapralovTalwar
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Directions
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sampling import noised, without_low_bits
from dpmoments.repair.repair import Repair, repair_moments

PAGE = DOCS / "amin-table.md"
EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class PrintedDirections(Directions):
    """Priced like the right law, as the paper prices it, and drawn by the law of the printed acceptance."""


@noised.register
def _(law: PrintedDirections, query: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    gram = np.asarray(query, dtype=np.float64)
    drawn = successive_directions(gram, law.temperatures, lambda gaps: printed_law(gaps, 1, generator)[0])
    return without_low_bits(drawn)


@dataclass(frozen=True)
class PrintedAcceptance:
    """Asks a filter for directions by the printed law where the plan asks for the right one."""

    privacy_filter: PrivacyFilter

    def draw(self, what: str, law: Directions, query: np.ndarray, sensitivity: Sensitivity) -> np.ndarray:
        """The directions."""
        printed = PrintedDirections(law.temperatures, law.n_features, law.projected)
        return self.privacy_filter.draw(what, printed, query, sensitivity)


class MisprintedPlan(IterativeEigenvectorsPlan):
    """The same temperatures, directions by the law of the printed acceptance: **not** ε-DP, for comparison alone."""

    def draw_directions(
        self, gram: np.ndarray, eigenvalues: np.ndarray, privacy_filter: PrivacyFilter
    ) -> tuple[np.ndarray, list[float]]:
        return super().draw_directions(gram, eigenvalues, PrintedAcceptance(privacy_filter))  # type: ignore[arg-type]


class Misprinted(IterativeEigenvectors):
    """:class:`IterativeEigenvectors` with the printed acceptance."""

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> MisprintedPlan:
        plan = super().calibrate(shape, budget, neighbors)
        return MisprintedPlan(**{option.name: getattr(plan, option.name) for option in fields(plan)})


@dataclass(frozen=True)
class Line:
    """A row of the tables."""

    label: str
    mechanism: Mechanism
    repair: Repair = Repair.CLIP


LINES = (
    Line("AD, tight", IterativeEigenvectors(allocation="adaptive")),
    Line("AD, paper's calibration", IterativeEigenvectors(allocation="adaptive", calibration="paper")),
    Line("IT-U, tight", IterativeEigenvectors(allocation="uniform")),
    Line("IT-U, paper's calibration", IterativeEigenvectors(allocation="uniform", calibration="paper")),
    Line("KT, tight", KapralovTalwar()),
    Line("KT, paper's calibration", KapralovTalwar(calibration="paper")),
    Line("`iterative-eigenvectors` as it comes (gaps)", IterativeEigenvectors()),
    Line("L, paper's calibration", Laplace(calibration="paper")),
    Line("matrix Laplace, clipped", MatrixLaplace()),
    Line("matrix Laplace as it comes", MatrixLaplace(), Repair.AUTO),
    Line("*AD, paper's calibration, printed acceptance: not ε-DP*", Misprinted("adaptive", calibration="paper")),
    Line("*IT-U, paper's calibration, printed acceptance: not ε-DP*", Misprinted("uniform", calibration="paper")),
)


def errors(line: Line, rows: SummedOnce, epsilon: float, trials: int, delta: float = 0.0) -> np.ndarray:
    """‖Ĝ − G‖_F/n of every trial."""
    n = rows.n_rows
    shape = MomentShape(rows.n_features, n_rows=n, mean=False)
    plan = line.mechanism.plan(shape, PrivacyBudget.of(epsilon=epsilon, delta=delta), "replace_one")
    found = []
    for seed in range(trials):
        noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))  # type: ignore[arg-type]
        gram = repaired(plan, noisy.gram, n, line.repair)
        found.append(dpm.metrics.normalized_frobenius_error(gram, rows.gram, n_rows=n))
    return np.array(found)


def repaired(plan: Plan, noisy_gram: np.ndarray, n_rows: int, repair: Repair) -> np.ndarray:
    """A second moment alone, of rows in the unit ball, after a repair."""
    ones = np.ones(len(noisy_gram))
    return repair_moments(n_rows, None, noisy_gram, plan.noise, repair, box=(-ones, ones))[1]


def table(name: str, rows: SummedOnce, trials: int) -> list[str]:
    """One data set: mean errors, and the largest standard error relative to its mean."""
    lines = [
        f"### {name}: n = {rows.n_rows:,}, d = {rows.n_features}, {trials} trials",
        "",
        "| ε | " + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS) + " |",
        "| --- |" + " --- |" * len(EPSILONS),
    ]
    worst = 0.0
    for line in LINES:
        cells = []
        for epsilon in EPSILONS:
            found = errors(line, rows, epsilon, trials)
            worst = max(worst, float(found.std(ddof=1) / np.sqrt(trials) / found.mean()))
            cells.append(f"{found.mean():.3g}")
        lines.append(f"| {line.label} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    of_the_right_trace = np.eye(rows.n_features) * np.trace(rows.gram) / rows.n_features
    nothing = dpm.metrics.normalized_frobenius_error(of_the_right_trace, rows.gram, n_rows=rows.n_rows)
    lines += [
        "",
        f"Standard errors are at most {100 * worst:.0f} % of the means. A matrix of the right trace that knows nothing else, "
        f"(tr G/d)·I, has error {nothing:.3g}.",
        "",
    ]
    return lines


DATA: tuple[tuple[str, Callable[[], np.ndarray]], ...] = (
    ("Wine", lambda: datasets.standardized_unit_rows(datasets.wine())),
    (
        "Wine with its target (three cultivars)",
        lambda: datasets.standardized_unit_rows(datasets.wine(cultivar=True), include_target=True),
    ),
    ("Airfoil", lambda: datasets.standardized_unit_rows(datasets.airfoil(), include_target=True)),
    ("Airfoil without its target", lambda: datasets.standardized_unit_rows(datasets.airfoil())),
    (
        "Adult (all 45,222 complete rows)",
        lambda: datasets.standardized_unit_rows(datasets.adult(), include_target=True),
    ),
    (
        "Adult as in the paper (all rows, “?” a level, no target)",
        lambda: datasets.standardized_unit_rows(datasets.adult(complete=False), unknown_is_a_level=True),
    ),
    (
        "Adult as in the student replication (complete rows, one level of each column left out, no target)",
        lambda: datasets.replication_rows(datasets.adult(), standardize=True),
    ),
)


def main() -> None:
    """Make the tables and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30, help="on Wine and Airfoil")
    parser.add_argument("--adult-trials", type=int, default=5)
    options = parser.parse_args()
    start = time.perf_counter()
    lines: list[str] = []
    for name, load in DATA:
        rows = SummedOnce(load())
        lines += table(name, rows, options.trials if rows.n_features < 50 else options.adult_trials)
    write_part(PAGE, "tables", lines)
    print(f"wrote {PAGE} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
