"""Several regressions from one release of a table with nearly collinear columns, ours, rows added or removed.

The error is that of least squares from the release against least squares **on the table itself**, the mean of four targets: the
price of privacy alone. Panel: ``features``, all ten (error of the predictions) or the five that are independent (error of the
coefficients), from the same release; ``epsilon``; x is n, which is public. A new table in every trial. Method: ``technique`` and
``calibration``; or ``knows`` the covariance that made the rows, whose error is what n rows cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments.regressions import ADD_REMOVE, with_its_plan
from benchmarks.papers.sheffet.techniques import multiple_regressions
from benchmarks.papers.summed_once import summed_once
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator

TABLES = multiple_regressions(predictions=True)
"""Both questions are asked of the same tables."""


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    n, epsilon = int(point.x), float(point.settings["epsilon"])
    asked = multiple_regressions(predictions=point.settings["features"] == "all")
    rows = summed_once(TABLES.table(n, point.rng("table", of=())), ADD_REMOVE)
    for method in methods:
        settings = dict(method.settings)
        if settings.get("knows") == "covariance":
            estimate = TABLES.covariance
        else:
            technique, plan = with_its_plan(settings["technique"], settings["calibration"], TABLES.name, n, epsilon)
            generator = insecure_generator(point.seed("noise", settings, of=("epsilon",)))
            noisy = plan.run(rows, PrivacyFilter(plan, generator))
            estimate = technique.repair(noisy.gram, plan)
        (error,) = asked.errors([estimate], rows.gram)
        yield method.label, "error", error
