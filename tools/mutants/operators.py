"""Which faults are planted: operators of cosmic-ray, thinned out, and a few of our own.

cosmic-ray replaces every ``+`` by each of eleven operators, most of which no test could miss. One replacement each is kept, and
the boundary of a comparison rather than all its variants. Our own are what a library of this kind gets wrong: a rounding to
the safe side left out, a check not made, a constant twice too large.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import MappingProxyType

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Name, Number
from parso.tree import NodeOrLeaf

__all__ = ["operators"]

FROM_COSMIC_RAY = (
    *(
        f"ReplaceBinaryOperator_{before}_{after}"
        for before, after in (
            *(("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div"), ("Div", "Mul"), ("FloorDiv", "Mul"), ("Mod", "FloorDiv")),
            *(("Pow", "Mul"), ("RShift", "LShift"), ("LShift", "RShift"), ("BitOr", "BitAnd"), ("BitAnd", "BitOr")),
            ("BitXor", "BitOr"),
        )
    ),
    *(
        f"ReplaceComparisonOperator_{before}_{after}"
        for before, after in (
            *(("Eq", "NotEq"), ("NotEq", "Eq"), ("Is", "IsNot"), ("IsNot", "Is")),
            *(("Lt", "LtE"), ("LtE", "Lt"), ("Gt", "GtE"), ("GtE", "Gt")),
        )
    ),
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert"),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "RemoveDecorator"),
    *("NumberReplacer", "ZeroIterationForLoop"),
)

SAFE_SIDE = frozenset(
    (
        *("rounded_up", "rounded_down", "nextafter", "no_less", "_up", "_down", "up", "down"),
        *("max", "min", "maximum", "minimum", "abs", "ceil", "floor", "rint", "round", "clip", "sorted", "fabs"),
        *("without_low_bits", "upper_triangle_mirrored"),
    )
)
"""Calls that are replaced by their argument; what ends in ``_up`` or ``_down`` too."""
TWO_SIDED = frozenset(("max", "min", "maximum", "minimum"))
LARGEST_STEP = 1000
"""From here on a constant is doubled and halved: one more or less is no fault."""


class UnwrapCall(Operator):
    """``rounded_up(x)`` becomes ``x``; ``max(x, y)`` becomes ``x``, or ``y``."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for _ in self._arguments(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        prefix = node.get_first_leaf().prefix
        return parso.parse(f"{prefix or ' '}({self._arguments(node)[index]})")

    def _arguments(self, node: NodeOrLeaf) -> list[str]:
        if node.type != "atom_expr" or not node.children[-1].get_code().startswith("("):
            return []
        function = (node.children[-2] if len(node.children) > 2 else node.children[0]).get_last_leaf().value
        if function not in SAFE_SIDE and not function.endswith(("_up", "_down")):
            return []
        call = ast.parse(node.get_code(include_prefix=False).strip(), mode="eval").body
        if not isinstance(call, ast.Call):
            return []
        wanted = call.args[:2] if function in TWO_SIDED else call.args[:1]
        return [ast.unparse(argument) for argument in wanted if not isinstance(argument, ast.Starred)]

    @classmethod
    def examples(cls) -> tuple[object, ...]:
        return ()


class DropStatement(Operator):
    """A check, or another call made for its effect, is left out; so is a ``raise``."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        if node.type != "simple_stmt":
            return
        statement = node.children[0]
        called = statement.type == "atom_expr" and statement.children[-1].get_code().startswith("(")
        if called or statement.type == "raise_stmt":
            yield statement.start_pos, statement.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        statement = node.children[0]
        lines = statement.get_code(include_prefix=False).count("\n")
        # As many lines as before, so that what follows stays where it is.
        filled = "pass" + ";\\\n pass" * lines
        node.children[0] = Name(filled, statement.start_pos, prefix=statement.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[object, ...]:
        return ()


class SwapAugmented(Operator):
    """``+=`` becomes ``-=``, and so on."""

    SWAPS = MappingProxyType({"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "=", "&=": "=", "//=": "*="})

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        if node.type == "operator" and node.value in self.SWAPS:
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        node.value = self.SWAPS[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[object, ...]:
        return ()


class ScaleConstant(Operator):
    """A constant that is no small integer is doubled, and halved."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        if node.type == "number" and not is_small_integer(node.value):
            for _ in range(2):
                yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        number = ast.literal_eval(node.value)
        half = number // 2 if isinstance(number, int) else number / 2
        return Number(repr((number * 2, half)[index]), node.start_pos, prefix=node.prefix)

    @classmethod
    def examples(cls) -> tuple[object, ...]:
        return ()


def is_small_integer(digits: str) -> bool:
    """Whether a constant is one to which NumberReplacer adds and subtracts 1."""
    number = ast.literal_eval(digits)
    return isinstance(number, complex) or (abs(number) < LARGEST_STEP and number == int(number))


OURS = (UnwrapCall, DropStatement, SwapAugmented, ScaleConstant)


def operators() -> dict[str, Operator]:
    """Every operator by its name."""
    found = {name: get_operator(f"core/{name}")() for name in FROM_COSMIC_RAY}
    return found | {operator.__name__: operator() for operator in OURS}
