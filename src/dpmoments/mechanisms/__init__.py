"""Mechanisms: one published algorithm a file; ``base.py`` is the contract they obey.

The classes are found by name: ``dpmoments.mechanisms.MatrixLaplace`` is the class that the registry calls
``matrix-laplace``.
"""

from typing import Any

__all__ = ["MomentShape"]


def __getattr__(name: str) -> Any:
    from dpmoments.mechanisms.base import MomentShape
    from dpmoments.mechanisms.registry import mechanism_classes

    if name == "MomentShape":
        return MomentShape
    for mechanism in mechanism_classes().values():
        if mechanism.__name__ == name:
            return mechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from dpmoments.mechanisms.registry import mechanism_classes

    return sorted([*globals(), *__all__, *(mechanism.__name__ for mechanism in mechanism_classes().values())])
