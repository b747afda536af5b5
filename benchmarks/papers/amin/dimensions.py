"""How errors grow with d on the synthetic rows of Amin et al. (2019), Algorithm 3 (section 5, appendix C.1).

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.dimensions [--trials 10]

Replace-one, second moment alone, ‖Ĝ − G‖_F/n, eigenvalues moved into [0, n]. Fixed seeds. A minute. Writes the table of
docs/amin-synthetic.md (its prose stays as it is). Figure 2 itself is a figure of ``benchmarks.papers.reproduce``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.pages import DOCS, write_part
from benchmarks.papers.amin.acceptance_counts import algorithm_3
from benchmarks.papers.amin.table import Line, errors
from benchmarks.papers.summed_once import SummedOnce
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.iterative_eigenvectors import IterativeEigenvectors
from dpmoments.mechanisms.kapralov_talwar import KapralovTalwar
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace

PAGE = DOCS / "amin-synthetic.md"
EPSILONS = (0.1, 1.0)
DIMENSIONS = (5, 10, 20, 40, 80, 160)
ROWS = 10_000
AD = Line("AD, paper's calibration", IterativeEigenvectors(allocation="adaptive", calibration="paper"))
TIGHT = Line("`iterative-eigenvectors`", IterativeEigenvectors())
UNIFORM = Line("IT-U, paper's calibration", IterativeEigenvectors(allocation="uniform", calibration="paper"))
KT = Line("KT, paper's calibration", KapralovTalwar(calibration="paper"))
LAPLACE = Line("L, paper's calibration", Laplace(calibration="paper"))
MATRIX_LAPLACE = Line("`matrix-laplace`, clipped", MatrixLaplace())
GAUSSIAN = Line("Gaussian", Gaussian())
LINES = (
    *((line, 0.0) for line in (AD, UNIFORM, KT, LAPLACE, TIGHT, MATRIX_LAPLACE)),
    (GAUSSIAN, 1e-10),
)


def label(line: Line, delta: float) -> str:
    """With its δ, where it has one."""
    return f"{line.label}, δ = {delta:g}" if delta else line.label


def over_dimensions(trials: int) -> list[str]:
    """Errors by d at one n, and the slope of their logarithm on that of d."""
    tables = {d: SummedOnce(algorithm_3(ROWS, d)) for d in DIMENSIONS}
    lines = [
        "| ε | | " + " | ".join(f"d = {d}" for d in DIMENSIONS) + " | slope |",
        "| --- | --- |" + " --- |" * (len(DIMENSIONS) + 1),
    ]
    for epsilon in EPSILONS:
        found = {
            label(line, delta): [errors(line, rows, epsilon, trials, delta).mean() for rows in tables.values()]
            for line, delta in LINES
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
    """Measure, and put the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    trials, start = parser.parse_args().trials, time.perf_counter()
    write_part(PAGE, "dimensions", [*over_dimensions(trials), "", f"n = {ROWS:,}, {trials} trials a cell."])
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
