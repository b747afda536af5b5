"""The rules that keep the tree honest, read off the source: who imports whom, what none may hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import dpmoments

PACKAGE = Path(dpmoments.__file__).parent
REPOSITORY = PACKAGE.parent.parent

FLOORS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("schema",),
    ("privacy",),
    ("moments", "noise"),
    ("rows", "analysis", "datasets"),
    ("mechanisms", "plots"),
    ("releases", "papers"),
    ("spending",),
    ("planning",),
    ("reporting", "audit", "estimators"),
    ("cli",),
)
"""Packages from the ground up. A file imports from lower floors, and within its own floor where that makes no circle."""
MAY_IMPORT_ROWS = {"rows", "mechanisms", "papers", "spending", "audit", "planning"}
"""The privilege to see records."""
SEES_NO_ROW = {"dpmoments.audit.verification", "dpmoments.papers.metrics"}
"""Files of these packages without it."""
SAMPLERS = {"dpmoments.noise", "dpmoments.privacy.sampling", "dpmoments.papers.sampling", "dpmoments.papers.sphere"}
"""What draws noise; ``moments`` computes with its laws."""
MAY_IMPORT_NOISE = {
    "dpmoments.noise",
    "dpmoments.privacy.filter",
    "dpmoments.privacy.sampling",
    "dpmoments.papers.sampling",
    "dpmoments.audit",
}
"""The privilege to draw noise, which everything else asks the privacy filter for."""
INSIDE_THE_FILTER = {"_generator", "_answer", "_draws", "_allowance", "_closed"}
FILTER_CLASSES = {"PrivacyFilter", "GroupFilter", "Recorder", "Replayer"}
IMAGINED = "dpmoments.spending.imagined"
MAY_RECORD = {"dpmoments.privacy.filter", "dpmoments.audit", IMAGINED}
"""The privilege to keep exact queries, or to answer them otherwise than by noise."""
MECHANISMS_MAY_IMPORT = (
    *(
        "__future__",
        "abc",
        "collections.abc",
        "dataclasses",
        "enum",
        "functools",
        "itertools",
        "math",
        "re",
        "types",
        "typing",
    ),
    *("numpy", "numpy.typing", "scipy"),
)
TABLE_LIBRARIES = "dpmoments.base.table_libraries"
"""Stands for libraries that are not on the list."""
MECHANISMS_MAY_USE_OF_SCIPY = {"optimize", "special"}
MECHANISMS_NEVER_CALL = {"open", "print", "getattr", "setattr", "vars", "globals", "locals"}
HAS_THE_LOGGER = {"dpmoments.base.progress", "dpmoments.cli.output"}
MAY_LOG = {*("dpmoments.base.progress", "dpmoments.spending.run"), *("dpmoments.cli.entry", "dpmoments.cli.output")}
"""What tells of the steps of a job; none of them holds a cell or counts a row."""
MAY_ASK_THE_FILTER = {"draw", "unit", "left", "for_group", "selection_key"}
MAY_ONLY_ASK = ("mechanisms", "spending")
MAKES_SENSITIVITIES = ("dpmoments.privacy.sensitivity",)
NEVER_REACHES_A_ROW = (
    *("analysis", "base", "moments", "plots", "schema"),
    "papers.models",
    *("releases.moment_release", "releases.group_releases", "releases.pooling", "releases.statements"),
    "releases.disclosed",
)
"""What works on releases and public descriptions alone; not even through another module may it import rows, or samplers."""
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "random", "imp"}
LOADS_PAPERS = ("dpmoments.audit",)
"""What knows a paper's mechanism by its class."""
LOADS_BY_NAME = {
    *("dpmoments", "dpmoments.cli.entry", "dpmoments.moments.repair"),
    *(
        "dpmoments.base.loaded_classes",
        "dpmoments.base.table_libraries",
        "dpmoments.noise",
        "dpmoments.privacy.curves",
        "dpmoments.privacy.sampling",
    ),
}
"""The literal tables of what is loaded when it is asked for."""
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "import_module"}
RANDOM_CLASSES = {"Generator", "BitGenerator", "SeedSequence"}
MAY_SEED = {
    "dpmoments.analysis.exports",  # draws from the stated noise: no noise of any release
    "dpmoments.analysis.synthetic",  # rows drawn from what was released: no noise of any release
    "dpmoments.privacy.sampling",  # the marked insecure seed
    *("dpmoments.moments.spectral", "dpmoments.papers.models"),  # quantiles of public laws
    "dpmoments.planning.typical_table",  # typical rows of forecasts
    "dpmoments.rows.histogram",  # made-up rows of a check
}
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common)($|_)", re.IGNORECASE)


