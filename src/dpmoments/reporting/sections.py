"""Sections of a report: moments, correlations, spectrum, and requested analyses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpmoments.analysis.answers import interval_ends, intervals, number, rounded
from dpmoments.analysis.components import SCALINGS
from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.cross_table import MAX_TESTED
from dpmoments.analysis.description import Description
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.group_means import GroupDifferences, GroupMeans
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.resolvability import (
    NOT_CLEAR_NOISE,
    NOT_CLEAR_ROWS,
    NOT_ESTIMABLE,
    UNCLEAR,
    smallest_seen,
)
from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError, shown
from dpmoments.plots.components import draw_spectrum
from dpmoments.plots.intervals import deviations_of, draw_coefficients, draw_groups
from dpmoments.plots.matrices import draw_correlations
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.reporting.page import NOISE, PageTable, Section, Statement, drawn
from dpmoments.schema.columns import Boolean

_SHOWN_PAIRS = 60
_OF_PAIRS = ("correlation", "privacy_noise", "sampling_noise", "lower", "upper")
_SHOWN_COMPONENTS = 15
_NAMED_PAIRS = 5
_MAX_COEFFICIENTS = 25
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
                    f"'{of}' has {len(answer.features)} features, but a plot shows one: name one, such as "
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
        correlations = self.correlations and replace(self.correlations, cutoff=cutoff)
        fits = tuple(replace(fit, cutoff=cutoff) for fit in self.fits)
        means = tuple(replace(each, differences=replace(each.differences, cutoff=cutoff)) for each in self.means)
        return replace(self, correlations=correlations, fits=fits, means=means)


def moment_sections(
    release: MomentRelease, prefix: str, answers: Comparisons, regressions: Sequence[str]
) -> tuple[Section, ...]:
    """Return the sections of one release; ``prefix`` precedes its anchors and picture names."""
    result = [_numbers(release, prefix)]
    if release.noisy_count is None:
        return tuple(result)
    correlations = answers.correlations
    if correlations is not None:
        result.append(_correlations(release, prefix, correlations))
    elif answers.refusal:
        refusal = f"This part cannot be shown: {answers.refusal}"
        result.append(Section("Correlations", f"{prefix}correlations", refusal=refusal))
    try:
        result.append(_spectrum(release, prefix, 0.95 if correlations is None else correlations.level))
    except ValueError as refused:
        refusal = f"This part cannot be shown: {refused}"
        result.append(Section("Spectrum", f"{prefix}spectrum", refusal=refusal))
    for index, (formula, fit) in enumerate(zip(regressions, answers.fits, strict=True), 1):
        result.append(_regression(release, formula, fit, f"{prefix}regression-{index}"))
    for index, means in enumerate(answers.means, 1):
        result.append(_group_means(means, f"{prefix}groups-{index}"))
    return tuple(result)


def _numbers(release: MomentRelease, prefix: str) -> Section:
    result = release.describe()
    lead = [f"Rows: {result.rows_text}. {_kept(result)}"]
    if release.noisy_count is None:
        lead = [f"Rows: {result.rows_text}.", _NOT_RELEASED]
    elif release.noisy_sum is None:
        lead.append(_NO_MEAN)
    tables = [PageTable.of("Features, in original units", result.table())]
    if release.noisy_count is None:
        tables = [_sums_of_squares(release)]
    return Section(
        "What was released, and how noisy it is",
        f"{prefix}released",
        lead=tuple(filter(None, lead)),
        tables=tuple(tables),
        remarks=tuple(filter(None, [result.noise_text, result.scaled_rows])),
        warning=result.warning,
    )


def _sums_of_squares(release: MomentRelease) -> PageTable:
    """Tabulate the diagonal of the Gram matrix, with "noise" in place of noise-dominated sums."""
    sums, law = np.diag(release.gram), release.noise
    unknown = np.full(len(sums), np.nan)
    noise = unknown if law is None else np.sqrt(np.diag(law.cell_variances())[1:]) * release.encoding.scale**2
    lines = [
        (name, NOISE if deviation >= value else number(value), number(deviation))
        for name, value, deviation in zip(release.feature_names, sums.tolist(), noise.tolist(), strict=True)
    ]
    return PageTable.of("Sums of squares, in original units", [("feature", "sum of squares", "± noise"), *lines])


def _kept(answer: Description) -> str:
    """Describe how many means and standard deviations are noise-dominated."""
    if answer.mean is None or not np.isfinite(answer.mean_noise).any():
        return ""
    rows = answer.table()[1:]
    lost, total = [sum(row[column] == NOISE for row in rows) for column in (1, 3)], len(rows)
    n_limits = sum(cell.startswith("below") for row in rows for cell in row[1:])
    limits = (
        f"{n_limits:,} of {2 * total:,} means and standard deviations have an upper limit only (“below”): noise does not "
        "distinguish them from 0."
        if n_limits
        else ""
    )
    if not any(lost):
        return limits or "No mean and no standard deviation is noise-dominated."
    means, spreads = (f"{number_lost:,}" if number_lost else "none" for number_lost in lost)
    return (
        f"Noise-dominated: {means} of {total:,} means and {spreads} of {total:,} standard deviations. The table "
        f"shows “noise” for them: no more is known than the public bounds say. {limits}".rstrip()
    )


def _correlations(release: MomentRelease, prefix: str, result: Correlations) -> Section:
    size = len(result.feature_names)
    side = 0.62 * size if size <= 12 else 0.24 * size
    width, height = min(max(side + 2.8, 5.2), 9.6), min(max(side + 2.2, 4.6), 9.2)
    title, (head, *lines), hidden = f"Heat map: {result.heading[0]}", *_pair_lines(result)
    clear = [f"{row[0]}: {row[1]}, {row[5]}" for row in lines if row[6]][:_NAMED_PAIRS]
    clearest = f"Clearest pairs: {'; '.join(clear)}." if clear else "No pair holds among all."
    statements = _pair_statements(result)
    caption = "The clearest pairs" if hidden else "All pairs"
    more = f"{hidden:,} more pairs are in the release file." if hidden else ""
    return Section(
        "Correlations",
        f"{prefix}correlations",
        lead=(
            _sentence(result.heading[0]),
            "Hatched pairs do not hold among all comparisons of this page.",
        ),
        picture=drawn(
            f"{prefix}correlation-picture",
            width,
            height,
            lambda ax: draw_correlations(replace(result, warning=""), ax),
            title=title,
            description=f"A square cell for every two of {size} features. {clearest} The table below has the numbers",
        ),
        tables=(PageTable.of(f"{caption}: each with its noise, interval and sign", [head, *lines]),),
        remarks=tuple(filter(None, [more, "" if result.noise_known else describe_law(None)])),
        warning=result.warning,
        statements=statements,
        unresolved=_unresolved_pairs(release, result, len(statements)),
    )


def _pair_lines(answer: Correlations) -> tuple[list[Sequence[str]], int]:
    """Return the lines of a table of pairs, head first, and the number of pairs that have none."""
    values, columns = answer.columns(), dict(zip(answer.feature_names, answer.columns_of_features, strict=True))
    alike: dict[tuple[str, str], list[int]] = {}
    for index in answer._shown:
        features = values["feature"][index], values["other"][index]
        of = columns[features[0]], columns[features[1]]
        alike.setdefault(features if values["holds_among_all"][index] or of == features else of, []).append(index)

    # pairs of levels that do not hold among all are one line for their two columns
    alone = [index for indices in alike.values() if len(indices) == 1 for index in indices]
    head, *rows = answer.table_of(alone[:_SHOWN_PAIRS])
    told = len(rows)
    for (one, other), indices in alike.items():
        if len(indices) == 1 or len(rows) == _SHOWN_PAIRS:
            continue
        part = {name: np.array([values[name][index] for index in indices], dtype=float) for name in _OF_PAIRS}
        size, privacy, sampling = (float(np.fmax.reduce(np.abs(part[name]))) for name in _OF_PAIRS[:3])
        error = math.hypot(privacy, sampling)
        sizes = [rounded(size, error), rounded(privacy, privacy), rounded(sampling, sampling)]
        known = not np.isnan(part[_OF_PAIRS[0]]).any()  # one that is not estimable may be of any size
        sizes = sizes if known else ["–"] * len(sizes)
        [interval] = intervals(part["lower"].min(), part["upper"].max(), error)
        clear = sum(values["verdict"][index] not in UNCLEAR for index in indices)
        rows.append(
            (
                f"{one} ~ {other}, {len(indices):,} pairs of levels",
                *(each if each == "–" else f"≤ {each}" for each in sizes),
                interval,
                f"{clear:,} clear by themselves" if clear else "not clear" if known else "not clear, or not estimable",
                "",
            )
        )
        told += len(indices)
    return [head, *rows], len(answer._shown) - told


def _pair_statements(answer: Correlations) -> tuple[Statement, ...]:
    if answer.p_value is None:
        return ()
    errors, result = np.hypot(answer.privacy_noise, answer.sampling_noise), []
    for row, other in zip(*np.tril_indices(len(answer.feature_names), -1), strict=True):
        if not (verdict := answer.verdict[row][other]):
            continue
        value, error = float(answer.correlation[row, other]), float(errors[row, other])
        [low], [high] = interval_ends(answer.lower[row, other], answer.upper[row, other], error)
        names = answer.feature_names[other], answer.feature_names[row]
        words = (
            f"{names[0]} and {names[1]}: {verdict} correlation of {rounded(value, error)} "
            f"({answer.level:.0%} interval {low} to {high})."
        )
        result.append(Statement(words, names, abs(value), bool(answer.holds_among_all[row, other])))
    return tuple(result)


def _unresolved_pairs(release: MomentRelease, answer: Correlations, compared: int) -> tuple[str, ...]:
    """Describe how many pairs are not clear, and what correlation more budget would show."""
    first, second = np.tril_indices(len(answer.feature_names), -1)
    said = [answer.verdict[row][other] for row, other in zip(first, second, strict=True)]
    lost = sum(word in (NOT_CLEAR_NOISE, NOT_ESTIMABLE) for word in said)
    few = sum(word == NOT_CLEAR_ROWS for word in said)
    if not lost + few or release.noise is None:
        return ()
    counted = np.array([bool(word) for word in said])
    parts = [noise[first, second][counted] ** 2 for noise in (answer.privacy_noise, answer.sampling_noise)]
    known = np.isfinite(parts[0] + parts[1])
    counts = ((lost, "privacy noise"), (few, "too few rows"))
    reasons = [f"{count:,} for {reason}" for count, reason in counts if count]
    words = f"{lost + few:,} of {compared:,} correlations are not clear, {' and '.join(reasons)}."
    if 2 * known.sum() < len(known):  # the pairs that are known are not typical
        return (f"{words} Noise hides how much most columns vary: for a typical pair no correlation can be seen here.",)
    privacy, sampling = (np.median(part[known], keepdims=True) for part in parts)
    seen = [float(smallest_seen(privacy * share, sampling, compared, release.noise)[0]) for share in (1.0, 0.25, 0.0)]
    sizes = [f"about {size:.2g} or more" if size < 1.0 else "more than 1 (none can)" for size in seen]
    return (
        f"{words} For a typical pair, a correlation has to be {sizes[0]} to be seen here; {sizes[1]} with twice the budget, "
        f"and {sizes[2]} without any privacy noise (seen in 80 % of cases).",
    )


def _spectrum(release: MomentRelease, prefix: str, level: float) -> Section:
    result = release.pca(scaling="bounds", level=level)
    certain, k = int((~result.is_noise).sum()), len(result.explained_variance)
    known = result.noise is not None
    said = (
        f"{certain} of {k} components are above the noise floor" if known else "the noise on the components is unknown"
    )
    head, *rows = result.table()
    caption = "The components" if k <= _SHOWN_COMPONENTS else f"The first {_SHOWN_COMPONENTS} of {k} components"
    shares = [
        f"component {index}: {share:.0%} of the variance"
        for index, (share, noise) in enumerate(zip(result.explained_variance_ratio, result.is_noise, strict=True), 1)
        if not noise
    ][:_NAMED_PAIRS]
    about = "principal components" if result.centered else "principal directions of the second moment about zero"
    return Section(
        "Spectrum against the noise floor",
        f"{prefix}spectrum",
        lead=(
            _sentence(f"{said} ({about}, {SCALINGS[result.scaling]})"),
            "A component below the floor could be pure noise: its direction has no information about the table."
            if known
            else "",
        ),
        picture=drawn(
            f"{prefix}spectrum-picture",
            min(max(5.6, 3.2 + 0.25 * k), 9.6),
            4.6,
            lambda ax: draw_spectrum(replace(result, warning=""), ax),
            title=f"Variances of the components, and the noise floor: {said}",
            description=f"{'; '.join(shares)}. The table below has the numbers"
            if shares
            else "No component is above the floor",
        ),
        tables=(
            PageTable.of(
                f"{caption}: variance, interval, share, and largest loadings",
                [("component", *head[1:]), *rows[:_SHOWN_COMPONENTS]],
            ),
        ),
        remarks=tuple(line for line in result.remarks if line not in ("", result.warning)),
        warning=result.warning,
    )


def _regression(release: MomentRelease, formula: str, fit: FittedLine, anchor: str) -> Section:
    head, *rows = fit.table()
    clear = [name for name, holds in zip(fit.names, fit.holds_among_all, strict=True) if holds]
    listed = f": {', '.join(clear[:10])}{' and others' if len(clear) > 10 else ''}" if clear else ""
    description = (
        f"{len(clear)} of {len(fit.features)} coefficients hold among all{listed}. The table below has the numbers"
    )
    if fit.equations is None:
        description = "Noise unknown: coefficients have no intervals"
    shown = min(len(fit.features), _MAX_COEFFICIENTS)
    return Section(
        f"Regression: {formula}",
        anchor,
        lead=tuple(map(_sentence, fit.heading)),
        picture=drawn(
            f"{anchor}-picture",
            8.0,
            min(max(2.8, 2.0 + 0.3 * shown), 11.0),
            lambda ax: draw_coefficients(replace(fit, warning=""), deviations_of(release, fit), _MAX_COEFFICIENTS, ax),
            title=f"Coefficients of the regression of {fit.target}, each per standard deviation of its feature, with intervals",
            description=description,
        ),
        tables=(
            PageTable.of(
                f"Coefficients of {formula}, in units of the target per unit of the feature",
                [("feature", *head[1:]), *rows],
            ),
        ),
        remarks=tuple(line for line in fit.remarks if line and line != fit.warning),
        warning=fit.warning,
        statements=_coefficient_statements(release, fit),
        unresolved=_unclear_of(f"Coefficients of {formula}", fit.verdict),
        requested=True,
    )


def _coefficient_statements(release: MomentRelease, fit: FittedLine) -> tuple[Statement, ...]:
    held = ", all else in the regression equal" if len(fit.features) > 1 else ""
    two_values = {column.name for column in release.schema.columns if isinstance(column, Boolean)}
    result = []
    for name, verdict, holds, each in zip(fit.names, fit.verdict, fit.holds_among_all, fit.estimates, strict=True):
        if not verdict or not each.estimable:
            continue
        error, reference = each.standard_error, fit.references.get(name.rpartition("=")[0])
        how = "higher" if each.value >= 0.0 else "lower"
        about = f"per unit of {name}"
        if reference is not None:
            about = f"for {name} than for {reference}"
        elif name in two_values:
            about = f"if {name} is true"
        size, interval = _size_and_interval(each.value, each.lower, each.upper, error, fit.level)
        text = f"{fit.target} is {how} by {size} {about}{held} ({interval})."
        strength = abs(each.value) / error if error > 0.0 else np.inf
        result.append(Statement(text, (fit.target, name), strength, bool(holds)))
    return tuple(result)


def _size_and_interval(value: float, lower: float, upper: float, error: float, level: float) -> tuple[str, str]:
    """Return the absolute value, and its interval in words, both rounded by the error."""
    least, most = sorted(end if value >= 0.0 else -end for end in (lower, upper))
    [low], [high] = interval_ends(least, most, error)
    return rounded(abs(value), error), f"{level:.0%} interval {low} to {high}"


def _unclear_of(what: str, verdicts: Iterable[str]) -> tuple[str, ...]:
    """Describe how many verdicts of a table state no finding, by reason."""
    said = [word for word in verdicts if word]
    reasons = [f"{said.count(word):,} of {len(said):,} {word}" for word in UNCLEAR if word in said]
    return (f"{what}: {' and '.join(reasons)}.",) if reasons else ()


def _group_means(answer: GroupMeans, anchor: str) -> Section:
    [feature] = answer.features
    differences, rows = answer.differences, answer.table()
    said = [f"{row[1]}: {row[4]}, {row[7]}" for row in rows[1:]]
    tables = [PageTable.of(f"Mean of {feature} by {answer.by}", rows)]
    if differences.pairs:
        caption = f"Differences of the means of {feature} by {answer.by}, pair by pair"
        tables.append(PageTable.of(caption, [row[1:] for row in differences.table()]))
    return Section(
        f"Groups: {feature} by {answer.by}",
        anchor,
        picture=drawn(
            f"{anchor}-picture",
            8.0,
            min(max(2.8, 2.0 + 0.3 * len(answer.groups)), 11.0),
            lambda ax: draw_groups(replace(answer, warning=""), ax),
            title=f"Mean of {feature} by {answer.by}, with intervals",
            description="; ".join(said[:12]) + ("; and others" if len(said) > 12 else ""),
        ),
        tables=tuple(tables),
        remarks=tuple(line for line in answer.remarks if line not in ("", answer.warning) and "\n" not in line),
        warning=answer.warning,
        statements=_difference_statements(answer),
        unresolved=_unclear_of(
            f"Differences of {feature} by {answer.by}", [word for words in differences.verdict for word in words]
        ),
        requested=True,
    )


def _difference_statements(answer: GroupMeans) -> tuple[Statement, ...]:
    differences, [feature], result = answer.differences, answer.features, []
    errors = np.hypot(differences.privacy_noise[0], differences.sampling_noise[0])
    for index, (one, other) in enumerate(differences.pairs):
        value, error = float(differences.difference[0, index]), float(errors[index])
        lower, upper = float(differences.lower[0, index]), float(differences.upper[0, index])
        size, interval = _size_and_interval(value, lower, upper, error, differences.level)
        higher, other = (one, other) if value >= 0.0 else (other, one)
        result.append(
            Statement(
                f"Mean of {feature}: {higher} is higher than {other} by {size} ({interval}).",
                (feature, one, other),
                abs(value) / error if error > 0.0 else np.inf,
                bool(differences.holds_among_all[0, index]),
            )
        )
    return tuple(result)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}" + ("" if words.endswith(".") else ".") if words else ""


# What a report says of a release of a mean alone.

_ALONE = "Only a mean was released: correlations, components and regressions need a second moment."
_BEYOND = "Intervals are for the mean of the table's rows, up to clipping; they do not include sampling error."


def mean_sections(release: MeanRelease, level: float) -> tuple[Section, ...]:
    """Return the section of a mean-only release, with intervals if the noise has a closed form."""
    rows = [list(row) for row in release.table()]
    if release.noise is not None:
        rows[0].append(f"{level:.0%} interval")
        for row, (low, high) in zip(rows[1:], release.conf_int(level).tolist(), strict=True):
            row.append(f"[{number(low)}, {number(high)}]")
    lost = _lost(release)
    for index in lost:
        rows[index + 1][1] = "noise"
    said = (
        f"{len(lost)} of {len(rows) - 1} means are noise-dominated: no more is known than the public bounds say."
        if lost
        else ""
    )
    return (
        Section(
            "What was released, and how noisy it is",
            "released",
            lead=tuple(filter(None, [_ALONE, said])),
            tables=(PageTable.of("The mean of every feature, in original units", rows),),
            remarks=(release.noise_text, _BEYOND if release.noise is not None else ""),
            warning=" ".join(message.text() for message in release.warnings),
        ),
    )


_MAX_CELLS = 60
_OF_COUNTS = "Only contingency tables were released: means, correlations and regressions need a release of moments."


def counts_sections(release: CountsRelease, level: float) -> tuple[Section, ...]:
    """Return a section for each table, with the tests of independence of its columns."""
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
        tables = [PageTable.of(caption, [head, *cells[:_MAX_CELLS]])]
        if len(table.by) > 1:
            tables += [PageTable.of(f"Margin: {name}", table.margin(name).table()) for name in margins]

        sizes = dict(zip(table.by, map(len, table.levels), strict=True))
        pairs = [pair for pair in combinations(table.by, 2) if sizes[pair[0]] * sizes[pair[1]] <= MAX_TESTED]
        tested = [table.cross_table(one, other, level=table.level) for one, other in pairs]
        section = Section(
            f"Counts by {', '.join(table.by)}",
            f"counts-{index}",
            lead=(_OF_COUNTS, *table.heading) if index == 1 else table.heading,
            tables=tuple(tables),
            remarks=(
                *table.remarks,
                f"{hidden:,} more cells are in the release." if hidden > 0 else "",
                *(f"{each.by} and {each.other}: {each.test_text}." for each in tested),
            ),
        )
        sections.append(section)
    return tuple(sections)


def _lost(release: MeanRelease) -> list[int]:
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
