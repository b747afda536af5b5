"""Report: one offline page on a release, or the planner page of a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmoments.analysis.answers import confidence_level, count_text
from dpmoments.analysis.confidence import error_rate
from dpmoments.analysis.released import cautions
from dpmoments.analysis.resolvability import largest_holding
from dpmoments.audit.verification import checks
from dpmoments.base.documents import KEEPS_A_FILE, check_output, write_text
from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.message import lines_of
from dpmoments.base.values import no_less
from dpmoments.planning.forecast_table import Forecast
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import AnyRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.profile import REFERENCE_DELTA
from dpmoments.releases.statements import composition_so_far, describe_composition, protected_unit
from dpmoments.reporting.page import PageTable, Section, filled_in
from dpmoments.reporting.planner import planner_page
from dpmoments.reporting.sections import Comparisons, counts_sections, mean_sections, moment_sections
from dpmoments.schema.schema import Schema

_MAX_GROUPS = 30
"""Maximum number of groups on one page."""


def report(
    subject: AnyRelease | Forecast,
    path: str | Path,
    *,
    regressions: Sequence[str] = (),
    groups: Sequence[tuple[str, str]] = (),
    level: float = 0.95,
    summary: bool = False,
    overwrite: bool = False,
) -> None:
    """Write one offline page on a release, or the planner page of a forecast.

    The page of a release has the privacy statement in plain words, what was released and how noisy it is, the correlations
    (cells decided by noise are hatched), the spectrum with the noise floor, requested analyses, limits, and an appendix for
    auditors. It needs no network and no script, and can be printed. Post-processing: it costs no privacy.

    The page of a forecast has forecasts for a few budgets and numbers of rows.

    Parameters
    ----------
    subject : MomentRelease, MeanRelease, CountsRelease, GroupReleases or Forecast
        A grouped release has a chapter of the page for each group.
    path : path
        Where to write; all of it or nothing.
    regressions : sequence of str
        R formulas: ``["income ~ age + C(sex)"]``.
    groups : sequence of pairs of str
        ``[("sex", "hours-per-week")]``: means of the second by the levels of the first.
    level : float
        Confidence level of intervals.
    summary : bool
        If True, only the guarantee, the findings, the first numbers, tables that were asked for, and the limits: one or two
        printed pages.
    overwrite : bool

    Raises
    ------
    ValueError
        If a requested analysis cannot be made from this release, the level is below 0.5, or a forecast has no numbers in
        original units.
    TypeError
        If the subject is neither a release nor a forecast, or an argument is not as described.
    FileExistsError
        If the file exists and ``overwrite`` is False.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dpm.report(released, f"{folder}/report.html", regressions=["x1 ~ x0"])
    ...     "Regression: x1 ~ x0" in Path(folder, "report.html").read_text()
    True
    """
    check_output(path, overwrite=overwrite, taken=KEEPS_A_FILE)
    write_text(_page(subject, _Asked(regressions, groups, level, summary)), path, overwrite=overwrite)


@dataclass(frozen=True)
class _Asked:
    """Requested analyses, their confidence level, and whether only a summary is wanted."""

    regressions: Sequence[str] = ()
    groups: Sequence[tuple[str, str]] = ()
    level: float = 0.95
    summary: bool = False

    def __post_init__(self) -> None:
        confidence_level(self.level)
        if isinstance(self.regressions, str) or not all(isinstance(formula, str) for formula in self.regressions):
            raise InputTypeError("regressions is a list of R formulas: regressions=['income ~ age + C(sex)']")
        pairs = [pair for pair in self.groups if isinstance(pair, tuple | list) and len(pair) == 2]
        if len(pairs) < len(self.groups) or not all(isinstance(name, str) for pair in pairs for name in pair):
            raise InputTypeError(
                "groups is a list of pairs, a column of levels and a feature: groups=[('sex', 'hours-per-week')]"
            )


def _page(subject: object, asked: _Asked) -> str:
    """Return the page as text, by the kind of subject."""
    analyses = bool(asked.regressions or asked.groups)
    if isinstance(subject, Forecast):
        if analyses or asked.summary:
            raise InputValueError(
                "a forecast has no data: regressions, groups and summary are for the report of a release"
            )
        return planner_page(subject)

    if isinstance(subject, MomentRelease):
        size, warned = ("Rows", subject.describe().rows_text), [message.text() for message in cautions(subject)]
        return _page_of_release(subject, size, _chapters([("", "", subject)], asked), warned, asked)

    if isinstance(subject, MeanRelease | CountsRelease):
        if isinstance(subject, MeanRelease):
            held, sections, noise = "a mean was", mean_sections(subject, asked.level), None
        else:
            held, sections = "counts were", counts_sections(subject, asked.level)
            noise = min(table.total_error for table in subject.tables)
        if analyses:
            raise InputValueError(
                "regressions and group means need count, mean and second moment (dpmoments.release), but only "
                f"{held} released"
            )
        size = "Rows", count_text(subject.n_rows, 0.0 if subject.count_is_public else noise)
        warned = [message.text() for message in subject.warnings]
        return _page_of_release(subject, size, [("", sections)], warned, asked)

    if not isinstance(subject, GroupReleases):
        raise InputTypeError(
            f"a report needs a release or a forecast, got {type(subject).__name__}: load a file with dpmoments.load"
        )
    by = subject.by.name
    if len(subject) > _MAX_GROUPS:
        raise InputValueError(
            f"the release has {len(subject)} groups by {by}, but a page holds at most {_MAX_GROUPS}: write the "
            "report of one, groups['level'], or save each in its own file"
        )
    named = [(f"{by}={name}", one) for name, one in subject.items()]
    groups = [(name.replace("=", " = ", 1), f"group-{index}-", one) for index, (name, one) in enumerate(named, 1)]
    size = "Groups", f"{len(subject)}, by {by}: one release each"
    warned = [message.within(name).text() for name, one in named for message in cautions(one)]
    return _page_of_release(subject, size, _chapters(groups, asked), warned, asked)


def _chapters(
    releases: Sequence[tuple[str, str, MomentRelease]], asked: _Asked
) -> list[tuple[str, tuple[Section, ...]]]:
    """Return the chapters of releases, each with a heading and the prefix of its anchors."""
    # Findings are by one correction over all tables of the page: at most 5 % chance that any of them is false.
    answers = [Comparisons.of(release, asked.regressions, asked.groups, asked.level) for _, _, release in releases]
    p_values, counts_as = (np.concatenate(parts) for parts in zip(*(each.comparisons for each in answers), strict=True))
    cutoff = largest_holding(p_values, counts_as, asked.level)
    return [
        (name, moment_sections(release, prefix, each.with_cutoff(cutoff), asked.regressions))
        for (name, prefix, release), each in zip(releases, answers, strict=True)
    ]


def _page_of_release(
    release: AnyRelease,
    size: tuple[str, str],
    chapters: Sequence[tuple[str, tuple[Section, ...]]],
    warned: Sequence[str],
    asked: _Asked,
) -> str:
    first, privacy = release.runs[0], release.privacy
    power = release.privacy_curve.attacker_power(_FALSE_ALARMS)
    features, columns = len(first.feature_names), len(first.schema.table_columns)
    named = ", ".join(dict.fromkeys(run.mechanism for run in release.runs))
    pooled = isinstance(release, MomentRelease) and len(release.runs) > 1
    findings = _Findings.of(chapters, asked.level)
    return filled_in(
        "report.html",
        summary=asked.summary,
        summary_sections=_summary_sections(chapters, findings, first.schema) if asked.summary else (),
        title=f"{'Summary of' if asked.summary else 'Report on'} a {'private ' if privacy.private else ''}release"
        + ("" if release.dataset is None else f" of {release.dataset}"),
        release=release,
        cautions=warned,
        facts=[
            ("Table", release.dataset or "not named by the curator"),
            size,
            ("Columns", f"{columns}, as {features} features" if features != columns else f"{features}"),
            ("Protected", "one row" if privacy.privacy_unit is None else privacy.privacy_unit.description),
            ("Budget", f"{privacy.budget}, {privacy.neighbors}"),
            ("Mechanism", f"{named}, {len(release.runs)} releases pooled" if pooled else named),
            ("Release", release.id),
        ],
        guarantee_in_short=_guarantee_in_short(release, power),
        findings=findings,
        promise=_describe_promise(release, power),
        guarantee=[line for line in privacy.describe().split("\n") if not line.startswith("- ")],
        rules=lines_of(privacy.rules),
        receipt=PageTable.of(
            "Every noise draw, then the total and the stated budget",
            [("query", "noise distribution", "sensitivity", "loss"), *release.receipt.lines()],
        ),
        on_a_unit=release.receipt.on_a_unit_text or "",
        chapters=chapters,
        limits=_describe_limits(release, asked.level),
        appendix=_appendix(release),
    )


# The head of a page: what is clear over all its tables together, and what is not.

_MAX_FINDINGS = 5


@dataclass(frozen=True)
class _Findings:
    about: str
    stated: tuple[str, ...]
    names: frozenset[str]
    unresolved: tuple[str, ...]

    @classmethod
    def of(cls, chapters: Sequence[tuple[str, tuple[Section, ...]]], level: float) -> _Findings | None:
        """Return the findings; None for a page without comparisons."""
        parts = [(f"{name}: " if name else "", part) for name, sections in chapters for part in sections]
        every = [(prefix, statement) for prefix, part in parts for statement in part.statements]
        if not every:
            return None
        certain = sum(statement.clear for _, statement in every)
        # requested analyses first, then the clearest of each section in turn
        queues = [
            [
                (prefix, each)
                for each in sorted(part.statements, key=lambda statement: -statement.strength)
                if each.clear
            ]
            for prefix, part in reversed(parts)
        ]
        turns = [queue[turn] for turn in range(_MAX_FINDINGS) for queue in queues if turn < len(queue)][:_MAX_FINDINGS]
        chance = f"at most {100.0 * error_rate(level):.3g} % chance that any of them is false"
        about = f"{certain:,} of {len(every):,} comparisons on this page hold among all of them ({chance})." + (
            " The clearest:" if certain > _MAX_FINDINGS else ""
        )
        if not certain:
            about = f"None of {len(every):,} comparisons on this page holds among all of them."
        unresolved = tuple(f"{prefix}{words}" for prefix, part in parts for words in part.unresolved)
        names = frozenset(name for _, each in turns for name in each.names)
        return cls(about, tuple(f"{prefix}{each.text}" for prefix, each in turns), names, unresolved)


_MAX_SUMMARY_ROWS = 12


def _summary_sections(
    chapters: Sequence[tuple[str, tuple[Section, ...]]], findings: _Findings | None, schema: Schema
) -> list[Section]:
    """Return the first and the requested sections of a page, with their first tables, shortened."""
    named = frozenset() if findings is None else findings.names
    columns = {column.name for column in schema.columns}
    # the features that findings name come first, then columns of one feature: numbers before levels
    sections = chapters[0][1] if len(chapters) == 1 else ()
    shown = [part for index, part in enumerate(sections) if part.requested or (index == 0 and part.tables)]
    result = []
    for part in shown:
        table = part.tables[0]
        names = [row[0].text for row in table.rows]
        order = sorted(range(len(names)), key=lambda index: (names[index] not in named, names[index] not in columns))
        if len(names) > _MAX_SUMMARY_ROWS:
            rows = tuple(table.rows[index] for index in sorted(order[:_MAX_SUMMARY_ROWS]))
            table = replace(table, rows=rows, caption=f"{len(rows)} of {len(names):,} rows. {table.caption}")
        result.append(replace(part, picture=None, tables=(table,)))
    return result


def _guarantee_in_short(release: AnyRelease, power: float) -> str:
    privacy = release.privacy
    if not privacy.private:
        return "This release protects nobody, since its noise can be computed and subtracted."
    if power > _CERTAIN:
        return "This budget promises almost nothing: someone who knows all other rows may recognize a row in nearly all cases."
    unit = privacy.privacy_unit
    whom = "row" if unit is None else f"{unit.column}"
    question = (
        f"one of two versions of a {whom} against the other"
        if privacy.neighbors.table_size_is_public
        else f"that a certain {whom} is in the table"
    )
    return (
        f"Someone who knows everything else and accepts 5 % false alarms can detect {question} in at most "
        f"{no_less(100.0 * power, 3)} % of the cases in which it is so (5 % by guessing)."
    )


# What no other part of the library says: what the guarantee means, and what it does not cover.

_FALSE_ALARMS = 0.05
_CERTAIN = 0.9995
"""Share above which success counts as certain."""


def _describe_promise(release: AnyRelease, power: float) -> tuple[str, ...]:
    """Describe the guarantee; ``power`` bounds the success of a test with 5 % false alarms."""
    privacy = release.privacy
    if not privacy.private:
        return (
            "This release protects nobody: its noise came from a seed with which anyone can compute and subtract "
            "it. It is for tests only, and must not be published if the table is confidential.",
        )
    unit = protected_unit(release)
    everything = (
        "The numbers on this page follow from sums over a confidential table that were released once. Random "
        f"noise was added to them; it limits how much they reveal about {unit}. Further computations on them cost "
        "no privacy."
    )
    if privacy.neighbors.table_size_is_public:
        question, wrong, right = "is A, not B", "it is B", "A in at most {share} % of the cases in which it is A"
        subject = "a certain row of the table"
    elif privacy.privacy_unit is None:
        question, wrong, right = "is in the table", "it is not", "it in at most {share} % of the cases in which it is"
        subject = "a certain row"
    else:
        question, wrong, right = (
            f"has rows of a certain {privacy.privacy_unit.column}",
            "it has none",
            "them in at most {share} % of the cases in which it has",
        )
        subject = "the table"
    detected = (
        "may succeed in nearly all cases: against such an attacker this budget promises almost nothing"
        if power > _CERTAIN
        else f"detects {right.format(share=no_less(100.0 * power, 3))} (guessing: 5 %)"
    )
    attacker = (
        f"What that means: suppose someone knows all other rows and how this page was made, and tests whether {subject} "
        f"{question}. A test that says so by mistake in 5 % of the cases in which {wrong} {detected}. This holds whatever else "
        "they know or compute."
    )
    return everything, attacker, composition_so_far(release)


def _describe_limits(release: AnyRelease, level: float) -> list[str]:
    """Describe what a reader should not conclude from the page."""
    treated = (
        "Rows were dropped, and missing values handled, by the rules of the schema before anything was counted: the counts "
        "describe the resulting table."
        if release.runs[0].holds_counts
        else "Values were clipped to the bounds, and missing values were handled by the rules of the schema, before "
        "anything was computed: the numbers describe the resulting table."
    )
    said = [
        release.privacy.unit_message.text(),
        "Privacy losses add up: every other release about the same people adds to them. This page covers only "
        "the releases that it names.",
        "Bounds, levels and other settings of the schema are assumed to be public knowledge. If they were read "
        "from the table, they leak information that the noise does not protect.",
        treated,
        "“Not clear” does not mean “no effect”: this release cannot show the sign, if there is one. Most of the error "
        "is privacy noise in “(noise)”, and chance in the choice of rows in “(too few rows)”.",
        f"A verdict follows from its own interval: without any effect, about {100.0 * error_rate(level):.3g} in 100 are wrong. "
        "Only those that hold among all comparisons of the page are findings.",
    ]
    if isinstance(release, MomentRelease | GroupReleases):
        rows = "rows" if release.privacy.rows_per_unit == 1 else "privacy units"
        said += [
            "“± noise” is the privacy noise (1 SD). An interval includes it and the sampling error of independent "
            f"{rows}, but no errors in the data.",
            f"Means, correlations and components are shown after the repair {str(release.runs[0].repair)!r}, which "
            "corrects impossible values; noise and intervals are stated for the unrepaired numbers.",
            "Standard errors of regressions assume equal residual variances, unless the schema has the products of "
            "the columns.",
            f"Even without noise, about {100.0 * error_rate(level):.3g} in 100 of the {level:.0%} intervals miss the true value.",
        ]
    said.append(
        "Anyone can check from the file that the receipt adds up; only the curator can vouch that the noise was "
        "drawn as it states."
    )
    return said


# The appendix of a report: what an auditor asks for, and what can be checked of the file.


def _appendix(release: AnyRelease) -> dict[str, Any]:
    statement = release.auditor_statement()
    head, *points = statement.profile.table()
    least = statement.profile.epsilon_at_reference
    reasons = dict.fromkeys(getattr(run, "chosen_because", None) for run in release.runs)
    outcomes = {None: "undecided", True: "holds", False: "FAILED"}
    return {
        "levels": [  # warnings are at the head of the page
            replace(level, stated=tuple(line for line in level.stated if not line.startswith("Warning: ")))
            for level in statement.levels
        ],
        "chosen": [f"Why this mechanism: {reason.text()}" for reason in reasons if reason is not None],
        "composition": describe_composition(release),
        "at_reference": ""
        if least is None
        else f"At δ = {REFERENCE_DELTA:g} the smallest known ε is {no_less(least, 4)}.",
        "profile": PageTable.of(
            "Tightest known privacy profile", [(head[0], head[1], "exact or bound", head[3]), *points]
        ),
        "checks": PageTable.of(
            "Consistency checks of the file",
            [
                ("check", "outcome", "detail"),
                *((check.what, outcomes[check.passed], check.detail) for check in checks(release)),
            ],
        ),
        "schema": PageTable.of(
            "Columns and their public values",
            [
                ("column", "kind", "public values", "missing values", "description"),
                *(
                    (column.name, column.kind, column.public_values_text, column.missing, column.description or "")
                    for column in release.runs[0].schema.columns
                ),
            ],
        ),
        "runs": PageTable.of(
            "How it was made",
            [
                ("run", "mechanism", "options", "settled by its plan"),
                *(
                    (str(index), run.mechanism, _listed(run.mechanism_options), _listed(getattr(run, "details", {})))
                    for index, run in enumerate(release.runs, 1)
                ),
            ],
        ),
    }


def _listed(options: Mapping[str, object]) -> str:
    return "; ".join(f"{key} = {value}" for key, value in options.items()) or "none"
