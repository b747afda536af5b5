"""Which test runs which line of which module, and how long it takes.

Measured once per test file. When a test file changes only the tests that changed are measured again, and when a module changes
lines are found again by their text: what is here decides which tests are asked, and in which order, not what they answer. At
worst a test that would find a mutant is not asked. Remove ``.mutants`` to measure everything anew.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest
from tools.mutants.enumeration import ROOT, SOURCE, module_path, source_of
from tools.mutants.forked import forked, run_unmutated

__all__ = ["COLLECTING", "Covering", "covering"]

KEPT = ROOT / ".mutants"
COLLECTING = ""
"""coverage's name for what runs outside all tests."""
Measured = dict[str, Any]
"""``seconds`` by test, ``functions``: hashes of test functions, ``sources`` by module, ``lines`` by module, then by test."""


@dataclass(frozen=True)
class Covering:
    """What one test file runs of one module."""

    seconds: dict[str, float]
    """By test."""
    lines: dict[int, list[str]]
    """Tests by line; the empty name for what runs when the module and the tests are imported."""


def covering(test_file: str, module: str, every_module: list[str]) -> Covering:
    """Measured, or as measured before; all modules are looked at when a test file is measured."""
    path = KEPT / f"{test_file.replace('/', '-')}.json"
    kept: Measured = json.loads(path.read_text()) if path.exists() else {}
    functions = _functions(ROOT / test_file)
    if kept.get("functions") != functions or module not in kept["sources"]:
        known = kept.get("functions", {})
        same = {name for name, key in functions.items() if known.get(name) == key and module in kept["sources"]}
        kept = _merged(_measured(test_file, every_module, same), kept, same) | {"functions": functions}
        KEPT.mkdir(exist_ok=True)
        path.write_text(json.dumps(kept))
    now = _lines_now(kept["sources"][module], source_of(module))
    lines: dict[int, list[str]] = {}
    for test, numbers in kept["lines"][module].items():
        for number in numbers:
            if number in now:
                lines.setdefault(now[number], []).append(test)
    return Covering(kept["seconds"], lines)


def _functions(path: Path) -> dict[str, str]:
    """Hashes of the test functions of a file, and of the file itself where its tests are the examples of docstrings."""
    text = path.read_text(encoding="utf-8")
    found = {"": _hash(text)} if not path.name.startswith("test_") else {}
    tests = [
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    ]
    return found | {node.name: _hash(ast.unparse(node)) for node in tests}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _function_of(test: str) -> str:
    file, _, name = test.partition("::")
    return name.split("[")[0] if file.split("/")[-1].startswith("test_") else ""


def _merged(new: Measured, old: Measured, same: set[str]) -> Measured:
    """What was measured now, and of what was measured before the tests that are the same."""
    if not same:
        return new
    kept = {test for test in old["seconds"] if _function_of(test) in same}
    merged = {"seconds": {test: old["seconds"][test] for test in kept} | new["seconds"], "sources": new["sources"]}
    merged["lines"] = {}
    for module, tests in new["lines"].items():
        now = _lines_now(old["sources"].get(module, ""), new["sources"][module])
        before = {
            test: [now[number] for number in numbers if number in now]
            for test, numbers in old["lines"].get(module, {}).items()
            if test in kept
        }
        merged["lines"][module] = before | tests
    return merged


def _lines_now(before: str, after: str) -> dict[int, int]:
    """Where the lines of a file are after a change; a changed line is taken for the one that stands in its place."""
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    now = {}
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        for offset in range(min(end - start, new_end - new_start)):
            now[start + offset + 1] = new_start + offset + 1
    return now


def _measured(test_file: str, modules: list[str], leave_out: set[str]) -> Measured:
    started = time.monotonic()

    def work(say: Callable[[str], None]) -> None:
        recorder = coverage.Coverage(data_file=None, include=[str(SOURCE / "*")], config_file=False)
        recorder.start()
        seconds: dict[str, float] = {}
        failed: set[str] = set()

        class Failures:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    failed.add(report.nodeid)

        def run(items: dict[str, pytest.Item]) -> None:
            chosen = [item for name, item in items.items() if _function_of(name) not in leave_out]
            if not chosen:
                return
            chosen[0].config.pluginmanager.register(Failures())
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                recorder.switch_context(item.nodeid)
                before = time.process_time()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                seconds[item.nodeid] = round(time.process_time() - before, 4)
            recorder.switch_context(COLLECTING)

        run_unmutated([test_file], run)
        recorder.stop()
        data = recorder.get_data()
        found: dict[str, dict[str, list[int]]] = {}
        for module in modules:
            by_test = found.setdefault(module, {})
            for line, tests in data.contexts_by_lineno(str(module_path(module))).items():
                for test in set(tests) - failed:
                    by_test.setdefault(test, []).append(line)
        say(json.dumps({"seconds": seconds, "lines": found, "failed": sorted(failed)}))

    status, said = forked(work)
    if status != 0 or not said:
        raise RuntimeError(f"{test_file} could not be measured: {said}")
    answer: Measured = json.loads(said[-1])
    failed = answer.pop("failed")
    answer["seconds"] = {test: took for test, took in answer["seconds"].items() if test not in failed}
    answer["sources"] = {module: source_of(module) for module in modules}
    print(f"measured {test_file}: {len(answer['seconds'])} tests in {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"  left out, since they fail on the code as it is: {failed}", flush=True)
    return answer
