"""The default release on the collected tables, against what it was: one command, resumable, seeded.

    python -m benchmarks.practice.validation [--half design|judge] [--seeds 20] [--processes 2] [--tables wine,airfoil]
        [--contenders auto/spectral,gaussian] [--against before] [--trusted before] [--quick]

Every table is released at ε of 0.3, 1, 3 and 10, pure and with δ = 1e-9, under both relations, at the same seeds by every
contender, each process on one thread. Errors go to a folder of Parquet files beside this script, which git ignores; what is there
from the same source is not run again. A run of a whole half at all budgets writes its part of docs/evidence/practice.md, and the
picture. ``--quick`` is ε = 1 at five seeds, and writes neither.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.practice.comparison.contenders import BEFORE, NOW, Cell, Contender
from benchmarks.practice.comparison.measuring import measure
from benchmarks.practice.comparison.page import report, write_page
from benchmarks.practice.comparison.records import FOLDER, Records
from benchmarks.practice.tables import chosen

EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTAS = (0.0, 1e-9)
NEIGHBORS = ("add_remove", "replace_one")
QUICK_EPSILONS, QUICK_SEEDS = (1.0,), 5


def cells(epsilons: Iterable[float] = EPSILONS) -> list[Cell]:
    """Budgets and relations."""
    return [Cell(*one) for one in itertools.product(epsilons, DELTAS, NEIGHBORS)]


def names_in(listed: str | None) -> list[str] | None:
    """A list with commas."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def main() -> None:
    """Measure, report, and write the page where all of a half was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("design", "judge"), help="both, if left out")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tables", help="names, with commas")
    parser.add_argument("--contenders", default="", help="more of them, as mechanism or mechanism/repair, with commas")
    parser.add_argument("--against", default=BEFORE, help="what gains are measured against")
    parser.add_argument("--trusted", default="", help="contenders whose records of another source are kept")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    seeds, epsilons = (QUICK_SEEDS, QUICK_EPSILONS) if options.quick else (options.seeds, EPSILONS)
    contenders = list(dict.fromkeys([options.against, NOW, *(names_in(options.contenders) or ())]))
    for contender in contenders:
        Contender(contender)
    trusted, wanted = frozenset(names_in(options.trusted) or ()), cells(epsilons)
    entries = chosen(options.half, names_in(options.tables))
    begun, present = time.perf_counter(), []
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # of the processes, which load NumPy anew
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        jobs = {
            pool.submit(measure, entry.name, contenders, wanted, seeds, options.folder, trusted): entry
            for entry in entries
        }
        for job in as_completed(jobs):
            if job.result():
                present.append(jobs[job])
            print(f"{time.perf_counter() - begun:6.0f} s  {jobs[job].name}", flush=True)
    found = {
        entry.name: [
            record
            for record in Records(entry.name, options.folder, trusted).of(contenders)
            if record.cell in wanted and record.seeds >= seeds
        ]
        for entry in entries
        if entry in present
    }
    for contender in contenders[1:]:
        print(f"\n== {options.against} / {contender}\n")
        print("\n".join(report(found, options.against, contender)))
    if options.tables is None and not options.quick and options.against == BEFORE:
        write_page(found, seeds, options.half)


if __name__ == "__main__":
    main()
