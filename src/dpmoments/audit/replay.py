"""Replay: a run on one table, repeated on its neighbor with the same answers.

A run sees the table through exact queries and sends each through the privacy filter. The first run's answers are given
to a second run on a neighboring table. Then every query of the second must be within its stated sensitivity of the
first run's, and everything that leaves the run must be equal bit for bit: result, diagnostics, receipt, warnings,
errors, and what was asked of the table. Any difference was not paid for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import numpy as np

from dpmoments.audit.pairs import everyday_pairs, neighboring_pairs, unrelated_tables
from dpmoments.base.values import finite_numbers
from dpmoments.mechanisms.base import CalibratedPlan, ConfiguredMechanism, Plan
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.laws import EigenvalueBound, WishartSampling
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError, PrivatePlan
from dpmoments.privacy.receipt import Draw, Receipt
from dpmoments.privacy.sampling import coordinates_of, insecure_generator
from dpmoments.privacy.sensitivity import query_distance
from dpmoments.privacy.unit import Neighbors, SelectionKey
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary
from dpmoments.schema.schema import Schema

# Filters for tests and audits: one that keeps the queries and answers of a run, one that gives them to another run.

_TOLERANCE = 1e-9
"""Relative rounding error allowed for the distance of two queries."""


@dataclass(frozen=True)
class Exchange:
    """Query of a run and its answer: private data, for tests and audits only."""

    made: Draw
    query: Any = field(repr=False)
    answer: Any = field(repr=False)


class Recorder(PrivacyFilter):
    """Filter that keeps every query with its answer."""

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator) -> None:
        super().__init__(plan, generator)
        self.exchanges: list[Exchange] = []
        self.keys: list[SelectionKey] = []

    def selection_key(self) -> SelectionKey:
        """Return a key, and keep it for the run on the neighbor."""
        self.keys.append(super().selection_key())
        return self.keys[-1]

    def _note(self, made: Draw, query: Any, answer: Any) -> None:
        self.exchanges.append(Exchange(made, np.array(query), np.array(answer)))


class Replayer(PrivacyFilter):
    """Filter that gives the answers of another run, and compares its queries with that run's.

    ``recorded`` and ``keys`` come from a run on a neighboring table. If ``same_rows`` (the same rows in another order),
    no query may change; if ``any_table`` (not a neighbor), queries may change by any amount. ``faults`` lists queries
    of another distribution or shape, changes beyond the sensitivity, and changes in more groups of rows than one row
    can be in.
    """

    def __init__(
        self,
        plan: PrivatePlan,
        recorded: Iterable[Exchange],
        *,
        same_rows: bool = False,
        any_table: bool = False,
        keys: Sequence[SelectionKey] = (),
    ) -> None:
        super().__init__(plan, insecure_generator(0))
        self._keys = list(keys)
        self._rows_per_unit = 1 if plan.privacy_unit is None else plan.privacy_unit.rows_per_unit
        self._same_rows, self._any_table = same_rows, any_table
        self._recorded = list(recorded)
        self.faults: list[str] = []
        self._moved_groups: set[str] = set()

    def _answer(self, made: Draw, query: Any) -> Any:
        index = len(self._draws) - 1
        if index >= len(self._recorded):
            fault = f"draw {index}, {made.what}: the other run did not make it"
            self.faults.append(fault)
            raise PrivacyFilterError(fault)
        before = self._recorded[index]
        if replace(made, size=before.made.size) != before.made:  # another shape is an infinite distance
            self.faults.append(
                f"draw {index}: {made.what} under {made.law}, before {before.made.what} under {before.made.law}"
            )
        stated = made.sensitivity
        moved = query_distance(stated.norm, query, before.query, stated.neighbors, stated.blocks)
        paid_for = 0.0 if self._same_rows else self._rows_per_unit * made.sensitivity.value * (1.0 + _TOLERANCE)
        if not moved <= paid_for and not (self._any_table and np.shape(query) == np.shape(before.query)):
            self.faults.append(f"draw {index}, {made.what}: moved by {moved!r} where {paid_for!r} is paid for")
        if moved > 0.0 and made.group is not None and not self._any_table:
            self._moved_groups.add(made.group)
            # A row is in one group at most, and may leave it for another where it is replaced: the rest is not paid for.
            touched = 1 if made.sensitivity.neighbors is Neighbors.ADD_REMOVE else 2
            if len(self._moved_groups) > touched:
                self.faults.append(f"draw {index}, {made.what}: moved in {len(self._moved_groups)} groups of rows")
        answer = before.answer
        return answer.copy() if answer.ndim else answer.item()

    def selection_key(self) -> SelectionKey:
        """Return the key of the other run."""
        return self._keys.pop(0)

    def check_all_made(self) -> None:
        """Record draws of the other run that this one did not make as faults."""
        if len(self._draws) < len(self._recorded):
            self.faults.append(f"{len(self._recorded) - len(self._draws)} draws of the other run were not made")


Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class _WatchedRows(Rows):
    """Rows that record what was asked of them."""

    asked: list[Summary[Any, Any]] = field(default_factory=list)

    def summarize(self, summary: Summary[Running, Result]) -> Result:
        """Record the summary and compute it."""
        self.asked.append(summary)
        return super().summarize(summary)


@dataclass(frozen=True)
class _Departure:
    """Everything that left a run."""

    result: Any
    error: tuple[str, str] | None
    warnings: tuple[tuple[str, str], ...]
    asked: tuple[Any, ...]
    receipt: Mapping[str, Any]
    plan: CalibratedPlan[Any]
    details: Mapping[str, Any]


def replay(
    plan: CalibratedPlan[Any],
    first: Rows,
    second: Rows,
    generator: np.random.Generator,
    *,
    same_rows: bool = False,
    any_table: bool = False,
) -> tuple[str, ...]:
    """Find what a run on the second table would reveal that its plan does not pay for.

    The tables are neighbors for the plan's relation; ``generator`` is for the run on the first. With ``same_rows`` the
    second has the rows of the first in another order, and no query may change; with ``any_table`` the tables are
    arbitrary, and only queries may change. The findings, usually none, may contain private numbers of the two tables.
    """
    recorder = Recorder(plan, generator)
    before = _departure(plan, first, recorder)
    replayer = Replayer(plan, recorder.exchanges, same_rows=same_rows, any_table=any_table, keys=recorder.keys)
    after = _departure(plan, second, replayer)
    replayer.check_all_made()
    stopped = []
    if before.error is not None:
        spent = "after it had spent" if recorder.exchanges else "before it spent anything"
        stopped.append(f"the run stopped {spent}: {before.error[0]}: {before.error[1]}")

    # Wishart draws whose matrix has another bound, or is not a sum of squares.
    unfounded, bounded = [], list[float]()
    for exchange in recorder.exchanges:
        if isinstance(exchange.made.law, EigenvalueBound):
            bounded.append(float(exchange.query))
        if isinstance(exchange.made.law, WishartSampling):
            eigenvalues = np.linalg.eigvalsh(exchange.query)
            rounding = _TOLERANCE * max(1.0, float(eigenvalues[-1]))
            if eigenvalues[0] < -rounding:
                unfounded.append(f"{exchange.made.what} has a negative eigenvalue: its curve is for sums of squares")
            if any(bound > eigenvalues[0] + rounding for bound in bounded):
                unfounded.append(f"{exchange.made.what} relies on a bound that is for another matrix")
    return (*stopped, *unfounded, *replayer.faults, *_differences(before, after, "the run's outcome"))


def replay_everywhere(
    mechanism: ConfiguredMechanism[Any],
    budget: PrivacyBudget,
    neighbors: Neighbors | str,
    generator: np.random.Generator,
    *,
    n_features: int = 3,
    mean: bool = True,
    every: int = 1,
    first_pair: int = 0,
) -> tuple[str, ...]:
    """Replay a mechanism on many pairs of tables in the unit ball.

    Parameters
    ----------
    mechanism : Mechanism or MeanMechanism
    budget : PrivacyBudget
    neighbors : Neighbors or str
    generator : numpy.random.Generator
    n_features : int
    mean : bool
        Release count and mean.
    every, first_pair : int
        Take one pair of ``every``, beginning with this index; default: all.

    Returns
    -------
    tuple of str
        Findings, each after the name of its pair. Under ``replace_one`` each pair is tried with a schema that drops
        rows with missing values (the number of kept rows is private) and with one that drops none (it is public).

    Examples
    --------
    >>> from dpmoments.mechanisms import MatrixLaplace
    >>> from dpmoments.noise import insecure_generator
    >>> replay_everywhere(MatrixLaplace(), PrivacyBudget.pure(1.0), "add_remove", insecure_generator(0))
    ()
    """
    neighbors, result = Neighbors.of(neighbors), list[str]()
    pairs = (*neighboring_pairs(n_features, neighbors), *everyday_pairs(n_features, neighbors, generator))
    pairs = pairs[first_pair::every]
    plans = dict[MomentShape, CalibratedPlan[Any]]()
    rules: tuple[Literal["drop", "center"], ...] = ("drop", "center") if neighbors.table_size_is_public else ("drop",)
    for index, (pair, rule) in enumerate(product(pairs, rules)):
        schema = Schema.unit_ball(n_features, missing=rule)
        shape = MomentShape.of(schema, mean=mean, n_rows=len(pair.first) if neighbors.table_size_is_public else None)
        if shape not in plans:
            plans[shape] = mechanism.plan(shape, budget, neighbors)
        rows = [
            Rows.of(table, schema, mean=mean, neighbors=neighbors, threads=1) for table in (pair.first, pair.second)
        ]
        # A distance is the same both ways; what follows from the answers is tried from either table in turn.
        first, second = rows[:: -1 if index // len(rules) % 2 else 1]
        findings = replay(plans[shape], first, second, generator, same_rows=pair.same_rows)
        result += [f"{pair.name}: {finding}" for finding in findings]
    return tuple(result)


def replay_on_any_table(
    mechanism: ConfiguredMechanism[Any],
    budget: PrivacyBudget,
    neighbors: Neighbors | str,
    generator: np.random.Generator,
    *,
    n_features: int = 3,
    mean: bool = True,
    sizes: Sequence[int] = (3, 700),
) -> tuple[str, ...]:
    """Replay a mechanism on tables that share only what is public, given the same answers.

    What leaves a run must then be the same. This detects decisions made from an exact count, which two neighbors rarely
    straddle. Parameters are as for :func:`replay_everywhere`; ``sizes`` are numbers of rows.

    Examples
    --------
    >>> from dpmoments.mechanisms import MatrixLaplace
    >>> from dpmoments.noise import insecure_generator
    >>> replay_on_any_table(MatrixLaplace(), PrivacyBudget.pure(1.0), "add_remove", insecure_generator(0))
    ()
    """
    neighbors, result = Neighbors.of(neighbors), list[str]()
    rules: tuple[Literal["drop", "center"], ...] = ("drop", "center")
    for n_rows, rule in product(sizes, rules):
        schema = Schema.unit_ball(n_features, missing=rule)
        public = n_rows if neighbors.table_size_is_public else None
        plan = mechanism.plan(MomentShape.of(schema, mean=mean, n_rows=public), budget, neighbors)
        tables = unrelated_tables(n_rows, n_features, generator)
        names = generator.permutation(list(tables))
        for first, second in zip(names[::2], names[1::2], strict=False):
            other = tables[second][: n_rows if public else n_rows // 2]
            one, another = (
                Rows.of(table, schema, mean=mean, neighbors=neighbors, threads=1) for table in (tables[first], other)
            )
            findings = replay(plan, one, another, generator, any_table=True)
            result += [f"{first}, then {second}, {n_rows} rows: {finding}" for finding in findings]
    return tuple(result)


def _departure(plan: CalibratedPlan[Any], rows: Rows, privacy_filter: PrivacyFilter) -> _Departure:
    plan = deepcopy(plan)  # what one run keeps in its plan must not reach the other
    watched = _WatchedRows(rows.schema, rows.neighbors, rows.source, rows.threads, privacy_unit=rows.privacy_unit)
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plan.run(watched, privacy_filter)
        except Exception as reason:  # whatever it is, the one who asked for the release sees it
            error = (type(reason).__name__, str(reason))
    said = tuple((warning.category.__name__, str(warning.message)) for warning in caught)
    # A release publishes its plan's numbers after the run.
    receipt = privacy_filter.close().to_dict()
    return _Departure(result, error, said, tuple(watched.asked), receipt, plan, plan.details)


def _differences(first: Any, second: Any, name: str = "value") -> list[str]:
    """List differences between two values, arrays or dataclasses, to the last bit.

    >>> _differences({"a": 1.0, "b": [2]}, {"a": 1.0, "b": [3]})
    ["value['b'][0] is 2 in one run and 3 in the other"]
    """
    if type(first) is not type(second):
        return [f"{name} is a {type(first).__name__} in one run and a {type(second).__name__} in the other"]
    if isinstance(first, np.ndarray):
        bits = [one.tolist() if one.dtype == object else one.tobytes() for one in (first, second)]
        alike = (first.shape, first.dtype) == (second.shape, second.dtype) and bits[0] == bits[1]
        return [] if alike else [f"{name} differs between the runs"]
    if isinstance(first, Mapping):
        if list(first) != list(second):
            return [f"{name} has the entries {list(first)} in one run and {list(second)} in the other"]
        return [result for key in first for result in _differences(first[key], second[key], f"{name}[{key!r}]")]
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        if len(first) != len(second):
            return [f"{name} has {len(first)} entries in one run and {len(second)} in the other"]
        pairs = enumerate(zip(first, second, strict=True))
        return [result for index, (a, b) in pairs for result in _differences(a, b, f"{name}[{index}]")]
    if is_dataclass(first) and not isinstance(first, type):
        entries = [(entry.name, getattr(first, entry.name), getattr(second, entry.name)) for entry in fields(first)]
        return [result for entry, a, b in entries for result in _differences(a, b, f"{name}.{entry}")]
    if repr(first) == repr(second):  # repr of a float tells every bit, and NaN from no number but itself
        return []
    return [f"{name} is {first!r} in one run and {second!r} in the other"]


class _Answers(PrivacyFilter):
    """Filter that gives the answers that a file holds, each in its turn."""

    def __init__(self, plan: PrivatePlan, answers: Sequence[Any]) -> None:
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


def run_on_no_rows(plan: Plan, schema: Schema, public_count: int, answers: Sequence[Any]) -> tuple[RunResult, Receipt]:
    """Run a plan on a table without rows, with the answers that a file holds."""
    source: Any = SimpleNamespace(missing="drop")
    answered = _Answers(plan, answers)
    result = plan.run(_NoRows(schema, plan.neighbors, source, public_count=public_count), answered)
    return result, answered.receipt
