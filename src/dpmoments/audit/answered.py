"""A run made again from the answers that a file holds: all else in the file follows from them, and no table is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpmoments.foundation.values import finite_numbers
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.shape import RunResult
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.receipt import Draw, Receipt
from dpmoments.privacy.sampling import coordinates_of
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary
from dpmoments.schema.schema import Schema


class _Answers(PrivacyFilter):
    """Filter that gives the answers that a file holds, each in its turn."""

    def __init__(self, plan: Plan, answers: Sequence[Any]) -> None:
        super().__init__(plan, insecure_generator(0))
        self._answers_left = list(answers)

    def _answer(self, made: Draw, query: Any) -> Any:
        shape, size = np.shape(query), coordinates_of(query)
        answer = finite_numbers(self._answers_left.pop(0) if self._answers_left else None, size, "answers")
        if len(shape) == 2:
            upper, answer = answer, np.empty(shape)
            answer[np.triu_indices(len(answer))] = upper
            answer.T[np.triu_indices(len(answer))] = upper
        return answer * made.sensitivity.units


@dataclass(frozen=True, eq=False, repr=False)
class _NoRows(Rows):
    """Table without rows; all that it says is the number of rows, if it is public."""

    public_count: int = 0

    def summarize(self, summary: Summary[Any, Any]) -> Any:
        nothing = summary.finish(summary.start())
        return replace(nothing, count=self.public_count) if hasattr(nothing, "count") else nothing


def run_on_answers(plan: Plan, schema: Schema, count: int, answers: Sequence[Any]) -> tuple[RunResult, Receipt] | None:
    """Return what a run with these answers gives, and its receipt; None if the plan does not pay for it.

    ``count`` is the number of rows if it is public, else 0. Raise ValueError if a draw lacks an answer.
    """
    source: Any = SimpleNamespace(missing="drop")
    answered = _Answers(plan, answers)
    try:
        result = plan.run(_NoRows(schema, plan.neighbors, source, public_count=count), answered)
    except PrivacyFilterError:
        return None
    return result, answered.close()
