"""Errors seed by seed, one row a table, budget, relation and contender, kept in one Parquet file a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.practice.comparison.contenders import Cell
from benchmarks.practice.comparison.errors import ERRORS

__all__ = ["Record", "Records", "source_fingerprint"]

FOLDER = Path(__file__).parents[1] / "results"
"""Not under version control."""


@dataclass(frozen=True)
class Record:
    """What one contender did in one cell of one table.

    Attributes
    ----------
    covariance, correlations, means, regression : tuple of float
        Errors of seeds 0, 1, …
    mechanism : str
        What the first release says that it was made by.
    warned : float
        Share of the releases that gave a warning.
    seconds : float
        Of a release, on average.
    source : str
        Fingerprint of the library that made them.
    """

    table: str
    epsilon: float
    delta: float
    neighbors: str
    contender: str
    mechanism: str
    n_rows: int
    n_features: int
    warned: float
    seconds: float
    source: str
    covariance: Sequence[float] = field(repr=False)
    correlations: Sequence[float] = field(repr=False)
    means: Sequence[float] = field(repr=False)
    regression: Sequence[float] = field(repr=False)

    @property
    def cell(self) -> Cell:
        """Budget and relation."""
        return Cell(self.epsilon, self.delta, self.neighbors)

    @property
    def seeds(self) -> int:
        """How many releases."""
        return len(self.covariance)

    def errors(self, kind: str, seeds: int | None = None) -> npt.NDArray[np.float64]:
        """One number a seed."""
        assert kind in ERRORS
        return np.asarray(getattr(self, kind)[:seeds], dtype=np.float64)


@dataclass
class Records:
    """The records of one table, written after each so that a run that was broken off goes on where it was.

    Records of another version of the library's source are dropped, but for contenders that are `trusted`: how the default was
    does not change with how it is.
    """

    table: str
    folder: Path = FOLDER
    trusted: frozenset[str] = frozenset()
    found: dict[tuple[Cell, str], Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            for row in pq.read_table(self.path).to_pylist():
                record = Record(**row)
                if record.source == source_fingerprint() or record.contender in self.trusted:
                    self.found[record.cell, record.contender] = record

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.table}.parquet"

    def has(self, cell: Cell, contender: str, seeds: int) -> bool:
        """Whether that many seeds were run."""
        record = self.found.get((cell, contender))
        return record is not None and record.seeds >= seeds

    def add(self, record: Record) -> None:
        """Keep it, and write all of them."""
        self.found[record.cell, record.contender] = record
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        pq.write_table(pa.Table.from_pylist([asdict(kept) for kept in self.found.values()]), partial)
        partial.replace(self.path)

    def of(self, contenders: Iterable[str]) -> list[Record]:
        """Those of these contenders."""
        wanted = set(contenders)
        return [record for record in self.found.values() if record.contender in wanted]


@cache
def source_fingerprint() -> str:
    """Twelve hexadecimal digits that change with any line of the library's source, of the tables or of their errors."""
    digest = hashlib.sha256()
    practice = Path(__file__).parents[1]
    parts = (Path(dpm.__file__).parent, practice / "tables", practice / "comparison" / "errors.py")
    for part in parts:
        for path in [part] if part.is_file() else sorted(part.rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
