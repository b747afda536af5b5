"""The report: one page that a person reads, offline, of what a release guarantees and says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.released import cautions
from dpmoments.foundation.documents import KEEPS_A_FILE, check_output, write_text
from dpmoments.planning.forecast_table import Forecast
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    from dpmoments.reporting.page import Section


_MAX_GROUPS = 30
"""Releases by groups of more are refused: a page of so many pictures is no page any more."""


def report(
    subject: MomentRelease | MeanRelease | GroupReleases | Forecast,
    path: str | Path,
    *,
    regressions: Sequence[str] = (),
    groups: Sequence[tuple[str, str]] = (),
    level: float = 0.95,
    overwrite: bool = False,
) -> None:
    """Write one offline page on a release, or of a forecast the page to plan with.

    The page of a release has the privacy statement in plain words, what was released and how noisy it is, the correlations with
    cells that noise decides hatched, the spectrum against the noise floor, the analyses that are asked for, limits, and an
    appendix for auditors. It needs no network and no script, and may be printed. Post-processing: it costs no privacy.

    The page of a forecast has those for a few budgets and numbers of rows (:func:`dpmoments.reporting.planner.planner_page`).

    Parameters
    ----------
    subject : MomentRelease, MeanRelease, GroupReleases or Forecast
        A release of groups has a part of the page for each.
    path : path
        Where to write; all of it or nothing.
    regressions : sequence of str
        R formulas: ``["income ~ age + C(sex)"]``.
    groups : sequence of pairs of str
        ``[("sex", "hours-per-week")]``: means of the second by the levels of the first.
    level : float
        Confidence of intervals.
    overwrite : bool

    Raises
    ------
    ValueError
        If an analysis that is asked for cannot be made from this release, the level is below 0.5, or a forecast has no numbers
        in the table's units.
    TypeError
        If the subject is neither a release nor a forecast, or what is asked for is not as described.
    FileExistsError
        If there is a file already and ``overwrite`` is False.
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
    if isinstance(subject, Forecast):
        if regressions or groups:
            raise ValueError("a forecast has no data: regressions and groups are for the report of a release")
        from dpmoments.reporting.planner import planner_page

        page = planner_page(subject)
    else:
        page = _report_page(subject, regressions=regressions, groups=groups, level=level)
    write_text(page, path, overwrite=overwrite)


def _report_page(
    release: MomentRelease | MeanRelease | GroupReleases,
    *,
    regressions: Sequence[str] = (),
    groups: Sequence[tuple[str, str]] = (),
    level: float = 0.95,
) -> str:
    """The page as text; see :func:`report`."""
    from dpmoments.reporting.page import PageTable, filled_in
    from dpmoments.reporting.statements import FALSE_ALARMS, appendix, describe_limits, describe_promise

    level = confidence_level(level)
    _check_asked(regressions, groups)
    chapters = _chapters(release, regressions, groups, level)
    privacy = release.privacy
    guarantee = [line for line in privacy.in_words().split("\n") if not line.startswith("- ")]
    receipt = PageTable.of(
        "Every draw of noise, then the sum, and what the stated budget allows",
        [("what was noised", "law of the noise", "sensitivity", "loss"), *release.receipt.lines()],
    )
    return filled_in(
        "report.html",
        title=_title(release),
        release=release,
        cautions=_cautions(release),
        facts=_facts(release),
        promise=describe_promise(release, release.privacy_curve.attacker_power(FALSE_ALARMS)),
        guarantee=guarantee,
        rules=privacy.rules,
        receipt=receipt,
        on_a_unit=release.receipt.on_a_unit_text or "",
        chapters=chapters,
        limits=describe_limits(release),
        appendix=appendix(release),
    )


def _title(release: MomentRelease | MeanRelease | GroupReleases) -> str:
    of = "" if release.dataset is None else f" of {release.dataset}"
    return f"Report on a {'private ' if release.privacy.private else ''}release{of}"


