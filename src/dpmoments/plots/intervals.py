"""Plots of numbers with intervals: coefficients and group means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpmoments.analysis.description import describe
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.group_means import LOST, GroupMeans
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.released import Moments
from dpmoments.analysis.resolvability import (
    NOT_CLEAR_NOISE,
    NOT_CLEAR_ROWS,
    NOT_ESTIMABLE,
    NOT_ESTIMABLE_ROWS,
    UNCLEAR,
    decided,
)
from dpmoments.base.arrays import FloatArray, largest_first
from dpmoments.plots.canvas import (
    CERTAIN,
    FAINT,
    HATCH,
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PARTS = "thick: privacy noise"
_SHORT = {
    NOT_CLEAR_NOISE: "noise",
    NOT_CLEAR_ROWS: "few rows",
    **dict.fromkeys((NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS), "not estimable"),
}
"""Short forms of verdicts."""
_ROOM = 1.15
_FAR = 3.0
"""Limit up to which values decided by noise widen the axis, relative to clear ones."""
_INCHES_A_LINE = 0.3


@dataclass(frozen=True)
class _IntervalLine:
    name: str
    word: str
    value: float
    lower: float
    upper: float
    privacy: float

    @property
    def ends(self) -> list[float]:
        return [end for end in (self.value, self.lower, self.upper) if np.isfinite(end)]


def _interval_axes(ax: Axes | None, n_lines: int) -> Axes:
    return axes_of(ax, 7.2, min(max(2.6, 1.7 + _INCHES_A_LINE * n_lines), 14.0))


def _draw_intervals(ax: Axes, lines: Sequence[_IntervalLine], words: str, *, about: float | None = None) -> None:
    """Draw the lines from the top, with arrows if an interval extends beyond the axes."""
    left, right = _limits(lines, about)
    if about is not None:
        ax.axvline(about, color="#404040", linewidth=0.8)
    for index, line in enumerate(lines):
        _draw(ax, index, line, left, right)
        if line.word:
            ax.annotate(
                _SHORT.get(line.word, line.word),
                (1.0, index),
                (6, 0),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=SMALL_TEXT,
                color=SECONDARY,
                annotation_clip=False,
                **literal_text(),
            )
    ax.set_xlim(left, right)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_yticks(range(len(lines)))
    ax.set_yticklabels([line.name for line in lines], fontsize=TEXT_SIZE, **literal_text())
    ax.set_xlabel(words, fontsize=TEXT_SIZE, **literal_text())
    ax.tick_params(axis="x", labelsize=SMALL_TEXT)
    ax.grid(axis="x", alpha=0.3)


def _privacy_part(lower: FloatArray, upper: FloatArray, privacy: FloatArray, total: FloatArray) -> FloatArray:
    """Return the half-width due to privacy noise, by its share of the standard errors."""
    share = np.divide(privacy, total, out=np.full_like(total, np.nan), where=total > 0.0)
    half = (upper - lower) / 2.0
    return np.asarray(np.where(np.isfinite(half), half, np.nan) * share)


def _draw(ax: Axes, row: int, line: _IntervalLine, left: float, right: float) -> None:
    color = CERTAIN if not line.word else NOISE_COLOR
    low, high = (float(np.clip(np.nan_to_num(end, nan=line.value), left, right)) for end in (line.lower, line.upper))
    if not np.isfinite(line.value):  # lost: all that is known is within this band
        if np.isfinite(low) and np.isfinite(high):
            ax.barh(
                row, high - low, left=low, height=0.5, facecolor="white", edgecolor=FAINT, hatch=HATCH, linewidth=0.0
            )
        return
    ax.plot([low, high], [row, row], color=color, linewidth=1.2, solid_capstyle="butt")
    for end, edge, marker in ((line.lower, left, "<"), (line.upper, right, ">")):
        if (end < left and marker == "<") or (end > right and marker == ">"):
            ax.plot(edge, row, marker, color=color, markersize=6, clip_on=False)
    if np.isfinite(line.privacy):
        inside = np.clip([line.value - line.privacy, line.value + line.privacy], max(low, left), min(high, right))
        ax.plot(inside, [row, row], color=PRIVACY, linewidth=4.0, alpha=0.55, solid_capstyle="butt")
    if left <= line.value <= right:
        ax.plot(line.value, row, "o", color=color, markerfacecolor=color if not line.word else "white", markersize=6)


def _limits(lines: Sequence[_IntervalLine], about: float | None) -> tuple[float, float]:
    """Return axis limits that fit the clear values, or all finite ones if none is clear."""
    certain = [end for line in lines if not line.word for end in line.ends]
    values = [line.value for line in lines if line.word and np.isfinite(line.value)]
    ends = certain or [end for line in lines for end in line.ends]
    if certain:
        reach = _FAR * max(map(abs, certain))
        ends += [value for value in values if abs(value) <= reach]
    if about is not None:
        ends = [*ends, about]
    if not ends:
        return -1.0, 1.0
    low, high = min(ends), max(ends)
    spread = (high - low) or abs(high) or 1.0
    return low - (_ROOM - 1.0) * spread, high + (_ROOM - 1.0) * spread


# The picture of a regression's coefficients.


def deviations_of(release: Moments, fit: FittedLine) -> FloatArray:
    """Return the standard deviations of a fit's features, about 0 if no mean was released."""
    described = describe(release)
    spread = described.root_mean_square if described.standard_deviation is None else described.standard_deviation
    assert spread is not None
    of_feature = dict(zip(described.feature_names, spread.tolist(), strict=True))
    return np.array([of_feature[name] for name in fit.features])


