"""The replication report, Figure 3: Airfoil."""

from __future__ import annotations

from benchmarks.papers.reproduce.figures.replication import figure

FIGURE = figure("3", "airfoil", "Airfoil", "d = 5, n = 1,503")
