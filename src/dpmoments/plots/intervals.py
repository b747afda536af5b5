"""Charts of numbers with their intervals: relations, coefficients, group means.

A chart is made of an answer once; a notebook draws it with matplotlib, and a page as a table with bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpmoments.analysis.answers import format_level, interval_ends, rounded, step_errors
from dpmoments.analysis.confidence import UNCLEAR, smallest_seen
from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.description import Description, describe
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.group_means import GroupMeans
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.released import Moments, Release, dates_in
from dpmoments.base.values import FloatArray, largest_first
from dpmoments.moments.law import NoiseLaw
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    LINE,
    NOISE_COLOR,
    OPPOSITE,
    SECONDARY,
    SHADE,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    label,
    literal_text,
)
from dpmoments.plots.pictures import relations, title_of_relations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmoments.schema.dates import Date


ONLY_BY_ITSELF = "clear only by itself"
"""Said of a number whose own interval excludes 0, but not among all comparisons."""
_ROOM = 0.08
"""Room at each end of the axis, relative to its length."""
_FAR = 3.0
"""Limit up to which intervals that are not clear widen the axis, relative to clear ones."""
_INCHES_A_LINE, _MAX_LETTERS = 0.3, 60


@dataclass(frozen=True)
class IntervalLine:
    """One number of a chart with its interval, drawn and printed.

    ``note`` says why the number is not clear; it is empty if the number is.
    """

    name: str
    value: float
    lower: float
    upper: float
    number: str
    interval: str
    note: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        value: float,
        lower: float,
        upper: float,
        error: float,
        *,
        signed: bool,
        note: str = "",
        date: Date | None = None,
    ) -> IntervalLine:
        """Return the line of a number, printed by its standard error; dates as dates."""
        if not np.isfinite(lower + upper):
            return cls(name, value, lower, upper, with_minus(rounded(value, error), signed), "", note)
        [low], [high] = interval_ends(lower, upper, error)
        step = float(step_errors(error, lower, upper)[0])
        number = with_minus(rounded(value, step), signed)
        if date is not None:
            number, low, high = (date.date_text(each, step) for each in (value, lower, upper))
            return cls(name, value, lower, upper, number, f"{low} to {high}", note)
        return cls(name, value, lower, upper, number, f"{with_minus(low)} to {with_minus(high)}", note)

    @property
    def ends(self) -> list[float]:
        return [end for end in (self.value, self.lower, self.upper) if np.isfinite(end)]


@dataclass(frozen=True)
class IntervalChart:
    """Numbers with their intervals on one axis, from the top.

    ``reference`` is a vertical line, ``unseen`` the half-width of the shaded part around 0 in which little is clear, ``signed``
    is True if marks show signs, ``from_zero`` if bars begin at 0, and ``about`` says what marks mean, a sentence each.
    """

    title: str
    axis: str
    level: float
    lines: tuple[IntervalLine, ...]
    reference: float | None = None
    signed: bool = True
    unseen: float = 0.0
    from_zero: bool = False
    within: tuple[float, float] | None = None
    about: tuple[str, ...] = ()
    date: Date | None = None  # the column whose dates the numbers are

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis: those of clear intervals, or of all finite ones if none is clear."""
        if self.within is not None:
            return self.within
        certain = [end for line in self.lines if not line.note for end in line.ends]
        ends = certain or [end for line in self.lines for end in line.ends]
        if certain:
            reach = _FAR * max(map(abs, certain))
            ends = certain + [end for line in self.lines for end in line.ends if abs(end) <= reach]
        if self.reference is not None:
            ends = [*ends, self.reference]
        if not ends:
            return -1.0, 1.0
        low, high = min(ends), max(ends)
        room = _ROOM * ((high - low) or abs(high) or 1.0)
        return low - room, high + room

    def place(self, value: float) -> float:
        """Return where a value is on the axis, from 0 at its left end to 1."""
        low, high = self.limits
        return float(np.clip((value - low) / (high - low), 0.0, 1.0))

    @property
    def ticks(self) -> tuple[float, ...]:
        """Three to six round numbers on the axis, or beginnings of years, months or days."""
        low, high = self.limits
        if self.date is not None:
            for unit in "YMD":
                first, last = self.date.datetimes(np.array([low, high])).astype(f"datetime64[{unit}]")
                every = np.arange(first + 1, last + 1)
                if len(every) >= 3:
                    chosen = every[:: -(-len(every) // 6)].astype("datetime64[us]").astype(np.int64)
                    return tuple(self.date.numbers(chosen).tolist())
        step = 10.0 ** np.floor(np.log10(high - low))
        step *= next(part for part in (1.0, 0.5, 0.2) if (high - low) / (step * part) >= 3.0)
        return tuple((np.arange(np.ceil(low / step), np.floor(high / step) + 1.0) * step + 0.0).tolist())

    def tick_text(self, tick: float) -> str:
        """Return a tick as it is printed."""
        if self.date is not None and len(self.ticks) > 1:
            return self.date.date_text(tick, 1.02 * (self.ticks[1] - self.ticks[0]))  # a year may have 365 days
        return with_minus(f"{tick:,.6g}")


def draw_intervals(chart: IntervalChart, ax: Axes | None = None) -> Axes:
    """Draw the lines from the top; an arrow points to an interval beyond the axis."""
    grow, n_lines = ax is None, len(chart.lines)
    longest = max((len(line.name) for line in chart.lines), default=0)
    ax = axes_of(ax, 6.6 + 0.07 * min(longest, _MAX_LETTERS), min(max(2.2, 1.3 + _INCHES_A_LINE * n_lines), 14.0))
    left, right = chart.limits
    if chart.unseen > 0.0:
        ax.axvspan(-chart.unseen, chart.unseen, color=SHADE, linewidth=0.0, zorder=0)
    if chart.reference is not None:
        ax.axvline(chart.reference, color=INK, linewidth=0.8)
    for row, line in enumerate(chart.lines):
        _draw(ax, row, line, chart)
        ax.annotate(
            "  ".join(filter(None, [line.number, line.interval, line.note])),
            (1.0, row),
            (6, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_TEXT,
            color=SECONDARY if line.note else INK,
            annotation_clip=False,
            **literal_text(),
        )
    ax.set_xlim(left, right)
    ax.set_ylim(n_lines - 0.4, -0.6)
    ax.set_yticks(range(n_lines))
    ax.set_yticklabels([label(line.name, _MAX_LETTERS) for line in chart.lines], fontsize=TEXT_SIZE, **literal_text())
    ax.set_xticks(chart.ticks, list(map(chart.tick_text, chart.ticks)), **literal_text())
    ax.set_xlabel(label(chart.axis, 80), fontsize=TEXT_SIZE, color=SECONDARY, **literal_text())
    ax.tick_params(axis="x", labelsize=SMALL_TEXT, color=LINE)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(LINE)
    entitle(ax, chart.title, *chart.about, grow=grow)
    return ax


def _draw(ax: Axes, row: int, line: IntervalLine, chart: IntervalChart) -> None:
    (left, right), opposite = chart.limits, chart.signed and line.value < 0.0
    color = NOISE_COLOR if line.note else OPPOSITE if opposite else CERTAIN
    low, high = (float(np.clip(np.nan_to_num(end, nan=line.value), left, right)) for end in (line.lower, line.upper))
    if np.isfinite(low) and np.isfinite(high):
        width, faint = (1.2, 1.0) if line.note else (6.0, 0.35)
        ax.plot([low, high], [row, row], color=color, linewidth=width, alpha=faint, solid_capstyle="butt")
    for end, edge, marker in ((line.lower, left, "<"), (line.upper, right, ">")):
        if (end < left and marker == "<") or (end > right and marker == ">"):
            ax.plot(edge, row, marker, color=color, markersize=6, clip_on=False)
    if left <= line.value <= right:
        face = "white" if line.note else color
        ax.plot(line.value, row, "s" if opposite else "o", color=color, markerfacecolor=face, markersize=6)


def with_minus(number: str, signed: bool = False) -> str:
    """Return a printed number with a true minus, and a plus if it is to be signed."""
    plus = "+" if signed and number[:1].isdigit() and number.strip("0.") else ""
    return plus + (f"−{number[1:]}" if number.startswith("-") else number)


def labels_of(release: Release) -> dict[str, str]:
    """Return the label of each feature: the description of its column, if any, and the level."""
    result = {}
    for column in release.schema.columns:
        for name in column.feature_names:
            level = name.removeprefix(f"{column.name}=")
            described = getattr(column, "description", None)
            result[name] = name if not described else described if level == name else f"{described}: {level}"
    return result


MAX_FINDINGS = 10
_SHAPES = "Circle: together; square: opposite"


def chart_of_findings(answer: Correlations, noise: NoiseLaw | None, labels: Mapping[str, str]) -> IntervalChart:
    """Return the chart of the strongest clear relations, at most one for each two columns."""
    every = relations(answer)
    clear = sorted((each for each in every if each.pair is not None), key=lambda each: -abs(each.correlation))
    shown = [each.pair for each in clear[:MAX_FINDINGS] if each.pair is not None]
    lines = tuple(line_of_pair(answer, pair, labels) for pair in shown)
    strongest = f"The {len(lines)} strongest, one for each two columns. " if len(clear) > len(lines) else ""
    unseen = smallest_typical(answer, noise, len(every))
    shade = f"Shaded, below {unseen:.2g}: little is clear." if 0.0 < unseen < 1.0 else ""
    bars = f"{strongest}Bars: {format_level(answer.level)} intervals, noise and sampling together."
    return IntervalChart(
        title_of_relations(answer),
        "correlation",
        answer.level,
        lines,
        reference=0.0,
        unseen=unseen if unseen < 1.0 else 0.0,
        within=(-1.0, 1.0),
        about=tuple(filter(None, [bars, f"{_SHAPES}.", shade])) if lines else (),
    )


def line_of_pair(answer: Correlations, pair: tuple[int, int], labels: Mapping[str, str]) -> IntervalLine:
    """Return the line of a pair of features that holds among all."""
    names = [labels.get(answer.feature_names[index], answer.feature_names[index]) for index in sorted(pair)]
    value, lower, upper = (float(each[pair]) for each in (answer.correlation, answer.lower, answer.upper))
    error = float(np.hypot(answer.privacy_noise[pair], answer.sampling_noise[pair]))
    return IntervalLine.of(" and ".join(names), value, lower, upper, error, signed=True)


def smallest_typical(answer: Correlations, noise: NoiseLaw | None, comparisons: int, scale: float = 1.0) -> float:
    """Return the smallest correlation of a typical pair that is seen; 0 if unknown.

    It is seen in 80 % of releases; ``scale`` multiplies the privacy noise.
    """
    first, second = np.tril_indices(len(answer.feature_names), -1)
    counted = np.array([bool(answer.verdict[row][other]) for row, other in zip(first, second, strict=True)], dtype=bool)
    privacy, sampling = (each[first, second][counted] ** 2 for each in (answer.privacy_noise, answer.sampling_noise))
    known = np.isfinite(privacy + sampling)
    if noise is None or not known.any():
        return 0.0
    of_noise, of_rows = (np.median(part[known], keepdims=True) for part in (privacy * scale**2, sampling))
    return float(smallest_seen(of_noise, of_rows, comparisons, noise)[0])


def deviations_of(fit: FittedLine) -> FloatArray:
    """Return the standard deviations of a fit's features, about 0 if no mean was released."""
    described: Description = describe(fit.release)
    spread = described.root_mean_square if described.standard_deviation is None else described.standard_deviation
    assert spread is not None
    of_feature = dict(zip(described.feature_names, spread.tolist(), strict=True))
    return np.array([of_feature[name] for name in fit.features])


def chart_of_coefficients(
    fit: FittedLine,
    deviations: FloatArray | None = None,
    n_coefficients: int = 25,
    *,
    sort: Literal["fit", "size", "p"] = "fit",
    labels: Mapping[str, str] | None = None,
) -> IntervalChart:
    """Return the chart of the ``n_coefficients`` with the smallest p-values."""
    # They are multiplied by `deviations` (the features' standard deviations), if given, so that one axis fits all.
    # NaN: noise hides the deviation of a feature
    per = np.ones(len(fit.features)) if deviations is None else np.where(deviations > 0.0, deviations, np.nan)
    verdict, holds = (part[-len(fit.features) :] for part in (fit.verdict, fit.holds_among_all))
    unknown = np.full(len(fit.features), np.nan)
    if fit.method != "least squares":
        value, lower, upper, errors, holds = fit.coefficients, unknown, unknown, unknown, ~np.isnan(fit.coefficients)
        order = largest_first(np.abs(np.nan_to_num(fit.coefficients * per, nan=0.0)))
    else:
        lower, upper, errors = fit.lower, fit.upper, fit.standard_errors
        estimable = np.isfinite(lower) & np.isfinite(upper) if fit.equations is not None else np.isnan(unknown)
        value = np.where(estimable, fit.coefficients, np.nan)
        order = np.argsort(np.nan_to_num(fit.p_values, nan=2.0), kind="stable")
    order = order[:n_coefficients]
    if sort == "fit":
        order = np.sort(order)
    elif sort == "size":
        order = order[largest_first(np.abs(np.nan_to_num(value * per, nan=0.0))[order])]
    parts = np.stack([value, lower, upper, errors]) * per
    lines = []
    for index in order.tolist():
        each, low, high, error = parts[:, index].tolist()
        note = "" if holds[index] else verdict[index] if verdict[index] in UNCLEAR else ONLY_BY_ITSELF
        name = fit.features[index] if labels is None else labels.get(fit.features[index], fit.features[index])
        lines.append(IntervalLine.of(name, each, low, high, error, signed=True, note=note))
    about = ": noise unknown"
    if fit.equations is not None:
        about = f", {fit.r_squared_text}{': whole fit not clear' if fit.is_noise else ''}"
    return IntervalChart(
        f"{fit.method} regression of {fit.target}{about}",
        f"change of {fit.target} per {'unit' if deviations is None else 'standard deviation of the feature'}",
        fit.level,
        tuple(lines),
        reference=0.0,
        about=_about_fit(fit, lines),
    )


def _about_fit(fit: FittedLine, lines: Sequence[IntervalLine]) -> tuple[str, ...]:
    k, fewer = len(fit.features), ""
    if len(lines) < k:
        fewer = f"The {len(lines)} clearest of {k} coefficients."
    if fit.equations is None:
        return fewer, "Hollow: noise distribution unknown, so coefficients have no intervals.", fit.warning
    if fit.method != "least squares":
        return fewer, "No intervals: the errors of penalized coefficients are not known.", fit.warning
    bars = f"Bars: {format_level(fit.level)} intervals."
    hollow = "Hollow: the sign does not hold among all comparisons." if any(line.note for line in lines) else ""
    return tuple(filter(None, [fewer, f"{bars} {hollow}".strip(), fit.help if fit.is_noise else "", fit.warning]))


def chart_of_groups(
    release: Moments, answer: GroupMeans, *, sort: Literal["mean", "schema", "rows"] = "mean"
) -> IntervalChart:
    """Return the chart of means by group; those of which nothing can be said are named below."""
    [feature] = answer.features
    date = dates_in(release.schema).get(feature)
    described, label_of = describe(release, [feature]), labels_of(release)
    assert described.mean is not None
    assert described.standard_deviation is not None
    average, least_spread = float(described.mean[0]), float(described.standard_deviation_noise[0])
    # an interval wider than one standard deviation of all rows says nothing
    spread = float(np.nan_to_num(described.standard_deviation[0], nan=0.0))
    spread = max(spread, float(np.nan_to_num(least_spread, nan=0.0)))
    mean, lower, upper = answer.mean[0], answer.lower[0], answer.upper[0]
    errors = np.hypot(answer.privacy_noise[0], answer.sampling_noise[0])
    said = ~np.isnan(mean) & ~(upper - lower > spread)
    largest = {"mean": mean, "rows": answer.counts}.get(sort, np.zeros(len(mean)))
    levels = [label_of.get(name, name).removeprefix(f"{answer.by}=") for name in answer.groups]
    lines = tuple(
        IntervalLine.of(
            levels[index], *(float(part[index]) for part in (mean, lower, upper, errors)), signed=False, date=date
        )
        for index in np.argsort(-np.nan_to_num(largest, nan=-np.inf), kind="stable").tolist()
        if said[index]
    )
    hidden = [name for name, shown in zip(levels, said.tolist(), strict=True) if not shown]
    named = label_of[feature]
    bars = f"Bars: {format_level(answer.level)} intervals; line: the mean of all rows."
    if not answer.noise_known:
        bars = f"Hollow: {describe_law(None)}"
        lines = tuple(replace(line, note="noise unknown") for line in lines)
    pooled = "" if answer.own_variance or not answer.noise_known else "Equal group variances are assumed."
    unsaid = f"Not drawn, since the noise leaves a range wider than one standard deviation of {feature}, or no number: "
    return IntervalChart(
        f"Mean of {named} by {answer.by}",
        f"mean of {named}",
        answer.level,
        lines,
        reference=average if np.isfinite(average) else None,
        signed=False,
        date=date,
        about=tuple(
            filter(
                None, [f"{bars} {pooled}".strip(), f"{unsaid}{', '.join(hidden)}." if hidden else "", answer.warning]
            )
        ),
    )
