"""Nothing of the table is in a file that a pass on Spark makes, on a session that does not encrypt its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_session import of_spark

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
pytestmark = of_spark
TESTS = Path(__file__).parent

START = """
import json, os, sys
from pathlib import Path

sys.path[:0] = [{tests!r}]
root, options = Path(sys.argv[1]), json.loads(sys.argv[2])
local, temporary, here = (root / name for name in ("local", "temporary", "here"))
for folder in (local, temporary, here):
    folder.mkdir(parents=True, exist_ok=True)
os.environ["TMPDIR"] = str(temporary)
os.chdir(here)
os.umask(0o022)

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import dpmoments as dpm
from dpmoments.rows.rows import Rows
from spark_session import OPTIONS, start
from watched_files import leaks, watched

# No compression: what is written shows. The code of a task of 5 kB goes to a broadcast file, results of 500 bytes to the blocks.
settings = {{
    "spark.local.dir": str(local), "spark.sql.warehouse.dir": str(root / "warehouse"),
    "spark.driver.extraJavaOptions": OPTIONS["spark.driver.extraJavaOptions"] + f" -Djava.io.tmpdir={{temporary}}",
    "spark.io.encryption.enabled": "false", "spark.shuffle.compress": "false", "spark.broadcast.compress": "false",
    "spark.rdd.compress": "false", "spark.shuffle.spill.compress": "false",
    "spark.sql.files.openCostInBytes": str(1 << 27),
}}
spark = start("local[2,4]", **{{name.replace(".", "_"): value for name, value in (settings | options).items()}})
"""

WATCH = (
    START
    + """
n_files, n_people, planted = int(sys.argv[3]), 2_000, sys.argv[4] == "planted"
rng = np.random.default_rng(7)
cells = rng.uniform(1_000.0, 99_000.0, 2 * n_people)
ids = [f"person-{{7919 * number % 99991:05}}-of-the-table" for number in np.sort(rng.integers(0, n_people, 2 * n_people))]
table = pa.table({{"id": ids, "income": cells}})
(root / "table").mkdir()
for number, start_row in enumerate(np.linspace(0, len(table), n_files + 1).astype(int)[:-1]):
    stop = int(np.linspace(0, len(table), n_files + 1)[number + 1])
    pq.write_table(table.slice(start_row, stop - start_row), root / "table" / f"{{number}}.parquet")
schema = dpm.Schema(dpm.Numeric("income", 0, 100_000))
unit = dpm.PrivacyUnit("id", max_rows=1)
files = spark.read.parquet(str(root / "table"))
forms = {{"files": dpm.EngineFiles(root / "table", "spark"), "frame of files": files, "frame": files.filter("income > -1")}}
assert forms["frame"].rdd.getNumPartitions() == n_files

if planted:  # workers merge results, as they are

    def outcome(self, job, progress):
        pieces = self.session.sparkContext.parallelize(list(enumerate(self.pieces)), len(self.pieces))
        return pieces.map(lambda numbered: job.outcome(numbered[1], numbered[0])).treeReduce(job.joined, 2), len(self.pieces)

    from dpmoments.rows.sources.spark import SparkFilesSource
    SparkFilesSource.outcome = outcome

moments = Rows.of(table, schema).moments()
by_file = [Rows.of(path, schema).moments() for path in sorted((root / "table").iterdir())]
sums = {{int(limb) for one in (moments, *by_file) for limb in np.ravel(one.limbs) if abs(int(limb)) > 1 << 32}}
secrets = [*sorted(set(ids)), *cells.tolist(), *sorted(sums)]
result = {{}}
for name in sys.argv[5].split(","):
    data = forms[name]
    for units in ([None, unit] if sys.argv[6] == "units" else [None]):
        def pass_over():
            rows = Rows.of(data, schema, privacy_unit=units)
            return (rows if units is None else rows.bounded((11, 12))).moments()
        pass_over()  # what Spark makes once
        with watched(local, temporary, here) as seen:
            found = pass_over()
        assert units is not None or found == moments
        key = name + (" by units" if units else "")
        result[key] = {{"files": [[str(file.path), oct(file.mode), len(file.contents)] for file in seen],
                       "leaks": leaks(seen, secrets)[:20]}}
spark.stop()
print("RESULT" + json.dumps(result))
"""
)


def run(program: str, *arguments: str, tmp_path: Path, **options: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    command = [sys.executable, "-W", "ignore", "-c", program.format(tests=str(TESTS)), str(tmp_path), json.dumps(named)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=600, env=environment
    )
    assert "RESULT" in ran.stdout, ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.split("RESULT")[1])
    return found
