"""Mechanisms, one algorithm per file, and the parts that several of them share.

``base.py`` is their contract, ``registry.py`` finds them by name.
"""

from typing import Any

from dpmoments.mechanisms.entries import MOMENTS, class_named

__all__ = [*sorted(entry.partition(":")[2] for entry in MOMENTS.values()), "means"]


def __getattr__(name: str) -> Any:
    """Load and return a class or the mechanisms of means."""
    if name == "means":
        import dpmoments.mechanisms.means as means

        return means
    if name in __all__:
        return class_named(name, MOMENTS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
