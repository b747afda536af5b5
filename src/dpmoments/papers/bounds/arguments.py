"""Checks of the arguments that accuracy bounds share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.messages.message import Message

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Constants = Literal["sharp", "paper"]
"""Choice between our sharp constants and the constants of the paper's proof."""
NoiseKind = Literal["laplace", "gaussian"]
_CHOICES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {"Constants": get_args(Constants), "NoiseKind": get_args(NoiseKind)}
)
_PROBABILITIES = frozenset({"failure", "step_failure", "clip_failure", "delta"})
_POSITIVE = frozenset(
    {"rho", "epsilon", "error", "relative_error", "stop_at", "clip_constant", "row_norm_square", "degrees"}
)
_UNBOUNDED = frozenset({"most", "largest", "near", "sampling", "noise"})
"""Names of arguments that may be infinite."""


def checked(bound: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a function of public numbers so that it refuses impossible arguments.

    Counts are whole and above 0, probabilities strictly between 0 and 1; budgets and errors are positive, all else is finite
    and not negative.
    """
    signature = inspect.signature(bound)

    @wraps(bound)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
        for name, value in signature.bind(*given, **named).arguments.items():
            _check(name, str(signature.parameters[name].annotation), value)
        return bound(*given, **named)

    return answer


def _check(name: str, annotation: str, value: Any) -> None:
    if annotation in _CHOICES and value not in _CHOICES[annotation]:
        raise InputValueError(Message("not-one-of", parameter=name, value=value, choices=[*_CHOICES[annotation]]))
    kind, _, optional = annotation.partition(" | ")
    if kind not in ("int", "float") or (optional == "None" and value is None):
        return
    if isinstance(value, bool) or not isinstance(value, Integral if kind == "int" else Real):
        raise InputTypeError(f"{name}={value!r} must be a {'whole number' if kind == 'int' else 'number'}")
    if kind == "int":
        if float(value) < 1.0:
            raise InputValueError(Message("out-of-range", parameter=name, value=value, expected="at least 1"))
    elif name in _PROBABILITIES:
        if not 0.0 < float(value) < 1.0:
            raise InputValueError(
                Message("out-of-range", parameter=name, value=value, expected="a probability, above 0 and below 1")
            )
    elif not (name in _UNBOUNDED and value == math.inf):
        check_positive(name, float(value), or_zero=name not in _POSITIVE)


def descending(eigenvalues: npt.ArrayLike) -> FloatArray:
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all() or (values < 0.0).any():
        raise InputValueError("eigenvalues must be a vector of finite numbers that are not negative")
    return np.asarray(np.sort(values)[::-1])


def check_draw(temperature: float, spread: float, n_features: int) -> None:
    check_positive("temperature", temperature, or_zero=True)
    check_positive("spread", spread, or_zero=True)
    check_dimension(n_features)


def check_dimension(n_features: int) -> None:
    if n_features < 1:
        raise InputValueError(f"n_features={n_features!r}: a sphere needs at least one dimension")


def check_positive(name: str, value: float, *, or_zero: bool = False) -> None:
    if not (0.0 < value < math.inf or (or_zero and value == 0.0)):
        raise InputValueError(f"{name}={value!r} must be finite and {'not negative' if or_zero else 'positive'}")


# Rows needed for a bound on an error.

_MAX_ROWS = 2**50


def least_rows(error_at: Callable[[int], float], error: float) -> int:
    """Return the fewest rows n with error_at(n) ≤ ``error``, for a bound that falls with n."""
    if not error > 0.0:
        raise InputValueError(Message("out-of-range", parameter="error", value=error, expected="above 0"))
    enough = 2
    while not error_at(enough) <= error:
        enough *= 2
        if enough > _MAX_ROWS:
            raise InputValueError(f"no number of rows reaches error={error!r}: use a larger error")
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        if error_at(middle) <= error:
            enough = middle
        else:
            few = middle
    return enough
