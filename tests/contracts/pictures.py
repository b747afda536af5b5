"""Every number and point of a picture, read back from its SVG, and compared with the API's.

A chart is read from the SVG that matplotlib writes (`chart_of_svg`) and from the page of a report (`charts_of_page`): names,
printed numbers, and where its marks and bars are. Positions are on one axis with the API's numbers if one straight line takes
these to those, and the printed ticks to where they are.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import dpmoments as dpm
from contracts.contradictions import Found
from contracts.printed import Asked, is_among, names_of, tokens
from dpmoments.analysis.released import dates_in
from dpmoments.plots.canvas import label
from dpmoments.plots.intervals import labels_of

Numbers = tuple[float, float, float]
"""A value and the ends of its interval."""
_SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Row:
    """What a chart shows of one number; positions are fractions of the axis."""

    name: str
    printed: str
    marks: tuple[float, ...]
    bars: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    title: str
    rows: tuple[Row, ...]
    ticks: tuple[tuple[str, float], ...]


# Read from SVG, and from a page ---------------------------------------------------------------------------------------------


def svg_of(ax: Any) -> ElementTree.Element:
    """The picture as it is saved, its letters as text."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    return ElementTree.fromstring(file.getvalue())


def group(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return next(each for each in root.iter(f"{_SVG}g") if each.get("id") == name)


def texts(root: ElementTree.Element) -> list[str]:
    return [" ".join("".join(each.itertext()).split()) for each in root.iter(f"{_SVG}text")]


def ends_of(path: ElementTree.Element) -> np.ndarray:
    """The points of a path of straight lines."""
    return np.array([float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]).reshape(-1, 2)


def chart_of_svg(ax: Any) -> Chart:
    """A chart of intervals, drawn by matplotlib."""
    axes = group(svg_of(ax), "axes_1")
    corners = ends_of(next(group(axes, "patch_2").iter(f"{_SVG}path")))
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    names = texts(group(axes, "matplotlib.axis_2"))
    ticks = [
        (text, (float(mark.get("x", "nan")) - left) / (right - left))
        for each in group(axes, "matplotlib.axis_1")
        if each.get("id", "").startswith("xtick") and (mark := next(each.iter(f"{_SVG}use"), None)) is not None
        for text in texts(each)
    ]
    marks: list[list[float]] = [[] for _ in names]
    bars: list[list[tuple[float, float]]] = [[] for _ in names]
    printed, n = [""] * len(names), len(names)

    def row_at(y: float) -> int:
        return round((y - top) / (bottom - top) * (n + 0.2) - 0.6)

    for each in axes:
        if each.get("id", "").startswith("line2d"):
            for mark in each.iter(f"{_SVG}use"):
                if left < (x := float(mark.get("x", "nan"))) < right:  # at the edges there are arrows
                    marks[row_at(float(mark.get("y", "nan")))].append((x - left) / (right - left))
            for path in each.findall(f"{_SVG}path"):
                points = ends_of(path)
                if len(points) == 2 and points[0, 1] == points[1, 1]:
                    low, high = (points[:, 0] - left) / (right - left)
                    bars[row_at(points[0, 1])].append((low, high))
        if each.get("id", "").startswith("text"):
            for text in each.iter(f"{_SVG}text"):
                x, y = (float(text.get(place, "nan")) for place in "xy")
                if x > right and 0 <= row_at(y - 2.0) < n:
                    printed[row_at(y - 2.0)] += "".join(text.itertext())
    rows = [Row(*row) for row in zip(names, printed, map(tuple, marks), map(tuple, bars), strict=True)]
    return Chart(ax.get_title(loc="left").replace("\n", " "), tuple(rows), tuple(ticks))


def charts_of_page(page: str) -> Iterator[Chart]:
    """The charts of a report, in their order."""

    def plain(text: str) -> str:
        return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())

    def at(percent: str) -> float:
        return float(percent) / 100.0

    for table in re.findall(r'<table class="chart">(.*?)</table>', page, re.S):
        body = table.partition("<tbody>")[2].partition("</tbody>")[0]
        rows = []
        for line in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S):
            marks = re.findall(r'class="mark" c?x="([\d.]+)%', line)
            bars = re.findall(r'class="(?:bar|whisker)" x="([\d.]+)%" width="([\d.]+)%', line)
            zero = re.findall(r'<rect x="[\d.]+%" width="([\d.]+)%"', line)
            printed = plain(line.partition('<td class="value">')[2])
            places = [(at(low), at(low) + at(width)) for low, width in bars]
            rows.append(Row(plain(line.partition("</th>")[0]), printed, tuple(map(at, marks or zero)), tuple(places)))
        ticks = re.findall(r'<text x="([\d.]+)%"[^>]*>(.*?)</text>', table)
        yield Chart(
            plain(table.partition("</caption>")[0]),
            tuple(rows),
            tuple((plain(text), at(place)) for place, text in ticks),
        )


