"""What CoinPress takes from its options, the schema and the budget before any row is read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coinpress import CoinPress, CoinPressPlan, Ellipsoid, spectral_edge
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean, PaperCoinPress, covariance_theory
from dpmoments.papers.mechanisms.coinpress_schedule import STAND_IN_ROWS, checked_eigenvalue_bounds
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.schema.encoding import RoughScale
from references.reference_coinpress import rules
from support.said import refused

UNBOUNDED = MomentShape(3, n_rows=1000, mean=False, row_norm=None)
ROUGH = RoughScale(least=(0.5, 2.0, 0.1), largest=(5.0, 2.0, 0.3), radius=(1.0, 4.0, 0.5), span=(0.0, 0.0, 2.0))
INFINITE = (math.inf, math.nan)


def plan(mechanism: CoinPress, shape: MomentShape = UNBOUNDED, rho: float = 0.5, neighbors: str = "replace_one") -> Any:
    return mechanism.plan(shape, PrivacyBudget.zcdp(rho), neighbors)


@pytest.mark.parametrize("kind", [CoinPress, CoinPressMean])
def test_the_edges_of_what_options_may_be(kind: Any) -> None:
    needed = {} if kind is CoinPress else {"radius": 1.0}
    for steps in (1, 2, 999, 1000):
        assert kind(steps=steps, **needed).steps == steps
    for steps in (0, -1, 1001, True, False):
        with refused("must be", parameter="steps"):
            kind(steps=steps, **needed)
    for split in ((), (0.0, 1.0), (1.0, -1.0), (1.0, math.inf), (math.nan,)):
        with refused("give one positive share per step"):
            kind(split=split, **needed)
    assert kind(split=(5e-324, 1.0), **needed).split == (5e-324, 1.0)
    assert kind(split=[1, 2, 5], **needed).split == (0.125, 0.25, 0.625)
    assert kind(split=(1, 3), steps=2, **needed).split == (0.25, 0.75)
    with refused("shares and steps="):
        kind(split=(1, 3), steps=1, **needed)
    with refused(": use '"):
        kind(clip="none", **needed)
    with refused(": use '"):
        PaperCoinPress(constants="none")  # type: ignore[arg-type]


def test_the_last_clip_is_widened_with_practical_constants_alone() -> None:
    found = {
        (constants, clip): PaperCoinPress(constants=constants, clip=clip).widens_last_clip
        for constants in ("practical", "paper")
        for clip in ("adaptive", "gaussian")
    }
    assert [key for key, widens in found.items() if widens] == [("practical", "adaptive")]


def test_a_range_of_eigenvalues_is_positive_ordered_and_finite() -> None:
    assert checked_eigenvalue_bounds((2, 2)) == (2.0, 2.0)
    assert checked_eigenvalue_bounds((5e-324, 1.7e308)) == (5e-324, 1.7e308)
    for bounds in ((0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, math.inf), (math.nan, 1.0), (1.0, math.nan)):
        with refused("give (lowest, highest) with 0 < lowest ≤ highest, finite"):
            checked_eigenvalue_bounds(bounds)
        with refused("give (lowest, highest) with 0 < lowest ≤ highest, finite"):
            CoinPress(eigenvalue_bounds=bounds)
    kept = CoinPress(eigenvalue_bounds=[1, 3], mean_radius=0.0)  # type: ignore[arg-type]
    assert kept.eigenvalue_bounds == (1.0, 3.0)
    for radius in (-5e-324, *INFINITE):
        with refused("must be", parameter="mean_radius"):
            CoinPress(mean_radius=radius)


def test_an_anchor_is_square_finite_symmetric_and_positive_definite() -> None:
    kept = CoinPress(anchor=[[2, 1], [1, 2]]).anchor
    assert kept == ((2.0, 1.0), (1.0, 2.0))
    for anchor in ([[1.0, 2.0]], [1.0, 2.0], [[[1.0]]], [[1.0, 0.0], [0.0, math.inf]], [[math.nan]]):
        with refused("must be a finite square matrix, got shape"):
            CoinPress(anchor=anchor)  # type: ignore[arg-type]
    assert CoinPress(anchor=[[1.0, 0.5], [0.5 * (1 + 5e-11), 1.0]]).anchor is not None
    for off in (0.5 * (1 + 5e-10), 0.6, 0.0):
        with refused("is not symmetric: pass (M + Mᵀ)/2 if the difference is"):
            CoinPress(anchor=[[1.0, 0.5], [off, 1.0]])
    with refused("is not symmetric: pass (M + Mᵀ)/2 if the difference is"):  # however small an entry
        CoinPress(anchor=[[1.0, 0.0], [1e-300, 1.0]])
    assert CoinPress(anchor=[[1e-9, 0.0], [0.0, 1.0]]).anchor is not None
    for least in (0.0, -1e-3):
        with refused("must be positive definite, but has an eigenvalue that is"):
            CoinPress(anchor=[[least, 0.0], [0.0, 1.0]])


def test_where_the_bounds_come_from() -> None:
    """The options; else the scales of the columns, where no anchor is given; else the unit ball; else they are asked for."""
    ball, scaled = MomentShape(3), MomentShape(3, row_norm=None, rough_scale=ROUGH)
    both, nothing = MomentShape(3, rough_scale=ROUGH), MomentShape(3, row_norm=None)
    spread, reach = 10.0**2 + 1.0**2 + 3.0**2, math.sqrt(2.0**2 + 2.0**2 + 5.0**2)
    anchor = np.diag([1.0, 2.0, 3.0]).tolist()
    assert CoinPress().bounds(ball) == (1e-6, 1.0, 1.0)
    assert CoinPress(mean_radius=0.25).bounds(ball) == (1e-6, 1.0, 0.25)
    assert CoinPress((1e-3, 2.0)).bounds(ball) == (1e-3, 2.0, 1.0)
    assert CoinPress().bounds(scaled) == pytest.approx((0.1, spread, reach))
    assert CoinPress(mean_radius=7.0).bounds(scaled) == pytest.approx((0.1, spread, 7.0))
    assert CoinPress((1.0, 2.0)).bounds(scaled) == pytest.approx((1.0, 2.0, reach))
    assert CoinPress().bounds(both) == pytest.approx((1e-6, 1.0, reach))
    assert CoinPress((1.0, 2.0), 3.0, anchor).bounds(nothing) == (1.0, 2.0, 3.0)
    for shape in (ball, scaled, both):  # of an anchor nothing is known
        with refused("coinpress needs a rough range for the eigenvalues of the"):
            CoinPress(mean_radius=3.0, anchor=anchor).bounds(shape)
        with refused("coinpress needs a bound on the norm of the mean, which may"):
            CoinPress((1.0, 2.0), anchor=anchor).bounds(shape)
    with refused("the anchor has"):
        CoinPress((1.0, 2.0), 3.0, np.eye(2).tolist()).bounds(ball)
    for shape in (MomentShape(3, mean=False), MomentShape(3, mean=False, row_norm=None, rough_scale=ROUGH)):
        assert CoinPress((1.0, 2.0), 9.0).bounds(shape) == (1.0, 2.0, 0.0)


def first(mechanism: CoinPress, shape: MomentShape, radius: float) -> Ellipsoid:
    return mechanism.first_ellipsoid(shape, radius)


def test_the_first_ellipsoid_is_that_of_the_bounds() -> None:
    """E[x xᵀ] ⪯ (highest + R²)·anchor, and a flag's rarer value at √(radius² − d)."""
    ball = first(CoinPress(mean_radius=3.0), MomentShape(2), 5.0)
    np.testing.assert_allclose(ball.linear, np.eye(2) / math.sqrt(10.0))
    assert not ball.held.any()
    assert (ball.center.tolist(), ball.unchecked.tolist()) == ([0.0, 0.0], [False, False])
    assert ball.evidence.observations == ()
    scaled = MomentShape(3, row_norm=None, rough_scale=ROUGH)
    found = first(CoinPress((1.0, 2.0), 4.0), scaled, 4.0)
    np.testing.assert_allclose(found.linear, np.diag([2.0, 0.5, 10.0]) / math.sqrt(18.0))
    np.testing.assert_allclose(found.held, np.diag([0.0, 0.0, 2.0**2 / (16.0 - 3.0) * 100.0 / 18.0]), atol=1e-15)
    # Where the radius leaves no room beside normal features, at distance 1.
    close = first(CoinPress((1.0, 2.0), 4.0), scaled, 1.9)
    np.testing.assert_allclose(close.held, np.diag([0.0, 0.0, 2.0**2 * 100.0 / 18.0]), atol=1e-15)
    anchor = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    anchored = first(CoinPress((1.0, 2.0), 4.0, anchor.tolist()), scaled, 4.0)
    np.testing.assert_allclose(anchored.linear @ anchored.linear.T, np.linalg.inv(anchor) / 18.0, atol=1e-12)
    np.testing.assert_allclose(anchored.linear, anchored.linear.T, atol=1e-12)
    np.testing.assert_allclose(
        anchored.held, anchored.linear @ np.diag([0.0, 0.0, 4.0 / 13.0]) @ anchored.linear.T, atol=1e-12
    )


