"""Sources of tables, each given one changed table in two partitionings: the same bits, or a refusal by both.

What is changed is the table itself (types, gaps, odd cells), and how it is written (line ends, quotes, encodings, blocks, row
groups, chunks, files). No error may quote a cell, and no partitioning may decide what a cell is.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dpmoments as dpm
from dpmoments.rows import level_sums
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import arrow, memory, text
from dpmoments.schema import Schema
from support.fuzzed_documents import Fault
from support.mutations import mutated_bytes

__all__ = ["fuzz_csv", "fuzz_frame", "fuzz_parquet"]

SECRET = "Smith-4711"
"""In cells that no message may quote; the numbers below stand for others."""
SECRETS = (SECRET, "4711.4711", "47114711")
SCHEMAS = (
    Schema(
        dpm.Product("age", "region"),
        dpm.Numeric("age", 0, 100, missing="center"),
        dpm.Power("age", 2),
        dpm.Boolean("member", missing="drop"),
        dpm.Product("code", "member"),
        dpm.Categorical("region", ["north", "s,o\nuth", 'we"st', "é"], missing="zero", other="zero"),
        dpm.Categorical("code", [1, 2, 30], missing="drop", other="drop"),
    ),
    Schema(dpm.Numeric("age", -5, 5), dpm.Categorical("region", ["north", "s,o\r\nuth", ""], other="zero")),
    Schema(
        dpm.Numeric("age", scale=(1, 1e3), missing="drop"), dpm.Categorical("code", ["1", "2", "30"], missing="zero")
    ),
    Schema(dpm.Numeric("age", 0, 100, missing="drop")),
)
TEXTS = (
    "north", "s,o\nuth", "s,o\r\nuth", 'we"st', "é", "", " north", "NORTH", "north\0", "\ufeffnorth", "NA", "null",
    "nan", "1", "1.0",
    "01", "30", SECRET, "x" * 50, "\r", "\n", '"', "''", "\u2028", "true", "\ud83d\ude00".encode("utf-16",
    "surrogatepass").decode("utf-16"),
)  # fmt: skip
NUMBERS = (
    0.0, -0.0, 1.0, 2.0, 30.0, 50.5, 99.999, 100.0, -5.0, 4711.4711, 1e300, -1e300, 5e-324, 2.0**53 + 2, 2.0**63, float("nan"),
    float("inf"), float("-inf"), 1 / 3,
)  # fmt: skip
INTEGERS = (0, 1, 2, 30, -1, 100, 127, 128, 255, 47114711, 2**31, 2**53 + 1, 2**62, -(2**63))


def _cells(random: Random, length: int) -> dict[str, list[Any]]:
    """Columns of plain cells, some missing; most would be in any table."""
    odd = random.choice([0.0, 0.02, 0.3])
    gaps = random.choice([0.0, 0.0, 0.1])

    def some(usual: Callable[[], Any], strange: tuple[Any, ...]) -> list[Any]:
        made = [random.choice(strange) if random.random() < odd else usual() for _ in range(length)]
        return [None if random.random() < gaps else cell for cell in made]

    return {
        "age": some(lambda: random.uniform(-5, 105), NUMBERS),
        "member": some(lambda: random.random() < 0.5, (True, False)),
        "region": some(lambda: random.choice(TEXTS[:5]), TEXTS),
        "code": some(lambda: random.choice((1, 2, 30)), INTEGERS),
        "unread": [random.choice((SECRET, "a\nb", 'c"', "")) for _ in range(length)],
    }


class OneRefusal(Fault):
    """One partitioning is refused, another is not."""


# What a table comes to ------------------------------------------------------------------------------------------------------


def outcome(data: Any, schema: Schema, mean: bool, neighbors: str, threads: int) -> ExactMoments | str:
    """Exact moments, or the kind of refusal. Raise Fault where a refusal quotes a cell or is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            rows = Rows.of(data, schema, mean=mean, neighbors=neighbors, threads=threads)
            found = rows.moments()
            if rows.count() != found.count:
                raise Fault("the count of rows is not that of their moments")
            return found
        except (ValueError, TypeError, MemoryError) as error:  # a damaged file may ask for any amount
            said = "".join(traceback.format_exception(error))
            if any(secret in said for secret in SECRETS):
                raise Fault("a refusal quotes a cell") from None
            if traceback.extract_tb(error.__traceback__)[-1].filename.find("dpmoments") < 0:
                raise Fault(f"a refusal in words of a library: {type(error).__name__}") from None
            return type(error).__name__
        except Fault:
            raise
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            raise Fault(f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}") from None


