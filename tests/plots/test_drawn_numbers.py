"""What pictures draw, held to plain functions of the answers: places of marks, ends of bars, texts of cells, order, hatching."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpmoments as dpm
from dpmoments.analysis.resolvability import UNCLEAR
from support.pictured_releases import release_of

mpl.use("Agg")
LINE = tuple[str, float, float, float, float, str]
"""Name, value, lower end, upper end, half-width due to privacy, and a word for what is not clear."""


def drawn(picture: Any) -> Axes:
    return picture(ax=Figure().subplots())


def series(ax: Axes, row: int, **has: Any) -> list[list[float]]:
    """The x of every line that lies in a row and has these properties, in order of drawing."""
    lines = [line for line in ax.lines if len(line.get_ydata()) and set(line.get_ydata()) == {row}]
    return [
        [float(x) for x in line.get_xdata()]
        for line in lines
        if all(getattr(line, f"get_{name}")() == value for name, value in has.items())
    ]


# Intervals ---------------------------------------------------------------------------------------------------------------


def limits(lines: Sequence[LINE], about: float | None) -> tuple[float, float]:
    """The axis: clear values and their ends, unclear values within three times these, and 15 % on each side."""
    clear = [end for _, *ends, _, word in lines if not word for end in ends if math.isfinite(end)]
    kept = clear or [end for _, *ends, _, _ in lines for end in ends if math.isfinite(end)]
    if clear:
        most = 3.0 * max(abs(end) for end in clear)
        kept = kept + [line[1] for line in lines if line[5] and math.isfinite(line[1]) and abs(line[1]) <= most]
    kept = kept + ([] if about is None else [about])
    spread = (max(kept) - min(kept)) or abs(max(kept)) or 1.0
    return min(kept) - 0.15 * spread, max(kept) + 0.15 * spread


def held_to(ax: Axes, lines: Sequence[LINE], about: float | None) -> None:
    left, right = limits(lines, about)
    assert ax.get_xlim() == pytest.approx((left, right), rel=1e-9)
    assert ax.get_ylim() == (len(lines) - 0.4, -0.6)
    assert [text.get_text() for text in ax.get_yticklabels()] == [line[0] for line in lines]
    bands = {round(patch.get_y() + patch.get_height() / 2.0): patch for patch in ax.patches}
    words = {round(text.xy[1]): text.get_text() for text in ax.texts if getattr(text, "xy", (0, 0))[0] == 1.0}
    short = {"not clear (noise)": "noise", "not clear (too few rows)": "few rows"}
    short |= {"not estimable at this budget": "not estimable"}
    for row, (_, value, lower, upper, privacy, word) in enumerate(lines):
        assert words.get(row, "") == short.get(word, word)
        low, high = (min(max(end if not math.isnan(end) else value, left), right) for end in (lower, upper))
        dots, bars = series(ax, row, marker="o"), [each for each in series(ax, row) if len(each) == 2]
        if math.isnan(value):
            assert not dots
            assert not bars
            assert (row in bands) == math.isfinite(low + high)
            if row in bands:
                assert bands[row].get_hatch()
                assert (bands[row].get_x(), bands[row].get_width()) == pytest.approx((low, high - low))
            continue
        assert row not in bands
        inside = [np.clip(value + side * privacy, max(low, left), min(high, right)) for side in (-1.0, 1.0)]
        expected = [[low, high], *([inside] if math.isfinite(privacy) else [])]
        np.testing.assert_allclose(bars, expected, rtol=1e-9, atol=1e-12)
        assert dots == ([[pytest.approx(value)]] if left <= value <= right else [])
        arrows = {mark: series(ax, row, marker=mark) for mark in "<>"}
        assert arrows == {"<": [[left]] if lower < left else [], ">": [[right]] if upper > right else []}
        for line in ax.lines:
            if line.get_marker() == "o" and line.get_ydata()[0] == row:
                assert (line.get_markerfacecolor() == "white") == bool(word)


@cache
def wide_and_narrow() -> dpm.MomentRelease:
    """Two clear coefficients and two of columns that hardly vary, whose intervals leave the axes."""
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.uniform(-0.4, 0.4, (4_000, 2)), rng.normal(0.0, [0.02, 0.005], (4_000, 2))])
    table = np.column_stack([table, 0.3 * table[:, 0] - 0.2 * table[:, 1] + rng.normal(0, 0.02, 4_000)])
    return dpm.release(table, dpm.Schema.unit_ball(5), epsilon=1.0, mechanism="laplace", insecure_seed=4)


@pytest.mark.parametrize("sort", ["fit", "size", "p"])
@pytest.mark.parametrize("per", ["deviation", "unit"])
@pytest.mark.parametrize("kind", ["moments", "few rows", "wide"])
def test_coefficients_are_drawn_as_they_are_printed(kind: str, per: str, sort: str) -> None:
    release = wide_and_narrow() if kind == "wide" else release_of(kind)
    target = release.feature_names[-1] if kind == "wide" else "income"
    fit, described = release.ols(target), release.describe()
    deviation = dict(zip(release.feature_names, np.asarray(described.standard_deviation).tolist(), strict=True))
    lines, sizes, p_values = [], [], []
    for name, each, word in zip(fit.features, fit.estimates[1:], fit.verdict[1:], strict=True):
        factor = deviation[name] if per == "deviation" else 1.0
        factor = factor if factor > 0.0 else math.nan
        half = (each.upper - each.lower) / 2.0
        privacy = half * each.privacy / each.standard_error if math.isfinite(half) else math.nan
        numbers = [number * factor for number in (each.value, each.lower, each.upper, privacy)]
        lines.append((name, *numbers, word if word in UNCLEAR else ""))
        sizes.append(-abs(numbers[0]) if math.isfinite(numbers[0]) else 0.0)
        p_values.append(each.p_value if math.isfinite(each.p_value) else 2.0)
    order = {"fit": range(len(lines)), "size": np.argsort(sizes, kind="stable")}.get(
        sort, np.argsort(p_values, kind="stable")
    )
    if sort == "size":
        clearest = np.argsort(p_values, kind="stable")
        order = clearest[np.argsort(np.array(sizes)[clearest], kind="stable")]
    ax = release.plot.coefficients(target, method="ols", per=per, sort=sort, ax=Figure().subplots())
    held_to(ax, [lines[int(index)] for index in order], 0.0)
    (zero,) = [line for line in ax.lines if list(line.get_xdata()) == [0.0, 0.0] and list(line.get_ydata()) == [0, 1]]
    assert zero
    title = ax.get_title(loc="left").replace("\n", " ")
    assert target in title
    assert fit.r_squared_text in title
    fewer = release.plot.coefficients(target, method="ols", per=per, n_coefficients=2, ax=Figure().subplots())
    kept = sorted(int(index) for index in np.argsort(p_values, kind="stable")[:2])
    assert [text.get_text() for text in fewer.get_yticklabels()] == [lines[index][0] for index in kept]
    assert len(lines) == 2 or f"the 2 clearest of {len(lines)}" in fewer.texts[-1].get_text().replace("\n", " ")


@pytest.mark.parametrize("method", ["ridge", "lasso"])
def test_penalized_coefficients_are_dots_without_bars(method: Any) -> None:
    release = release_of("moments")
    fit = getattr(release, method)("income")
    deviation = release.describe().to_pandas()["standard_deviation"]
    ax = release.plot.coefficients("income", method=method, ax=Figure().subplots())
    lines = [
        (name, value * deviation[name], *[math.nan] * 3, "")
        for name, value in zip(fit.features, fit.coefficients, strict=True)
    ]
    words = [word if word in UNCLEAR else "" for word in fit.verdict[1:]]
    held_to(ax, [(*line[:5], word) for line, word in zip(lines, words, strict=True)], 0.0)


@pytest.mark.parametrize("sort", ["schema", "mean", "rows"])
@pytest.mark.parametrize("kind", ["moments", "few rows"])
def test_groups_are_drawn_as_they_are_printed(kind: str, sort: str) -> None:
    release = release_of(kind)
    means = release.group_means("region", ["income"])
    lines = []
    for index, group in enumerate(means.groups):
        lower, upper = float(means.lower[0, index]), float(means.upper[0, index])
        parts = float(means.privacy_noise[0, index]), float(means.sampling_noise[0, index])
        noise = f" ± {means.count_noise[index]:,.0f}"
        name = f"{group.removeprefix('region=')}  ({means.counts[index]:,.0f}{noise})"
        half = (upper - lower) / 2.0 * parts[0] / math.hypot(*parts)
        lost = "lost in noise" if means.lost[index] else ""
        lines.append((name, float(means.mean[0, index]), lower, upper, half, lost))
    by = {
        "mean": [-line[1] if math.isfinite(line[1]) else math.inf for line in lines],
        "rows": (-means.counts).tolist(),
    }
    order = np.argsort(by.get(sort, [0] * len(lines)), kind="stable")
    ax = release.plot.groups("region", "income", sort=sort, ax=Figure().subplots())
    held_to(ax, [lines[int(index)] for index in order], None)


# Cells -------------------------------------------------------------------------------------------------------------------


def texts_of_cells(ax: Axes) -> dict[tuple[int, int], str]:
    found = [text for text in ax.texts if text.get_transform() == ax.transData]
    return {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in found}


def separators(ax: Axes) -> set[float]:
    """Places of lines across the whole matrix, the same in both directions."""
    across = {float(line.get_ydata()[0]) for line in ax.lines if list(line.get_xdata()) == [0, 1]}
    down = {float(line.get_xdata()[0]) for line in ax.lines if list(line.get_ydata()) == [0, 1]}
    assert across == down
    return across


def between_columns(release: dpm.MomentRelease) -> set[float]:
    ends = np.cumsum([len(column.feature_names) for column in release.schema.columns])[:-1]
    return {float(end) - 0.5 for end in ends}


def on_color_bar(ax: Axes) -> list[float]:
    (bar,) = [each for each in ax.get_figure(root=True).axes if each is not ax]
    return sorted({float(line.get_ydata()[0]) for line in bar.lines if len(set(line.get_ydata())) == 1})


@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("kind", ["moments", "few rows"])
def test_correlations_are_drawn_as_they_are_printed(kind: str, triangle: bool) -> None:
    release = release_of(kind)
    answer = release.correlations()
    d = len(answer.feature_names)
    assert d <= 12
    ax = release.plot.correlation(triangle=triangle, ax=Figure().subplots())
    half, off = (answer.upper - answer.lower) / 2.0, ~np.eye(d, dtype=bool)
    shown = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
    expected = np.where(off, answer.correlation, 1.0)
    np.testing.assert_allclose(shown, np.where(np.triu(np.ones((d, d), dtype=bool)) & triangle, np.nan, expected))
    assert (ax.images[0].norm.vmin, ax.images[0].norm.vmax) == (-1.0, 1.0)
    written = {}
    for i in range(d):
        for j in range(i if triangle else d):
            value = f"{round(answer.correlation[i, j], 2) + 0.0:.2f}" if np.isfinite(answer.correlation[i, j]) else "–"
            written[i, j] = value if i == j else f"{value}\n±{round(half[i, j], 2):.2f}"
    assert texts_of_cells(ax) == written
    assert separators(ax) == between_columns(release)
    typical = float(np.median(half[off & np.isfinite(answer.privacy_noise)])) if kind == "moments" else None
    if typical is not None:
        np.testing.assert_allclose(on_color_bar(ax), [-typical, typical])
    names = list(answer.feature_names)
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    assert [text.get_text() for text in ax.get_xticklabels()] == names
    assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == list(range(d))


def test_covariances_are_drawn_in_units_of_half_ranges() -> None:
    release = release_of("moments")
    d, unit = len(release.feature_names), np.diff(np.array(release.schema.feature_bounds), axis=0)[0] / 2.0
    levels = [
        name for column in release.schema.columns for name in getattr(column, "levels", ()) and column.feature_names
    ]
    unit[np.isin(release.feature_names, levels)] = 1.0
    covariance = release.covariance_frame().to_numpy()
    ax = drawn(release.plot.covariance)
    np.testing.assert_allclose(ax.images[0].get_array(), covariance / np.outer(unit, unit), atol=1e-15)
    norm, (low, high) = ax.images[0].norm, on_color_bar(ax)
    assert low == -high
    assert norm.linthresh == pytest.approx(high)
    assert (norm.vmin, norm.vmax) == pytest.approx(np.abs(covariance / np.outer(unit, unit)).max() * np.array([-1, 1]))
    texts = texts_of_cells(ax)
    assert set(texts) == {(i, j) for i in range(d) for j in range(d)}
    deviation_noise = np.asarray(release.describe().standard_deviation_noise)
    deviations = np.asarray(release.describe().standard_deviation)
    for (i, j), text in texts.items():
        value, noise = text.split("\n")
        assert float(value) == pytest.approx(covariance[i, j], rel=6e-3, abs=2e-9 * float(noise[1:]))
        if i == j and not math.isnan(deviation_noise[i]):  # Var = sd², to first order
            assert float(noise[1:]) == pytest.approx(2.0 * deviations[i] * deviation_noise[i], rel=0.02)
    assert separators(ax) == between_columns(release)
    (bar,) = [each for each in ax.get_figure(root=True).axes if each is not ax]
    ticks = [float(tick) for tick in bar.get_yticks()]
    assert 0.0 in ticks
    assert ticks == [-tick for tick in reversed(ticks)]
    above = [tick for tick in ticks if tick > 0.0]
    assert all(2.0 * norm.linthresh <= tick <= norm.vmax for tick in above)
    assert all(math.isclose(math.log10(tick), round(math.log10(tick)), abs_tol=1e-9) for tick in above)
    assert len(above) <= 4
    assert not above or above[-1] > norm.vmax / 10.0


def test_components_are_drawn_as_they_are_printed() -> None:
    release = release_of("moments")
    answer = release.pca(3, scaling="bounds")
    ax = release.plot.components(3, n_features=4, ax=Figure().subplots())
    looked_at = answer.components[~answer.is_noise] if not answer.is_noise.all() else answer.components
    most = sorted(np.argsort(-np.abs(looked_at).max(axis=0), kind="stable")[:4].tolist())
    loadings = answer.components[:, most].T
    np.testing.assert_allclose(ax.images[0].get_array(), loadings)
    largest = np.abs(loadings).max()
    assert (ax.images[0].norm.vmin, ax.images[0].norm.vmax) == (-largest, largest)
    texts = texts_of_cells(ax)
    assert texts == {(i, j): f"{round(loadings[i, j], 2) + 0.0:+.2f}" for i in range(4) for j in range(3)}
    shares = [
        "noise" if noise else f"{share:.0%}"
        for noise, share in zip(answer.is_noise, answer.explained_variance_ratio, strict=True)
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"{k}\n{word}" for k, word in enumerate(shares, 1)]
    assert [text.get_text() for text in ax.get_yticklabels()] == [answer.feature_names[index] for index in most]
    assert len(release.plot.components(ax=Figure().subplots()).get_xticks()) == min(5, len(answer.feature_names))


def test_the_bars_of_a_spectrum_are_its_intervals() -> None:
    release = release_of("moments")
    answer = release.pca(scaling="bounds")
    ax = drawn(release.plot.spectrum)
    k, least = len(answer.explained_variance), ax.get_ylim()[0] / 0.8
    assert ax.get_xlim() == (0.5, k + 0.5)
    assert ax.get_yscale() == "log"
    (bars,) = ax.containers
    ends = np.maximum(answer.conf_int()[~answer.is_noise], least)
    found = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(found, ends, rtol=1e-6)
    np.testing.assert_allclose(bars.lines[0].get_ydata(), answer.explained_variance[~answer.is_noise], rtol=1e-9)
    beyond = [line for line in ax.lines if line.get_marker() == "v"]
    compared = np.minimum(answer.explained_variance, answer.noisy_variance)
    below = np.where(answer.is_noise, compared, answer.explained_variance) < least
    assert [line.get_xdata().tolist() for line in beyond] == (
        [(1 + np.flatnonzero(below)).tolist()] if below.any() else []
    )
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    np.testing.assert_allclose(hollow.get_ydata(), np.maximum(compared[answer.is_noise], least))
    (floor,) = [patch for patch in ax.patches if "noise floor" in str(patch.get_label())]
    assert floor.get_data().edges.tolist() == (np.arange(k + 1) + 0.5).tolist()


# Steps -------------------------------------------------------------------------------------------------------------------


def test_the_noise_of_steps_is_drawn_beside_their_widths() -> None:
    release = release_of("mean")
    steps = release.diagnostics["steps"]
    ax = drawn(release.plot.steps)
    (middle,) = [line for line in ax.lines if line.get_marker() == "o"]
    (noise,) = [line for line in ax.lines if line.get_marker() == "s"]
    widths = np.array([step["mean_radius"] for step in steps]) / steps[0]["mean_radius"]
    np.testing.assert_allclose(middle.get_ydata(), widths)
    expected = [w * step["noise_scale"] / step["mean_radius"] for w, step in zip(widths, steps, strict=True)]
    np.testing.assert_allclose(noise.get_ydata(), expected)
    assert middle.get_xdata().tolist() == noise.get_xdata().tolist() == [1, 2, 3]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3 (last)"]
    assert ax.get_xlim() == (0.7, 3.3)
    assert ax.get_yscale() == ("log" if min(widths.min(), *expected) < 0.05 else "linear")
    title = ax.get_title(loc="left").replace("\n", " ")
    assert f"after 3 steps the region is {widths[-1]:.2g} × as wide" in title


# Forecasts ---------------------------------------------------------------------------------------------------------------


def test_the_noisiest_columns_of_a_forecast_are_drawn_in_the_order_of_the_schema() -> None:
    columns = [dpm.Numeric(f"n{index}", 0, 10.0**index) for index in range(4)]
    schema = dpm.Schema(*columns, dpm.Boolean("flag"), dpm.Categorical("level", ["a", "b", "c"]))
    typical = {"n0": 0.02, "n1": 3.0, "n2": 1.0, "n3": 300.0}
    forecast = dpm.forecast(schema, n_rows=8_000, epsilon=1.0, mechanism="matrix-laplace", typical_sd=typical)
    noise = forecast.noise
    deviations = noise.typical.standard_deviations
    relative = np.array(
        [noise.mean / deviations, np.where(noise.typical.shares, np.nan, noise.standard_deviation / deviations)]
    )
    kept = sorted(np.argsort(-np.nanmax(relative, axis=0), kind="stable")[:4].tolist())
    ax = forecast.plot(n_features=4, ax=Figure().subplots())
    assert [text.get_text() for text in ax.get_yticklabels()] == [schema.feature_names[index] for index in kept]
    assert ax.get_ylim() == (4 - 0.4, -0.6)
    for mark, values in zip("oD", relative, strict=True):
        points = [point for line in ax.lines if line.get_marker() == mark for point in line.get_xydata().tolist()]
        expected = [[values[index], row] for row, index in enumerate(kept) if np.isfinite(values[index])]
        np.testing.assert_allclose(sorted(points), sorted(expected))
    shown = relative[:, kept][np.isfinite(relative[:, kept])]
    assert ax.get_xlim() == pytest.approx((shown.min() / 2.0, max(2.0 * shown.max(), 2.0)))
    for text, index in zip(ax.texts, kept, strict=False):
        assert text.get_text().startswith("noise" if noise.description.mean_is_noise[index] else "± ")
        known = text.get_text().rpartition("(")[2].rstrip(")")
        assert known.startswith("~") == bool(noise.typical.assumed[index])
        assert float(known.lstrip("~").replace(",", "")) == pytest.approx(deviations[index], rel=6e-3)
        if not noise.description.mean_is_noise[index]:
            of_mean = re.match(r"± ([\d.]+(?:,\d{3})*)", text.get_text())
            assert of_mean
            assert float(of_mean[1].replace(",", "")) == pytest.approx(noise.mean[index], rel=0.06)


def test_a_forecast_against_the_budget_is_that_of_every_budget() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in "abc"))
    forecast = dpm.forecast(schema, n_rows=2_000, epsilon=1.0)
    ax = forecast.plot("budget", ax=Figure().subplots())
    lines = [line for line in ax.lines if len(line.get_xdata()) == 7 and line.get_marker() == "None"]
    budgets = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    names = [
        line.get_label() for line in ax.lines if line.get_marker() == "o" and not str(line.get_label()).startswith("_")
    ]
    assert names[0] == "auto"
    for line, name in zip(lines, names, strict=False):
        assert line.get_xdata().tolist() == budgets
        for budget, value in list(zip(budgets, line.get_ydata().tolist(), strict=True))[::3]:
            again = dpm.forecast(schema, n_rows=2_000, epsilon=budget, mechanism=name).noise
            assert value == pytest.approx(min(1.0, again.typical_correlation()), rel=1e-6)
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"{budget:.3g}" for budget in budgets]
    (own,) = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert set(own.get_xdata()) == {1.0}
