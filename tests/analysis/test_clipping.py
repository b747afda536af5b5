"""What clipping rows to a ball may hide: the bounds hold for every table, and name the columns that they are about."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

import dpmoments as dpm
from dpmoments.analysis import description
from dpmoments.analysis.clipping import ClippingBounds, TableBounds, largest_variance
from dpmoments.analysis.description import Description, clipping_warning, describe
from dpmoments.analysis.resolvability import NOT_CLEAR_CLIPPED
from dpmoments.reporting.sections import _unresolved_pairs as unresolved_pairs
from support.said import refused

SLACK = 1e-9

# ---------------------------------------------------------------- the bounds, without noise


def some_rows(rng: np.random.Generator) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], float]:
    """Rows about a center at 0, the box that they are in, and a radius that some are outside."""
    d, n = int(rng.integers(1, 5)), int(rng.integers(3, 40))
    lower, upper = -rng.uniform(0.02, 1.0, d), rng.uniform(0.02, 1.0, d)
    rows = rng.normal(0.0, rng.uniform(0.02, 0.3, d), (n, d)) @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    far = rng.random(n) < rng.choice([0.0, 0.1, 0.3])
    rows[far] = np.where(rng.random((int(far.sum()), d)) < 0.5, lower, upper) * rng.choice([0.5, 0.9, 1.0])
    alone = far & (rng.random(n) < 0.5)
    rows[alone] *= np.eye(d)[rng.integers(0, d)]  # far in one column
    return np.clip(rows, lower, upper), (lower, upper), float(rng.uniform(0.05, 0.8))


def clipped_rows(rows: np.ndarray, radius: float) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, radius / np.maximum(norms, 1e-300))


def true_bounds(
    rows: np.ndarray, box: tuple[np.ndarray, np.ndarray], radius: float, of_ball: Callable[..., ClippingBounds]
) -> ClippingBounds:
    """The bounds from the true number of rows outside and their true excess."""
    excess = np.maximum((rows**2).sum(axis=1) - radius**2, 0.0)
    farthest = float(np.linalg.norm(np.maximum(-box[0], box[1])))
    squares = (clipped_rows(rows, radius) ** 2).sum(axis=0)
    return of_ball(radius, float((excess > 0.0).sum()), float(excess.sum()), box, farthest, squares)


def broken(rows: np.ndarray, radius: float, bounds: ClippingBounds) -> set[str]:
    """Names of the bounds that do not hold."""
    n, clipped = len(rows), clipped_rows(rows, radius)
    squares = (rows**2).sum(axis=0) - (clipped**2).sum(axis=0)
    sums = rows.sum(axis=0) - clipped.sum(axis=0)
    result = set()
    if (squares > bounds.squares + SLACK).any():
        result.add("squares")
    if (sums > bounds.sum_above + SLACK).any() or (-sums > bounds.sum_below + SLACK).any():
        result.add("sums")
    variances, mean = clipped.var(axis=0), clipped.mean(axis=0)
    fall, rise = bounds.variance_change(mean, n)
    change = rows.var(axis=0) - variances
    if (change > rise + SLACK).any() or (-change > fall + SLACK).any():
        result.add("variance")
    usable = (variances > 1e-6) & (rows.var(axis=0) > 1e-6)
    if usable.sum() >= 2:
        chosen = np.ix_(usable, usable)
        of_clipped, of_table = (np.corrcoef(each[:, usable].T) for each in (clipped, rows))
        whole = np.eye(len(mean))
        whole[chosen] = of_clipped
        low, high = bounds.correlation_ends((whole, whole), variances, mean, n)
        if (of_table < low[chosen] - 1e-6).any() or (of_table > high[chosen] + 1e-6).any():
            result.add("correlation")
    return result


@given(st.integers(0, 2**32))
def test_the_bounds_hold_for_every_table(seed: int) -> None:
    rows, box, radius = some_rows(np.random.default_rng(seed))
    assert not broken(rows, radius, true_bounds(rows, box, radius, ClippingBounds.of_ball))


@given(st.integers(0, 2**32))
def test_they_grow_with_the_stated_number_and_excess(seed: int) -> None:
    """What is stated is above the truth with 95 % confidence: more rows or more excess must not make a bound smaller."""
    rng = np.random.default_rng(seed)
    rows, box, radius = some_rows(rng)
    excess = np.maximum((rows**2).sum(axis=1) - radius**2, 0.0)
    n_outside, farthest = float((excess > 0.0).sum()), float(np.linalg.norm(np.maximum(-box[0], box[1])))
    squares = (clipped_rows(rows, radius) ** 2).sum(axis=0)
    stated = ClippingBounds.of_ball(
        radius,
        n_outside + rng.exponential(20.0) + 0.1,
        float(excess.sum()) + rng.exponential(1.0),
        box,
        farthest,
        squares + rng.exponential(0.1),
    )
    assert not broken(rows, radius, stated)


def only_one_row(radius: float, max_rows: float, *rest: object) -> ClippingBounds:
    del max_rows
    return ClippingBounds.of_ball(radius, 1.0, *rest)  # type: ignore[arg-type]


def sides_exchanged(radius: float, max_rows: float, excess: float, box: object, *rest: object) -> ClippingBounds:
    lower, upper = box  # type: ignore[misc]
    return ClippingBounds.of_ball(radius, max_rows, excess, (-upper, -lower), *rest)  # type: ignore[arg-type]


def without_clipped_squares(*given: object) -> ClippingBounds:
    result = ClippingBounds.of_ball(*given)  # type: ignore[arg-type]
    return replace(result, squares=0.5 * result.squares)


class WithoutMean(ClippingBounds):
    def variance_change(self, mean: np.ndarray, n_rows: float) -> tuple[np.ndarray, np.ndarray]:
        return super().variance_change(0.0 * mean, n_rows)


class WithoutGrowth(ClippingBounds):
    def correlation_ends(self, ends: object, *given: object) -> tuple[np.ndarray, np.ndarray]:
        still = ClippingBounds(self.excess, 0.0 * self.squares, self.sum_below, self.sum_above, self.sum_norm)
        return still.correlation_ends(ends, *given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (only_one_row, {"squares", "sums"}),
        (sides_exchanged, {"sums"}),
        (without_clipped_squares, {"squares", "variance"}),
        (WithoutMean.of_ball, {"variance"}),
        (WithoutGrowth.of_ball, {"correlation"}),
    ],
)
def test_planted_faults_are_seen(fault: Callable[..., ClippingBounds], seen: set[str]) -> None:
    found: set[str] = set()
    for seed in range(400):
        rows, box, radius = some_rows(np.random.default_rng(seed))
        found |= broken(rows, radius, true_bounds(rows, box, radius, fault))
    assert seen <= found


def test_the_bounds_are_attained() -> None:
    """All rows outside are alike, far in one column: sums and squares are what the bounds say."""
    rows = np.zeros((20, 2))
    rows[:4, 0] = 0.6
    bounds = true_bounds(rows, (np.full(2, -0.6), np.full(2, 0.6)), 0.2, ClippingBounds.of_ball)
    assert bounds.sum_above[0] == pytest.approx(4 * 0.4)
    assert bounds.squares[0] == pytest.approx(4 * (0.36 - 0.04))


def coefficients_outside(seed: int, of_ball: Callable[..., ClippingBounds]) -> float:
    """By how much the coefficients of the table are outside the bounds on their change, a constant and all columns but one."""
    rows, box, radius = some_rows(np.random.default_rng(seed))
    if rows.shape[1] < 2:
        return 0.0
    moments, of_clipped = (
        each.T @ each
        for each in (np.column_stack([np.ones(len(each)), each]) for each in (rows, clipped_rows(rows, radius)))
    )
    if np.linalg.eigvalsh(moments[:-1, :-1])[0] < 1e-3 or np.linalg.eigvalsh(of_clipped[:-1, :-1])[0] < 1e-3:
        return 0.0
    inverse = np.linalg.inv(moments[:-1, :-1])
    shown = np.linalg.solve(of_clipped[:-1, :-1], of_clipped[:-1, -1])
    change, beyond = inverse @ moments[:-1, -1] - shown, np.append(-shown, 1.0)
    bounds = true_bounds(rows, box, radius, of_ball)
    ends = np.array([bounds.product_range(np.append(row, 0.0), beyond) for row in inverse])
    assert (ends[:, 0] <= 1e-9).all()
    assert (ends[:, 1] >= -1e-9).all()
    return float(np.maximum(ends[:, 0] - change, change - ends[:, 1]).max() / (1.0 + np.abs(change).max()))


@given(st.integers(0, 2**32))
def test_coefficients_of_the_table_are_within_their_bounds(seed: int) -> None:
    """With the inverse of the table's own moments the bounds hold exactly; that of the clipped rows is its first order."""
    assert coefficients_outside(seed, ClippingBounds.of_ball) < 1e-7