def compare(first: Any, second: Any, schema: Schema, random: Random, sizes: tuple[Any, Any] = ({}, {})) -> bool:
    """Whether two partitionings of one table were accepted. Raise Fault where they differ."""
    mean, neighbors = random.random() < 0.7, random.choice(["add_remove", "replace_one"])
    results = []
    for data, patched, threads in ((first, sizes[0], 1), (second, sizes[1], 2)):
        with patches(patched):
            results.append(outcome(data() if callable(data) else data, schema, mean, neighbors, threads))
    ours, theirs = results
    if isinstance(ours, str) != isinstance(theirs, str):
        raise OneRefusal(
            f"one partitioning is refused, another is not: {[r if isinstance(r, str) else 'moments' for r in results]}"
        )
    if not isinstance(ours, str) and ours != theirs:
        raise Fault("two partitionings have different moments")
    return not isinstance(ours, str)


@contextmanager
def patches(values: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """Sizes of blocks, as a larger table would meet them."""
    before = {place: getattr(*place) for place in values}
    try:
        for (module, name), value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


# CSV ------------------------------------------------------------------------------------------------------------------------


def _quoted(text: str, style: str, delimiter: str) -> str:
    needs = any(mark in text for mark in (delimiter, '"', "\n", "\r")) or text != text.strip()
    if style == "all" or (style == "needed" and needs):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_lines(cells: dict[str, list[Any]], random: Random, delimiter: str, style: str) -> tuple[str, list[str]]:
    """Header and records, each with its line end."""
    end = random.choice(["\n", "\n", "\r\n", "\r"])
    spelled = random.choice(
        [
            lambda cell: "" if cell is None else str(cell),
            lambda cell: "NA" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell),
            lambda cell: "" if cell is None else str(int(cell)) if isinstance(cell, bool) else str(cell),
        ]
    )
    header = delimiter.join(_quoted(name, style, delimiter) for name in cells) + end
    records = [
        delimiter.join(_quoted(spelled(cell), style, delimiter) for cell in row) + end
        for row in zip(*cells.values(), strict=True)
    ]
    if random.random() < 0.1:
        records[random.randrange(len(records))] += end  # an empty line
    if random.random() < 0.1:
        records[-1] = records[-1].removesuffix(end)
    if random.random() < 0.05:
        place = random.randrange(len(records))
        records[place] = records[place].replace("\n", "\r\n", 1)  # mixed ends
    return header, records


def fuzz_csv(random: Random, folder: Path) -> bool:
    """One CSV file read in blocks of one size and of another, or cut into files at ends of records."""
    schema = random.choice(SCHEMAS)
    cells = _cells(random, random.choice([1, 3, 30, 60]))
    if random.random() < 0.3:
        cells = {name: cells[name] for name in schema.names}
    delimiter, ending = random.choice([(",", "csv"), (",", "csv"), ("\t", "tsv")])
    style = random.choice(["needed", "needed", "all", "never"])
    header, records = csv_lines(cells, random, delimiter, style)
    encoding = random.choice(["utf-8"] * 8 + ["utf-8-sig", "latin-1", "utf-16"])
    content = (header + "".join(records)).encode(encoding, "replace")
    damaged = random.random() < 0.3
    if damaged:
        content = mutated_bytes(content, random, CSV_TOKENS)
    whole = folder / f"t.{ending}"
    whole.write_bytes(content)
    largest = max(
        [len(header.encode(encoding, "replace")), *(len(record.encode(encoding, "replace")) for record in records)]
    )
    small = {(text, "_CSV_BLOCK_BYTES"): 2 * largest + 8 + random.randrange(200)}
    if damaged or style == "never":
        try:
            return compare(whole, whole, schema, random, ({}, small))
        except OneRefusal:  # a line that damage, or a bare quote, made longer than a block
            return False
    if random.random() < 0.7:
        return compare(whole, whole, schema, random, ({}, small))
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    for old in parts.iterdir():
        old.unlink()
    cuts = sorted(random.choices(range(len(records) + 1), k=random.choice([1, 3])))
    encode_part = "utf-8" if encoding == "utf-16" else encoding
    whole.write_bytes((header + "".join(records)).encode(encode_part, "replace"))
    for place, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(records)], strict=True)):
        name = parts / f"{random.randrange(1000):03}-{place}.{ending}"
        name.write_bytes((header + "".join(records[start:stop])).encode(encode_part, "replace"))
    return compare(whole, parts, schema, random, ({}, small))


