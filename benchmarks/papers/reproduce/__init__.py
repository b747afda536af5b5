"""Every figure of the papers and those beside them: one declaration a figure, one runner, one plotter, a page of each kind.

``docs/evidence/reproduction.md`` has the papers' figures, ``docs/evidence/beside-the-figures.md`` those that are ours.

    python -m benchmarks.papers.reproduce [--quick] [--only NAME …] [--workers 2] [--budget | --page]

``make reproduce`` runs it. What a figure shows is in ``figures/``, how a point of it is measured in ``experiments/``. Results are
kept in ``build/reproduction``, one Parquet file a task: a run that was broken off goes on where it was. A changed
declaration, or a changed statement of its experiment, is run again. A changed library is not: the page names the commits that its
numbers are from, and a folder that is deleted is measured anew.

All tables but POPRES are part of the library, or drawn (``../datasets.py``). POPRES is looked for in the folder that the
environment variable ``DPMOMENTS_DATA`` names, then in the cache, then where it was published; where it cannot be had its figure
is left out with a notice. Curves that the authors of CoinPress published are compared with where that folder has them.
"""
