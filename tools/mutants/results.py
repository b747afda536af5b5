"""Verdicts kept in a file: by them a mutant is never drawn twice, and the report says what was measured where."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tools.mutants.judging import Verdict

__all__ = ["NO_FAULT", "RESULTS", "UNKNOWN", "Kept", "Results", "commit_now"]

RESULTS = Path(__file__).with_name("results.txt")
UNKNOWN = "-"
"""Stands for the commit of verdicts that no sample of the report is made of: their mutants are not drawn again, that is all."""
NO_FAULT = "no-fault"
"""Outcome of a survivor that the reviewed list names."""


@dataclass(frozen=True)
class Kept:
    """A verdict, and the sample that it belongs to."""

    module: str
    verdict: Verdict
    commit: str
    """What was judged; a ``+`` at the end stands for changes that were not committed."""
    seed: int

    @property
    def sample(self) -> tuple[str, int]:
        return self.commit, self.seed


class Results:
    """One line for each mutant: its hash, its module, the verdict, commit and seed of its sample, and who gave the verdict."""

    def __init__(self, path: Path = RESULTS) -> None:
        self.path = path
        self.kept: dict[str, Kept] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            name, module, outcome, commit, seed, by = (*line.split(" ", 5), "")[:6]
            self.kept[name] = Kept(module, Verdict(outcome, by), commit, int(seed))

    def add(self, name: str, kept: Kept) -> None:
        self.kept[name] = kept
        with self.path.open("a") as file:
            file.write(_line(name, kept))

    def reviewed(self, names: set[str]) -> None:
        """Note survivors that are no faults; a later change of their code does not make them faults."""
        for name in names:
            kept = self.kept[name]
            self.kept[name] = replace(kept, verdict=Verdict(NO_FAULT, kept.verdict.by))
        self._write()

    def forget(self, names: set[str]) -> None:
        """Forget verdicts on code that is no more."""
        self.kept = {name: kept for name, kept in self.kept.items() if name not in names}
        self._write()

    def _write(self) -> None:
        self.path.write_text("".join(_line(name, kept) for name, kept in self.kept.items()))


def commit_now() -> str:
    """The commit that is judged, in short; with ``+`` where sources or tests differ from it."""

    def said(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()

    return said("rev-parse", "--short=10", "HEAD") + ("+" if said("status", "--porcelain", "src", "tests") else "")


def _line(name: str, kept: Kept) -> str:
    words = (name, kept.module, kept.verdict.outcome, kept.commit, str(kept.seed), kept.verdict.by)
    return " ".join(words).rstrip() + "\n"
