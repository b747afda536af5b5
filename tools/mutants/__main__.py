"""Judge mutants and write the report: ``python -m mutants``, or ``python -m tools.mutants privacy/filter noise``.

An interrupted run goes on where it was. ``--sample 0.2`` judges a fifth of the mutants of each module, the same fifth each time.
``--fresh 80 --seed 1`` judges 80 mutants of each package that were never judged, and prints what share of them is killed: tests
that were written for the survivors of an earlier sample do not flatter it.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from collections import Counter

from tools.mutants.enumeration import Mutant, mutants_of
from tools.mutants.forked import load_everything_else
from tools.mutants.judging import KILLED, SURVIVED, Judge, tests_key
from tools.mutants.report import is_reviewed, write
from tools.mutants.results import Kept, Results
from tools.mutants.targets import modules, package_of

AT_LEAST = 8
"""Mutants of a module in a sample, where it has as many."""


def sampled(module: str, share: float) -> list[Mutant]:
    """A random sample that grows with the share: the mutants whose hashes are lowest."""
    ordered = sorted(mutants_of(module), key=lambda mutant: mutant.name)
    return ordered[: max(AT_LEAST, round(share * len(ordered)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="prefixes, such as privacy or privacy/filter")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the mutants of each module")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for a mutant that survives")
    parser.add_argument("--again", action="store_true", help="judge survivors again, whether or not tests changed")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--fresh", type=int, default=0, help="mutants of each package, none of them judged before")
    parser.add_argument("--seed", type=int, default=0, help="of --fresh")
    options = parser.parse_args()
    results = Results()
    if options.fresh:
        judge_fresh(options, results)
        return
    if not options.report_only:
        judge_all(options, results)
    write(results, options.seconds)


def fresh(asked: list[str], per_package: int, seed: int, results: Results) -> dict[str, list[Mutant]]:
    """Random mutants without a verdict by module, as many of each module as its share of the package."""
    unjudged: dict[str, list[tuple[str, Mutant]]] = {}
    for module in modules(asked):
        for mutant in mutants_of(module):
            if mutant.name not in results.kept:
                rank = hashlib.sha256(f"{seed} {mutant.name}".encode()).hexdigest()
                unjudged.setdefault(package_of(module), []).append((rank, mutant))
    chosen: dict[str, list[Mutant]] = {}
    for found in unjudged.values():
        # Every k-th of a list in the order of modules: each module gives its share.
        found.sort(key=lambda pair: (pair[1].module, pair[0]))
        step = max(len(found) / per_package, 1.0)
        start = step * int(found[0][0], 16) / 16**64
        for place in range(min(per_package, len(found))):
            mutant = found[int(start + place * step)][1]
            chosen.setdefault(mutant.module, []).append(mutant)
    return chosen


def judge_fresh(options: argparse.Namespace, results: Results) -> None:
    load_everything_else()
    every, counts = modules([]), {}
    for module, mutants in fresh(options.modules, options.fresh, options.seed, results).items():
        judge = Judge(module, options.seconds, every)
        counted = counts.setdefault(package_of(module), Counter[str]())
        for mutant, verdict in judge.judge(mutants):
            results.add(mutant.name, Kept(module, verdict, judge.tests_key))
            outcome = "no fault" if verdict.outcome == SURVIVED and is_reviewed(mutant) else verdict.outcome
            counted[outcome] += 1
            if outcome == SURVIVED:
                was, becomes = mutant.change()
                print(f"{module}:{mutant.line} {mutant.definition.name}\n- {was[:300]}\n+ {becomes[:300]}", flush=True)
    for package, counted in counts.items():
        faults = counted[KILLED] + counted[SURVIVED]
        share = counted[KILLED] / faults
        error = math.sqrt(share * (1.0 - share) / faults)
        print(f"{package}: {dict(counted)}, killed {share:.3f} with a standard error of {error:.3f}", flush=True)


def judge_all(options: argparse.Namespace, results: Results) -> None:
    load_everything_else()
    every = modules([])
    for module in modules(options.modules):
        key = "again" if options.again else tests_key(module)
        chosen = {mutant.name for mutant in sampled(module, options.sample)}
        known = {mutant.name: mutant for mutant in mutants_of(module)}
        left = [
            mutant
            for name, mutant in known.items()
            # A sample that was larger before keeps its survivors, and they are judged again with the others.
            if (name in chosen and name not in results.kept)
            or (name in results.kept and not results.kept[name].holds(key) and not is_reviewed(mutant))
        ]
        if not left:
            continue
        started, counts = time.monotonic(), Counter[str]()
        judge = Judge(module, options.seconds, every)
        for mutant, verdict in judge.judge(left):
            results.add(mutant.name, Kept(module, verdict, judge.tests_key))
            counts[verdict.outcome] += 1
        words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        print(f"{module}: {words} of {len(left)} in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
