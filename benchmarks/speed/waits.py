"""Processor time where a person waits: answers of wide releases, reports, forecasts, commands, releases.

``python -m benchmarks.speed.waits`` writes the table, and what it was measured with, into docs/evidence/scale.md;
``--only ols-500 show`` prints rows of it.

Every turn runs each row once, and ``numpy.linalg.eigh`` of a 500 × 500 matrix, by which machines can be compared. Answers are
those of a release that was just loaded from its file (what a release has computed once it keeps) with up to 500 numbers of
20,000 rows, printed as text, by one thread. Three budgets make the release mostly noise, clear, and (of 100 numbers) between:
every coefficient of ``ols`` has an interval, by test inversion. Commands and the first release run in processes of their own,
which find the library compiled, as an installed one is. The first turn is not counted. Of 500 numbers a fit between the two is
not measured.
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
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.speed.timing import processor
from dpmoments.privacy.sampling import SecureGenerator, discrete_gaussian

N_ROWS, N_FEATURES = 20_000, 500
EPSILON = {"noise": 1.0, "between": 10.0, "clear": 1000.0}
"""Budgets by what they make of a release; ``between`` is for 100 numbers."""
PREDICTED = 100
TURNS = 5
COMMAND = "python -m benchmarks.speed.waits --only"
CHILD = (sys.executable, "-W", "ignore")
NARROW = "import numpy as np, dpmoments as dpm; x = np.random.default_rng(0).uniform(0, 1, (200, 6)); "
FIRST = NARROW + "dpm.release(x, dpm.Schema(*(dpm.Numeric(f'c{i}', 0, 1) for i in range(6))), epsilon=1.0)"


Prepared = Callable[[], Callable[[], Any]]
"""Makes a job ready before the clock runs."""


@dataclass
class Wait:
    """A row of the table: how a command names it, the figure of the issue, the target, and its turns."""

    key: str
    name: str
    before: str
    target: float | None
    prepare: Prepared
    found: list[float] = field(default_factory=list)

    def turn(self) -> float:
        """Processor seconds."""
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
    path = folder / f"{kind}-{n_features}.json"
    if not path.exists():
        data, columns = table(n_features)
        dpm.release(data, columns, epsilon=EPSILON[kind], delta=1e-9, mechanism="gaussian", insecure_seed=1).save(path)
    return path


def child(*command: str) -> Prepared:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: lambda: subprocess.run([*CHILD, *command], check=True, capture_output=True, env=environment)


def waits(folder: Path) -> Iterator[Wait]:
    """Every row; releases and tables are made when they are asked for."""
    d, target = N_FEATURES, f"c{N_FEATURES - 1}"
    matrix = np.random.default_rng(0).normal(size=(d, d))

    def answer_of(kind: str, n_features: int, answer: Callable[[Any], Any]) -> Prepared:
        def prepare() -> Callable[[], Any]:
            release = dpm.load(saved(folder, kind, n_features))
            return lambda: answer(release)

        return prepare

    yield Wait("reference", f"reference: `eigh`, d = {d}", "", None, lambda: lambda: np.linalg.eigh(matrix @ matrix.T))

    def synthetic(release: Any) -> Any:
        return release.synthetic(10_000, seed=0)

    def report(release: Any) -> Any:
        return dpm.report(release, folder / "report.html", overwrite=True)

    answers: dict[str, tuple[str, Callable[[Any], Any], dict[str, str], float]] = {
        "describe": ("describe", lambda release: str(release.describe()), {}, 2.0),
        "correlations": ("correlations", lambda release: str(release.correlations()), {}, 2.0),
        "pca": ("pca", lambda release: str(release.pca()), {"noise": "10.5", "clear": "10.5"}, 2.0),
        "ols": ("ols, printed", lambda release: str(release.ols(target)), {"noise": "over 300"}, 2.0),
        "synthetic": ("synthetic, 10,000 rows", synthetic, {"noise": "9", "clear": "9"}, 2.0),
        "report": ("report", report, {"noise": "36–38", "clear": "36–38"}, 8.0),
    }
    for kind in ("noise", "clear"):
        for key, (name, answer, before, limit) in answers.items():
            prepare = answer_of(kind, d, answer)
            yield Wait(f"{key}-{d}-{kind}", f"{name}, d = {d}, {kind}", before.get(kind, ""), limit, prepare)
    for size, kind, earlier in ((100, "noise", "3.6"), (200, "noise", "19"), (100, "between", "")):
        fit = answer_of(kind, size, lambda release, size=size: str(release.ols(f"c{size - 1}")))
        yield Wait(f"ols-{size}-{kind}", f"ols, printed, d = {size}, {kind}", earlier, 2.0, fit)
    for size, earlier, most in ((200, "6", 1.0), (d, "69", 2.0)):
        forecast = partial(dpm.forecast, schema(size), n_rows=N_ROWS, epsilon=1.0, delta=1e-9)
        yield Wait(f"forecast-{size}", f"forecast, d = {size}", earlier, most, lambda of=forecast: lambda: str(of()))
    for size, earlier in ((d, "2.0"), (2_000, "30")):
        draws = partial(discrete_gaussian, 1e6, size * (size + 1) // 2, SecureGenerator())
        yield Wait(f"draws-{size}", f"exact discrete Gaussian noise, d = {size:,}", earlier, None, lambda of=draws: of)

    @cache
    def small() -> str:
        path = folder / "small.json"
        rows, columns = table(6)
        dpm.release(rows, columns, epsilon=10.0, insecure_seed=1).save(path)
        return str(path)

    command = ("-m", "dpmoments")
    yield Wait("help", "`dpmoments --help`", ".85", 0.25, child(*command, "--help"))
    yield Wait("version", "`dpmoments --version`", "", 0.25, child(*command, "--version"))
    yield Wait("show", "`dpmoments show`", "1.18", 0.6, lambda: child(*command, "show", small())())
    yield Wait("ols-command", "`dpmoments ols`", "1.69", None, lambda: child(*command, "ols", small(), "c5")())
    yield Wait("numpy", "`import numpy`", ".1", None, child("-c", "import numpy"))
    yield Wait("import", "`import dpmoments`", "", 0.35, child("-c", "import dpmoments"))
    yield Wait("first-release", "`import dpmoments`, first release", "1.2", 0.85, child("-c", FIRST))

    def predicted() -> Callable[[], Any]:
        frame = pd.DataFrame(table(100)[0][:PREDICTED], columns=[f"c{index}" for index in range(100)])
        fit = dpm.load(saved(folder, "between", 100)).ols("c99", [f"c{index}" for index in range(10)])
        return lambda: fit.get_prediction(frame).conf_int()

    yield Wait("predictions", f"{PREDICTED} predictions by test inversion", "", 0.5, predicted)


def lines(rows: list[Wait]) -> Iterator[str]:
    yield (
        f"{processor()}; seconds of processor time; {TURNS} turns; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"dpmoments {dpm.__version__}."
    )
    yield ""
    yield from head("| before | minimum | median | target | command", "lrrrrl")
    for row in rows:
        figures = f"{row.before} | {min(row.found):.2f} | {statistics.median(row.found):.2f} | {row.target or ''}"
        yield f"| {row.name} | {figures} | `{COMMAND} {row.key}` |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="print rows named so, or whose names begin so")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1, user_api="blas"):
        rows = list(waits(Path(name)))
        if only:
            rows = [row for row in rows if any(f"{row.key}-".startswith(f"{word}-") for word in only)]
        if not rows:
            parser.error(f"no row named {' or '.join(only)}")
        for turn in range(TURNS + 1):
            for row in rows:
                seconds = row.turn()
                print(f"turn {turn}: {row.key}: {seconds:.3f}", file=sys.stderr, flush=True)
                if turn:
                    row.found.append(seconds)
    if only:
        print("\n".join(lines(rows)))
    else:
        write_part(EVIDENCE / "scale.md", "waits", lines(rows))


if __name__ == "__main__":
    main()
