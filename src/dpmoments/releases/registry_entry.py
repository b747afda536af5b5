"""Draft of an entry for the public registry of deployments of differential privacy.

The form follows the schema of github.com/opendp/deployments-registry-data as read in 2026: one YAML file per
deployment, at tier 3. The schema is based on research by Ghazi, Nanayakkara and Vadhan; none of its text is copied.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmoments.foundation.documents import NEVER_OVERWRITTEN, write_text
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import no_less
from dpmoments.messages.message import Message
from dpmoments.privacy.budget import BudgetKind
from dpmoments.releases.facts import (
    Told,
    describe_composition,
    describe_neighbors,
    describe_runs,
    post_processing,
    protected_unit,
    unprotected_quantities,
)

_BLANK = "TO BE FILLED IN BY THE CURATOR"
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


def registry_entry(
    release: Told,
    *,
    name: str | None = None,
    curator: str | None = None,
    curator_type: str | None = None,
    description: str | None = None,
    intended_use: str | None = None,
    region: str | None = None,
    sector: str | None = None,
    publication_date: str | None = None,
    data_domain: str | None = None,
    release_type: str | None = None,
    data_source_type: str | None = None,
    tuning: str | None = None,
    justification: str | None = None,
    actors: str | None = None,
    url: str | None = None,
    authors: Sequence[str] = (),
) -> RegistryEntry:
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
        raise InputValueError(Message("not-private-in-registry"))
    given = {
        "name": name,
        "curator": curator,
        "curator_type": curator_type,
        "description": description,
        "intended_use": intended_use,
        "region": region,
        "sector": sector,
        "publication_date": publication_date,
        "data_domain": data_domain,
        "release_type": release_type,
        "data_source_type": data_source_type,
        "tuning": tuning,
        "justification": justification,
        "actors": actors,
        "url": url,
    }
    known = {field: value for field, value in given.items() if value is not None}
    _check(known, authors)

    def answer(field: str, question: str) -> str:
        return known.get(field, f"{_BLANK}: {question}")

    def chosen(field: str) -> str:
        return answer(field, f"one of {', '.join(_CHOICES[field])}")

    privacy, points = release.privacy, release.privacy_profile.points
    size = _number_of_units(release)
    title = known.get("name") or release.dataset or f"release {release.id[:8]}"
    sizes = {} if size is None else {"number_of_privacy_units": size}
    profile = "; ".join(f"({no_less(point.epsilon, 4)}, {no_less(point.delta, 3)}) {point.mark}" for point in points)
    columns = ", ".join(release.runs[0].schema.names)
    content = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "release",
        "deployment": {
            "basic": {
                "name": answer("name", "the name of the data product"),
                "data_curators": [
                    {
                        "data_curator_name": answer("curator", "who publishes"),
                        "data_curator_type": chosen("curator_type"),
                    }
                ],
                "description": known.get("description", f"Count, mean and second moments of the columns {columns}."),
                "intended_use": answer("intended_use", "what the release is for"),
                "data_product_type": "Summary statistics",
                "data_product_region": answer("region", "whom the data describe, and which jurisdiction applies"),
                **({"data_product_sector": known["sector"]} if "sector" in known else {}),
                "publication_date": answer("publication_date", "YYYY-MM-DD"),
            },
            "dp_variant": {
                "variant_name": _VARIANTS[privacy.budget.kind],
                "data_domain": answer("data_domain", f"which tables might have been; their columns are {columns}"),
                "unprotected_quantities": _listed(unprotected_quantities(release)),
            },
            "privacy_loss": {
                "privacy_unit": "Row-level"
                if privacy.privacy_unit is None
                else f"All rows of one {privacy.privacy_unit.column}",
                "privacy_unit_details": f"The unit is {protected_unit(release)}. {describe_neighbors(release)}",
                **sizes,
                "privacy_parameters": _parameters(release),
                "privacy_parameters_details": f"Tightest known (ε, δ), each exact or a bound: {profile}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": "The curator holds the table and is trusted with it; readers of the release are not.",
                "actors": answer("actors", "who may see the table or the release, and why they are trusted with it"),
                "release_type": chosen("release_type"),
                "data_source_type": chosen("data_source_type"),
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _listed(
                    [
                        *map(str, privacy.rules),
                        answer("tuning", "what was looked at or tuned beforehand, and whether its cost was counted"),
                    ]
                ),
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
                "justification": answer("justification", "how budget, bounds and mechanism were chosen, and by whom"),
                "additional_information": _listed(
                    [f"Release {release.id}.", *([f"Described at {url}."] if url else [])]
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


def _parameters(release: Told) -> dict[str, float]:
    budget = release.privacy.budget
    if budget.kind is BudgetKind.ZCDP:
        return {"rho": budget.rho}
    return {"epsilon": budget.epsilon} | ({"delta": budget.delta} if budget.delta else {})


def _number_of_units(release: Told) -> int | None:
    """Return the number of privacy units, exact or noisy; None if it is unknown."""
    if release.privacy.privacy_unit is not None:
        return None
    counts = [getattr(run, "noisy_count", None) for run in release.runs]
    return None if None in counts else sum(max(1, round(float(count))) for count in counts if count is not None)


def _listed(texts: Sequence[str]) -> str:
    """Return the texts as a Markdown list."""
    return "\n".join(f"- {text}" for text in texts) + "\n"


def _check(known: Mapping[str, Any], authors: Sequence[str]) -> None:
    for field, value in known.items():
        if not isinstance(value, str):
            raise InputTypeError(Message("wrong-type", parameter=field, expected="text", got=type(value).__name__))
        if field in _CHOICES and value not in _CHOICES[field]:
            raise InputValueError(
                Message("not-a-registry-value", parameter=field, value=value, choices=[*_CHOICES[field]])
            )
    if isinstance(authors, str) or not all(isinstance(author, str) for author in authors):
        raise InputTypeError(Message("authors-not-a-list"))
    date = known.get("publication_date")
    if date is not None:
        try:
            datetime.date.fromisoformat(date)
        except ValueError as reason:
            raise InputValueError(
                Message(
                    "out-of-range",
                    parameter="publication_date",
                    value=date,
                    expected="date",
                )
            ) from reason


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, list):
        parts = ((str(index), entry) for index, entry in enumerate(value))  # type: ignore[assignment]
    else:
        yield path, value
        return
    for name, entry in parts:
        yield from _leaves(entry, f"{path}/{name}" if path else str(name))


class _BlockDumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as literal blocks."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _BlockDumper.represent_text)
