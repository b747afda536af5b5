"""Sheffet's experiments (2015, sections 3.1, 6.1 and 6.2): one release, then one regression or many, by every technique.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.sheffet.experiments [--runs 100] [--neighbors add_remove]

Each table is made once and summed exactly once; every technique then draws its noise ``runs`` times. Errors are against
ordinary least squares on the very table, so they are the price of privacy alone. Fixed seeds: a second run gives the same
figures. Writes docs/images/sheffet-*.png and the tables of docs/sheffet-experiments.md (its prose stays as it is); under
replace_one the pictures go to build/sheffet and the tables are printed.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.pages import DOCS, write_part
from benchmarks.papers.sheffet.techniques import (
    ADAPTED,
    ANALYZE_GAUSS,
    COLORS,
    EXACT,
    FOLLOWED,
    GAUSS,
    INVERSE,
    JL,
    LAPLACE,
    PAPER,
    Experiment,
    multiple_regressions,
    single_regression,
    techniques,
)
from benchmarks.papers.summed_once import SummedOnce
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors

PAGE = DOCS / "sheffet-experiments.md"
EPSILONS = (0.1, 0.5, 1.0)
POWERS = (10, 12, 14, 16, 18, 20)


# --- measuring ----------------------------------------------------------------------------------------------------

Curve = dict[int, np.ndarray]
"""Quartiles of the error (25, 50, 75 %) by power of two."""
Results = dict[tuple[str, str, float], Curve]
"""Curves by technique, calibration and ε."""


def measure(experiments: Sequence[Experiment], neighbors: Neighbors, runs: int) -> tuple[dict[str, Results], list[str]]:
    """Errors of experiments that share one table, and one note per table."""
    results: dict[str, Results] = {experiment.name: {} for experiment in experiments}
    model, notes = experiments[0], []
    for power in POWERS:
        rng, n = np.random.default_rng([power, len(model.covariance)]), 2**power
        table = model.table(n, rng)
        beyond = float(np.mean(np.einsum("ij,ij->i", table, table) > 1.0))
        rows = SummedOnce(table, neighbors)
        exact, asserted = rows.gram, model.asserted_eigenvalue(n)
        smallest = float(np.linalg.eigvalsh(exact)[0])
        notes.append(f"| 2^{power} | {100 * beyond:.2f} % | {smallest:.3g} | {asserted:.3g} |")
        for epsilon in EPSILONS:
            for technique in techniques():
                # The precondition of the paper: a true bound, above the squared norm of a row.
                if technique.label == INVERSE and not (smallest >= asserted > 1.0):
                    continue
                plan = technique.plan(model, n, epsilon, neighbors)
                name = f"{technique.label}, {technique.calibration}, {epsilon}, {power}"
                generator = insecure_generator(zlib.crc32(name.encode()))
                estimates = [
                    technique.repair(plan.run(rows, PrivacyFilter(plan, generator)).gram, plan) for _ in range(runs)
                ]
                for experiment in experiments:
                    errors = experiment.errors(estimates, exact)
                    key = (technique.label, technique.calibration, epsilon)
                    results[experiment.name].setdefault(key, {})[power] = np.percentile(errors, [25, 50, 75])
        print(f"  n = 2^{power} done", flush=True)
    return results, notes


def sampling_error(experiment: Experiment, power: int, draws: int = 20) -> float:
    """Median error of least squares itself, table against model: what n rows cannot tell even without privacy."""
    expected = experiment.covariance
    n, rng = 2 ** min(power, 14), np.random.default_rng([7, power])
    tables = (rng.standard_normal((n, len(expected))) @ np.linalg.cholesky(expected).T for _ in range(draws))
    errors = experiment.errors([table.T @ table for table in tables], expected)
    return float(np.median(errors)) * math.sqrt(n / 2**power)  # ∝ 1/√n, far within its range at 2^14 rows


# --- figures ------------------------------------------------------------------------------------------------------


def draw_curve(axes: plt.Axes, curve: Curve, offset: float, **style: object) -> None:
    """Medians with bars over the middle half of the runs."""
    powers = np.array(sorted(curve))
    low, middle, high = np.array([curve[power] for power in powers]).T
    axes.errorbar(
        2.0 ** (powers + offset), middle, yerr=[middle - low, high - middle], capsize=1.5, elinewidth=0.8, **style
    )


def finish(axes: plt.Axes, top: float, bottom: float) -> None:
    """Common scales."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom, top)
    axes.set_xlim(2.0**9.6, 2.0**20.4)
    axes.grid(alpha=0.25)
    axes.axhline(1.0, color="grey", lw=0.8, ls=":")


