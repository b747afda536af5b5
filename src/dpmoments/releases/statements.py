"""Statements about a release for an auditor, and for the public registry.

The auditor's follows the pyramid of NIST SP 800-226 (Near, Darais, Lefkovitz & Howarth, *Guidelines for evaluating
differential privacy guarantees*, 2025), which ranks what a claim of differential privacy depends on: for each level, what
the release itself shows, and what only the curator can answer.

The draft of a registry entry follows the schema of github.com/opendp/deployments-registry-data as read in 2026: one YAML
file per deployment, at tier 3. The schema is based on research by Ghazi, Nanayakkara and Vadhan; none of its text is
copied.
"""

from __future__ import annotations

import datetime
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from dpmoments.base.documents import NEVER_OVERWRITTEN, write_text
from dpmoments.base.errors import InputTypeError, InputValueError, out_of_range, shown, wrong_type
from dpmoments.base.message import Message, lines_of
from dpmoments.base.values import no_less
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.ledger import Ledger, originals
from dpmoments.privacy.receipt import PrivacyStatement, Receipt
from dpmoments.releases.profile import REFERENCE_DELTA, PrivacyProfile, RunCurve


class AuditedRelease(Protocol):
    """Release of any kind, as an auditor sees it."""

    @property
    def id(self) -> str: ...

    @property
    def dataset(self) -> str | None: ...

    @property
    def privacy(self) -> PrivacyStatement: ...

    @property
    def receipt(self) -> Receipt: ...

    @property
    def warnings(self) -> tuple[Message, ...]: ...

    @property
    def runs(self) -> Sequence[Any]: ...

    @property
    def privacy_curve(self) -> RunCurve: ...

    @property
    def privacy_profile(self) -> PrivacyProfile: ...


def protected_unit(release: AuditedRelease) -> str:
    """Describe the privacy unit."""
    unit = release.privacy.privacy_unit
    return "one row of the table" if unit is None else unit.description


def describe_neighbors(release: AuditedRelease) -> str:
    """Describe the neighboring tables."""
    if release.privacy.neighbors.table_size_is_public:
        return (
            "Neighboring tables have the same number of rows and differ in the values of one row (replace-one, "
            "change-one distance 1)."
        )
    unit = release.privacy.privacy_unit
    if unit is not None:
        return (
            f"Neighboring tables differ by the presence of all rows with one value of {unit.column}, however many "
            "(add-remove of a unit)."
        )
    return "Neighboring tables differ by the presence of one row (add-remove, symmetric distance 1)."


def describe_runs(release: AuditedRelease) -> tuple[str, ...]:
    """Describe the mechanisms with their options, and the noise draws."""
    runs: Counter[str] = Counter()
    for run in release.runs:
        options = ", ".join(f"{key}={value}" for key, value in run.mechanism_options.items())
        runs[f"{run.mechanism} ({options})" if options else run.mechanism] += 1
    lines = [f"Mechanism: {words}{'' if times == 1 else f', {times} times'}." for words, times in runs.items()]
    laws = Counter(draw.law.name for draw in (*release.receipt.found.values(), *release.receipt.draws))
    drawn = ", ".join(f"{times} {name}" for name, times in laws.items())
    return (*lines, f"Draws of noise on the receipt: {drawn or 'none'}.")


def describe_composition(release: AuditedRelease) -> str:
    """Describe how the losses within the release add up."""
    receipt = release.receipt
    count = len(receipt.draws)
    draws = "One draw, which loses" if count == 1 else f"{count} draws, which together lose"
    k = receipt.rows_per_unit
    of_row = (
        ""
        if k == 1
        else f" on one row of the {k:,} of a unit that count, and by group privacy the stated budget on the unit"
    )
    parts = f"{draws} {receipt.total} of {receipt.allowance} allowed{of_row}, counted in {receipt.unit}."
    if receipt.before is not None:
        parts = f"Names of levels were found at {receipt.before.cost}, which is added. After that: {parts[0].lower()}{parts[1:]}"
    groups = {draw.group for draw in receipt.draws} - {None}
    if not groups:
        return parts
    disjoint = f"A row is in one of {len(groups)} disjoint groups or tables"
    return f"{parts} {disjoint}, of which the one that lost most counts (parallel composition)."