def module_name(path: Path) -> str:
    parts = ["dpmoments", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES: Mapping[str, str] = {
    module_name(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All of a module; kept, since many rules ask."""
    return tuple(ast.walk(ast.parse(source)))


@cache
def import_statements(source: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All of a module, wherever in it they stand."""
    return tuple(node for node in nodes(source) if isinstance(node, ast.Import | ast.ImportFrom))


def dotted(node: ast.expr) -> str:
    """A name with its attributes as it is written; of any other expression the attributes alone."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            return f"{dotted(owner)}.{name}"
    return "()"


def imports(module: str, source: str, known: Mapping[str, str] = SOURCES) -> set[str]:
    """Everything a module imports, as full dotted names of modules."""
    found = set()
    for node in import_statements(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            base = node.module or ""
            if node.level:
                package = module.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            found.add(base)
            found |= {name for alias in node.names if (name := f"{base}.{alias.name}") in known}
    return found


def part_of(module: str) -> str:
    """The file or folder of the root that a module belongs to; empty for the package's own face."""
    return module.split(".")[1] if "." in module else ""


def within(module: str, part: str) -> bool:
    """Whether a module is ``part`` or inside it, where it is a package."""
    return module == part or module.startswith(f"{part}.")


def floor_of(module: str) -> int:
    """0 for the ground; the package's own face, and what starts the command, stand above all."""
    if module in ("dpmoments", "dpmoments.__main__"):
        return len(FLOORS)
    part = part_of(module)
    for floor, parts in enumerate(FLOORS):
        if part in parts:
            return floor
    raise LookupError(f"{module} stands on no floor: give {part} its place in FLOORS")


def reached(module: str, known: Mapping[str, str] = SOURCES) -> set[str]:
    """All modules of the library that importing a module brings in, directly or not, the package's own face left out."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current in seen or current in ("dpmoments", "dpmoments.noise") or current not in known:  # faces
            continue
        seen.add(current)
        waiting += imports(current, known[current], known)
        # importing a.b.c runs a.b too
        waiting += [current.rsplit(".", 1)[0]]
    return seen


def is_mechanism(module: str) -> bool:
    """Whether a module belongs to a mechanism, of the core or of a paper."""
    return part_of(module) == "mechanisms" or within(module, "dpmoments.papers.mechanisms")


def import_faults(module: str, source: str, known: Mapping[str, str] = SOURCES) -> Iterator[str]:
    """Each import of a module that the rules forbid, in words."""
    part = part_of(module)
    for name in sorted(imports(module, source, known)):
        if name.split(".")[0] in FORBIDDEN_MODULES:
            yield f"{module} imports {name}"
        if not within(name, "dpmoments") or module == "dpmoments":
            continue
        if name == "dpmoments":
            if part != "cli":  # the command line calls the public names, as its users do
                yield f"{module} imports the package's face, which stands above it"
            continue
        if part_of(name) == "rows" and (part not in MAY_IMPORT_ROWS or module in SEES_NO_ROW):
            yield f"{module} imports {name}: only {', '.join(sorted(MAY_IMPORT_ROWS))} see records"
        if name in SAMPLERS and not any(within(module, allowed) for allowed in MAY_IMPORT_NOISE):
            yield f"{module} imports {name}: only {', '.join(sorted(MAY_IMPORT_NOISE))} draw noise"
        if floor_of(name) > floor_of(module):
            yield f"{module} imports {name}, which stands on a higher floor"


def filter_faults(module: str, source: str) -> Iterator[str]:
    """Ways round the privacy filter, in words: looking inside it, another filter, another sensitivity, other noise."""
    keeps = any(within(module, allowed) for allowed in MAY_RECORD)
    of_itself = ("self",) if not is_mechanism(module) else ()
    for node in nodes(source):
        match node:
            case ast.Attribute(value=owner, attr=name) if (
                name in INSIDE_THE_FILTER and module != "dpmoments.privacy.filter" and dotted(owner) not in of_itself
            ):
                yield f"{module} looks inside the privacy filter"
            case ast.Attribute(value=owner) if dotted(owner) in ("np.random", "numpy.random") and (
                part_of(module) in MAY_ONLY_ASK or is_mechanism(module)
            ):
                yield f"{module} uses numpy.random: noise comes from the privacy filter"
            case ast.ClassDef(bases=bases) if not keeps and FILTER_CLASSES & {
                ast.unparse(base).split(".")[-1] for base in bases
            }:
                yield f"{module} has a privacy filter of its own"
            case ast.ImportFrom(names=names) if not keeps and {"Recorder", "Replayer"} & {name.name for name in names}:
                yield f"{module} keeps exact queries"
            case ast.Call(func=function) if (
                dotted(function).split(".")[-1] == "Sensitivity" and module not in MAKES_SENSITIVITIES
            ):
                yield f"{module} makes a sensitivity of its own"


def mechanism_faults(module: str, source: str) -> Iterator[str]:
    """What a mechanism does beside asking rows and the filter; imports are checked against what is allowed."""
    for node in nodes(source):
        match node:
            case ast.Import(names=names):
                roots = [name.name for name in names]
            case ast.ImportFrom(module=name, level=0):
                roots = [name or ""] if name != "scipy" else [f"scipy.{alias.name}" for alias in node.names]
            case _:
                roots = []
        for root in [] if module in LOADS_BY_NAME else roots:
            if root == TABLE_LIBRARIES or not (root in MECHANISMS_MAY_IMPORT or within(root, "dpmoments")):
                yield f"{module} imports {root}, which is not on the list of mechanisms"
        match node:
            case ast.alias(name="scipy", asname=str()):
                yield f"{module} imports scipy under another name"
            case ast.Attribute(value=ast.Name(id="scipy"), attr=name) if name not in MECHANISMS_MAY_USE_OF_SCIPY:
                yield f"{module} uses scipy.{name}"
            case ast.Attribute(value=ast.Name(id="privacy_filter"), attr=name) if name not in MAY_ASK_THE_FILTER:
                yield f"{module} touches privacy_filter.{name}"
            case ast.Attribute(value=ast.Name(id="rows"), attr="source"):
                yield f"{module} goes round Rows to its source"
            case ast.Attribute(value=owner, attr=name) if (
                name.startswith("_") and not name.startswith("__") and ast.unparse(owner) not in ("self", "cls")
            ):
                yield f"{module} touches {ast.unparse(node)}, which is private"
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in MECHANISMS_NEVER_CALL - (
                {"getattr"} if module in LOADS_BY_NAME else set()
            ) and not (arguments and ast.unparse(arguments[0]) == "self"):
                yield f"{module} calls {name}"
            case ast.Call(func=function) if dotted(function).startswith("PrivacyFilter"):
                yield f"{module} opens a privacy filter"
            case ast.Call(func=ast.Name(id="replace"), keywords=keywords) if {"value", "units", "rounding"} & {
                keyword.arg for keyword in keywords
            }:
                yield f"{module} changes a sensitivity"


def circles(known: Mapping[str, str] = SOURCES) -> list[set[str]]:
    """Groups of files that import each other, directly or not; imports inside functions and packages' faces count too."""
    graph = {
        module: {name for name in imports(module, source, known) if name in known} - {module, "dpmoments"}
        for module, source in known.items()
    }

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting += graph[current]
        return seen

    after = {module: reachable(module) for module in graph}
    found = {frozenset({other for other in after[module] if module in after[other]}) for module in graph}
    return [set(circle) for circle in found if circle]


def takes_the_logger(source: str) -> bool:
    """Whether a module imports ``log``."""
    return any(
        (statement.module or "").startswith("dpmoments.base.") and "log" in [alias.name for alias in statement.names]
        for statement in import_statements(source)
        if isinstance(statement, ast.ImportFrom)
    )


def other_faults(module: str, source: str) -> Iterator[str]:
    """Forbidden calls, global random state, seeds, vague names, prints."""
    if any(VAGUE_NAMES.search(part) for part in module.split(".")):
        yield f"{module} has a vague name"
    for node in nodes(source):
        called = dotted(node.func).removeprefix("importlib.") if isinstance(node, ast.Call) else ""
        by_name = called == "import_module" and module in LOADS_BY_NAME
        if called in FORBIDDEN_CALLS and not by_name:
            yield f"{module} calls {called}"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
            and ".cli" not in module
        ):
            yield f"{module} prints"
        if isinstance(node, ast.Attribute) and dotted(node.value) in ("np.random", "numpy.random"):
            seeds = node.attr == "default_rng" and module in MAY_SEED
            if node.attr not in RANDOM_CLASSES and not seeds:
                yield f"{module} uses numpy.random.{node.attr}: randomness is an argument"
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and VAGUE_NAMES.search(
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)
        ):
            yield f"{module} has a vague name, {node.name}"
    if re.search(r"^\s*(import|from) logging\b", source, re.MULTILINE) and module not in HAS_THE_LOGGER:
        yield f"{module} has a logger of its own"
    if takes_the_logger(source) and module not in MAY_LOG:
        yield f"{module} logs: only {', '.join(sorted(MAY_LOG))} do"
    if part_of(module) == "rows" and re.search(r"^\s*(import|from) (logging|warnings)\b", source, re.MULTILINE):
        yield f"{module} logs or warns while it holds records"


@pytest.mark.long
def test_imports_keep_the_rules() -> None:
    assert [fault for module in SOURCES for fault in import_faults(module, SOURCES[module])] == []


@pytest.mark.long
def test_modules_keep_the_rules() -> None:
    assert [fault for module in SOURCES for fault in other_faults(module, SOURCES[module])] == []


@pytest.mark.long
def test_noise_comes_through_the_filter_alone() -> None:
    assert [fault for module in SOURCES for fault in filter_faults(module, SOURCES[module])] == []


def test_mechanisms_only_ask() -> None:
    modules = [module for module in SOURCES if is_mechanism(module)]
    assert len(modules) > 20
    assert [fault for module in modules for fault in mechanism_faults(module, SOURCES[module])] == []


@pytest.mark.long
def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles() == []


@pytest.mark.long
def test_no_packages_import_each_other_in_a_circle() -> None:
    packages: dict[str, str] = {}
    for module, source in SOURCES.items():
        named = [name for name in imports(module, source) if name != "dpmoments" and within(name, "dpmoments")]
        lines = "".join(f"import dpmoments.{part_of(name)}\n" for name in named if part_of(name) != part_of(module))
        packages[f"dpmoments.{part_of(module)}"] = packages.get(f"dpmoments.{part_of(module)}", "") + lines
    assert circles(packages) == []


def test_the_core_imports_no_wing() -> None:
    """``papers`` is loaded by name: by the registry, the package's face, and what audits its mechanisms."""
    allowed = ("dpmoments.papers", *LOADS_PAPERS)
    for module, source in SOURCES.items():
        if module == "dpmoments":  # its face loads them when asked: tests/contracts/test_import.py
            continue
        taken = [name for name in imports(module, source) if within(name, "dpmoments.papers")]
        assert not taken or any(within(module, part) for part in allowed), f"{module} imports {taken}"


def test_only_faces_have_a_list_of_names() -> None:
    """What starts with an underscore is a file's own; ``__all__`` is for the names of a package."""
    faces = {module_name(path) for path in PACKAGE.rglob("__init__.py")}
    faces |= {"dpmoments.datasets", "dpmoments.noise"}
    faces |= {"dpmoments.releases.moment_release", "dpmoments.base.table_libraries"}  # names of other files
    assert [module for module, source in SOURCES.items() if "\n__all__ = " in source and module not in faces] == []


def test_every_part_of_the_house_has_one_floor() -> None:
    parts = [part for floor in FLOORS for part in floor]
    assert len(parts) == len(set(parts))
    assert {part_of(module) for module in SOURCES} - {"", "__main__"} == set(parts)


def test_draws_without_noise_see_typical_rows_alone() -> None:
    """The filter of forecasts answers exactly: nobody else may use it, and its file opens no table."""
    assert [module for module, source in SOURCES.items() if "ExpectedAnswers" in source] == [IMAGINED]
    users = [module for module, source in SOURCES.items() if IMAGINED in imports(module, source)]
    assert users == ["dpmoments.planning.forecast_noise"]
    assert "Rows.of(" not in SOURCES[IMAGINED]
    assert not [name for name in imports(IMAGINED, SOURCES[IMAGINED]) if name.startswith("dpmoments.rows.sources")]


@pytest.mark.parametrize("part", NEVER_REACHES_A_ROW)
def test_what_works_on_releases_reaches_no_row_and_no_noise(part: str) -> None:
    modules = [module for module in SOURCES if within(module, f"dpmoments.{part}")]
    assert modules
    for module in modules:
        forbidden = [name for name in reached(module) if part_of(name) in ("rows", "mechanisms") or name in SAMPLERS]
        assert not forbidden, f"{module} reaches {forbidden}"


def test_the_parts_are_where_the_rules_look_for_them() -> None:
    assert {part_of(module) for module in SOURCES} >= MAY_IMPORT_ROWS
    assert {*MAY_IMPORT_NOISE, *MAY_RECORD, *SAMPLERS, *LOADS_BY_NAME} <= set(SOURCES)
    assert len([module for module in SOURCES if part_of(module) == "rows"]) > 10
    assert "dpmoments.rows.rows" in reached("dpmoments.spending.release")
    assert "dpmoments.privacy.sampling" in reached("dpmoments.mechanisms.additive")


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in (REPOSITORY / "tests").rglob("*.py")]
    assert len(names) == len(set(names))
    assert not [name for name in names if VAGUE_NAMES.search(Path(name).stem)]


