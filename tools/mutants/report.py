"""``tools/mutants/mutation-score.md``: the last sample of each package, its survivors, and what is left alone."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.mutants.enumeration import LEFT_ALONE, ROOT, Mutant, mutants_of
from tools.mutants.judging import KILLED, SURVIVED
from tools.mutants.results import NO_FAULT, UNKNOWN, Kept, Results
from tools.mutants.targets import PACKAGES, modules, package_of

__all__ = ["interval", "is_reviewed", "last_samples", "write"]

REPORT = ROOT / "tools" / "mutants" / "mutation-score.md"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
ANY_CHANGE = "*"
"""In the reviewed list, every change of a line that survives: the line decides nothing that is promised."""

HEAD = """\
# Mutation score

Written by `make mutants`. A mutant is the library with one small fault planted: a sign turned, a constant one larger, a check
left out, a rounding to the safe side forgotten. It is killed when a test fails. What survives is a fault that nothing would find.

The faults are those of [cosmic-ray](https://github.com/sixty-north/cosmic-ray), thinned out, and four of our own
(`tools/mutants/operators.py`). Each is judged by the tests that run its line, among the files that `tools/mutants/targets.py`
names for its module: those that found others before, the quickest, then one of each test function in turn, until some seconds
have passed (`--seconds`). A mutant that only a test outside that limit would find counts as a survivor: those tried are found no
less often than it says. A test that runs eight times as long as it should, or takes 4 GB more, has found its mutant.

Each row is a random sample of mutants that were never judged before, drawn at the commit named. The score leaves out mutants
that are shown to be no faults: `tools/mutants/equivalent.toml` lists them, each with its reason. The interval is Wilson's, of
95 %.
"""


@cache
def reviewed() -> frozenset[tuple[str, str, str, str]]:
    """The reviewed list: module, definition, line before, line after."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]
    return frozenset(
        (entry["module"], entry["definition"], entry["was"], becomes)
        for entry in entries
        for becomes in entry["becomes"]
    )


def is_reviewed(mutant: Mutant) -> bool:
    """Whether the list says that a mutant, or every change of its line that no test finds, is no fault."""
    was, becomes = mutant.change()
    return any((mutant.module, mutant.definition.name, was, after) in reviewed() for after in (becomes, ANY_CHANGE))


def last_samples(results: Results) -> dict[str, dict[str, Kept]]:
    """The verdicts of each package's last sample, by mutant."""
    last: dict[str, tuple[str, int]] = {}
    for kept in results.kept.values():
        if kept.commit != UNKNOWN:
            last[package_of(kept.module)] = kept.sample
    return {
        package: {
            name: kept
            for name, kept in results.kept.items()
            if package_of(kept.module) == package and kept.sample == sample
        }
        for package, sample in last.items()
    }


def interval(killed: int, faults: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share."""
    z = 1.959964
    middle = (killed + z * z / 2.0) / (faults + z * z)
    reach = z / (faults + z * z) * math.sqrt(killed * (faults - killed) / faults + z * z / 4.0)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


@dataclass(frozen=True)
class Row:
    """What became of a sample."""

    package: str
    total: int
    counts: Counter[str]
    sample: tuple[str, int]

    def __str__(self) -> str:
        killed, survived, no_fault = (self.counts[outcome] for outcome in (KILLED, SURVIVED, NO_FAULT))
        faults = killed + survived
        low, high = interval(killed, faults) if faults else (0.0, 1.0)
        share = f"{killed / faults:.3f}" if faults else ""
        numbers = (self.total, faults + no_fault, killed, no_fault, survived)
        commit, seed = self.sample
        return f"| `{self.package}` | {' | '.join(map(str, numbers))} | {share} | {low:.3f} – {high:.3f} | {seed} | {commit} |"


def write(results: Results) -> None:
    """Note survivors that are reviewed, forget verdicts on code that is no more, and write the report."""
    mutants = {mutant.name: mutant for module in modules([]) for mutant in mutants_of(module)}
    living = {name: kept for name, kept in results.kept.items() if name in mutants}
    survived = {name for name, kept in living.items() if kept.verdict.outcome == SURVIVED}
    results.reviewed({name for name in survived if is_reviewed(mutants[name])})
    samples = last_samples(results)
    results.forget({*results.kept} - {*living} - {name for kept in samples.values() for name in kept})
    totals = Counter(package_of(mutant.module) for mutant in mutants.values())
    lines = [
        HEAD,
        "| package | mutants | tried | killed | no fault | survive | score | 95 % | seed | commit |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    left: dict[str, list[Mutant]] = {}
    for package in PACKAGES:
        if kept := samples.get(package):
            counts = Counter(each.verdict.outcome for each in kept.values())
            lines.append(str(Row(package, totals[package], counts, next(iter(kept.values())).sample)))
            for name, each in kept.items():
                if each.verdict.outcome == SURVIVED and name in mutants:
                    left.setdefault(each.module, []).append(mutants[name])
    lines += ["", "## Survivors", "", "Of these samples, where the code is as it was.", ""]
    for module, found in left.items():
        lines += [f"### `{module}`", "", "```diff"]
        for mutant in sorted(found, key=lambda mutant: mutant.line):
            was, becomes = mutant.change()
            lines += [f"@@ {mutant.definition.name}", f"- {was}", f"+ {becomes}"]
        lines += ["```", ""]
    lines += ["## Left alone", ""]
    lines += [f"- {what}: {why}" for what, why in LEFT_ALONE.items()]
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
