"""Digests of what every mechanism gives at fixed seeds: recorded before a refactoring, compared after it.

    python tests/recorded_bits.py record before.json
    python tests/recorded_bits.py compare before.json

Not a test: bits of floating-point samplers differ between processors, so a record holds on the machine that made it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import dpmoments as dpm
from contracts.cases import CASES, run_plan
from dpmoments.privacy.sampling import insecure_generator
from support.table_forms import SCHEMA, TABLE

SEEDS = (0, 1)
MEANS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 100.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 100.0, "scale": 1.0},
    "naive": {"radius": 100.0, "scale": 1.0},
    "symq": {"radius": 100.0},
    "variance-aware": {},
}
BUDGETS: tuple[dict[str, Any], ...] = ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5})


def digest(*values: Any) -> str:
    """SHA-256 of arrays, numbers and nested plain values, bit by bit."""
    total = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value.keys() - {"warnings"}, key=str):  # messages are no numbers
                add(str(key))
                add(value[key])
        elif isinstance(value, list | tuple):
            for entry in value:
                add(entry)
        elif value is None or isinstance(value, str):
            total.update(repr(value).encode())
        else:
            total.update(np.asarray(value, dtype=np.float64).tobytes())

    add(values)
    return total.hexdigest()


def of_mechanisms() -> Iterator[tuple[str, str]]:
    """Every row of the contract tests, every budget, two seeds."""
    for case in CASES:
        for size in ("usual", "tiny", "unlimited"):
            plan = case.plan(size)
            for seed in SEEDS:
                noisy = run_plan(plan, case.rows(), insecure_generator(seed))
                yield (
                    f"{case.id} {size} {seed}",
                    digest(noisy.count, noisy.sum, noisy.gram, dict(noisy.diagnostics), dict(plan.details)),
                )


def of_means() -> Iterator[tuple[str, str]]:
    """Every estimator of means that takes the budget and relation, on unbounded rows."""
    table = np.random.default_rng(5).normal([3.0, -40.0, 0.0], [1.0, 0.2, 2.0], (600, 3))
    for name, options in MEANS.items():
        for budget in BUDGETS:
            for neighbors in ("replace_one", "add_remove"):
                try:
                    released = dpm.release_mean(
                        table,
                        dpm.Schema.unbounded(3),
                        mechanism=name,
                        neighbors=neighbors,
                        insecure_seed=1,
                        **budget,
                        **options,
                    )
                except ValueError:
                    continue
                yield f"{name} {budget} {neighbors}", digest(released.mean, released.n_rows, dict(released.diagnostics))


def of_releases(folder: Path) -> Iterator[tuple[str, str]]:
    """The main job on one table in several forms, dropped and missing cells included."""
    pq.write_table(TABLE, folder / "people.parquet", row_group_size=37)
    pa_csv.write_csv(TABLE, folder / "people.csv")
    forms = {
        "arrow": TABLE,
        "pandas": TABLE.to_pandas(),
        "parquet": folder / "people.parquet",
        "csv": folder / "people.csv",
    }
    for name, data in forms.items():
        for budget in BUDGETS:
            for neighbors in ("replace_one", "add_remove"):
                for mean in (True, False):
                    released = dpm.release(data, SCHEMA, neighbors=neighbors, mean=mean, insecure_seed=7, **budget)
                    moments = released.unit_ball_gram if released.noisy_count is None else released.second_moment
                    yield (
                        f"release {name} {budget} {neighbors} mean={mean}",
                        digest(released.noisy_count, released.noisy_sum, released.noisy_gram, moments),
                    )


def record() -> dict[str, str]:
    """All digests by name."""
    with tempfile.TemporaryDirectory() as folder:
        return dict([*of_mechanisms(), *of_means(), *of_releases(Path(folder))])


def main() -> int:
    """Record or compare."""
    task, path = sys.argv[1], Path(sys.argv[2])
    found = record()
    if task == "record":
        path.write_text(json.dumps(found, indent=1))
        print(f"recorded {len(found)} digests")
        return 0
    before = json.loads(path.read_text())
    changed = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    print(f"{len(before)} digests, {len(changed)} changed")
    print("\n".join(changed))
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
