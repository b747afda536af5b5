"""Sources of randomness: the operating system, through a cryptographic bit generator."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.base.errors import InputTypeError

if TYPE_CHECKING:
    from randomgen import AESCounter


class SecureGenerator(np.random.Generator):
    """``numpy.random.Generator`` keyed by the operating system.

    Its type marks a release as private.

    Only :func:`secure_generator` makes one. Noise with an exact integer sampler (``privacy/discrete.py``) is then drawn with bits
    of the operating system itself.
    """

    def __init__(self) -> None:
        # All 128 bits of the AES key come from the operating system; `seed=` would go through a 64-bit mixer first.
        super().__init__(_fresh_bits())
        _living.add(self)

    def __reduce__(self) -> Any:
        raise InputTypeError("a SecureGenerator cannot be copied or stored: two releases would share their noise")


_living: weakref.WeakSet[SecureGenerator] = weakref.WeakSet()


def _fresh_bits() -> AESCounter:
    from randomgen import AESCounter

    return AESCounter(key=np.frombuffer(os.urandom(16), dtype=np.uint64))


def _rekey_after_fork() -> None:
    """Draw a new key: otherwise a forked process would draw the same noise as its parent."""
    for generator in list(_living):
        generator.bit_generator.state = _fresh_bits().state


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_after_fork)


def secure_generator() -> SecureGenerator:
    """Return a generator with a fresh 128-bit key from the operating system."""
    return SecureGenerator()


def insecure_generator(seed: int) -> np.random.Generator:
    """Return a generator that repeats itself, for tests and benchmarks.

    Its releases are not private.

    Examples
    --------
    >>> float(insecure_generator(1).random()) == float(insecure_generator(1).random())
    True
    """
    return np.random.default_rng(seed)
