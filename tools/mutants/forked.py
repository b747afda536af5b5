"""pytest in forked processes: collected once, run many times."""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NoReturn

import pytest
from tools.mutants.enumeration import ROOT, SOURCE, Mutant, module_path

__all__ = ["Collected", "forked", "import_mutated", "load_everything_else", "run_tests", "run_unmutated", "swap_code"]

EVERYTHING_ELSE = (
    *("numpy", "numpy.random", "numpy.testing", "scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.special"),
    *("scipy.stats", "pandas", "polars", "pyarrow", "pyarrow.csv", "pyarrow.parquet", "pyarrow.dataset", "duckdb"),
    *("opendp.prelude", "randomgen", "narwhals", "sklearn", "sklearn.decomposition", "sklearn.linear_model", "mpmath"),
    *("threadpoolctl", "typer", "typer.testing", "rich", "yaml", "jinja2", "hypothesis", "hypothesis.extra.numpy"),
)
"""Imported before any process is forked: most of the time a test file takes to load."""
EXTRA_MEMORY = 4 << 30
"""A mutant that allocates more than this beyond what was there fails its test with a MemoryError."""
SLOWER, AT_LEAST = 8.0, 10.0
"""A test may take so many times what it took, and this many seconds, of processor time; then the mutant counts as killed."""


def load_everything_else() -> None:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
    for name in EVERYTHING_ELSE:
        importlib.import_module(name)
    import hypothesis

    # A counterexample need not be made small, nor remembered.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    checks = tuple(hypothesis.HealthCheck)
    hypothesis.settings.register_profile(
        "mutants", phases=phases, database=None, deadline=None, derandomize=True, suppress_health_check=checks
    )
    hypothesis.settings.load_profile("mutants")


def forked(work: Callable[[Callable[[str], None]], None], wall_seconds: float = 0) -> tuple[int, list[str]]:
    """Run in a child: its wait status, and the lines it said. What it prints is thrown away."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(work, writing, wall_seconds)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(child, 0)
    return status, lines


def _in_child(work: Callable[[Callable[[str], None]], None], writing: int, wall_seconds: float) -> NoReturn:
    status = 1
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        signal.setitimer(signal.ITIMER_REAL, wall_seconds)
        work(lambda line: os.write(writing, f"{line}\n".encode()) and None)
        status = 0
    except BaseException:
        os.write(writing, f"!{traceback.format_exc()[-600:]!r}\n".encode())
    finally:
        os._exit(status)


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_MEMORY,) * 2)


class Collected:
    """A pytest plugin that hands over the collected tests instead of running them."""

    def __init__(self, work: Callable[[dict[str, pytest.Item]], None]) -> None:
        self.work = work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.work({item.nodeid: item for item in session.items})
        return True


def run_tests(arguments: Sequence[str], work: Callable[[dict[str, pytest.Item]], None]) -> int:
    """Collect tests and do something with them, in this process."""
    os.chdir(ROOT)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", "-p", "no:faulthandler"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *arguments], plugins=[Collected(work)]))


def run_unmutated(arguments: Sequence[str], work: Callable[[dict[str, pytest.Item]], None]) -> None:
    """Do the same where the code is as it is: raise RuntimeError if tests cannot be collected."""
    status = run_tests(arguments, work)
    # Tests that fail on the code as it is are left out by whoever runs them.
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {status!r}")


class FirstFailure:
    """A pytest plugin that notices whether a test failed."""

    def __init__(self) -> None:
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def first_to_fail(chosen: Sequence[tuple[pytest.Item, float]], say: Callable[[str], None]) -> None:
    """Run tests in turn, each with the time it took on the code as it is, and say which fails first."""
    limit_memory()
    noticed = FirstFailure()
    for place, (item, seconds) in enumerate(chosen):
        if place == 0:
            item.config.pluginmanager.register(noticed)
        say(f"?{item.nodeid}")
        signal.setitimer(signal.ITIMER_PROF, SLOWER * seconds + AT_LEAST)
        following = chosen[place + 1][0] if place + 1 < len(chosen) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if noticed.failed:
            say(f"x{item.nodeid}")
            return
    say("survived")


def code_objects(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Functions, those inside functions too, by name and line."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 0x2:  # CO_NEWLOCALS: a function; else the body of a class
                yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from code_objects(constant)


def functions_of(path: Path) -> dict[tuple[str, int], list[FunctionType]]:
    """All living functions of a module, wherever they are held: by other modules, in registries, under decorators."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    gc.unfreeze()  # what the tests' own conftest froze is not among the objects
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and value.__code__.co_filename == str(path):
            found.setdefault((value.__code__.co_qualname, value.__code__.co_firstlineno), []).append(value)
    return found


def swap_code(mutant: Mutant, mutated: str, living: dict[tuple[str, int], list[FunctionType]]) -> bool:
    """Give the functions of a definition the code of the mutant; False where none is found."""
    path = module_path(mutant.module)
    codes = list(code_objects(compile(mutated, str(path), "exec", dont_inherit=True)))
    named = Counter(key for key, _ in codes)
    # Two functions of one name in one line cannot be told apart.
    new = {key: code for key, code in codes if named[key] == 1 or "<locals>" not in key[0]}
    wanted = [key for key in living if mutant.definition.first_line <= key[1] <= mutant.definition.last_line]
    wanted = [key for key in wanted if key in new]
    for key in wanted:
        for function in living[key]:
            # What a decorator made on import lives inside it, and has a closure that the mutant may not have.
            if len(function.__code__.co_freevars) == len(new[key].co_freevars):
                function.__code__ = new[key]
    return bool(wanted)


class _MutatedFinder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, path: Path, mutated: str) -> None:
        self.name, self.path, self.mutated = name, path, mutated

    def find_spec(
        self,
        name: str,
        path: object = None,
        target: object = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        loader = _MutatedLoader(name, str(self.path), self.mutated)
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


class _MutatedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, mutated: str) -> None:
        super().__init__(name, path)
        self.mutated = mutated

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutated, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)


def import_mutated(mutant: Mutant, mutated: str) -> None:
    """From now on the module is imported with the fault."""
    path = module_path(mutant.module)
    name = ".".join(("dpmoments", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    sys.meta_path.insert(0, _MutatedFinder(name, path, mutated))
