"""What one table of the collection is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import dpmoments as dpm

Half = Literal["design", "judge"]
"""Constants of the library may be chosen on the design half; the judge half is run when they are frozen."""
Made = tuple[Any, dpm.Schema]
"""A frame (or an array) and its public schema: round bounds that someone could have written without seeing the rows."""


@dataclass(frozen=True)
class Entry:
    """One table, made anew and always alike by `make`."""

    name: str
    half: Half
    family: str  # what it is an example of; the file it is in
    real: bool  # observed, not drawn from a law
    # What this machine does not have raises an OSError.
    make: Callable[[], Made]
    # The feature that a regression on this table predicts; None where every feature is a level of a category.
    target: str | None
