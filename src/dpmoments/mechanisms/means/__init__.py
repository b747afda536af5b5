"""Mechanisms for mean-only releases, one estimator per file; ``base.py`` is their contract."""

from typing import Any

from dpmoments.base.loaded_classes import LoadedClasses
from dpmoments.mechanisms.entries import MEANS

_CLASSES: LoadedClasses[Any] = LoadedClasses({entry.partition(":")[2]: entry for entry in MEANS.values()})

__all__ = sorted(_CLASSES)


def __getattr__(name: str) -> Any:
    """Load and return a class with this name."""
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
