"""Results of analyses: text, a labeled table for frames, plain values for programs."""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Real
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError, shown
from dpmoments.base.table_libraries import pa
from dpmoments.base.values import leading_decimals

if TYPE_CHECKING:
    import pandas as pd

    from dpmoments.schema.dates import Date


def html_table(table: Sequence[Sequence[str]], escaped: Callable[[str], str] = html.escape) -> str:
    """Format a table, head first, as HTML."""
    # First column to the left, numbers to the right, cells by `escaped`.
    head, *rows = table
    lines = [_row("th", head, escaped), *(_row("td", row, escaped) for row in rows)]
    return f'<div style="overflow-x:auto"><table>{"".join(lines)}</table></div>'


def _row(tag: str, cells: Sequence[str], escaped: Callable[[str], str]) -> str:
    shown = (
        f'<{tag} style="text-align:{"right" if index else "left"}">{escaped(cell)}</{tag}>'
        for index, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"


Parameters = ParamSpec("Parameters")
Found = TypeVar("Found")


class Column(NamedTuple):
    """A column of an answer."""

    name: str = ""  # name in frames and JSON; empty for a column that only the text shows
    values: Any = None  # None if no row has a value
    head: str | None = None  # heading in the text; None for a column that the text does not show
    # the text of its values; None: five significant digits of a number, and words as they are
    cells: Sequence[str] | None = None
    label: bool = False  # true for a name of the row: frames are indexed by these columns
    errors: Any = None  # errors that the text rounds the values by
    upper: Any = None  # upper ends of intervals, which the text shows in place of the values
    # the column of dates that a row is about, else None: its numbers are dates if they have `errors`, else durations
    dates: Sequence[Date | None] | None = None

    def text(self) -> Sequence[str]:
        """Return one text for each row."""
        cells = self._plain_text()
        if self.dates is None or not any(self.dates):
            return cells
        errors = self.errors
        if errors is not None and self.upper is not None:
            errors = step_errors(errors, self.values, self.upper)
        result = list(cells)
        for index, (cell, date) in enumerate(zip(cells, self.dates, strict=True)):
            if date is None or "∞" in cell or not cell.removeprefix("below ").lstrip("[-")[:1].isdigit():
                continue
            if errors is None:
                result[index] = f"{cell} {date.unit}"
                continue
            ends = (each for each in (self.values, self.upper) if each is not None)
            texts = [date.date_text(np.ravel(each)[index], np.ravel(errors)[index]) for each in ends]
            result[index] = texts[0] if self.upper is None else f"[{', '.join(texts)}]"
        return result

    def _plain_text(self) -> Sequence[str]:
        if self.cells is not None:
            return self.cells
        if self.upper is not None:
            return intervals(self.values, self.upper, self.errors)
        if self.errors is not None:
            return rounded_cells(self.values, self.errors)
        return [value if isinstance(value, str) else number(value) for value in plain(self.values)]

    def of_rows(self, rows: Sequence[int]) -> Column:
        """Return the column of some rows, in their order."""
        held = {name: getattr(self, name) for name in ("values", "cells", "errors", "upper", "dates")}
        chosen: dict[str, Any] = {name: [each[row] for row in rows] for name, each in held.items() if each is not None}
        return self._replace(**chosen)


class SummaryText(str):
    r"""The text of an answer, which notebooks and papers show as a table.

    >>> import dpmoments as dpm, numpy as np
    >>> released = dpm.release(np.eye(2), dpm.Schema.unit_ball(2), epsilon=1e9, insecure_seed=0)
    >>> summary = released.describe().summary()
    >>> summary == summary.as_text(), summary.as_latex().splitlines()[0]
    (True, '\\begin{table}')
    """  # language: ok

    _result: Answer

    def __new__(cls, answer: Answer) -> SummaryText:
        """Make the summary of an answer."""
        result = super().__new__(cls, answer.text())
        result._result = answer
        return result

    def as_text(self) -> str:
        """Return plain text."""
        return str(self)

    __repr__ = as_text

    def as_html(self) -> str:
        """Return a table in HTML, with the lines above and below it."""
        return self._result._repr_html_()

    _repr_html_ = as_html

    def as_latex(self) -> str:
        """Return a LaTeX table, with the lines above and below it in its caption and notes."""
        answer = self._result
        head, *rows = answer.table()
        body = [r" & ".join(map(_latex, row)) + r" \\" for row in (head, *rows)]
        return "\n".join(
            [
                r"\begin{table}",
                *([rf"\caption{{{_latex(answer.heading[0])}}}"] if answer.heading else []),
                rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
                r"\hline",
                body[0],
                r"\hline",
                *body[1:],
                r"\hline",
                r"\end{tabular}",
                *(
                    rf"\par\footnotesize {_latex(line)}"
                    for said in (*answer.heading[1:], *answer.remarks)
                    for line in said.splitlines()
                ),
                r"\end{table}",
            ]
        )

    def __getnewargs__(self) -> tuple[Any]:
        return (self._result,)


_LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
    }
    | {
        "∞": r"$\infty$",
        "−": "$-$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "±": r"$\pm$",
        "²": r"\textsuperscript{2}",
        "χ": r"$\chi$",
    }
    | {"–": "--", "…": r"\ldots{}", "η": r"$\eta$", "·": r"$\cdot$"}
)


