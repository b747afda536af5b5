"""Sessions of Spark for tests, which need a Java that Spark runs on; where there is none, they say so and are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "2",
    "spark.io.encryption.enabled": "true",  # frames whose plan may write rows to a disk are refused without it
    # Small jobs, once each: compiling their code well takes longer than running it.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -XX:MetaspaceSize=256m "  # no garbage is looked for among classes
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"  # Spark's classes are taken as they are
    ),
}


def java() -> str | None:
    """A Java with the module that Spark's vectorized code needs."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin" if home else None)
    if command is None:
        return None
    release = Path(command).resolve().parents[1] / "release"  # names the modules, and starting Java takes half a second
    if release.is_file():
        listed = release.read_text()
    else:
        listed = subprocess.run([command, "--list-modules"], capture_output=True, text=True, check=False).stdout
    return command if "jdk.incubator.vector" in listed else None


def start(master: str, **options: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("tests")
    for key, value in (OPTIONS | {name.replace("_", "."): value for name, value in options.items()}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


of_spark = [
    pytest.mark.skipif(java() is None, reason="Spark needs Java"),
    # PySpark 4 says that it is not tested with the next pandas, of which nothing here is used, and leaves sockets open.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
