"""Plot of the steps by which a mechanism located the rows."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.analysis.released import Release
from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import finite_numbers, is_finite_number
from dpmoments.plots.canvas import CERTAIN, PRIVACY, SMALL_TEXT, TEXT_SIZE, axes_of, entitle, literal_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_STEPS = 1000
_LOGARITHMIC_BELOW = 0.05
_MAX_NAMED = 8


def draw_steps(release: Release, ax: Axes | None = None) -> Axes:
    """Plot half-widths of the region of each step along every feature, relative to the first."""
    if release.mechanism == "pooled":
        raise InputValueError(
            "cannot plot steps: a pooled release was made by several runs. Plot those of one: release.parts[0].plot.steps()"
        )
    if "steps" not in release.diagnostics:
        raise InputValueError(
            f"cannot plot steps: {release.mechanism} has only one step. Mechanisms with steps are coinpress and "
            "private-preconditioning, and of means coinpress and variance-aware"
        )
    widths: FloatArray | None = None
    with suppress(TypeError, KeyError, ValueError, OverflowError, np.linalg.LinAlgError):
        widths, relative_noise = _recorded(release, list(release.diagnostics["steps"]))
    if widths is None:  # a release file is untrusted: what its entries hold instead does not matter
        raise InputValueError(
            "cannot plot steps: the diagnostics contain impossible steps, so the file was changed after the release"
        )
    n, grow, of_mean = len(widths), ax is None, "mean_radius" in release.diagnostics["steps"][0]
    ax = axes_of(ax, min(max(5.6, 2.5 + 0.6 * n), 10.0), 4.2)
    sizes, positions = widths / widths[0], np.arange(1, n + 1)
    middle = np.median(sizes, axis=1)
    spread = sizes.min(axis=1), sizes.max(axis=1)
    if not np.allclose(*spread, rtol=1e-3):
        ax.fill_between(positions, *spread, color=CERTAIN, alpha=0.2, linewidth=0.0, label="range over features")
    ax.plot(positions, middle, "o-", color=CERTAIN, label="half-width of the region (median feature)")
    noise = middle * relative_noise
    if np.isfinite(noise).any():
        of_noise = "noise on the mean" if of_mean else "standard deviations that noise hides"
        ax.plot(positions, noise, "s--", color=PRIVACY, markerfacecolor="white", label=of_noise)
    if min(middle.min(), np.nanmin(noise, initial=1.0)) < _LOGARITHMIC_BELOW:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, 1.08 * float(sizes.max()))
    named = positions[:: -max(1, -(-n // _MAX_NAMED))][::-1]
    names = [*map(str, named[:-1]), f"{n} (last)"]
    ax.set_xticks(named, names, fontsize=SMALL_TEXT, **literal_text())
    ax.set_xlim(0.7, n + 0.3)
    ax.tick_params(axis="y", labelsize=SMALL_TEXT)
    ax.set_xlabel("step", fontsize=TEXT_SIZE)
    ax.set_ylabel("width relative to the first region", fontsize=TEXT_SIZE)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize=SMALL_TEXT)
    title = f"after {n} steps the region is {middle[-1]:.2g} × as wide as at first" if n > 1 else "one region"
    what = "region known to contain the mean" if of_mean else "rows outside were clipped to it"
    entitle(ax, f"{release.mechanism}: {title}", what, grow=grow)
    return ax


def _recorded(release: Release, steps: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Return half-widths, shape (steps, d), in each feature's units, and their relative noise."""
    # A step's region holds the encoded rows with ‖linear·(x − center)‖ ≤ radius; units cancel in ratios to the first.
    d = len(release.feature_names)
    if not 0 < len(steps) <= _MAX_STEPS:
        raise ValueError
    widths, noise = np.empty((len(steps), d)), np.full(len(steps), math.nan)
    for index, step in enumerate(steps):
        if "scales" in step:
            linear = np.diag(1.0 / finite_numbers(step["scales"], d, "scales"))
        else:
            rows = step.get("linear", release.diagnostics.get("linear", ()))
            linear = np.array([finite_numbers(row, d, "linear") for row in rows]).reshape(d, d)
        of_mean = "mean_radius" in steps[0]
        radius = _positive(step["mean_radius" if of_mean else "radius"])
        widths[index] = np.linalg.norm(np.linalg.inv(linear), axis=1) * radius
        if "noise_scale" in step:  # of a mean the noise is of the length of rows, of a covariance of its square
            scale = _positive(step["noise_scale"])
            noise[index] = (scale if of_mean else math.sqrt(scale)) / radius
    if not (np.isfinite(widths).all() and (widths > 0.0).all()):
        raise ValueError
    return widths, noise


def _positive(value: object) -> float:
    if not is_finite_number(value) or not float(value) > 0.0:
        raise ValueError
    return float(value)
