"""Six kinds of files taken from ``init`` to the report, as a new user would.

``python -m benchmarks.practice.six_files`` makes an SPSS survey, a panel in SQLite, a German CSV with dates, an Excel sheet, a
Parquet file with 59 states and a Stata trial, runs every command on each, and prints what a reader meets: exit codes that are not
0, and printed numbers that the API does not have. Some three minutes; nothing is kept.
"""

from __future__ import annotations

import io
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from dpmoments.cli.entry import main as command

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from contracts.printed import Asked, read_answers
from support.workbooks import workbook

EPSILONS = (0.3, 1.0, 4.0)


@dataclass(frozen=True)
class Journey:
    """A file, what its codebook says of each column, and what is asked."""

    name: str
    make: Callable[[Path], tuple[list[str], pd.DataFrame]]  # writes the file; the words that name it, and its rows
    public: dict[str, dict[str, object]]  # entries of the schema by column
    asked: tuple[str, list[str], str]  # target, regressors, groups
    reading: list[str] = field(default_factory=list)


def number(lower: float, upper: float, **more: object) -> dict[str, object]:
    return {"kind": "numeric", "lower": lower, "upper": upper} | more


def levels(*names: str) -> dict[str, object]:
    return {"kind": "categorical", "levels": [*names]}


def survey(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """Items of a questionnaire that depend on one trait, some of them missing."""
    import pyreadstat

    rng, n = np.random.default_rng(1), 2_800
    trait = rng.normal(0.0, 1.0, n)
    table = pd.DataFrame({f"A{i}": np.clip(np.round(3.5 + trait + rng.normal(0.0, 1.0, n)), 1, 6) for i in range(1, 6)})
    table["gender"] = rng.choice([1.0, 2.0], n)
    table["age"] = np.round(rng.gamma(6.0, 5.0, n) + 12)
    table.loc[rng.random(n) < 0.03, "A2"] = np.nan
    labels = {f"A{i}": f"Item {i} of agreeableness" for i in range(1, 6)}
    pyreadstat.write_sav(table, str(folder / "survey.sav"), column_labels=labels)
    return [str(folder / "survey.sav")], table


def panel(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """Visits of persons in a database."""
    rng, n = np.random.default_rng(2), 4_000
    dose = rng.choice([0.0, 50.0, 100.0], n)
    table = pd.DataFrame(
        {
            "dose": dose,
            "site": rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2]),
            "pressure": 130.0 - 0.08 * dose + rng.normal(0.0, 12.0, n),
        }
    )
    with sqlite3.connect(folder / "panel.db") as connection:
        table.to_sql("visits", connection, index=False)
    words = ["--database", f"sqlite:///{folder / 'panel.db'}", "--query", "SELECT dose, site, pressure FROM visits"]
    return words, table


