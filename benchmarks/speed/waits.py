"""
Processor time where a person waits: answers of wide releases, reports, forecasts, commands, releases, tables of engines.

``python -m benchmarks.speed.waits`` [--repeats 5] [--only ols-500 show] [--page]

Every turn runs each row once, and ``numpy.linalg.eigh`` of a 500 × 500 matrix, by which machines can be compared. Answers are
those of a release that was just loaded from its file (what a release has computed once it keeps) with up to 500 numbers of
20,000 rows, printed as text, by one thread. Three budgets make the release mostly noise, clear, and (of 100 numbers) between:
every coefficient of ``ols`` has an interval, by test inversion. Commands and the first release run in processes of their own,
which find the library compiled, as an installed one is. The first turn is not counted. Of 500 numbers a fit between the two is
not measured.

Releases of an array are compared with ``X.T @ X`` just before (``benchmarks.speed.releases``), and filtered tables of Spark and
Dask with a local pass over the same files just before (``benchmarks.speed.engines``; 2·10⁶ rows of 50 numbers).

``--page`` writes the table, and what it was measured with, into docs/evidence/scale.md: eight minutes of a machine that does
nothing else. Every row has a command of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.speed import engines, releases
from benchmarks.speed.kernel import processor
from dpmoments.privacy.sampling import SecureGenerator, discrete_gaussian
from dpmoments.rows.compiled import why_not_compiled
from dpmoments.rows.rows import Rows

N_ROWS, N_FEATURES = 20_000, 500
EPSILON = {"noise": 1.0, "between": 10.0, "clear": 1000.0}
"""Budgets by what they make of a release; ``between`` is for 100 numbers."""
PREDICTED = 100
ROWS_OF_ENGINES, COLUMNS_OF_ENGINES = 2_000_000, 50
COMMAND = "python -m benchmarks.speed.waits --only"
CHILD = (sys.executable, "-W", "ignore")
NARROW = "import numpy as np, dpmoments as dpm; x = np.random.default_rng(0).uniform(0, 1, (200, 6)); "
FIRST = NARROW + "dpm.release(x, dpm.Schema(*(dpm.Numeric(f'c{i}', 0, 1) for i in range(6))), epsilon=1.0)"


@dataclass
class Wait:
    """A row of the table: how a command names it, the figure of the issue, the target, and its turns.

    A turn returns processor seconds, or a ratio, with the shares of its steps if it has any.
    """

    key: str
    name: str
    before: str
    target: float | None
    turn: Callable[[], tuple[float, str]]
    found: list[tuple[float, str]] = field(default_factory=list)

    @property
    def least(self) -> float:
        return min(figure for figure, _ in self.found)

    @property
    def middle(self) -> float:
        return statistics.median(figure for figure, _ in self.found)

    @property
    def steps(self) -> str:
        return sorted(self.found)[len(self.found) // 2][1]


def seconds(prepare: Callable[[], Callable[[], Any]]) -> Callable[[], tuple[float, str]]:
    """Turns of a job that is made ready before the clock runs."""

    def turn() -> tuple[float, str]:
        job = prepare()
        start = used()
        job()
        return used() - start, ""

    return turn


def used() -> float:
    """Processor seconds of this process and its ended children."""
    return sum(
        resource.getrusage(who)[index] for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for index in (0, 1)
    )


def table(n_features: int) -> tuple[Any, dpm.Schema]:
    """Numbers with four common factors; the last column follows from the first five."""
    rng = np.random.default_rng(0)
    rows = 50 + 15 * rng.normal(size=(N_ROWS, n_features))
    rows += rng.normal(size=(N_ROWS, 4)) @ rng.normal(size=(4, n_features)) * 4
    rows[:, -1] = rows[:, :5].mean(axis=1) + 5 * rng.normal(size=N_ROWS)
    return rows, schema(n_features)


def schema(n_features: int) -> dpm.Schema:
    return dpm.Schema(*(dpm.Numeric(f"c{index}", 0, 100) for index in range(n_features)))


def saved(folder: Path, kind: str, n_features: int) -> Path:
    path = folder / f"{kind}-{n_features}.json"
    if not path.exists():
        data, columns = table(n_features)
        dpm.release(data, columns, epsilon=EPSILON[kind], delta=1e-9, mechanism="gaussian", insecure_seed=1).save(path)
    return path


def of_release(path: Path, answer: Callable[[Any], Any]) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        release = dpm.load(path)
        return lambda: answer(release)

    return prepare


def ready(job: Callable[[], Any]) -> Callable[[], Callable[[], Any]]:
    return lambda: job


def child(*command: str) -> Callable[[], Callable[[], Any]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: lambda: subprocess.run([*CHILD, *command], check=True, capture_output=True, env=environment)


def release_of_array(n_features: int) -> Callable[[], tuple[float, str]]:
    """Turns of a release relative to a product, with the shares of its steps."""

    @cache
    def measured() -> Callable[[], tuple[float, float, float]]:
        why_not_compiled()  # loads machine code
        return releases.turns(releases.ROWS[n_features], n_features)

    def turn() -> tuple[float, str]:
        ratio, of_pass, of_noise = measured()()
        rest = 1.0 - of_pass - of_noise
        return ratio, f"pass {100 * of_pass:.0f} %, noise {100 * of_noise:.0f} %, rest {100 * rest:.0f} %"

    return turn


@dataclass
class Engines:
    """Filtered tables of Spark and Dask, each engine started when it is asked for, and files they are of."""

    folder: Path
    opened: ExitStack

    @cached_property
    def schema(self) -> dpm.Schema:
        return dpm.Schema(*(dpm.Numeric(f"x{number}", -3, 3) for number in range(COLUMNS_OF_ENGINES)))

    @cached_property
    def files(self) -> Path:
        folder = self.folder / "rows"
        folder.mkdir()
        engines.write_files(folder, ROWS_OF_ENGINES, list(self.schema.names))
        return folder

    @cached_property
    def local(self) -> Rows:
        return Rows.of(self.files, self.schema, threads=2)

    @cached_property
    def dask(self) -> dict[str, Rows]:
        from distributed import Client, LocalCluster

        self.opened.enter_context(Client(self.opened.enter_context(LocalCluster(**engines.CLUSTER))))
        return self._checked(engines.filtered_by_dask(self.files))

    @cached_property
    def spark(self) -> dict[str, Rows]:
        session = engines.session_of_spark()
        self.opened.callback(session.stop)
        return self._checked(engines.filtered_by_spark(session, self.files))

    def _checked(self, tables: dict[str, Any]) -> dict[str, Rows]:
        result = {kind: Rows.of(table, self.schema) for kind, table in tables.items()}
        assert all(rows.moments() == self.local.moments() for rows in result.values())
        return result

    def turn(self, engine: str, kind: str) -> tuple[float, str]:
        rows = getattr(self, engine)[kind]
        _, before = engines.cost_of(self.local.moments)
        return engines.cost_of(rows.moments)[1] / before, ""


def waits(folder: Path, opened: ExitStack) -> Iterator[Wait]:
    """Every row; releases and tables are made when they are asked for."""
    d, target = N_FEATURES, f"c{N_FEATURES - 1}"
    matrix = np.random.default_rng(0).normal(size=(d, d))

    def wait(key: str, name: str, before: str, limit: float | None, prepare: Callable[[], Callable[[], Any]]) -> Wait:
        return Wait(key, name, before, limit, seconds(prepare))

    def answer_of(kind: str, n_features: int, answer: Callable[[Any], Any]) -> Callable[[], Callable[[], Any]]:
        return lambda: of_release(saved(folder, kind, n_features), answer)()

    def fit_of(kind: str, n_features: int) -> Callable[[], Callable[[], Any]]:
        return answer_of(kind, n_features, lambda release: str(release.ols(f"c{n_features - 1}")))

    def forecast_of(n_features: int) -> Callable[[], Callable[[], Any]]:
        return ready(lambda: str(dpm.forecast(schema(n_features), n_rows=N_ROWS, epsilon=1.0, delta=1e-9)))

    def draws_of(n_features: int) -> Callable[[], Callable[[], Any]]:
        return ready(lambda: discrete_gaussian(1e6, n_features * (n_features + 1) // 2, SecureGenerator()))

    yield wait("reference", f"reference: `eigh`, d = {d}", "", None, lambda: lambda: np.linalg.eigh(matrix @ matrix.T))
    answers: dict[str, tuple[str, Callable[[Any], Any], dict[str, str], float]] = {
        "describe": ("describe", lambda release: str(release.describe()), {}, 2.0),
        "correlations": ("correlations", lambda release: str(release.correlations()), {}, 2.0),
        "pca": ("pca", lambda release: str(release.pca()), {"noise": "10.5", "clear": "10.5"}, 2.0),
        "ols": ("ols, printed", lambda release: str(release.ols(target)), {"noise": "over 300"}, 2.0),
        "synthetic": (
            "synthetic, 10,000 rows",
            lambda release: release.synthetic(10_000, seed=0),
            {"noise": "9", "clear": "9"},
            2.0,
        ),
        "report": (
            "report",
            lambda release: dpm.report(release, folder / "report.html", overwrite=True),
            {"noise": "36–38", "clear": "36–38"},
            8.0,
        ),
    }
    for kind in ("noise", "clear"):
        for key, (name, answer, before, limit) in answers.items():
            prepare = answer_of(kind, d, answer)
            yield wait(f"{key}-{d}-{kind}", f"{name}, d = {d}, {kind}", before.get(kind, ""), limit, prepare)
    for size, kind, earlier in ((100, "noise", "3.6"), (200, "noise", "19"), (100, "between", "")):
        yield wait(f"ols-{size}-{kind}", f"ols, printed, d = {size}, {kind}", earlier, 2.0, fit_of(kind, size))
    for size, earlier, most in ((200, "6", 1.0), (d, "69", 2.0)):
        yield wait(f"forecast-{size}", f"forecast, d = {size}", earlier, most, forecast_of(size))
    for size, earlier in ((d, "2.0"), (2_000, "30")):
        yield wait(f"draws-{size}", f"exact discrete Gaussian noise, d = {size:,}", earlier, None, draws_of(size))

    @cache
    def small() -> str:
        path = folder / "small.json"
        rows, columns = table(6)
        dpm.release(rows, columns, epsilon=10.0, insecure_seed=1).save(path)
        return str(path)

    command = ("-m", "dpmoments")
    yield wait("help", "`dpmoments --help`", ".85", 0.25, child(*command, "--help"))
    yield wait("version", "`dpmoments --version`", "", 0.25, child(*command, "--version"))
    yield wait("show", "`dpmoments show`", "1.18", 0.6, lambda: child(*command, "show", small())())
    yield wait("ols-command", "`dpmoments ols`", "1.69", None, lambda: child(*command, "ols", small(), "c5")())
    yield wait("numpy", "`import numpy`", ".1", None, child("-c", "import numpy"))
    yield wait("import", "`import dpmoments`", "", 0.35, child("-c", "import dpmoments"))
    yield wait("first-release", "`import dpmoments`, first release", "1.2", 0.85, child("-c", FIRST))

    def predicted() -> Callable[[], Any]:
        frame = pd.DataFrame(table(100)[0][:PREDICTED], columns=[f"c{index}" for index in range(100)])
        fit = dpm.load(saved(folder, "between", 100)).ols("c99", [f"c{index}" for index in range(10)])
        return lambda: fit.get_prediction(frame).conf_int()

    yield wait("predictions", f"{PREDICTED} predictions by test inversion", "", 0.5, predicted)
    for size, earlier in ((10, "4.5"), (100, "4.4"), (500, "17")):
        name = f"`dpm.release` of an array, d = {size}, × `X.T @ X`"
        yield Wait(f"release-{size}", name, earlier, None, release_of_array(size))
    tables = Engines(folder, opened)
    for engine in ("spark", "dask"):
        for kind, said in (("comparison", "after a comparison"), ("filter", "after another filter")):
            name = f"{engine.title()} frame {said}, × a local pass"
            earlier = "9–11" if engine == "spark" else ""
            at_most = 4.0 if (engine, kind) == ("spark", "comparison") else None
            yield Wait(f"{engine}-{kind}", name, earlier, at_most, partial(tables.turn, engine, kind))


def page_lines(rows: list[Wait], repeats: int) -> Iterator[str]:
    yield (
        f"{processor()}; seconds of processor time; {repeats} turns; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"dpmoments {dpm.__version__}."
    )
    yield ""
    yield "| | before | minimum | median | target | steps | command |"
    yield "| --- | ---: | ---: | ---: | ---: | --- | --- |"
    for row in rows:
        figures = f"{row.before} | {row.least:.2f} | {row.middle:.2f} | {row.target or ''}"
        yield f"| {row.name} | {figures} | {row.steps} | `{COMMAND} {row.key}` |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed turns")
    parser.add_argument("--only", nargs="+", help="rows named so, or whose names begin so")
    parser.add_argument("--page", action="store_true", help="write the table into docs/evidence/scale.md")
    options = parser.parse_args()
    if options.page and options.only:
        parser.error("the page is of all rows: leave out --only")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened, threadpool_limits(1, user_api="blas"):
        rows = list(waits(Path(name), opened))
        if options.only:
            rows = [
                row for row in rows if any(row.key == word or row.key.startswith(f"{word}-") for word in options.only)
            ]
        if not rows:
            parser.error(f"no row named {' or '.join(options.only)}")
        for turn in range(options.repeats + 1):
            for row in rows:
                figure = row.turn()
                print(f"turn {turn}: {row.key}: {figure[0]:.3f}", file=sys.stderr, flush=True)
                if turn:
                    row.found.append(figure)
    lines = list(page_lines(rows, options.repeats))
    print("\n".join(lines))
    if options.page:
        write_part(EVIDENCE / "scale.md", "waits", lines)


if __name__ == "__main__":
    main()
