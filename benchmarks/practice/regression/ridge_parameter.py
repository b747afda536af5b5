"""The ridge parameter that a release asks for, against fixed rules and hindsight.

``python -m benchmarks.practice.regression.ridge_parameter`` measures and writes the tables of
``docs/evidence/derivations/ridge-parameter.md``; some five minutes on one core.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, two_digits, write_part
from benchmarks.practice.regression.single_regression import Regression, ridge_coefficients
from benchmarks.practice.tables import Entry, Half, chosen, made
from dpmoments.analysis.regression import automatic_alpha, expected_coefficients
from dpmoments.releases.moment_release import MomentRelease

PAGE = EVIDENCE / "derivations" / "ridge-parameter.md"
GOALS = {
    ("wine", "alcohol"): 0.45,
    ("airfoil", "sound_pressure_level"): 0.035,
    ("diabetes", "target"): 0.15,
    ("adult", "hours-per-week"): 0.008,
    ("adult", "income"): 0.003,
}
"""Excess risk aimed at, (ε = 3, δ = 1e-9), add-remove."""
SEEDS_OF_GOALS = 100
SEEDS_OF_GOALS_OF_LARGE = 20
LARGE = 20_000
FEW_ROWS = (("wine", "alcohol"), ("diabetes", "target"))
SMALL_EPSILONS, SEEDS_OF_FEW_ROWS = (0.5, 1.0, 3.0), 40
EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTAS = (0.0, 1e-9)
SEEDS = 5
FLOOR = 1e-3
"""Added to both excess risks of a quotient."""
CAP = 1.0
HINDSIGHT, EXPECTED, SLOPES = "hindsight", "posterior mean", "automatic, slopes alone"

Rule = Callable[[MomentRelease, Regression], float]


def noise_times(kappa: float) -> Rule:
    """2α = κ·σ·√k, σ the noise on a cell of the covariance."""

    def alpha(release: MomentRelease, regression: Regression) -> float:
        assert release.noise is not None
        cells = release.noise.cell_variances()
        deviation = float(np.sqrt(np.median(cells[np.tril_indices(len(cells), -1)]))) / release.n_rows
        return kappa * deviation * float(np.sqrt(len(regression.features))) / 2.0

    return alpha


def automatic(release: MomentRelease, regression: Regression) -> float:
    return automatic_alpha(release, regression.features.tolist(), regression.target, intercept=True)


RULES: Mapping[str, Rule] = {
    "α = 0": noise_times(0.0),
    "κ = ½": noise_times(0.5),
    "κ = 1": noise_times(1.0),
    "κ = 4": noise_times(4.0),
    "automatic": automatic,
}
FACTORS = np.geomspace(0.02, 2000.0, 40)


def trials(
    entry: Entry, targets: list[str] | None, epsilons: tuple[float, ...], deltas: tuple[float, ...], seeds: int
) -> Iterator[dict[str, Any]]:
    """Releases of one table, and what every rule makes of them; nothing where the table is not on this machine.

    Where δ > 0 changes no bit of a release, it counts once.
    """
    table = made(entry)
    if table is None:
        return
    data, schema = table
    regressions = [Regression.of(data, schema, target) for target in targets or predicted(entry, schema)]
    for epsilon in epsilons:
        for seed in range(seeds):
            seen: list[MomentRelease] = []
            for delta in deltas:
                release = dpm.release(data, schema, epsilon=epsilon, delta=delta, insecure_seed=seed)
                if any(np.array_equal(release.noisy_gram, other.noisy_gram) for other in seen):
                    continue
                seen.append(release)
                for regression in regressions:
                    about = {"table": entry.name, "target": regression.target, "epsilon": epsilon}
                    yield about | excess_by_rule(release, regression)


def predicted(entry: Entry, schema: dpm.Schema) -> list[str]:
    """The target of a table, and the middle one of its other columns of one feature."""
    assert entry.target is not None
    single = [name for name in schema.names if name in schema.feature_names and name != entry.target]
    return [entry.target, *single[len(single) // 2 : len(single) // 2 + 1]]


def excess_by_rule(release: MomentRelease, regression: Regression) -> dict[str, float]:
    """Excess risk under every rule, and at the best α of a grid for this very release."""
    found = {name: regression.excess_of_release(release, rule(release, regression)) for name, rule in RULES.items()}
    unit = noise_times(1.0)(release, regression)
    grid = [regression.excess_of_release(release, factor * unit) for factor in FACTORS]
    a, y, mean = regression.features, regression.target, release.unit_ball_mean
    expected = expected_coefficients(release, a.tolist(), y, intercept=True)
    fitted = ridge_coefficients(release.unit_ball_covariance, a, y, automatic(release, regression))
    of_slopes = float(regression.mean[y] - fitted @ regression.mean[a])
    return found | {
        SLOPES: regression.excess(fitted, of_slopes),
        EXPECTED: regression.excess(expected, float(mean[y] - expected @ mean[a])),
        HINDSIGHT: min(*grid, *found.values()),
    }


def mean_and_error(values: pd.Series) -> str:
    return f"{two_digits(values.mean())} ± {two_digits(values.sem())}"


def goal_rows() -> Iterator[str]:
    """The regressions with a goal: mean ± its standard error / median."""
    names = [*RULES, SLOPES, EXPECTED, HINDSIGHT]
    yield from head("table, target | seeds | R² | goal | " + " | ".join(names), "llll" + "l" * len(names))
    for (name, target), goal in GOALS.items():
        (entry,) = chosen(names=[name])
        regression = Regression.of(*entry.make(), target)
        seeds = SEEDS_OF_GOALS_OF_LARGE if regression.n_rows >= LARGE else SEEDS_OF_GOALS
        found = pd.DataFrame(trials(entry, [target], (3.0,), (1e-9,), seeds))
        cells = " | ".join(f"{mean_and_error(found[rule])} / {two_digits(found[rule].median())}" for rule in names)
        yield f"| {name}, {target} | {seeds} | {regression.explained_share:.2f} | {goal} | {cells} |"


def intercept_rows() -> Iterator[str]:
    """Where few rows meet small budgets: mean excess risk with the released means in the intercept, and with the table's."""
    yield from head("table, target | ε | R² | automatic | slopes alone", "lllll")
    for name, target in FEW_ROWS:
        (entry,) = chosen(names=[name])
        share = Regression.of(*entry.make(), target).explained_share
        for epsilon in SMALL_EPSILONS:
            found = pd.DataFrame(trials(entry, [target], (epsilon,), (0.0,), SEEDS_OF_FEW_ROWS))
            by_rule = " | ".join(mean_and_error(found[rule]) for rule in ("automatic", SLOPES))
            yield f"| {name}, {target} | {epsilon:g} | {share:.2f} | {by_rule} |"


