"""What a page is made of: sections with paragraphs, tables and pictures, as templates read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dpmoments.analysis.answers import TableAnswer
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE
from dpmoments.analysis.group_means import LOST
from dpmoments.analysis.regression_results import NO_EFFECT

__all__ = ["NOISE", "Cell", "PageTable", "Picture", "Section", "table_of"]

NOISE = "noise"
NOTHING = "nothing"
DECIDED_BY_NOISE = (NOISE, NOTHING, LOST, NOISE_UNKNOWN, NOT_DISTINGUISHABLE, NO_EFFECT)
"""Words that stand where a number would say nothing."""
VERDICT = "verdict"
LONG = 12
"""A table of more rows scrolls in a box of its own."""
NUMBER = re.compile(r"[<>~±]?\s*[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?\s*%?|[-+−]?(inf|∞)|nan|–|\[.*\]")


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text : str
    is_noise : bool
        Whether its words say that noise decides.
    is_number : bool
    """

    text: str
    is_noise: bool = False
    is_number: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table under a caption; the first column names the rows.

    Attributes
    ----------
    caption : str
    head : tuple of str
    rows : tuple of tuples of Cell
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def is_long(self) -> bool:
        """Whether it scrolls in a box."""
        return len(self.rows) > LONG

    @property
    def number_columns(self) -> tuple[bool, ...]:
        """Columns whose cells are numbers, or say that noise is there in place of one."""
        return tuple(
            bool(column)
            and any(cell.is_number for cell in column)
            and all(cell.is_number or cell.is_noise for cell in column)
            for column in zip(*self.rows, strict=True)
        ) or (False,) * len(self.head)

    @property
    def lost(self) -> tuple[bool, ...]:
        """Rows of which some cell says that noise decides."""
        return tuple(any(cell.is_noise for cell in row) for row in self.rows)

    @classmethod
    def of(cls, caption: str, rows: Sequence[Sequence[str]]) -> PageTable:
        """Rows of text, the head first; a verdict stands before the numbers, where a narrow screen shows it too."""
        if rows[0][-1] == VERDICT:
            rows = [(row[0], row[-1], *row[1:-1]) for row in rows]
        head, *body = rows
        return cls(
            caption, tuple(head), tuple(tuple(_cell(place, text) for place, text in enumerate(row)) for row in body)
        )


@dataclass(frozen=True)
class Picture:
    """A drawing inside the page, and what it says in words.

    Attributes
    ----------
    svg : Markup
        Made by :mod:`dpmoments.reporting.pictures`, every text in it escaped.
    caption : str
    """

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes
    ----------
    title : str
    anchor : str
        What links within the page name.
    lead : tuple of str
        Paragraphs before the rest.
    picture : Picture or None
    tables : tuple of PageTable
    remarks : tuple of str
        Paragraphs after it, which say what the numbers are and what speaks against them.
    warning : str
        What speaks against reading any of it; it stands at the head of the page.
    refusal : str
        Why there is nothing to show, where there is nothing.
    """

    title: str
    anchor: str
    lead: tuple[str, ...] = ()
    picture: Picture | None = None
    tables: tuple[PageTable, ...] = ()
    remarks: tuple[str, ...] = ()
    warning: str = ""
    refusal: str = ""


def table_of(caption: str, answer: TableAnswer, most: int | None = None) -> PageTable:
    """The table of an analysis, its first rows where there are more than ``most``."""
    rows = answer.table()
    return PageTable.of(caption, rows if most is None else rows[: most + 1])


def _cell(place: int, text: str) -> Cell:
    decided = place > 0 and text in DECIDED_BY_NOISE
    return Cell(text, decided, place > 0 and NUMBER.fullmatch(text) is not None)
