"""Verdicts kept in a file, so that an interrupted run goes on, and a change of the code costs only what it changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.mutants.judging import NO_MUTANT, SURVIVED, Verdict

__all__ = ["RESULTS", "Results"]

RESULTS = Path(__file__).with_name("results.txt")


@dataclass(frozen=True)
class Kept:
    """A verdict, and the hash of the tests that gave it."""

    module: str
    verdict: Verdict
    tests_key: str

    def holds(self, tests_key: str) -> bool:
        """Whether the verdict need not be found again: more tests kill no fewer mutants."""
        return self.verdict.outcome != SURVIVED or self.tests_key == tests_key


class Results:
    """One line for each mutant: its hash, its module, the verdict, the tests; the last line for a hash counts."""

    def __init__(self, path: Path = RESULTS) -> None:
        self.path = path
        self.kept: dict[str, Kept] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            name, module, outcome, tests_key, by = (*line.split(" ", 4), "")[:5]
            self.kept[name] = Kept(module, Verdict(outcome, by), tests_key)

    def add(self, name: str, kept: Kept) -> None:
        self.kept[name] = kept
        with self.path.open("a") as file:
            file.write(_line(name, kept))

    def keep_only(self, names: set[str]) -> None:
        """Forget mutants of code that is no more, and write the file anew in order."""
        self.kept = {name: kept for name, kept in self.kept.items() if name in names}
        ordered = sorted(self.kept.items(), key=lambda pair: (pair[1].module, pair[0]))
        self.path.write_text("".join(_line(name, kept) for name, kept in ordered))


def _line(name: str, kept: Kept) -> str:
    by = "" if kept.verdict.outcome == NO_MUTANT else kept.verdict.by
    return f"{name} {kept.module} {kept.verdict.outcome} {kept.tests_key} {by}".rstrip() + "\n"