def _chapters(
    release: MomentRelease | MeanRelease | GroupReleases,
    regressions: Sequence[str],
    groups: Sequence[tuple[str, str]],
    level: float,
) -> list[tuple[str, tuple[Section, ...]]]:
    """What is said of each group, under its name; of a release of all rows under none."""
    from dpmoments.reporting.sections import mean_sections, moment_sections

    if isinstance(release, MeanRelease):
        if regressions or groups:
            raise ValueError(
                "no regression and no group means can be shown: a mean alone was released, and they need count, mean and second "
                "moment, which dpmoments.release makes"
            )
        return [("", mean_sections(release, level))]
    if isinstance(release, MomentRelease):
        return [("", moment_sections(release, "", regressions, groups, level))]
    if isinstance(release, GroupReleases):
        if len(release) > _MAX_GROUPS:
            raise ValueError(
                f"the release has {len(release)} groups by {release.by.name}, and a page is of {_MAX_GROUPS} at most: "
                "write the report of one, groups['level'], or save them one a file"
            )
        return [
            (f"{release.by.name} = {level_name}", moment_sections(one, f"group-{index}-", regressions, groups, level))
            for index, (level_name, one) in enumerate(release.items(), 1)
        ]
    raise TypeError(
        f"a report is on a release or a forecast, got {type(release).__name__}: read a file with dpmoments.load"
    )


def _facts(release: MomentRelease | MeanRelease | GroupReleases) -> list[tuple[str, str]]:
    """The first lines of the page: what it is of."""
    first, privacy = release.runs[0], release.privacy
    unit = "one row" if privacy.privacy_unit is None else privacy.privacy_unit.in_words
    result = [("Table", release.dataset or "not named by the curator")]
    if isinstance(release, GroupReleases):
        result.append(("Groups", f"{len(release)}, by {release.by.name}: one release each"))
    elif isinstance(release, MomentRelease):
        result.append(("Rows", release.describe().rows_text))
    else:
        result.append(("Rows", f"{release.n_rows:,} ({'public, exact' if release.count_is_public else 'noisy'})"))
    features = len(first.feature_names)
    result += [
        (
            "Columns",
            f"{len(first.schema.columns)}, as {features} features"
            if features != len(first.schema.columns)
            else f"{features}",
        ),
        ("Protected", unit),
        ("Budget", f"{privacy.budget}, {privacy.neighbors}"),
        ("Mechanism", _mechanisms(release)),
        ("Release", release.id),
    ]
    return result


def _cautions(release: MomentRelease | MeanRelease | GroupReleases) -> tuple[str, ...]:
    """What speaks against trusting the release, once for the whole page."""
    if isinstance(release, MeanRelease):
        return tuple(map(_ended, release.warnings))
    if isinstance(release, MomentRelease):
        return tuple(filter(None, [_ended(cautions(release))]))
    return tuple(
        _ended(f"{release.by.name} = {name}: {cautions(one)}") for name, one in release.items() if cautions(one)
    )


def _ended(words: str) -> str:
    """As a sentence."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}" if words else words


def _mechanisms(release: MomentRelease | MeanRelease | GroupReleases) -> str:
    named = ", ".join(dict.fromkeys(run.mechanism for run in release.runs))
    return (
        f"{named}, {len(release.runs)} releases pooled"
        if len(release.runs) > 1 and isinstance(release, MomentRelease)
        else named
    )


def _check_asked(regressions: Any, groups: Any) -> None:
    if isinstance(regressions, str) or not all(isinstance(formula, str) for formula in regressions):
        raise TypeError("regressions is a list of R formulas: regressions=['income ~ age + C(sex)']")
    if isinstance(groups, str) or not all(_is_pair_of_names(pair) for pair in groups):
        raise TypeError(
            "groups is a list of pairs, a column of levels and a feature: groups=[('sex', 'hours-per-week')]"
        )


def _is_pair_of_names(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)


def group_asked_for(text: str, schema: Schema) -> tuple[str, str]:
    """The column of levels and the feature that ``COLUMN:OF`` names; both may hold a colon themselves.

    Raises
    ------
    ValueError
        If no column and feature of the schema are so written, or several.

    Examples
    --------
    >>> from dpmoments import Boolean, Numeric, Product
    >>> schema = Schema(Boolean("smoker"), Numeric("age", 0, 100), Product("age", "smoker"))
    >>> group_asked_for("smoker:age:smoker", schema)
    ('smoker', 'age:smoker')
    """
    parts = text.split(":")
    splits = [(":".join(parts[:index]), ":".join(parts[index:])) for index in range(1, len(parts))]
    columns, features = {column.name for column in schema.columns}, set(schema.feature_names)
    known = [(by, of) for by, of in splits if by in columns and of in columns | features]
    if len(known) != 1:
        raise ValueError(
            f"{text!r} does not name one column of levels and one feature: write COLUMN:OF, such as sex:income, of the "
            f"release's columns {', '.join(map(repr, list(columns)[:12]))}"
        )
    return known[0]
