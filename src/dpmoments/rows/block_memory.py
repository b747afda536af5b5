"""Memory for encoded blocks that is asked for once, and not for every block."""

from __future__ import annotations

import threading

import numpy as np

from dpmoments.foundation.arrays import FloatArray

__all__ = ["BlockMemory"]


class BlockMemory(threading.local):
    """Memory of each thread for one block after another: the next block of a thread overwrites its last.

    A block of some tens of megabytes that is given back and asked for again comes from the system page by page, each of them
    zeroed: where an allocator keeps little (that of a Dask worker is told to), this takes as long as all arithmetic of a pass.

    Examples
    --------
    >>> memory = BlockMemory()
    >>> first = memory.block(4, 2)
    >>> first.shape, first.flags.f_contiguous, np.shares_memory(first, memory.block(3, 2))
    ((4, 2), True, True)
    """

    def __init__(self) -> None:
        self._cells = np.empty(0)

    def block(self, n_rows: int, n_features: int) -> FloatArray:
        """An array of this shape, stored column by column; what it holds is left from before."""
        size = n_rows * n_features
        if self._cells.size < size:
            self._cells = np.empty(size)
        return self._cells[:size].reshape((n_rows, n_features), order="F")