class WithoutSum(ClippingBounds):
    def product_range(self, left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
        return super().product_range(np.append(0.0, left[1:]), np.append(0.0, right[1:]))


class HalfTheExcess(ClippingBounds):
    def product_range(self, left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
        low, high = super().product_range(left, right)
        return 0.5 * low, 0.5 * high


@pytest.mark.parametrize("fault", [WithoutSum, HalfTheExcess])
def test_planted_faults_in_bounds_on_coefficients_are_seen(fault: type[ClippingBounds]) -> None:
    assert max(coefficients_outside(seed, fault.of_ball) for seed in range(400)) > 1e-4


# ---------------------------------------------------------------- of a release


NAMES = ("sales", *"abcde")
SCHEMA = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in NAMES))


def firms(n: int = 8000) -> np.ndarray:
    """A heavy-tailed column beside five that are none, in [0, 1]."""
    rng = np.random.default_rng(5)
    sales = np.minimum(np.exp(1.4 * rng.normal(size=n)) * (1.0 - rng.random(n)) ** (-1 / 1.6) * 1e-3, 1.0)
    return np.column_stack([sales, rng.normal(0.5, 0.12, (n, 5)).clip(0.0, 1.0)])


def in_balls(table: np.ndarray, number: int, epsilon: float = 3.0) -> list[dpm.MomentRelease]:
    """Releases that ended in a ball."""
    result: list[dpm.MomentRelease] = []
    for seed in range(3 * number):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            release = dpm.release(
                pd.DataFrame(table, columns=list(NAMES)),
                SCHEMA,
                epsilon=epsilon,
                mechanism="adaptive-ball",
                insecure_seed=seed,
            )
        result += [release] if "radius" in release.diagnostics else []
        if len(result) == number:
            return result
    raise AssertionError("no ball was found")


