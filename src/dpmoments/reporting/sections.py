"""Sections of a report: findings, asked analyses, columns, relations, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from dpmoments.analysis.answers import format_level, interval_ends, number, rounded
from dpmoments.analysis.confidence import smallest_seen
from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.cross_table import MAX_TESTED
from dpmoments.analysis.group_means import GroupDifferences, GroupMeans
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.released import dates_in
from dpmoments.base.errors import InputValueError, listed, shown
from dpmoments.base.values import FloatArray
from dpmoments.plots.intervals import (
    MAX_FINDINGS,
    IntervalChart,
    IntervalLine,
    chart_of_coefficients,
    chart_of_findings,
    chart_of_groups,
    deviations_of,
    labels_of,
    line_of_pair,
    smallest_typical,
    with_minus,
)
from dpmoments.plots.pictures import draw_association, meaning_of_relations, relations, title_of_relations
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.reporting.page import NOISE, PageTable, Section, drawn
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.dates import Date

_MAX_COEFFICIENTS = 25
_MAX_STATED = 5
"""Maximum number of findings of one asked analysis."""
_MAX_RELATIONS = 60
_MAX_UNFOLDED = 20
"""Number of levels from which on a column is folded."""
_NOT_RELEASED = (
    "No row count was released, so means, standard deviations, correlations and regressions are not available. "
    "Noisy sums of squares are below."
)
_NO_MEAN = (
    "No mean was released: root mean squares and second moments about zero are shown in place of "
    "standard deviations and correlations."
)


@dataclass(frozen=True)
class Comparisons:
    """The tables of verdicts of one release.

    Correlations (or why they are refused), regressions, and groups.
    """

    correlations: Correlations | None
    refusal: str
    fits: tuple[FittedLine, ...]
    means: tuple[GroupMeans, ...]

    @classmethod
    def of(
        cls, release: MomentRelease, regressions: Sequence[str], groups: Sequence[tuple[str, str]], level: float
    ) -> Comparisons:
        """Return the answers; ``groups`` are pairs of a grouping column and a feature."""
        if release.noisy_count is None:
            if regressions or groups:
                raise InputValueError(
                    "regressions and group means need a number of rows, which was not released: leave them out of the report"
                )
            return cls(None, "", (), ())
        correlations, refusal = None, ""
        if release.noisy_sum is not None and len(release.feature_names) > 1:
            try:
                correlations = release.correlations(level=level)
            except ValueError as refused:
                refusal = str(refused)
        fits = tuple(release.ols(formula, level=level) for formula in regressions)
        means = []
        for by, of in groups:
            answer = release.group_means(by, of=[of], level=level)
            if len(answer.features) != 1:
                raise InputValueError(
                    f"'{of}' has {len(answer.features)} features, but a chart shows one: name one, such as "
                    f"{shown(answer.features[0])}"
                )
            means.append(answer)
        return cls(correlations, refusal, fits, tuple(means))

    @property
    def comparisons(self) -> tuple[FloatArray, FloatArray]:
        """The p-values of all comparisons, and the comparisons that each counts as."""
        every: list[FittedLine | GroupDifferences | Correlations] = [*self.fits, *filter(None, [self.correlations])]
        every += [means.differences for means in self.means]
        none = np.zeros(0), np.zeros(0)
        p_values, counts_as = zip(none, *(each.comparisons for each in every), strict=True)
        return np.concatenate(p_values), np.concatenate(counts_as)

    def with_cutoff(self, cutoff: float) -> Comparisons:
        """Return the answers with marks by one correction over the page."""
        # without their warnings, which stand at the head of a page
        correlations = self.correlations and replace(self.correlations, cutoff=cutoff, warning="")
        fits = tuple(replace(fit, cutoff=cutoff, warning="") for fit in self.fits)
        means = tuple(
            replace(each, differences=replace(each.differences, cutoff=cutoff), warning="") for each in self.means
        )
        return replace(self, correlations=correlations, fits=fits, means=means)


def findings_section(release: MomentRelease, prefix: str, answers: Comparisons, headline: str | None) -> Section | None:
    """Return what is clear, asked analyses first; None without comparisons."""
    stated = [text for fit in answers.fits for text in coefficient_findings(release, fit)[:_MAX_STATED]]
    stated += [text for means in answers.means for text in difference_findings(release, means)[:_MAX_STATED]]
    charts: tuple[IntervalChart, ...] = ()
    if answers.correlations is not None:
        chart = chart_of_findings(answers.correlations, release.noise, labels_of(release))
        charts = (replace(chart, title=headline or chart.title),)
    if not stated and not charts:
        return None
    return Section(
        "Findings",
        f"{prefix}findings",
        findings=tuple(stated),
        charts=tuple(chart for chart in charts if chart.lines),
        lead=tuple(f"{chart.title}." for chart in charts if not chart.lines),
    )


def open_section(release: MomentRelease, prefix: str, answer: Correlations) -> Section | None:
    """Return what is not clear, and what it would take; None if all pairs are clear."""
    every = relations(answer)
    unclear = [each for each in every if each.pair is None]
    if not unclear or release.noise is None:
        return None
    without = sum(each.without_number for each in unclear)
    said = f"{len(unclear):,} of {len(every):,} pairs of columns are not clear among all"
    if without:
        said += f"; {without:,} have no number"
        lost = {name for each in every for name in each.columns}
        lost -= {name for each in every if not each.without_number for name in each.columns}
        if 0 < len(lost) <= _MAX_STATED and all(lost & set(each.columns) for each in every if each.without_number):
            said += f", since noise hides how much {listed(sorted(lost), quoted=False)} varies"
    seen = [smallest_typical(answer, release.noise, len(every), scale) for scale in (1.0, 0.5, 0.0)]
    sizes = [f"about {size:.2g}" if size < 1.0 else "more than 1" for size in seen]
    # Few words: a summary of 350 says it too.
    sooner = f"with twice the budget from {sizes[1]}, without noise from {sizes[2]}"
    remedy = f"Typical correlations show from {sizes[0]}; {sooner}."
    return Section("What stays open", f"{prefix}open", lead=(f"{said}.", remedy if seen[0] > 0.0 else ""))


def rows_for_a_finding(release: MomentRelease, comparisons: int) -> int | None:
    """Return the rows that show a correlation of a half between even halves; None if unknown."""
    if release.noise is None or len(release.feature_names) < 2:
        return None
    cells = np.sqrt(release.noise.cell_variances()[1:, 1:]) * np.outer(release.encoding.scale, release.encoding.scale)
    lower, upper = release.schema.feature_bounds
    half = (upper - lower) / 2.0
    typical = np.median((cells / np.outer(half, half))[np.tril_indices(len(half), -1)], keepdims=True)
    seen = smallest_seen(typical**2, np.zeros(1), comparisons, release.noise)
    return max(1, int(float(f"{2.0 * float(seen[0]):.1g}")))


def goals_section(release: MomentRelease, prefix: str) -> Section | None:
    """Return the goals of the schema, met or missed; None without goals."""
    goals = release.goals
    if goals is None:
        return None
    groups = [
        PageTable.of(
            f"{result.goal.question}: relative error of each group",
            [
                ("group", "±", f"limit {100.0 * result.goal.margin:.10g} %"),
                *(
                    (cell, result.text(half), "" if half <= result.goal.margin else "over the limit")
                    for cell, half in zip(result.cells, result.half_widths.tolist(), strict=True)
                ),
            ],
        )
        for result in goals.results
        if result.goal.relative and len(result.cells) > 1
    ]
    tables = (PageTable.of("Goals of the schema", goals.table()), *groups)
    return Section("Goals", f"{prefix}goals", lead=tuple(map(_sentence, goals.heading)), tables=tables)


def asked_section(
    release: MomentRelease, prefix: str, answers: Comparisons, regressions: Sequence[str]
) -> Section | None:
    """Return the section of the answers that were asked for; None without any."""
    labels, parts = labels_of(release), []
    for index, (formula, fit) in enumerate(zip(regressions, answers.fits, strict=True), 1):
        chart = chart_of_coefficients(fit, deviations_of(fit), _MAX_COEFFICIENTS, labels=labels)
        per_unit = chart_of_coefficients(fit, None, _MAX_COEFFICIENTS, labels=labels)
        lines = tuple(
            replace(line, number=unit.number, interval=unit.interval)
            for line, unit in zip(chart.lines, per_unit.lines, strict=True)
        )
        title = f"Coefficients: change of {labels[fit.target]} per unit of the feature (drawn: per standard deviation)"
        chart = replace(chart, lines=lines, title=title, axis="per standard deviation of the feature")
        lead = tuple(map(_sentence, fit.heading))
        parts.append(Section(f"Regression: {formula}", f"{prefix}regression-{index}", lead=lead, charts=(chart,)))

    for index, means in enumerate(answers.means, 1):
        [feature], findings, pairs = means.features, difference_findings(release, means), means.differences.pairs
        said = f"No difference of {labels[feature]} between these groups holds among all comparisons of this page."
        if findings:
            are = "is" if len(findings) == 1 else "are"
            said = f"{len(findings):,} of {len(pairs):,} differences between these groups {are} clear."
        more = len(findings) - MAX_FINDINGS
        left_out = f"{more:,} more clear differences are in the release file." if more > 0 else ""
        section = Section(
            f"Groups: {labels[feature]} by {means.by}",
            f"{prefix}groups-{index}",
            charts=(replace(chart_of_groups(release, means), axis=""),),
            lead=(said,),
            findings=tuple(findings[_MAX_STATED:MAX_FINDINGS]),  # the others are at the head of the page
            remarks=(*means.differences.remarks, left_out),
        )
        parts.append(section)
    return Section("The answers asked for", f"{prefix}asked", parts=tuple(parts)) if parts else None


def coefficient_findings(release: MomentRelease, fit: FittedLine) -> list[str]:
    """Return a sentence for each coefficient that holds among all, the clearest first."""
    held = ", all else in the regression equal" if len(fit.features) > 1 else ""
    labels = labels_of(release)
    two_values = {column.name for column in release.schema.columns if isinstance(column, Boolean)}
    result = []
    for name, holds, each in zip(fit.names, fit.holds_among_all, fit.estimates, strict=True):
        if not holds or not each.estimable:
            continue
        error, reference = each.standard_error, fit.references.get(name.rpartition("=")[0])
        label = labels.get(name, name)
        about = f"per unit of {label}"
        if reference is not None:
            about = f"for {label} than for {labels.get(reference, reference)}"
        elif name in two_values:
            about = f"if {label} is true"
        unit = _unit_of(release, fit.target)
        size, interval = _size_and_interval(each.value, each.lower, each.upper, error, fit.level, unit)
        how = "higher" if each.value >= 0.0 else "lower"
        text = f"{labels[fit.target]} is {how} by {size} {about}{held} ({interval})."
        result.append((abs(each.value) / error if error > 0.0 else np.inf, text))
    return [text for _, text in sorted(result, key=lambda pair: -pair[0])]


def difference_findings(release: MomentRelease, answer: GroupMeans) -> list[str]:
    """Return a sentence for each difference of means that holds among all, the clearest first."""
    differences, [feature], result = answer.differences, answer.features, []
    labels = labels_of(release)
    errors = np.hypot(differences.privacy_noise[0], differences.sampling_noise[0])
    for index, (one, other) in enumerate(differences.pairs):
        value, error = float(differences.difference[0, index]), float(errors[index])
        if not differences.holds_among_all[0, index] or not np.isfinite(value):
            continue
        lower, upper = float(differences.lower[0, index]), float(differences.upper[0, index])
        unit = _unit_of(release, feature)
        size, interval = _size_and_interval(value, lower, upper, error, differences.level, unit)
        names = [labels.get(name, name) for name in (one, other)]
        higher, lower_one = names if value >= 0.0 else names[::-1]
        text = f"Mean of {labels[feature]}: {higher} is higher than {lower_one} by {size} ({interval})."
        result.append((abs(value) / error if error > 0.0 else np.inf, text))
    return [text for _, text in sorted(result, key=lambda pair: -pair[0])]


def _unit_of(release: MomentRelease, feature: str) -> str:
    """Return the unit of differences of a feature, after a space: that of a column of dates."""
    date = dates_in(release.schema).get(feature)
    return "" if date is None else f" {date.unit}"


def _size_and_interval(
    value: float, lower: float, upper: float, error: float, level: float, unit: str
) -> tuple[str, str]:
    """Return the absolute value, and its interval in words, both rounded by the error."""
    least, most = sorted(end if value >= 0.0 else -end for end in (lower, upper))
    [low], [high] = interval_ends(least, most, error)
    interval = f"{format_level(level)} interval {with_minus(low)} to {with_minus(high)}"
    return f"{rounded(abs(value), error)}{unit}", f"{interval}{unit}"


def columns_section(release: MomentRelease, prefix: str, level: float) -> Section:
    """Return the section of all columns by themselves."""
    title, anchor = "The columns", f"{prefix}columns"
    if release.noisy_count is None:
        sums, law = np.diag(release.gram), release.noise
        unknown = np.full(len(sums), np.nan)
        noise = unknown if law is None else np.sqrt(np.diag(law.cell_variances())[1:]) * release.encoding.scale**2
        lines = [
            (name, NOISE if deviation >= value else number(value), number(deviation))
            for name, value, deviation in zip(release.feature_names, sums.tolist(), noise.tolist(), strict=True)
        ]
        head = ("feature", "sum of squares", "± noise")
        table = PageTable.of("Sums of squares, in original units", [head, *lines])
        return Section(title, anchor, lead=(_NOT_RELEASED,), tables=(table,))
    result = release.describe()
    if result.mean is None:
        table = PageTable.of("Features, in original units", result.table())
        return Section(title, anchor, lead=(_NO_MEAN,), tables=(table,), remarks=(result.noise_text,))
    cells = {str(row[0]): (str(row[1]), str(row[3])) for row in result.table()[1:]}
    return _of_columns(
        Section(title, anchor, remarks=tuple(filter(None, [result.scaled_rows]))),
        release,
        cells,
        [result.mean, result.mean_noise, *result.conf_int(level).T],
        level,
    )


def _of_columns(
    section: Section, release: Any, cells: Mapping[str, tuple[str, str]], numbers: Sequence[FloatArray], level: float
) -> Section:
    """Return the section with a table of numbers, and charts of shares."""
    # `cells` hold mean and standard deviation of features as printed, `numbers` the means, their noise, and the ends of
    # intervals.
    labels, place = labels_of(release), {name: index for index, name in enumerate(release.feature_names)}
    means, noise, lower, upper = numbers
    rows, charts, folded = [], [], []
    yes_no: list[IntervalLine] = []
    for column in release.schema.columns:
        names = [name for name in column.feature_names if name in cells]
        if isinstance(column, Boolean | Categorical):
            lines, below = [], []
            for name in names:
                parts = [100.0 * float(each[place[name]]) for each in (means, noise, lower, upper)]
                name_shown = labels[name].rpartition(": ")[2].removeprefix(f"{column.name}=")
                if cells[name][0].startswith(("below", NOISE)):
                    below.append((name_shown, parts[3]))
                    continue
                lines.append(_share(name_shown, *parts))
            if isinstance(column, Boolean):
                yes_no += lines or [
                    IntervalLine(labels[column.name], 0.0, 0.0, end, "", f"below {end:.2g} %") for _, end in below
                ]
                continue
            title = getattr(column, "description", None) or column.name
            hidden = (
                f"Below {max(end for _, end in below):.2g} % each, so that noise hides the share: " if below else ""
            )
            about = (f"{hidden}{', '.join(name for name, _ in below)}.",) if below else ()
            chart = _chart_of_shares(title, level, lines, about)
            if len(names) < _MAX_UNFOLDED:
                charts.append(chart)
            else:
                shown_title = f"{title}: {len(names)} levels"
                folded.append(Section(shown_title, f"{section.anchor}-{column.name}", charts=(chart,), folded=True))
            continue
        for name in names:
            index = place[name]
            if isinstance(column, Date):
                ends = [column.date_text(float(end[index]), float(noise[index])) for end in (lower, upper)]
            else:
                ends = [with_minus(end) for [end] in interval_ends(lower[index], upper[index], noise[index])]
            interval = " to ".join(ends) if cells[name][0] != NOISE and np.isfinite(lower[index]) else "–"
            rows.append((labels[name], with_minus(cells[name][0]), interval, with_minus(cells[name][1])))
    if yes_no:
        charts.insert(0, _chart_of_shares("Yes/no columns", level, yes_no))
    head = ("column", "mean", f"{format_level(level)} interval", "standard deviation")
    keep = 4 if any(row[3] for row in rows) else 3
    tables = (PageTable.of("Columns of numbers", [row[:keep] for row in (head, *rows)]),) if rows else ()
    lead = (f"Bars: shares, with {format_level(level)} intervals.",)
    shares = (Section("Shares", f"{section.anchor}-shares", lead=lead, charts=tuple(charts)), *folded)
    return replace(section, tables=tables, parts=shares if charts or folded else ())


def _chart_of_shares(
    title: str, level: float, lines: Sequence[IntervalLine], about: tuple[str, ...] = ()
) -> IntervalChart:
    within = (0.0, 100.0)
    return IntervalChart(title, "", level, tuple(lines), None, False, from_zero=True, within=within, about=about)


def _share(name: str, share: float, noise: float, lower: float, upper: float) -> IntervalLine:
    """Return the line of a share, all in percent."""
    printed = "–" if np.isnan(lower) else ""
    if not printed:
        [low], [high] = interval_ends(lower, upper, noise)
        printed = f"{low} to {high} %"
    return IntervalLine(name, share, lower, upper, f"{rounded(share, noise)} %", printed)


def relations_section(release: MomentRelease, prefix: str, answers: Comparisons) -> Section | None:
    """Return the picture of all relations, and the clear ones that are not among the findings."""
    title, anchor, answer = "All relations", f"{prefix}relations", answers.correlations
    if answer is None:
        refusal = f"This part cannot be shown: {answers.refusal}"
        return Section(title, anchor, refusal=refusal) if answers.refusal else None
    columns = len(set(answer.columns_of_features))
    if columns < 2:
        return None
    clear = sorted((each for each in relations(answer) if each.pair), key=lambda each: -abs(each.correlation))
    rest = [each.pair for each in clear[MAX_FINDINGS:_MAX_RELATIONS] if each.pair is not None]
    lines = tuple(line_of_pair(answer, pair, labels_of(release)) for pair in rest)
    side = min(0.56 * columns, 9.0)
    named = "; ".join(
        f"{one} and {other}: {each.correlation:+.2f}" for each in clear[:5] for one, other in [each.columns]
    )
    chart = IntervalChart("The other clear relations", "correlation", answer.level, lines, 0.0, within=(-1.0, 1.0))
    return Section(
        title,
        anchor,
        picture=drawn(
            f"{prefix}relations-picture",
            side + 2.0,
            0.72 * side + 0.6,
            lambda ax: draw_association(answer, ax),
            title=" ".join(meaning_of_relations(answer)),
            description=f"{title_of_relations(answer)}. {f'The strongest: {named}.' if named else ''}",
        ),
        charts=(chart,) if lines else (),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}" + ("" if words.endswith(".") else ".") if words else ""


# What a report says of a release of a mean alone, and of counts.

_ALONE = "Only a mean was released: correlations, components and regressions need a second moment."
_BEYOND = "Intervals are for the mean of the table's rows, up to clipping; they do not include sampling error."


def mean_section(release: MeanRelease, level: float) -> Section:
    """Return the section of a mean-only release, with intervals if the noise has a closed form."""
    lost, unknown = set(lost_means(release)), np.full(len(release.mean), np.nan)
    errors = unknown if release.noise is None else np.asarray(release.standard_errors)
    ends = (unknown, unknown) if release.noise is None else release.conf_int(level).T
    cells = {
        name: (NOISE if index in lost else rounded(float(release.mean[index]), float(errors[index])), "")
        for index, name in enumerate(release.feature_names)
    }
    section = Section(
        "The columns",
        "columns",
        lead=(_ALONE,),
        remarks=(_BEYOND if release.noise is not None else release.noise_text,),
    )
    return _of_columns(section, release, cells, [release.mean, errors, *ends], level)


def lost_means(release: MeanRelease) -> list[int]:
    """Find means whose noise exceeds the SD of a guess within the public bounds."""
    if release.schema.row_norm is None:
        return []
    lower, upper = release.schema.feature_bounds
    spreads = (upper - lower) / 12.0**0.5
    return [
        index
        for index, (noise, spread) in enumerate(zip(release.standard_errors, spreads, strict=True))
        if noise >= spread
    ]


_MAX_CELLS = 60
_OF_COUNTS = "Only contingency tables were released: means, correlations and regressions need a release of moments."


def counts_sections(release: CountsRelease, level: float) -> tuple[Section, ...]:
    """Return a section for each table, with shares of its columns and tests of independence."""
    shown: set[str] = set()
    sections = []
    for index, table in enumerate((table.at_level(level) for table in release.tables), start=1):
        # each column once, where its counts have the least noise
        best = [name for name in table.by if release.table(name).standard_error == table.margin(name).standard_error]
        margins = [name for name in best if name not in shown]
        shown |= set(margins)
        head, *cells = table.table()
        hidden = len(cells) - _MAX_CELLS
        caption = "Counts of rows" if hidden <= 0 else "Counts of rows, the first cells"
        sizes = dict(zip(table.by, map(len, table.levels), strict=True))
        pairs = [pair for pair in combinations(table.by, 2) if sizes[pair[0]] * sizes[pair[1]] <= MAX_TESTED]
        tested = [table.cross_table(one, other, level=table.level) for one, other in pairs]
        charts = []
        for name in margins:
            margin = table.margin(name)
            rows, whole = margin.table()[1:], max(margin.n_rows, 1) / 100.0
            numbers = zip(rows, margin.counts.tolist(), margin.conf_int().tolist(), strict=True)
            lines = []
            for (shown_level, cell, share, interval), count, (low, high) in numbers:
                printed = f"{share}, {interval.strip('[]').replace(', ', ' to ')}"
                lines.append(IntervalLine(shown_level, count / whole, low / whole, high / whole, cell, printed))
            charts.append(_chart_of_shares(f"{name}: rows, share, interval", margin.level, lines))
        section = Section(
            f"Counts by {', '.join(table.by)}",
            f"counts-{index}",
            lead=(_OF_COUNTS, *map(_sentence, table.heading)) if index == 1 else tuple(map(_sentence, table.heading)),
            charts=tuple(charts),
            tables=(PageTable.of(caption, [head, *cells[:_MAX_CELLS]]),) if len(table.by) > 1 else (),
            remarks=(
                *table.remarks,
                f"{hidden:,} more cells are in the release." if hidden > 0 else "",
                *(f"{each.by} and {each.other}: {each.test_text}." for each in tested),
            ),
        )
        sections.append(section)
    return tuple(sections)
