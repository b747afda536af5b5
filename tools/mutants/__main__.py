"""Judge a fresh random sample of mutants of each package and write the report.

``python -m tools.mutants --fresh 80 --seed 1 noise repair`` judges 80 mutants of each package that were never judged, so that
tests written for the survivors of an earlier sample do not flatter the score. An interrupted run goes on where it was. Without
``--fresh`` only the report is written: survivors that ``equivalent.toml`` names count as no faults from then on.
``--again noise`` judges the survivors of the last sample once more, and prints which are left; no figure changes.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator

from tools.mutants.enumeration import Mutant, mutants_of
from tools.mutants.forked import load_everything_else
from tools.mutants.judging import SURVIVED, Judge, Verdict
from tools.mutants.report import last_samples, write
from tools.mutants.results import Kept, Results, commit_now
from tools.mutants.targets import modules, package_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="prefixes, such as privacy or privacy/filter")
    parser.add_argument("--fresh", type=int, default=0, help="mutants of each package, none of them judged before")
    parser.add_argument("--seed", type=int, default=0, help="of --fresh")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for a mutant that survives")
    parser.add_argument("--again", action="store_true", help="judge the survivors of the last sample again")
    options = parser.parse_args()
    results = Results()
    if options.again:
        for mutant, verdict in judged(survivors(options.modules, results), options.seconds):
            if verdict.outcome == SURVIVED:
                show(mutant)
        return
    if options.fresh:
        commit = commit_now()
        chosen = fresh(options.modules, options.fresh, (commit, options.seed), results)
        for mutant, verdict in judged(chosen, options.seconds):
            results.add(mutant.name, Kept(mutant.module, verdict, commit, options.seed))
            if verdict.outcome == SURVIVED:
                show(mutant)
    write(results)


def fresh(asked: list[str], per_package: int, sample: tuple[str, int], results: Results) -> dict[str, list[Mutant]]:
    """Random mutants without a verdict by module, as many of each module as its share of the package.

    Of a sample that was interrupted, those that are left.
    """
    unjudged: dict[str, list[tuple[str, Mutant]]] = {}
    for module in modules(asked):
        for mutant in mutants_of(module):
            kept = results.kept.get(mutant.name)
            if kept is None or kept.sample == sample:
                rank = hashlib.sha256(f"{sample[1]} {mutant.name}".encode()).hexdigest()
                unjudged.setdefault(package_of(module), []).append((rank, mutant))
    chosen: dict[str, list[Mutant]] = {}
    for found in unjudged.values():
        # Every k-th of a list in the order of modules: each module gives its share.
        found.sort(key=lambda pair: (pair[1].module, pair[0]))
        step = max(len(found) / per_package, 1.0)
        start = step * int(found[0][0], 16) / 16**64
        for place in range(min(per_package, len(found))):
            mutant = found[int(start + place * step)][1]
            if mutant.name not in results.kept:
                chosen.setdefault(mutant.module, []).append(mutant)
    return chosen


def survivors(asked: list[str], results: Results) -> dict[str, list[Mutant]]:
    """Survivors of the last samples whose code is as it was, by module."""
    names = {name for kept in last_samples(results).values() for name in kept}
    left = {name for name in names if results.kept[name].verdict.outcome == SURVIVED}
    found = {module: [mutant for mutant in mutants_of(module) if mutant.name in left] for module in modules(asked)}
    return {module: mutants for module, mutants in found.items() if mutants}


def judged(chosen: dict[str, list[Mutant]], seconds: float) -> Iterator[tuple[Mutant, Verdict]]:
    load_everything_else()
    every = modules([])
    for module, mutants in chosen.items():
        yield from Judge(module, seconds, every).judge(mutants)


def show(mutant: Mutant) -> None:
    was, becomes = mutant.change()
    print(f"{mutant.module}:{mutant.line} {mutant.definition.name}\n- {was[:300]}\n+ {becomes[:300]}", flush=True)


if __name__ == "__main__":
    main()
