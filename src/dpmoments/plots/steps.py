"""Plot of the steps by which a mechanism located the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.analysis.released import Release, named_features
from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import finite_numbers, is_finite_number
from dpmoments.plots.canvas import (
    CERTAIN,
    NOISE_COLOR,
    PRIVACY,
    SECONDARY,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    label,
    literal_text,
)
from dpmoments.schema.encoding import Encoding

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Where each step of a mechanism looked for the rows, or for their mean, as its diagnostics say.

_MAX_STEPS = 1000


@dataclass(frozen=True, eq=False)
class _Region:
    """Ellipsoid {x : (x − center)ᵀ shape⁻¹ (x − center) ≤ 1}, in original units.

    ``noise`` is the noise of the step relative to the half-widths, or NaN.
    """

    center: FloatArray
    shape: FloatArray
    noise: float

    @property
    def half_widths(self) -> FloatArray:
        return np.sqrt(np.diag(self.shape))

    @classmethod
    def of(cls, center: FloatArray, linear: FloatArray, radius: float, noise: float, encoding: Encoding) -> _Region:
        """Make the region of encoded rows with ‖linear·(x − center)‖ ≤ radius."""
        back = np.linalg.inv(linear) * encoding.scale[:, None] * radius
        shape = back @ back.T
        if not (np.isfinite(shape).all() and (np.diag(shape) > 0.0).all()):
            raise ValueError
        return cls(encoding.decode_mean(center), shape, noise)


@dataclass(frozen=True, eq=False)
class _Steps:
    regions: tuple[_Region, ...]
    what: str
    of_noise: str
    names: tuple[str, ...]


def _steps_of(release: Release) -> _Steps:
    if "steps" not in release.diagnostics:
        refused = f"cannot plot steps: {release.mechanism} has only one step. Mechanisms with steps are coinpress and "
        if release.mechanism == "pooled":
            raise InputValueError(
                "cannot plot steps: a pooled release was made by several runs. Plot those of one: "
                "release.parts[0].plot.steps()"
            )
        raise InputValueError(f"{refused}private-preconditioning, and of means coinpress and variance-aware")
    with suppress(TypeError, KeyError, ValueError, OverflowError, np.linalg.LinAlgError):
        return _recorded(release, list(release.diagnostics["steps"]))
    raise InputValueError(  # a release file is untrusted: what its entries hold instead does not matter
        "cannot plot steps: the diagnostics contain impossible steps, so the file was changed after the release"
    )


def _recorded(release: Release, steps: list[Any]) -> _Steps:
    d, encoding = len(release.feature_names), release.schema.encoding(mean=bool(steps) and "center" in steps[0])
    if not 0 < len(steps) <= _MAX_STEPS:
        raise ValueError
    of_mean = "mean_radius" in steps[0]
    regions = []
    for step in steps:
        center = finite_numbers(step["center"], d, "center") if "center" in step else np.zeros(d)
        if "scales" in step:
            linear = np.diag(1.0 / finite_numbers(step["scales"], d, "scales"))
        else:
            rows = step.get("linear", release.diagnostics.get("linear", ()))
            linear = np.array([finite_numbers(row, d, "linear") for row in rows]).reshape(d, d)
        radius = _positive(step["mean_radius" if of_mean else "radius"])
        scale = _positive(step["noise_scale"]) if "noise_scale" in step else math.nan
        # of a mean the noise is of the length of rows, of a covariance of its square
        noise = scale / radius if of_mean else math.sqrt(scale) / radius
        regions.append(_Region.of(center, linear, radius, noise, encoding))
    return _Steps(
        tuple(regions),
        "region known to contain the mean" if of_mean else "rows outside were clipped to it",
        "noise on the mean" if of_mean else "standard deviations that noise hides",
        (*map(str, range(1, len(steps))), f"{len(steps)} (last)"),
    )


def _positive(value: object) -> float:
    if not is_finite_number(value) or not float(value) > 0.0:  # type: ignore[arg-type]
        raise ValueError
    return float(value)  # type: ignore[arg-type]


_ZOOMED_BELOW = 0.15
"""Relative size of the last region below which it has an inset."""
_OUTLINE = 181
_FIRST_NAME, _NEXT_NAME = 30, 25
_LOGARITHMIC_BELOW = 0.05
_MAX_NAMED = 8


def draw_steps(
    release: Release, features: Sequence[str] | None, mean: FloatArray | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the regions: their sizes in all features, or their outlines in the plane of two."""
    steps = _steps_of(release)
    names = release.feature_names
    if features is None:
        chosen = [0, 1] if len(names) == 2 else []
    else:
        chosen = named_features(release, features, word="features")
        if len(chosen) != 2:
            raise InputValueError(
                f"features= must name two features, in whose plane regions are drawn, got {len(chosen)}: name two, "
                "or none to plot the size in all of them"
            )
    grow, n = ax is None, len(steps.regions)
    ax, size = _draw_regions(release, steps, chosen, mean, ax) if chosen else _draw_sizes(steps, ax)
    title = f"after {n} steps the region is {size:.2g} × as wide as at first" if n > 1 else "one region"
    entitle(ax, f"{release.mechanism}: {title}", steps.what, grow=grow)
    return ax


