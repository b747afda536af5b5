"""Nothing of the table is in a file that a pass on Spark makes, on a session that does not encrypt its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.spark_session import of_spark

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
pytestmark = of_spark
TESTS = Path(__file__).parents[1]

START = """
import json, os, re, sys
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
from support.spark_session import OPTIONS, start
from support.watched_files import leaks, watched

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

    from dpmoments.rows.sources.spark import _SparkFilesSource
    _SparkFilesSource.outcome = outcome

moments = Rows.of(table, schema).moments()
by_file = [Rows.of(path, schema).moments() for path in sorted((root / "table").iterdir())]
sums = {{int(limb) for one in (moments, *by_file) for limb in np.ravel(one.limbs) if abs(int(limb)) > 1 << 32}}
secrets = [*sorted(set(ids)), *cells.tolist(), *sorted(sums)]
result = {{}}
for name in sys.argv[5].split(","):
    data = forms[name]
    for units in [unit if sys.argv[6] == "units" else None]:
        def pass_over():
            rows = Rows.of(data, schema, privacy_unit=units)
            return (rows if units is None else rows.bounded((11, 12))).moments()
        Rows.of(data, schema).moments()  # what Spark makes once
        with watched(local, temporary, here) as seen:
            found = pass_over()
        assert units is not None or found == moments
        key = name + (" by units" if units else "")
        result[key] = {{"files": [[str(file.path), oct(file.mode), len(file.contents)] for file in seen],
                       "leaks": sorted({{told[:12]: told for told in leaks(seen, secrets)}}.values())}}
spark.stop()
print("RESULT" + json.dumps(result))
"""
)


CHECKS = (
    START
    + """
from pyspark import StorageLevel
from pyspark.sql import functions as F

table = pa.table({{"x": np.arange(200.0), "y": np.arange(200.0)}})
schema = dpm.Schema(dpm.Numeric("x", 0, 100))
(root / "t").mkdir()
for number in range(2):
    pq.write_table(table.slice(100 * number, 100), root / "t" / f"{{number}}.parquet")
files, memory = spark.read.parquet(str(root / "t")), spark.createDataFrame(table)
scan, rows = files.filter("x >= 0"), [(float(x), float(x)) for x in range(200)]
spark.createDataFrame(rows, ["x", "y"]).createOrReplaceTempView("rows")
forms = {{
    "files": files, "a filter": scan, "a projection": files.selectExpr("x + 0 AS x"), "memory": memory,
    "a list": spark.createDataFrame(rows, ["x", "y"]), "a filtered list": spark.table("rows").filter("y >= 0"),
    "numbers": spark.range(200).selectExpr("cast(id AS double) AS x"), "a union": scan.union(files).filter("y >= 0"),
    "batches": scan.mapInArrow(lambda batches: batches, "x double, y double"), "fewer partitions": scan.coalesce(1),
    "a sample": scan.sample(0.5, seed=1), "exploded": scan.select(F.explode(F.array("x", "y")).alias("x")),
    "cached in memory": scan.filter("x > -5").persist(StorageLevel.MEMORY_ONLY),
    "csv": spark.read.schema("x double").csv(str(root / "t")),
    "many partitions": scan.repartition(3), "by a column": memory.repartition("y"),
    "sorted": scan.sort("x"), "sorted within": scan.sortWithinPartitions("x"), "a limit": scan.limit(50),
    "joined": scan.join(memory.select("y"), "y"), "broadcast": scan.join(F.broadcast(memory.select("y")), "y"),
    "grouped": scan.groupBy("x").count(), "once each": scan.distinct(),
    "a window": scan.selectExpr("sum(x) OVER (PARTITION BY y) AS x"),
    "cached": scan.filter("x > -1").cache(), "cached after a shuffle": scan.repartition(4).persist(StorageLevel.MEMORY_ONLY),
    "above a cache": scan.filter("x > -2").cache().filter("y >= 0").selectExpr("x + 0 AS x"),
    "cached on a disk": scan.filter("x > -3").persist(StorageLevel.DISK_ONLY),
    "a list cached on a disk": spark.sparkContext.parallelize(rows).persist(StorageLevel.DISK_ONLY).toDF(["x", "y"]),
    "in a filter": spark.sql("SELECT * FROM rows WHERE x > (SELECT avg(y) FROM rows)"),
    "a function": scan.select(F.udf(lambda x: x, "double")("x").alias("x")),
}}
result = {{}}
for name, form in forms.items():
    try:
        opened = Rows.of(form, schema)
        result[name] = "read" if options.get("spark.eventLog.enabled") else opened.moments().count
    except ValueError as error:
        result[name] = str(error)
