"""The rules that keep the tree honest, read off the source: who imports whom, how long a module is, what none may hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import dpmoments

PACKAGE = Path(dpmoments.__file__).parent
REPOSITORY = PACKAGE.parent.parent
LONGEST_MODULE = 350

MAY_IMPORT_ROWS = {
    "dpmoments",  # the public name
    "dpmoments.release",
    "dpmoments.rows",
    "dpmoments.mechanisms",
    "dpmoments.audit",  # runs mechanisms on tables that it makes up
}
MAY_IMPORT_NOISE = {
    "dpmoments",  # the public name
    "dpmoments.noise",
    "dpmoments.mechanisms",
    "dpmoments.audit",
}
NEVER_REACHES_A_ROW = (
    "analysis",
    "encoding",
    "moment_release",
    "noise_law",
    "plain_values",
    "release_file",
    "schema",
    "columns",
)
"""What works on releases and public descriptions alone; not even through another module may it import rows, or noise."""
BELOW = {
    "rows": ("mechanisms", "noise", "privacy", "release", "analysis", "moment_release", "forecast", "cli"),
    "noise": ("mechanisms", "rows", "privacy", "release", "analysis", "moment_release", "forecast", "cli", "schema"),
    "mechanisms": ("release", "moment_release", "analysis", "forecast", "cli"),
    "privacy": ("release", "moment_release", "analysis", "forecast", "cli"),
    "analysis": ("release", "forecast", "cli", "mechanisms"),
    "schema": ("release", "moment_release", "analysis", "forecast", "cli", "mechanisms", "privacy"),
}
"""Data flows one way: a part of the library never imports what comes after it."""
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "random", "imp"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
RANDOM_CLASSES = {"Generator", "BitGenerator", "SeedSequence"}
MAY_SEED = {"dpmoments.noise.entropy", "dpmoments.rows.rows"}  # the marked insecure seed; made-up rows of a check
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common)($|_)", re.IGNORECASE)


def module_name(path: Path) -> str:
    parts = ["dpmoments", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES: Mapping[str, str] = {
    module_name(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(module: str, source: str, known: Mapping[str, str] = SOURCES) -> set[str]:
    """Everything a module imports, wherever in it the import stands, as full dotted names of modules."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            found.add(base)
            found |= {name for alias in node.names if (name := f"{base}.{alias.name}") in known}
    return found


def within(module: str, parts: set[str]) -> bool:
    """Whether a module is one of ``parts`` or inside one that is a package."""
    return any(module == part or (part != "dpmoments" and module.startswith(f"{part}.")) for part in parts)


