"""What a user would pick instead of a release, question by question: the same tables and budgets, every loss shown.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.questions [--ours]

Writes the tables of the page. ``--ours`` measures the ways of this library again,
and keeps the errors of the others, which do not depend on it, as the page has them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, two_digits, write_part
from benchmarks.practice.regression.methods import (
    NoisyGradientDescent,
    adassp,
    boosted_adassp,
    hessian_mixing,
    linear_mixing,
    tukey_fit,
)
from benchmarks.practice.regression.single_regression import Regression, SingleRegression
from benchmarks.practice.tables import Made, chosen, made
from benchmarks.practice.tables.entry import encoded_rows
from dpmoments.base.values import FloatArray
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale

PAGE = EVIDENCE / "peers-by-question.md"
TABLES = ("wine", "diabetes", "airfoil", "fair", "lognormal-5000", "mixed-dependent-10000", "adult")
OURS = ("release", "release_mean", "release_counts", "plain histograms")
"""Measured again by ``--ours``."""
BUDGETS = ((1.0, 0.0), (1.0, 1e-6))
LEVELS = (dpm.Categorical, dpm.Boolean)
SEEDS, SEEDS_OF_SLOW = 10, 5
DESCENTS = tuple(NoisyGradientDescent(steps=100, clip=clip, rate=1.5) for clip in (0.03, 0.1, 0.3, 1.0))
LOST = 1.1
CAP = 1.0
"""Largest excess risk of a regression: a fit that loses as much as the target varies has failed, however badly."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and the rows as joint moments see them: encoded, of norm at most 1."""

    name: str
    data: Any
    schema: dpm.Schema
    rows: FloatArray

    @classmethod
    def of(cls, name: str, table: Made) -> Table:
        """Make it from one of the collection."""
        data, schema = table
        return cls(name, data, schema, encoded_rows(data, schema) / np.sqrt(len(schema.columns)))

    def error_of_means(self, mean: FloatArray) -> dict[str, float]:
        """Length of the error in units of the rows, over that of the standard deviations."""
        error = np.linalg.norm(mean - self.rows.mean(axis=0)) / np.linalg.norm(self.rows.std(axis=0))
        return {"means": float(error)}

    def error_of_released(self, mean: FloatArray) -> dict[str, float]:
        """The same of means in the table's units."""
        encoding = self.schema.encoding(mean=True)
        return self.error_of_means((mean - encoding.offset) / encoding.unit / np.sqrt(len(self.schema.columns)))


def _medians(runs: Callable[[int], dict[str, float]], seeds: int = SEEDS) -> dict[str, float]:
    """Median of every error over the seeds."""
    found = [runs(seed) for seed in range(seeds)]
    return {name: float(np.median([errors[name] for errors in found])) for name in found[0]}


