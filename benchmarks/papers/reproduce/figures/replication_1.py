"""The replication report, Figure 1: Wine."""

from __future__ import annotations

from benchmarks.papers.reproduce.figures.replication import figure

FIGURE = figure("1", "wine", "Wine", "d = 13, n = 178")
