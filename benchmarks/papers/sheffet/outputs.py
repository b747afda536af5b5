"""Sheffet's multiple-regressions experiment (2015, section 6.2): outputs that tell nothing, as features, from one release.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.sheffet.outputs [--quick] [--tables 10] [--runs 10]

One output is regressed on the intercept, the base features and k other outputs, whose coefficients should come out 0; k is
varied, and n. Every technique of the section draws its noise ``runs`` times on each of ``tables`` tables, and errors are against
the coefficients that made the rows, as in the paper. Then the lasso on the same releases. Fixed seeds. Writes the tables of
docs/sheffet-outputs.md (its prose stays as it is) and docs/images/sheffet-outputs.png; ``--quick`` prints a small run instead.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import lasso_path

from benchmarks.pages import DOCS, write_part
from benchmarks.papers.sheffet.techniques import (
    ADAPTED,
    ADDITIVE,
    ADDITIVE_AS_DRAWN,
    BASE,
    EXACT,
    INVERSE_WISHART_ADAPTIVE,
    JL_ADAPTIVE,
    PAPER,
    outputs_as_features,
    posterior_without_a_ridge,
    projection_without_a_ridge,
    techniques,
)
from benchmarks.papers.summed_once import SummedOnce
from dpmoments.mechanisms.parts.padded_gram import PaddedGramPlan
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.repair.repair import clip

PAGE = DOCS / "sheffet-outputs.md"
EPSILON = 0.5
"""The paper varies n and k at one ε; so do we."""
POWERS = (10, 12, 14, 16, 18, 20)
OTHERS = (0, 1, 5, 9)
"""k: how many other outputs are features."""
GAUSS_AS_DRAWN, GAUSS_SHIFTED = "Gaussian noise, as drawn", "Gaussian noise, cI, c from the noise"
SIX = (GAUSS_AS_DRAWN, JL_ADAPTIVE, ADDITIVE_AS_DRAWN, GAUSS_SHIFTED, INVERSE_WISHART_ADAPTIVE, ADDITIVE)
"""In the paper's order."""
LEAST_SQUARES, PROJECTION, POSTERIOR = "least squares", "projection, no ridge", "posterior, no ridge"
NOT_PRIVATE = (LEAST_SQUARES, PROJECTION, POSTERIOR)
LABELS = (*SIX, ADAPTED, *NOT_PRIVATE)

Key = tuple[str, str]
"""Technique and calibration; that of the baselines is empty."""


@dataclass(frozen=True)
class Releases:
    """Second moments by technique and calibration, for one n: those of all runs on all tables; and which ones were repaired.

    ``clipped`` is the share of rows beyond the bound.
    """

    power: int
    matrices: dict[Key, list[np.ndarray]]
    repaired: dict[Key, list[bool]]
    clipped: float


def release(power: int, tables: int, runs: int, neighbors: Neighbors) -> Releases:
    """Every technique on every table."""
    model, n = outputs_as_features(0), 2**power
    found, repaired, beyond = dict[Key, list[np.ndarray]](), dict[Key, list[bool]](), []
    asked = [technique for technique in techniques() if technique.label in LABELS]
    plans = [technique.plan(model, n, EPSILON, neighbors) for technique in asked]
    for number in range(tables):
        table = model.table(n, np.random.default_rng([power, number]))
        beyond.append(float(np.mean(np.einsum("ij,ij->i", table, table) > 1.0)))
        rows = SummedOnce(table, neighbors)
        rng, least = np.random.default_rng([power, number, 1]), None
        for technique, plan in zip(asked, plans, strict=True):
            generator = insecure_generator(
                zlib.crc32(f"{technique.label}, {technique.calibration}, {power}, {number}".encode())
            )
            key = technique.label, technique.calibration
            for _ in range(runs):
                drawn = plan.run(rows, PrivacyFilter(plan, generator)).gram
                matrix = technique.repair(drawn, plan)
                found.setdefault(key, []).append(matrix)
                repaired.setdefault(key, []).append(not np.array_equal(matrix, drawn))
            if technique.label == JL_ADAPTIVE and technique.calibration == PAPER and isinstance(plan, PaddedGramPlan):
                least = plan.degrees  # the r that Algorithm 2 starts from, which the projection gets as well
        if least is None:
            raise AssertionError("Algorithm 2 is not among the techniques")
        found.setdefault((LEAST_SQUARES, ""), []).append(rows.gram)
        for _ in range(runs):
            found.setdefault((PROJECTION, ""), []).append(projection_without_a_ridge(rows.gram, least, rng))
            found.setdefault((POSTERIOR, ""), []).append(posterior_without_a_ridge(rows.gram, n, rng))
    return Releases(power, found, repaired, float(np.mean(beyond)))


# --- regressions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Of the runs of one technique at one n and k: ‖β̂ − β‖, and the part of it on the k other outputs; ‖β‖ = 1."""

    whole: np.ndarray
    others: np.ndarray