def test_the_edge_of_the_noise() -> None:
    assert [spectral_edge(d) for d in (1, 2, 8, 50)] == [1.0, 2.0, 4.0, 10.0]


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize(("d", "n", "rho"), [(1, 50, 0.1), (7, 900, 2.0), (20, 4000, 0.05)])
@pytest.mark.parametrize(
    "options", [{}, {"constants": "paper"}, {"steps": 70}, {"steps": 1}, {"split": (1, 2, 5)}], ids=str
)
def test_radius_ridge_and_shares_are_those_of_the_derivation(
    neighbors: str, mean: bool, d: int, n: int, rho: float, options: dict[str, Any]
) -> None:
    mechanism = (PaperCoinPress if "constants" in options else CoinPress)((0.5, 800.0), 20.0, **options)
    shape = MomentShape(d, mean=mean, row_norm=None)
    found = mechanism.step_rules(shape, float(n), rho, Neighbors.of(neighbors))
    spread = (800.0 + (400.0 if mean else 0.0)) / 0.5
    expected = rules(
        d,
        float(n),
        rho,
        spread,
        replace=neighbors == "replace_one",
        mean=mean,
        paper="constants" in options,
        steps=options.get("steps"),
        split=options.get("split"),
    )
    assert found.n_rows == n
    assert (found.radius, found.last_radius) == pytest.approx((expected.radius, expected.last_radius), rel=1e-5)
    if isinstance(mechanism, PaperCoinPress):
        early, last = mechanism.step_failures(found.schedule.n_steps)
        assert covariance_theory(d, n, early, last).ridge == pytest.approx(expected.ridge, rel=1e-12)
        assert early / 3.0 == pytest.approx(expected.failure, rel=1e-15)
    assert found.schedule.shares == pytest.approx(expected.shares, rel=1e-3)
    assert found.schedule.predicted_error == pytest.approx(expected.error, rel=1e-5)
    assert found.schedule.scales[0] == spread
    assert found.schedule.n_steps == len(found.schedule.scales) == len(expected.shares)


