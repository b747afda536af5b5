"""Ways to an answer: one release of everything, or a release made for each question."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpmoments.analysis.answers import Answer, Column, number
from dpmoments.analysis.cross_table import cross_table
from dpmoments.base.errors import InputTypeError, InputValueError, closest, shown
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.counts import Counts, CountsPlan
from dpmoments.mechanisms.means.base import NormalRows
from dpmoments.mechanisms.registry import automatic_mean
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.planning.forecast_noise import ForecastNoise, ReleasePlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.schema.constraints import require_levels, schema_of_tables
from dpmoments.schema.schema import Schema

_RELEASE = "release"
_ABOUT_THE_SAME = 1.05
"""A release made for a question is named only if its error is this many times smaller."""


@dataclass(frozen=True)
class Way:
    """A question, and the errors of the ways to answer it."""

    question: str
    unit: str  # unit of the errors, which are noise SDs
    call: str  # the function whose release is made for this question
    # error from one release of all columns; infinite if noise hides the answer, NaN if a release cannot give it
    one_release: float
    # error from the release made for it, with the whole budget; NaN if such a release refuses a column
    own_release: float
    own_share: float  # the same with an equal share of the budget, if several questions are stated

    @property
    def best(self) -> str:
        """Way with the least error, if each question gets an equal share of the budget."""
        if math.isnan(self.own_share) or self.one_release <= self.own_share * _ABOUT_THE_SAME:
            return f"{_RELEASE}(…)"
        return self.call


@dataclass(frozen=True, eq=False, repr=False)
class Ways(Answer):
    """Errors of the ways to answer stated questions, before any data is read."""

    ways: tuple[Way, ...]
    title: str

    facts = ("best", "questions: *")

    @property
    def best(self) -> str:
        """Best way to answer all questions: one release, or a release for each."""
        if len(self.ways) == 1:
            return self.ways[0].best
        own = [way for way in self.ways if way.best == way.call]
        if not own:
            return f"{_RELEASE}(…)"
        if len(own) == len(self.ways):
            return "a release for each question"
        return "depends on the question"

    @property
    def heading(self) -> tuple[str, ...]:
        return (self.title,)

    @property
    def remarks(self) -> tuple[str, ...]:
        several = len(self.ways)
        together = (
            f"A release for each of the {several} questions has a share of the budget (1/{several}); one release answers all of "
            "them, and every other question, with the whole budget."
            if several > 1
            else "One release also answers every other question at no further cost."
        )
        return (f"Best for all: {self.best}.", together)

    def _columns(self) -> list[Column]:
        def errors(values: Sequence[float]) -> list[str]:
            return ["noise" if math.isinf(value) else number(value) for value in values]

        one, own, share = (
            [getattr(way, name) for way in self.ways] for name in ("one_release", "own_release", "own_share")
        )
        columns = [
            Column("question", [way.question for way in self.ways], "question", label=True),
            Column("unit", [way.unit for way in self.ways], "±, in"),
            Column("one_release", np.array(one), f"{_RELEASE}(…)", errors(one)),
            Column("own_release", np.array(own), "own release", errors(own)),
        ]
        if len(self.ways) > 1:
            columns.append(
                Column("own_share", np.array(share), f"with 1/{len(self.ways)} of the budget", errors(share))
            )
        return [*columns, Column("best", [way.best for way in self.ways], "best")]


def ways_to_answer(
    setting: ReleasePlan,
    title: str,
    *,
    means: bool,
    tables: Sequence[Sequence[str]],
    regressions: Sequence[Sequence[str]],
) -> Ways:
    """Compare one release by this plan with releases made for each question."""
    require_levels(setting.typical.schema)
    for parameter, given in (("tables", tables), ("regressions", regressions)):
        for one in [given] if isinstance(given, str) else given:
            if isinstance(one, str):
                raise InputTypeError(
                    f"{parameter} is a list of lists of names, [['income', 'age']], and has {shown(one)} in place of a "
                    "list"
                )
    noise = setting.noise
    if noise is None:
        raise InputValueError(f"the noise of {setting.mechanism.name} in original units is not known beforehand")

    # Each question: its name, the unit of its errors, the call, the error of the one release, and that of a release made for it.
    questions: list[tuple[str, str, str, float, Callable[[PrivacyBudget], float]]] = []
    if means:
        questions.append(("all means", "typical SDs", "release_mean(…)", noise.mean_error, partial(_of_means, setting)))
    for by in tables:
        cells = np.full(1, np.nan)  # a release has no table of three columns and more
        if len(by) == 1:
            cells = noise.mean[list(noise.typical.features_of_columns[by[0]])] * noise.n_rows
        elif len(by) == 2:
            cells = cross_table(noise.release, *by).noise
        own = partial(_of_counts, setting, by)
        questions.append((" by ".join(by), "rows, a count", "release_counts(…)", _root_mean_square(cells), own))
    for columns in regressions:
        _require_columns(setting.typical.schema, columns)
        name, call = f"{columns[0]} ~ {' + '.join(columns[1:])}", f"release(…) of {len(columns)} columns"
        own = partial(_of_columns, setting, columns)
        questions.append((name, "standardized coefficient", call, _of_regression(noise, columns), own))
    if not questions:
        raise InputValueError(
            "state a question: means=True, tables=[['region', 'sex']] or regressions=[['income', 'age']]"
        )

    budget = setting.request.budget
    shares = budget.split(*[1.0] * len(questions))
    ways = [
        Way(question, unit, call, one, own(budget), own(share))
        for (question, unit, call, one, own), share in zip(questions, shares, strict=True)
    ]
    return Ways(tuple(ways), title)


def _require_columns(schema: Schema, columns: Sequence[str]) -> None:
    """Raise ValueError unless these are a target of one feature and its regressors."""
    if len(columns) < 2:
        raise InputValueError(f"a regression is a target and its regressors, ['income', 'age'], got {list(columns)}")
    for name in columns:
        if name not in schema.names:
            close = closest(name, schema.names)
            question = f" (did you mean '{close}'?)" if close else ""
            raise InputValueError(f"'{name}' is not a column of the schema{question}")
    if columns[0] not in schema.feature_names:
        raise InputValueError(f"'{columns[0]}' has several features: the target of a regression must have one")


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _of_means(setting: ReleasePlan, budget: PrivacyBudget) -> float:
    """Return the RMS error of the means of ``release_mean``, in typical standard deviations."""
    # NaN for what it refuses: sampling weights, and `missing="available"`, where every column would need its own count.
    schema, neighbors = setting.typical.schema, setting.request.neighbors
    if schema.has_available or schema.sampling_weight is not None:
        return math.nan
    shape = MomentShape.of(schema, mean=True, n_rows=setting.n_rows if neighbors.table_size_is_public else None)
    plan = automatic_mean(schema, budget).plan_for(shape, replace(setting.request, budget=budget))
    scale, deviations = schema.encoding(mean=True).scale, setting.typical.standard_deviations
    errors = plan.expected_errors(NormalRows(setting.n_rows, deviations / scale))
    if errors is None:
        return math.inf
    return _root_mean_square(errors * scale / np.where(deviations > 0.0, deviations, 1.0))  # of constants: 1


def _of_counts(setting: ReleasePlan, by: Sequence[str], budget: PrivacyBudget) -> float:
    schema = setting.typical.schema
    chosen = Counts.of(schema, [list(by)], None)
    shape = MomentShape.of(schema_of_tables(schema, chosen.by), mean=True)
    plan: CountsPlan = chosen.plan_for(shape, replace(setting.request, budget=budget))
    return plan.noise[0].standard_deviation


def _of_regression(noise: ForecastNoise, columns: Sequence[str]) -> float:
    """Return the median noise on a standardized coefficient."""
    fit = noise.regression_on(columns[0], columns[1:])
    return math.inf if fit is None else fit.noise


def _of_columns(setting: ReleasePlan, columns: Sequence[str], budget: PrivacyBudget) -> float:
    """Return the noise on a coefficient in a release of some columns; the first is the target."""
    schema = setting.typical.schema
    own = schema.with_columns([one for one in schema.columns if one.name in columns], row_norm=False)
    noise = replace(setting, typical=setting.typical.for_schema(own)).under(budget).noise
    return math.inf if noise is None else _of_regression(noise, columns)
