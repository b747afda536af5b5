"""Report: one offline page on a release, or the planner page of a forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmoments.analysis.answers import confidence_level, count_text, rounded
from dpmoments.analysis.confidence import error_rate, largest_holding
from dpmoments.analysis.released import cautions
from dpmoments.audit.verification import checks
from dpmoments.base.documents import KEEPS_A_FILE, check_output, write_text
from dpmoments.base.errors import InputTypeError, InputValueError, wrong_type
from dpmoments.base.message import lines_of
from dpmoments.base.values import no_less
from dpmoments.planning.changes import takes_to_read
from dpmoments.planning.forecast_noise import clear_from
from dpmoments.planning.forecast_table import MEANING, Forecast, clear_by_budget
from dpmoments.plots.intervals import ONLY_BY_ITSELF
from dpmoments.plots.pictures import relations
from dpmoments.privacy.ledger import originals
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import AnyRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.profile import REFERENCE_DELTA
from dpmoments.releases.statements import AuditorStatement, composition_so_far, describe_composition, protected_unit
from dpmoments.reporting.page import PageTable, Section, drawn, filled_in
from dpmoments.reporting.sections import (
    Comparisons,
    asked_section,
    columns_section,
    counts_sections,
    findings_section,
    goals_section,
    lost_means,
    mean_section,
    open_section,
    relations_section,
    rows_for_a_finding,
)

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
    title: str | None = None,
    headline: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write one offline page on a release, or the planner page of a forecast.

    The page of a release begins with three sentences: whether it is safe, of what use it is, and what to beware of. Then come
    the findings that hold among all comparisons of the page, what stays open, requested analyses, the columns, all relations, a
    sheet on privacy to sign, limits, and a technical annex. Columns go by their descriptions, if the schema has some. It needs
    no network and no script, and can be printed. Post-processing: it costs no privacy.

    The page of a forecast has a picture of smaller and larger budgets, and what would help.

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
        If True, only the three sentences, the findings, what stays open, limits and facts: one printed page.
    title : str, optional
        Name of the table at the head of the page; default: its name in the release.
    headline : str, optional
        The main finding in words, above the chart of findings; default: how many columns are clearly related.
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
    write_text(_page(subject, _Asked(regressions, groups, level, summary, title, headline)), path, overwrite=overwrite)


@dataclass(frozen=True)
class _Asked:
    """Requested analyses, their confidence level, whether to summarize, and words for the head."""

    regressions: Sequence[str] = ()
    groups: Sequence[tuple[str, str]] = ()
    level: float = 0.95
    summary: bool = False
    title: str | None = None
    headline: str | None = None

    def __post_init__(self) -> None:
        confidence_level(self.level)
        if isinstance(self.regressions, str) or not all(isinstance(formula, str) for formula in self.regressions):
            raise InputTypeError("regressions is a list of R formulas: regressions=['income ~ age + C(sex)']")
        pairs = [pair for pair in self.groups if isinstance(pair, tuple | list) and len(pair) == 2]
        if len(pairs) < len(self.groups) or not all(isinstance(name, str) for pair in pairs for name in pair):
            raise InputTypeError(
                "groups is a list of pairs, a column of levels and a feature: groups=[('sex', 'hours-per-week')]"
            )
        for name, words in (("title", self.title), ("headline", self.headline)):
            if words is not None and (not isinstance(words, str) or not words.strip()):
                raise wrong_type(name, "a text", words)


def _page(subject: object, asked: _Asked) -> str:
    """Return the page as text, by the kind of subject."""
    analyses = bool(asked.regressions or asked.groups)
    if isinstance(subject, Forecast):
        if analyses or asked.summary or asked.title or asked.headline:
            raise InputValueError(
                "a forecast has no data: regressions, groups, summary, title and headline are for the report of a release"
            )
        return planner_page(subject)

    if isinstance(subject, MomentRelease):
        content = _of_moments([("", "", subject)], asked)
        return _page_of_release(subject, ("Rows", subject.describe().rows_text), content, asked)

    if isinstance(subject, MeanRelease | CountsRelease):
        if isinstance(subject, MeanRelease):
            held, noise, sections = "a mean was", None, [mean_section(subject, asked.level)]
            lost, total = len(lost_means(subject)), len(subject.feature_names)
            use = f"{total - lost:,} of {total:,} means and shares are larger than their noise."
        else:
            held, sections = "counts were", list(counts_sections(subject, asked.level))
            noise = min(table.total_error for table in subject.tables)
            errors = [rounded(table.standard_error, table.standard_error) for table in subject.tables]
            use = f"Counts are exact to about ± {' or '.join(dict.fromkeys(errors))} rows (one standard deviation of the noise)."
        if analyses:
            raise InputValueError(
                "regressions and group means need count, mean and second moment (dpmoments.release), but only "
                f"{held} released"
            )
        size = "Rows", count_text(subject.n_rows, 0.0 if subject.count_is_public else noise)
        warned = [message.text() for message in subject.warnings]
        return _page_of_release(subject, size, _Content([("", sections)], use, warned), asked)

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
    groups = [(f"{by} = {name}", f"group-{index}-", one) for index, (name, one) in enumerate(subject.items(), 1)]
    size = "Groups", f"{len(subject)}, by {by}: one release each"
    return _page_of_release(subject, size, _of_moments(groups, asked), asked)


@dataclass(frozen=True)
class _Content:
    """Content of a page: chapters of sections, use, and warnings."""

    chapters: Sequence[tuple[str, Sequence[Section]]]
    use: str
    warned: Sequence[str]


def _of_moments(releases: Sequence[tuple[str, str, MomentRelease]], asked: _Asked) -> _Content:
    """Return the content of releases of moments, each with a heading and a prefix of anchors."""
    # Findings are by one correction over all tables of the page: at most 5 % chance that any of them is false.
    answers = [Comparisons.of(release, asked.regressions, asked.groups, asked.level) for _, _, release in releases]
    p_values, counts_as = (np.concatenate(parts) for parts in zip(*(each.comparisons for each in answers), strict=True))
    cutoff = largest_holding(p_values, counts_as, asked.level)
    answers = [each.with_cutoff(cutoff) for each in answers]
    every = [relation for each in answers if each.correlations for relation in relations(each.correlations)]
    clear, kept, warned = sum(each.pair is not None for each in every), [0, 0], list[str]()
    chapters = []
    hopeless = cutoff < 0.0 and all(
        any(message.code == "too-few-rows" for message in cautions(release)) for _, _, release in releases
    )
    for (name, prefix, release), each in zip(releases, answers, strict=True):
        for message in cautions(release):
            warned.append(message.within(name.replace(" = ", "=", 1)).text() if name else message.text())
        rows = [] if release.noisy_sum is None or release.noisy_count is None else release.describe().table()[1:]
        kept = [kept[0] + sum(not row[1].startswith(("noise", "below")) for row in rows), kept[1] + len(rows)]
        if hopeless:
            continue
        sections = [findings_section(release, prefix, each, asked.headline), goals_section(release, prefix)]
        if each.correlations is not None and not (asked.summary and name):
            sections.append(open_section(release, prefix, each.correlations))
        if not asked.summary:
            sections.append(asked_section(release, prefix, each, asked.regressions))
            sections += [columns_section(release, prefix, asked.level), relations_section(release, prefix, each)]
        chapters.append((name, [section for section in sections if section is not None]))
    if hopeless:
        needed = rows_for_a_finding(releases[0][2], max(len(every), 1))
        more = "" if needed is None else f" A first finding takes about {needed:,} rows at this budget."
        return _Content(
            [],
            f"Nothing in this release is clear: the noise hides even the number of rows.{more}",
            ["Quote no number of it."],
        )
    use = [f"{clear:,} of {len(every):,} pairs of columns are clearly related"] if every else []
    use += [f"{kept[0]:,} of {kept[1]:,} means and shares are more than noise"] if kept[1] else []
    return _Content(chapters, f"{'; '.join(use)}." if use else "Sums of squares only, without a count.", warned)


def _page_of_release(release: AnyRelease, size: tuple[str, str], content: _Content, asked: _Asked) -> str:
    first, privacy = release.runs[0], release.privacy
    features, columns = len(first.feature_names), len(first.schema.table_columns)
    named = ", ".join(dict.fromkeys(run.mechanism for run in release.runs))
    pooled = isinstance(release, MomentRelease) and len(release.runs) > 1
    # each warning once; the words of one about all groups are the same
    cautious = list(dict.fromkeys(content.warned)) or [
        "“Not clear” does not mean “none”: the noise hides what is small."
    ]
    statement = release.auditor_statement()
    entries = [one.origin.ledger.number for one in originals(release) if one.origin.ledger]
    in_ledger = f"; entry {', '.join(map(str, entries))} of its ledger" if entries else ""
    facts = [
        ("Table", release.dataset or "not named by the curator"),
        size,
        ("Protected", "one row" if privacy.privacy_unit is None else privacy.privacy_unit.description),
        ("Budget", f"{privacy.budget}, {privacy.neighbors}{in_ledger}"),
        ("Columns", f"{columns}, as {features} features" if features != columns else f"{features}"),
        ("Mechanism", f"{named}, {len(release.runs)} releases pooled" if pooled else named),
        ("Release", release.id),
    ]
    return filled_in(
        "report.html",
        summary=asked.summary,
        title=f"{asked.title or release.dataset or 'A table'}: what a {'private ' if privacy.private else ''}release shows",
        release=release,
        sentences=[
            ("Safe?", _guarantee_in_short(release)),
            ("Of use?", content.use),
            *(("Caution", words) for words in cautious),
        ],
        facts=facts[:4] if asked.summary else facts,
        chapters=content.chapters,
        promise=_describe_promise(release),
        receipt=PageTable.of(
            "The receipt: every noise draw, then the total and the stated budget",
            [("query", "noise distribution", "sensitivity", "loss"), *release.receipt.lines()],
        ),
        on_a_unit=release.receipt.on_a_unit_text or "",
        checked=_describe_checks(release),
        questions=[
            f"{words[0].upper()}{words[1:].rstrip(';.')}." for level in statement.levels for words in level.asked
        ],
        limits=_describe_limits(release, asked),
        annex=_annex(release, statement) if not asked.summary else (),
    )


# What no other part of the library says: what the guarantee means, and what it does not cover.

_FALSE_ALARMS = 0.05
_CERTAIN = 0.9995
"""Share above which success counts as certain."""


def _guarantee_in_short(release: AnyRelease) -> str:
    privacy, power = release.privacy, release.privacy_curve.attacker_power(_FALSE_ALARMS)
    if not privacy.private:
        return "This release protects nobody, since its noise can be computed and subtracted."
    if power > _CERTAIN:
        return "This budget promises almost nothing: someone who knows all other rows may recognize a row in nearly all cases."
    unit = "row" if privacy.privacy_unit is None else privacy.privacy_unit.column
    question = (
        f"which of two versions of a {unit} it holds"
        if privacy.neighbors.table_size_is_public
        else f"that a certain {unit} is in it"
    )
    return (
        f"Someone who knows all else about the table detects {question} at most {no_less(100.0 * power, 3)} times in 100, with 5 "
        "false alarms in 100; guessing detects 5."
    )


def _describe_promise(release: AnyRelease) -> tuple[str, ...]:
    """Describe what is protected, and what else was spent."""
    if not release.privacy.private:
        return (
            "This release protects nobody: its noise came from a seed with which anyone can compute and subtract "
            "it. It is for tests only, and must not be published if the table is confidential.",
        )
    return (
        "The numbers on this page follow from sums over a confidential table that were released once. Random noise from the "
        f"operating system was added to them; it limits how much they reveal about {protected_unit(release)}, whatever a "
        "reader knows or computes.",
        composition_so_far(release),
    )


def _describe_checks(release: AnyRelease) -> str:
    """Describe the outcome of the checks of the file."""
    every = checks(release)
    failed = [f"{check.what} ({check.detail})" for check in every if check.passed is False]
    undecided = [check.what for check in every if check.passed is None]
    held = sum(check.passed is True for check in every)
    words = f"{held:,} of {len(every):,} checks of the file hold"
    words += f"; FAILED: {', '.join(failed)}" if failed else ""
    words += f"; undecided: {', '.join(undecided)}" if undecided else ""
    return (
        f"{words}. They show that it is consistent, and the receipt adds up; not that the noise was drawn as it states."
    )


def _describe_limits(release: AnyRelease, asked: _Asked) -> list[str]:
    """Describe what a reader should not conclude from the page."""
    chance = f"{100.0 * error_rate(asked.level):.3g}"
    others = "Privacy losses add up: every other release about the same people adds to them."
    clear = f"What is clear holds among all comparisons of this page, with a chance of at most {chance} % that any is false."
    cause = "A relation does not tell its cause."
    if asked.summary:
        return [others, clear, cause] if isinstance(release, MomentRelease | GroupReleases) else [others]
    said = [
        others,
        release.privacy.unit_message.text(),
        "Bounds and levels of the schema are assumed to be public. If they were read from the table, they leak information "
        "that the noise does not protect.",
        f"Rows are dropped{'' if release.runs[0].holds_counts else ', values clipped to the bounds,'} and missing values "
        "handled by the rules of the schema: the numbers describe the resulting table.",
    ]
    if isinstance(release, MomentRelease | GroupReleases):
        said += [
            cause,
            f"{clear} Without any effect, about {chance} in 100 comparisons are “{ONLY_BY_ITSELF}”.",
            f"Intervals include noise and sampling, no errors in the data; even so, about {chance} in 100 miss the truth.",
        ]
    return said


# The annex of a report: what an auditor looks up.


def _annex(release: AnyRelease, statement: AuditorStatement) -> list[Section]:
    head, *points = statement.profile.table()
    least = statement.profile.epsilon_at_reference
    reasons = dict.fromkeys(getattr(run, "chosen_because", None) for run in release.runs)
    rules = lines_of(release.privacy.rules)
    at_reference = "" if least is None else f"At δ = {REFERENCE_DELTA:g} the smallest known ε is {no_less(least, 4)}."
    repairs = dict.fromkeys(str(run.repair) for run in release.runs if hasattr(run, "repair"))
    return [
        Section(
            "The guarantee, exactly",
            "guarantee",
            lead=(
                *(line for line in release.privacy.describe().split("\n") if not line.startswith("- ")),
                describe_composition(release),
                at_reference,
            ),
            tables=(
                PageTable.of(
                    "Tightest known privacy profile", [(head[0], head[1], "exact or bound", head[3]), *points]
                ),
            ),
            folded=True,
        ),
        Section(
            "How it was made",
            "made",
            lead=(
                *(f"Why this mechanism: {reason.text()}" for reason in reasons if reason is not None),
                f"Impossible values were corrected by the repair {', '.join(map(repr, repairs))}; noise and intervals precede it."
                if repairs
                else "",
            ),
            tables=(
                PageTable.of(
                    "Runs",
                    [
                        ("run", "mechanism", "options", "settled by its plan"),
                        *(
                            (
                                str(index),
                                run.mechanism,
                                *map(_listed, (run.mechanism_options, getattr(run, "details", {}))),
                            )
                            for index, run in enumerate(release.runs, 1)
                        ),
                    ],
                ),
            ),
            folded=True,
        ),
        Section(f"The rules by which rows were read ({len(rules)})", "rules", lead=tuple(rules), folded=True),
    ]


def _listed(options: Mapping[str, object]) -> str:
    return "; ".join(f"{key} = {value}" for key, value in options.items()) or "none"


# The planner page: what a forecast says, and smaller and larger budgets.


def planner_page(forecast: Forecast) -> str:
    """Return the page of a forecast: it has no script, no network access and no data."""
    if forecast.noise is None:
        raise forecast.without_units.preceded_by(
            "no planner page: the forecast has no numbers in original units, since "
        )
    unit = "one row" if forecast.privacy_unit is None else forecast.privacy_unit.description
    facts = [
        ("Asked for", f"{forecast.n_rows:,} {forecast.rows_text}, {forecast.budget}, {forecast.neighbors}"),
        ("Protected", unit),
        ("Mechanism", forecast.mechanism_text),
    ]
    return filled_in("planner.html", title="Plan a private release", facts=facts, **plan_content(forecast))


def plan_content(forecast: Forecast) -> dict[str, Any]:
    """Return what the planner page and the desk show of a forecast."""
    setting, noise = forecast.setting, forecast.noise
    content: dict[str, Any] = {
        "forecast": forecast,
        "mechanisms": PageTable.of(forecast.mechanisms.heading[0], forecast.mechanisms.table()),
        "picture": None,
        "goals": None,
    }
    if setting is None or noise is None:
        return content
    clear = clear_by_budget(setting) if forecast.clear else {}
    if any(math.isfinite(size) for sizes in clear.values() for size in sizes.values()):
        kinds = noise.smallest_between
        rows = [(budget, *(clear_from(of.get(kind, math.inf)) for kind in kinds)) for budget, of in clear.items()]
        head = ("budget", *(f"between {kind}" for kind in kinds))
        content["by_budget"] = PageTable.of("The smallest correlation of clear sign, by budget", [head, *rows])
        said = "; ".join(f"{name}: {', '.join(cells)}" for name, *cells in zip(head, *rows, strict=True))
        content["picture"] = drawn(
            "clear", 4.6, 3.2, lambda ax: forecast.plot(ax=ax), title=f"{forecast.clear}. {MEANING}", description=said
        )
    described = "What describe() would show if the table is as assumed, in original units"
    if forecast.goals is not None:
        content["goals"] = PageTable.of(forecast.goals.heading[0], forecast.goals.table())
    return content | {
        "takes": "" if setting.is_readable else takes_to_read(setting),
        "columns": PageTable.of(described, noise.table_of_columns()),
        "every_feature": PageTable.of(described, noise.table()),
    }
