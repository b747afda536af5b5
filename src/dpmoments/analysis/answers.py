"""What every analysis answers with: text for people, a labelled table for frames, plain values for programs."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.table_libraries import pa

# Tables for notebooks: one that is wider than the screen scrolls in a box of its own.


def html_table(table: Sequence[Sequence[str]], escaped: Callable[[str], str] = html.escape) -> str:
    """A table as HTML, its first column to the left and numbers to the right.

    Parameters
    ----------
    table : sequence of sequences of str
        The head first.
    escaped : callable
        A cell as HTML may hold it.

    Examples
    --------
    >>> html_table([("feature", "mean"), ("<age>", "38.5")]).count("&lt;age&gt;")
    1
    """
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


class Answer(Protocol):
    """The result of an analysis. The command line prints one or the other."""

    def summary(self) -> str:
        """The answer as text."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON holds it: numbers keep every bit, and what is not a finite number is None."""


class TableAnswer(ABC):
    """An answer that is a table with labels: printed, shown in notebooks, and handed on as a frame.

    A subclass says what stands above the table, its cells as text, what stands below, and its columns as plain values.
    """

    @property
    def heading(self) -> tuple[str, ...]:
        """Lines above the table."""
        return ()

    @abstractmethod
    def table(self) -> Sequence[Sequence[str]]:
        """Rows of text, the head first."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines below the table: what the numbers are, and what speaks against them. Empty ones are left out."""
        return ()

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The table as plain values, a sequence a column; labels first."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON holds it."""

    def summary(self) -> str:
        """The answer as text."""
        return "\n".join(filter(None, [*self.heading, aligned(self.table()), *self.remarks]))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return self.summary()

    def to_arrow(self) -> pa.Table:
        """The table as an Arrow table."""
        return pa.table({name: pa.array(list(values), from_pandas=True) for name, values in self.columns().items()})

    def to_pandas(self) -> Any:
        """The table as a pandas frame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        """The answer for notebooks; every text is escaped."""
        above, below = ("".join(map(_html_line, filter(None, said))) for said in (self.heading, self.remarks))
        return f"<div>{above}{html_table(self.table())}{below}</div>"


def _html_line(said: str) -> str:
    if "\n" in said:  # aligned with spaces, like a second table
        return f'<pre style="overflow-x:auto">{html.escape(said)}</pre>'
    return f"<p>{html.escape(said)}</p>"


def unless_beyond_floating_point(
    beyond: Callable[..., Found],
) -> Callable[[Callable[Parameters, Found]], Callable[Parameters, Found]]:
    """A function that answers as ``beyond`` does where its numbers leave the range of floating point.

    Such numbers come of budgets beyond all use, and of files made to confuse.

    Parameters
    ----------
    beyond : callable
        Takes the same arguments.

    Examples
    --------
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
    raise ValueError(
        "the numbers of this release are too large, too small or too far apart for floating point to tell what was asked"
    )


def in_floating_point(compute: Callable[Parameters, Found]) -> Callable[Parameters, Found]:
    """A function of a release that refuses where its numbers leave the range of floating point.

    Examples
    --------
    >>> in_floating_point(lambda number: number**2)(1e200)
    Traceback (most recent call last):
    ...
    ValueError: the numbers of this release are too large, too small or too far apart for floating point ...
    """
    return unless_beyond_floating_point(_refuse)(compute)


def number(value: float | None) -> str:
    """Five significant digits; a dash where there is no number.

    Examples
    --------
    >>> number(0.0123456), number(38.5), number(None)
    ('0.012346', '38.5', '–')
    """
    return "–" if value is None or not math.isfinite(value) else f"{value:.5g}"


def number_or_none(value: float) -> float | None:
    """The number where it is finite, as JSON holds it.

    Examples
    --------
    >>> number_or_none(1.5), number_or_none(math.nan)
    (1.5, None)
    """
    return float(value) if math.isfinite(value) else None


def finite_or_none(values: FloatArray) -> list[float | None]:
    """A list of the numbers of a vector, None for those that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> finite_or_none(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [number_or_none(value) for value in values.tolist()]


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
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


# Names as pictures and notebooks show them: they are data, and may hold anything.

MAX_LABEL_LENGTH = 26


def label(name: str, longest: int = MAX_LABEL_LENGTH) -> str:
    r"""A name as a picture shows it: control characters escaped, and no longer than there is room for.

    Examples
    --------
    >>> print(label("income $"), label("a\x1b[2Jb\n"), label("capital-gain-of-the-whole-household"))
    income $ a\x1b[2Jb\n capital-gain-of-the-whole…
    """
    shown = "".join(letter if letter.isprintable() else escaped(letter) for letter in name[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def escaped(letter: str) -> str:
    """The number of a letter, as Python writes it."""
    return letter.encode("unicode_escape", "backslashreplace").decode("ascii")
