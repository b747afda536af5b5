"""Tables of Spark give the bits of a local pass, whatever becomes of its tasks.

They need a Java that Spark runs on, see ``spark_session.py``; sessions of their own are in programs that they run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.engine import PartitionJob, Seal
from support.said import Said, refused
from support.spark_session import of_spark
from support.table_forms import EXPECTED, N_ROWS, SCHEMA, TABLE, csv_text, make_table

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
pytestmark = [*of_spark, pytest.mark.long(sets=None)]
TESTS = Path(__file__).parents[1]


def test_any_partitioning_gives_the_same_bits(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(TABLE)
    assert Rows.of(frame.repartition(3), SCHEMA).moments() == EXPECTED
    frame.write.parquet(str(tmp_path / "t.parquet"))
    files = spark.read.parquet(str(tmp_path / "t.parquet")).filter("age > -1e9 or age is null")
    rows = Rows.of(files, SCHEMA, neighbors="replace_one")
    assert (rows.moments(), rows.table_size()) == (EXPECTED, N_ROWS)
    scan = files.select(*SCHEMA.names)._jdf.queryExecution().executedPlan().toString()
    assert "unread" not in scan
    nothing = Rows.of(frame.filter("age > 1e9"), SCHEMA)
    assert nothing.count() == 0


@pytest.mark.slow
def test_large_results_come_in_several_jobs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    d, sizes = 30, []
    run_job = type(spark.sparkContext).runJob

    def counted(context: Any, results: Any, run: Any, indices: Any) -> Any:
        sizes.append(len(indices))
        return run_job(context, results, run, indices)

    monkeypatch.setattr(type(spark.sparkContext), "runJob", counted)
    monkeypatch.setattr("dpmoments.rows.sources.spark._BYTES_PER_JOB", 5 * 8 * d * (d + 1))
    table = pa.table({f"x{i}": np.random.default_rng(i).random(400) for i in range(d)})
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in table.column_names))
    frame = spark.createDataFrame(table).repartition(40)
    assert Rows.of(frame, schema).moments() == Rows.of(table, schema).moments()
    assert sizes[0] == 5
    assert sum(sizes) == 40
    assert 4 < len(sizes) < 20
    sizes.clear()
    strict = dpm.Schema(dpm.Numeric("x0", 0, 1, missing="error"), *schema.columns[1:])
    broken = frame.withColumn("x0", pyspark.sql.functions.expr("CASE WHEN x0 > 0.5 THEN x0 END"))
    with refused("has a cell that is missing, not finite or not readable, and", column="x0"):
        Rows.of(broken, strict).moments()
    assert sizes == [5]  # the jobs to come are left out


def test_very_many_partitions_are_read_several_in_a_task(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmoments.rows.sources.spark._MIN_MAX_TASKS", 3)
    rows = Rows.of(spark.createDataFrame(TABLE).repartition(10), SCHEMA)
    job = PartitionJob(rows.source.reading, len, max, 0, False)
    assert rows.source.results(job, Seal())[1] == rows.source.max_tasks == 8  # four for each thread
    assert rows.moments() == EXPECTED


@pytest.mark.slow
def test_releases_units_groups_and_preflight_are_as_in_a_local_pass(spark: Any) -> None:
    rng = np.random.default_rng(0)
    table = make_table(500, 8).append_column("person", pa.array([f"p{i}" for i in rng.zipf(1.4, 500) % 100]))
    frame = spark.createDataFrame(table).repartition(3)
    told: list[float | None] = []
    for options in (
        dict(mechanism="coinpress", rho=0.5),
        dict(epsilon=1.0, privacy_unit=dpm.PrivacyUnit("person", max_rows=3)),
    ):
        kept: dict[str, Any] = dict(options, insecure_seed=3)
        released = dpm.release(frame, SCHEMA, progress=told.append, **kept)
        assert released.noisy_gram.tobytes() == dpm.release(table, SCHEMA, **kept).noisy_gram.tobytes()
    assert told[:100] == [step / 100 for step in range(1, 101)]
    assert len(told) % 100 == 0
    groups, wanted = (
        dpm.release_groups(data, SCHEMA_OF_GROUPS, by="member", epsilon=1.0, insecure_seed=3) for data in (frame, table)
    )
    for one, other in zip(groups.releases, wanted.releases, strict=True):
        assert one.noisy_gram.tobytes() == other.noisy_gram.tobytes()
    found, facts = (dpm.preflight(data, SCHEMA).private_facts() for data in (frame, table))
    assert found == facts


SCHEMA_OF_GROUPS = dpm.Schema(dpm.Numeric("visits", -5, 5), dpm.Boolean("member", missing="center"))


def test_files_are_read_by_the_workers(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    (tmp_path / "csv").mkdir()
    for number, first in enumerate(range(0, N_ROWS, 150)):
        (tmp_path / "csv" / f"{number}.csv").write_bytes(csv_text(TABLE.slice(first, 150)))
    assert Rows.of(dpm.EngineFiles(tmp_path / "csv", "spark"), SCHEMA).moments() == EXPECTED
    monkeypatch.setattr("dpmoments.rows.sources.arrow._MIN_ROWS_PER_PIECE", 100)
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=60)
    SCHEMA.save(tmp_path / "t.yaml")
    common = [str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "t.yaml"), "--neighbors", "add_remove"]
    for engine in ("local", "spark"):
        output = str(tmp_path / f"{engine}.json")
        assert (
            main(["release", *common, "--epsilon=1", "--insecure-seed=3", "--output", output, "--engine", engine]) == 0
        )
    capsys.readouterr()
    first, second = (dpm.load(tmp_path / f"{engine}.json") for engine in ("local", "spark"))
    assert np.array_equal(first.noisy_gram, second.noisy_gram)  # type: ignore[union-attr]


def test_frames_that_cannot_serve_are_refused(spark: Any) -> None:
    functions = pyspark.sql.functions
    frame = spark.createDataFrame(TABLE)
    with refused("the plan of the Spark frame is not deterministic (rand"):
        Rows.of(frame.withColumn("age", functions.rand()), SCHEMA)
    with refused("column needs numbers: convert it, or describe it as", TypeError, column="age"):
        Rows.of(frame.withColumn("age", functions.struct("age", "visits")), SCHEMA)
    with refused("column needs numbers: convert it, or describe it as", TypeError, column="age"):
        Rows.of(frame.withColumn("age", functions.array("age")), SCHEMA)
    with refused("rename the column in the table or, if every file has"):
        Rows.of(frame, dpm.Schema(dpm.Numeric("height", 0, 1)))
    with refused("column needs numbers: convert it, or describe it as", TypeError, column="region", type="string"):
        Rows.of(frame, dpm.Schema(dpm.Numeric("region", 0, 1))).moments()
    with refused("cannot read a table from Spark's", TypeError):
        Rows.of(frame.rdd, SCHEMA)


def test_no_cell_is_in_any_error(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark.createDataFrame(TABLE)
    cast = frame.withColumn("age", pyspark.sql.functions.col("unread").cast("double"))  # quotes the cell it stops at
    with refused(
        " cannot be read: ", reason=Said(" (", reason=Said("its query fails, on the table or before it"))
    ) as caught:
        Rows.of(cast, SCHEMA).moments()
    assert "secret" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    strict = dpm.Schema(dpm.Numeric("age", 0, 100, missing="error"))
    with refused("has a cell that is missing, not finite or not readable, and", column="age"):
        Rows.of(frame, strict).moments()
    assert "secret" not in "".join(capfd.readouterr())


def fails_once(marker: str, how: str) -> Callable[[Any], Any]:
    """A task whose worker dies, or that raises, the first time, after it gave rows."""

    def batches(given: Any) -> Any:
        for number, batch in enumerate(given):
            yield batch
            if number == 0 and not os.path.exists(marker):
                with open(marker, "w"):
                    pass
                if how == "dies":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError("once")

    return batches


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dies", "raises"])
def test_a_task_that_is_repeated_changes_no_bit(spark: Any, how: str, tmp_path: Path) -> None:
    frame = spark.createDataFrame(TABLE).repartition(4)
    fragile = frame.mapInArrow(fails_once(str(tmp_path / "marker"), how), frame.schema)
    assert Rows.of(fragile, SCHEMA).moments() == EXPECTED
    assert (tmp_path / "marker").exists()


@pytest.mark.slow
def test_a_frame_that_hides_its_chance_is_found_at_the_second_pass(spark: Any) -> None:
    def random_batches(batches: Any) -> Any:
        for batch in batches:
            yield pa.record_batch({"x": np.random.default_rng().random(batch.num_rows)})

    frame = spark.range(100).mapInArrow(random_batches, "x double")
    rows = Rows.of(frame, dpm.Schema(dpm.Numeric("x", 0, 1)))
    rows.moments()
    with refused("returned different rows in this pass than in the one", table="the Spark frame"):
        rows.moments()


CLUSTER = """
import os, sys, time
from pathlib import Path
sys.path[:0] = [{tests!r}]
import pyspark
from support.spark_session import start
from support.table_forms import EXPECTED, SCHEMA, TABLE
from dpmoments.rows.rows import Rows

