"""Sizes and colors of pictures: numbers that say nothing of a table.

A mutant of a picture counts if what is drawn is another: positions of estimates, ends of intervals, labels and their order,
hatching, hollow marks, and every condition. Numbers and arithmetic are left alone in the arguments named here, in the
arguments of the calls named here, in definitions that compute nothing but sizes, colors or places for letters, and in the
distance in points of letters from what they are about.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

PICTURES = ("plots/", "planning/picture")
"""Modules that draw."""
ARGUMENTS = frozenset(
    (
        *(
            "alpha",
            "bbox_to_anchor",
            "borderaxespad",
            "elinewidth",
            "fontsize",
            "labelsize",
            "length",
        ),
        *("linespacing", "linewidth", "markersize", "nbins", "pad", "zorder"),
    )
)
CALLS = frozenset(("axes_of", "set_size_inches"))
DEFINITIONS = {
    "plots/canvas": (
        *("TEXT_SIZE", "SMALL_TEXT", "POINTS_AN_INCH", "_LINE_HEIGHT", "_LETTERS_AN_INCH", "_KEY", "_NARROWEST"),
        *("_WIDE_STAND_INS", "_STAND_INS", "legend_below", "entitle"),
    ),
    "plots/intervals": ("_INCHES_A_LINE", "_ROOM", "_MAX_LETTERS"),
    "plots/association": ("_INCHES_A_COLUMN", "_MAX_INCHES", "_MIN_SIDE", "_MAX_SIDE"),
}
ARITHMETIC = ("NumberReplacer", "ScaleConstant", "ReplaceBinaryOperator", "ReplaceUnaryOperator", "UnwrapCall")
"""Operators that change a size; the others change what is drawn."""

Span = tuple[tuple[int, int], tuple[int, int]]


def span_of(node: ast.AST, lines: list[str]) -> Span:
    """Where a node is: ast counts columns in bytes, parso in characters."""

    def characters(line: int, offset: int) -> tuple[int, int]:
        return line, len(lines[line - 1].encode()[:offset].decode())

    start = characters(node.lineno, node.col_offset)  # type: ignore[attr-defined]
    return start, characters(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def names_of(statement: ast.stmt) -> set[str]:
    """What a statement outside all functions defines."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    assigned = [node for target in targets if target is not None for node in ast.walk(target)]
    return {node.id for node in assigned if isinstance(node, ast.Name)} | {getattr(statement, "name", "")}


def sizes_of(module: str, tree: ast.Module, lines: list[str]) -> Iterator[Span]:
    """Places of a module in which numbers and arithmetic are sizes."""
    if not module.startswith(PICTURES):
        return
    for statement in tree.body:
        if names_of(statement) & set(DEFINITIONS.get(module, ())):
            yield span_of(statement, lines)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ARGUMENTS:
            yield span_of(node.value, lines)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in CALLS:
            yield from (span_of(argument, lines) for argument in node.args)
        elif isinstance(node, ast.Call) and _is_beside(node):
            yield span_of(node.args[2], lines)


def _is_beside(call: ast.Call) -> bool:
    """Whether a call writes letters so many points beside what they are about: its third argument says how many."""
    coordinates = [word.value for word in call.keywords if word.arg == "textcoords"]
    beside = [isinstance(value, ast.Constant) and value.value == "offset points" for value in coordinates]
    return getattr(call.func, "attr", "") == "annotate" and beside == [True] and len(call.args) == 3
