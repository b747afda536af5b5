"""The appendix of a report: what an auditor asks for, and what can be checked of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmoments.audit.verification import checks
from dpmoments.privacy.profile import REFERENCE_DELTA
from dpmoments.privacy.rounding import no_less
from dpmoments.releases.auditor_statement import PyramidLevel
from dpmoments.releases.facts import composition_in_words
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.reporting.report_sections import PageTable

__all__ = ["Appendix", "appendix"]


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
        composition=composition_in_words(release),
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
                *((c.name, c.kind, c.public_values_in_words, c.missing, c.description or "") for c in schema.columns),
            ],
        ),
        runs=PageTable.of(
            "How it was made",
            [("run", "mechanism", "options", "settled by its plan"), *map(_run, enumerate(release.runs, 1))],
        ),
    )


def _run(numbered: tuple[int, Any]) -> tuple[str, ...]:
    place, run = numbered
    details = getattr(run, "details", {})
    return str(place), run.mechanism, _listed(run.mechanism_options), _listed(details)


def _listed(options: Any) -> str:
    return "; ".join(f"{key} = {value}" for key, value in options.items()) or "none"


def _outcome(passed: bool | None) -> str:
    return "cannot be told" if passed is None else "holds" if passed else "FAILED"
