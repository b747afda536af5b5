"""Every mechanism that can serve, on the tables and budgets of Amin et al. (2019), beside `auto`.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.every_mechanism

Replace-one, second moment alone, rows of norm 1, ‖Ĝ − G‖_F/n, each mechanism with the repair that a release has by default.
Above 50 features there are half as many trials, and fewer of what is slow there or passes over the rows in every trial (`FEWER`).
Fixed seeds, each table summed once a lattice. Writes the tables of docs/evidence/every-mechanism.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.papers.reproduce.experiments import tables
from benchmarks.papers.reproduce.figures.amin import EPSILONS
from benchmarks.papers.summed_once import SummedOnce, repaired
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
DATA: dict[str, tuple[Any, ...]] = {
    "Wine": ("wine",),
    "Airfoil": ("airfoil",),
    "Adult, complete rows": ("adult, complete",),
    "Adult, all rows": ("adult",),
    **{
        f"Algorithm 3, d = {d}, n = {n:,}": (tables.SYNTHETIC, n, d) for d in (10, 100) for n in (1_000, 10_000, 50_000)
    },
}
"""Each with its form and size."""


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


def measure(name: str, rows: SummedOnce) -> Iterator[dict[str, Any]]:
    """Every mechanism at every budget that serves the table; ``chosen`` is what made the release of `auto`."""
    for mechanism in map(make_mechanism, MECHANISMS):
        trials, start = trials_of(mechanism.name, rows.n_features), time.perf_counter()
        for budget in budgets(mechanism) if trials else ():
            try:
                plan = rows.plan(mechanism, budget)
            except ValueError:  # it does not serve the table, or not at this budget
                continue
            of_trials = errors(rows, plan, trials)
            yield {
                "table": name,
                "mechanism": mechanism.name,
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "mean": float(of_trials.mean()),
                "error": float(of_trials.std(ddof=1) / math.sqrt(trials)) if trials > 1 else math.nan,
                "trials": trials,
                "chosen": plan.mechanism.name,
            }
        print(f"{name}: {mechanism.name}, {time.perf_counter() - start:.1f} s", flush=True)


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """Budget by budget `auto` and the best of the others; what spends ε alone stands beside every δ that it has not itself."""
    made = []
    for delta in DELTAS:
        at = found[found["delta"].isin([0.0, delta])].sort_values("delta", kind="stable")
        at = at.drop_duplicates(["table", "mechanism", "epsilon"], keep="last")
        keys = ["table", "epsilon"]
        others = at[at["mechanism"] != AUTO]
        best = others.loc[others.groupby(keys)["mean"].idxmin()]
        beside = at[at["mechanism"] == AUTO].merge(best, on=keys, suffixes=("", "_best"))
        made.append(beside.assign(delta=delta, ratio=beside["mean"] / beside["mean_best"]))
    return pd.concat(made)


def table_lines(found: pd.DataFrame) -> Iterator[str]:
    yield from head(f"table | mechanism | {' | '.join(f'ε = {e:g}' for e in EPSILONS)}", "ll" + "r" * len(EPSILONS))
    in_order = [AUTO, *(one for one in MECHANISMS if one != AUTO)]
    ordered = found.assign(
        table=pd.Categorical(found["table"], found["table"].unique()),
        mechanism=pd.Categorical(found["mechanism"], in_order),
    )
    for (name, mechanism, delta), rows in ordered.groupby(["table", "mechanism", "delta"], observed=True):
        at = rows.set_index("epsilon")["mean"]
        trials = set(rows["trials"])
        label = f"`{mechanism}`" + (f", δ = {delta:g}" if delta else "")
        label += f" ({min(trials)} {'trial' if trials == {1} else 'trials'})" if mechanism in FEWER else ""
        values = [f"{at[epsilon]:.3g}" if epsilon in at else "–" for epsilon in EPSILONS]
        yield f"| {name} | {label} | {' | '.join(values)} |"


def summary(found: pd.DataFrame) -> Iterator[str]:
    """In how many cells `auto` is the lowest curve or near it, and the others by name."""
    near = found["ratio"] <= WITHIN
    yield (
        f"`auto` is the lowest curve, or within {WITHIN - 1:.0%} of it, in {near.sum()} of {len(found)} cells "
        f"({near.mean():.1%}). The others:"
    )
    yield ""
    yield from head("table | δ | ε | `auto` | lowest | `auto` / lowest", "lrrllr")
    for cell in found[~near].sort_values("ratio", ascending=False, kind="stable").itertuples():
        parts = (cell.error / cell.mean, cell.error_best / cell.mean_best)
        error = 0.0 if cell.chosen == cell.mechanism_best else cell.ratio * math.hypot(*parts)
        yield (
            f"| {cell.table} | {cell.delta:g} | {cell.epsilon:g} | `{cell.chosen}` {cell.mean:.3g} | "
            f"`{cell.mechanism_best}` {cell.mean_best:.3g} | {cell.ratio:.2f} ± {error:.2f} |"
        )


if __name__ == "__main__":
    found = pd.DataFrame([row for name, form in DATA.items() for row in measure(name, tables.summed(*form))])
    trials = f"{TRIALS} trials below {MANY_FEATURES} features and half as many above, where no number is named."
    write_part(PAGE, "summary", [*summary(cells(found)), "", trials])
    write_part(PAGE, "tables", table_lines(found))
