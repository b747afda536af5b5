"""Whatever the number of rows, a run that drew noise ends in a release: whatever can be refused is refused before."""

from __future__ import annotations

import itertools
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from contracts.cases import BUDGETS, CASES, MEAN_CASES
from dpmoments.privacy.budget import BudgetKind
from dpmoments.spending import release as release_module
from dpmoments.spending.run import recorded_runs

SCHEMAS: dict[str, dpm.Schema] = {
    "numbers": dpm.Schema(dpm.Numeric("x", 0, 10, missing="drop"), dpm.Numeric("y", 0, 10)),
    "one number": dpm.Schema(dpm.Numeric("y", 0, 10)),
    "mixed": dpm.Schema(
        dpm.Numeric("x", 0, 10, missing="center"),
        dpm.Numeric("y", 0, 10),
        dpm.Categorical("g", ["a", "b", "c"]),
        dpm.Boolean("f"),
    ),
    "levels": dpm.Schema(
        dpm.Categorical("g", ["a", "b", "c"]), dpm.Categorical("h", ["p"], other="zero"), dpm.Boolean("f")
    ),
    "available": dpm.Schema(
        dpm.Numeric("x", 0, 10, missing="available", fill=5), dpm.Numeric("y", 0, 10), dpm.Boolean("f")
    ),
    "derived": dpm.Schema(dpm.Numeric("y", 0, 10), dpm.Boolean("f"), dpm.Power("y", 2), dpm.Product("y", "f")),
    "scales": dpm.Schema(dpm.Numeric("x", scale=(0.1, 100), missing="drop"), dpm.Numeric("y", scale=(0.1, 100))),
    "unbounded": dpm.Schema.unbounded(2),
}
SIZES = ["usual", "usual", "tiny", "usual", "unlimited"]
"""Of the budget, in turn."""
MOST_ROWS = 50
THIN = 11
"""Of so many settings the default suite runs one."""

Run = Callable[[], Any]


