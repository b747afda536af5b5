"""The words of a report that no other part of the library says: what the guarantee means, and what it does not cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmoments.audit.verification import checks
from dpmoments.privacy.profile import REFERENCE_DELTA
from dpmoments.privacy.rounding import no_less
from dpmoments.releases.auditor_statement import PyramidLevel
from dpmoments.releases.facts import Told, composition_so_far, describe_composition, protected_unit
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.reporting.page import PageTable

FALSE_ALARMS = 0.05
_CERTAIN = 0.9995
"""Shares above it are not told from 1."""


def describe_promise(release: Told, power: float) -> tuple[str, ...]:
    """What the guarantee promises to whoever is in the table, in plain words.

    Parameters
    ----------
    release : MomentRelease, MeanRelease, GroupReleases or PooledRelease
    power : float
        How often a test that is wrong in 5 cases of 100 is right at most (:meth:`RunCurve.attacker_power`).
    """
    privacy = release.privacy
    if not privacy.private:
        return (
            "This release protects nobody: its noise came from a seed that anyone can use again, to subtract the "
            "noise. It is for trying the program out, and must not be published if the table is confidential.",
        )
    unit = protected_unit(release)
    everything = (
        "The numbers on this page follow from sums over a confidential table that were released once. Random noise was added "
        f"to them so that they hardly depend on {unit}. Computing anything further from them costs the people in the table "
        "nothing."
    )
    if privacy.neighbors.table_size_is_public:
        question, one, other = "which of two possible rows, A or B, a certain row of the table is", "“A”", "it is B"
    elif privacy.privacy_unit is None:
        question, one, other = "whether a certain row is in the table at all", "“it is”", "it is not"
    else:
        question = f"whether there are rows of a certain {privacy.privacy_unit.column} in the table at all"
        one, other = "“there are”", "there are none"
    how_often = (
        "in nearly all cases where that is true: against someone who knows so much this budget promises next to nothing"
        if power > _CERTAIN
        else f"in at most {no_less(100.0 * power, 3)} % of the cases where that is true"
    )
    attacker = (
        "What that is worth: suppose someone knows all other rows, and how this was made, and wants to find out "
        f"{question}. If they may say {one} by mistake in 5 % of the cases where {other}, they can say so {how_often}; "
        "blind guessing says so in 5 %. That holds whatever they know besides, and whatever they compute."
    )
    return everything, attacker, composition_so_far(release)


def describe_limits(release: Told) -> tuple[str, ...]:
    """What a reader should not take from the page, a sentence or two each."""
    unit = release.privacy.privacy_unit
    first = release.runs[0]
    protected = (
        "One row is protected, not one person: whoever has several rows is protected less, by so many times."
        if unit is None
        else f"The rows of one {unit.column} are protected together, and {unit.max_rows:,} of them at most count; whoever has "
        f"several values of {unit.column} is protected less."
    )
    said = [
        protected,
        "Budgets add up: every other release about the same people spends more of their privacy. This page knows of no "
        "other but those it names.",
        "Bounds, levels and other settings of the schema are taken to be public knowledge. If they were read off the "
        "table, they tell of it, and no noise hides that.",
        "Values beyond the bounds were moved to them, and cells that were missing were treated by the rules above, "
        "before anything was computed: the numbers are of the table as it then was.",
        "“Not distinguishable from noise” is not “no effect”: it says that this release cannot tell. More rows, or a "
        "larger budget, might.",
    ]
    if isinstance(first, MomentRelease):
        said += [
            "“± noise” is what privacy added. An interval holds that and the sampling error of rows drawn "
            "independently, and nothing else: not what is wrong with the data, and not what clipping moved.",
            f"Means, correlations and components are shown after the repair {str(first.repair)!r}, which makes noisy numbers "
            "possible ones; noise and intervals are stated for the numbers before it.",
            "Standard errors of regressions take residuals to be of one variance, since a release holds no fourth moments.",
            "Of many intervals some miss: 1 in 20 at 95 %, noise or not.",
        ]
    said.append(
        "The receipt adds up, and that can be checked from the file; that the noise was drawn as it says, only the "
        "curator can vouch for."
    )
    return tuple(said)


# The appendix of a report: what an auditor asks for, and what can be checked of the file.


@dataclass(frozen=True)
class Appendix:
    """What the appendix shows.

    Attributes
    ----------
    levels : tuple of PyramidLevel
        The statement for an auditor, after NIST SP 800-226.
    chosen : tuple of str
        Why the mechanism was taken, where the program chose it.
    composition, at_reference : str
        How the losses within the release add up; the least ε known at a small δ.
    profile, checks, schema, runs : PageTable
    """

    levels: tuple[PyramidLevel, ...]
    chosen: tuple[str, ...]
    composition: str
    at_reference: str
    profile: PageTable
    checks: PageTable
    schema: PageTable
    runs: PageTable


def appendix(release: MomentRelease | MeanRelease | GroupReleases) -> Appendix:
    """The appendix of a release."""
    statement = release.auditor_statement()
    head, *points = statement.profile.table()
    least = statement.profile.epsilon_at_reference
    schema = release.runs[0].schema
    return Appendix(
        levels=statement.levels,
        chosen=tuple(
            f"Why this mechanism: {words}."
            for words in dict.fromkeys(getattr(run, "chosen_because", None) for run in release.runs)
            if words
        ),
        composition=describe_composition(release),
        at_reference=f"At δ = {REFERENCE_DELTA:g} the least ε known is {no_less(least, 4)}."
        if least is not None
        else "",
        profile=PageTable.of(
            "Tightest known privacy profile", [(head[0], head[1], "exact or bound", head[3]), *points]
        ),
        checks=PageTable.of(
            "Checks of the file against itself",
            [("check", "outcome", "detail"), *((c.what, _outcome(c.passed), c.detail) for c in checks(release))],
        ),
        schema=PageTable.of(
            "Columns, and what is public of them",
            [
                ("column", "kind", "public values", "missing cells", "description"),
                *((c.name, c.kind, c.public_values_text, c.missing, c.description or "") for c in schema.columns),
            ],
        ),
        runs=PageTable.of(
            "How it was made",
            [("run", "mechanism", "options", "settled by its plan"), *map(_run, enumerate(release.runs, 1))],
        ),
    )


def _run(numbered: tuple[int, Any]) -> tuple[str, ...]:
    index, run = numbered
    details = getattr(run, "details", {})
    return str(index), run.mechanism, _listed(run.mechanism_options), _listed(details)


def _listed(options: Any) -> str:
    return "; ".join(f"{key} = {value}" for key, value in options.items()) or "none"


def _outcome(passed: bool | None) -> str:
    return "cannot be told" if passed is None else "holds" if passed else "FAILED"
