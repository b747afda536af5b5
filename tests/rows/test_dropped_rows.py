"""A row that a column rule drops contributes nothing to any answer, and the number of rows kept is then private everywhere."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.audit.verification import checks
from dpmoments.mechanisms import Gaussian, MatrixLaplace
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import AdditiveModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.rows.rows import Rows
from mechanisms.test_means import OPTIONS
from support.said import codes, refused, warned

N_ROWS, N_DROPPED = 5_000, 500
DROPPING = dpm.Schema(dpm.Numeric("x", 0, 100, missing="drop"), dpm.Numeric("y", 0, 100))
KEEPING = dpm.Schema(dpm.Numeric("x", 0, 100, missing="center"), dpm.Numeric("y", 0, 100))
PURE: dict[str, Any] = dict(epsilon=100.0)
APPROXIMATE: dict[str, Any] = dict(epsilon=100.0, delta=1e-6)
SETTINGS: list[tuple[Any, dict[str, Any]]] = [
    ("laplace", PURE),
    ("matrix-laplace", PURE),
    ("isotropic", PURE),
    ("iterative-eigenvectors", PURE),
    ("kapralov-talwar", PURE),
    ("gaussian", APPROXIMATE),
    ("iterative-eigenvectors", dict(rho=100.0)),
    ("johnson-lindenstrauss", APPROXIMATE),
    ("inverse-wishart", APPROXIMATE),
    ("additive-wishart", APPROXIMATE),
    (dpm.mechanisms.InverseGaussian(smallest_eigenvalue=20.0), APPROXIMATE),
    ("coinpress", APPROXIMATE),
]


def table(n_dropped: int = N_DROPPED) -> pa.Table:
    """Two columns about 10 in [0, 100]; the first ``n_dropped`` cells of one are missing."""
    values = np.random.default_rng(0).normal(10.0, 2.0, (N_ROWS, 2))
    x: list[float | None] = values[:, 0].tolist()
    x[:n_dropped] = [None] * n_dropped
    return pa.table({"x": x, "y": values[:, 1]})


def quietly(*arguments: Any, **options: Any) -> dpm.MomentRelease:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return dpm.release(*arguments, **{"insecure_seed": 0, **options})


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(("mechanism", "budget"), SETTINGS, ids=lambda value: getattr(value, "name", str(value)))
def test_without_a_mean_a_part_of_the_budget_is_for_the_number_of_rows(mechanism: Any, budget: dict[str, Any]) -> None:
    release = quietly(table(), DROPPING, mechanism=mechanism, neighbors="replace_one", mean=False, **budget)
    assert abs(release.n_rows - (N_ROWS - N_DROPPED)) < 50
    assert not release.count_is_public
    (draw,) = (draw for draw in release.receipt.draws if draw.what.code == "count")
    if release.mechanism == "coinpress":
        share = 0.01
    else:
        share = 0.05 if release.receipt.allowance.unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO) else 0.1
    assert draw.loss.amount == pytest.approx(share * release.receipt.allowance.amount, rel=1e-9)
    assert [check.what for check in checks(release) if check.passed is False] == []
    if (
        release.mechanism != "inverse-gaussian"
    ):  # in this encoding the rows do not have the eigenvalue that it relies on
        np.testing.assert_allclose(np.diag(release.second_moment), 104.0, rtol=0.15)
    told = quietly(table(0), KEEPING, mechanism=mechanism, neighbors="replace_one", mean=False, **budget)
    assert (told.n_rows, told.count_is_public) == (N_ROWS, True)
    assert "rows-dropped" not in codes(told.warnings)
    assert "count" not in [draw.what.code for draw in told.receipt.draws]


def test_every_mechanism_is_in_these_settings() -> None:
    named = {mechanism if isinstance(mechanism, str) else mechanism.name for mechanism, _ in SETTINGS}
    # The first is one of the others; the second wants rows of mean zero; the third takes one column.
    # standardized wants the mean.
    assert named == set(MECHANISMS) - {"auto", "standardized", "private-preconditioning", "log-scale-histogram"}


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("mechanism", "budget"), SETTINGS, ids=lambda value: getattr(value, "name", str(value)))
def test_a_tenth_of_the_rows_dropped_moves_no_mean(mechanism: Any, budget: dict[str, Any], neighbors: str) -> None:
    """Encoded at the midpoint of their bounds they would move it from 10 to 14."""
    release = quietly(table(), DROPPING, mechanism=mechanism, neighbors=neighbors, **budget)
    np.testing.assert_allclose(release.mean, 10.0, atol=0.5)
    assert abs(release.n_rows - (N_ROWS - N_DROPPED)) < 0.02 * N_ROWS
    assert not release.count_is_public
    assert any("count" in draw.what.code or draw.what.code == "padded-gram" for draw in release.receipt.draws)
    assert [check.what for check in checks(release) if check.passed is False] == []


def test_dropped_rows_are_no_outliers_for_coinpress() -> None:
    """A histogram that counts them at 0, far from the mean, would give a clipping radius of 10⁵."""
    rng = np.random.default_rng(1)
    rows = rng.normal(0.0, 1.0, (N_ROWS, 3)) + 1e5
    rows[rng.random(N_ROWS) < 0.2, 0] = np.nan
    mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(0.1, 100.0), mean_radius=1e6)
    schema = dpm.Schema.unbounded(3, missing="drop")
    release = quietly(rows, schema, rho=2.0, neighbors="replace_one", mechanism=mechanism)
    np.testing.assert_allclose(release.covariance, np.eye(3), atol=0.2)
    np.testing.assert_allclose(release.mean, 1e5, atol=0.2)
    assert release.receipt.draws[0].what.code == "count"


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, mechanism in sorted(MEAN_MECHANISMS.items())
        for kind in (dict(rho=50.0), dict(epsilon=200.0))
        if "rho" in kind or BudgetKind.PURE in mechanism.budget_kinds
    ],
)
def test_means_alone_leave_dropped_rows_out(name: str, kind: dict[str, float], tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(50.0, 1.0, (N_ROWS, 2))
    rows[:N_DROPPED, 1] = np.nan
    path = tmp_path / "mean.json"
    bounded = dpm.Schema(*(dpm.Numeric(column, 0, 100, missing="drop") for column in ("x0", "x1")))
    with warned("rows-dropped", rows=5000):
        release = dpm.release_mean(
            rows,
            bounded if name == "bounded-sums" else dpm.Schema.unbounded(2, missing="drop"),
            neighbors="replace_one",
            mechanism=name,
            output=path,
            insecure_seed=0,
            **kind,
            **OPTIONS.get(name, {}),
        )
    np.testing.assert_allclose(release.mean, 50.0, atol=0.5)
    assert abs(release.n_rows - (N_ROWS - N_DROPPED)) < 10
    assert not release.count_is_public
    counts = sum("count" in draw.what.code for draw in release.receipt.draws)
    assert counts == 1
    assert all(check.passed is not False for check in checks(dpm.load(path)))


def test_a_plan_that_may_tell_the_number_of_rows_refuses_rows_that_a_rule_drops() -> None:
    rows = Rows.of(table(), DROPPING, neighbors="replace_one")
    for mechanism in (MatrixLaplace(), Gaussian()):
        budget = dpm.PrivacyBudget.pure(1.0) if isinstance(mechanism, MatrixLaplace) else dpm.PrivacyBudget.zcdp(1.0)
        telling = mechanism.plan(MomentShape(2, n_rows=N_ROWS), budget, "replace_one")
        assert telling.count_is_public
        with refused("the schema has a rule that drops rows, but the plan is for"):
            run_plan(telling, rows, insecure_generator(0))
        plan = mechanism.plan(MomentShape.of(DROPPING, mean=True, n_rows=N_ROWS), budget, "replace_one")
        assert not plan.count_is_public
        assert plan.shape.n_rows is None
        run_plan(plan, rows, insecure_generator(0))


def test_levels_that_match_nothing_are_said() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("ward", ["A", "B", "ICU"]))
    frame = pa.table({"age": [40.0] * 3_000, "ward": ["a", "b", "icu"] * 1_000})
    with warned("rows-dropped", rows=3000):
        release = dpm.release(frame, schema, epsilon=1.0, neighbors="replace_one", insecure_seed=0)
    assert "rows-dropped" in codes(release.warnings)


@pytest.mark.long
def test_noise_is_not_taken_for_dropped_rows() -> None:
    for seed in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReleaseWarning)
            warnings.filterwarnings("error", message=".*were dropped")
            dpm.release(
                table(50).slice(0, 200), DROPPING, epsilon=0.02, neighbors="replace_one", insecure_seed=seed
            )  # 25 % of 200 rows, and noise that is far more
            dpm.release(table(0), DROPPING, epsilon=1.0, neighbors="replace_one", insecure_seed=seed)


EVERY_RULE = [
    *(dpm.Numeric("v", 0, 1, missing=rule) for rule in ("center", "drop")),
    *(dpm.Numeric("v", scale=(0.1, 1.0), missing=rule) for rule in ("center", "drop")),
    *(dpm.Boolean("v", missing=rule) for rule in ("center", "drop")),
    *(dpm.Coordinate("v", missing=rule) for rule in ("center", "drop")),
    *(
        dpm.Categorical("v", ["0", "1"], missing=missing, other=other)
        for missing in ("zero", "drop")
        for other in ("zero", "drop")
    ),
]


@pytest.mark.parametrize("column", EVERY_RULE, ids=repr)
def test_a_schema_says_of_every_kind_of_column_whether_it_can_drop_a_row(column: Any) -> None:
    """Beside a column that drops none; were it wrong, an exact number of kept rows would be told as public."""
    bounded = not isinstance(column, dpm.Coordinate)
    other = dpm.Numeric("w", 0, 1) if bounded else dpm.Coordinate("w")
    schema = dpm.Schema(column, other) if bounded else dpm.Schema(column, other, row_norm=1.0)
    cells: list[Any] = [None, "0", "1", "else"] if isinstance(column, dpm.Categorical) else [None, 0.0, 1.0, 1e300]
    frame = pa.table({"v": cells, "w": [0.5] * 4})
    kept = Rows.of(frame, schema, neighbors="replace_one").count()
    assert schema.drops_rows == (kept < 4)
    by_rule = [column.missing == "drop", isinstance(column, dpm.Categorical) and column.other == "drop"]
    assert kept == 4 - sum(by_rule)


@pytest.mark.long
@pytest.mark.parametrize("budget", [dpm.PrivacyBudget.pure(0.5), dpm.PrivacyBudget.zcdp(0.5)], ids=str)
def test_the_error_expected_of_a_count_is_that_of_its_noise(budget: dpm.PrivacyBudget) -> None:
    """What is warned of as dropped rows, and what is not, hangs on it."""
    mechanism = MatrixLaplace() if budget.kind is BudgetKind.PURE else Gaussian()
    plan = mechanism.plan(MomentShape.of(DROPPING, mean=False, n_rows=N_ROWS), budget, "replace_one")
    rows, generator = Rows.of(table(), DROPPING, mean=False, neighbors="replace_one"), insecure_generator(0)
    errors = [run_plan(plan, rows, generator).count - (N_ROWS - N_DROPPED) for _ in range(100)]
    # Laplace noise: the square of its standard deviation varies by √(5/100) = 22 %.
    np.testing.assert_allclose(np.std(errors), plan.expected_count_error, rtol=0.35)


@pytest.mark.long
def test_the_noise_of_a_count_with_a_draw_of_its_own_is_in_law_and_error_bound() -> None:
    rows = np.random.default_rng(0).normal(size=(1_000, 3))
    rows[:, 2] = rows[:, 0] - 0.5 * rows[:, 1]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cells = np.vstack([rows, np.full((200, 3), np.nan)])  # no noisy number is above that of the table's rows
    misses, faulty = 0, 0
    for seed in range(30):
        private = quietly(
            cells,
            dpm.Schema.unit_ball(3, missing="drop"),
            epsilon=2.0,
            neighbors="replace_one",
            mean=False,
            insecure_seed=seed,
        )
        model = private.noise_model
        assert isinstance(model, AdditiveModel)
        off = abs(float(private.noisy_count or 0.0) - len(rows))
        misses += off > model.law().count_bound(0.05) + 0.5
        faulty += off > replace(model, count_scale=model.count_scale / 3.0).law().count_bound(0.05) + 0.5
    assert misses <= 5
    assert faulty > 5
    assert private.noise is not None
    assert private.describe().count_noise == math.sqrt(private.noise.count_variance) > 0.0
    forgotten = replace(private, noise_model=replace(model, count_scale=0.0))
    bounds = [one.ridge("x2", alpha=2.0).unit_ball_error_bound for one in (private, forgotten)]
    assert bounds[0] > 1.1 * bounds[1]


@pytest.mark.long
def test_a_number_of_rows_that_noise_decides_is_said_and_never_above_the_table() -> None:
    for seed in range(6):
        for neighbors, said in (("replace_one", True), ("add_remove", False)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReleaseWarning)
                release = dpm.release(
                    table(0).slice(0, 200),
                    DROPPING,
                    epsilon=0.1,
                    mean=neighbors == "add_remove",
                    neighbors=neighbors,
                    insecure_seed=seed,
                )
            assert ("row-count-uncertain" in codes(release.warnings)) == said
            assert neighbors == "add_remove" or release.n_rows <= 200
    for mean in (True, False):
        sure = quietly(table(0), DROPPING, epsilon=1.0, neighbors="replace_one", mean=mean)
        assert not sure.warnings


def test_a_small_table_of_which_every_row_is_dropped_says_so() -> None:
    rows = np.full((50, 2), np.nan)
    for seed in range(3):
        with pytest.warns(ReleaseWarning):
            release = dpm.release_mean(
                rows,
                dpm.Schema.unbounded(2, missing="drop"),
                epsilon=1.0,
                neighbors="replace_one",
                mechanism="naive",
                radius=10.0,
                scale=1.0,
                insecure_seed=seed,
            )
        assert {"row-count-uncertain", "rows-dropped"} & {*codes(release.warnings)}