def table(schema: str, n_rows: int) -> Any:
    """Rows that mean little: a third without x, few with the flag; none at all if so asked."""
    rng = np.random.default_rng(n_rows)
    if schema == "unbounded":
        return rng.normal(0.0, 1.0, (n_rows, 2))
    x = rng.uniform(0, 10, n_rows)
    x[rng.random(n_rows) < 0.3] = np.nan
    levels = {name: pd.Series(rng.choice(list(of), n_rows), dtype=object) for name, of in (("g", "abc"), ("h", "pq"))}
    frame = pd.DataFrame({"x": x, "y": rng.normal(5, 2, n_rows), "f": rng.random(n_rows) < 0.2, **levels})
    return frame.assign(person=np.arange(n_rows) // 2)


def ways(schema: str, n_rows: int, seed: int, **options: Any) -> dict[str, Run]:
    """Releases of other kinds than one of moments by a named mechanism."""
    held, rows = SCHEMAS[schema], table(schema, n_rows)
    by = [column.name for column in held.columns if isinstance(column, dpm.Categorical | dpm.Boolean)]

    def pooled() -> Any:
        seeds = {"one": seed, "other": seed + 1}
        return dpm.pool(
            [
                dpm.release(rows, held, **(options | {"dataset": name, "insecure_seed": own}))
                for name, own in seeds.items()
            ]
        )

    options["insecure_seed"] = seed
    result: dict[str, Run] = {"means": lambda: dpm.release_mean(rows, held, **options), "pooled": pooled}
    if schema != "unbounded":
        unit = dpm.PrivacyUnit("person", max_rows=2)
        result["units"] = lambda: dpm.release(rows, held, privacy_unit=unit, **options)
    if by:
        result["counts"] = lambda: dpm.release_counts(rows, held, by=by[:2], **options)
        result["groups"] = lambda: dpm.release_groups(rows, held, by=by[-1], **options)
    return result


def settings(name: str) -> Iterator[tuple[str, Run]]:
    """Every setting of a mechanism, of an estimator of means, or of a kind of release, and how it is run."""
    mechanisms = {
        (str(case.mechanism), case.kind, case.neighbors, case.mean): case
        for case in (*CASES, *MEAN_CASES)
        if name in (case.mechanism.name, f"mean of {case.mechanism.name}")
        and (case in MEAN_CASES) == name.startswith("mean of ")
    }
    start = NAMES.index(name)
    for place, (schema, case) in enumerate(itertools.product(SCHEMAS, mechanisms.values()), start):
        n_rows, size = 7 * place % (MOST_ROWS + 1), SIZES[place % len(SIZES)]
        options: dict[str, Any] = dict(BUDGETS[case.kind][size], mechanism=case.mechanism, insecure_seed=place)
        options["neighbors"] = case.neighbors
        run = dpm.release_mean if case in MEAN_CASES else dpm.release
        if run is dpm.release:
            options["mean"] = case.mean
        yield (
            f"{case.id}, {schema}, {n_rows} rows, {size}",
            lambda run=run, schema=schema, n_rows=n_rows, options=options: run(
                table(schema, n_rows), SCHEMAS[schema], **options
            ),
        )
    if mechanisms:
        return
    every = itertools.product(range(4), SCHEMAS, BudgetKind, ["add_remove", "replace_one"])
    for place, (_, schema, kind, neighbors) in enumerate(every, start):
        n_rows, size = 7 * place % (MOST_ROWS + 1), SIZES[place % len(SIZES)]
        chosen = ways(schema, n_rows, place, neighbors=neighbors, **BUDGETS[kind][size])
        if name in chosen:
            yield f"{name}, {schema}, {kind}, {neighbors}, {n_rows} rows, {size}", chosen[name]


NAMES = [
    *sorted({case.mechanism.name for case in CASES}),
    *sorted({f"mean of {case.mechanism.name}" for case in MEAN_CASES}),
    *("means", "pooled", "units", "counts", "groups"),
]


def read(release: Any) -> None:
    """Ask a release what every reader asks, if it has what that needs."""
    str(release)
    copied = pickle.loads(pickle.dumps(release))
    assert copied.to_dict() == release.to_dict()
    for each in release.values() if isinstance(release, dpm.GroupReleases) else [release]:
        if not isinstance(each, dpm.MomentRelease) or each.noisy_sum is None:
            continue
        str(each.describe())
        assert np.isfinite(each.covariance).all()
        if len(each.feature_names) > 1:
            str(each.correlations())


def fault_of(run: Run) -> str | None:
    """What was lost by a run of few rows: a release that was paid for, or an answer of it."""
    with warnings.catch_warnings(), recorded_runs() as record:
        warnings.simplefilter("ignore")
        try:
            release = run()
        except Exception as error:
            return f"drew noise, and raised {error!r}" if any(run.privacy_filter.spent for run in record) else None
        try:
            read(release)
        except Exception as error:
            return f"returned a release, and an answer raised {error!r}"
    return None


def faults(name: str, thin: int) -> dict[str, str]:
    found = {setting: fault_of(run) for place, (setting, run) in enumerate(settings(name)) if place % thin == 0}
    assert found
    return {setting: fault for setting, fault in found.items() if fault is not None}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_drew_noise_returns_a_release_that_answers(name: str) -> None:
    assert not faults(name, THIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_in_every_setting(name: str) -> None:
    assert not faults(name, 1)


def test_a_refusal_after_noise_and_an_answer_that_raises_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ValueError("too few rows")

    def run() -> Any:
        return dpm.release(table("numbers", 3), SCHEMAS["numbers"], epsilon=1.0, insecure_seed=0)

    assert fault_of(run) is None
    assert fault_of(lambda: dpm.release(table("numbers", 3), SCHEMAS["numbers"], epsilon=0.0)) is None
    with monkeypatch.context() as planted:
        planted.setattr(release_module, "moment_release", refuse)
        assert "drew noise" in str(fault_of(run))
    monkeypatch.setattr(dpm.MomentRelease, "describe", refuse)
    assert "an answer raised" in str(fault_of(run))
