"""Whether a test notices a mutant: the tests that run its line, one of each kind first, until one fails or the time is spent."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pytest
from tools.mutants.coverage_map import COLLECTING, Covering, covering
from tools.mutants.enumeration import ROOT, Mutant, module_path, source_of
from tools.mutants.forked import (
    first_to_fail,
    forked,
    functions_of,
    import_mutated,
    run_tests,
    run_unmutated,
    swap_code,
)
from tools.mutants.targets import test_files

__all__ = ["Judge", "Verdict"]

MOST_FILES = 2
"""Of a fault that acts on import, every test file has to be loaded anew: so many at most, likely killers first."""
NO_MUTANT, KILLED, SURVIVED = "none", "killed", "survived"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    outcome: str
    by: str = ""
    """The test that failed, or what else ended it; of a survivor, how many tests were run."""


class Judge:
    """Judges the mutants of one module.

    Parameters
    ----------
    module : str
    seconds : float
        What the tests of a survivor may take together, by their times on the code as it is.
    every_module : list of str
        What a measurement of coverage looks at, so that each test file is measured once.
    """

    def __init__(self, module: str, seconds: float, every_module: list[str]) -> None:
        self.module, self.seconds = module, seconds
        self.files = test_files(module)
        self.covering: dict[str, Covering] = {file: covering(file, module, every_module) for file in self.files}
        self.times = {test: took for found in self.covering.values() for test, took in found.seconds.items()}
        self.kills: Counter[str] = Counter()

    def judge(self, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, Verdict]]:
        """Each mutant with its verdict, as it is found. Those that act on import come last."""
        later: list[Mutant] = []
        prompt: list[Mutant] = []
        for mutant in mutants:
            (later if mutant.on_import else prompt).append(mutant)
        yield from self._judge_collected(prompt, later)
        for mutant in later:
            yield mutant, self._judge_imported(mutant)

    def chosen(self, mutant: Mutant, *, ran_on_import: bool | None = None) -> list[str]:
        """Tests to run: those that killed others here, then the quickest, then the others, one of each test function in turn.

        A test file that runs the line when it is collected, to make its cases, has seen the code as it was: its tests judge
        in a process that imports everything anew, ``ran_on_import``, and only after all others.
        """
        covered = self._tests_of(mutant)
        if ran_on_import is not None and not mutant.on_import:
            covered = {test for test in covered if self._runs_on_import(mutant, test) == ran_on_import}
        functions: dict[str, list[str]] = {}
        for test in sorted(covered, key=lambda test: (-self.kills[test], self.times[test])):
            functions.setdefault(test.split("[")[0], []).append(test)
        in_turn = [(place, test) for tests in functions.values() for place, test in enumerate(tests)]
        killers = sorted((test for test in covered if self.kills[test]), key=lambda test: -self.kills[test])
        quickest = self._within(sorted(covered, key=self.times.__getitem__), self.seconds / 2.0)
        others = [test for _, test in sorted(in_turn, key=lambda pair: (pair[0], self.times[pair[1]]))]
        return self._within(list(dict.fromkeys([*killers, *quickest, *others])), self.seconds)

    def _within(self, tests: list[str], seconds: float) -> list[str]:
        """The first so many, one at least, that take no longer together."""
        spent = list(accumulate(self.times[test] for test in tests))
        return [test for place, test in enumerate(tests) if place == 0 or spent[place] <= seconds]

    def _runs_on_import(self, mutant: Mutant, test: str) -> bool:
        return COLLECTING in self.covering[test.split("::")[0]].lines.get(mutant.line, ())

    def _tests_of(self, mutant: Mutant) -> set[str]:
        definition = mutant.definition
        if not mutant.on_import:
            line = mutant.line
            body = definition.body_line or definition.first_line
            # A line inside a statement may have no code of its own.
            while line > body and not any(line in found.lines for found in self.covering.values()):
                line -= 1
            # What runs in another process is not seen to be run: the first test file is asked then.
            return self._running({line}) or set(self.covering[self.files[1]].seconds)
        if definition.body_line is not None:
            return self._running(set(range(definition.body_line, definition.last_line + 1)))
        own_name = definition.name.split(".")[-1]
        lines = source_of(self.module).split("\n")
        users = {number for number, text in enumerate(lines, 1) if own_name in text}
        every = self._running(set(range(1, len(lines) + 1))) or set(self.covering[self.files[1]].seconds)
        return self._running(users) or every

    def _running(self, lines: set[int]) -> set[str]:
        return {
            test
            for found in self.covering.values()
            for line in lines
            for test in found.lines.get(line, ())
            if test != COLLECTING
        }

    def _judge_collected(self, mutants: Sequence[Mutant], later: list[Mutant]) -> Iterator[tuple[Mutant, Verdict]]:
        """In a child that has collected the tests, a child for each mutant; what the child says is passed on as it comes."""
        if not mutants:
            return
        wanted = {mutant.name: mutant for mutant in mutants}

        def work(say: Callable[[str], None]) -> None:
            def each(items: dict[str, pytest.Item]) -> None:
                living = functions_of(module_path(self.module))
                gc.freeze()  # what is there already is not looked at, and so not copied, by collections in children
                for mutant in mutants:
                    mutated = mutant.source()
                    if mutated is None:
                        say(f"{mutant.name} {NO_MUTANT}")
                        continue
                    if not _can_be_swapped(mutant, living):
                        say(f"{mutant.name} later")
                        continue
                    verdict = self._run(lambda m=mutant, text=mutated: swap_code(m, text, living), mutant, items)
                    if verdict.outcome == SURVIVED and self.chosen(mutant, ran_on_import=True):
                        say(f"{mutant.name} later")
                        continue
                    say(f"{mutant.name} {verdict.outcome} {verdict.by}")

            run_unmutated(self.files, each)

        for line in _streamed(work):
            if line.startswith("!"):
                raise RuntimeError(f"collecting tests for {self.module} failed: {line}")
            name, outcome, by = (*line.split(" ", 2), "")[:3]
            if outcome == "later":
                later.append(wanted[name])
            else:
                verdict = Verdict(outcome, by)
                self._learn(verdict)
                yield wanted[name], verdict

    def _run(self, plant: Callable[[], object], mutant: Mutant, items: dict[str, pytest.Item]) -> Verdict:
        chosen = [test for test in self.chosen(mutant, ran_on_import=False) if test in items]

        def work(say: Callable[[str], None]) -> None:
            plant()
            first_to_fail([(items[test], self.times[test]) for test in chosen], say)

        verdict = _verdict(*forked(work, _patience(self.seconds)), len(chosen))
        self._learn(verdict)
        return verdict

    def _judge_imported(self, mutant: Mutant) -> Verdict:
        mutated = mutant.source()
        if mutated is None:
            return Verdict(NO_MUTANT)
        chosen = self.chosen(mutant, ran_on_import=True) or self.chosen(mutant)
        asked = {test.split("::")[0] for test in chosen}
        files = [file for file in self.files if file in asked][:MOST_FILES]
        chosen = [test for test in chosen if test.split("::")[0] in files]

        def work(say: Callable[[str], None]) -> None:
            import_mutated(mutant, mutated)
            collected = False

            def run(items: dict[str, pytest.Item]) -> None:
                nonlocal collected
                collected = True
                first_to_fail([(items[test], self.times[test]) for test in chosen if test in items], say)

            run_tests(chosen, run)
            if not collected:
                say("xcollecting the tests")

        if not chosen:
            return Verdict(SURVIVED, "0")
        verdict = _verdict(*forked(work, _patience(self.seconds) + 60), len(chosen))
        self._learn(verdict)
        return verdict

    def _learn(self, verdict: Verdict) -> None:
        if verdict.outcome == KILLED and verdict.by in self.times:
            self.kills[verdict.by] += 1


def _can_be_swapped(mutant: Mutant, living: dict[tuple[str, int], list[object]]) -> bool:
    definition = mutant.definition
    return any(definition.first_line <= line <= definition.last_line for _, line in living)


def _patience(seconds: float) -> float:
    """Wall-clock seconds after which a mutant counts as hanging: tests have limits of processor time of their own."""
    return 60 * seconds + 300


def _verdict(status: int, said: list[str], n_tests: int) -> Verdict:
    last = said[-1] if said else ""
    if last.startswith("x"):
        return Verdict(KILLED, last[1:])
    if last == "survived" and os.WIFEXITED(status):
        return Verdict(SURVIVED, str(n_tests))
    if os.WIFSIGNALED(status):
        return Verdict(KILLED, f"{signal.Signals(os.WTERMSIG(status)).name} in {last[1:]}")
    return Verdict(KILLED, f"crash: {last.replace(str(ROOT), '.')[:200]}")


def _streamed(work: Callable[[Callable[[str], None]], None]) -> Iterator[str]:
    """As :func:`forked`, but every line is passed on as soon as it is said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        from tools.mutants.forked import _in_child

        _in_child(work, writing, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        for line in said:
            yield line.rstrip("\n")
    os.waitpid(child, 0)
