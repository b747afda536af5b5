"""Statement for an auditor, by the levels of the pyramid of NIST SP 800-226.

That publication (Near, Darais, Lefkovitz & Howarth, *Guidelines for evaluating differential privacy guarantees*, 2025)
ranks what a claim of differential privacy depends on. For each level the statement gives what the release itself shows,
and what only the curator can answer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmoments.foundation.values import no_less
from dpmoments.ledger import Ledger
from dpmoments.messages.message import Message
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.profile import REFERENCE_DELTA, PrivacyProfile
from dpmoments.releases.facts import (
    Told,
    composition_so_far,
    describe_neighbors,
    describe_runs,
    post_processing,
    protected_unit,
    unprotected_quantities,
)


@dataclass(frozen=True)
class PyramidLevel:
    """Level of the pyramid.

    Attributes
    ----------
    section : str
        Section of NIST SP 800-226.
    stated : tuple of str
        Facts that this release shows.
    asked : tuple of str
        Questions to the curator.
    """

    name: str
    section: str
    stated: tuple[str, ...]
    asked: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "nist_sp_800_226": self.section,
            "stated": list(self.stated),
            "asked_of_the_curator": list(self.asked),
        }


@dataclass(frozen=True)
class AuditorStatement:
    """Statement for an auditor.

    Attributes
    ----------
    release_id : str
    dataset : str or None
    private : bool
    budget : PrivacyBudget
    neighbors, unit : str
    profile : PrivacyProfile
    unprotected : tuple of str
        Facts that the release contains without noise.
    post_processing : tuple of str
    composition : str
        Known releases of the same dataset.
    levels : tuple of PyramidLevel
        From the top.
    """

    release_id: str
    dataset: str | None
    private: bool
    budget: PrivacyBudget
    neighbors: str
    unit: str
    profile: PrivacyProfile
    unprotected: tuple[str, ...]
    post_processing: tuple[str, ...]
    composition: str
    levels: tuple[PyramidLevel, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "release": self.release_id,
            "dataset": self.dataset,
            "private": self.private,
            "budget": self.budget.to_dict(),
            "neighbors": self.neighbors,
            "unit_of_privacy": self.unit,
            "privacy_profile": self.profile.to_dict(),
            "unprotected_quantities": list(self.unprotected),
            "post_processing": list(self.post_processing),
            "composition_so_far": self.composition,
            "levels": [level.to_dict() for level in self.levels],
        }

    def in_words(self) -> str:
        """Return the statement as text."""
        of_dataset = "" if self.dataset is None else f" of {self.dataset}"
        lines = [f"Statement for an auditor on release {self.release_id}{of_dataset}, after NIST SP 800-226."]
        if not self.private:
            lines.append("NOT PRIVATE: the noise came from an insecure seed; no guarantee below holds.")
        for index, level in enumerate(self.levels, start=1):
            lines += ["", f"{index}. {level.name} (SP 800-226, {level.section})"]
            lines += [f"- {text}" for text in level.stated]
            lines += [f"? For the curator to answer: {text}" for text in level.asked]
        return "\n".join(lines)


def auditor_statement(release: Told, *, ledger: Ledger | str | os.PathLike[str] | None = None) -> AuditorStatement:
    """Make the statement; :meth:`dpmoments.MomentRelease.auditor_statement` calls it."""
    privacy, profile = release.privacy, release.privacy_profile
    composition = composition_so_far(release, ledger)
    unprotected, free = unprotected_quantities(release), post_processing(release)
    return AuditorStatement(
        release_id=release.id,
        dataset=release.dataset,
        private=privacy.private,
        budget=privacy.budget,
        neighbors=str(privacy.neighbors),
        unit=protected_unit(release),
        profile=profile,
        unprotected=unprotected,
        post_processing=free,
        composition=composition,
        levels=_levels(release, profile, composition, unprotected, free),
    )


def _levels(
    release: Told,
    profile: PrivacyProfile,
    composition: str,
    unprotected: Sequence[str],
    free: Sequence[str],
) -> tuple[PyramidLevel, ...]:
    privacy = release.privacy
    return (
        PyramidLevel(
            "Privacy loss",
            "section 2, the parameter ε and the variants of the definition",
            (*_describe_loss(privacy.budget, profile), composition),
            (
                "who chose this budget, and why;",
                "what else was, or will be, released about the same people, and what all of it adds up to.",
            ),
        ),
        PyramidLevel(
            "Unit of privacy",
            "section 2, the unit of privacy",
            (f"The privacy unit is {protected_unit(release)}.", describe_neighbors(release)),
            (
                "whether one person can have several units, and how many;",
                "whether each row comes from one row of the source (joins, windows and standardization can break this).",
            ),
        ),
        PyramidLevel(
            "Mechanisms, utility and bias",
            "section 3",
            (
                *describe_runs(release),
                *map(str, privacy.rules),
                *(f"Warning: {message.text()}" for message in release.warnings),
                *(f"Released without noise: {text}." for text in unprotected),
                *(f"Free of privacy cost: {text}." for text in free),
            ),
            (
                "whether bounds, levels, typical ranges and options came from public knowledge, or from looking at the table;",
                "whether trial releases were made to choose them, and where their cost is counted;",
                "which people are underrepresented because of clipping and dropped rows.",
            ),
        ),
        PyramidLevel(
            "Correctness of the program and side channels",
            "section 4, challenges of implementing mechanisms",
            (
                Message(privacy.arithmetic).text(),
                "The receipt adds up to the stated budget or less; 'dpmoments verify' adds it up again. That shows that "
                "the file is consistent, not that the draws took place.",
                "Noise came from the operating system's randomness."
                if privacy.private
                else "Noise came from a seed, and can be repeated.",
                "Not protected: how long the run took, how much memory it used, and whether it stopped with an error "
                "(docs/threat-model.md).",
                f"Made by dpmoments {privacy.version}.",
            ),
            (
                "on which machine it ran, who else could time it, and whether failed runs were seen by others;",
                "which versions of the dependencies were installed, and from where.",
            ),
        ),
        PyramidLevel(
            "Trust",
            "section 4, models of trust",
            ("The central model: the curator holds the table and is trusted with it; readers of the release are not.",),
            ("who the curator is, and why the people in the table may trust them.",),
        ),
        PyramidLevel(
            "Security and access control",
            "section 4, security of the data",
            ("The release holds no row; this statement does not cover the table itself.",),
            ("who may read the table, how that is enforced and logged, and whether it is kept, and for how long.",),
        ),
        PyramidLevel(
            "Exposure by collection",
            "section 4, exposure by data collection",
            ("A release contains no information on this.",),
            ("how the data were collected, under which consent or legal basis, and where copies of them are.",),
        ),
    )


def _describe_loss(budget: PrivacyBudget, profile: PrivacyProfile) -> tuple[str, ...]:
    kind = {
        BudgetKind.PURE: "pure differential privacy",
        BudgetKind.APPROXIMATE: "(ε, δ)-differential privacy",
        BudgetKind.ZCDP: "zero-concentrated differential privacy",
    }[budget.kind]
    lines = [f"Stated: {budget} ({kind})."]
    reported = [f"({no_less(point.epsilon, 4)}, {no_less(point.delta, 3)}) {point.mark}" for point in profile.points]
    lines.append(f"Tightest known (ε, δ): {'; '.join(reported)}.")
    lines += [f"It follows from {how}." for how in dict.fromkeys(point.how for point in profile.points)]
    if profile.epsilon_at_reference is not None:
        lines.append(f"At δ = {REFERENCE_DELTA:g} the smallest known ε is {no_less(profile.epsilon_at_reference, 4)}.")
    if profile.mu is not None:
        lines.append(f"The run is μ-Gaussian differentially private, μ = {no_less(profile.mu)}.")
    return tuple(lines)
