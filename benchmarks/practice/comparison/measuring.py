"""The releases of one table: what a process of the validation does."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import dpmoments as dpm
from benchmarks.practice.comparison.contenders import Cell, Contender
from benchmarks.practice.comparison.errors import ERRORS, Truth
from benchmarks.practice.comparison.records import Record, Records, source_fingerprint
from benchmarks.practice.tables import chosen, made

__all__ = ["measure"]


def measure(
    name: str, contenders: Sequence[str], wanted: Sequence[Cell], seeds: int, folder: Path, trusted: frozenset[str]
) -> bool:
    """Fill in the records of one table; False where this machine does not have it."""
    records = Records(name, folder, trusted)
    missing = [(cell, one) for cell in wanted for one in contenders if not records.has(cell, one, seeds)]
    if not missing:
        return True
    (entry,) = chosen(names=[name])
    table = made(entry)
    if table is None:
        return False
    data, schema = table
    truth = Truth.of(data, schema, entry.target)
    for cell, contender in missing:
        options = Contender(contender).options(schema, truth.n_rows, cell)
        if options is None:
            continue
        begun, errors, warned, mechanisms = time.perf_counter(), list[dict[str, float]](), 0, list[str]()
        for seed in range(seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpm.ReleaseWarning)
                release = dpm.release(data, schema, **options, threads=1, insecure_seed=seed)
            errors.append(truth.errors(release))
            warned += bool(release.warnings)
            mechanisms.append(release.mechanism)
        records.add(
            Record(
                table=name,
                epsilon=cell.epsilon,
                delta=cell.delta,
                neighbors=cell.neighbors,
                contender=contender,
                mechanism=mechanisms[0],
                n_rows=truth.n_rows,
                n_features=len(truth.mean),
                warned=warned / seeds,
                seconds=(time.perf_counter() - begun) / seeds,
                source=source_fingerprint(),
                **{kind: [one[kind] for one in errors] for kind in ERRORS},
            )
        )
    return True
