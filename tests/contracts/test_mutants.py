"""The reviewed list of mutants that are no faults is about the code as it is; the rest is `make mutants`."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LIST = REPOSITORY / "tools" / "mutants" / "equivalent.toml"


def code_of(module: str, definition: str) -> list[str]:
    """The text of everything of that name, line breaks as spaces."""
    text = (REPOSITORY / "src" / "dpmoments" / f"{module}.py").read_text(encoding="utf-8")
    tree, found = ast.parse(text), []

    def look(node: ast.AST, prefix: str) -> None:
        for statement in getattr(node, "body", []):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names = [getattr(statement, "name", None), *(getattr(target, "id", None) for target in targets)]
            if definition in [f"{prefix}{name}" for name in names] or definition == f"{prefix}(module)":
                found.append(" ".join((ast.get_source_segment(text, statement) or "").split()))
                found.append(" ".join(text.split("\n")[statement.lineno - 1].split()))
            if isinstance(statement, ast.ClassDef):
                look(statement, f"{prefix}{statement.name}.")

    look(tree, "")
    return found


def is_about_the_code(entry: dict[str, str]) -> bool:
    return any(entry["was"] in code for code in code_of(entry["module"], entry["definition"]))


def test_every_entry_is_about_the_code_as_it_is() -> None:
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["equivalent"]
    assert [entry for entry in entries if not is_about_the_code(entry)] == []
    for entry in entries:
        assert set(entry) == {"module", "definition", "was", "becomes", "why"}
        assert entry["becomes"]
        assert entry["was"] not in entry["becomes"]
        assert len(entry["why"]) > 15
    # Planted faults: code that has changed, or gone.
    for change in ({"was": entries[0]["was"] + " or None"}, {"definition": "no_such_function"}):
        assert not is_about_the_code(entries[0] | change)


def test_every_module_that_is_judged_has_its_tests() -> None:
    """The table names files that exist."""
    table = (REPOSITORY / "tools" / "mutants" / "targets.py").read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(table).body if isinstance(node, ast.Assign)]
    tests = next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "TESTS")
    for prefix, names in tests.items():
        assert list((REPOSITORY / "src" / "dpmoments").glob(f"{prefix}*")), prefix
        for name in names:
            assert len([*(REPOSITORY / "tests").rglob(f"test_{name}.py")]) == 1, name
