"""Results on disk: one Parquet file a finished task, so that a run that was broken off goes on; one a figure in the end."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy

import dpmoments as dpm

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "reproduction"
METADATA = b"circumstances"
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("unit", "panel", "method")),
        ("x", pa.float64()),
        ("trial", pa.int64()),
        ("seed", pa.int64()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("seconds", pa.float64()),
    ]
)
ORDER = [(name, "ascending") for name in ("panel", "method", "metric", "x", "trial")]


def cpu() -> str:
    """The processor's own name for itself, where the system tells."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def commit() -> str:
    """The commit of the sources, with a + where files differ from it; empty outside a checkout."""
    try:
        asked = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return asked.stdout.strip()


@cache
def circumstances() -> Mapping[str, str]:
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "cpu": cpu(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "dpmoments": dpm.__version__,
        "commit": commit(),
    }


class Store:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def parts(self, figure: str) -> list[Path]:
        return sorted((self.folder / "parts" / figure).glob("*.parquet"))

    def add(self, figure: str, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the results of a task; the file is there whole or not at all."""
        folder = self.folder / "parts" / figure
        folder.mkdir(parents=True, exist_ok=True)
        known = dict(circumstances()) | {"date": datetime.now(UTC).isoformat(timespec="seconds")}
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)
        table = table.replace_schema_metadata({METADATA: json.dumps(known).encode()})
        partial = folder / f"{task}.{os.getpid()}.partial"
        pq.write_table(table, partial)
        partial.replace(folder / f"{task}.parquet")

    def part(self, path: Path) -> pa.Table:
        table = pq.read_table(path)
        known = json.loads(table.schema.metadata[METADATA])
        for name, value in known.items():
            table = table.append_column(name, pa.array([value] * len(table)).dictionary_encode())
        return table.replace_schema_metadata(None)

    def done(self, figure: str) -> set[str]:
        return {key for path in self.parts(figure) for key in pq.read_table(path, columns=["unit"])["unit"].to_pylist()}

    def figure_file(self, figure: str) -> Path:
        return self.folder / f"{figure}.parquet"

    def collect(self, figure: str, wanted: Collection[str]) -> Path | None:
        """Put the results of these units into one file; None where there are none."""
        asked = pa.array(sorted(wanted), pa.string())
        found, seen = [], set[str]()
        for path in self.parts(figure):
            table = self.part(path)
            keys = set(table["unit"].to_pylist()) - seen
            table = table.filter(pa.compute.is_in(table["unit"], value_set=asked))
            table = table.filter(pa.compute.is_in(table["unit"], value_set=pa.array(sorted(keys), pa.string())))
            seen |= keys
            if len(table):
                found.append(table)
        if not found:
            return None
        whole = pa.concat_tables(found).unify_dictionaries().sort_by(ORDER)
        whole = whole.add_column(0, "figure", pa.array([figure] * len(whole)).dictionary_encode())
        path = self.figure_file(figure)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        pq.write_table(whole, partial)
        partial.replace(path)
        return path