def unprotected_quantities(release: AuditedRelease) -> tuple[str, ...]:
    """List facts that the release contains without noise; none may come from the table."""
    run = release.runs[0]
    schema, size_is_public = run.schema, release.privacy.neighbors.table_size_is_public
    columns = "; ".join(
        f"{column.name} ({column.kind}, {column.public_values_text}, missing: {column.missing})"
        for column in schema.columns
        if column.name not in release.receipt.found  # whose levels were published under the budget
    )
    reported = [f"the schema: names of columns, bounds, levels and rules for missing cells: {columns}"]
    if schema.sampling_weight is not None:
        stated = ", ".join(
            f"{name}: {value}" for name, value in schema.sampling_weight.to_dict().items() if name != "kind"
        )
        reported.append(f"the sampling weight ({stated})")
    if schema.row_norm is not None and not run.holds_counts:
        reported.append(f"the norm to which encoded rows are clipped: {schema.row_norm:g}")
    if size_is_public:
        reported.append("the number of rows of the table, which replace-one makes public")
    elif any(one.count_is_public for one in release.runs):
        reported.append("the number of rows, which the curator gave as public from elsewhere")
    if len(release.runs) > 1:
        reported.append(f"that there are {len(release.runs)} groups or tables, and their names")
    reported += [
        "the mechanism, its options and the numbers that its plan settled on",
        "the budget, the neighboring relation and the version of the program",
        "that the run ended without an error (an observer of the machine also learns its time, memory and passes over the "
        "data)",
    ]
    return tuple(reported)


def post_processing(release: AuditedRelease) -> tuple[str, ...]:
    """List computations that used only noisy answers."""
    repairs = sorted({str(run.repair) for run in release.runs if hasattr(run, "repair")})
    free = []
    if repairs:
        free.append(
            f"the repair of noisy moments ({', '.join(repairs)}): counts of at least 1, second moments made "
            "consistent with each other and with the schema"
        )
    if len(release.runs) > 1:
        free.append("adding up, or listing side by side, the releases of several groups or tables")
    if release.runs[0].holds_counts:
        return (
            "the repair of noisy counts: whole numbers, none negative",
            "shares, margins, intervals and tests of the tables",
        )
    free.append("every analysis of the release: means, regressions, components, tests, synthetic rows")
    return tuple(free)


# What an auditor is told of the other releases of the same table: what a ledger knows, or that none was kept.


def composition_so_far(release: AuditedRelease, ledger: Ledger | str | os.PathLike[str] | None = None) -> str:
    """Describe the total over all releases of the dataset."""
    # Without a ledger, the entries that the release names are listed.
    charged = [(one.origin.dataset, one.origin.ledger) for one in originals(release)]
    if ledger is None:
        entries = list(dict.fromkeys(entry for _, entry in charged if entry is not None))
        if not entries:
            return Message("no-ledger").text()
        reported = "; ".join(
            f"entry {entry.number} of the ledger {entry.ledger[:8]}…, hash {entry.hash[:16]}…" for entry in entries
        )
        return f"Charged as {reported}. See the ledger for the total over all releases of this table."
    opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    failed = [check for check in opened.verify([release]) if not check.passed]
    if failed:
        raise InputValueError(
            f"the ledger {opened.path} does not confirm this release: {failed[0].what}: {failed[0].detail}"
        )
    totals = []
    for account in map(opened.account, dict.fromkeys(name for name, _ in charged if name)):
        left_open = "" if not account.n_open else f" and {account.n_open} uncommitted reservations, which also count,"
        totals.append(
            f"{account.n_released} releases of {account.dataset!r}{left_open} spent {account.spent.describe()} of the "
            f"{account.grant.amount.describe()} granted"
            + "".join(f"; the grant was changed from {change}" for change in account.changes)
        )
    reported = "; ".join(totals)
    return f"By the ledger {opened.identity[:8]}…, whose chain of hashes contains this release: {reported}."


@dataclass(frozen=True)
class PyramidLevel:
    """Level of the pyramid."""

    name: str
    section: str  # section of NIST SP 800-226
    stated: tuple[str, ...]  # facts that this release shows
    asked: tuple[str, ...]  # questions to the curator

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

    def describe(self) -> str:
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


