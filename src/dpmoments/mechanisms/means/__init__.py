"""Mechanisms for mean-only releases, one estimator per file; ``base.py`` is their contract."""

from typing import Any

from dpmoments.mechanisms.entries import MEANS, class_named

__all__ = sorted(entry.partition(":")[2] for entry in MEANS.values())


def __getattr__(name: str) -> Any:
    """Load and return a class with this name."""
    if name in __all__:
        return class_named(name, MEANS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
