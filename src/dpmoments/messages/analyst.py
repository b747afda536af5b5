"""Advice to an analyst, who has only the release.

Nothing here asks for the table, a budget or a new release.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.messages.wording import Words

_CLIPPED = "Read all results as results about clipped rows."
_NO_RELIANCE = "Do not rely on it."

ANALYST: Mapping[str, Words] = MappingProxyType(
    {
        "clipped-rows": "Read answers on these columns as answers about the clipped rows.",
        "rows-dropped": "Results describe the rest.",
        "too-few-rows": "Rely only on results that are marked as distinguishable from noise.",
        "location-lost": "Do not use them.",
        "values-clipped": _CLIPPED,
        "mean-lost": _NO_RELIANCE,
        "variance-lost": _NO_RELIANCE,
        "rows-outside-bounds": _CLIPPED,
        "rows-mostly-clipped": _CLIPPED,
        "tables-not-checked": "Ask the curators whether the tables have rows in common.",
        "dependent-rows": "Read p-values as upper bounds.",
    }
)
"""Advice by code; a message without any has nothing that an analyst can do."""