def regress(matrices: Sequence[np.ndarray], others: int) -> Errors:
    """Least squares from each matrix, against the coefficients that made the rows."""
    model = outputs_as_features(others)
    (regression,) = model.regressions
    truth = regression.coefficients(model.covariance)
    differences = np.array([regression.coefficients(matrix) - truth for matrix in matrices])
    spurious = np.linalg.norm(differences[:, 1 + BASE :], axis=1)
    return Errors(np.linalg.norm(differences, axis=1), spurious)


# --- the lasso ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Zeros:
    """How many coefficients are 0: of the base features, which all matter, and of the other outputs, which do not."""

    base: int
    others: int


def lasso(matrix: np.ndarray, n: int) -> Zeros:
    """The lasso on a second moment, the intercept not penalised, features standardised, the penalty by the least BIC.

    A positive semi-definite S is RᵀR, so that columns of R are a table of which S is the exact second moment.
    """
    (regression,) = outputs_as_features(max(OTHERS)).regressions
    eigenvalues, vectors = np.linalg.eigh(clip(matrix))
    columns = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
    constant = columns[:, :1]
    residual = columns - constant @ np.linalg.lstsq(constant, columns, rcond=None)[0]
    chosen = list(regression.features[1:])
    lengths = np.linalg.norm(residual[:, chosen], axis=0)
    features = residual[:, chosen] / np.where(lengths > 0.0, lengths, 1.0)
    target = residual[:, regression.target] / np.linalg.norm(residual[:, regression.target])
    largest = np.abs(features.T @ target).max() / len(features)  # the least penalty at which every coefficient is 0
    _, path, _ = lasso_path(features, target, alphas=largest * np.geomspace(1.0, 1e-4, 100), max_iter=20_000)
    # What is left of the target, as a share; a singular matrix may leave nothing, which no table of n rows does.
    left = np.maximum(((target[:, None] - features @ path) ** 2).sum(axis=0), 1e-6)
    best = path[:, np.argmin(n * np.log(left) + math.log(n) * (path != 0.0).sum(axis=0))]
    return Zeros(int((best[:BASE] == 0.0).sum()), int((best[BASE:] == 0.0).sum()))


# --- the page -------------------------------------------------------------------------------------------------------


def shown(value: float) -> str:
    """Two digits."""
    return f"{value:.2g}"


def keys(all_releases: Sequence[Releases]) -> list[Key]:
    """Techniques in the order of the paper, then the others, under the paper's calibration, exactly, and not private."""
    there = all_releases[0].matrices
    return [
        (label, calibration) for calibration in (PAPER, EXACT, "") for label in LABELS if (label, calibration) in there
    ]


def cells_of(label: str, calibration: str) -> str:
    """The beginning of a line."""
    return f"| {calibration or 'not private'} | {label} | "


def tables_of(all_releases: Sequence[Releases], found: dict[tuple[int, int, Key], Errors]) -> list[str]:
    """Errors and spread by k, technique and n."""
    powers = [releases.power for releases in all_releases]
    head = "| calibration | technique | " + " | ".join(f"n = 2^{power}" for power in powers) + " |"
    rule = "| --- " * (len(powers) + 2) + "|"
    lines: list[str] = []
    for others in OTHERS:
        lines += [f"### k = {others}: median of ‖β̂ − β‖, and its standard deviation over the runs", "", head, rule]
        for key in keys(all_releases):
            errors = [found[power, others, key].whole for power in powers]
            cells = " | ".join(f"{shown(float(np.median(e)))} ± {shown(float(e.std(ddof=1)))}" for e in errors)
            lines.append(f"{cells_of(*key)}{cells} |")
        lines.append("")
    lines += [f"### k = {OTHERS[-1]}: median norm of the coefficients that should be 0", "", head, rule]
    for key in keys(all_releases):
        cells = " | ".join(shown(float(np.median(found[power, OTHERS[-1], key].others))) for power in powers)
        lines.append(f"{cells_of(*key)}{cells} |")
    return [*lines, ""]


def repair_table(all_releases: Sequence[Releases], found: dict[tuple[int, int, Key], Errors]) -> list[str]:
    """Gaussian noise that gets cI where it needs it: how often it does, and the errors with and without."""
    lines = [
        f"### {GAUSS_SHIFTED}, k = {OTHERS[-1]}: share of the draws that needed it; median of ‖β̂ − β‖ where they did, where not",
        "",
        "| calibration | " + " | ".join(f"n = 2^{releases.power}" for releases in all_releases) + " |",
        "| --- " * (len(all_releases) + 1) + "|",
    ]
    for calibration in (PAPER, EXACT):
        cells = []
        for releases in all_releases:
            key = GAUSS_SHIFTED, calibration
            needed, errors = np.array(releases.repaired[key]), found[releases.power, OTHERS[-1], key].whole
            medians = [shown(float(np.median(errors[part]))) if part.any() else "–" for part in (needed, ~needed)]
            cells.append(f"{100 * needed.mean():.0f} %; {medians[0]}, {medians[1]}")
        lines.append(f"| {calibration} | {' | '.join(cells)} |")
    return [*lines, ""]