RELEASES = 25


def held(releases: list[dpm.MomentRelease], table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In how many releases noise alone, and the limits of the table, hold each standard deviation, and of the table its mean."""
    alone = np.zeros(len(NAMES))
    spread, means = alone.copy(), alone.copy()
    for release in releases:
        result = release.describe()
        mean, deviation = result.of_table()
        assert result.standard_deviation is not None
        alone += np.abs(result.standard_deviation - table.std(axis=0)) <= 1.96 * result.standard_deviation_noise
        spread += (deviation[:, 0] <= table.std(axis=0)) & (table.std(axis=0) <= deviation[:, 1])
        means += (mean[:, 0] <= table.mean(axis=0)) & (table.mean(axis=0) <= mean[:, 1])
    return alone, spread, means


def test_the_limits_hold_the_table_where_noise_alone_does_not() -> None:
    table = firms()
    releases = in_balls(table, RELEASES, epsilon=10.0)
    alone, spread, means = held(releases, table)
    assert alone[0] < 0.2 * RELEASES
    assert (spread >= 0.9 * RELEASES).all()
    assert (means >= 0.9 * RELEASES).all()
    named = np.array([release.describe().clipped for release in releases]).mean(axis=0)
    assert named[0] > 0.9
    assert (named[1:] == 0.0).all()


def test_the_warning_names_the_column_and_its_effect() -> None:
    releases = in_balls(firms(), 10)
    warned = [clipping_warning(release) for release in releases]
    assert sum(said is not None for said in warned) >= 8
    for release, said in zip(releases, warned, strict=True):
        assert release.warnings == (() if said is None else (said,))
        if said is not None:
            assert said.facts["names"][0] == "sales"
            assert "a" not in said.facts["names"]
            shown = release.describe()
            assert said.facts["shown"][0] == shown.standard_deviation[0]
            assert said.facts["at_most"][0] == shown.of_table()[1][0, 1] > 1.3 * shown.standard_deviation[0]


def test_the_warning_names_first_what_clipping_hides_most_of(monkeypatch: pytest.MonkeyPatch) -> None:
    release = in_balls(firms(), 1)[0]
    marked = describe(release)
    everything = replace(
        marked, clipping=replace(marked.clipping, largest_ratio=np.full(len(marked.feature_names), 9.0))
    )
    monkeypatch.setattr(description, "describe", lambda _: everything)
    monkeypatch.setattr(Description, "clipped", property(lambda self: (True,) * len(self.feature_names)))
    said = clipping_warning(release)
    assert said is not None
    ratios = np.array(said.facts["at_most"]) / np.array(said.facts["shown"])
    assert len(ratios) > 2
    assert (np.diff(ratios) <= 0.0).all()
    assert ratios[0] > ratios[-1]


def test_a_normal_table_is_neither_named_nor_warned_of() -> None:
    table = np.random.default_rng(3).normal(0.5, 0.1, (10_000, 6)).clip(0.0, 1.0)
    releases = in_balls(table, RELEASES)
    assert sum(bool(release.warnings) for release in releases) <= 1
    assert sum(any(release.describe().clipped) for release in releases) <= 1


def test_intervals_of_the_table_are_wider_by_what_clipping_may_hide() -> None:
    [release] = in_balls(firms(), 1)
    result, bounds = release.describe(), TableBounds.of(release)
    assert bounds is not None
    of_clipped, of_table = result.conf_int(), result.conf_int(of="table")
    below, above = of_clipped[:, 0] - of_table[:, 0], of_table[:, 1] - of_clipped[:, 1]
    np.testing.assert_allclose(above, bounds.mean_above)
    np.testing.assert_allclose(below, np.minimum(bounds.mean_below, of_clipped[:, 0]))
    assert above[0] > below[0]  # sales are far above their mean, and cannot be below 0
    with refused("intervals-of"):
        result.conf_int(of="rows")


def test_a_release_at_the_public_bounds_has_no_such_column() -> None:
    frame = pd.DataFrame(firms(), columns=list(NAMES))
    release = dpm.release(frame, SCHEMA, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=0)
    result = release.describe()
    assert result.clipping is None
    assert "clipped" not in result.columns()
    np.testing.assert_array_equal(result.conf_int(), result.conf_int(of="table"))


@pytest.mark.parametrize("name", ["radius", "share_beyond_bound", "trace_bias_bound", "excess_beyond"])
def test_a_file_that_says_too_little_bounds_nothing(name: str) -> None:
    [release] = in_balls(firms(), 1)
    for value in (None, "none", float("nan")):
        changed = replace(release, diagnostics={**release.diagnostics, name: value})
        assert TableBounds.of(changed) is None
        assert changed.describe().clipping is None
    nothing = replace(release, diagnostics={**release.diagnostics, name: 0.0})
    assert (TableBounds.of(nothing) is None) == (name != "excess_beyond")


def test_the_largest_ratio_allows_for_the_noise_of_the_deviation() -> None:
    """(sd + q·noise)² and what clipping may add, over sd²; the noise of sd is half that of n·sd² over n·sd."""
    [release] = in_balls(firms(), 1)
    found = TableBounds.of(release)
    assert found is not None
    assert release.noise is not None
    scale, n_rows = release.encoding.scale, float(release.n_rows)
    deviation = np.sqrt(found.variance)
    noise = np.sqrt(np.diag(release.noise.cell_variances())[1:]) / n_rows
    own = noise / (2.0 * deviation)
    most = (deviation + ndtri(0.975) * own) ** 2 + found.variance_above / scale**2
    shown = own < deviation
    assert shown.sum() >= 2
    np.testing.assert_allclose(found.largest_ratio[shown], np.sqrt(most)[shown] / deviation[shown], rtol=1e-9)


def related(n: int = 8000) -> np.ndarray:
    """Firms of which ``e`` grows with the sales of the small ones only."""
    table = firms(n)
    table[:, 5] = (table[:, 5] + 3.0 * np.minimum(table[:, 0], 0.05)).clip(0.0, 1.0)
    return table


def test_correlations_of_named_columns_have_a_sign_only_if_the_table_has_it() -> None:
    table = related()
    true = np.corrcoef(table.T)
    missed = wider = not_clear = 0
    for release in in_balls(table, RELEASES, epsilon=10.0):
        found, of_table = release.correlations(), release.correlations(of="table")
        assert (of_table.lower <= found.lower).all()
        assert (of_table.upper >= found.upper).all()
        missed += bool((of_table.lower[0] > true[0]).any() or (of_table.upper[0] < true[0]).any())
        wider += bool(found.lower[0, 5] > true[0, 5])
        assert release.describe().clipped[0]
        for row in range(1, 6):
            sure = of_table.lower[0, row] > 0.0 or of_table.upper[0, row] < 0.0
            assert (found.verdict[0][row] in ("positive", "negative")) <= sure
            if found.lower[0, row] > 0.0 and not sure:
                assert found.verdict[0][row].startswith("not clear")
        assert found.verdict[1][2] != NOT_CLEAR_CLIPPED  # neither is named
        assert found.to_pandas().loc[("sales", "e"), "verdict"] == found.verdict[0][5]
        not_clear += sum(word == NOT_CLEAR_CLIPPED for word in found.verdict[0])
        said = [found.verdict[row][other] for row in range(6) for other in range(row)]
        unclear = sum(word not in ("", "positive", "negative") for word in said)
        pages = unresolved_pairs(release, found, len(said))
        assert unclear == sum(int(words.split(" of ")[0]) for words in pages)
    assert not_clear > 0
    assert missed <= 0.1 * RELEASES
    assert wider >= 0.25 * RELEASES  # what the intervals of the clipped rows leave out


def test_other_words_for_what_intervals_are_of_are_refused() -> None:
    [release] = in_balls(firms(), 1)
    with refused("intervals-of"):
        release.correlations(of="rows")


def test_the_report_names_the_clipped_columns(tmp_path: Path) -> None:
    [release] = in_balls(firms(), 1)
    dpm.report(release, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("clipped: sd") == sum(release.describe().clipped) >= 1
    assert page.count("Answers are about the clipped rows") == 1


def test_a_fit_says_what_clipping_may_hide_of_its_coefficients() -> None:
    [release] = in_balls(np.random.default_rng(3).normal(0.5, 0.1, (10_000, 6)).clip(0.0, 1.0), 1)
    fit = release.ols("e", ["a", "b"])
    effect = fit.clipping
    assert effect.lower is not None
    assert effect.upper is not None
    assert effect.standard_errors is not None
    assert (effect.lower < 0.0).all()
    assert (effect.upper > 0.0).all()
    assert (np.abs(effect.lower) != effect.upper).all()
    np.testing.assert_allclose(
        effect.standard_errors * fit.standard_errors, np.maximum(-effect.lower, effect.upper), rtol=1e-9
    )
    assert effect.description in str(fit)


def test_the_largest_variance_is_that_of_the_best_mean() -> None:
    low, high = np.array([0.0, 2.0, -1.0, 3.5]), np.array([1.0, 3.0, 4.0, 3.9])
    box = np.array([-1.0, 0.0, -2.0, 1.0]), np.array([5.0, 4.0, 4.0, 4.0])
    means = np.linspace(low, high, 2_001)
    expected = ((box[1] - means) * (means - box[0])).max(axis=0)
    np.testing.assert_allclose(largest_variance(low, high, box), expected, rtol=1e-5)