def half_rows(half: Half) -> Iterator[str]:
    """One row an ε: geometric mean of quotients to hindsight, and mean excess risk, at most the cap."""
    entries = (entry for entry in chosen(half) if entry.target is not None)
    found = pd.DataFrame(trial for entry in entries for trial in trials(entry, None, EPSILONS, DELTAS, SEEDS))
    names = [*RULES, EXPECTED]
    found[[*names, HINDSIGHT]] = found[[*names, HINDSIGHT]].clip(upper=CAP)
    cells = found.groupby(["table", "target", "epsilon"])[[*names, HINDSIGHT]].mean()
    yield from head("ε | regressions | " + " | ".join(names), "ll" + "l" * len(names))
    for label, here in [*cells.groupby(level="epsilon"), ("all", cells)]:
        quotients = np.exp(np.log((here + FLOOR).div(here[HINDSIGHT] + FLOOR, axis=0)).mean())
        by_rule = (f"{quotients[rule]:.2f} / {here[rule].mean():.3f}" for rule in names)
        yield f"| {label if label == 'all' else f'{label:g}'} | {len(here)} | {' | '.join(by_rule)} |"


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    write_part(PAGE, "goals", goal_rows())
    write_part(PAGE, "intercept", intercept_rows())
    write_part(PAGE, "design", half_rows("design"))
    write_part(PAGE, "judge", half_rows("judge"))