spark = start("local-cluster[2,1,1024]",
              spark_executorEnv_PYTHONPATH=os.pathsep.join(filter(None, [{tests!r}, os.environ.get("PYTHONPATH", "")])))
marker = Path(sys.argv[1])


def kills_the_executor(batches):
    from pyspark import TaskContext
    for batch in batches:
        yield batch
    if TaskContext.get().partitionId() == 5 and not marker.exists():
        marker.touch()
        daemon = os.getppid()
        executor = int(Path(f"/proc/{{daemon}}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert b"java" in Path(f"/proc/{{executor}}/cmdline").read_bytes()
        os.kill(executor, 9)


frame = spark.createDataFrame(TABLE).repartition(8)
assert Rows.of(frame, SCHEMA).moments() == EXPECTED
assert Rows.of(frame.mapInArrow(kills_the_executor, frame.schema), SCHEMA).moments() == EXPECTED
assert marker.exists()
print("same bits")
spark.stop()
"""


@pytest.mark.slow
def test_a_cluster_of_processes_gives_the_same_bits_though_an_executor_is_killed(tmp_path: Path) -> None:
    """Two executors, one of which is killed in mid-pass."""
    program = CLUSTER.format(tests=str(TESTS))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "marker")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "same bits" in ran.stdout, ran.stdout + ran.stderr


def test_an_interrupted_pass_leaves_nothing_spent_and_nothing_running(spark: Any, tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "ledger.json")
    ledger.grant("people", epsilon=1.0, neighbors="add_remove")

    marker = tmp_path / "marker"

    def slow_batches(batches: Any) -> Any:
        marker.touch()
        for batch in batches:
            time.sleep(0.4)
            yield batch

    def interrupt() -> None:
        """As Ctrl-C, once a worker reads rows: before, it may come inside Spark's bridge, which hides it."""
        until = time.monotonic() + 60.0
        while not marker.exists() and time.monotonic() < until:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    frame = spark.createDataFrame(TABLE).repartition(12)
    slow = frame.mapInArrow(slow_batches, frame.schema)
    options: dict[str, Any] = dict(epsilon=1.0, dataset="people", ledger=ledger, neighbors="add_remove")
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        dpm.release(slow, SCHEMA, output=tmp_path / "people.json", **options)
    assert not (tmp_path / "people.json").exists()
    assert dpm.release(TABLE, SCHEMA, **options).privacy.private


@pytest.mark.slow
def test_the_example_runs() -> None:
    script = TESTS.parent / "examples" / "spark_job.py"
    ran = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=False)
    assert "the same bits as a local pass: True" in ran.stdout, ran.stderr


@pytest.mark.slow
def test_a_machine_without_java_is_told_what_spark_needs(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    SCHEMA.save(tmp_path / "t.yaml")
    program = "import sys; from dpmoments.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-W", "ignore", "-c", program]
    arguments = ["preflight", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "t.yaml"), "--engine", "spark"]
    ran = subprocess.run(
        [*command, *arguments],
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "Spark cannot be started" in ran.stderr
    assert re.search(r"Java 17 or later with the module jdk\.incubator\.vector", ran.stderr)