def error_figure(experiment: Experiment, results: Results, neighbors: Neighbors, folder: Path) -> None:
    """One row for every ε; the paper's calibration on the left, the exact one on the right."""
    figure, grid = plt.subplots(len(EPSILONS), 2, figsize=(11, 12), sharex=True, sharey=True, layout="constrained")
    floor = [sampling_error(experiment, power) for power in POWERS]
    for (row, epsilon), (column, calibration) in (
        (row, column) for row in enumerate(EPSILONS) for column in enumerate((PAPER, EXACT))
    ):
        axes = grid[row, column]
        for index, (label, color) in enumerate(COLORS.items()):
            if calibration == PAPER and label == ADAPTED:
                continue
            if (curve := results.get((label, calibration, epsilon))) is not None:
                width = 2.6 if label in (GAUSS, JL) else 1.3
                draw_curve(axes, curve, 0.02 * (index - 4), color=color, label=label, marker="o", ms=3, lw=width)
        axes.plot(
            2.0 ** np.array(POWERS), floor, color="grey", ls="--", lw=1.2, label="sampling error of least squares"
        )
        axes.set_title(f"ε = {epsilon:g}, {calibration} calibration", fontsize=11)
        finish(axes, 10.0, 3e-4)
    for axes in grid[-1]:
        axes.set_xlabel("rows n")
    for axes in grid[:, 0]:
        axes.set_ylabel(experiment.axis)
    handles, labels = grid[0, 1].get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    for axes in grid.ravel():
        known |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3, fontsize=10)
    figure.suptitle(f"{experiment.title}; δ = 10⁻⁶, {neighbors}; bars: middle half of the runs")
    figure.savefig(folder / f"sheffet-{experiment.name}.png", dpi=110)
    plt.close(figure)


def best_gaussian(results: Results, calibration: str, epsilon: float, power: int) -> float:
    """The least of the median errors of Gaussian noise over Sheffet's repairs."""
    return min(results[label, calibration, epsilon][power][1] for label in ANALYZE_GAUSS)


def gap_figure(
    all_results: dict[str, Results], experiments: Sequence[Experiment], epsilon: float, folder: Path
) -> None:
    """Median error over that of Gaussian noise of the same calibration, with the repair that is best there."""
    figure, grid = plt.subplots(1, len(experiments), figsize=(14, 4.8), sharey=True, layout="constrained")
    for axes, experiment in zip(grid, experiments, strict=True):
        results = all_results[experiment.name]
        for label, color in COLORS.items():
            for calibration, style in ((PAPER, ":"), (EXACT, "-")):
                if label in FOLLOWED and (curve := results.get((label, calibration, epsilon))) is not None:
                    powers = sorted(curve)
                    ratios = [curve[power][1] / best_gaussian(results, calibration, epsilon, power) for power in powers]
                    known = {"label": label} if calibration == EXACT else {}
                    width = 3.0 if label == JL else 1.4
                    axes.plot(2.0 ** np.array(powers), ratios, style, color=color, lw=width, marker="o", ms=3, **known)
        finish(axes, 8000.0, 0.5)
        axes.set(title=experiment.title, xlabel="rows n")
        axes.title.set_fontsize(10)
    grid[0].set_ylabel("error / that of Gaussian noise, best repair")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.suptitle(
        f"The gap to Analyze Gauss, ε = {epsilon:g}: both calibrated as in the papers (dotted), both exactly (solid)"
    )
    figure.savefig(folder / "sheffet-gap.png", dpi=110)
    plt.close(figure)


def repair_figure(
    all_results: dict[str, Results], experiments: Sequence[Experiment], epsilon: float, folder: Path
) -> None:
    """Analyze Gauss with the papers' variance (dotted) and ours (solid), by repair."""
    colors = {"as drawn": "grey", "clipped": "black", "cI, least c": "tab:blue", "cI, c from the noise": "tab:green"}
    figure, grid = plt.subplots(1, len(experiments), figsize=(14, 4.8), sharey=True, layout="constrained")
    for axes, experiment in zip(grid, experiments, strict=True):
        for index, (label, color) in enumerate((colors | {"adapted": "tab:orange"}).items()):
            for calibration, style in ((PAPER, ":"), (EXACT, "-")):
                curve = all_results[experiment.name][f"Gaussian noise, {label}", calibration, epsilon]
                known = {"label": label} if calibration == EXACT else {}
                draw_curve(axes, curve, 0.03 * (index - 2), color=color, ls=style, marker="o", ms=3, lw=1.4, **known)
        finish(axes, 30.0, 3e-4)
        axes.set(title=experiment.title, xlabel="rows n")
        axes.title.set_fontsize(10)
    grid[0].set_ylabel("relative error")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.suptitle(
        f"Repairs of Gaussian noise, ε = {epsilon:g}: Analyze Gauss's variance (dotted), exact and isotropic (solid)"
    )
    figure.savefig(folder / "sheffet-repairs.png", dpi=110)
    plt.close(figure)


