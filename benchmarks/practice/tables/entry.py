"""What one table of the collection is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import dpmoments as dpm

Half = Literal["design", "judge", "regression"]
"""Constants of the library may be chosen on the design half; the judge half is run when they are frozen. Tables of "regression"
judge methods for one regression, and join nothing that names neither them nor their half."""
Made = tuple[Any, dpm.Schema]
"""A frame (or an array) and its public schema: round bounds that someone could have written without seeing the rows."""


@dataclass(frozen=True)
class Entry:
    """One table, made anew and always alike by `make`."""

    name: str
    half: Half  # {"design", "judge", "regression"}
    family: str  # what it is an example of; the file it is in
    real: bool  # observed, not drawn from a law
    # Nothing is fetched: what is not on this machine raises FileNotFoundError or ConnectionError.
    make: Callable[[], Made]
    # The feature that a regression on this table predicts; None where every feature is a level of a category.
    target: str | None
