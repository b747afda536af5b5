"""The reviewed list of mutants that are no faults is about the code as it is; the rest is `make mutants`."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from tools.mutants.sizes import ARGUMENTS, CALLS, DEFINITIONS, PICTURES, names_of, sizes_of

REPOSITORY = Path(__file__).parents[2]
LIST = REPOSITORY / "tools" / "mutants" / "equivalent.toml"


@cache
def codes_of(module: str) -> dict[str, list[str]]:
    """The text of everything by its name, line breaks as spaces."""
    text = (REPOSITORY / "src" / "dpmoments" / f"{module}.py").read_text(encoding="utf-8")
    lines, found = text.split("\n"), defaultdict[str, list[str]](list)

    def look(node: ast.AST, prefix: str) -> None:
        for statement in getattr(node, "body", []):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names = [getattr(statement, "name", None), *(getattr(target, "id", None) for target in targets)]
            for name in {*names, "(module)"}:
                found[f"{prefix}{name}"].append(
                    " ".join(" ".join(lines[statement.lineno - 1 : statement.end_lineno]).split())
                )
            if isinstance(statement, ast.ClassDef):
                look(statement, f"{prefix}{statement.name}.")

    look(ast.parse(text), "")
    return dict(found)


def is_about_the_code(entry: dict[str, str]) -> bool:
    return any(entry["was"] in code for code in codes_of(entry["module"]).get(entry["definition"], ()))


@pytest.mark.long
def test_every_entry_is_about_the_code_as_it_is() -> None:
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["equivalent"]
    assert [entry for entry in entries if not is_about_the_code(entry)] == []
    for entry in entries:
        assert set(entry) == {"module", "definition", "was", "becomes", "why"}
        assert entry["becomes"]
        assert entry["was"] not in entry["becomes"]
        assert "*" not in entry["becomes"] or entry["becomes"] == ["*"]
        assert len(entry["why"]) > 15
    # Planted faults: code that has changed, or gone.
    for change in ({"was": entries[0]["was"] + " or None"}, {"definition": "no_such_function"}):
        assert not is_about_the_code(entries[0] | change)


@pytest.mark.long
def test_every_module_that_is_judged_has_its_tests() -> None:
    """The table names files that exist."""
    table = (REPOSITORY / "tools" / "mutants" / "targets.py").read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(table).body if isinstance(node, ast.Assign)]
    tests = next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "TESTS")
    files = Counter(path.name for path in (REPOSITORY / "tests").rglob("test_*.py"))
    for prefix, names in tests.items():
        assert list((REPOSITORY / "src" / "dpmoments").glob(f"{prefix}*")), prefix
        for name in names:
            assert files[f"test_{name}.py"] == 1, name


def test_sizes_of_pictures_are_named_as_they_are() -> None:
    """Every name of the rule is that of a definition, an argument or a call; estimates and interval ends are not among them."""
    source, used = REPOSITORY / "src" / "dpmoments", set()
    for path in [path for picture in PICTURES for path in sorted(source.glob(f"{picture}*.py"))]:
        text, module = path.read_text(encoding="utf-8"), str(path.relative_to(source).with_suffix(""))
        tree = ast.parse(text)
        defined = {name for statement in tree.body for name in names_of(statement)}
        assert set(DEFINITIONS.get(module, ())) <= defined, module
        used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
        used |= {
            getattr(node.func, "attr", getattr(node.func, "id", ""))
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        lines = text.split("\n")
        left = ["".join(lines[start[0] - 1][start[1] :]) for start, _ in sizes_of(module, tree, lines)]
        assert not any("line.value" in each or "line.lower" in each for each in left), module
    assert used >= ARGUMENTS | CALLS
    assert list(sizes_of("analysis/confidence", ast.parse("f(alpha=0.05)"), ["f(alpha=0.05)"])) == []
    assert list(sizes_of("plots/intervals", ast.parse("f(alpha=0.05)"), ["f(alpha=0.05)"])) == [((1, 8), (1, 12))]
    beside = 'ax.annotate("a", (1.0, 2.0), (6, 0), textcoords="offset points")'
    assert list(sizes_of("plots/intervals", ast.parse(beside), [beside])) == [((1, 29), (1, 35))]
    at = 'ax.annotate("a", (1.0, 2.0), (6, 0), textcoords="data")'
    assert list(sizes_of("plots/intervals", ast.parse(at), [at])) == []
