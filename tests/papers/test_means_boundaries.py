"""Where each rule of an estimator of means changes its mind: at the boundary it says nothing, a last place beyond it acts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpmoments.mechanisms.means.base import ClippedSums
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms import coinpress_mean, coordinatewise, variance_aware
from dpmoments.papers.mechanisms import variance_aware as far_rows_module
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean
from dpmoments.papers.mechanisms.row_norm_histogram import NormHistogram, noise_margin
from dpmoments.papers.mechanisms.variance_aware import search_warnings
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from references.plain_answers import recorded
from support.opened_filter import filter_that_pays
from support.said import codes

ZCDP = PrivacyBudget.zcdp(0.5)


def above(number: float) -> float:
    return math.nextafter(number, math.inf)


def below(number: float) -> float:
    return math.nextafter(number, -math.inf)


def factor_of(product: float, number: float) -> float:
    """The float that times ``number`` is ``product``, to the last place."""
    found = next(
        (
            factor
            for factor in (product / number, above(product / number), below(product / number))
            if factor * number == product
        ),
        None,
    )
    assert found is not None
    return found


def test_tails_as_heavy_as_the_factor_says_are_not_heavier(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(1).standard_t(2.0, (4000, 5))
    options: dict[str, Any] = {"radius": 9.0, "scale": 1.0}
    shells = list[float]()

    def shell_radius(*arguments: float) -> float:
        shells.append(coinpress_shell_radius(*arguments))
        return shells[-1]

    coinpress_shell_radius = coinpress_mean.normal_norm_radius
    monkeypatch.setattr(coinpress_mean, "normal_norm_radius", shell_radius)
    widened = recorded("coinpress", table, ZCDP, **options)[0].diagnostics["steps"][-1]["radius"]
    planned = recorded("coinpress", table, ZCDP, **options, clip="gaussian")[0].diagnostics["steps"][-1]["radius"]
    assert widened > planned
    at_the_factor = factor_of(widened, shells[1])  # the second shell: that of the histogram
    for factor, radius in ((at_the_factor, planned), (below(at_the_factor), widened)):
        monkeypatch.setattr(coinpress_mean, "_HEAVIER", factor)
        assert recorded("coinpress", table, ZCDP, **options)[0].diagnostics["steps"][-1]["radius"] == radius


def test_a_clamped_mean_three_deviations_from_the_center_is_more_than_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.of(np.full((50, 1), 0.3), Schema.unbounded(1), neighbors="replace_one", threads=1)
    plan = CoinPressMean(radius=1.0, scale=1.0).plan(MomentShape(1, n_rows=50, row_norm=None), ZCDP, "replace_one")

    def examined() -> coordinatewise.ClampedMean:
        door = PrivacyFilter(plan, insecure_generator(1))
        loss = PrivacyBudget.zcdp(0.01)
        return coordinatewise.Coordinate(rows, door, 0).examined_mean(loss, 0.0, 2.0, 50.0)

    found = examined()
    assert found.noise_scale > 0.3  # so that no value is farther from the center than noise
    at_the_factor = factor_of(abs(found.mean), found.noise_scale)
    for factor, decides in ((at_the_factor, False), (above(at_the_factor), True)):
        monkeypatch.setattr(coordinatewise, "_FROM_CENTER", factor)
        assert examined().noise_decides == decides


def run_of(d: int = 3, n: int = 1000) -> variance_aware._Run:
    """A variance-aware run that has drawn nothing yet."""
    shape = MomentShape(d, n_rows=n, row_norm=None)
    plan = variance_aware.VarianceAware().plan(shape, ZCDP, "replace_one")
    rows = Rows.of(np.zeros((n, d)), Schema.unbounded(d), neighbors="replace_one", threads=1)
    return variance_aware._Run.start(plan, rows, PrivacyFilter(plan, insecure_generator(0)))


def test_the_search_stops_where_floating_point_ends() -> None:
    run = run_of()
    assert run.resolution == 2e-100
    run.center = np.array([0.0, -8.0, 2.0])
    assert run.resolution == 2.0**-37


def far_from(run: variance_aware._Run) -> tuple[float, bool]:
    found: tuple[float, bool] = far_rows_module._far_rows(
        run.rows,
        run.privacy_filter,
        center=run.center,
        linear=np.eye(3),
        radius=1.0,
        n_rows=run.n_rows,
        total=run.total,
    )
    return found


def test_far_rows_show_from_a_hundredth_and_what_noise_passes_once_in_a_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two counts with noise of 5 each, of 1000 rows: 10 and 3.0902·√2·5 = 21.85 more."""
    for counts, shows in (((900.0, 20.0, 11.86), True), ((900.0, 20.0, 11.84), False)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array(counts), 5.0)
        monkeypatch.setattr(far_rows_module, "noisy_norm_histogram", lambda *_, found=histogram, **__: found)
        assert far_from(run_of()) == (pytest.approx(sum(counts[1:]) / 1000), shows)
    asked = list[np.ndarray]()
    for counts, share in (((0.0, -20.0, 1.0), 0.0), ((0.0, 900.0, 200.0), 1.0)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array(counts), 5.0)
        monkeypatch.setattr(
            far_rows_module,
            "noisy_norm_histogram",
            lambda *_, edges, found=histogram, **__: asked.append(edges) or found,
        )
        assert far_from(run_of())[0] == share
    assert asked[0][0] == 4.0  # radii
    bound = 0.01 + noise_margin(math.sqrt(2.0) * 5.0, 1, pure=False)
    for count, shows in ((bound, False), (above(bound), True)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array([0.0, count, 0.0]), 5.0)
        monkeypatch.setattr(far_rows_module, "noisy_norm_histogram", lambda *_, found=histogram, **__: found)
        run = run_of()
        run.n_rows = 1.0  # so that nothing is rounded
        assert far_from(run)[1] == shows


