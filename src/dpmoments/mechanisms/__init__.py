"""Mechanisms, one algorithm per file, and the parts that several of them share.

``base.py`` is their contract, ``registry.py`` finds them by name.
"""

from typing import Any

from dpmoments.base.loaded_classes import LoadedClasses
from dpmoments.mechanisms.entries import MOMENTS

_CLASSES: LoadedClasses[Any] = LoadedClasses({entry.partition(":")[2]: entry for entry in MOMENTS.values()})

__all__ = [*sorted(_CLASSES), "means"]


def __getattr__(name: str) -> Any:
    """Load and return a class or the mechanisms of means."""
    if name == "means":
        import dpmoments.mechanisms.means as means

        return means
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