# Compared with the API ------------------------------------------------------------------------------------------------------


def compare(
    chart: Chart,
    drawn: Mapping[str, Numbers],
    printed: Mapping[str, Numbers],
    found: Found,
    dates: Sequence[dpm.Date] = (),
) -> None:
    """Rows have the API's numbers, marks and bars are where these are on one axis, within a ten thousandth of it."""
    points: list[tuple[float, float]] = []
    for text, place in chart.ticks:
        if not dates:
            points.append((float(text.replace("−", "-").replace(",", "")), place))
    for row in chart.rows:
        found.rows += 1
        where = f"{chart.title}, {row.name}"
        if row.name not in drawn:
            found.append(f"{where}: not in the API, of {[*drawn]}")
            continue
        (value, lower, upper), numbers = drawn[row.name], np.array(printed[row.name])
        for token in tokens(row.printed, ()):
            among = is_among(token, numbers[np.isfinite(numbers)], dates)
            found.unless(among, f"{where}: {token} of {row.printed!r}, not of {numbers}")
        found.unless(len(row.marks) <= 1, f"{where}: {len(row.marks)} marks")
        points += [(value, mark) for mark in row.marks if 0.0 < mark < 1.0]
        for bar in row.bars:
            ends = [(end, place) for end, place in zip((lower, upper), bar, strict=True) if 1e-4 < place < 1.0 - 1e-4]
            points += [(end, place) for end, place in ends if math.isfinite(end)]
            found.unless(all(bar[0] - 2e-4 <= mark <= bar[1] + 2e-4 for mark in row.marks), f"{where}: beside its bar")
            found.unless(math.isfinite(lower + upper) or not ends, f"{where}: a bar of {lower}, {upper}")
    if len(points) > 2:
        values, places = np.array(points).T
        slope, start = np.polyfit(values, places, 1)
        off = np.abs(start + slope * values - places)
        found.unless(
            off.max() <= 3e-4, f"{chart.title}: {points[int(off.argmax())]} is off its axis by {off.max():.4f}"
        )


def pictures_of(asked: Asked, release: dpm.MomentRelease, folder: Path, level: float, found: Found) -> None:
    """All pictures of a release, and the charts of its report, against the answers that they draw."""
    target, regressors, by = asked.target, asked.regressors, asked.by
    names, described, fit = (
        labels_of(release),
        release.describe(),
        release.ols(asked.target, asked.regressors, level=level),
    )
    spread = dict(zip(release.feature_names, np.asarray(described.standard_deviation).tolist(), strict=True))
    slopes = dict(zip(fit.names, fit.estimates, strict=True))
    per_unit = {
        names[name]: (each.value, each.lower, each.upper) if each.estimable else (math.nan, -math.inf, math.inf)
        for name, each in slopes.items()
        if name in names
    }
    scale = {names[name]: spread[name] for name in fit.features}
    per_deviation = {name: tuple(part * scale[name] for part in parts) for name, parts in per_unit.items()}
    chart = chart_of_svg(release.plot.coefficients(target, list(regressors), level=level, ax=Figure().subplots()))
    compare(chart, *[{label(name, 60): each for name, each in per_deviation.items()}] * 2, found)  # type: ignore[arg-type]
    said = is_in_api(chart.title, [fit.r_squared, *fit.r_squared_interval(), 100 * level], release)
    found.unless(said, f"title {chart.title!r}, R² = {fit.r_squared}")

    pairs: dict[str, Numbers] = {}
    correlations = release.correlations(level=level)
    for i, one in enumerate(correlations.feature_names):
        for j, other in enumerate(correlations.feature_names[:i]):
            numbers = tuple(
                float(each[i, j]) for each in (correlations.correlation, correlations.lower, correlations.upper)
            )
            pairs[f"{names[other]} and {names[one]}"] = numbers  # type: ignore[assignment]
    shown = {label(name, 60): each for name, each in pairs.items()}
    compare(chart_of_svg(release.plot.findings(level=level, ax=Figure().subplots())), shown, shown, found)
    of_relations(release, correlations, level, found)
    of_spectrum(release, found)

    groups: dict[str, Numbers] = {}
    dates = [date for date in [dates_in(release.schema).get(target)] if date is not None]
    if by:
        means = release.group_means(by, of=[target], level=level)
        of_groups = zip(
            means.groups, *(part[0].tolist() for part in (means.mean, means.lower, means.upper)), strict=True
        )
        groups = {names.get(name, name).removeprefix(f"{by}="): (value, *ends) for name, value, *ends in of_groups}
        shown = {label(name, 60): each for name, each in groups.items()}
        chart = chart_of_svg(release.plot.groups(by, target, level=level, ax=Figure().subplots()))
        compare(chart, shown, shown, found, dates)
    page = folder / "report.html"
    formula = f"`{target}` ~ {' + '.join(f'`{name}`' for name in regressors)}"
    of = [(by, target)] if by else []
    dpm.report(release, page, regressions=[formula], groups=of, level=level, overwrite=True)
    ends = [described.mean, *described.conf_int(level).T]
    shares: dict[str, dict[str, Numbers]] = {}
    for column in release.schema.columns:
        of_chart = shares.setdefault("Yes/no columns" if isinstance(column, dpm.Boolean) else column.name, {})
        for name in column.feature_names:
            value, lower, upper = (100.0 * float(part[release.feature_names.index(name)]) for part in ends)
            of_chart[name.removeprefix(f"{column.name}=")] = value, lower, upper
    for chart in charts_of_page(page.read_text(encoding="utf-8")):
        if chart.title.startswith("Coefficients"):
            compare(chart, per_deviation, per_unit, found)  # type: ignore[arg-type]
        elif chart.title.startswith("Mean of"):
            compare(chart, groups, groups, found, dates)
        elif " and " in chart.rows[0].name:
            compare(chart, pairs, pairs, found)
        else:
            below = {row.name for row in chart.rows if row.printed.startswith("below")}
            known = shares[chart.title].items()
            of_shares = {name: (0.0, 0.0, part[2]) if name in below else part for name, part in known}
            compare(chart, of_shares, of_shares, found)


