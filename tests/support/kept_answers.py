"""Answers kept in a JSON file, one a line: read, compared leaf by leaf, and written again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

__all__ = ["KeptAnswers", "weighted_sums"]


@dataclass(frozen=True)
class KeptAnswers:
    """A file of answers by name; numbers agree to a relative tolerance, or are both near 0."""

    file: Path
    tolerance: float
    near_zero: float = 1e-9

    @cached_property
    def answers(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text(encoding="utf-8")))

    def require(self, found: Any, name: str) -> None:
        self._same(found, self.answers[name], name)

    def _same(self, found: Any, expected: Any, where: str) -> None:
        if isinstance(expected, dict | list):
            assert type(found) is type(expected), where
            assert len(found) == len(expected), where
            for key in expected if isinstance(expected, dict) else range(len(expected)):
                self._same(found[key], expected[key], f"{where}: {key}")
        elif isinstance(expected, float) and isinstance(found, float | int):
            assert found == pytest.approx(expected, rel=self.tolerance, abs=self.near_zero), where
        else:
            assert found == expected, where

    def write(self, answers: Mapping[str, Any], separators: tuple[str, str] = (", ", ": ")) -> None:
        lines = (
            f"{json.dumps(name)}: {json.dumps(answer, ensure_ascii=False, separators=separators)}"
            for name, answer in answers.items()
        )
        self.file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def weighted_sums(values: np.ndarray) -> tuple[float, np.ndarray, int]:
    """Return the size of an array, three weighted sums of its entries in it, and the sum of the places that are finite.

    Hardly any change leaves the sums alone; in the array's size they may be near 0.
    """
    entries = values.ravel()
    known, places = np.isfinite(entries), np.arange(entries.size)
    weights = np.cos(np.outer([1.0, 2.0, 3.0], (1.0 + places) ** 1.5))
    kept = np.where(known, entries, 0.0)
    size = float(np.abs(kept).max()) or 1.0
    return size, weights @ kept / size, int(known @ places)