def hospital(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """A CSV with semicolons, decimal commas and German dates."""
    rng, n = np.random.default_rng(3), 3_000
    days = rng.integers(0, 1_400, n)
    table = pd.DataFrame(
        {
            "Aufnahme": pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D"),
            "Alter": rng.integers(18, 95, n),
            "Kosten": (rng.gamma(2.0, 350.0, n) + 0.2 * days).round(2),
            "Station": rng.choice(["A", "B", "Intensiv"], n, p=[0.55, 0.35, 0.1]),
        }
    )
    written = table.assign(Aufnahme=table["Aufnahme"].dt.strftime("%d.%m.%Y"))
    written.to_csv(folder / "hospital.csv", sep=";", decimal=",", index=False)
    return [str(folder / "hospital.csv")], table


def sheet(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """An Excel sheet of few rows."""
    rng, n = np.random.default_rng(4), 420
    table = pd.DataFrame(
        {
            "hours": rng.gamma(4.0, 3.0, n).round(1),
            "score": rng.integers(0, 101, n),
            "group": rng.choice(["control", "treated"], n),
        }
    )
    workbook(folder / "sheet.xlsx", [list(table.columns), *table.to_numpy(dtype=object).tolist()])
    return [str(folder / "sheet.xlsx")], table


STATES = [f"S{index:02}" for index in range(59)]


def states(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """A column of 59 levels, some of them rare."""
    rng, n = np.random.default_rng(5), 20_000
    share = rng.dirichlet(np.full(59, 0.7))
    state = rng.choice(59, n, p=share)
    table = pd.DataFrame(
        {
            "state": np.array(STATES)[state],
            "income": np.minimum(rng.lognormal(10.0 + 0.01 * state, 0.7), 250_000.0),
            "age": rng.integers(18, 90, n),
        }
    )
    table.to_parquet(folder / "states.parquet", index=False)
    return [str(folder / "states.parquet")], table


def trial(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """A trial of two arms with a skewed outcome and missing values."""
    rng, n = np.random.default_rng(6), 418
    arm = rng.choice(["drug", "placebo"], n)
    table = pd.DataFrame(
        {
            "arm": arm,
            "age": rng.uniform(26.0, 79.0, n).round(1),
            "bili": rng.lognormal(0.6, 1.0, n).clip(0.3, 28.0).round(1),
            "alive": (rng.random(n) < 0.6).astype(float),
        }
    )
    table.loc[rng.random(n) < 0.1, "bili"] = np.nan
    table.to_stata(folder / "trial.dta", write_index=False)
    return [str(folder / "trial.dta")], table


ITEM = number(1, 6, missing="available")
GERMAN = ["--delimiter", ";", "--decimal", ","]
JOURNEYS = (
    Journey(
        "SPSS survey",
        survey,
        {f"A{i}": ITEM for i in range(1, 6)} | {"gender": levels("1", "2"), "age": number(12, 90)},
        ("A1", ["A2", "age", "gender"], "gender"),
    ),
    Journey(
        "SQLite panel",
        panel,
        {"dose": number(0, 100), "site": levels("north", "south", "east"), "pressure": number(60, 220)},
        ("pressure", ["dose", "site"], "site"),
    ),
    Journey(
        "German CSV",
        hospital,
        {
            "Aufnahme": {"kind": "date", "lower": "2015-01-01", "upper": "2025-01-01", "format": "%d.%m.%Y"},
            "Alter": number(0, 110),
            "Kosten": number(0, 10_000),
            "Station": levels("A", "B", "Intensiv"),
        },
        ("Aufnahme", ["Alter", "Kosten", "Station"], "Station"),
        GERMAN,
    ),
    Journey(
        "Excel sheet",
        sheet,
        {"hours": number(0, 60), "score": number(0, 100), "group": levels("control", "treated")},
        ("score", ["hours", "group"], "group"),
    ),
    Journey(
        "59 states",
        states,
        {"state": levels(*STATES), "income": number(0, 250_000), "age": number(16, 100)},
        ("income", ["age"], "state"),
    ),
    Journey(
        "Stata trial",
        trial,
        {
            "arm": levels("drug", "placebo"),
            "age": number(18, 90),
            "bili": number(0, 30, missing="available"),
            "alive": {"kind": "boolean"},
        },
        ("bili", ["age", "arm"], "arm"),
    ),
)


def run(*words: str) -> tuple[int, str]:
    """Exit code and standard error of a command."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        status = command([*words])
    return status, " ".join(said.getvalue().split())


def meets(journey: Journey, epsilon: float, folder: Path) -> list[str]:
    """What a reader meets that is not as it should be, in the order of the commands."""
    table_words, table = journey.make(folder)
    schema, release = str(folder / "schema.yaml"), str(folder / "release.json")
    steps = [run("init", *table_words, *journey.reading, "--output", schema)]
    drafted = yaml.safe_load(Path(schema).read_text(encoding="utf-8"))
    columns = [{"name": name} | entries for name, entries in journey.public.items()]
    Path(schema).write_text(yaml.safe_dump(drafted | {"columns": columns}), encoding="utf-8")
    budget = ["--epsilon", str(epsilon), "--neighbors", "add_remove"]
    target, regressors, by = journey.asked
    formula = f"{target} ~ {' + '.join(regressors)}"
    words = [
        ["preflight", *table_words, "--schema", schema],
        ["forecast", "--schema", schema, "--n-rows", str(len(table)), *budget],
        [
            "release",
            *table_words,
            "--schema",
            schema,
            *budget,
            "--no-ledger",
            "--insecure-seed",
            "1",
            "--output",
            release,
        ],
        ["show", release],
        ["verify", release],
        ["report", release, "-o", str(folder / "report.html"), "--regression", formula, "--groups", f"{by}:{target}"],
    ]
    steps += [run(*each) for each in words]
    names = ["init", *(each[0] for each in words)]
    failed = [f"{name}: exit code {code}: {said}" for name, (code, said) in zip(names, steps, strict=True) if code]
    if any(line.startswith("release") for line in failed):
        return failed
    return failed + list(read_answers(Asked(table, target, regressors, by), Path(release), 0.95))


def main() -> None:
    """Print what a reader of each file meets at each budget."""
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:]
    for journey in [each for each in JOURNEYS if not chosen or each.name in chosen]:
        for epsilon in EPSILONS:
            with tempfile.TemporaryDirectory() as folder:
                found = meets(journey, epsilon, Path(folder))
            print(f"{journey.name}, ε = {epsilon:g}: {len(found)} found", *found, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