def is_in_api(text: str, values: Sequence[float], release: dpm.MomentRelease) -> bool:
    return all(is_among(token, np.array(values), ()) for token in tokens(text, names_of(release)))


def of_relations(release: dpm.MomentRelease, answer: Any, level: float, found: Found) -> None:
    """Each number of the matrix is the strongest of its two columns that holds among all."""
    columns, of = [*dict.fromkeys(answer.columns_of_features)], np.array(answer.columns_of_features)
    ax = release.plot.correlation(level=level, ax=Figure().subplots())
    axes = group(svg_of(ax), "axes_1")
    corners = ends_of(next(group(axes, "patch_2").iter(f"{_SVG}path")))
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    size, seen = len(columns), 0
    for text in axes.iter(f"{_SVG}text"):
        if "fill: #ffffff" in text.get("style", ""):
            x, y = (float(text.get(place, "nan")) for place in "xy")
            column = columns[round((x - left) / (right - left) * (size + 0.15) - 0.55)]
            row = columns[round((y - 3.0 - top) / (bottom - top) * (size + 0.15) - 0.6)]
            block = np.ix_(of == row, of == column)
            clear = answer.correlation[block][answer.holds_among_all[block]]
            value, seen = float("".join(text.itertext()).replace("−", "-")), seen + 1
            expected = max(clear, key=abs, default=9.0)
            found.unless(abs(value - expected) < 0.0051, f"{row}, {column}: {value} is drawn, {expected} in the API")
    found.rows += seen
    title = ax.get_title(loc="left").replace("\n", " ")
    compared = {
        frozenset((of[i], of[j]))
        for i, verdicts in enumerate(answer.verdict)
        for j, word in enumerate(verdicts)
        if word
    }
    found.unless(is_in_api(title, [seen, len(compared)], release), f"title {title!r}: {seen} of {len(compared)} drawn")


def of_spectrum(release: dpm.MomentRelease, found: Found) -> None:
    """Points are at the logarithms of the variances, those below the floor at the smaller of the two."""
    answer = release.pca(scaling="bounds")
    ax = release.plot.spectrum(ax=Figure().subplots())
    axes = group(svg_of(ax), "axes_1")
    value = np.where(
        answer.is_noise, np.minimum(answer.explained_variance, answer.noisy_variance), answer.explained_variance
    )
    corners = ends_of(next(group(axes, "patch_2").iter(f"{_SVG}path")))
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    low, high = np.log10(ax.get_ylim())
    for each in axes:
        if each.get("id", "").startswith("line2d"):
            for mark in each.iter(f"{_SVG}use"):
                x, y = (float(mark.get(place, "nan")) for place in "xy")
                index = round((x - left) / (right - left) * len(value) - 0.5)
                expected = math.log10(max(value[index], ax.get_ylim()[0] / 0.8))
                drawn = low + (bottom - y) / (bottom - top) * (high - low)
                found.rows += 1
                found.unless(abs(drawn - expected) < 1e-3 * (high - low), f"component {index + 1}: {drawn}, {expected}")
    title, certain = ax.get_title(loc="left").replace("\n", " "), int((~answer.is_noise).sum())
    found.unless(is_in_api(title, [certain, len(value)], release), f"title {title!r}, {certain} are clear")
