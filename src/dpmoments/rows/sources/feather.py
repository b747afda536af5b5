"""Feather and other Arrow IPC files, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpmoments.foundation.table_files import open_ipc
from dpmoments.foundation.table_libraries import pa
from dpmoments.rows.sources.arrow import StreamedFileSource, with_bytes_read
from dpmoments.rows.sources.reading import read_quietly

__all__ = ["FeatherSource"]


@dataclass(frozen=True, eq=False)
class FeatherSource(StreamedFileSource):
    """Rows of Arrow IPC files and streams (Feather V2); one of their own batches is in memory at a time."""

    def names_in(self, path: Path) -> list[str]:
        with read_quietly(partial(open_ipc, path), path) as reader:
            return read_quietly(lambda: list(reader.schema.names), path)

    def batches(self, path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = self.names_in(path)
        wanted = [own.index(name) for name in names]
        reached = [0]
        source = read_quietly(partial(pa.OSFile, str(path)), path)
        with read_quietly(partial(open_ipc, path, columns=wanted, source=source), path) as reader:
            yield from with_bytes_read(self.sliced(_validated(reader, source, reached), path), lambda: reached[0])


def _validated(reader: Any, source: Any, reached: list[int]) -> Iterator[pa.RecordBatch]:
    """The batches of a file or a stream; a damaged one is refused before a cell of it is looked at: offsets may lead anywhere.

    How far the file was read is left in ``reached[0]``; batches of a file that is read out of order are taken to be of one size.
    """
    n_batches = getattr(reader, "num_record_batches", None)
    if n_batches is None:
        for batch in reader:
            batch.validate(full=True)
            reached[0] = source.tell()
            yield batch
        return
    for place in range(n_batches):
        batch = reader.get_batch(place)
        batch.validate(full=True)
        reached[0] = source.size() * (place + 1) // n_batches
        yield batch
