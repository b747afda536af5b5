"""Every figure of the papers, in their order, and those beside them: one module a figure, its declaration ``FIGURE``."""

from __future__ import annotations

from importlib import import_module

from benchmarks.papers.reproduce.declaration import Figure

__all__ = ["BESIDE", "FIGURES", "NAMES", "NAMES_BESIDE", "named"]

NAMES = (
    *("amin-1a", "amin-1b", "amin-2a", "amin-2b", "amin-3", "amin-4", "amin-5"),
    *("replication-1", "replication-2", "replication-3"),
    *(f"sheffet-{number}" for number in range(1, 7)),
    *("coinpress-1", "coinpress-3", "coinpress-4", "coinpress-5", "coinpress-6", "coinpress-7", "coinpress-8"),
)
"""CoinPress's Figure 2 is its algorithm."""
NAMES_BESIDE = (
    *(
        f"beside-amin-{name}"
        for name in ("calibrations", "forms", "scalings", "normalize", "rates", "dimensions", "regimes")
    ),
    *(f"beside-sheffet-{name}" for name in ("repairs", "collinear", "outputs")),
)
"""Ours: what the papers' figures leave open."""


def named(name: str) -> Figure:
    """The declaration of a figure."""
    figure: Figure = import_module(f"{__name__}.{name.replace('-', '_')}").FIGURE
    return figure


FIGURES = tuple(named(name) for name in NAMES)
BESIDE = tuple(named(name) for name in NAMES_BESIDE)
