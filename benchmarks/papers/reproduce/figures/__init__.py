"""Every figure of the papers, in their order, and those beside them: one module a paper, its declarations ``FIGURES``."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import amin, beside_amin, beside_sheffet, coinpress, replication, sheffet

FIGURES = (*amin.FIGURES, *replication.FIGURES, *sheffet.FIGURES, *coinpress.FIGURES)
"""CoinPress's Figure 2 is its algorithm."""
BESIDE = (*beside_amin.FIGURES, *beside_sheffet.FIGURES)
"""Ours: what the papers' figures leave open."""


def named(name: str) -> Figure:
    return next(figure for figure in (*FIGURES, *BESIDE) if figure.name == name)
