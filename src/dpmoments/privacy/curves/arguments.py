"""Checks of the public parameters that every privacy curve takes."""

import math

__all__ = ["require_delta", "require_nonnegative", "require_positive"]


def require_positive(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is not a positive finite number.

    >>> require_positive("epsilon", 1)
    1.0
    """
    number = float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be a positive finite number; got {value!r}")
    return number


def require_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is negative, infinite or not a number.

    >>> require_nonnegative("epsilon", 0)
    0.0
    """
    number = float(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name} must be a non-negative finite number; got {value!r}")
    return number


def require_delta(value: float) -> float:
    """Return ``value`` as a float, or raise if it is not strictly between 0 and 1.

    >>> require_delta(1e-9)
    1e-09
    """
    number = float(value)
    if not 0.0 < number < 1.0:
        raise ValueError(
            f"delta must lie strictly between 0 and 1; got {value!r}. "
            "For delta = 0 use a mechanism for pure differential privacy or a zCDP budget."
        )
    return number
