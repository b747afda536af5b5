"""Every figure of the papers: one declaration a figure, one runner, one plotter, one page (``docs/reproduction.md``).

    python -m benchmarks.papers.reproduce [--quick] [--only NAME …] [--budget] [--page]

``make reproduce`` runs it. What a figure shows is in ``figures/``, how a point of it is measured in ``experiments/``.
"""