def reached(module: str, known: Mapping[str, str] = SOURCES) -> set[str]:
    """All modules of the library that importing a module brings in, directly or not, the package's own face left out."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current in seen or current == "dpmoments" or current not in known:
            continue
        seen.add(current)
        waiting += imports(current, known[current], known)
        # importing a.b.c runs a.b too
        waiting += [current.rsplit(".", 1)[0]]
    return seen


def import_faults(module: str, source: str, known: Mapping[str, str] = SOURCES) -> Iterator[str]:
    """Each import of a module that the rules forbid, in words."""
    part = module.split(".")[1] if "." in module else ""
    for name in sorted(imports(module, source, known)):
        if within(name, {"dpmoments.rows"}) and not within(module, MAY_IMPORT_ROWS):
            yield f"{module} imports {name}: only rows, mechanisms and release see records"
        if within(name, {"dpmoments.noise"}) and not within(module, MAY_IMPORT_NOISE):
            yield f"{module} imports {name}: only mechanisms draw noise"
        if not within(module, {"dpmoments.audit"}) and within(
            name, {f"dpmoments.{later}" for later in BELOW.get(part, ())}
        ):
            yield f"{module} imports {name}, which comes after it"
        if name.split(".")[0] in FORBIDDEN_MODULES:
            yield f"{module} imports {name}"


def other_faults(module: str, source: str) -> Iterator[str]:
    """Forbidden calls, global random state, seeds, vague names, prints, length."""
    tree = ast.parse(source)
    if source.count("\n") >= LONGEST_MODULE:
        yield f"{module} is {source.count(chr(10))} lines long"
    if any(VAGUE_NAMES.search(part) for part in module.split(".")):
        yield f"{module} has a vague name"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield f"{module} calls {node.func.id}"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
            and ".cli" not in module
        ):
            yield f"{module} prints"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            seeds = node.attr == "default_rng" and module in MAY_SEED
            if node.attr not in RANDOM_CLASSES and not seeds:
                yield f"{module} uses numpy.random.{node.attr}: randomness is an argument"
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and VAGUE_NAMES.search(
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)
        ):
            yield f"{module} has a vague name, {node.name}"
    if within(module, {"dpmoments.rows"}) and re.search(
        r"^\s*(import|from) (logging|warnings)\b", source, re.MULTILINE
    ):
        yield f"{module} logs or warns while it holds records"


@pytest.mark.parametrize("module", SOURCES)
def test_imports_keep_the_rules(module: str) -> None:
    assert list(import_faults(module, SOURCES[module])) == []


@pytest.mark.parametrize("module", SOURCES)
def test_modules_keep_the_rules(module: str) -> None:
    assert list(other_faults(module, SOURCES[module])) == []


@pytest.mark.parametrize("part", NEVER_REACHES_A_ROW)
def test_what_works_on_releases_reaches_no_row_and_no_noise(part: str) -> None:
    modules = [module for module in SOURCES if within(module, {f"dpmoments.{part}"})]
    assert modules
    for module in modules:
        forbidden = [
            name
            for name in reached(module)
            if within(name, {"dpmoments.rows", "dpmoments.noise", "dpmoments.mechanisms"})
        ]
        assert not forbidden, f"{module} reaches {forbidden}"


def test_the_parts_are_where_the_rules_look_for_them() -> None:
    for part in {*MAY_IMPORT_ROWS, *MAY_IMPORT_NOISE} - {"dpmoments.audit"}:
        assert part in SOURCES
    assert len([module for module in SOURCES if within(module, {"dpmoments.rows"})]) > 10
    assert "dpmoments.rows.rows" in reached("dpmoments.release")
    assert "dpmoments.noise.lattice" in reached("dpmoments.mechanisms.gaussian")


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in (REPOSITORY / "tests").rglob("*.py")]
    assert len(names) == len(set(names))
    assert not [name for name in names if VAGUE_NAMES.search(Path(name).stem)]


PLANTED_IMPORTS = [
    ("dpmoments.repair.repair", "from dpmoments.rows.rows import Rows", "see records"),
    ("dpmoments.repair.repair", "import dpmoments.rows", "see records"),
    ("dpmoments.repair.repair", "from dpmoments import rows", "see records"),
    ("dpmoments.repair.repair", "from ..rows import rows", "see records"),
    ("dpmoments.repair.repair", "def f():\n    from dpmoments.rows.moments import Moments", "see records"),
    ("dpmoments.forecast", "from dpmoments.noise.matrices import wishart", "draw noise"),
    ("dpmoments.release", "from dpmoments.noise import entropy", "draw noise"),
    ("dpmoments.cli.curator", "import dpmoments.noise.entropy as e", "draw noise"),
    ("dpmoments.rows.kernel", "from dpmoments.privacy.budget import Neighbors", "comes after it"),
    ("dpmoments.mechanisms.gaussian", "from dpmoments.moment_release import MomentRelease", "comes after it"),
    ("dpmoments.documents", "import pickle", "imports pickle"),
    ("dpmoments.noise.sphere", "import random", "imports random"),
]
PLANTED_FAULTS = [
    ("dpmoments.noise.sphere", "import numpy as np\nx = np.random.normal()", "numpy.random.normal"),
    ("dpmoments.noise.sphere", "import numpy\nnumpy.random.seed(0)", "numpy.random.seed"),
    ("dpmoments.noise.sphere", "import numpy as np\nrng = np.random.default_rng(0)", "numpy.random.default_rng"),
    ("dpmoments.documents", "eval(text)", "calls eval"),
    ("dpmoments.release", "print(rows)", "prints"),
    ("dpmoments.rows.sources.arrow", "import warnings", "logs or warns"),
    ("dpmoments.rows.utils", "", "vague name"),
    ("dpmoments.rows.rows", "class RowManager: ...", "vague name"),
    ("dpmoments.rows.rows", "def string_helper(): ...", "vague name"),
    ("dpmoments.rows.rows", "x = 1\n" * LONGEST_MODULE, "lines long"),
]


@pytest.mark.parametrize(("module", "source", "words"), PLANTED_IMPORTS)
def test_a_forbidden_import_is_found(module: str, source: str, words: str) -> None:
    assert any(words in fault for fault in import_faults(module, source))


@pytest.mark.parametrize(("module", "source", "words"), PLANTED_FAULTS)
def test_a_broken_rule_is_found(module: str, source: str, words: str) -> None:
    assert any(words in fault for fault in other_faults(module, source))


def test_a_forbidden_way_round_is_found() -> None:
    planted = dict(SOURCES) | {
        "dpmoments.repair.repair": "from dpmoments.shortcut import thing",
        "dpmoments.shortcut": "import dpmoments.rows.rows",
    }
    assert "dpmoments.rows.rows" in reached("dpmoments.repair.repair", planted)
    assert "dpmoments.rows.rows" not in reached("dpmoments.repair.repair")


def test_allowed_imports_are_not_faults() -> None:
    assert not list(
        import_faults("dpmoments.mechanisms.new", "from dpmoments.rows.rows import Rows\nimport dpmoments.noise")
    )
    assert not list(import_faults("dpmoments", "from dpmoments import noise, rows"))
    assert not list(
        other_faults("dpmoments.noise.entropy", "import numpy as np\nx: np.random.Generator = np.random.default_rng(0)")
    )