def means(table: Table, budget: PrivacyBudget, *, others: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Means, one row replaced: the number of rows is public."""
    delta = 0.0 if budget.kind is BudgetKind.PURE else budget.delta
    asked = {"epsilon": budget.epsilon, "delta": delta, "neighbors": "replace_one"}
    for way, make in (("release", dpm.release), ("release_mean", dpm.release_mean)):

        def ours(seed: int, make: Callable[..., Any] = make) -> dict[str, float]:
            return table.error_of_released(make(table.data, table.schema, **asked, insecure_seed=seed).mean)

        yield way, _medians(ours)
    if others and delta:
        sigma = gaussian_noise_scale(budget.epsilon, budget.delta, 1.0)
        yield "joint moments", _medians(_joint_moments(table, sigma))


def _joint_moments(table: Table, sigma: float) -> Callable[[int], dict[str, float]]:
    """Joint moment estimation (Kalinin, Upadhyay & Lampert 2025, arXiv 2502.06597) of a table that is there at once.

    For rows of norm 1, (x, λ·xxᵀ) with λ = 1/√2 changes by at most 2, as x alone does: noise of 2σ on sums.
    """
    n, d = table.rows.shape

    def run(seed: int) -> dict[str, float]:
        sums = table.rows.sum(axis=0) + 2.0 * sigma * np.random.default_rng(seed).standard_normal(d)
        return table.error_of_means(sums / n)

    return run


def cross_tables(table: Table, budget: PrivacyBudget) -> Iterator[tuple[str, dict[str, float]]]:
    """Root mean squared error of a cell's count, of the first two columns with levels and of all pairs; rows may be added."""
    columns = [column for column in table.schema.columns if isinstance(column, LEVELS)]
    pairs = list(combinations([column.name for column in columns], 2))
    if not pairs:
        return
    pure = budget.kind is BudgetKind.PURE
    asked = {"epsilon": budget.epsilon, "delta": 0.0 if pure else budget.delta}
    exact = {pair: dpm.release_counts(table.data, table.schema, by=list(pair), epsilon=1e6).counts for pair in pairs}

    def error(found: Any, pair: tuple[str, str]) -> float:
        return float(np.sqrt(np.mean((np.asarray(found, dtype=float) - exact[pair]) ** 2)))

    def of_all(errors: dict[tuple[str, str], float]) -> dict[str, float]:
        return {"one cross table": errors[pairs[0]], "all cross tables": float(np.mean(list(errors.values())))}

    def ours(seed: int) -> dict[str, float]:
        release = dpm.release(table.data, table.schema, **asked, insecure_seed=seed)
        return of_all({pair: error(release.cross_table(*pair).counts, pair) for pair in pairs})

    def counts(seed: int) -> dict[str, float]:
        one = dpm.release_counts(table.data, table.schema, by=list(pairs[0]), **asked, insecure_seed=seed)
        several = dpm.release_counts(table.data, table.schema, by=[list(p) for p in pairs], **asked, insecure_seed=seed)
        every = [error(found.counts, pair) for found, pair in zip(several.tables, pairs, strict=True)]
        return {"one cross table": error(one.counts, pairs[0]), "all cross tables": float(np.mean(every))}

    def histogram(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)

        def noisy(pair: tuple[str, str], share: int) -> FloatArray:
            shape = exact[pair].shape
            if pure:
                return np.asarray(exact[pair] + rng.laplace(scale=share / budget.epsilon, size=shape))
            sigma = gaussian_noise_scale(budget.epsilon, budget.delta, 1.0) * np.sqrt(share)
            return np.asarray(exact[pair] + sigma * rng.standard_normal(shape))

        one = error(noisy(pairs[0], 1), pairs[0])
        return {
            "one cross table": one,
            "all cross tables": float(np.mean([error(noisy(pair, len(pairs)), pair) for pair in pairs])),
        }

    yield "release", _medians(ours)
    yield "release_counts", _medians(counts)
    yield "plain histograms", _medians(histogram)


def regressions(table: Table, budget: PrivacyBudget, *, others: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Excess risk over Var(y), of one target and in the mean of five; a row may be added.

    A way that answers one regression divides its budget by five for five: ε and δ/5 under pure ε, else √5 times the noise.
    """
    numeric = [column.name for column in table.schema.columns if column.name in table.schema.feature_names]
    targets = numeric[-1:] + numeric[:4]
    truths = [Regression.of(table.data, table.schema, target) for target in targets]
    singles = [SingleRegression.of(table.data, table.schema, target) for target in targets]
    pure = budget.kind is BudgetKind.PURE
    fifth = fifth_of(budget)

    def ours(seed: int) -> dict[str, float]:
        delta = 0.0 if pure else budget.delta
        release = dpm.release(table.data, table.schema, epsilon=budget.epsilon, delta=delta, insecure_seed=seed)
        excess = [
            min(truth.excess_of_fit(release.ridge(name)), CAP) for name, truth in zip(targets, truths, strict=True)
        ]
        return {"one regression": excess[0], "five regressions": float(np.mean(excess))}

    def single(fit: Callable[..., FloatArray | None]) -> Callable[[int], dict[str, float]]:
        def excess(number: int, each: PrivacyBudget, rng: np.random.Generator) -> float:
            weights = fit(singles[number], each, rng)
            if weights is None:
                weights = np.zeros(singles[number].rows.shape[1])
            return min(singles[number].excess(weights, truths[number]), CAP)

        def run(seed: int) -> dict[str, float]:
            rng = np.random.default_rng(seed)
            five = [excess(number, fifth, rng) for number in range(len(targets))]
            return {"one regression": excess(0, budget, rng), "five regressions": float(np.mean(five))}

        return run

    def least(runs: list[dict[str, float]]) -> dict[str, float]:
        return {name: min(run[name] for run in runs) for name in runs[0]}

    yield "release", _medians(ours)
    if not others:
        return
    yield "AdaSSP", _medians(single(lambda s, b, rng: adassp(*s.moments(), b, rng)))

    largest = [float(np.linalg.eigvalsh(one.moments()[0])[-1]) for one in singles]

    def descent(setting: NoisyGradientDescent) -> dict[str, float]:
        """All runs at once, since each step reads all rows."""

        def errors(number: int, each: PrivacyBudget) -> FloatArray:
            one, rng = singles[number], np.random.default_rng(0)
            runs = setting.fits(one.rows, one.target, each, SEEDS, rng, largest[number])
            return np.array([min(one.excess(weights, truths[number]), CAP) for weights in runs.T])

        five = np.mean([errors(number, fifth) for number in range(len(targets))], axis=0)
        return {"one regression": float(np.median(errors(0, budget))), "five regressions": float(np.median(five))}

    yield "gradient descent, best of 4 lengths", least([descent(setting) for setting in DESCENTS])
    if not pure:
        yield "boosted AdaSSP, best of 4, 20, 100 rounds", least([
            _medians(single(lambda s, b, rng, r=r: boosted_adassp(s.rows, s.target, b, rng, r)), SEEDS_OF_SLOW)
            for r in (4, 20, 100)
        ])  # fmt: skip
        yield "TukeyEM", _medians(single(lambda s, b, rng: tukey_fit(s.rows, s.target, b, rng)), SEEDS_OF_SLOW)
        yield "linear mixing, best of 2.5, 10, 40 rows a feature", least([
            _medians(single(lambda s, b, rng, m=m: linear_mixing(s.rows, s.target, b, rng, m)))
            for m in (2.5, 10.0, 40.0)
        ])  # fmt: skip
        yield "iterative Hessian mixing, best of 1, 3, 10 steps", least([
            _medians(single(lambda s, b, rng, t=t: hessian_mixing(s.rows, s.target, b, rng, t)))
            for t in (1, 3, 10)
        ])  # fmt: skip


def fifth_of(budget: PrivacyBudget) -> PrivacyBudget:
    """The budget of each of five: five Gaussian mechanisms of it cost the whole, or ε/5."""
    if budget.kind is BudgetKind.PURE:
        return PrivacyBudget.of(epsilon=budget.epsilon / 5.0)
    low, high = budget.epsilon / 10.0, budget.epsilon
    wanted = gaussian_noise_scale(budget.epsilon, budget.delta, 1.0) * np.sqrt(5.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_noise_scale(middle, budget.delta, 1.0) > wanted else (low, middle)
    return PrivacyBudget.of(epsilon=high, delta=budget.delta)


def measured(table: Table, *, others: bool) -> Iterator[dict[str, Any]]:
    """All questions about one table at all budgets, by this library and perhaps by others: one row an error."""
    for epsilon, delta in BUDGETS:
        budget = PrivacyBudget.of(epsilon=epsilon, delta=delta)
        for ways in (
            means(table, budget, others=others),
            cross_tables(table, budget),
            regressions(table, budget, others=others),
        ):
            for way, errors in ways:
                for question, error in errors.items():
                    about = {"question": question, "ε": epsilon, "δ": delta, "table": table.name, "way": way}
                    yield about | {"error": error}


def kept(measured_again: set[str]) -> pd.DataFrame:
    """The errors of the other ways, and of all on tables that are not here, as the page has them."""
    page = pd.read_csv(EVIDENCE / "tables" / "peers-by-question-questions.csv")
    return page[~(page["way"].isin(OURS) & page["table"].isin(measured_again))]


def lines_of(found: pd.DataFrame) -> Iterator[str]:
    """Every error, and each way over the release: its geometric mean, and the tables on which the way is better."""
    in_order = found.assign(question=pd.Categorical(found["question"], found["question"].unique()))
    settings = in_order.groupby(["question", "ε", "δ"], observed=True)
    yield from head("question | ε | δ | table | way | error", "llllll")
    for (question, epsilon, delta), here in settings:
        for cell in here.itertuples():
            yield f"| {question} | {epsilon:g} | {delta:g} | {cell.table} | {cell.way} | {two_digits(cell.error)} |"
    yield ""
    yield from head(
        "question | ε | δ | way | error over the release's, geometric mean | better by over 10 % on", "llllll"
    )
    for (question, epsilon, delta), here in settings:
        errors = here.pivot(index="table", columns="way", values="error")[here["way"].unique()]
        for way, ratios in errors.div(errors["release"], axis=0).drop(columns="release").items():
            average = np.exp(np.log(ratios.clip(lower=1e-9)).mean())
            better = f"{(ratios < 1.0 / LOST).sum()} of {len(ratios)}"
            yield f"| {question} | {epsilon:g} | {delta:g} | {way} | {average:.2g} | {better} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true")
    ours = parser.parse_args().ours
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for entry in chosen(names=TABLES):
        if (table := made(entry)) is not None:
            rows += measured(Table.of(entry.name, table), others=not ours)
            print(entry.name, file=sys.stderr, flush=True)
    found = pd.DataFrame(rows)
    if ours:
        found = pd.concat([found, kept(set(found["table"]))])
        places = {"table": {name: place for place, name in enumerate(TABLES)}, "way": {"release": -1}}
        found = found.sort_values(
            ["table", "way"], key=lambda column: column.map(places[column.name]).fillna(0), kind="stable"
        )
    write_part(PAGE, "questions", lines_of(found))
