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
from dpmoments.analysis.confidence import UNCLEAR
from support.pictured_releases import release_of

mpl.use("Agg")
LINE = tuple[str, float, float, float, str]
"""Name, value, lower end, upper end, and a word for what is not clear."""


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


def limits(lines: Sequence[LINE], reference: float | None) -> tuple[float, float]:
    """The axis: clear values and their ends, others within three times these, and 8 % on each side."""
    clear = [end for _, *ends, note in lines if not note for end in ends if math.isfinite(end)]
    every = [end for _, *ends, _ in lines for end in ends if math.isfinite(end)]
    if clear:
        most = 3.0 * max(abs(end) for end in clear)
        every = [end for end in every if abs(end) <= most]
    every = every + ([] if reference is None else [reference])
    spread = (max(every) - min(every)) or abs(max(every)) or 1.0
    return min(every) - 0.08 * spread, max(every) + 0.08 * spread


def held_to(ax: Axes, lines: Sequence[LINE], reference: float | None, *, signed: bool = True) -> None:
    left, right = limits(lines, reference)
    assert ax.get_xlim() == pytest.approx((left, right), rel=1e-9)
    assert ax.get_ylim() == (len(lines) - 0.4, -0.6)
    assert [text.get_text() for text in ax.get_yticklabels()] == [line[0] for line in lines]
    words = {round(text.xy[1]): text.get_text() for text in ax.texts if getattr(text, "xy", (0, 0))[0] == 1.0}
    for row, (_, value, lower, upper, note) in enumerate(lines):
        assert words[row].endswith(note)
        low, high = (min(max(end if not math.isnan(end) else value, left), right) for end in (lower, upper))
        mark = "s" if value < 0.0 and signed else "o"
        dots, bars = series(ax, row, marker=mark), [each for each in series(ax, row) if len(each) == 2]
        np.testing.assert_allclose(bars, [[low, high]] if math.isfinite(low + high) else [], rtol=1e-9, atol=1e-12)
        assert dots == ([[pytest.approx(value)]] if left <= value <= right else [])
        arrows = {mark: series(ax, row, marker=mark) for mark in "<>"}
        assert arrows == {"<": [[left]] if lower < left else [], ">": [[right]] if upper > right else []}
        if math.isfinite(value + lower + upper):
            number, *interval = re.findall(r"[+−]?[\d,]*\.?\d+", words[row])[:3]
            for text, expected in zip((number, *interval), (value, lower, upper), strict=True):
                digits = len(text.partition(".")[2])
                printed = float(text.replace("−", "-").replace(",", ""))
                assert printed == pytest.approx(expected, abs=10.0**-digits if digits else abs(expected) * 0.05 + 1.0)
        for line in ax.lines:
            if line.get_marker() == mark and line.get_ydata()[0] == row:
                assert (line.get_markerfacecolor() == "white") == bool(note)


@cache
def wide_and_narrow() -> dpm.MomentRelease:
    """Two clear coefficients and two of columns that hardly vary, whose intervals leave the axes."""
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.uniform(-0.4, 0.4, (4_000, 2)), rng.normal(0.0, [0.02, 0.005], (4_000, 2))])
    table = np.column_stack([table, 0.3 * table[:, 0] - 0.2 * table[:, 1] + rng.normal(0, 0.02, 4_000)])
    return dpm.release(table, dpm.Schema.unit_ball(5), epsilon=1.0, mechanism="laplace", insecure_seed=4)


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("sort", ["fit", "size", "p"])
@pytest.mark.parametrize("per", ["deviation", "unit"])
@pytest.mark.parametrize("kind", ["moments", "few rows", "wide"])
def test_coefficients_are_drawn_as_they_are_printed(kind: str, per: str, sort: str) -> None:
    release = wide_and_narrow() if kind == "wide" else release_of(kind)
    target = release.feature_names[-1] if kind == "wide" else "income"
    fit, described = release.ols(target), release.describe()
    deviation = dict(zip(release.feature_names, np.asarray(described.standard_deviation).tolist(), strict=True))
    lines, sizes, p_values = [], [], []
    notes = zip(fit.verdict[1:], fit.holds_among_all[1:], strict=True)
    for name, each, (word, holds) in zip(fit.features, fit.estimates[1:], notes, strict=True):
        factor = deviation[name] if per == "deviation" else 1.0
        factor = factor if factor > 0.0 else math.nan
        numbers = [number * factor for number in (each.value, each.lower, each.upper)]
        lines.append((name, *numbers, "" if holds else word if word in UNCLEAR else "clear only by itself"))
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
    assert len(lines) == 2 or f"The 2 clearest of {len(lines)}" in fewer.texts[-1].get_text().replace("\n", " ")