if options:
    key = []
    from dpmoments.rows.sources import spark as ours
    seal_class = ours.Seal
    ours.Seal = lambda *of: key.append(seal_class(*of)) or key[-1]
    unit = dpm.PrivacyUnit("id", max_rows=1)
    odd = pa.table({{"x": np.arange(177_761.0), "id": [f"person-{{n % 1500:05}}" for n in range(177_761)]}})
    (root / "odd").mkdir()
    for number in range(3):
        pq.write_table(odd.slice(60_000 * number, 60_000), root / "odd" / f"{{number}}.parquet")
    assert Rows.of(dpm.EngineFiles(root / "odd", "spark"), schema, privacy_unit=unit).bounded((11, 12)).moments().count
    keys = [form for seal in key for form in (seal.key, seal.key.hex().encode())]
spark.stop()
if options:
    events = b"".join(path.read_bytes() for path in (root / "events").rglob("*") if path.is_file())
    assert b"SparkListenerJobStart" in events
    assert len(keys) >= 6
    result["in the event log"] = [repr(told) for told in [b"person-", *keys] if told in events]
    met = re.findall(rb".{{0,60}}\\b(?:177761|57761)\\b.{{0,20}}", events)
    result["counts"] = [told.decode(errors="replace") for told in met]
print("RESULT" + json.dumps(result))
"""
)
READ = {"files", "a filter", "a projection", "memory", "a list", "a filtered list", "numbers", "a union", "batches"}
READ |= {"fewer partitions", "a sample", "exploded", "cached in memory"}


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


FORMS = "files,frame,frame of files"


@pytest.mark.parametrize(
    ("n_files", "forms", "units"),
    [
        ("40", "files,frame", "rows"),
        pytest.param("40", FORMS, "rows", marks=pytest.mark.slow),
        pytest.param("40", FORMS, "units", marks=pytest.mark.slow),
        pytest.param("400", FORMS, "rows", marks=pytest.mark.slow),
        pytest.param("400", "files,frame", "units", marks=pytest.mark.slow),
    ],
)
def test_a_pass_makes_no_file(n_files: str, forms: str, units: str, tmp_path: Path) -> None:
    """Neither ids nor cells nor sums are written, since nothing is: no shuffle, no file of a job or of its pieces."""
    found = run(WATCH, n_files, "as it is", forms, units, tmp_path=tmp_path)
    assert {name.removesuffix(" by units") for name in found} == set(forms.split(","))
    for name, seen in found.items():
        assert seen == {"files": [], "leaks": []}, name


@pytest.mark.slow
@pytest.mark.parametrize("units", ["rows", "units"])
def test_what_is_larger_than_spark_sends_by_messages_is_sealed(units: str, tmp_path: Path) -> None:
    """Jobs are in files of PySpark, results in blocks: none shows a thing of the table."""
    small = {"spark_broadcast_UDFCompressionThreshold": "100", "spark_task_maxDirectResultSize": "100"}
    found = run(WATCH, "40", "as it is", "files,frame", units, tmp_path=tmp_path, **small)
    assert all(seen["files"] and not seen["leaks"] for seen in found.values())


@pytest.mark.parametrize("units", ["rows", pytest.param("units", marks=pytest.mark.slow)])
def test_the_watcher_finds_results_that_workers_merge(units: str, tmp_path: Path) -> None:
    """The planted fault: a tree of workers, each level of which is a shuffle in files that all may read."""
    (seen,) = run(WATCH, "40", "planted", "files", units, tmp_path=tmp_path).values()
    wanted = "person-" if units == "units" else "int64"
    assert any(wanted in told and "mode 644" in told for told in seen["leaks"]), seen


def test_a_frame_whose_plan_writes_rows_is_refused_unless_the_session_encrypts(tmp_path: Path) -> None:
    found = run(CHECKS, tmp_path=tmp_path)
    found.pop("csv")
    assert {name for name, told in found.items() if isinstance(told, int)} == READ
    for name, told in found.items():
        assert name in READ or "spark.io.encryption.enabled=true" in told, (name, told)


def test_an_event_log_holds_nothing_of_files_and_refuses_frames(tmp_path: Path) -> None:
    """It holds how many rows each step of a frame has; of files neither that nor the key of a pass."""
    (tmp_path / "events").mkdir()
    log = {"spark_eventLog_enabled": "true", "spark_eventLog_compress": "false"}
    found = run(CHECKS, tmp_path=tmp_path, spark_eventLog_dir=(tmp_path / "events").as_uri(), **log)
    assert found.pop("in the event log") == []
    assert found.pop("counts") == []
    assert {name for name, told in found.items() if told == "read"} == {"files"}
    assert all(name == "files" or "spark.eventLog.enabled=false" in told for name, told in found.items())
