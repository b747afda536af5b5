"""Every mechanism by name; the command line, the forecast, the docs table and the contract tests read this."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import dpmoments.mechanisms as package
from dpmoments.mechanisms.base import Mechanism, registry_name

__all__ = ["make_mechanism", "mechanism_classes"]

NOT_MECHANISMS = {"base", "means", "parts", "registry"}


@cache
def mechanism_classes() -> Mapping[str, type[Mechanism]]:
    """All mechanism classes by registry name, sorted: found by importing every module of ``dpmoments.mechanisms``.

    Examples
    --------
    >>> "matrix-laplace" in mechanism_classes()
    True
    """
    found: dict[str, type[Mechanism]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name in NOT_MECHANISMS:
            continue
        for value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Mechanism) and "summary" in vars(value):
                found[registry_name(value)] = value
    return MappingProxyType(dict(sorted(found.items())))


def make_mechanism(mechanism: Mechanism | str, **options: Any) -> Mechanism:
    """Return the mechanism named, with its options; a Mechanism is returned as it is.

    Raises
    ------
    ValueError
        If no mechanism has that name.

    Examples
    --------
    >>> make_mechanism("laplace", calibration="paper")
    Laplace(calibration='paper')
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    if not isinstance(mechanism, str):
        raise TypeError(f"mechanism must be a name or a configured mechanism, got {type(mechanism).__name__}")
    classes = mechanism_classes()
    if mechanism not in classes:
        raise ValueError(f"there is no mechanism {mechanism!r}: use one of {', '.join(classes)}")
    return classes[mechanism](**options)