NEW = "dpmoments.mechanisms.new"
PLANTED = [
    (import_faults, "dpmoments.moments.repair", "import dpmoments.rows", "see records"),
    (import_faults, "dpmoments.moments.repair", "from dpmoments import rows", "see records"),
    (import_faults, "dpmoments.moments.repair", "from ..rows import rows", "see records"),
    (
        import_faults,
        "dpmoments.analysis.regression",
        "def f():\n    from dpmoments.rows.rows import Rows",
        "see records",
    ),
    (import_faults, "dpmoments.audit.verification", "from dpmoments.rows.rows import Rows", "see records"),
    (import_faults, "dpmoments.planning.forecast", "from dpmoments.privacy.sampling import noised", "draw noise"),
    (
        import_faults,
        "dpmoments.papers.mechanisms.new",
        "from dpmoments.papers.sphere import sample_bingham",
        "draw noise",
    ),
    (import_faults, "dpmoments.cli.curator", "import dpmoments.privacy.sampling as e", "draw noise"),
    (import_faults, "dpmoments.rows.kernel", "from dpmoments.mechanisms.base import Plan", "higher floor"),
    (
        import_faults,
        "dpmoments.spending.release",
        "if TYPE_CHECKING:\n    from dpmoments.cli.entry import main",
        "higher floor",
    ),
    (import_faults, "dpmoments.spending.release", "import dpmoments", "stands above it"),
    (import_faults, "dpmoments.base.documents", "import pickle", "imports pickle"),
    (other_faults, "dpmoments.papers.sphere", "import numpy as np\nx = np.random.normal()", "numpy.random.normal"),
    (other_faults, "dpmoments.papers.sphere", "import numpy\nnumpy.random.default_rng(0)", "numpy.random.default_rng"),
    (other_faults, "dpmoments.base.documents", "eval(text)", "calls eval"),
    (other_faults, NEW, "import importlib\nimportlib.import_module('dpmoments.noise')", "calls import_module"),
    (other_faults, "dpmoments.spending.release", "print(rows)", "prints"),
    (other_faults, "dpmoments.rows.sources.arrow", "import warnings", "logs or warns"),
    (other_faults, "dpmoments.rows.rows", "from dpmoments.base.progress import log", "logs: only"),
    (other_faults, "dpmoments.spending.release", "import logging", "logger of its own"),
    (other_faults, "dpmoments.rows.utils", "", "vague name"),
    (other_faults, "dpmoments.rows.rows", "class RowManager: ...", "vague name"),
    (filter_faults, NEW, "privacy_filter._draws.clear()", "looks inside"),
    (filter_faults, NEW, "class Mine(filter.Replayer): ...", "filter of its own"),
    (filter_faults, NEW, "from dpmoments.privacy.filter import Recorder", "keeps exact queries"),
    (filter_faults, NEW, "half = Sensitivity('half', {}, neighbors, Norm.L2, 0.5)", "sensitivity of its own"),
    (filter_faults, NEW, "noise = np.random.Generator(bits).normal()", "uses numpy.random"),
    (mechanism_faults, NEW, "PrivacyFilter.open(self)", "opens a privacy filter"),
    (mechanism_faults, NEW, "from numpy.random import default_rng", "imports numpy.random"),
    (mechanism_faults, NEW, "from scipy import stats", "imports scipy.stats"),
    (mechanism_faults, NEW, "import scipy as sp", "imports scipy under another name"),
    (mechanism_faults, NEW, "import scipy\nscipy.stats.norm", "uses scipy.stats"),
    (mechanism_faults, NEW, "from dpmoments.base.table_libraries import pa", "imports dpmoments.base.table_libraries"),
    (mechanism_faults, NEW, "privacy_filter.close()", "touches privacy_filter.close"),
    (mechanism_faults, NEW, "other._plan", "which is private"),
    (mechanism_faults, NEW, "getattr(privacy_filter, '_gener' + 'ator')", "calls getattr"),
    (mechanism_faults, NEW, "rows.source.blocks()", "goes round Rows"),
    (mechanism_faults, NEW, "replace(sensitivity, value=0.5)", "changes a sensitivity"),
]


def test_planted_faults_are_found() -> None:
    for faults, module, source, words in PLANTED:
        assert any(words in fault for fault in faults(module, source)), (module, source)


def test_a_forbidden_way_round_is_found() -> None:
    planted = dict(SOURCES) | {
        "dpmoments.moments.repair": "from dpmoments.shortcut import thing",
        "dpmoments.shortcut": "import dpmoments.rows.rows",
    }
    assert "dpmoments.rows.rows" in reached("dpmoments.moments.repair", planted)
    assert "dpmoments.rows.rows" not in reached("dpmoments.moments.repair")


def test_allowed_imports_are_not_faults() -> None:
    assert not [*import_faults(NEW, "from dpmoments.rows.rows import Rows\nimport dpmoments.privacy.filter")]
    assert not [*import_faults("dpmoments", "from dpmoments import noise, rows")]
    seeded = "import numpy as np\nx: np.random.Generator = np.random.default_rng(0)"
    assert not [*other_faults("dpmoments.privacy.sampling", seeded)]
