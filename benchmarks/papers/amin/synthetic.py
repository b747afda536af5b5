"""Appendix C.1 of Amin et al. (2019): Algorithm 3's rows over n, d and ε, and how errors grow with d.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.synthetic [--trials 10]

Replace-one, second moment alone, ‖Ĝ − G‖_F/n, eigenvalues moved into [0, n]; `auto` with its own repair. Fixed seeds. A few
minutes. Writes the tables of docs/amin-synthetic.md (its prose stays as it is).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.pages import DOCS, write_part
from benchmarks.papers.amin.acceptance_counts import algorithm_3
from benchmarks.papers.amin.table import Line, SummedOnce, errors
from dpmoments.mechanisms.auto import Auto
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.iterative_eigenvectors import IterativeEigenvectors
from dpmoments.mechanisms.kapralov_talwar import KapralovTalwar
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.repair.repair import Repair

PAGE = DOCS / "amin-synthetic.md"
SIZES = ((10, 1000), (10, 10_000), (10, 50_000), (100, 1000), (100, 10_000), (100, 50_000))
EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
DIMENSIONS = (5, 10, 20, 40, 80, 160)
ROWS = 10_000
AD = Line("AD, paper's calibration", IterativeEigenvectors(allocation="adaptive", calibration="paper"))
TIGHT = Line("`iterative-eigenvectors`", IterativeEigenvectors())
UNIFORM = Line("IT-U, paper's calibration", IterativeEigenvectors(allocation="uniform", calibration="paper"))
KT = Line("KT, paper's calibration", KapralovTalwar(calibration="paper"))
LAPLACE = Line("L, paper's calibration", Laplace(calibration="paper"))
MATRIX_LAPLACE = Line("`matrix-laplace`, clipped", MatrixLaplace())
GAUSSIAN = Line("Gaussian", Gaussian())
AUTO = Line("`auto`", Auto(), Repair.AUTO)
LINES = (
    *((line, 0.0) for line in (AD, UNIFORM, KT, LAPLACE, TIGHT, MATRIX_LAPLACE, AUTO)),
    *((GAUSSIAN, delta) for delta in (1e-16, 1e-10, 1e-3)),
)


def label(line: Line, delta: float) -> str:
    """With its δ, where it has one."""
    return f"{line.label}, δ = {delta:g}" if delta else line.label


def figure(d: int, n: int, trials: int) -> list[str]:
    """One panel of Figures 2(a) and 2(b)."""
    rows = SummedOnce(algorithm_3(n, d))
    largest = float(np.linalg.eigvalsh(rows.gram)[-1])
    lines = [
        f"### d = {d}, n = {n:,}, λ₁ = {largest:,.0f}",
        "",
        "| ε | " + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS) + " |",
        "| --- |" + " --- |" * len(EPSILONS),
    ]
    for line, delta in LINES:
        cells = [f"{errors(line, rows, epsilon, trials, delta).mean():.3g}" for epsilon in EPSILONS]
        lines.append(f"| {label(line, delta)} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def over_dimensions(trials: int) -> list[str]:
    """Errors by d at one n, and the slope of their logarithm on that of d."""
    tables = {d: SummedOnce(algorithm_3(ROWS, d)) for d in DIMENSIONS}
    lines = [
        "| ε | | " + " | ".join(f"d = {d}" for d in DIMENSIONS) + " | slope |",
        "| --- | --- |" + " --- |" * (len(DIMENSIONS) + 1),
    ]
    for epsilon in (0.1, 1.0):
        found = {
            label(line, delta): [errors(line, rows, epsilon, trials, delta).mean() for rows in tables.values()]
            for line, delta in (*LINES[:6], (GAUSSIAN, 1e-10))
        }
        for name, means in found.items():
            slope = np.polyfit(np.log(DIMENSIONS), np.log(means), 1)[0]
            lines.append(
                f"| {epsilon:g} | {name} | " + " | ".join(f"{mean:.3g}" for mean in means) + f" | {slope:.2f} |"
            )
        for above, name in ((KT, label(KT, 0.0)), (GAUSSIAN, label(GAUSSIAN, 1e-10))):
            ratios = [over / under for over, under in zip(found[name], found[AD.label], strict=True)]
            cells = " | ".join(f"{ratio:.2f}" for ratio in ratios)
            lines.append(f"| {epsilon:g} | *{above.label.split(',')[0]} / AD* | {cells} | |")
    return lines


def main() -> None:
    """Measure, and put the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    trials, start = parser.parse_args().trials, time.perf_counter()
    panels = [line for d, n in SIZES for line in figure(d, n, trials)]
    write_part(PAGE, "panels", [*panels, f"{trials} trials a cell."])
    write_part(PAGE, "dimensions", [*over_dimensions(trials), "", f"n = {ROWS:,}, {trials} trials a cell."])
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