@pytest.mark.parametrize("method", ["ridge", "lasso"])
def test_penalized_coefficients_are_dots_without_bars(method: Any) -> None:
    release = release_of("moments")
    fit = getattr(release, method)("income")
    deviation = release.describe().to_pandas()["standard_deviation"]
    ax = release.plot.coefficients("income", method=method, ax=Figure().subplots())
    lines = [
        (name, value * deviation[name], math.nan, math.nan, "")
        for name, value in zip(fit.features, fit.coefficients, strict=True)
    ]
    held_to(ax, lines, 0.0)


@pytest.mark.parametrize("sort", ["schema", "mean", "rows"])
@pytest.mark.parametrize("kind", ["moments", "few rows"])
def test_groups_are_drawn_as_they_are_printed(kind: str, sort: str) -> None:
    release = release_of(kind)
    means, described = release.group_means("region", ["income"]), release.describe()["income"]
    numbers = zip(means.groups, *(part[0].tolist() for part in (means.mean, means.lower, means.upper)), strict=True)
    every = [(name.removeprefix("region="), *ends, "") for name, *ends in numbers]
    by = {
        "mean": [-line[1] if math.isfinite(line[1]) else math.inf for line in every],
        "rows": (-means.counts).tolist(),
    }
    order = np.argsort(by.get(sort, [0] * len(every)), kind="stable")
    spread = max(described.standard_deviation[0], described.standard_deviation_noise[0])
    lines = [every[int(index)] for index in order]
    lines = [line for line in lines if math.isfinite(line[1]) and line[3] - line[2] <= spread]
    ax = release.plot.groups("region", "income", sort=sort, ax=Figure().subplots())
    held_to(ax, lines, float(described.mean[0]), signed=False)


# Relations ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["moments", "few rows"])
def test_relations_are_drawn_as_they_are_printed(kind: str) -> None:
    release = release_of(kind)
    answer = release.correlations()
    columns = [*dict.fromkeys(answer.columns_of_features)]
    of = np.array(answer.columns_of_features)
    ax = release.plot.correlation(ax=Figure().subplots())
    expected = {}
    for y, later in enumerate(columns):
        for x, earlier in enumerate(columns[:y]):
            block = np.ix_(of == later, of == earlier)
            clear = answer.correlation[block][answer.holds_among_all[block]]
            if len(clear):
                expected[x, y] = float(max(clear, key=abs))
    drawn = {
        tuple(round(place) for place in text.get_position()): float(text.get_text().replace("−", "-"))
        for text in ax.texts
        if text.get_transform() == ax.transData and text.get_color() == "white"
    }
    assert drawn == pytest.approx(expected, abs=0.0051)
    squares = [patch for patch in ax.patches if patch.get_gid() in ("together", "opposite")]
    sizes = {
        tuple(round(float(place)) for place in box.mean(axis=0)): float(np.ptp(box[:, 0]))
        for box in (patch.get_extents().transformed(ax.transData.inverted()).get_points() for patch in squares)
    }
    assert sizes == pytest.approx({cell: 0.22 + 0.7 * abs(value) ** 0.5 for cell, value in expected.items()})
    assert [text.get_text() for text in ax.get_yticklabels()] == ["", *columns[1:]]


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


@pytest.mark.slow
def test_a_forecast_is_drawn_for_every_budget() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in "abc"), dpm.Boolean("d"), dpm.Boolean("e"))
    forecast = dpm.forecast(schema, n_rows=300, epsilon=0.5)
    ax = forecast.plot(ax=Figure().subplots())
    budgets = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0]
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"ε = {budget:.3g}" for budget in budgets]
    sizes = [dpm.forecast(schema, n_rows=300, epsilon=budget).noise.smallest_between for budget in budgets]
    solid = {line.get_label(): line.get_ydata() for line in ax.lines if line.get_linestyle() == "-"}
    assert {*solid} == {f"between {kind}" for kind in sizes[0]} == {"between numbers", "between yes/no values"}
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert any(np.isinf(size) for of in sizes for size in of.values())
    for (kind, drawn), none in zip(solid.items(), hollow, strict=True):
        expected = np.array([of[kind.removeprefix("between ")] for of in sizes])
        np.testing.assert_allclose(drawn, np.where(np.isinf(expected), np.nan, expected), rtol=1e-6)
        assert none.get_xdata().tolist() == np.flatnonzero(np.isinf(expected)).tolist()
        assert set(none.get_ydata()) <= {ax.get_ylim()[1]}
    (own,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert set(own.get_xdata()) == {2}
    assert ax.get_title(loc="left").replace("\n", " ") == forecast.clear
