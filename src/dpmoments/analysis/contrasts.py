"""Linear restrictions on coefficients of a regression: their tests, and predictions.

A contrast c'β has the interval and the test of a coefficient after a change of basis
(``docs/evidence/derivations/regression-inference.md``).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy

from dpmoments.analysis.answers import (
    Answer,
    Column,
    confidence_level,
    format_level,
    rounded_cells,
    rounded_end,
    step_errors,
    takes_level,
)
from dpmoments.analysis.confidence import (
    NOT_CLEAR_NOISE,
    Estimate,
    decided,
    error_rate,
    holding,
    holds_among_all,
    not_clear,
    sign_verdicts,
    verdict_columns,
)
from dpmoments.analysis.normal_equations import JointTest, NormalEquations
from dpmoments.base.errors import InputTypeError, InputValueError, closest, shown
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.schema.columns import Categorical
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, Power
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "(intercept)"
"""Name of the constant among the coefficients."""
INTERCEPTS = (INTERCEPT, "intercept", "Intercept", "(Intercept)", "const")

Restrictable = str | Sequence[str] | Mapping[str, float] | FloatArray | tuple[Any, Any]
"""Forms of restrictions that :meth:`Restrictions.of` reads."""


def format_p_value(value: float) -> str:
    """Format a p-value as a cell of a table.

    >>> format_p_value(0.0432), format_p_value(1e-9), format_p_value(float("nan"))
    ('0.043', '<0.001', '–')
    """
    return "–" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def format_end(value: float, error: float) -> str:
    """Format the end of an interval, rounded by the error of the estimate; ∞ if it is unbounded.

    >>> format_end(-float("inf"), float("nan")), format_end(1.23456, 0.21)
    ('−∞', '1.23')
    """
    return ("−∞" if value < 0 else "∞") if math.isinf(value) else rounded_end(value, error)


def format_statistic(value: float) -> str:
    """Format a test statistic as a cell of a table."""
    return "–" if math.isnan(value) else f"{value:,.2f}"


def of_estimates(estimates: Sequence[Estimate], part: str) -> FloatArray:
    """Return one attribute of every estimate, shape (k,)."""
    return np.array([getattr(each, part) for each in estimates], dtype=np.float64)


def statistics_of(estimates: Sequence[Estimate], equations: NormalEquations) -> FloatArray:
    """Return the statistics of the p-values, shape (k,): t, or z for test inversion."""
    value, error, p_value = (of_estimates(estimates, part) for part in ("value", "standard_error", "p_value"))
    if equations.delta_method_valid:
        known = ~np.isnan(p_value) & (error > 0.0)
        result = np.divide(value, error, out=np.full(len(value), np.nan), where=known)
        if not equations.after_repair:
            return np.asarray(result)
        of_p = np.copysign(scipy.special.stdtrit(equations.degrees_of_freedom, p_value / 2.0), value)
        return np.where(known & (p_value > 0.0), of_p, result)
    return np.copysign(-scipy.special.ndtri(p_value / 2.0), value)


def estimate_columns(
    estimates: Sequence[Estimate],
    equations: NormalEquations,
    level: float,
    *,
    names: tuple[str, str, str],
    added: FloatArray | float = 0.0,
) -> list[Column]:
    """Return the columns of estimates, to which ``added`` numbers are added."""
    # They are value, errors, statistic, p-value and interval. `names` are those of the value, its heading, and the
    # name of the statistic.
    value, error, privacy, sampling, p_value, lower, upper = (
        of_estimates(estimates, part)
        for part in ("value", "standard_error", "privacy", "sampling", "p_value", "lower", "upper")
    )
    value, lower, upper = value + added, lower + added, upper + added
    step = step_errors(error, lower, upper)
    statistics, tail = statistics_of(estimates, equations), 0.5 * (1.0 - level)
    letter = "t" if equations.delta_method_valid else "z"
    low, high = (list(map(format_end, ends.tolist(), step.tolist())) for ends in (lower, upper))
    return [
        Column(names[0], value, names[1], errors=step),
        Column("std_err", error, "std err", errors=error),
        Column("privacy_err", privacy, "privacy", errors=error),
        Column("sampling_err", sampling, "sampling", errors=error),
        Column(names[2], statistics, letter, list(map(format_statistic, statistics.tolist()))),
        Column("p_value", p_value, f"P>|{letter}|", list(map(format_p_value, p_value.tolist()))),
        Column("lower", lower, f"[{tail:.3g}", low),
        Column("upper", upper, f"{1.0 - tail:.3g}]", high),
    ]


def estimate_verdicts(estimates: Sequence[Estimate], level: float, **options: Any) -> tuple[str, ...]:
    """Return the sign of each estimate by its own interval, in the words of the options."""
    value, p_value = of_estimates(estimates, "value"), of_estimates(estimates, "p_value")
    privacy, sampling = (np.nan_to_num(of_estimates(estimates, part)) ** 2 for part in ("privacy", "sampling"))
    bounded = np.isfinite(value)
    return tuple(sign_verdicts(value, np.where(bounded, p_value, 1.0), privacy, sampling, bounded, level, **options))


def describe_statistic(equations: NormalEquations) -> str:
    """Return the remark on z of test inversion; empty for t."""
    if equations.delta_method_valid:
        return "Coefficients are after repair, their tests before it." if equations.after_repair else ""
    return (
        "z is the normal quantile of the p-value, not the estimate over its standard error: both are of test inversion."
    )


def bonferroni(level: float, adjust: Literal["bonferroni"] | None, comparisons: int) -> float:
    """Return the level of each interval of a family that holds with confidence ``level``."""
    if adjust is None:
        return level
    if adjust != "bonferroni":
        raise InputValueError(f"adjust={shown(adjust)}: use 'bonferroni', or None for intervals that hold one by one")
    return 1.0 - (1.0 - level) / max(comparisons, 1)


_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
_WORD = r"(?:\[[^\]]*\]|[^\s*/()=,+\[])+"


@dataclass(frozen=True, eq=False)
class Restrictions:
    """Linear restrictions Rβ = r on named coefficients."""

    labels: tuple[str, ...]  # what each restriction combines
    matrix: FloatArray  # (q, k): R; no row is 0
    values: FloatArray  # (q,), r

    @classmethod
    def of(
        cls,
        given: Restrictable,
        names: Sequence[str],
        *,
        schema: Schema | None = None,
        references: Sequence[str] = (),
        merged: Sequence[str] = (),
    ) -> Restrictions:
        """Read restrictions.

        ``given`` is text, ``"age + age:sex[Female]"`` (which is to be 0) or ``"age = 2*height"``, several with commas
        or in a list; a mapping of names to coefficients; an array, (k,) or (q, k); or a pair (R, r). ``schema``
        serves levels as ``sex[Female]``, and products with other orders; the coefficients of ``references`` are 0,
        ``merged`` levels have none.
        """
        known = _Names(tuple(names), _aliases(names, schema, references), tuple(merged))
        table: Any = given
        if isinstance(given, str):
            rows = known.read(given)
        elif hasattr(table, "columns") and hasattr(table, "to_dict"):  # a frame: one restriction a row, read by name
            rows = [known.combined(row) for row in table.to_dict("records")]
        elif isinstance(given, Mapping) or hasattr(given, "items"):
            rows = [known.combined(dict(table))]
        elif isinstance(given, list | tuple) and given and all(isinstance(one, str) for one in given):
            rows = [row for one in given for row in known.read(one)]
        else:
            rows = _rows(given, len(names))
        if not rows:
            raise InputValueError("no restriction is given: name a coefficient, as in 'age = 0'")
        matrix, values = np.array([row[:-1] for row in rows]), np.array([-row[-1] for row in rows])
        if not (np.isfinite(matrix).all() and np.isfinite(values).all()):
            raise InputValueError("the coefficients and values of restrictions are finite numbers")
        if not matrix.any(axis=1).all():
            raise InputValueError("a restriction has no coefficient of the fit (that of a reference level is 0)")
        labels = []
        for row in matrix.tolist():
            label = ""
            for name, weight in zip(names, row, strict=True):
                if weight != 0.0:
                    factor = "" if abs(weight) == 1.0 else f"{abs(weight):.6g}*"
                    sign = (" - " if weight < 0 else " + ") if label else ("-" if weight < 0 else "")
                    label += f"{sign}{factor}{name}"
            labels.append(label)
        return cls(tuple(labels), matrix, values + 0.0)


def _rows(given: Any, size: int) -> list[FloatArray]:
    """Read an array, or a pair of array and values."""
    values: Any = 0.0
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) >= 1:
        given, values = given
    try:
        matrix = np.atleast_2d(np.asarray(given, dtype=np.float64))
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(matrix),))
    except (TypeError, ValueError):
        raise InputTypeError(
            "restrictions are text such as 'age + height = 0', a mapping of names to coefficients, or an array "
            f"with a column for each coefficient, not {type(given).__name__}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != size:
        raise InputValueError(
            f"an array of shape {np.shape(given)} is not one of restrictions: it has a column for each of the "
            f"{size} coefficients, the intercept first"
        )
    return [np.append(row, -value) for row, value in zip(matrix, values, strict=True)]


def _aliases(names: Sequence[str], schema: Schema | None, references: Sequence[str]) -> dict[str, str | None]:
    """Return coefficients by each way to write them; None for a reference level."""
    result: dict[str, str | None] = {}
    own = set(names)
    if INTERCEPT in own:
        result |= dict.fromkeys(INTERCEPTS, INTERCEPT)
    for column in () if schema is None else schema.columns:
        for feature, written in _written(column):
            if feature in own or feature in references:
                result |= dict.fromkeys(written, feature if feature in own else None)
    return result | {name.replace(" ", ""): name for name in names} | {name: name for name in names}


def _written(column: Any) -> list[tuple[str, list[str]]]:
    """Return the features of a column with the ways to write each."""
    if isinstance(column, Categorical):
        names = (column.name, f"C({column.name})")
        return [
            (feature, [feature, *(f"{name}[{prefix}{level}]" for name in names for prefix in ("", "T."))])
            for feature in column.feature_names
            for level in [feature.removeprefix(f"{column.name}=")]
        ]
    if not isinstance(column, DerivedColumn):
        return [(feature, [feature]) for feature in column.feature_names]
    if isinstance(column.stated, Power):
        base, exponent = column.stated.column, column.stated.exponent
        signs = ("**", "^", " ** ", " ^ ")
        return [(column.name, [column.name, *(f"I({base}{sign}{exponent})" for sign in signs)])]
    first, second = (_written(factor) for factor in column.factors)
    return [
        (f"{one}:{other}", [":".join(pair) for a, b in product(names, others) for pair in ((a, b), (b, a))])
        for one, names in first
        for other, others in second
    ]


class _Names:
    """Names of coefficients, and text that combines them."""

    def __init__(self, names: tuple[str, ...], aliases: dict[str, str | None], merged: tuple[str, ...]) -> None:
        self.names, self.aliases, self.merged = names, aliases, merged
        longest = sorted(aliases, key=len, reverse=True)
        known = "|".join(map(re.escape, longest))
        self._tokens = re.compile(
            rf"`(?P<quoted>[^`]*)`|(?P<known>(?:{known})(?![\w.:^\[]))|(?P<number>{_NUMBER})|(?P<sign>[-+*/()=,\s])"
            rf"|(?P<word>{_WORD}|.)"
        )

    def weights(self, name: str) -> FloatArray:
        """Return the combination of a name, shape (k + 1,): coefficients, then a number."""
        result = np.zeros(len(self.names) + 1)
        if name not in self.aliases:
            if name in self.merged:
                raise InputValueError(f"{shown(name)} has too few rows: it is merged into the reference level")
            levels = [other for other in self.names if other.startswith(f"{name}=")]
            close = levels[0] if levels else closest(name, self.aliases)
            advice = f"Did you mean '{close}'?" if close else "`params` of the fit lists them all."
            raise InputValueError(f"'{name}' is not a coefficient of this fit. {advice}")
        feature = self.aliases[name]
        if feature is not None:
            result[self.names.index(feature)] = 1.0
        return result

    def combined(self, coefficients: Mapping[Any, Any]) -> FloatArray:
        """Return the combination of a mapping."""
        result = np.zeros(len(self.names) + 1)
        for name, weight in coefficients.items():
            if isinstance(weight, bool) or not isinstance(weight, Real):
                raise InputTypeError("a mapping gives a number for each name: {'age': 1, 'height': -2}")
            result += float(weight) * self.weights(str(name))
        return result

    def read(self, text: str) -> list[FloatArray]:
        """Return the restrictions of a text, each left side less its right side."""
        unreadable = InputValueError(
            f"{shown(text)} is not a linear restriction: write it as 'age + 2*height = 1', names with other "
            "signs in backticks"
        )
        combinations: list[FloatArray] = []

        def numbered(token: re.Match[str]) -> str:
            """Replace a name or a number by the index of its combination."""
            if token.lastgroup == "sign":
                return token[0]
            word = token[token.lastgroup or 0]
            number = token.lastgroup == "number"
            combinations.append(np.append(np.zeros(len(self.names)), float(word)) if number else self.weights(word))
            return f" _{len(combinations) - 1} "

        def value(node: ast.expr) -> FloatArray:
            match node:
                case ast.Name(id=name):
                    return combinations[int(name.removeprefix("_"))]
                case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                    return value(operand)
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return -value(operand)
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    return value(left) + value(right)
                case ast.BinOp(left=left, op=ast.Sub(), right=right):
                    return value(left) - value(right)
                case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as sign, right=right):
                    one, other = value(left), value(right)
                    divides = isinstance(sign, ast.Div)
                    if other[:-1].any() and not divides and not one[:-1].any():
                        one, other = other, one
                    if not other[:-1].any() and not (divides and other[-1] == 0.0):
                        return np.asarray(one / other[-1] if divides else one * other[-1])
            raise unreadable

        result: list[FloatArray] = []
        for restriction in self._tokens.sub(numbered, text).split(","):
            try:
                sides = [ast.parse(" ".join(side.split()), mode="eval").body for side in restriction.split("=")]
            except (SyntaxError, RecursionError, MemoryError):
                raise unreadable from None
            values = list(map(value, sides))
            result += values if len(values) == 1 else [one - other for one, other in pairwise(values)]
        return result


@dataclass(frozen=True, eq=False, repr=False)
class ContrastTests(Answer):
    """Linear combinations of coefficients with errors, tests and intervals.

    Attributes
    ----------
    restrictions : Restrictions
    equations : NormalEquations
    target : str
    level : float
        Confidence level of the intervals.
    """

    restrictions: Restrictions
    equations: NormalEquations
    target: str
    level: float

    facts = ("target", "level", "df_denom", "**: *")

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """The combinations less the values that they are tested against."""
        return self._estimates_at(self.level)

    def _estimates_at(self, level: float) -> tuple[Estimate, ...]:
        rows = zip(self.restrictions.matrix, self.restrictions.values.tolist(), strict=True)
        return tuple(self.equations.contrast(weights, level, value) for weights, value in rows)

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts of the combinations."""
        return self.restrictions.labels

    @property
    def effect(self) -> FloatArray:
        """Estimated combinations, shape (q,); NaN if not estimable."""
        return of_estimates(self.estimates, "value") + self.restrictions.values

    @property
    def sd(self) -> FloatArray:
        """Standard errors (total), shape (q,)."""
        return of_estimates(self.estimates, "standard_error")

    @property
    def tvalues(self) -> FloatArray:
        """Statistics of the p-values, shape (q,): t with ``df_denom`` degrees of freedom."""
        return statistics_of(self.estimates, self.equations)

    @property
    def pvalues(self) -> FloatArray:
        """Two-sided p-values, shape (q,); NaN if not estimable."""
        return of_estimates(self.estimates, "p_value")

    tvalue, pvalue = tvalues, pvalues

    @property
    def df_denom(self) -> float:
        """Residual degrees of freedom; infinite for test inversion."""
        return self.equations.degrees_of_freedom if self.equations.delta_method_valid else math.inf

    @takes_level
    def conf_int(self, level: float | None = None, adjust: Literal["bonferroni"] | None = None) -> pd.DataFrame:
        """Return confidence intervals as a frame, with columns lower and upper.

        Parameters
        ----------
        level : float, optional
            Default: that of the table.
        adjust : {None, "bonferroni"}
            ``"bonferroni"``: all intervals hold together with the confidence ``level``.
        """
        import pandas as pd

        level = self.level if level is None else confidence_level(level)
        estimates = self._estimates_at(bonferroni(level, adjust, len(self.labels)))
        ends = [(each.lower, each.upper) for each in estimates]
        limits = np.array(ends) + self.restrictions.values[:, None]
        return pd.DataFrame(limits, index=list(self.labels), columns=["lower", "upper"])

    def summary_frame(self) -> pd.DataFrame:
        """Return the table as a pandas frame (statsmodels' name of ``to_pandas``)."""
        return self.to_pandas()

    @property
    def heading(self) -> tuple[str, ...]:
        kind, by = ("t-test", "") if self.equations.delta_method_valid else ("test", ", by test inversion")
        count = f"{len(self.labels)} combination{'' if len(self.labels) == 1 else 's'} of coefficients"
        degrees = f", {self.df_denom:,.0f} residual degrees of freedom" if math.isfinite(self.df_denom) else ""
        return (f"{kind} of {count}{by}, regression of {self.target}{degrees}",)

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sign of each difference from the tested value, by its own interval."""
        words = ("positive", "negative") if not self.restrictions.values.any() else ("higher", "lower")
        return estimate_verdicts(self.estimates, self.level, words=words)

    @property
    def holds_among_all(self) -> BoolArray:
        """True for tests whose verdict also holds among all of the table, shape (q,)."""
        return holds_among_all(self.pvalues, np.ones(len(self.labels)), self.level)

    @property
    def remarks(self) -> tuple[str, ...]:
        about = f"Standard errors include privacy noise and sampling error{self.equations.about_sampling}"
        return about, describe_statistic(self.equations)

    def _columns(self) -> list[Column]:
        values, names = self.restrictions.values, ("estimate", "estimate", "statistic")
        said = [
            name if value == 0.0 else f"{name} = {value:.6g}" for name, value in zip(self.labels, values, strict=True)
        ]
        return [
            Column("contrast", self.labels, "", said, label=True),
            Column("value", values),
            *estimate_columns(self.estimates, self.equations, self.level, names=names, added=values),
            *verdict_columns(self.verdict, self.holds_among_all),
        ]


_LEVEL = 0.95
"""Confidence of the findings of joint tests."""


@dataclass(frozen=True, eq=False, repr=False)
class WaldTests(Answer):
    """Tests of several coefficients together: one, or one for each term of a regression.

    Attributes
    ----------
    names : tuple of str
        What each test is of.
    tests : tuple of JointTest
    target : str
    finding : str
        What is said of a hypothesis that is refuted.
    """

    names: tuple[str, ...]
    tests: tuple[JointTest, ...]
    target: str
    finding: str = "related"

    facts = ("target", "**: *")

    @property
    def statistic(self) -> FloatArray:
        """F, or χ² of test inversion where ``df_denom`` is infinite, shape (m,)."""
        return np.array([each.statistic for each in self.tests])

    @property
    def pvalues(self) -> FloatArray:
        """P-values, shape (m,); NaN if the noise is not known."""
        return np.array([each.p_value for each in self.tests])

    fvalue, pvalue = statistic, pvalues

    @property
    def df_num(self) -> FloatArray:
        """Numbers of restrictions, shape (m,)."""
        return np.array([float(each.numerator) for each in self.tests])

    @property
    def df_denom(self) -> FloatArray:
        """Residual degrees of freedom, shape (m,); infinite for χ²."""
        return np.array([each.denominator for each in self.tests])

    @property
    def verdict(self) -> tuple[str, ...]:
        """Finding of each test by its own p-value."""
        result = []
        for test in self.tests:
            unclear = not_clear(test.privacy_share, 1.0 - test.privacy_share)
            if math.isinf(test.denominator):
                unclear = NOT_CLEAR_NOISE
            result.append(decided(test.p_value, self.finding if test.p_value < error_rate(_LEVEL) else unclear))
        return tuple(result)

    @property
    def holds_among_all(self) -> BoolArray:
        """True for findings that also hold among all tests of the table, shape (m,)."""
        return holds_among_all(self.pvalues, np.ones(len(self.tests)), _LEVEL)

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"joint test{'' if len(self.tests) == 1 else 's'} of coefficients, regression of {self.target}",)

    def _columns(self) -> list[Column]:
        return [
            Column("term", self.names, "term" if self.finding == "related" else "hypothesis", label=True),
            Column("statistic", self.statistic),
            Column("df", self.df_num),
            Column("df_residual", self.df_denom),
            Column("p_value", self.pvalues),
            Column(
                head="statistic", cells=[f"{each.name} = {format_statistic(each.statistic)}" for each in self.tests]
            ),
            Column(head="p", cells=[format_p_value(each.p_value) for each in self.tests]),
            *verdict_columns(self.verdict, self.holds_among_all),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        if all(math.isfinite(each.denominator) for each in self.tests):
            return ("The covariance includes privacy noise and sampling error.",)
        return ("χ² is the least statistic of test inversion, valid however large the noise is.",)


_SHOWN_ROWS = 20
MAX_INVERTED_ROWS = 1_000
"""Rows that are predicted with intervals by test inversion, a search each."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Answer):
    """Predictions for rows, with intervals of the line there and of new rows.

    Attributes
    ----------
    rows : ndarray of shape (m, k)
        Regressors in original units, the constant first if there is one.
    equations : NormalEquations
    predicted_mean : ndarray of shape (m,)
    level : float
        Confidence level of the intervals.
    date : Date or None
        The target's column, if it holds dates.
    """

    rows: FloatArray
    equations: NormalEquations
    predicted_mean: FloatArray
    level: float
    date: Date | None = None

    facts = ("level", "**: *")

    def __post_init__(self) -> None:
        if not self.equations.delta_method_valid and len(self.rows) > MAX_INVERTED_ROWS:
            raise InputValueError(
                f"At most {MAX_INVERTED_ROWS:,} rows are predicted with intervals at once, since noise is so large that each "
                f"needs a search; got {len(self.rows):,}. Pass fewer, or use predict()."
            )

    @property
    def se_mean(self) -> FloatArray:
        """Standard errors (total) of ``predicted_mean``, shape (m,); NaN if not estimable."""
        return self._line[2]

    @cached_property
    def _line(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._line_at(self.level)

    def _line_at(self, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return lower ends, upper ends and standard errors of the line."""
        rows, equations = self.rows, self.equations
        known = np.isfinite(rows).all(axis=1)
        if equations.delta_method_valid:
            covariance = equations.privacy_covariance + equations.sampling_covariance
            variance = np.einsum("ij,jk,ik->i", rows, covariance, rows)
            error = np.sqrt(np.maximum(variance, 0.0))
            reach = float(scipy.special.stdtrit(equations.degrees_of_freedom, 0.5 + 0.5 * level)) * error
            middle = rows @ equations.in_units(equations.unrefuted)
            return *holding(middle - reach, middle + reach, self.predicted_mean), error
        lower, upper, errors = (np.full(len(rows), np.nan) for _ in range(3))
        for index in np.flatnonzero(known).tolist():
            if not rows[index].any():
                lower[index] = upper[index] = errors[index] = 0.0
                continue
            of_row = float(rows[index] @ equations.coefficients)
            contrast = equations.contrast(rows[index], level, of_row)
            lower[index], upper[index] = contrast.lower + of_row, contrast.upper + of_row
            errors[index] = contrast.standard_error
        return lower, upper, errors

    def limits(self, obs: bool = False, level: float | None = None) -> FloatArray:
        """Return intervals of the line, or of new rows with ``obs``, shape (m, 2).

        Infinite if the release bounds none. Intervals of new rows are for normal residuals of equal variance (its upper
        bound given the noise).
        """
        lower, upper, _ = self._line if level is None else self._line_at(confidence_level(level))
        if obs:
            level = self.level if level is None else level
            quantile = float(scipy.special.stdtrit(self.equations.degrees_of_freedom, 0.5 + 0.5 * level))
            residual = quantile * self.equations.residual_deviation(0.5 + 0.5 * level)
            middle = self.predicted_mean
            lower, upper = middle - np.hypot(middle - lower, residual), middle + np.hypot(upper - middle, residual)
        return np.column_stack([lower, upper])

    @takes_level
    def conf_int(self, obs: bool = False, level: float | None = None) -> pd.DataFrame:
        """Return intervals as a pandas frame with columns lower and upper.

        Parameters
        ----------
        obs : bool
            Intervals in which new rows lie, not those of the line.
        level : float, optional
            Default: that of the predictions.
        """
        import pandas as pd

        return pd.DataFrame(self.limits(obs, level), columns=["lower", "upper"])

    def summary_frame(self) -> pd.DataFrame:
        """Return the table as a pandas frame, with statsmodels' names of the columns."""
        return self.to_pandas()

    def _columns(self) -> list[Column]:
        line, row, error = self.limits(), self.limits(obs=True), self.se_mean
        percent, dates = format_level(self.level), [self.date] * len(self.rows)
        mean = np.where(np.isfinite(error), self.predicted_mean, np.nan)

        def ends(name: str, head: str, limits: FloatArray) -> list[Column]:
            low, high = limits.T
            own = step_errors(error, low, high)
            cells = [
                f"[{', '.join(map(format_end, pair, (step, step)))}]"
                for pair, step in zip(limits.tolist(), own.tolist(), strict=True)
            ]
            shown = Column(f"{name}_lower", low, f"{head}, {percent}", cells, errors=own, upper=high, dates=dates)
            return [shown, Column(f"{name}_upper", high)]

        return [
            Column(head="row", cells=[f"{index:,}" for index in range(len(line))]),
            Column("mean", mean, "prediction", errors=error, dates=dates),
            Column("mean_se", error, "std err", rounded_cells(error, error), dates=dates),
            *ends("mean_ci", "line", line),
            *ends("obs_ci", "new row", row),
        ]

    @property
    def _shown_rows(self) -> range:
        return range(min(len(self.rows), _SHOWN_ROWS))

    @property
    def remarks(self) -> tuple[str, ...]:
        more = len(self.rows) - _SHOWN_ROWS
        unbounded = np.isinf(self.limits()).any()
        return (
            f"… {more:,} more rows" if more > 0 else "",
            "–: the release does not bound the line there; predict() has values without errors." if unbounded else "",
        )
