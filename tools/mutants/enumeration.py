"""All mutants of a module: where they are, what they are called, and which places are left alone."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from tools.mutants.operators import is_small_integer, operators
from tools.mutants.sizes import ARITHMETIC, Span, sizes_of, span_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dpmoments"

LEFT_ALONE = {
    "annotations": "types are checked by mypy --strict",
    "messages": "the words of errors and warnings, f-strings, `__repr__`, `__str__`: what is raised, and when, is mutated",
    "__all__ and TYPE_CHECKING": "no effect at run time",
    "unions of types": "`A | B` outside functions: types again",
    "caches": "`@cache` and its kin: speed alone",
    "strict= of zip": "a check of lengths that are equal, so that it never fails",
    "dataclass, property, classmethod and other plain decorators": "without them nothing imports or works",
    "sizes and colors of pictures": "numbers and arithmetic that `sizes.py` lists; what is drawn is mutated",
}
PLAIN_DECORATORS = {"dataclass", "property", "classmethod", "staticmethod", "abstractmethod", "overload", "wraps"}
CACHES = {"cache", "lru_cache", "cached_property"}
UNSPOKEN = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Definition:
    """A function or method, the outermost where several are nested, or a statement outside all functions."""

    name: str
    first_line: int
    last_line: int
    body_line: int | None
    """Where the code starts that runs when the function is called; nothing for statements that run on import."""


@dataclass(frozen=True)
class Mutant:
    """One fault in one place."""

    module: str
    """As the path below ``src/dpmoments``, without its ending."""
    definition: Definition
    operator: str
    occurrence: int
    line: int
    column: int
    on_import: bool
    name: str
    """A hash of all that decides whether the fault is the same: the code of the definition, the operator, the place in it."""

    def source(self) -> str | None:
        """The module with the fault; nothing where that is no Python."""
        original = source_of(self.module)
        mutated = mutate_code(original, operators()[self.operator], self.occurrence)
        if mutated is None or mutated == original:
            return None
        try:
            before, after = ast.dump(ast.parse(original)), ast.dump(ast.parse(mutated))
        except SyntaxError:
            return None
        return None if before == after else mutated

    def change(self) -> tuple[str, str]:
        """The lines that differ, before and after."""
        before, after = source_of(self.module).split("\n"), (self.source() or "").split("\n")
        differing = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
        left, right = (
            (" ".join(" ".join(side).split()) for side in zip(*differing, strict=True)) if differing else ("", "")
        )
        return left, right


def module_path(module: str) -> Path:
    return SOURCE / f"{module}.py"


def source_of(module: str) -> str:
    return module_path(module).read_text(encoding="utf-8")


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of operators and places."""
    source = source_of(module)
    lines = source.split("\n")
    tree = ast.parse(source)
    definitions = list(_definitions(tree))
    zones, sizes = list(_zones(tree, lines)), list(sizes_of(module, tree, lines))
    parsed = get_ast(source)
    for operator_name, operator in operators().items():
        places = ((node, start) for node in ast_nodes(parsed) for start, _ in operator.mutation_positions(node))
        seen: dict[tuple[int, int], int] = {}
        for occurrence, (node, (line, column)) in enumerate(places):
            index = seen[line, column] = seen.get((line, column), -1) + 1
            left_alone = [*zones, *(sizes if operator_name.startswith(ARITHMETIC) else ())]
            if any(start <= (line, column) < end for start, end in left_alone):
                continue
            if operator_name.startswith("ReplaceBinaryOperator") and node.get_previous_leaf().value in "(,":
                continue  # the mark after which arguments have names
            if operator_name == "NumberReplacer" and not is_small_integer(node.value):
                continue
            if operator_name == "AddNot" and _negated_otherwise(node):
                continue
            definition = _definition_at(definitions, line)
            code = "\n".join(lines[definition.first_line - 1 : definition.last_line])
            key = (
                module,
                definition.name,
                code,
                operator_name,
                str(line - definition.first_line),
                str(column),
                str(index),
            )
            name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:12]
            on_import = definition.body_line is None or line < definition.body_line
            yield Mutant(module, definition, operator_name, occurrence, line, column, on_import, name)


def _negated_otherwise(node: object) -> bool:
    """Whether another operator already negates the condition: a single comparison for equality, or one with `not`."""
    condition = node.children[2] if node.type == "test" else node.children[1]  # type: ignore[attr-defined]
    if condition.type == "not_test":
        return True
    if condition.type != "comparison" or len(condition.children) != 3:
        return False
    return condition.children[1].get_code().strip() in {"==", "!=", "is", "is not"}


def _definition_at(definitions: list[Definition], line: int) -> Definition:
    return next(found for found in definitions if found.first_line <= line <= found.last_line)


def _definitions(node: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[Definition]:
    for statement in node.body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.FunctionDef):
            yield Definition(f"{prefix}{statement.name}", first, last, statement.body[0].lineno)
        elif isinstance(statement, ast.ClassDef):
            yield from _definitions(statement, f"{prefix}{statement.name}.")
            yield Definition(f"{prefix}{statement.name}", first, last, None)
        else:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            yield Definition(f"{prefix}{names[0] if names else '(module)'}", first, last, None)


def _zones(tree: ast.Module, lines: list[str]) -> Iterator[Span]:
    """What is left alone, as (line, column) from and to."""

    def span(node: ast.AST) -> Span:
        return span_of(node, lines)

    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield span(node.annotation)
        elif _left_alone(node):
            yield span(node)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from (span(argument) for argument in node.exc.args)
        if isinstance(node, ast.FunctionDef):
            if node.returns is not None:
                yield span(node.returns)
            yield from _decorators(node, span)
        if isinstance(node, ast.ClassDef):
            yield from _decorators(node, span)
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            named = ast.unparse(statement).startswith("__all__")
            if named or (isinstance(statement.value, ast.BinOp) and isinstance(statement.value.op, ast.BitOr)):
                yield span(statement)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in UNSPOKEN
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _called(node) == "warn")


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _decorators(node: ast.FunctionDef | ast.ClassDef, span: object) -> Iterator[Span]:
    for decorator in node.decorator_list:
        plain = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = plain.attr if isinstance(plain, ast.Attribute) else getattr(plain, "id", "")
        if name in PLAIN_DECORATORS | CACHES:
            (line, column), end = span(decorator)  # type: ignore[operator]
            yield (line, column - 1), end