CSV_TOKENS = (
    b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"NaN", b"inf", b"-inf", b"1e400",
    b"1e-400", b"0x10",
    b" ", b"\t", b"'", b"\x1a", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"9" * 400, b"true", b"TRUE", b"yes", b'"\r\n"',
    b'\r\n"', b"1_0",
    b"+1", b".5", b"5.", b"\\", b"#", SECRET.encode(), b'"a\r', b"\n\n", b",,", b"\x85", b"1.0", b"1,5",
)  # fmt: skip


# Frames and Parquet files ---------------------------------------------------------------------------------------------------

ARROW_TYPES: dict[str, tuple[Callable[[list[Any]], Any], ...]] = {
    "age": (
        lambda cells: pa.array(cells, pa.float64()),
        lambda cells: pa.array(cells, pa.float64()).cast(pa.float32(), safe=False),
        lambda cells: pa.array([_whole(cell) for cell in cells], pa.int64()),
        lambda cells: pa.array([_whole(cell, 100) for cell in cells], pa.uint8()),
        lambda cells: pa.array([_decimal(cell) for cell in cells], pa.decimal128(20, 3)),
        lambda cells: pa.array([_decimal(cell) for cell in cells], pa.decimal256(50, 20)),
        lambda cells: pa.array(cells, pa.float64()).dictionary_encode(),
        lambda cells: pa.array([None if cell is None else cell > 50 for cell in cells], pa.bool_()),
        lambda cells: pa.array([None if cell is None else str(cell) for cell in cells], pa.string()),
        lambda cells: pa.nulls(len(cells)),
        lambda cells: pa.array([None if cell is None else [cell] for cell in cells], pa.list_(pa.float64())),
        lambda cells: pc.run_end_encode(pa.array(cells, pa.float64())),
        lambda cells: pa.array([_whole(cell) for cell in cells], pa.timestamp("us")),
    ),
    "member": (
        lambda cells: pa.array(cells, pa.bool_()),
        lambda cells: pa.array(cells, pa.bool_()).cast(pa.int8()),
        lambda cells: pa.array(cells, pa.bool_()).cast(pa.string()),
    ),
    "region": (
        lambda cells: pa.array(cells, pa.string()),
        lambda cells: pa.array(cells, pa.large_string()),
        lambda cells: pa.array(cells, pa.string()).dictionary_encode(),
        lambda cells: pa.array(cells, pa.string()).cast(pa.string_view()),
        lambda cells: pc.run_end_encode(pa.array(cells, pa.string())),
        lambda cells: pa.array([None if cell is None else cell.encode() for cell in cells], pa.binary()),
        lambda cells: pa.nulls(len(cells), pa.string()),
    ),
    "code": (
        lambda cells: pa.array(cells, pa.int64()),
        lambda cells: pa.array(cells, pa.int64()).cast(pa.float64(), safe=False),
        lambda cells: pa.array(cells, pa.int64()).cast(pa.string()),
        lambda cells: pa.array(cells, pa.int64()).dictionary_encode(),
        lambda cells: pa.array([None if cell is None else cell % 256 for cell in cells], pa.uint8()),
        lambda cells: pa.array([None if cell is None else f"{cell}.0" for cell in cells], pa.string()),
        lambda cells: pa.array([None if cell is None else Decimal(cell) for cell in cells], pa.decimal128(30, 0)),
    ),
    "unread": (lambda cells: pa.array(cells, pa.string()),),
}  # fmt: skip


def _whole(cell: float | None, most: int = 2**50) -> int | None:
    return None if cell is None or cell != cell else int(min(max(cell, 0), most))


def _decimal(cell: float | None) -> Decimal | None:
    return None if cell is None or not abs(cell) < 1e9 else Decimal(f"{cell:.3f}")


def arrow_table(random: Random, length: int) -> pa.Table:
    cells = _cells(random, length)
    usual = random.random() < 0.5
    return pa.table(
        {
            name: (ARROW_TYPES[name][0] if usual and random.random() < 0.7 else random.choice(ARROW_TYPES[name]))(
                column
            )
            for name, column in cells.items()
        }
    )


