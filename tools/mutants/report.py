"""``tools/mutants/mutation-score.md``: scores by module and package, survivors, and what is left alone."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants.enumeration import LEFT_ALONE, ROOT, Mutant, mutants_of
from tools.mutants.judging import KILLED, NO_MUTANT, SURVIVED
from tools.mutants.results import Results
from tools.mutants.targets import PACKAGES, modules, package_of

__all__ = ["EQUIVALENT", "Equivalent", "is_reviewed", "reviewed", "write"]

REPORT = ROOT / "tools" / "mutants" / "mutation-score.md"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")

HEAD = """\
# Mutation score

Written by `make mutants`. A mutant is the library with one small fault planted: a sign turned, a constant one larger, a check
left out, a rounding to the safe side forgotten. It is killed when a test fails. What survives is a fault that nothing would find.

The faults are those of [cosmic-ray](https://github.com/sixty-north/cosmic-ray), thinned out, and four of our own
(`tools/mutants/operators.py`). Each is judged by the tests that run its line, among the files that `tools/mutants/targets.py`
names for its module: those that found others before, the quickest, then one of each test function in turn, until {seconds}
seconds have passed. A mutant that only a test outside that limit would find counts as a survivor: those tried are found no less
often than it says. A test that runs eight times as long as it should, or takes 4 GB more, has found its mutant.

Where not all mutants of a module were tried, those tried are a random sample (the lowest hashes), the score is an estimate,
weighted by the sizes of modules, and the interval one of 95 %. Once its survivors have been given tests a sample is no fair
one any more: the mutants that were not tried do worse, and only a larger `--sample` tells by how much (of about 90 of
`privacy/`, drawn when the first sample had its tests, 91 % were killed; before those tests 88 %. Of about 95 of `means/`,
drawn after three rounds of tests, 99 %; of about 50 of `rows/` 92 %; of 21 of `mechanisms/coinpress` 95 %). The score leaves
out mutants that are shown to be no faults: `tools/mutants/equivalent.toml` lists them, each with its reason, and an entry whose
code is no more is an error.
"""


@dataclass(frozen=True)
class Equivalent:
    """A change of the code that is no fault, and why."""

    module: str
    definition: str
    was: str
    becomes: str
    why: str


def reviewed() -> list[Equivalent]:
    """The reviewed list: entries of one reason may share it."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"] if EQUIVALENT.exists() else []
    return [
        Equivalent(entry["module"], entry["definition"], entry["was"], becomes, entry["why"])
        for entry in entries
        for becomes in entry["becomes"]
    ]


def is_reviewed(mutant: Mutant) -> bool:
    """Whether the list says that a mutant is no fault."""
    key = (mutant.module, mutant.definition.name, *mutant.change())
    return any((entry.module, entry.definition, entry.was, entry.becomes) == key for entry in reviewed())


