"""What every analysis answers with: text for people, plain values for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from dpmoments.array_types import FloatArray

__all__ = ["Answer", "aligned", "finite_or_none", "number"]


class Answer(Protocol):
    """The result of an analysis. The command line prints one or the other."""

    def summary(self) -> str:
        """The answer as text."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON holds it: numbers keep every bit, and what is not a finite number is None."""


def number(value: float | None) -> str:
    """Five significant digits; a dash where there is no number.

    Examples
    --------
    >>> number(0.0123456), number(38.5), number(None)
    ('0.012346', '38.5', '–')
    """
    return "–" if value is None or not math.isfinite(value) else f"{value:.5g}"


def finite_or_none(values: FloatArray) -> list[float | None]:
    """A list of the numbers of a vector, None for those that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> finite_or_none(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [value if math.isfinite(value) else None for value in values.tolist()]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as a table: the first column to the left, the others, numbers, to the right.

    Examples
    --------
    >>> print(aligned([("feature", "mean"), ("age", "38.5")]))
    feature  mean
    age      38.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
