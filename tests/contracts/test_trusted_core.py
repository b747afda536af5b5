"""The tables of CONTRIBUTING: the trusted core with its lines, and the twelve functions of a release in their order."""

from __future__ import annotations

import ast
import importlib
import io
import re
import sys
import tokenize
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.test_architecture import REPOSITORY, SAMPLERS, SOURCES, imports, part_of, reached, within

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAX_LINES_OF_CODE = 12_000
RELEASE = "dpmoments.spending.release"
READERS = ("dpmoments.rows.sources",)
"""What opens files and engines, whose numbers are encoded and counted by the core."""


def rows_of(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    table = PAGE.partition(heading)[2].partition("| ---")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def core() -> dict[str, list[str]]:
    """Modules of the trusted core by room, as the page names them."""
    return {
        room.strip("`/"): [
            f"dpmoments.{room.strip('`/').replace('/', '.')}.{name.replace('/', '.')}"
            for name in re.findall(r"`([\w/]+)`", files)
        ]
        for room, files, _ in rows_of("### The trusted core")
    }


def lines_of_code(source: str) -> int:
    """Lines that hold a token: neither blank, nor a comment, nor a docstring."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    spoken = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in silent
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            spoken -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(spoken)


@pytest.mark.long
def test_the_trusted_core_is_as_large_as_the_page_says() -> None:
    counted = {room: sum(lines_of_code(SOURCES[name]) for name in modules) for room, modules in core().items()}
    stated = {room.strip("`/"): int(lines.replace(",", "")) for room, _, lines in rows_of("### The trusted core")}
    assert counted == pytest.approx(stated, rel=0.1), counted
    assert sum(counted.values()) <= MAX_LINES_OF_CODE
    assert lines_of_code('"""Doc."""\n\nx = 1  # one\n# two\ny = """a\nb"""\n') == 3


def outside(known: dict[str, str]) -> list[str]:
    """Modules on the way of a release that draw noise, or see a row, and are not of the core."""
    trusted = {name for modules in core().values() for name in modules}
    found = []
    for module in sorted(reached(RELEASE, known) - trusted):
        taken = imports(module, known[module], known)
        draws = bool(taken & SAMPLERS) or module in SAMPLERS
        sees = part_of(module) == "rows" or any(part_of(name) == "rows" for name in taken)
        only_asks = part_of(module) == "mechanisms" or any(within(module, reader) for reader in READERS)
        if draws or (sees and not only_asks and known[module].count("\n") > 10):  # a package's face holds names alone
            found.append(module)
    return found


@pytest.mark.long
def test_nothing_outside_the_trusted_core_draws_noise_or_sees_a_row() -> None:
    assert outside(dict(SOURCES)) == []
    repair = "dpmoments.moments.repair"
    for planted in ("from dpmoments.rows.rows import Rows", "from dpmoments.privacy import sampling"):
        assert outside(dict(SOURCES) | {repair: f"{SOURCES[repair]}\n{planted}\n"}) == [repair], planted


def test_a_release_is_the_twelve_functions_of_the_page_in_their_order(tmp_path: Path) -> None:
    named = {}
    for function, file, _ in rows_of("## A release in twelve functions"):
        found: Any = importlib.import_module(f"dpmoments.{file.strip('`').removesuffix('.py').replace('/', '.')}")
        for part in function.strip("`").split("."):
            found = getattr(found, part)
        found = getattr(found, "__func__", found)
        named[getattr(found, "__wrapped__", found).__code__] = function
    assert len(named) == 12
    called: dict[CodeType, None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in named:
            called.setdefault(frame.f_code)

    ledger = dpm.Ledger(tmp_path / "budget.db")
    ledger.grant("people", epsilon=1.0)
    table, schema = (
        np.random.default_rng(0).uniform(0, 1, (200, 2)),
        dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Numeric("b", 0, 1)),
    )
    sys.setprofile(watch)
    try:
        dpm.release(table, schema, epsilon=1.0, ledger=ledger, dataset="people", output=tmp_path / "people.json")
    finally:
        sys.setprofile(None)
    assert [named[code] for code in called] == list(named.values())
