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
pytestmark = [*of_spark, pytest.mark.slow]
TESTS = Path(__file__).parents[1]

PROGRAM = """
import json, os, re, sys
from pathlib import Path

sys.path[:0] = [{tests!r}]
root, steps = Path(sys.argv[1]), json.loads(sys.argv[2])
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
from dpmoments.rows.sources import spark as ours
from pyspark import StorageLevel
from pyspark.sql import functions as F
from support.spark_session import OPTIONS, start
from support.watched_files import leaks, watched

# No compression: what is written shows. The code of a task of 5 kB goes to a broadcast file, results of 500 bytes to the blocks.
READ_HERE = ("files", "memory", "a filtered list", "batches")
settings = {{
    "spark.local.dir": str(local), "spark.sql.warehouse.dir": str(root / "warehouse"),
    "spark.driver.extraJavaOptions": OPTIONS["spark.driver.extraJavaOptions"] + f" -Djava.io.tmpdir={{temporary}}",
    "spark.io.encryption.enabled": "false", "spark.shuffle.compress": "false", "spark.broadcast.compress": "false",
    "spark.rdd.compress": "false", "spark.shuffle.spill.compress": "false",
    "spark.sql.files.openCostInBytes": str(1 << 27),
}}


def written(folder, table, starts):
    if not folder.exists():
        folder.mkdir()
        for number, (first, stop) in enumerate(zip(starts, [*starts[1:], len(table)])):
            pq.write_table(table.slice(first, stop - first), folder / f"{{number}}.parquet")
    return folder


def watch(spark, n_files, names, of_units):
    n_people = 2_000
    rng = np.random.default_rng(7)
    cells = rng.uniform(1_000.0, 99_000.0, 2 * n_people)
    ids = [f"person-{{7919 * number % 99991:05}}-of-the-table" for number in np.sort(rng.integers(0, n_people, 2 * n_people))]
    folder = written(root / f"{{n_files}} files", pa.table({{"id": ids, "income": cells}}),
                     [place * len(cells) // n_files for place in range(n_files)])
    schema, unit = dpm.Schema(dpm.Numeric("income", 0, 100_000)), dpm.PrivacyUnit("id", max_rows=1)
    files = spark.read.parquet(str(folder))
    forms = {{"files": dpm.EngineFiles(folder, "spark"), "frame of files": files, "frame": files.filter("abs(income) >= 0")}}
    assert forms["frame"].rdd.getNumPartitions() == n_files
    moments = Rows.of(folder, schema).moments()
    by_file = [Rows.of(path, schema).moments() for path in sorted(folder.iterdir())]
    sums = {{int(limb) for one in (moments, *by_file) for limb in np.ravel(one.limbs) if abs(int(limb)) > 1 << 32}}
    secrets = [*sorted(set(ids)), *cells.tolist(), *sorted(sums)]
    result = {{}}
    for name in names:
        data, units = forms[name], unit if of_units else None
        Rows.of(data, schema).moments()  # what Spark makes once
        with watched(local, temporary, here) as seen:
            rows = Rows.of(data, schema, privacy_unit=units)
            found = (rows if units is None else rows.bounded((11, 12))).moments()
        assert units is not None or found == moments
        result[name] = {{"files": [[str(file.path), oct(file.mode), len(file.contents)] for file in seen],
                        "leaks": sorted({{told[:12]: told for told in leaks(seen, secrets)}}.values())}}
    return result


def plans(spark):
    table = pa.table({{"x": np.arange(200.0), "y": np.arange(200.0)}})
    schema = dpm.Schema(dpm.Numeric("x", 0, 100))
    folder = written(root / "t", table, [0, 100])
    files, memory = spark.read.parquet(str(folder)), spark.createDataFrame(table)
    scan, rows = files.filter("x >= 0"), [(float(x), float(x)) for x in range(200)]
    spark.createDataFrame(rows, ["x", "y"]).createOrReplaceTempView("rows")
    forms = {{
        "files": files, "a filter": scan, "a projection": files.selectExpr("x + 0 AS x"), "memory": memory,
        "a list": spark.createDataFrame(rows, ["x", "y"]), "a filtered list": spark.table("rows").filter("y >= 0"),
        "numbers": spark.range(200).selectExpr("cast(id AS double) AS x"), "a union": scan.union(files).filter("y >= 0"),
        "batches": scan.mapInArrow(lambda batches: batches, "x double, y double"), "fewer partitions": scan.coalesce(1),
        "a sample": scan.sample(0.5, seed=1), "exploded": scan.select(F.explode(F.array("x", "y")).alias("x")),
        "cached in memory": files.selectExpr("x + 0.0 AS x").persist(StorageLevel.MEMORY_ONLY),
        "many partitions": scan.repartition(3), "by a column": memory.repartition("y"),
        "sorted": scan.sort("x"), "sorted within": scan.sortWithinPartitions("x"), "a limit": scan.limit(50),
        "joined": scan.join(memory.select("y"), "y"), "broadcast": scan.join(F.broadcast(memory.select("y")), "y"),
        "grouped": scan.groupBy("x").count(), "once each": scan.distinct(),
        "a window": scan.selectExpr("sum(x) OVER (PARTITION BY y) AS x"), "cached": scan.filter("x > -1").cache(),
        "cached after a shuffle": scan.repartition(4).persist(StorageLevel.MEMORY_ONLY),
        "above a cache": scan.filter("x > -2").cache().filter("y >= 0").selectExpr("x + 0 AS x"),
        "cached on a disk": scan.filter("x > -3").persist(StorageLevel.DISK_ONLY),
        "a list cached on a disk": spark.sparkContext.parallelize(rows).persist(StorageLevel.DISK_ONLY).toDF(["x", "y"]),
        "in a filter": spark.sql("SELECT * FROM rows WHERE x > (SELECT avg(y) FROM rows)"),
        "a function": scan.select(F.udf(lambda x: x, "double")("x").alias("x")),
    }}
    result, logs = {{}}, spark.conf.get("spark.eventLog.enabled", "false") == "true"
    for name, form in forms.items():
        try:
            opened = Rows.of(form, schema)
            if name in READ_HERE and not logs:
                assert opened.moments().count == 200
            result[name] = "read"
        except ValueError as error:
            result[name] = str(error)
    return result


def log(spark):
    result, keys, seal_class = plans(spark), [], ours.Seal
    ours.Seal = lambda *of: keys.append(seal_class(*of)) or keys[-1]
    odd = pa.table({{"x": np.arange(177_761.0), "id": [f"person-{{n % 1500:05}}" for n in range(177_761)]}})
    folder, unit = written(root / "odd", odd, [0, 60_000, 120_000]), dpm.PrivacyUnit("id", max_rows=1)
    schema = dpm.Schema(dpm.Numeric("x", 0, 100))
    assert Rows.of(dpm.EngineFiles(folder, "spark"), schema, privacy_unit=unit).bounded((11, 12)).moments().count
    spark.stop()
    events = b"".join(path.read_bytes() for path in (root / "events").rglob("*") if path.is_file())
    assert b"SparkListenerJobStart" in events
    keys = [form for seal in keys for form in (seal.key, seal.key.hex().encode())]
    assert len(keys) >= 6
    result["in the event log"] = [repr(told) for told in [b"person-", *keys] if told in events]
    met = re.findall(rb".{{0,60}}\\b(?:177761|57761)\\b.{{0,20}}", events)
    result["counts"] = [told.decode(errors="replace") for told in met]
    return result


found, before = [], None
for what, options, arguments in steps:
    if before is not None and options != before:
        spark.stop()
    if options != before:
        spark = start("local[2,4]", **{{name.replace(".", "_"): value for name, value in (settings | options).items()}})
    before = options
    found.append({{"watch": watch, "plans": plans, "log": log}}[what](spark, *arguments))
spark.stop()
print("RESULT" + json.dumps(found))
"""
READ = {"files", "a filter", "a projection", "memory", "a list", "a filtered list", "numbers", "a union", "batches"}
READ |= {"fewer partitions", "a sample", "exploded", "cached in memory"}


