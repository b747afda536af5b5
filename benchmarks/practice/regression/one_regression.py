"""What else one would do for one regression, on the tables that judge the default: frozen beside the default's errors.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.regression.one_regression

writes ``docs/evidence/tables/default-errors-one-regression.csv``: excess risks of a release with ``targets=``, and of noisy
gradient descent that spends the whole budget on the regression, at one setting for all tables, and tuned on the table itself at
no cost.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.practice.default_errors import Budget, OwnMoments, collection, file_of, seeds_of, update
from benchmarks.practice.regression.single_regression import Regression, SingleRegression
from benchmarks.practice.regression.tuning import MIDDLE, tuned_descent
from benchmarks.practice.tables import Entry, made
from dpmoments.privacy.budget import PrivacyBudget

BUDGETS: tuple[Budget, ...] = ((1.0, 1e-6), (1.0, 0.0))


def measured(entry: Entry) -> Iterator[dict[str, Any]]:
    """One row a budget and seed of a table; ``targets=`` needs a δ."""
    table = made(entry)
    if table is None or entry.target is None:
        return
    data, schema = table
    own, truth = OwnMoments.of(data, schema), Regression.of(data, schema, entry.target)
    single = SingleRegression.of(data, schema, entry.target)
    largest = float(np.linalg.eigvalsh(single.moments()[0])[-1])
    wanted = seeds_of(own)
    for epsilon, delta in BUDGETS:
        budget = PrivacyBudget.of(epsilon=epsilon, delta=delta)
        tuned, excess = tuned_descent(single, truth, budget, largest), list[list[float]]()
        for setting in (MIDDLE, tuned):
            rng = np.random.default_rng(0)
            runs = setting.fits(single.rows, single.target, budget, len(wanted), rng, largest)
            excess.append([single.excess(run, truth) for run in runs.T])
        for seed in wanted:
            asked = {"epsilon": epsilon, "delta": delta, "targets": [entry.target], "insecure_seed": seed, "threads": 1}
            fit = dpm.release(data, schema, **asked).ridge(entry.target) if delta else None
            yield {
                "table": entry.name,
                "half": entry.half,
                "target": entry.target,
                "explained": truth.explained_share,
                "epsilon": epsilon,
                "delta": delta,
                "seed": seed,
                "targets": np.nan if fit is None else own.excess(fit),
                "refined": "" if fit is None else fit.refined,
                "descent": excess[0][seed],
                "descent_tuned": excess[1][seed],
                "tuned_to": f"T = {tuned.steps}, clip {tuned.clip:g}, η = {tuned.rate:g}",
            }


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    warnings.simplefilter("ignore")
    for entry in collection():
        rows = list(measured(entry))
        if rows:
            update(file_of("one-regression"), rows)
        print(entry.name, flush=True)
