"""Bounds on refined coefficients: how often they are stated, hold least squares, and are of use.

    python -m benchmarks.practice.regression.refined_bounds [--tables Wine,Airfoil]

measures the design tables of ``refinement``, on which the constants of the bounds were frozen, and writes the table of
``docs/evidence/derivations/refined-regression.md``; with ``--judge`` tables of the peers' page.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import dpmoments as dpm
from benchmarks.pages import write_part
from benchmarks.practice.comparison.errors import Truth
from benchmarks.practice.regression.refinement import BUDGETS, PAGE, jobs

SEEDS = 20
FAST = ("Wine", "Diabetes", "Airfoil", "Algorithm 3")
"""Tables of the judge half that take seconds."""


@dataclass
class Counts:
    """Releases of one table at one budget, and the ratios of bound and distance."""

    table: str
    budget: tuple[float, float]
    stated: int
    held: int
    useful: int
    ratio: float


def counted(name: str, data: object, schema: dpm.Schema, target: str) -> Iterator[Counts]:
    """Release a table at each budget, and compare with least squares on it."""
    truth, names = Truth.of(data, schema, target), list(schema.feature_names)
    for epsilon, delta in BUDGETS:
        ratios, useful = [], 0
        for seed in range(SEEDS):
            release = dpm.release(data, schema, epsilon=epsilon, delta=delta, targets=[target], insecure_seed=seed)
            fit = release.ridge(target)
            if (bound := fit.unit_ball_error_bound) is None:
                continue
            features = [names.index(feature) for feature in fit.features]
            gram = truth.covariance[np.ix_(features, features)]
            exact = np.linalg.lstsq(gram, truth.covariance[features, truth.target], rcond=1e-10)[0]
            ratios.append(bound / float(np.linalg.norm(fit.unit_ball_coefficients - exact)))
            useful += int(bound < np.linalg.norm(fit.unit_ball_coefficients))
        held = sum(ratio >= 1.0 for ratio in ratios)
        yield Counts(name, (epsilon, delta), len(ratios), held, useful, float(np.median(ratios)) if ratios else np.nan)


def lines(found: Sequence[Counts]) -> Iterator[str]:
    """Return the page's part."""
    yield "| table | ε, δ | bounds | hold | of use | bound over distance |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for one in found:
        ratio = f"{one.ratio:.1f}" if one.stated else "–"
        yield f"| {one.table} | {one.budget[0]:g}, {one.budget[1]:g} | {one.stated} | {one.held} | {one.useful} | {ratio} |"
    yield ""
    stated, held, useful = (sum(getattr(one, what) for one in found) for what in ("stated", "held", "useful"))
    yield f"Of {SEEDS * len(found)} releases {stated} state a bound, {held} of which hold and {useful} are of use."


def main() -> None:
    """Measure one half, and write its part."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--tables", type=lambda text: text.split(","))
    options = parser.parse_args()
    half, names = ("judge", options.tables or FAST) if options.judge else ("design", options.tables)
    found = []
    for name, (data, schema), targets in jobs(half, names):
        for one in counted(name, data, schema, targets[0]):
            print(one, flush=True)
            found.append(one)
    if options.tables is None:
        write_part(PAGE, f"bounds-{half}", lines(found))


if __name__ == "__main__":
    main()
