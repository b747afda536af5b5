"""Checks of the arguments that accuracy bounds share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from dpmoments.base.checks import (
    check_at_least,
    check_not_negative,
    check_positive,
    check_probability,
    check_vector,
    not_one_of,
)
from dpmoments.base.errors import InputValueError, shown, wrong_type
from dpmoments.base.values import FloatArray

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
    """Wrap a function of public numbers so that it refuses impossible arguments."""
    # Counts are whole and above 0, probabilities strictly between 0 and 1; budgets and errors are positive, all else is
    # finite and not negative.
    signature = inspect.signature(bound)

    @wraps(bound)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
        for name, value in signature.bind(*given, **named).arguments.items():
            _check(name, str(signature.parameters[name].annotation), value)
        return bound(*given, **named)

    return answer


def _check(name: str, annotation: str, value: Any) -> None:
    if annotation in _CHOICES and value not in _CHOICES[annotation]:
        raise not_one_of(name, value, _CHOICES[annotation])
    kind, _, optional = annotation.partition(" | ")
    if kind not in ("int", "float") or (optional == "None" and value is None):
        return
    if isinstance(value, bool) or not isinstance(value, Integral if kind == "int" else Real):
        expected = "a whole number" if kind == "int" else "a number"
        raise wrong_type(name, expected, value)
    if kind == "int":
        check_at_least(name, value)
    elif name in _PROBABILITIES:
        check_probability(name, float(value))
    elif name in _POSITIVE:
        check_positive(name, float(value))
    elif not (name in _UNBOUNDED and value == math.inf):
        check_not_negative(name, float(value))


def descending(eigenvalues: npt.ArrayLike) -> FloatArray:
    values = np.asarray(eigenvalues, dtype=np.float64)
    check_vector("eigenvalues", values)
    check_not_negative("eigenvalues", float(values.min()))
    return np.asarray(np.sort(values)[::-1])


# Rows needed for a bound on an error.

_MAX_ROWS = 2**50


def least_rows(error_at: Callable[[int], float], error: float) -> int:
    """Return the fewest rows n with error_at(n) ≤ ``error``, for a bound that falls with n."""
    check_positive("error", error)
    enough = 2
    while not error_at(enough) <= error:
        enough *= 2
        if enough > _MAX_ROWS:
            raise InputValueError(f"no number in floating-point range reaches error={shown(error)}: use a larger one")
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        if error_at(middle) <= error:
            enough = middle
        else:
            few = middle
    return enough


def rows_needed(
    bound: Callable[Concatenate[int, Parameters], float],
) -> Callable[Concatenate[float, Parameters], int]:
    """Return the function of an error, in place of the rows, that gives the fewest rows for it."""

    def needed(error: float, *given: Parameters.args, **named: Parameters.kwargs) -> int:
        return least_rows(lambda n: bound(n, *given, **named), error)

    signature = inspect.signature(bound)
    error = inspect.Parameter("error", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="float")
    others = [parameter for name, parameter in signature.parameters.items() if name != "n_rows"]
    needed.__signature__ = signature.replace(parameters=[error, *others], return_annotation="int")  # type: ignore[attr-defined]
    needed.__name__ = needed.__qualname__ = bound.__name__.replace("_error", "_rows_needed")
    needed.__module__ = bound.__module__
    needed.__doc__ = f"Return the fewest rows for a :func:`{bound.__name__}` of at most ``error``."
    return checked(needed)  # type: ignore[return-value]  # a parameter that may be named