def _latex(text: str) -> str:
    return text.translate(_LATEX)


class Answer:
    """The result of an analysis.

    A small frozen table with labels, remarks on it, and further facts.

    A subclass declares its columns, the lines above and below its table, and the names of its facts; text, HTML, frames and JSON
    are derived here. A subclass with a table of another shape overrides :meth:`table`.

    Attributes
    ----------
    facts : tuple of str
        What JSON holds, in order: the name of an attribute, or ``key: path.to.attribute``; ``*`` for the columns, ``a by b`` for
        a mapping of the names in b to the values in a. The key ``**`` merges a mapping; ``key?`` is omitted if the value is
        None.
    """

    facts: ClassVar[tuple[str, ...]] = ()

    def _columns(self) -> Sequence[Column]:
        """Return the columns of the answer, labels first."""
        return ()

    @property
    def heading(self) -> tuple[str, ...]:
        """Lines above the table."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines below the table: what the numbers are, and what speaks against them.

        Empty ones are left out.
        """
        return ()

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the table as plain values, a list for each column, labels first; None if missing."""
        return {name: plain(values) for name, values in self._values().items()}

    def _values(self) -> dict[str, Any]:
        declared = [column for column in self._columns() if column.name]
        length = next((len(column.values) for column in declared if column.values is not None), 0)
        return {column.name: [None] * length if column.values is None else column.values for column in declared}

    @property
    def _shown_rows(self) -> Sequence[int] | None:
        """Rows of the text, in their order; None for all."""
        return None

    def table(self) -> Sequence[Sequence[str]]:
        """Return the rows of text, the head first."""
        return self.table_of(self._shown_rows)

    def table_of(self, rows: Sequence[int] | None) -> Sequence[Sequence[str]]:
        """Return some rows of the table as text, the head first; None for all."""
        shown = [column for column in self._columns() if column.head is not None]
        if rows is not None:
            shown = [column.of_rows(rows) for column in shown]
        return [tuple(column.head or "" for column in shown), *zip(*(column.text() for column in shown), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values, bit for bit; None if not a finite number."""
        result: dict[str, Any] = {}
        for fact in self.facts:
            said, _, names = fact.partition(" by ")
            stated, _, path = said.partition(": ")
            key = stated.removesuffix("?")
            path = path or key
            value = self._values() if path == "*" else attrgetter(path)(self)
            value = value() if callable(value) else value
            if value is None and stated != key:
                continue
            if names:
                value = dict(zip(attrgetter(names)(self), value, strict=True))
            held = plain(value, finite=True)
            result |= held if key == "**" else {key: held}
        return result

    def text(self) -> str:
        """Return the answer as plain text."""
        return "\n".join(filter(None, [*self.heading, aligned(self.table()), *self.remarks]))

    def summary(self) -> SummaryText:
        """Return the answer as text, which also has ``as_html()`` and ``as_latex()``."""
        return SummaryText(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def to_arrow(self) -> pa.Table:
        """Return the table as an Arrow table."""
        return pa.table(
            {
                name: pa.array(values if isinstance(values, np.ndarray) else list(values), from_pandas=True)
                for name, values in self._values().items()
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame indexed by its labels (pandas must be installed)."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        if labels := [column.values for column in self._columns() if column.label]:
            import pandas as pd

            frame.index = pd.Index(labels[0]) if len(labels) == 1 else pd.MultiIndex.from_arrays(labels)
        return frame

    def _repr_html_(self) -> str:
        """Return the answer for notebooks; every text is escaped."""

        def line(said: str) -> str:
            # lines that are aligned with spaces are a second table
            tags = ('<pre style="overflow-x:auto">', "</pre>") if "\n" in said else ("<p>", "</p>")
            return html.escape(said).join(tags)

        above, below = ("".join(map(line, filter(None, said))) for said in (self.heading, self.remarks))
        return f"<div>{above}{html_table(self.table())}{below}</div>"


def plain(value: Any, *, finite: bool = False) -> Any:
    """Convert arrays, tuples and mappings to lists and dicts, NaN to None."""
    # Also ∞ to None with `finite`.
    if isinstance(value, np.ndarray):
        entries: list[Any] = value.tolist()
        if value.dtype.kind != "f" or (known := np.isfinite(value) if finite else ~np.isnan(value)).all():
            return entries
        if value.ndim == 1:
            return [entry if held else None for entry, held in zip(entries, known.tolist(), strict=True)]
        return [plain(row, finite=finite) for row in value]
    if isinstance(value, Answer):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(entry, finite=finite) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        if all(type(entry) is str for entry in value):
            return list(value)
        return [plain(entry, finite=finite) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and (not math.isfinite(value) if finite else math.isnan(value)):
        return None
    return value


def unless_beyond_floating_point(
    beyond: Callable[..., Found],
) -> Callable[[Callable[Parameters, Found]], Callable[Parameters, Found]]:
    """Wrap a function so that ``beyond`` answers if its numbers overflow.

    They leave the range of floating point then.

    Such numbers come from unusable budgets, and from malicious files. ``beyond`` takes the same arguments.

    >>> unless_beyond_floating_point(lambda number: math.inf)(lambda number: number**2)(1e200)
    inf
    """

    def decorate(compute: Callable[Parameters, Found]) -> Callable[Parameters, Found]:
        @wraps(compute)
        def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Found:
            try:
                with np.errstate(over="raise", divide="raise", invalid="raise"):
                    return compute(*given, **named)
            except (ArithmeticError, np.linalg.LinAlgError):
                pass  # so that a refusal carries no error of another
            return beyond(*given, **named)

        return answer

    return decorate


def _refuse(*_: object, **__: object) -> Any:
    raise InputValueError(
        "the numbers of this release exceed the range of floating point: they are very large, very small, "
        "or very far apart"
    )


def in_floating_point(compute: Callable[Parameters, Found]) -> Callable[Parameters, Found]:
    """Wrap a function of a release: raise if its numbers leave the range of floating point.

    >>> in_floating_point(lambda number: number**2)(1e200)
    Traceback (most recent call last):
    ...
    dpmoments.base.errors.InputValueError: the numbers of this release exceed the range ...
    """  # language: ok
    within: Callable[Parameters, Found] = unless_beyond_floating_point(_refuse)(compute)

    @wraps(compute)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Found:
        for name in named:
            if name in _UNSUPPORTED and name not in inspect.signature(compute).parameters:
                raise InputTypeError(f"{compute.__name__}() takes no {name}=: {_UNSUPPORTED[name]}")
        return within(*given, **named)

    return answer


def takes_level(method: Callable[Parameters, Found]) -> Callable[Parameters, Found]:
    """Wrap a method with a ``level``: refuse statsmodels' ``alpha`` by what to pass instead."""

    @wraps(method)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Found:
        if "alpha" in named:
            raise InputTypeError(
                f"{method.__name__}() takes no alpha=: statsmodels' alpha is 1 − level, so pass level="
            )
        return method(*given, **named)

    return answer


_UNSUPPORTED = MappingProxyType(
    {
        "weights": (
            "a release holds sums over rows that count alike, and weights cannot be applied afterwards; if they follow from "
            "a column, such as survey strata, release that column, use dpm.release_groups, and combine the groups by their "
            "weights"
        ),
        "cov_type": "use ols(..., cov_type='HC') for robust standard errors",
        "method": (
            "rank correlations need the order of the rows, and a release holds moments: correlations are Pearson's; a column "
            "can be replaced by its ranks, or its logarithm, before the release"
        ),
    }
)
"""Arguments of other libraries that no analysis can have, with reason and alternative."""


NOISE = "noise"
"""Text in place of a number that noise hides."""


def number(value: float | None) -> str:
    """Format five significant digits; a dash for None or NaN."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.5g}"


def rounded(value: float | None, error: float | None) -> str:
    """Return a number with the decimals of the two leading digits of its error."""
    if value is None or error is None or not (math.isfinite(value) and math.isfinite(error) and error > 0.0):
        return number(value)
    decimals = leading_decimals(error)
    if decimals <= -_MAX_ZEROS or abs(value) > 10.0**_MAX_ZEROS:
        return number(value)
    if decimals >= _MAX_DECIMALS:
        small = abs(value) < 10.0 ** (2 - _MAX_DECIMALS)
        return f"{value:.1e}" if small else f"{value:.{_MAX_DECIMALS - 1}f}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def rounded_cells(values: npt.ArrayLike, errors: npt.ArrayLike) -> list[str]:
    """Return one cell for each number, :func:`rounded` by its error."""
    return [rounded(*pair) for pair in zip(np.ravel(values).tolist(), np.ravel(errors).tolist(), strict=True)]


_MAX_DECIMALS = 9
_MAX_ZEROS = 15
"""Numbers of more decimals or digits are written with an exponent."""


def count_text(count: float, noise: float | None) -> str:
    """Format a number of rows with its noise; the noise is 0 if it is public, None if unknown.

    >>> count_text(20009, 52.3), count_text(20009, 0.0), count_text(20009, None)
    ('20,009 ± 52', '20,009 (public, exact)', '20,009 (noisy)')
    >>> count_text(9, 9.0)  # sums are divided by no less than the noise, though the count may be negative
    'not distinguishable from 0 (± 9.0)'
    """
    if noise == 0.0:
        return f"{count:,} (public, exact)"
    if noise is not None and count < 2.0 * noise:
        return f"not distinguishable from 0 (± {rounded(noise, noise)})"
    return f"{count:,} (noisy)" if noise is None else f"{count:,} ± {rounded(noise, noise)}"


def step_errors(errors: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the errors that round a value and its interval: at most half of its width.

    So no rounding makes an interval a point, and what it holds is in it as printed.
    """
    stated, low, high = (np.asarray(each, dtype=np.float64).ravel() for each in (errors, lower, upper))
    half = np.subtract(high, low, out=np.full(low.shape, np.inf), where=np.isfinite(low) & np.isfinite(high)) / 2.0
    return np.where(half > 0.0, np.fmin(stated, half), stated)


def intervals(lower: npt.ArrayLike, upper: npt.ArrayLike, errors: npt.ArrayLike) -> list[str]:
    """Return one cell for each interval, its ends rounded by the error of what it is about."""
    return [f"[{low}, {high}]" for low, high in zip(*interval_ends(lower, upper, errors), strict=True)]


def interval_ends(lower: npt.ArrayLike, upper: npt.ArrayLike, errors: npt.ArrayLike) -> tuple[list[str], list[str]]:
    """Return the lower and upper ends of intervals as :func:`intervals` writes them."""
    within = step_errors(errors, lower, upper)
    low, high = ([rounded_end(*pair) for pair in zip(np.ravel(of), within, strict=True)] for of in (lower, upper))
    return low, high


def rounded_end(end: float, error: float) -> str:
    """Return an end of an interval: 0 only if it is 0, since that end decides on a sign."""
    text = rounded(float(end), float(error))
    shown_as_zero = not text.strip("-0.,") and abs(end) > 1e-6 * error
    return rounded(float(end), abs(float(end))) if shown_as_zero else text


def confidence_level(level: float) -> float:
    """Return the confidence level if it is 0.5 or more, else raise."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.5 <= level < 1.0:
        raise InputValueError(
            f"the confidence level must be from 0.5 to below 1, such as 0.95, got {shown(level)}; statsmodels' alpha is 1 − level"
        )
    return float(level)


def format_level(level: float) -> str:
    """Format a confidence level as a column head.

    >>> format_level(0.95), format_level(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100.0 * level:.6g} %"


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Format rows of text as a table: to the left, but for columns of ``numbers``."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if numbers and index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


# Names as pictures and notebooks show them: they are data, and may hold anything.

MAX_LABEL_LENGTH = 40


def label(name: str, longest: int = MAX_LABEL_LENGTH) -> str:
    r"""Limit a name to the width of a plot label, and escape its control characters."""
    # The name of a column is cut before the level of one of its categories.
    column, equals, level = name.rpartition("=")
    if len(name) > longest and equals and len(column) > _MIN_COLUMN_LENGTH:
        room = max(longest - len(level) - 1, _MIN_COLUMN_LENGTH)
        name = f"{_cut(column, room)}={level}"
    return _cut(name, longest)


_MIN_COLUMN_LENGTH = 8
"""Letters that are left of a column's name if both it and the level are long."""


def _cut(name: str, longest: int) -> str:
    """Return at most ``longest`` letters, without control characters."""
    shown = "".join(letter if letter.isprintable() else escaped(letter) for letter in name[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def escaped(letter: str) -> str:
    """Return the escape sequence of a character, as Python writes it."""
    return letter.encode("unicode_escape", "backslashreplace").decode("ascii")