def test_what_the_variance_aware_mean_says_of_its_last_step() -> None:
    def said(norm: float, noise: float, moved: float = 0.0, *, settled: bool = False) -> list[str]:
        return codes(search_warnings(norm, moved, noise, settled=settled))

    assert said(4.0, 2.0) == []
    assert said(4.0, above(2.0)) == ["mean-lost"]
    assert said(8.0, 3.0, 5.0) == []  # √((0.5·8)² + 3²)
    assert said(8.0, 3.0, above(5.0)) == ["search-unsettled"]
    assert said(8.0, 3.0, above(5.0), settled=True) == []


def test_scales_and_radii_are_kept_in_the_range_of_the_lattice() -> None:
    for given, kept in ((1e-101, 1e-100), (1e-100, 1e-100), (3.0, 3.0), (1e100, 1e100), (1e101, 1e100)):
        assert variance_aware._within_range(given) == kept


# A quarter of the rows up to 1, half of them up to 2, all of them up to 4.
QUARTERS = NormHistogram(np.array([1.0, 2.0, 4.0]), np.array([3e6, 3e6, 6e6, 0.0]), 1.0)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a variance-aware run asks for, of which every histogram is QUARTERS and no step moves the center."""
    asked = list[dict[str, Any]]()

    def histogram(_run: Any, rho: float, linear: np.ndarray, typical: float, octaves: int) -> NormHistogram:
        asked.append({"rho": rho, "scales": 1.0 / np.diagonal(linear), "typical": typical, "octaves": octaves})
        return QUARTERS

    def clipped(_run: Any, rho: float, linear: np.ndarray, radius: float, **options: Any) -> ClippedSums:
        asked.append({"rho": rho, "scales": 1.0 / np.diagonal(linear), "radius": radius} | options)
        return ClippedSums(np.zeros(_run.d), 0.0, np.full(_run.d, _run.n_rows), 0.0)

    def far_rows(*_: Any, linear: np.ndarray, radius: float, **__: Any) -> tuple[float, bool]:
        asked.append({"scales": 1.0 / np.diagonal(linear), "far from": radius})
        return 0.0, False

    for stub in (histogram, clipped):
        monkeypatch.setattr(variance_aware._Run, stub.__name__, stub)
    monkeypatch.setattr(variance_aware, "_far_rows", far_rows)
    return asked


def test_a_search_whose_rounds_are_not_worth_making_ends_at_the_median(seen: list[dict[str, Any]]) -> None:
    run = run_of(d=100, n=10)
    run.find_center()
    assert run.radius == 2.0
    assert not run.settled
    assert [one["typical"] for one in seen] == [1.0]


def test_no_last_radius_is_below_the_median(seen: list[dict[str, Any]]) -> None:
    run = run_of(d=100, n=10)  # so much noise that the balance alone would take the least radius
    assert QUARTERS.best_radius(1, run.noise_error(run.left), 0.1) == 1.0
    run.finish()
    assert [one["far from"] for one in seen if "far from" in one] == [2.0]
    assert [one["radius"] for one in seen if "radius" in one] == [2.0]


def test_a_search_at_the_resolution_has_settled(seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    for resolution, rounds in ((2.0, 1), (below(2.0), 3)):
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "resolution", resolution)
        monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: 2.0)
        run = run_of(d=3, n=1000)
        run.find_center()
        assert run.settled
        # Two radii that are alike settle it, and a last round is made with four times the budget.
        assert [one["radius"] for one in seen if "radius" in one] == [2.0] * rounds


def test_a_histogram_that_just_fits_into_what_is_left_is_made(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(d=100, n=10)  # of rounds that are not worth making: nothing is kept for them
    run.total, run.radius = 50.0, 1.0
    for left, made in ((38.5, 1), (below(38.5), 0)):  # three quarters are kept, and 2 % pays for a histogram
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "left", left)
        monkeypatch.setattr(variance_aware._Run, "noise_error", lambda *_: 0.75)
        run.find_center()
        assert len(seen) == made


def test_rounds_and_scales_are_tried_where_noise_just_allows_them(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the clipping radius for a round, the squares themselves for a scale."""
    for error, radii in ((0.5, [1.0]), (above(0.5), [])):
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "noise_error", lambda *_, found=error: found)
        monkeypatch.setattr(variance_aware._Run, "resolution", 1.0)
        monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: 1.0)
        run_of(d=2, n=1000).find_center()
        assert [one["radius"] for one in seen if "radius" in one] == radii
    costs = list[float]()
    monkeypatch.setattr(variance_aware._Run, "squares_error", lambda _run, rho: costs.append(rho) or above(1.0))
    run = run_of(d=2, n=1000)
    run.radius = 1.0
    seen.clear()
    run.find_scales()
    assert (seen, run.spread.tolist()) == ([], [1.0 / math.sqrt(2.0)] * 2)
    monkeypatch.setattr(variance_aware._Run, "squares_error", lambda *_: 1.0)
    run.find_scales()
    assert len([one for one in seen if "radius" in one]) == 2
    np.testing.assert_allclose(costs, [0.5 * 0.05 * 0.5 / 3, 0.5 * 0.05 * 0.5 * 2 / 3])  # of ρ = 0.5


