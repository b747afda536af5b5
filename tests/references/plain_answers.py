"""The noisy answers of a recorded run, given out again to a plain implementation that must ask the same questions.

A mechanism is a function of its noisy answers. Written a second time, slowly, on the table itself and with this in place of
noise, it must make the same draws (name, sensitivity, scale of the noise, exact query) and arrive at the same release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from dpmoments.audit.replay import Exchange, Recorder
from dpmoments.base.message import Message, Query
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.mapped_rows import NormHistogram
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.laws import Choice, DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema


class Answers:
    """Exchanges of a run, in their order; ``pure`` where losses are ε and noise is Laplace, else ρ and Gaussian."""

    def __init__(self, exchanges: Iterable[Exchange], *, replace_one: bool, pure: bool, names: Sequence[str]) -> None:
        self._left = list(exchanges)
        self.replace_one, self.pure, self.names = replace_one, pure, names
        self.of_sum, self.of_bin, self.of_squares = (
            (2.0, math.sqrt(2.0), math.sqrt(2.0)) if replace_one else (1.0, 1.0, 1.0)
        )

    def scale(self, loss: float, sensitivity: float) -> float:
        """Of the noise that a loss pays for."""
        return sensitivity / loss if self.pure else sensitivity / math.sqrt(2.0 * loss)

    def deviation(self, loss: float, sensitivity: float) -> float:
        """The standard deviation of that noise."""
        return self.scale(loss, sensitivity) * (math.sqrt(2.0) if self.pure else 1.0)

    def noisy(
        self, what: Query, exact: Any, loss: float, sensitivity: float, *, units: float = 1.0, within: float = 0.0
    ) -> np.ndarray:
        """The answer to a query in integers, ``units`` of which are 1."""
        exchange = self._left.pop(0)
        made = exchange.made
        assert made.what == (Message(what) if isinstance(what, str) else what)
        assert made.sensitivity.units == units
        assert made.sensitivity.value / units == pytest.approx(sensitivity, rel=1e-12)
        assert isinstance(made.law, DiscreteLaplace if self.pure else DiscreteGaussian)
        assert made.law.scale / units == pytest.approx(self.scale(loss, sensitivity), rel=1e-9)
        np.testing.assert_allclose(exchange.query.astype(float) / units, exact, rtol=0.0, atol=within)
        return np.asarray(exchange.answer.astype(float) / units)

    def of_rows(
        self, what: Query, rows: np.ndarray, loss: float, sensitivity: float, bits: int, *, squares: bool = False
    ) -> np.ndarray:
        """The noisy sum of rows in the unit ball that are rounded to units of 2^−bits, or of the squares of their entries."""
        # A row moves by half a unit a coordinate, and as much again where it is shortened for that.
        within = 2.0 * len(rows) * math.sqrt(rows.shape[1]) * 2.0**-bits
        if squares:
            return self.noisy(what, (rows**2).sum(axis=0), loss, sensitivity, units=4.0**bits, within=2.0 * within)
        return self.noisy(what, rows.sum(axis=0), loss, sensitivity, units=2.0**bits, within=within)

    def histogram(self, what: Query, norms: np.ndarray, edges: np.ndarray, rho: float) -> NormHistogram:
        """Noisy counts of norms."""
        exact = [
            (norms < edges[0]).sum(),
            *np.histogram(norms[norms < edges[-1]], edges)[0],
            (norms >= edges[-1]).sum(),
        ]
        return NormHistogram(edges, self.noisy(what, exact, rho, self.of_bin), self.scale(rho, self.of_bin))

    def count(self, n_rows: int, loss: float) -> float:
        """A noisy number of rows, rounded, 1 or more."""
        return max(1.0, round(float(self.noisy("count", [n_rows], loss, 1.0)[0])))

    def choice(self, what: Query, scores: Any, loss: float) -> int:
        """What an exponential mechanism chose, whose scores move by 1."""
        exchange = self._left.pop(0)
        made = exchange.made
        assert made.what == (Message(what) if isinstance(what, str) else what)
        assert isinstance(made.law, Choice)
        assert made.sensitivity.value == 1.0
        assert made.law.epsilon == pytest.approx(self.epsilon(loss), rel=1e-9)
        np.testing.assert_array_equal(exchange.query, scores)
        return int(exchange.answer)

    def epsilon(self, loss: float) -> float:
        """Of a choice: its ρ is ε²/8."""
        return loss if self.pure else math.sqrt(8.0 * loss)

    def check_all_used(self) -> None:
        """Nothing was drawn that the plain implementation did not ask for."""
        assert not self._left, [exchange.made.what for exchange in self._left]


def finest_bits(scale: float, n_features: int) -> int:
    """The finest lattice of rows, 2^−20 at most, on which noise of that scale is below 2^46 units of 4^−b and sums are exact."""
    return max(b for b in range(21) if scale * 4.0**b <= 2.0**46 and n_features * 4.0**b <= 2.0**53)


def lengths(rows: np.ndarray) -> np.ndarray:
    """Norms of rows whose squares may be beyond floating point."""
    peaks = np.abs(rows).max(axis=1)
    return np.asarray(peaks * np.linalg.norm(rows / np.where(peaks > 0.0, peaks, 1.0)[:, None], axis=1))


def recorded(
    name: str,
    table: np.ndarray,
    budget: PrivacyBudget,
    *,
    seed: int = 0,
    neighbors: str = "replace_one",
    drops: bool = False,
    **options: Any,
) -> tuple[NoisyMean, Answers]:
    """One run of an estimator on rows without bounds, and its answers; where ``drops`` their number is private."""
    n, d = table.shape
    schema = Schema.unbounded(d, missing="drop" if drops else "center")
    shape = MomentShape.of(schema, mean=True, n_rows=n if neighbors == "replace_one" else None)
    plan = make_mean_mechanism(name, **options).plan(shape, budget, neighbors)
    recorder = Recorder(plan, insecure_generator(seed))
    noisy = plan.run(Rows.of(table, schema, mean=True, neighbors=neighbors, threads=1), recorder)
    receipt = recorder.close()
    assert receipt.exhausts
    pure = budget.kind is BudgetKind.PURE
    answers = Answers(recorder.exchanges, replace_one=neighbors == "replace_one", pure=pure, names=schema.feature_names)
    return noisy, answers


def assert_same_messages(said: Sequence[Message], expected: Sequence[Message]) -> None:
    """The same codes and facts, numbers to rounding."""
    assert [message.code for message in said] == [message.code for message in expected]
    for message, other in zip(said, expected, strict=True):
        assert message.facts.keys() == other.facts.keys()
        for name, fact in message.facts.items():
            close = (
                pytest.approx(other.facts[name], rel=1e-7, abs=1e-12) if isinstance(fact, float) else other.facts[name]
            )
            assert fact == close, (message, other)


def assert_same(found: NoisyMean, expected: dict[str, Any], answers: Answers) -> None:
    """Result, diagnostics and warnings, to rounding."""
    answers.check_all_used()
    assert found.count == expected.pop("count")
    np.testing.assert_allclose(found.mean, expected.pop("mean"), rtol=1e-7, atol=1e-12)
    said = found.diagnostics["warnings"]
    warned = expected.pop("warnings")
    assert_same_messages(said, warned)
    assert {*found.diagnostics} == {*expected, "warnings"}
    for name, value in expected.items():
        _assert_close(found.diagnostics[name], value, name)


def _assert_close(found: Any, expected: Any, place: str) -> None:
    if isinstance(expected, dict):
        assert {*found} == {*expected}, place
        for name, value in expected.items():
            _assert_close(found[name], value, f"{place}.{name}")
    elif isinstance(expected, list) and expected and isinstance(expected[0], dict):
        assert len(found) == len(expected), place
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            _assert_close(one, other, f"{place}[{index}]")
    elif expected is None:
        assert found is None, place
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12, err_msg=place)
