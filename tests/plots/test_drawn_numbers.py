"""What pictures of steps and of forecasts draw, held to the numbers of the API."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import dpmoments as dpm
from support.pictured_releases import release_of

mpl.use("Agg")


def test_the_noise_of_steps_is_drawn_beside_their_widths() -> None:
    release = release_of("mean")
    steps = release.diagnostics["steps"]
    ax = release.plot.steps(ax=Figure().subplots())
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
