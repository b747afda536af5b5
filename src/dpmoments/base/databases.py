"""Results of queries on SQLite and PostgreSQL databases, read in batches of one state."""

from __future__ import annotations

import re
import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from dpmoments.base.errors import InputError, InputModuleNotFoundError, InputValueError, wrong_type
from dpmoments.base.table_libraries import pa, pc

_KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "postgres": "PostgreSQL"}
_NOT_WORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(\$\w*\$).*?\1|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts, quoted names and comments of a query."""
_JOINING = {
    "aggregates": r"\b(?:count|sum|avg|min|max|total|string_agg|array_agg|group_concat|stddev\w*|var\w*)\s*\(",
    "DISTINCT": r"\bdistinct\b",
    "several tables": r"\bfrom\s+[\w.]+(?:\s+(?:as\s+)?\w+)?\s*,",
    "GROUP BY": r"\bgroup\s+by\b",
    "JOIN": r"\bjoin\b",
    "LIMIT": r"\b(?:limit|offset|fetch|tablesample)\b",
    "ORDER BY": r"\border\s+by\b",
    "OVER": r"\bover\b",
    "subquery": r"\bselect\b.*\bselect\b",
    "UNION": r"\b(?:union|intersect|except)\b",
}
"""Clauses by which one row can change others, or be repeated."""
CLAUSES = (*_JOINING,)
_CAUSES = {  # signs in lower case
    "42p01": "no such table",
    "42703": "no such column",
    "42601": "a syntax error",
    "42501": "no permission",
    "no such table": "no such table",
    "no such column": "no such column",
    "syntax error": "a syntax error",
    "unable to open": "no such file",
    "not a database": "not an SQLite database",
    "authentication failed": "the server refused user or password",
    "does not exist": "no such database or user",
    "refused": "no server answers there",
    "host name": "no such host",
}
"""Phrases of causes, by the codes or words of a database's errors.

The text of an error may hold a password or a value.
"""


@dataclass(frozen=True, repr=False)
class DatabaseQuery:
    """Result of a query on a database, passed in place of a table.

    The rows are read in batches, all passes in one read-only transaction. A privacy guarantee is about the rows of the
    result: that one row more or less in the database changes at most one of them is the curator's promise, which the
    release states, with the clauses of the query that can break it (joins, ``DISTINCT``, ``LIMIT``, …), and without its text.

    Attributes
    ----------
    url : str
        ``"sqlite:///people.db"`` (four slashes for an absolute path) or ``"postgresql://user@host/database"``
        (``pip install 'dpmoments[database]'``). No error, log or release shows it; keep passwords in ``~/.pgpass``.
    query : str
        One ``SELECT``.

    Raises
    ------
    ValueError
        If the URL is of another database.

    Examples
    --------
    >>> DatabaseQuery("postgresql://ada:secret@localhost/clinic", "SELECT age FROM people")
    DatabaseQuery('postgresql://…', 'SELECT age FROM people')
    """

    url: str
    query: str

    def __post_init__(self) -> None:
        for name in ("url", "query"):
            if not isinstance(value := getattr(self, name), str):
                raise wrong_type(name, "a text", value)
        if self.scheme not in _KINDS or (self.scheme == "sqlite" and not self.url.lower().startswith("sqlite:///")):
            raise InputValueError("a database's URL begins with sqlite:/// or postgresql://")

    @property
    def scheme(self) -> str:
        """Beginning of the URL, the public part of it."""
        return self.url.partition("://")[0].lower()

    @property
    def clauses(self) -> tuple[str, ...]:
        """Clauses by which one row of the database can change several of the result.

        >>> DatabaseQuery("sqlite:///a.db", "SELECT a, 'no JOIN' FROM t ORDER BY a LIMIT 9").clauses
        ('LIMIT', 'ORDER BY')
        """
        text = _NOT_WORDS.sub(" x ", self.query)
        return tuple(name for name, form in _JOINING.items() if re.search(form, text, re.IGNORECASE | re.DOTALL))

    def opened(self) -> DatabaseSession:
        """Open a connection and prepare the query.

        Raises
        ------
        ValueError, ModuleNotFoundError
            If that fails; the database's own words are not shown.
        """
        make = _SqliteSession if self.scheme == "sqlite" else _PostgresSession
        try:
            return make(self)
        except InputError:
            raise
        except Exception as error:
            signs = f"{getattr(error, 'sqlstate', '')} {error}".lower()
            cause = next((words for sign, words in _CAUSES.items() if sign in signs), "for a reason that is not shown")
        raise InputValueError(
            f"the query cannot be run on {_KINDS[self.scheme]} ({cause}); the database's own message may quote a password"
        )

    def __repr__(self) -> str:
        return f"DatabaseQuery('{self.scheme}://…', {self.query!r})"


class DatabaseSession(ABC):
    """Open query, in a transaction in which every pass finds the same state.

    ``types`` maps the columns of the result to Arrow types, None where each value has a type of its own; ``declared`` holds
    the database's names of the types.
    """

    names: list[str]
    types: list[Any]
    declared: list[str]

    def __init__(self, close: Callable[[], None]) -> None:
        weakref.finalize(self, close)

    @abstractmethod
    def batches(self, names: Sequence[str], rows: int) -> Iterator[Mapping[str, Any]]:
        """Iterate over batches of the named columns: Arrow arrays, or arrays of Python objects."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_USUAL = (
    ("BOOL", "bool"),
    ("INT", "int64"),
    *((sign, "string") for sign in ("CHAR", "TEXT", "CLOB")),
    *((sign, "timestamp[us]") for sign in ("DATE", "TIME")),
    *((sign, "float64") for sign in ("REAL", "FLOA", "DOUBLE", "NUM", "DEC")),
)
"""Signs in the types that SQLite declares, and Arrow's type of their usual values."""