@dataclass
class Tally:
    """What became of the mutants of a module."""

    module: str
    total: int = 0
    killed: int = 0
    impossible: int = 0
    equivalent: list[tuple[Mutant, Equivalent]] = field(default_factory=list)
    survivors: list[tuple[Mutant, tuple[str, str], str]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.killed + len(self.equivalent) + len(self.survivors)

    @property
    def faults(self) -> int:
        return self.killed + len(self.survivors)

    @property
    def size(self) -> float:
        """How many faults the whole module has, so far as the sample tells."""
        seen = self.tried + self.impossible
        return self.total * self.faults / seen if seen else 0.0


def score(tallies: Iterable[Tally]) -> tuple[float, float, float] | None:
    """The share of faults that are found, and an interval of 95 % around it where some were not tried."""
    found = [tally for tally in tallies if tally.faults]
    whole = sum(tally.size for tally in found)
    if not whole:
        return None
    share = sum(tally.size / whole * tally.killed / tally.faults for tally in found)
    variance = 0.0
    for tally in found:
        # The rate of two more, one of them found: an interval of no width where all were found would say too much.
        rate = (tally.killed + 1) / (tally.faults + 2)
        left_out = max(1.0 - (tally.tried + tally.impossible) / tally.total, 0.0)
        variance += (tally.size / whole) ** 2 * rate * (1.0 - rate) / tally.faults * left_out
    reach = 1.96 * math.sqrt(variance)
    return share, max(share - reach, 0.0), min(share + reach, 1.0)


def tallied(results: Results) -> tuple[list[Tally], list[Equivalent]]:
    """All modules, and entries of the reviewed list that no mutant matches."""
    listed = reviewed()
    matched: set[Equivalent] = set()
    tallies, names = [], set()
    for module in modules([]):
        tally = Tally(module)
        known = {(entry.definition, entry.was, entry.becomes): entry for entry in listed if entry.module == module}
        for mutant in mutants_of(module):
            tally.total += 1
            names.add(mutant.name)
            kept = results.kept.get(mutant.name)
            outcome = kept.verdict.outcome if kept else ""
            entry = None
            if known and (outcome == SURVIVED or any(mutant.definition.name == name for name, _, _ in known)):
                entry = known.get((mutant.definition.name, *mutant.change()))
                matched |= {entry} if entry else set()
            if kept is None:
                continue
            if outcome == NO_MUTANT:
                tally.impossible += 1
            elif outcome == KILLED:
                tally.killed += 1
            elif entry is not None:
                tally.equivalent.append((mutant, entry))
            else:
                tally.survivors.append((mutant, mutant.change(), kept.verdict.by))
        if tally.total:
            tallies.append(tally)
    results.keep_only(names)
    return tallies, [entry for entry in listed if entry not in matched]


def write(results: Results, seconds: float) -> None:
    """Write the report; raise SystemExit where the reviewed list has entries of code that is no more."""
    tallies, stale = tallied(results)
    lines = [HEAD.format(seconds=f"{seconds:g}")]
    lines += [
        "| package | mutants | tried | killed | no fault | survive | score | 95 % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    by_package = {package: [t for t in tallies if package_of(t.module) == package] for package in PACKAGES}
    lines += [_row(f"`{package}/`", found) for package, found in by_package.items()]
    lines += ["", "## By module", ""]
    lines += [
        "| module | mutants | tried | killed | no fault | survive | score | 95 % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_row(f"`{tally.module}`", [tally]) for tally in tallies]
    lines += ["", "## Survivors", ""]
    for tally in tallies:
        if tally.survivors:
            lines += [f"### `{tally.module}`", "", "```diff"]
            for mutant, (was, becomes), _ in sorted(tally.survivors, key=lambda found: found[0].line):
                lines += [f"@@ {mutant.definition.name}", f"- {was}", f"+ {becomes}"]
            lines += ["```", ""]
    lines += ["## No faults", "", "Survivors that change nothing that matters, with the reason.", ""]
    for tally in tallies:
        if tally.equivalent:
            lines += [f"### `{tally.module}`", ""]
            by_reason: dict[str, list[Equivalent]] = {}
            for _, entry in sorted(tally.equivalent, key=lambda found: found[0].line):
                by_reason.setdefault(entry.why, []).append(entry)
            for why, entries in by_reason.items():
                lines += [f"{why}:", "", "```diff"]
                for entry in dict.fromkeys(entries):
                    lines += [f"@@ {entry.definition}", f"- {entry.was}", f"+ {entry.becomes}"]
                lines += ["```", ""]
    lines += ["## Left alone", ""]
    lines += [f"- {what}: {why}" for what, why in LEFT_ALONE.items()]
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if stale:
        words = "\n".join(f"  {entry.module}, {entry.definition}: {entry.was} -> {entry.becomes}" for entry in stale)
        raise SystemExit(
            f"{EQUIVALENT.name} has entries that no mutant matches: review the code that took their place\n{words}"
        )


def _row(name: str, tallies: list[Tally]) -> str:
    found = score(tallies)
    total, tried = sum(t.total - t.impossible for t in tallies), sum(t.tried for t in tallies)
    numbers = (
        total,
        tried,
        sum(t.killed for t in tallies),
        sum(len(t.equivalent) for t in tallies),
        sum(len(t.survivors) for t in tallies),
    )
    words = (
        ("", "") if found is None else (f"{found[0]:.1%}", "" if tried == total else f"{found[1]:.1%} – {found[2]:.1%}")
    )
    return f"| {name} | {' | '.join(map(str, numbers))} | {' | '.join(words)} |"
