"""How the error falls with the number of rows: as 1/√n for eigenvectors, as 1/n for additive noise (Amin et al. 2019, section 5).

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.rates [--trials 20]

Tables by Algorithm 3 of the paper (d = 10) with 10³ to 10⁶ rows; replace-one, second moment alone, eigenvalues moved into
[0, n]. The slope is that of least squares of log error on log n. Fixed seeds; half a minute. Writes a table of
docs/amin-table.md (its prose stays as it is).
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

PAGE = DOCS / "amin-table.md"
D = 10
ROWS = (1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
EPSILONS = (0.1, 1.0)
DELTA = 1e-10
LINES = (
    (Line("AD, paper's calibration", IterativeEigenvectors(allocation="adaptive", calibration="paper")), 0.0),
    (Line("AD, tight", IterativeEigenvectors(allocation="adaptive")), 0.0),
    (Line("KT, paper's calibration", KapralovTalwar(calibration="paper")), 0.0),
    (Line("L, paper's calibration", Laplace(calibration="paper")), 0.0),
    (Line("matrix Laplace, clipped", MatrixLaplace()), 0.0),
    (Line(f"Gaussian, δ = {DELTA:g}, clipped", Gaussian()), DELTA),
)


def slope(found: list[float], rows: tuple[int, ...]) -> float:
    """Of log error on log n."""
    return float(np.polyfit(np.log(rows), np.log(found), 1)[0])


def table(trials: int) -> list[str]:
    """Mean errors by n, and the slope over all of them and over the upper half."""
    half = len(ROWS) // 2
    lines = [
        "| ε | | " + " | ".join(f"n = {n:,}" for n in ROWS) + f" | slope | from n = {ROWS[half]:,} on |",
        "| --- | --- |" + " --- |" * (len(ROWS) + 2),
    ]
    summed = [SummedOnce(algorithm_3(n, D)) for n in ROWS]
    for epsilon in EPSILONS:
        for line, delta in LINES:
            found = [float(errors(line, rows, epsilon, trials, delta).mean()) for rows in summed]
            cells = [f"{error:.3g}" for error in found]
            cells += [f"{slope(found, ROWS):.2f}", f"{slope(found[half:], ROWS[half:]):.2f}"]
            lines.append(f"| {epsilon:g} | {line.label} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Make the table and put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    trials, start = parser.parse_args().trials, time.perf_counter()
    write_part(PAGE, "rates", table(trials))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