# --- the page -----------------------------------------------------------------------------------------------------


def error_table(experiment: Experiment, results: Results, labels: Sequence[str]) -> list[str]:
    """Medians, paper → exact."""
    lines = [
        f"### {experiment.title}: median {experiment.axis}, paper's → exact calibration",
        "",
        "| ε | technique | " + " | ".join(f"n = 2^{power}" for power in POWERS) + " |",
        "| --- " * (len(POWERS) + 2) + "|",
    ]
    for epsilon in EPSILONS:
        for label in labels:
            curves = [results.get((label, calibration, epsilon), {}) for calibration in (PAPER, EXACT)]
            cells = []
            for power in POWERS:
                values = [f"{curve[power][1]:.2g}" for curve in curves if power in curve]
                cells.append(" → ".join(values) or "–")
            lines.append(f"| {epsilon:g} | {label} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def gap_table(experiment: Experiment, results: Results) -> list[str]:
    """Error over that of Gaussian noise, both as in the papers → both exact; and the gain of exact calibration itself."""
    lines = [
        f"### {experiment.title}: gap to Gaussian noise (best of Sheffet's repairs), and the gain of exact calibration",
        "",
        "| ε | technique | "
        + " | ".join(f"gap, n = 2^{power}" for power in POWERS[1::2])
        + " | "
        + " | ".join(f"paper/exact error, n = 2^{power}" for power in POWERS[1::2])
        + " |",
        "| --- " * (2 * len(POWERS[1::2]) + 2) + "|",
    ]
    for epsilon in EPSILONS:
        for label in (GAUSS, ADAPTED, *FOLLOWED):
            gaps, gains = [], []
            for power in POWERS[1::2]:
                own = [results.get((label, calibration, epsilon), {}).get(power) for calibration in (PAPER, EXACT)]
                base = [best_gaussian(results, calibration, epsilon, power) for calibration in (PAPER, EXACT)]
                if any(value is None for value in own):
                    gaps, gains = [*gaps, "–"], [*gains, "–"]
                    continue
                medians = [float(value[1]) for value in own]
                gaps.append(f"{medians[0] / base[0]:.2g} → {medians[1] / base[1]:.2g}")
                gains.append(f"{medians[0] / medians[1]:.2g}")
            lines.append(f"| {epsilon:g} | {label} | " + " | ".join(gaps + gains) + " |")
    return [*lines, ""]


def main() -> None:
    """Measure, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--neighbors", choices=["add_remove", "replace_one"], default="add_remove")
    arguments = parser.parse_args()
    neighbors, started = Neighbors.of(arguments.neighbors), time.perf_counter()
    single, collinear, base = single_regression(), multiple_regressions(True), multiple_regressions(False)
    experiments = (single, collinear, base)
    published = neighbors is Neighbors.ADD_REMOVE
    folder = DOCS / "images" if published else Path("build") / "sheffet"
    folder.mkdir(parents=True, exist_ok=True)
    found, notes = {}, []
    for sharing in ((single,), (collinear, base)):
        print(" and ".join(experiment.title for experiment in sharing), flush=True)
        results, tables = measure(sharing, neighbors, arguments.runs)
        found |= results
        notes += [f"### The tables: {sharing[0].title.rsplit(', ', 1)[-1]}", ""]
        notes += ["| n | rows clipped | smallest eigenvalue of G | asserted for the noise on the inverse |"]
        notes += ["| --- | --- | --- | --- |", *tables, ""]
    lines = [f"{arguments.runs} runs a point, neighbours `{neighbors}`, δ = 10⁻⁶.", ""]
    gaussian = [label for label in dict.fromkeys(key[0] for key in found["single"]) if label.startswith("Gaussian")]
    for experiment in experiments:
        error_figure(experiment, found[experiment.name], neighbors, folder)
        lines += error_table(experiment, found[experiment.name], (*gaussian, *FOLLOWED, LAPLACE))
    for experiment in experiments:
        lines += gap_table(experiment, found[experiment.name])
    gap_figure(found, experiments, 0.5, folder)
    repair_figure(found, experiments, 0.5, folder)
    if published:
        write_part(PAGE, "tables", lines + notes)
    else:
        print("\n".join(lines + notes))
    print(f"{time.perf_counter() - started:.0f} s; pictures: {folder}/sheffet-*.png")


if __name__ == "__main__":
    main()