def test_what_two_counts_say_of_a_clamped_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clamping shows beyond a hundredth and a margin; noise decides where fewer than half of the values are larger."""
    rows = Rows.of(np.zeros((50, 1)), Schema.unbounded(1), neighbors="replace_one", threads=1)
    loss = PrivacyBudget.zcdp(0.01)
    count_noise = 2.0 / math.sqrt(2.0 * 0.02 * 0.01) / 2.0 / 50.0
    margin = noise_margin(count_noise, 1, pure=False)
    monkeypatch.setattr(coordinatewise, "_FROM_CENTER", 100.0)
    for clamped, larger, shows, decides in (
        (0.01 + margin * 0.999999, 0.5, False, False),
        (0.01 + margin * 1.000001, below(0.5), True, True),
    ):
        shares = iter([clamped, larger])
        monkeypatch.setattr(coordinatewise.Coordinate, "share_beyond", lambda *_, found=shares: next(found))
        door = filter_that_pays(loss, "replace_one", insecure_generator(1))
        found = coordinatewise.Coordinate(rows, door, 0).examined_mean(loss, 0.0, 2.0, 50.0)
        assert (found.clamping_shows, found.noise_decides) == (shows, decides)


def test_a_value_at_no_finite_distance_is_beyond() -> None:
    rows = Rows.of(np.array([[1.5e308], [0.0]]), Schema.unbounded(1), neighbors="replace_one", threads=1)
    loss = PrivacyBudget.zcdp(1e6)
    door = filter_that_pays(loss, "replace_one", insecure_generator(0))
    assert coordinatewise.Coordinate(rows, door, 0).share_beyond(loss, -1e308, 1e307, 2.0, "clamped-values") == 1.0


@pytest.mark.parametrize("radius", [1e-50, 1.0, 1e50])
def test_whether_quantiles_can_be_found_does_not_depend_on_the_units(radius: float) -> None:
    """√(8·ρ/6)·0.35·n/2 ≥ 2·ln 4096 from 117 rows on: half the budget a quantile, three levels each."""
    plan = make_mean_mechanism("symq", radius=radius).plan(MomentShape(1, n_rows=9, row_norm=None), ZCDP, "replace_one")
    assert [plan._resolves(0.35, n) for n in (116.0, 117.0)] == [False, True]


def test_a_search_that_never_settles_ends_after_forty_rounds(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    radii = iter(2.0**-place for place in range(100))
    monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: next(radii))
    monkeypatch.setattr(variance_aware._Run, "left", 0.5)  # as if nothing were ever spent
    run = run_of(d=3, n=1000)
    run.find_center()
    assert not run.settled
    assert [one["radius"] for one in seen if "radius" in one] == [2.0**-place for place in range(40)]
