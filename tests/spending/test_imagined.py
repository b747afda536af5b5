"""Imagined releases: rows repeated are a table of them, draws are priced as ever, and nothing can be saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from dpmoments.privacy.laws import DiscreteGaussian
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.spending.imagined import ExpectedAnswers, ImaginedRelease, RepeatedRows, imagined_release
from support.said import refused

SCHEMA = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", -1, 1), dpm.Categorical("c", ["x", "y", "z"]))
BUDGETS = (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.5))


def imagined(
    mechanism: str, budget: PrivacyBudget, n_rows: int = 5000, schema: dpm.Schema = SCHEMA, chances: Any = None
) -> Any:
    plan = MECHANISMS[mechanism]().plan(MomentShape.of(schema, mean=True), budget, "add_remove")
    block, request = TypicalTable.of(schema).encoded(n_rows, mean=True), PrivacyRequest(budget, plan.neighbors)
    return imagined_release(plan, schema, block, n_rows, request, chances)


def asked(make: Any, *arguments: Any, **options: Any) -> tuple[Any, str]:
    """What is made, or why it is refused."""
    try:
        return make(*arguments, **options), ""
    except ValueError as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("n_rows", [7, 50, 365])
def test_repeated_rows_are_a_table_of_them(n_rows: int) -> None:
    block = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 3))
    schema = dpm.Schema.unit_ball(3)
    whole = np.vstack([block] * 8)[:n_rows]
    repeated = Rows(schema, Neighbors.ADD_REMOVE, RepeatedRows(block, n_rows), threads=1)
    known = Rows.of(whole, schema, threads=1)
    assert repeated.moments(bits=22) == known.moments(bits=22)
    assert repeated.count() == repeated.table_size() == n_rows
    center, scale = np.array([0.1, -0.1]), np.array([3.0, 2.0])
    ours, theirs = (one.marginal_sums((0, 2), center, scale, bits=20) for one in (repeated, known))
    assert (ours.count, ours.sums.tolist(), ours.squares.tolist()) == (
        theirs.count,
        theirs.sums.tolist(),
        theirs.squares.tolist(),
    )


def test_sums_of_very_many_rows_are_exact() -> None:
    block = np.array([[0.5, -0.25]])
    rows = Rows(dpm.Schema.unit_ball(2), Neighbors.ADD_REMOVE, RepeatedRows(block, 10**12), threads=1)
    moments = rows.moments(bits=20)
    assert moments.gram.tolist() == [[2**38 * 10**12, -(2**37) * 10**12], [-(2**37) * 10**12, 2**36 * 10**12]]


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: str(budget.kind))
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_run_records_the_draws_of_a_release(mechanism: str, budget: PrivacyBudget) -> None:
    """The same queries, laws of the same kinds and the whole budget, as in a release of the same rows."""
    options = {"epsilon": budget.epsilon, "delta": budget.delta} if budget.kind != "zcdp" else {"rho": budget.rho}
    values = TypicalTable.of(SCHEMA).values(1024)
    table = {"a": values[:, 0], "b": values[:, 1], "c": np.array(["x", "y", "z"])[values[:, 2:].argmax(axis=1)]}
    pandas = pytest.importorskip("pandas")
    known, refusal = asked(
        dpm.release, pandas.DataFrame(table), SCHEMA, mechanism=mechanism, insecure_seed=0, threads=1, **options
    )
    release, same = asked(imagined, mechanism, budget, 1024)
    assert same == refusal
    if refusal:
        return
    assert release.privacy.budget == known.privacy.budget
    draws = [[(draw.what, type(draw.law)) for draw in one.receipt.draws] for one in (release, known)]
    repeated = {"coinpress", "standardized", "auto"}  # rounds and searches depend on noise
    assert draws[0] == draws[1] or mechanism in repeated


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: str(budget.kind))
def test_chances_are_those_of_the_noise_on_the_histogram_of_lengths(
    budget: PrivacyBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        ExpectedAnswers,
        "_note",
        lambda _, made, query, answer: seen.update({made.what.code: (made.law, answer - query)}),
    )
    chances = np.linspace(0.01, 0.99, 64)
    imagined("standardized", budget, chances=chances)
    law, noise = seen.pop("row-lengths")
    family = stats.norm if isinstance(law, DiscreteGaussian) else stats.laplace
    np.testing.assert_allclose(noise, law.scale * family.ppf(chances[: len(noise)]), atol=0.5)
    assert seen
    assert not any(np.any(others) for _, others in seen.values())


@pytest.mark.parametrize("missing", ["error", "available"])
def test_an_imagined_release_is_read_and_never_saved(missing: Any, tmp_path: Path) -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 10, missing=missing), dpm.Numeric("b", -1, 1))
    release = imagined("auto", BUDGETS[0], schema=schema)
    assert release.describe().mean_noise.shape == (2,)
    assert not release.privacy.private
    assert isinstance(release.as_drawn, ImaginedRelease)
    for write in (release.to_dict, lambda: release.save(tmp_path / "release.json")):
        with refused("an imagined release cannot be saved: nothing was released", TypeError):
            write()
    assert not list(tmp_path.iterdir())
