"""What the kernel needs of the linear algebra library: one thread a product, exact integer products."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = ["require_exact_products", "single_threaded_blas", "usable_cores"]

_lock = threading.Lock()
_users = 0
_limit: Any = None


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """
    Hold BLAS to one thread a call, process-wide, while any caller is inside; then restore what was set.

    The kernel runs one product a core; a BLAS that starts threads of its own for each would only get in the
    way.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = ThreadpoolController().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None


@cache
def require_exact_products() -> None:
    """
    Check, once a process, that float64 matrix products of integers are exact up to 2^53.

    A library that computes them in a reduced precision (an accelerator's emulation, say) would break the
    bound that privacy rests on. The test is on fixed integers, not on data, in the shapes and layouts the
    kernel uses.

    Raises
    ------
    RuntimeError
        If a product differs from the same one in int64 arithmetic.
    """
    for n_rows, n_features in ((8192, 3), (4099, 17), (515, 130)):
        # Odd integers of up to 20 bits, most of them with all low bits in use; partial sums reach 2^52.
        integers = (np.arange(n_rows * n_features, dtype=np.int64) * 2_654_435_761 % (1 << 20)) | 1
        integers = integers.reshape(n_rows, n_features)
        if n_features > 3:
            integers[::2] *= -1
            integers[:, ::3] *= -1
        exact = np.einsum("ij,ik->jk", integers, integers)
        for rows in (integers.astype(np.float64), np.asfortranarray(integers.astype(np.float64))):
            products = (rows.T @ rows, rows.T @ rows.copy())  # the symmetric and the general product
            if not all(np.array_equal(product, exact) for product in products):
                raise RuntimeError(
                    "this linear algebra library rounds float64 products of integers below 2^53, but the "
                    "exact sums that privacy rests on need them; use a NumPy built on a full-precision BLAS"
                )
