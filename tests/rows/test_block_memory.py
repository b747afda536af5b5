"""Blocks encoded into one thread's memory are those encoded into memory of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpmoments.rows.encode import encode_columns, encode_levels
from dpmoments.rows.level_sums import LevelLayout
from dpmoments.rows.summary import BlockMemory
from support.table_forms import SCHEMA, TABLE, make_table


@pytest.mark.parametrize("mean", [True, False])
def test_what_was_there_before_shows_in_no_block(mean: bool) -> None:
    memory = BlockMemory()
    memory.block(500, SCHEMA.n_features)[:] = 7.0
    for rows in (TABLE, make_table(33, seed=1), make_table(0), make_table(450, seed=2)):
        columns = {name: rows[name] for name in SCHEMA.names}
        layout = LevelLayout.of(SCHEMA, mean=mean)
        found = encode_levels(columns, SCHEMA, layout, memory)
        assert np.shares_memory(found.numbers, memory.block(1, 1)) or not len(found)
        np.testing.assert_array_equal(found.encoded(), encode_columns(columns, SCHEMA, mean=mean))


def test_threads_share_no_memory() -> None:
    memory = BlockMemory()
    mine = memory.block(10, 2)
    with ThreadPoolExecutor(1) as pool:
        assert not np.shares_memory(mine, pool.submit(memory.block, 10, 2).result())
