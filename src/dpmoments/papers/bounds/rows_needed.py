"""The number of rows at which a bound on an error is small enough."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["least_rows"]

MOST_ROWS = 2**50


def least_rows(error_at: Callable[[int], float], error: float) -> int:
    """The fewest rows n with error_at(n) ≤ ``error``, for a bound that falls with n.

    Raises
    ------
    ValueError
        If no number of rows up to 2⁵⁰ is enough.

    Examples
    --------
    >>> least_rows(lambda n: 5.0 / n, 0.01)
    500
    """
    if not error > 0.0:
        raise ValueError(f"error={error!r} must be above 0")
    enough = 2
    while not error_at(enough) <= error:
        enough *= 2
        if enough > MOST_ROWS:
            raise ValueError(f"no number of rows brings the bound down to error={error!r}: ask for a larger one")
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        if error_at(middle) <= error:
            enough = middle
        else:
            few = middle
    return enough
