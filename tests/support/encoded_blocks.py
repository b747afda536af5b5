"""Encoded rows one block after another, for tests of encodings: no mechanism may ask for them, since they have an order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.summary import plain_rows


def encoded_blocks(rows: Rows) -> Iterator[np.ndarray]:
    """Dropped rows are left out."""
    assert isinstance(rows.source, LocalSource)
    for block in rows.source.blocks():
        yield plain_rows(block, rows.source.missing)
        if rows.on_block is not None:
            rows.on_block(len(block))