def _draw_sizes(steps: _Steps, ax: Axes | None) -> tuple[Axes, float]:
    """Plot half-widths along every feature, relative to the first step's; return the last."""
    ax = axes_of(ax, min(max(5.6, 2.5 + 0.6 * len(steps.regions)), 10.0), 4.2)
    widths = np.array([region.half_widths for region in steps.regions])
    sizes, positions = widths / widths[0], np.arange(1, len(widths) + 1)
    middle = np.median(sizes, axis=1)
    spread = sizes.min(axis=1), sizes.max(axis=1)
    if not np.allclose(*spread, rtol=1e-3):
        ax.fill_between(positions, *spread, color=CERTAIN, alpha=0.2, linewidth=0.0, label="range over features")
    ax.plot(positions, middle, "o-", color=CERTAIN, label="half-width of the region (median feature)")
    noise = middle * np.array([region.noise for region in steps.regions])
    if np.isfinite(noise).any():
        ax.plot(positions, noise, "s--", color=PRIVACY, markerfacecolor="white", label=steps.of_noise)
    if min(middle.min(), np.nanmin(noise, initial=1.0)) < _LOGARITHMIC_BELOW:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, 1.08 * float(sizes.max()))
    every = max(1, -(-len(positions) // _MAX_NAMED))
    ax.set_xticks(positions[::-every][::-1])
    ax.set_xticklabels(
        [steps.names[index - 1] for index in positions[::-every][::-1]], fontsize=SMALL_TEXT, **literal_text()
    )
    ax.set_xlim(0.7, len(positions) + 0.3)
    ax.tick_params(axis="y", labelsize=SMALL_TEXT)
    ax.set_xlabel("step", fontsize=TEXT_SIZE)
    ax.set_ylabel("width relative to the first region", fontsize=TEXT_SIZE)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize=SMALL_TEXT)
    return ax, float(middle[-1])


def _draw_regions(
    release: Release, steps: _Steps, chosen: Sequence[int], mean: FloatArray | None, ax: Axes | None
) -> tuple[Axes, float]:
    """Plot outlines of the regions in the plane of two features; return the last width."""
    ax = axes_of(ax, 7.2, 5.0)
    outlines = [
        _outline(region.shape[np.ix_(chosen, chosen)]) + region.center[list(chosen)] for region in steps.regions
    ]
    _draw_outlines(ax, outlines, steps)
    names = [label(release.feature_names[index]) for index in chosen]
    first, second = release.schema.encoding(mean=True).scale[list(chosen)]
    if first == second:
        ax.set_aspect("equal")
    ax.set_xlabel(names[0], fontsize=TEXT_SIZE, **literal_text())
    ax.set_ylabel(names[1], fontsize=TEXT_SIZE, **literal_text())
    ax.tick_params(labelsize=SMALL_TEXT)
    sizes = [float(np.max(np.ptp(outline, axis=0))) for outline in outlines]
    inside: list[Axes] = []
    if sizes[-1] < _ZOOMED_BELOW * sizes[0]:
        inside = [_zoom(ax, outlines, steps)]
    if mean is not None:
        for each in (ax, *inside):
            each.plot(*mean[chosen], "+", color=PRIVACY, markersize=9, markeredgewidth=1.6, label="released mean")
        ax.legend(fontsize=SMALL_TEXT, loc="lower right")
    return ax, float(np.median(steps.regions[-1].half_widths / steps.regions[0].half_widths))


def _draw_outlines(ax: Axes, outlines: Sequence[FloatArray], steps: _Steps, *, named: bool = True) -> None:
    last = len(outlines) - 1
    every = max(1, -(-len(outlines) // _MAX_NAMED))
    for index, outline in enumerate(outlines):
        color = CERTAIN if index == last else NOISE_COLOR
        ax.plot(*outline.T, color=color, linewidth=2.2 if index == last else 1.0)
        if named and (last - index) % every == 0:
            at = outline[(_FIRST_NAME + index * _NEXT_NAME) % _OUTLINE]  # apart, where regions hardly differ
            ax.annotate(
                steps.names[index],
                (float(at[0]), float(at[1])),
                (2, 2),
                textcoords="offset points",
                fontsize=SMALL_TEXT,
                color=color if index == last else SECONDARY,
                **literal_text(),
            )


def _zoom(ax: Axes, outlines: Sequence[FloatArray], steps: _Steps) -> Axes:
    left, right = ax.get_xlim()
    ax.set_xlim(left, right + 0.75 * (right - left))
    inside = ax.inset_axes((0.6, 0.3, 0.38, 0.42))
    _draw_outlines(inside, outlines, steps, named=False)
    middle = (outlines[-1].max(axis=0) + outlines[-1].min(axis=0)) / 2.0
    reach = np.ptp(outlines[-1], axis=0) * 0.65
    inside.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    inside.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    inside.set_aspect(ax.get_aspect())
    inside.tick_params(labelsize=SMALL_TEXT - 1.0)
    inside.set_title(f"step {steps.names[-1]}", fontsize=SMALL_TEXT, **literal_text())
    ax.indicate_inset_zoom(inside, edgecolor=NOISE_COLOR)
    return inside


def _outline(shape: FloatArray) -> FloatArray:
    """Return the edge of an ellipse about 0, a region's projection, shape (_OUTLINE, 2)."""
    angles = np.linspace(0.0, 2.0 * np.pi, _OUTLINE)
    eigenvalues, eigenvectors = np.linalg.eigh(shape)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(circle * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T)