def auditor_statement(
    release: AuditedRelease, *, ledger: Ledger | str | os.PathLike[str] | None = None
) -> AuditorStatement:
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
        levels=(
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
                    *lines_of(privacy.rules),
                    *(f"Warning: {message.text()}" for message in release.warnings),
                    *(f"Released without noise: {text}." for text in unprotected),
                    *(f"Free of privacy cost: {text}." for text in free),
                ),
                (
                    "whether bounds, levels, typical ranges and options came from public knowledge, or from looking at the "
                    "table;",
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
                (
                    "The central model: the curator holds the table and is trusted with it; readers of the release are not.",
                ),
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


_BLANK = "TO BE FILLED IN BY THE CURATOR"
_QUESTIONS: Mapping[str, str | None] = {
    "name": "the name of the data product",
    "curator": "who publishes",
    "curator_type": None,
    "description": None,
    "intended_use": "what the release is for",
    "region": "whom the data describe, and which jurisdiction applies",
    "sector": None,
    "publication_date": "YYYY-MM-DD",
    "data_domain": "which tables might have been; their columns are {columns}",
    "release_type": None,
    "data_source_type": None,
    "tuning": "what was looked at or tuned beforehand, and whether its cost was counted",
    "justification": "how budget, bounds and mechanism were chosen, and by whom",
    "actors": "who may see the table or the release, and why they are trusted with it",
    "url": None,
}
"""Fields that only the curator knows, with their questions; None asks for a choice."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "curator_type": ("Government", "Industry", "Nonprofit"),
    "sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "release_type": ("One release", "Many releases"),
    "data_source_type": ("Static", "Dynamic"),
}
"""Fields with a fixed set of values in the registry."""
_VARIANTS = {
    BudgetKind.PURE: "Pure DP",
    BudgetKind.APPROXIMATE: "Approximate DP",
    BudgetKind.ZCDP: "Zero-concentrated DP",
}


@dataclass(frozen=True)
class RegistryEntry:
    """Draft of a registry entry.

    Attributes
    ----------
    content : mapping
        Plain values, in the registry's form.
    """

    content: Mapping[str, Any]

    @property
    def blanks(self) -> tuple[str, ...]:
        """Paths of fields for the curator to fill in, such as ``deployment/basic/intended_use``."""
        return tuple(path for path, value in _leaves(self.content) if isinstance(value, str) and _BLANK in value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(self.content)

    def to_yaml(self) -> str:
        """Return the YAML text; multi-line texts are literal blocks, as the registry requires."""
        text: str = yaml.dump(
            self.content, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=10_000, indent=2
        )
        return text

    def save(self, path: str | Path) -> None:
        """Write the file; the registry expects a lower-case name such as ``patients_2026.yaml``.

        Raises
        ------
        FileExistsError
            If the file exists.
        """
        write_text(self.to_yaml(), path, taken=NEVER_OVERWRITTEN)


def registry_entry(release: AuditedRelease, *, authors: Sequence[str] = (), **known: str) -> RegistryEntry:
    """Draft the entry of a release, with the facts that the release contains filled in.

    Parameters
    ----------
    name, description, intended_use, region, publication_date : str, optional
        Facts about the data product; the date as YYYY-MM-DD.
    curator, curator_type : str, optional
        The publisher; ``Government``, ``Industry`` or ``Nonprofit``.
    sector : str, optional
        ``Technology``, ``Healthcare``, ``Education``, ``Government``, ``Energy`` or ``Finance``.
    data_domain : str, optional
        The set of possible tables: "all visits to the hospital in 2026, one row per patient".
    release_type, data_source_type : str, optional
        ``One release`` or ``Many releases``; ``Static`` or ``Dynamic``.
    tuning, justification, actors : str, optional
        What was looked at or tuned beforehand; why the choices were made; who may see what, and is trusted with it.
    url : str, optional
        Where the release is described or available.
    authors : sequence of str
        Authors of the entry.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> made = dpm.release(np.zeros((100, 2)), dpm.Schema.unit_ball(2), epsilon=1.0)
    >>> made.registry_entry(name="Patients 2026", curator="A hospital").blanks[:2]
    ('deployment/basic/data_curators/0/data_curator_type', 'deployment/basic/intended_use')
    """
    if not release.privacy.private:
        raise InputValueError(
            "this release was made with an insecure seed and is not private: release the table again without "
            "insecure_seed"
        )
    known = {field: value for field, value in known.items() if value is not None}
    for field, value in known.items():
        if field not in _QUESTIONS:
            raise InputTypeError(f"{shown(field)} is not a field of a registry entry: use {', '.join(_QUESTIONS)}")
        if not isinstance(value, str):
            raise wrong_type(field, "a text", value)
        if field in _CHOICES and value not in _CHOICES[field]:
            raise InputValueError(
                f"{field}={shown(value)} is not a value of the registry: use one of {', '.join(_CHOICES[field])}"
            )
    if isinstance(authors, str) or not all(isinstance(author, str) for author in authors):
        raise InputTypeError("authors must be a list of names")
    date = known.get("publication_date")
    if date is not None:
        try:
            datetime.date.fromisoformat(date)
        except ValueError as reason:
            raise out_of_range("publication_date", date, "a date as YYYY-MM-DD, such as 2026-03-01") from reason
    schema = release.runs[0].schema
    weights = [] if schema.sampling_weight is None else [f"{schema.sampling_weight.name} (sampling weight)"]
    columns = ", ".join([*schema.names, *weights])

    def answer(field: str) -> str:
        question = _QUESTIONS[field] or f"one of {', '.join(_CHOICES[field])}"
        return known.get(field, f"{_BLANK}: {question.format(columns=columns)}")

    privacy, points = release.privacy, release.privacy_profile.points
    title = known.get("name") or release.dataset or f"release {release.id[:8]}"
    counts = [
        run.n_rows if getattr(run, "weighting", None) else getattr(run, "noisy_count", None) for run in release.runs
    ]
    sizes = {}
    if privacy.rows_per_unit == 1 and None not in counts:
        sizes["number_of_privacy_units"] = sum(max(1, round(float(count))) for count in counts if count is not None)
    budget = privacy.budget
    parameters = {"rho": budget.rho} if budget.kind is BudgetKind.ZCDP else {"epsilon": budget.epsilon}
    if budget.delta:
        parameters["delta"] = budget.delta
    profile = "; ".join(f"({no_less(point.epsilon, 4)}, {no_less(point.delta, 3)}) {point.mark}" for point in points)
    content = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "release",
        "deployment": {
            "basic": {
                "name": answer("name"),
                "data_curators": [
                    {"data_curator_name": answer("curator"), "data_curator_type": answer("curator_type")}
                ],
                "description": known.get("description", f"Count, mean and second moments of the columns {columns}."),
                "intended_use": answer("intended_use"),
                "data_product_type": "Summary statistics",
                "data_product_region": answer("region"),
                **({"data_product_sector": known["sector"]} if "sector" in known else {}),
                "publication_date": answer("publication_date"),
            },
            "dp_variant": {
                "variant_name": _VARIANTS[privacy.budget.kind],
                "data_domain": answer("data_domain"),
                "unprotected_quantities": _listed(unprotected_quantities(release)),
            },
            "privacy_loss": {
                "privacy_unit": "Row-level"
                if privacy.privacy_unit is None
                else f"All rows of one {privacy.privacy_unit.column}",
                "privacy_unit_details": f"The unit is {protected_unit(release)}. {describe_neighbors(release)}",
                **sizes,
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"Tightest known (ε, δ), each exact or a bound: {profile}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": "The curator holds the table and is trusted with it; readers of the release are not.",
                "actors": answer("actors"),
                "release_type": answer("release_type"),
                "data_source_type": answer("data_source_type"),
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _listed([*lines_of(privacy.rules), answer("tuning")]),
                "mechanisms": _listed(
                    [
                        *describe_runs(release),
                        f"Implemented by the Python library dpmoments, version {privacy.version}.",
                        Message(privacy.arithmetic).text(),
                        "Time, memory and the fact of an error are not protected.",
                    ]
                ),
                "composition": describe_composition(release),
                "post_processing": _listed([f"{text[0].upper()}{text[1:]}." for text in post_processing(release)]),
                "justification": answer("justification"),
                "additional_information": _listed(
                    [f"Release {release.id}.", *([f"Described at {known['url']}."] if known.get("url") else [])]
                ),
            },
            "administrative": {
                "status": "Draft",
                "registry_authors": list(authors) or [f"{_BLANK}: who fills in this entry"],
                "tier": 3,
            },
        },
    }
    return RegistryEntry(content)


def _listed(texts: Sequence[str]) -> str:
    """Return the texts as a Markdown list."""
    return "\n".join(f"- {text}" for text in texts) + "\n"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, entry in value.items():
        yield from _leaves(entry, f"{path}/{name}" if path else str(name))


class _BlockDumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as literal blocks."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _BlockDumper.represent_text)
