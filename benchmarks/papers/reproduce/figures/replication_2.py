"""The replication report, Figure 2: Adult."""

from __future__ import annotations

from benchmarks.papers.reproduce.figures.replication import figure

FIGURE = figure("2", "adult", "Adult", "d = 97, n = 45,222")