class _SqliteSession(DatabaseSession):
    """Query on an SQLite file.

    Read with Python's own library: SQLite's values have types one by one, and the drivers of Arrow take the type of the
    first rows for all.
    """

    def __init__(self, query: DatabaseQuery) -> None:
        path = Path(unquote(query.url.partition("://")[2][1:])).absolute()
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        super().__init__(connection.close)
        # Bytes that are no UTF-8 make a text unreadable, alone.
        connection.text_factory = lambda content: content.decode(errors="surrogateescape")
        connection.execute("BEGIN")
        # A view is one SELECT, and has the types that its columns were declared with.
        connection.execute(f"CREATE TEMP VIEW dpmoments_query AS {query.query}")
        columns = connection.execute("PRAGMA temp.table_info(dpmoments_query)").fetchall()
        connection.execute("SELECT 1 FROM temp.dpmoments_query LIMIT 0")
        self._connection = connection
        self.names, self.declared = [row[1] for row in columns], [row[2] for row in columns]
        usual = [next((arrow for sign, arrow in _USUAL if sign in kind.upper()), None) for kind in self.declared]
        self.types = [None if arrow is None else pa.type_for_alias(arrow) for arrow in usual]

    def batches(self, names: Sequence[str], rows: int) -> Iterator[Mapping[str, Any]]:
        cursor = self._connection.execute(f"SELECT {', '.join(map(_quoted, names))} FROM temp.dpmoments_query")
        while held := cursor.fetchmany(rows):
            columns = np.empty((len(names), len(held)), dtype=object)
            for index, row in enumerate(held):
                columns[:, index] = row
            yield dict(zip(names, columns, strict=True))


_CASTS = {"bpchar": "text", "money": "numeric", "oid": "int8"}
"""Types that the driver reads as the server stores them: padded, in cents, signed."""
_INFINITE = {"date32": (-2147472692, -2147472691), "timestamp": (-9222425352054775809, -9222425352054775808)}
"""Days and microseconds that the driver makes of infinity and −infinity."""
_BATCH_BYTES = 1 << 22


class _PostgresSession(DatabaseSession):
    """Query on a PostgreSQL server, whose columns have types."""

    def __init__(self, query: DatabaseQuery) -> None:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise InputModuleNotFoundError(
                "these files are read with adbc-driver-postgresql: pip install 'dpmoments[database]'"
            ) from None
        self._connection = dbapi.connect(query.url)
        super().__init__(self._connection.close)
        self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").close()
        self._from = f"FROM (\n{query.query.rstrip().rstrip(';')}\n) AS dpmoments_query"
        with self._execute("SELECT current_setting('server_encoding')") as cursor:
            if cursor.fetchone() == ("SQL_ASCII",):  # where text may be no text
                raise InputValueError("the database has no text encoding (SQL_ASCII): use one in UTF8")
        with self._execute(f"SELECT * {self._from} LIMIT 0") as cursor:
            fields = [*cursor.fetch_record_batch().schema]
        self.names = [field.name for field in fields]
        self.declared, self.types, self._casts = [], [], dict[str, str | None]()
        for field in fields:
            described = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
            kind = str(getattr(field.type, "type_name", None) or described)
            kind = "enumeration" if kind.startswith("unnamed") else kind
            # The server's type in which the column is asked for; None for its own.
            cast = "text" if hasattr(field.type, "type_name") and kind != "numeric" else _CASTS.get(kind)
            self._casts[field.name] = cast
            self.declared.append(kind)
            self.types.append(
                pa.float64() if kind in ("numeric", "money") else pa.string() if cast == "text" else field.type
            )

    def _execute(self, text: str) -> Any:
        cursor = self._connection.cursor()
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
        try:
            cursor.execute(text)
        except BaseException:
            cursor.close()
            raise
        return cursor

    def batches(self, names: Sequence[str], rows: int) -> Iterator[Mapping[str, Any]]:
        columns = [
            f"{_quoted(name)}::{cast} AS {_quoted(name)}" if (cast := self._casts[name]) else _quoted(name)
            for name in names
        ]
        with self._execute(f"SELECT {', '.join(columns)} {self._from}") as cursor:
            reader = cursor.fetch_record_batch()
            empty = [pa.nulls(0, kind) for kind in reader.schema.types]
            for batch in chain([pa.RecordBatch.from_arrays(empty, schema=reader.schema)], reader):
                read = [_readable(column) for column in batch.columns]
                for start in range(0, max(batch.num_rows, 1), rows):
                    yield {name: column.slice(start, rows) for name, column in zip(names, read, strict=True)}


def _readable(column: Any) -> Any:
    """Return a column of the driver with decimals as floats, and without infinite dates."""
    kind = column.type
    if hasattr(kind, "type_name"):  # numeric, alone of the types that Arrow lacks
        return pc.cast(column.storage, pa.float64())
    if isinstance(kind, pa.BaseExtensionType):
        return column.storage
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else None
    if whole is None:
        return column
    infinite = pc.is_in(
        column.view(whole), pa.array(_INFINITE["date32" if whole == pa.int32() else "timestamp"], whole)
    )
    return pc.if_else(infinite, pa.scalar(None, kind), column)