def run(folder: Path, *steps: tuple[str, dict[str, str], list[Any]]) -> list[dict[str, Any]]:
    """What is found by steps, in one process and, for the same options of a session, in one session."""
    program = PROGRAM.format(tests=str(TESTS))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(folder), json.dumps(steps)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    )
    assert "RESULT" in ran.stdout, ran.stdout + ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout.split("RESULT")[1])
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What one process finds, whose sessions do not encrypt their files."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    steps: dict[str, tuple[str, dict[str, str], list[Any]]] = {
        "as it is": ("watch", {}, [FILES, ["files", "frame"], False]),
        "plans": ("plans", {}, []),
        "log": ("log", log | {"spark.eventLog.dir": (folder / "events").as_uri()}, []),
    }
    return dict(zip(steps, run(folder, *steps.values()), strict=True))


FILES = 12
NO_FILE: dict[str, list[Any]] = {"files": [], "leaks": []}


def test_a_pass_makes_no_file(told: dict[str, dict[str, Any]]) -> None:
    """Neither ids nor cells nor sums are written, since nothing is: no shuffle, no file of a job or of its pieces."""
    assert told["as it is"] == {"files": NO_FILE, "frame": NO_FILE}


@pytest.mark.parametrize(("n_files", "of_units"), [(40, False), (400, True)])
def test_a_pass_over_many_files_makes_no_file(n_files: int, of_units: bool, tmp_path: Path) -> None:
    forms = ["files", "frame", *(["frame of files"] if n_files == 40 or not of_units else [])]
    assert run(tmp_path, ("watch", {}, [n_files, forms, of_units])) == [dict.fromkeys(forms, NO_FILE)]


@pytest.mark.parametrize("of_units", [False, True])
def test_what_is_larger_than_spark_sends_by_messages_is_sealed(of_units: bool, tmp_path: Path) -> None:
    """Jobs are in files of PySpark, results in blocks: none shows a thing of the table."""
    small = {"spark.broadcast.UDFCompressionThreshold": "100", "spark.task.maxDirectResultSize": "100"}
    (found,) = run(tmp_path, ("watch", small, [40, ["files", "frame"], of_units]))
    assert all(seen["files"] and not seen["leaks"] for seen in found.values())


def test_a_frame_whose_plan_writes_rows_is_refused_unless_the_session_encrypts(told: dict[str, dict[str, Any]]) -> None:
    found = told["plans"]
    assert {name for name, said in found.items() if said == "read"} == READ
    for name, said in found.items():
        assert name in READ or "spark.io.encryption.enabled=true" in said, (name, said)


def test_an_event_log_holds_nothing_of_files_and_refuses_frames(told: dict[str, dict[str, Any]]) -> None:
    """It holds how many rows each step of a frame has; of files neither that nor the key of a pass."""
    found = dict(told["log"])
    assert found.pop("in the event log") == []
    assert found.pop("counts") == []
    assert {name for name, said in found.items() if said == "read"} == set()
    assert all(said == "read" or "spark.eventLog.enabled=false" in said for said in found.values())