def draw_coefficients(
    fit: FittedLine,
    deviations: FloatArray | None = None,
    n_coefficients: int = 25,
    ax: Axes | None = None,
    *,
    sort: Literal["fit", "size", "p"] = "fit",
) -> Axes:
    # They are multiplied by `deviations` (the features' standard deviations), if given, so that one axis fits all; the
    # `n_coefficients` with the smallest p-values are shown.
    # NaN: noise hides the deviation of a feature
    per = np.ones(len(fit.features)) if deviations is None else np.where(deviations > 0.0, deviations, np.nan)
    verdict = fit.verdict[1:] if fit.with_intercept else fit.verdict
    unknown = np.full(len(fit.features), np.nan)
    if fit.method != "least squares":
        value, lower, upper, half = fit.coefficients, unknown, unknown, unknown
        order = largest_first(np.abs(np.nan_to_num(fit.coefficients * per, nan=0.0)))
    else:
        lower, upper = fit.lower, fit.upper
        estimable = np.isfinite(lower) & np.isfinite(upper) if fit.equations is not None else np.isnan(unknown)
        value = np.where(estimable, fit.coefficients, np.nan)
        half = _privacy_part(lower, upper, fit.privacy_errors, fit.standard_errors)
        order = np.argsort(np.nan_to_num(fit.p_values, nan=2.0), kind="stable")
    order = order[:n_coefficients]
    if sort == "fit":
        order = np.sort(order)
    elif sort == "size":
        order = order[largest_first(np.abs(np.nan_to_num(value * per, nan=0.0))[order])]
    scaled: Any = np.stack([value, lower, upper, half]) * per
    lines = [
        _IntervalLine(
            label(fit.features[index]),
            verdict[index] if verdict[index] in UNCLEAR else "",
            *scaled[:, index].tolist(),
        )
        for index in order.tolist()
    ]
    grow = ax is None
    ax = _interval_axes(ax, len(lines))
    target = label(fit.target)
    _draw_intervals(
        ax,
        lines,
        f"change of {target} per standard deviation of the feature"
        if deviations is not None
        else f"change of {target} per unit",
        about=0.0,
    )
    entitle(ax, *_title_and_marks(fit, lines), grow=grow)
    return ax


def _title_and_marks(fit: FittedLine, lines: Sequence[_IntervalLine]) -> list[str]:
    if fit.equations is None:
        title = f"{fit.method} regression of {label(fit.target)}: noise unknown"
        return [title, "hollow: noise distribution unknown, so coefficients have no intervals", fit.warning]
    whole = ": whole fit not clear" if fit.is_noise else ""
    title = f"{fit.method} regression of {label(fit.target)}, {fit.r_squared_text}{whole}"
    said = {line.word for line in lines}
    hollow = [f"{_SHORT[word]}: {word}" for word in (NOT_CLEAR_NOISE, NOT_CLEAR_ROWS) if word in said]
    thick = _PARTS if any(np.isfinite(line.privacy) for line in lines) else ""
    k = len(fit.features)
    fewer = f"the {len(lines)} clearest of {k} coefficients; " if len(lines) < k else ""
    if fit.method != "least squares":
        return [title, f"{fewer}no intervals: the errors of penalized coefficients are not known", "", fit.warning]
    hatched = f"hatched: {NOT_ESTIMABLE}" if NOT_ESTIMABLE in said else ""
    marks = "; ".join(
        filter(None, [f"{fewer}{fit.level:.0%} intervals", thick, *(f"hollow, {words}" for words in hollow), hatched])
    )
    return [title, marks, fit.help if fit.is_noise else "", fit.warning]


# The picture of the means of a feature by group.


def draw_groups(
    answer: GroupMeans, ax: Axes | None = None, *, sort: Literal["schema", "mean", "rows"] = "schema"
) -> Axes:
    """Plot an answer of ``release.group_means()`` for one feature."""
    total = np.hypot(answer.privacy_noise[0], answer.sampling_noise[0])
    half = _privacy_part(answer.lower[0], answer.upper[0], answer.privacy_noise[0], total)
    lines = []
    largest = {"mean": answer.mean[0], "rows": answer.counts}.get(sort, np.zeros(len(answer.groups)))
    for index in np.argsort(-np.nan_to_num(largest, nan=-np.inf), kind="stable").tolist():
        name = answer.groups[index]
        noise = f" ± {answer.count_noise[index]:,.0f}" if np.isfinite(answer.count_noise[index]) else ""
        level = name.removeprefix(f"{answer.by}=")
        lines.append(
            _IntervalLine(
                f"{label(level, 30)}  ({answer.counts[index]:,.0f}{noise})",
                LOST if answer.lost[index] else decided(0.0 if answer.noise_known else math.nan, ""),
                *(float(part[index]) for part in (answer.mean[0], answer.lower[0], answer.upper[0], half)),
            )
        )
    grow = ax is None
    ax = _interval_axes(ax, len(lines))
    feature = label(answer.features[0])
    _draw_intervals(ax, lines, f"mean of {feature}")
    ax.set_ylabel(f"{label(answer.by)}  (rows ± noise)", parse_math=False, usetex=False)
    lost = f"hatched: {LOST}, the number of rows is {NOT_CLEAR_NOISE}" if answer.lost.any() else ""
    intervals = f"{answer.level:.0%} intervals, {_PARTS}" if answer.noise_known else describe_law(None)
    pooled = "" if answer.own_variance or not answer.noise_known else "; equal group variances assumed"
    entitle(ax, f"mean of {feature} by {label(answer.by)}", f"{intervals}{pooled}", lost, answer.warning, grow=grow)
    return ax