def lasso_table(all_releases: Sequence[Releases], most: int) -> list[str]:
    """Mean number of coefficients that the lasso sets to 0, base features and other outputs."""
    lines = [
        f"### The lasso, k = {OTHERS[-1]}: zeros among the {BASE} base features, which should be 0 · among the "
        f"{OTHERS[-1]} other outputs, which should be {OTHERS[-1]} (means of {most} runs)",
        "",
        "| calibration | technique | " + " | ".join(f"n = 2^{releases.power}" for releases in all_releases) + " |",
        "| --- " * (len(all_releases) + 2) + "|",
    ]
    for key in keys(all_releases):
        cells = []
        for releases in all_releases:
            matrices = releases.matrices[key]
            zeros = [lasso(matrix, 2**releases.power) for matrix in matrices[:: max(len(matrices) // most, 1)]]
            base, others = np.mean([zero.base for zero in zeros]), np.mean([zero.others for zero in zeros])
            cells.append(f"{base:.1f} · {others:.1f}")
        lines.append(f"{cells_of(*key)}{' | '.join(cells)} |")
    return [*lines, ""]


def figure(powers: Sequence[int], found: dict[tuple[int, int, Key], Errors], path: Path) -> None:
    """Figures 5 and 6: medians above, standard deviations below, one column for each k, the paper's calibration dotted."""
    colors = dict(zip(SIX, ("black", "tab:blue", "lightcoral", "tab:grey", "tab:olive", "tab:red"), strict=True))
    colors |= {ADAPTED: "tab:orange", PROJECTION: "tab:cyan", POSTERIOR: "tab:green"}
    picture, grid = plt.subplots(2, len(OTHERS), figsize=(15, 8), sharex=True, sharey="row", layout="constrained")
    n = 2.0 ** np.array(powers)
    for column, others in enumerate(OTHERS):
        for label, color in colors.items():
            for calibration, style in ((PAPER, ":"), (EXACT, "-"), ("", "--")):
                if (powers[0], others, (label, calibration)) not in found:
                    continue
                errors = [found[power, others, (label, calibration)].whole for power in powers]
                known = {"label": label} if calibration != PAPER else {}
                line = {"color": color, "ls": style, "lw": 1.4, "marker": "o", "ms": 3}
                grid[0, column].plot(n, [np.median(e) for e in errors], **line, **known)
                grid[1, column].plot(n, [e.std(ddof=1) for e in errors], **line)
        grid[0, column].set_title(f"k = {others}")
        grid[1, column].set_xlabel("rows n")
        for axes in grid[:, column]:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.grid(alpha=0.25)
    grid[0, 0].set(ylabel="median of ‖β̂ − β‖", ylim=(2e-3, 30.0))
    grid[1, 0].set(ylabel="standard deviation over the runs", ylim=(5e-4, 100.0))
    handles, labels = grid[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=5)
    picture.suptitle(
        f"One output on the base features and k other outputs, ε = {EPSILON:g}: the paper's calibration (dotted), exact (solid), "
        "not private (dashed)"
    )
    picture.savefig(path, dpi=110)
    plt.close(picture)


def main() -> None:
    """Measure; write the page, or print a small run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10, help="tables for each n")
    parser.add_argument("--runs", type=int, default=10, help="runs of every technique on each table")
    parser.add_argument("--quick", action="store_true", help="3 tables of at most 2^14 rows, 3 runs, printed alone")
    options = parser.parse_args()
    tables, runs, powers = (3, 3, POWERS[:3]) if options.quick else (options.tables, options.runs, POWERS)
    start, neighbors = time.perf_counter(), Neighbors.ADD_REMOVE
    all_releases, found = [], {}
    for power in powers:
        all_releases.append(releases := release(power, tables, runs, neighbors))
        for others in OTHERS:
            found |= {(power, others, key): regress(matrices, others) for key, matrices in releases.matrices.items()}
        print(f"  n = 2^{power} done, {time.perf_counter() - start:.0f} s", flush=True)
    clipped = max(releases.clipped for releases in all_releases)
    lines = [
        f"{tables} tables for each n, {runs} runs on each, neighbours `{neighbors}`, ε = {EPSILON:g}, δ = 10⁻⁶; at most "
        f"{100 * clipped:.2f} % of the rows at any n are clipped.",
        "",
    ]
    lines += tables_of(all_releases, found) + repair_table(all_releases, found)
    lines += lasso_table(all_releases, min(20, tables * runs))
    if options.quick:
        print("\n".join(lines))
    else:
        write_part(PAGE, "tables", lines)
        figure(powers, found, DOCS / "images" / "sheffet-outputs.png")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