def _chunked(table: pa.Table, random: Random) -> pa.Table:
    """The same table in other chunks, some of them empty, each with its own dictionary."""
    cuts = sorted(random.choices(range(len(table) + 1), k=random.choice([1, 2, 5])))
    parts = [table.slice(start, stop - start) for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    return pa.concat_tables(parts)


def _pandas(table: pa.Table, random: Random) -> Any:
    frame = random.choice(
        [
            lambda: table.to_pandas(),
            lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
            lambda: table.to_pandas().convert_dtypes(),
            lambda: table.to_pandas().astype(object),
        ]
    )()
    if random.random() < 0.3:
        frame = frame.astype({"region": "category"})
    if random.random() < 0.3:
        frame.index = [0] * len(frame)
    return frame


def fuzz_frame(random: Random, folder: Path) -> bool:
    """One frame encoded in large parts and in small ones, or in other chunks."""
    del folder
    schema, table = random.choice(SCHEMAS), arrow_table(random, random.choice([0, 1, 7, 40]))
    small = {
        (level_sums, "_MAX_ROWS_PER_BLOCK"): random.choice([64, 1]),
        (memory, "_MIN_ROWS_PER_PART"): random.choice([1, 2, 5]),
    }
    kind = random.randrange(4)
    if kind == 0:
        return compare(table, _chunked(table, random), schema, random, ({}, small))
    if kind == 1:
        try:
            frame = _pandas(table, random)
        except (pa.ArrowException, ValueError, TypeError, NotImplementedError):  # pandas does not hold such a column
            return False
        return compare(frame, frame, schema, random, ({}, small))
    if kind == 2:
        if any(pa.types.is_decimal256(kind) or pa.types.is_run_end_encoded(kind) for kind in table.schema.types):
            return False  # Polars panics
        polars: Any = pl.from_arrow(table)
        cut = random.randrange(len(table) + 1)
        other = pl.concat([polars[:cut], polars[cut:]], rechunk=False)
        return compare(polars, random.choice([other, other.lazy()]), schema, random, ({}, small))
    array = _array(random, len(schema.columns), random.choice([0, 1, 9, 40]))
    return compare(array, array, schema, random, ({}, small | {(memory, "_RAW_ROWS_PER_BLOCK"): random.choice([1, 3])}))


def _array(random: Random, columns: int, length: int) -> Any:
    cells = [[random.choice((*NUMBERS, *INTEGERS, 1, 2, 30)) for _ in range(columns)] for _ in range(length)]
    with np.errstate(all="ignore"):
        made = np.array(cells, dtype=np.float64).reshape(length, columns)
        return random.choice(
            [
                lambda: made,
                lambda: np.asfortranarray(made),
                lambda: made.astype(np.float32),
                lambda: made[::-1][::-1],
                lambda: np.array(cells, dtype=object).reshape(length, columns),
                lambda: np.array(
                    [[random.choice((*TEXTS, *NUMBERS, None))] * columns for _ in range(length)], dtype=object
                ).reshape(length, columns),
                lambda: made.astype(">f8"),
                lambda: made.astype(np.float16),
            ]
        )()


def fuzz_parquet(random: Random, folder: Path) -> bool:
    """One table in Parquet files of different row groups and encodings, whole or in parts; some of them damaged."""
    schema, table = random.choice(SCHEMAS), arrow_table(random, random.choice([1, 7, 40]))
    first, second = folder / "a.parquet", folder / "b.parquet"
    try:
        pq.write_table(table, first)
        pq.write_table(
            _chunked(table, random),
            second,
            row_group_size=random.choice([1, 3, 50]),
            use_dictionary=random.random() < 0.5,
            compression=random.choice(["none", "snappy", "zstd", "gzip"]),
            data_page_version=random.choice(["1.0", "2.0"]),
            write_page_checksum=True,
            store_schema=random.random() < 0.7,
        )
    except (pa.ArrowException, NotImplementedError):  # Parquet does not hold such a column
        return False
    small = {(arrow, "_ROWS_PER_BATCH"): random.choice([1, 3, 64]), (level_sums, "_MAX_ROWS_PER_BLOCK"): 1}
    if random.random() < 0.4:  # damage: the same bytes, in other batches
        second.write_bytes(mutated_bytes(second.read_bytes(), random))
        return compare(second, second, schema, random, ({}, small))
    if random.random() < 0.5:
        with_store = pq.read_schema(second).equals(pq.read_schema(first))
        return (
            compare(first, second, schema, random, ({}, small))
            if with_store
            else compare(second, second, schema, random, ({}, small))
        )
    parts = folder / "row-groups"
    parts.mkdir(exist_ok=True)
    for old in parts.iterdir():
        old.unlink()
    cut = random.randrange(len(table) + 1)
    pq.write_table(table.slice(0, cut), parts / random.choice(["a.parquet", "z.parquet"]))
    pq.write_table(table.slice(cut), parts / "m.parquet")
    return compare(first, parts, schema, random, ({}, small))
