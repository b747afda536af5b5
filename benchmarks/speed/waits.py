"""
Processor time where a person waits: answers of wide releases, reports, forecasts, commands, the first release of a process.

``python -m benchmarks.speed.waits`` [--repeats 5] [--only ols command] [--page]

Every turn runs each row once, and ``numpy.linalg.eigh`` of a 500 × 500 matrix, by which machines can be compared. Answers are
those of a release that was just loaded from its file (what a release has computed once it keeps) with up to 500 numbers of
20,000 rows, printed as text, by one thread. Three budgets make the release mostly noise, clear, and (of 100 numbers) between:
every coefficient of ``ols`` has an interval, by test inversion. Commands and the first release run in processes of their own.
The first turn is not counted. Of 500 numbers a fit between the two is not measured.

``--page`` writes the table, and what it was measured with, into docs/evidence/scale.md.
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.speed.kernel import processor
from dpmoments.noise.discrete import discrete_gaussian
from dpmoments.noise.entropy import SecureGenerator

N_ROWS, N_FEATURES = 20_000, 500
EPSILON = {"noise": 1.0, "between": 10.0, "clear": 1000.0}
"""Budgets by what they make of a release; ``between`` is for 100 numbers."""
PREDICTED = 100
CHILD = (sys.executable, "-W", "ignore")
NARROW = "import numpy as np, dpmoments as dpm; x = np.random.default_rng(0).uniform(0, 1, (200, 6)); "
FIRST = NARROW + "dpm.release(x, dpm.Schema(*(dpm.Numeric(f'c{i}', 0, 1) for i in range(6))), epsilon=1.0)"


@dataclass
class Wait:
    """A row of the table: the figure of the issue, the target, how one turn is made ready, and the timed turns."""

    name: str
    before: str
    target: float | None
    prepare: Callable[[], Callable[[], Any]]
    seconds: list[float] = field(default_factory=list)

    def turn(self) -> float:
        job = self.prepare()
        start = used()
        job()
        return used() - start


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
    """The file of a release."""
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
    return lambda: lambda: subprocess.run([*CHILD, *command], check=True, capture_output=True)


def waits(folder: Path) -> Iterator[Wait]:
    """Every row; releases are made when they are asked for."""
    target = f"c{N_FEATURES - 1}"
    matrix = np.random.default_rng(0).normal(size=(N_FEATURES, N_FEATURES))
    yield Wait("reference: `eigh`, d = 500", "", None, lambda: lambda: np.linalg.eigh(matrix @ matrix.T))
    answers: dict[str, tuple[Callable[[Any], Any], dict[str, str], float]] = {
        "describe": (lambda release: str(release.describe()), {}, 2.0),
        "correlations": (lambda release: str(release.correlations()), {}, 2.0),
        "pca": (lambda release: str(release.pca()), {"noise": "10.5", "clear": "10.5"}, 2.0),
        "ols, printed": (lambda release: str(release.ols(target)), {"noise": "over 300"}, 2.0),
        "synthetic, 10,000 rows": (
            lambda release: release.synthetic(10_000, seed=0),
            {"noise": "9", "clear": "9"},
            2.0,
        ),
        "report": (
            lambda release: dpm.report(release, folder / "report.html", overwrite=True),
            {"noise": "36–38", "clear": "36–38"},
            8.0,
        ),
    }
    for kind in ("noise", "clear"):
        for name, (answer, before, limit) in answers.items():
            path = saved(folder, kind, N_FEATURES)
            yield Wait(f"{name}, d = {N_FEATURES}, {kind}", before.get(kind, ""), limit, of_release(path, answer))
    for d, kind, before in ((100, "noise", "3.6"), (200, "noise", "19"), (100, "between", "")):
        path, last = saved(folder, kind, d), f"c{d - 1}"
        fit = of_release(path, lambda release, y=last: str(release.ols(y)))
        yield Wait(f"ols, printed, d = {d}, {kind}", before, 2.0, fit)
    for d, before in ((200, "6"), (N_FEATURES, "69")):
        forecast = ready(lambda d=d: str(dpm.forecast(schema(d), n_rows=N_ROWS, epsilon=1.0, delta=1e-9)))
        yield Wait(f"forecast, d = {d}", before, 2.0, forecast)
    for d, before in ((N_FEATURES, "2.0"), (2_000, "30")):
        draw = ready(lambda size=d * (d + 1) // 2: discrete_gaussian(1e6, size, SecureGenerator()))
        yield Wait(f"exact discrete Gaussian noise, d = {d:,}", before, None, draw)
    small = folder / "small.json"
    rows, columns = table(6)
    dpm.release(rows, columns, epsilon=10.0, insecure_seed=1).save(small)
    command = ("-m", "dpmoments_command")
    yield Wait("`dpmoments --help`", ".85", 0.25, child(*command, "--help"))
    yield Wait("`dpmoments --version`", "", 0.25, child(*command, "--version"))
    yield Wait("`dpmoments show`", "1.18", 0.6, child(*command, "show", str(small)))
    yield Wait("`dpmoments ols`", "1.69", None, child(*command, "ols", str(small), "c5"))
    yield Wait("`import numpy`", ".1", None, child("-c", "import numpy"))
    yield Wait("`import dpmoments`", "", 0.35, child("-c", "import dpmoments"))
    yield Wait("`import dpmoments`, first release", "1.2", 0.85, child("-c", FIRST))
    frame = pd.DataFrame(table(100)[0][:PREDICTED], columns=[f"c{index}" for index in range(100)])
    many = str(PREDICTED)

    def predicted() -> Callable[[], Any]:
        fit = dpm.load(saved(folder, "between", 100)).ols("c99", [f"c{index}" for index in range(10)])
        return lambda: fit.get_prediction(frame).conf_int()

    yield Wait(f"{many} predictions by test inversion", "", None, predicted)


def page_lines(rows: list[Wait], repeats: int) -> Iterator[str]:
    """The table of docs/evidence/scale.md, after what it was measured with."""
    yield (
        f"{processor()}; seconds of processor time; {repeats} turns; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"dpmoments {dpm.__version__}."
    )
    yield ""
    yield "| | before | minimum | median | target |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for row in rows:
        least, middle = (f"{value:.2f}" for value in (min(row.seconds), statistics.median(row.seconds)))
        yield f"| {row.name} | {row.before} | {least} | {middle} | {row.target or ''} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed turns")
    parser.add_argument("--only", nargs="+", help="rows whose names have one of these words in them")
    parser.add_argument("--page", action="store_true", help="write the table into docs/evidence/scale.md")
    options = parser.parse_args()
    if options.page and options.only:
        parser.error("the page is of all rows: leave out --only")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1, user_api="blas"):
        rows = [row for row in waits(Path(name)) if not options.only or any(word in row.name for word in options.only)]
        for turn in range(options.repeats + 1):
            for row in rows:
                seconds = row.turn()
                print(f"turn {turn}: {row.name}: {seconds:.3f}", file=sys.stderr, flush=True)
                if turn:
                    row.seconds.append(seconds)
    lines = list(page_lines(rows, options.repeats))
    print("\n".join(lines))
    if options.page:
        write_part(EVIDENCE / "scale.md", "waits", lines)


if __name__ == "__main__":
    main()
