"""Databases of given rows: SQLite files, and a PostgreSQL server of the machine's own, started once."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

PASSWORD = "p ss/w@rd:Ä"
"""Of the server: hard to keep out of messages."""
_NUMBERS = count()


def sqlite_file(path: Path, rows: Sequence[Mapping[str, Any]], declared: Mapping[str, str] | None = None) -> str:
    """Write a file with a table ``people``, whose columns have no types unless declared; its URL."""
    columns = declared or dict.fromkeys(rows[0], "")
    stated = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE people ({stated})")
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO people VALUES ({marks})", [[row[name] for name in columns] for row in rows])
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


@cache
def postgres_url() -> str:
    """The URL of a server with a database ``postgres``; skips the test where the machine has none."""
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL is read with dpmoments[database]")
    if None in (shutil.which("initdb"), shutil.which("pg_ctl")):
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed on this machine")
    folder = Path(tempfile.mkdtemp(prefix="dpmoments-postgres-"))
    owner = pwd.getpwuid(os.getuid())
    if os.getuid() == 0:  # as which PostgreSQL does not run
        owner = next(user for user in pwd.getpwall() if user.pw_name in ("postgres", "nobody"))
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for path in (folder, folder / "password"):
        os.chown(path, owner.pw_uid, owner.pw_gid)

    def run(*command: str) -> None:
        as_owner: dict[str, Any] = {"user": owner.pw_uid, "group": owner.pw_gid} if os.getuid() == 0 else {}
        subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **as_owner
        )

    def stop() -> None:
        os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        shutil.rmtree(folder, ignore_errors=True)

    run("initdb", "-D", "data", "-U", "ada", "-A", "scram-sha-256", "--pwfile", "password", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300"
    run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")
    atexit.register(stop)
    return f"postgresql://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"


def postgres_table(rows: pa.Table) -> str:
    """Write rows to a new table of the server; its name."""
    name = f"people_{next(_NUMBERS)}"
    with _connection().cursor() as cursor:
        cursor.adbc_ingest(name, rows, mode="create")
    return name


def on_postgres(statement: str) -> None:
    """Run a statement on the server."""
    with _connection().cursor() as cursor:
        cursor.execute(statement)


@cache
def _connection() -> Any:
    import adbc_driver_postgresql.dbapi as dbapi

    connection = dbapi.connect(postgres_url(), autocommit=True)
    atexit.register(connection.close)
    return connection