def test_a_private_number_of_rows_is_stood_in_for_and_counted_first() -> None:
    """ρ/100 buys the count: noise of √(1/(2ρ/100))."""
    assert STAND_IN_ROWS == 1000
    private = plan(CoinPress((1.0, 10.0)), MomentShape(3, mean=False, row_norm=None), 0.5, "add_remove")
    assert private.rules is None
    assert private.details == {"rho": 0.5, "spread": 10.0}
    assert private.expected_count_error == pytest.approx(10.0, rel=1e-9)
    public = plan(CoinPress((1.0, 10.0)))
    assert public.expected_count_error == 0.0
    assert set(public.details) == {"rho", "spread", "shares", "predicted_mahalanobis"}
    assert public.details["shares"] == public.rules.schedule.shares
    assert public.details["predicted_mahalanobis"] == public.rules.schedule.predicted_error
    assert public.rules == CoinPress((1.0, 10.0)).step_rules(UNBOUNDED, 1000.0, 0.5, Neighbors.REPLACE_ONE)


def test_a_table_of_one_row_has_a_plan_and_an_empty_one_has_none() -> None:
    one = plan(CoinPress((1.0, 10.0)), MomentShape(3, n_rows=1, mean=False, row_norm=None))
    assert isinstance(one, CoinPressPlan)
    assert one.rules is not None
    assert one.rules.n_rows == 1.0
    with refused("coinpress needs rows: this table is publicly empty"):
        plan(CoinPress((1.0, 10.0)), MomentShape(3, n_rows=0, mean=False, row_norm=None))


def test_a_budget_too_small_for_the_least_step_is_refused_and_one_just_large_enough_is_not() -> None:
    """Noise of a step stays below 2^46 units of 2^−12: as if of sensitivity 6, at the share of the least step."""
    least = 0.5 * (6.0 / 2.0**34) ** 2
    for split in ((1, 1), (1, 7), (1.0,)):
        share, mechanism = min(split) / sum(split), CoinPress((1.0, 10.0), split=split)
        assert plan(mechanism, rho=least / share * (1 + 1e-6)).rho == least / share * (1 + 1e-6)
        with refused("per entry would hide a table of any size: give a larger"):
            plan(mechanism, rho=least / share * (1 - 1e-6))
        # Not known beforehand, since the count is private: a share of 1/10,000.
        private = MomentShape(3, mean=False, row_norm=None)
        assert plan(mechanism, private, least * 1e4 * (1 + 1e-6), "add_remove").rules is None
        with refused("per entry would hide a table of any size: give a larger"):
            plan(mechanism, private, least * 1e4 * (1 - 1e-6), "add_remove")


def test_what_is_said_of_it() -> None:
    kind = dpm.mechanisms.CoinPress
    assert sorted(kind.budget_kinds) == ["approximate", "zcdp"]
    assert (kind.needs_row_norm, kind.counts_rows, kind.registry_name()) == (False, True, "coinpress")
    assert "anchor" not in repr(kind(anchor=np.eye(2).tolist()))
    assert kind().options == {
        "clip": "adaptive",
        "steps": None,
        "split": None,
        "eigenvalue_bounds": None,
        "mean_radius": None,
        "anchor": None,
    }


def test_the_papers_clip_for_one_row_is_that_of_one_row() -> None:
    found = PaperCoinPress((1.0, 10.0), steps=1).step_rules(UNBOUNDED, 1.0, 0.5, Neighbors.REPLACE_ONE)
    log = math.log(4.0 / 0.05)
    assert found.last_radius**2 == pytest.approx(3.0 + 2.0 * math.sqrt(3.0 * log) + 2.0 * log, rel=1e-12)
