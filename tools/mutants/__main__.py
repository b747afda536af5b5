"""Judge mutants and write the report: ``python -m mutants``, or ``python -m tools.mutants privacy/filter noise``.

An interrupted run goes on where it was. ``--sample 0.2`` judges a fifth of the mutants of each module, the same fifth each time.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from tools.mutants.enumeration import Mutant, mutants_of
from tools.mutants.forked import load_everything_else
from tools.mutants.judging import Judge, tests_key
from tools.mutants.report import is_reviewed, write
from tools.mutants.results import Kept, Results
from tools.mutants.targets import modules

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
    options = parser.parse_args()
    results = Results()
    if not options.report_only:
        judge_all(options, results)
    write(results, options.seconds)


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
