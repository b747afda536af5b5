"""Tables on which CoinPress is tried: those its rules were tuned on, and those held out until the rules were frozen."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm

Draw = Callable[[np.random.Generator], "Case"]
EPSILON_ONE: Mapping[str, float] = {"epsilon": 1.0, "delta": 1e-6}


@dataclass(frozen=True)
class Case:
    """One table, how it is described to the public, and the covariance that a release is compared with."""

    data: Any
    schema: dpm.Schema
    truth: np.ndarray
    numeric: np.ndarray
    """Which features are numbers, not flags."""
    mechanism: Any = "coinpress"
    mean: bool = True


@dataclass(frozen=True)
class Setting:
    name: str
    group: str
    draw: Draw
    budget: Mapping[str, float] = field(default_factory=lambda: dict(EPSILON_ONE))
    neighbors: str = "add_remove"
    held_out: bool = False
    trials: int = 20


def decades(sd: float) -> tuple[float, float]:
    """What someone says who knows a standard deviation within a factor of ten or so."""
    power = math.floor(math.log10(sd))
    return 10.0 ** (power - 1), 10.0 ** (power + 2)


def array_case(numbers: np.ndarray, flags: np.ndarray | None = None, scales: Any = None) -> Case:
    k = numbers.shape[1]
    table = numbers if flags is None else np.column_stack([numbers, flags])
    columns: list[Any] = []
    for j in range(k):
        low, high = decades(float(numbers[:, j].std())) if scales is None else scales
        columns.append(
            dpm.Numeric(f"x{j}", scale=(low, high), radius=max(10 * high, 2 * abs(float(numbers[:, j].mean()))))
        )
    columns += [dpm.Boolean(f"flag{j}") for j in range(table.shape[1] - k)]
    frame = pd.DataFrame(table, columns=[column.name for column in columns])
    for column in columns[k:]:
        frame[column.name] = frame[column.name].astype(bool)
    truth = np.atleast_2d(np.cov(table.T.astype(float), bias=True))
    return Case(frame, dpm.Schema(*columns), truth, np.arange(table.shape[1]) < k)


def frame_case(frame: pd.DataFrame, numbers: Sequence[str], levels: Mapping[str, Sequence[str]] | None = None) -> Case:
    """Columns of a real table: numbers by their scale, categories by their levels."""
    columns: list[Any] = []
    features: list[np.ndarray] = []
    for name in numbers:
        cells = frame[name].to_numpy(dtype=float)
        low, high = decades(float(cells.std()))
        columns.append(dpm.Numeric(name, scale=(low, high), radius=max(10 * high, 2 * abs(float(cells.mean())))))
        features.append(cells)
    for name, known in (levels or {}).items():
        columns.append(dpm.Categorical(name, list(known)))
        features += [(frame[name] == level).to_numpy(dtype=float) for level in known]
    truth = np.atleast_2d(np.cov(np.array(features), bias=True))
    return Case(
        frame[[column.name for column in columns]], dpm.Schema(*columns), truth, np.arange(len(features)) < len(numbers)
    )


# ---- rows of known law -------------------------------------------------------------------------------------------------------


def published(n: int, d: int, spread: float, skewed: bool) -> Draw:
    """The paper's cells: rows of mean zero, I ⪯ Σ ⪯ spread·I, compared with the law's covariance."""

    def draw(rng: np.random.Generator) -> Case:
        table, truth = rng.normal(size=(n, d)), np.eye(d)
        if skewed:
            q, r = np.linalg.qr(rng.normal(size=(d, d)))
            q, values = q * np.sign(np.diag(r)), np.r_[np.full(d // 2, spread), np.ones(d - d // 2)]
            truth, table = (q * values) @ q.T, table @ ((q * np.sqrt(values)) @ q.T)
        mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, spread))
        return Case(table, dpm.Schema.unbounded(d), truth, np.full(d, True), mechanism, mean=False)

    return draw


def spectrum(n: int, values: np.ndarray) -> Draw:
    """Normal rows with those eigenvalues in random directions, K ten times the range."""

    def draw(rng: np.random.Generator) -> Case:
        d = len(values)
        q, r = np.linalg.qr(rng.normal(size=(d, d)))
        q = q * np.sign(np.diag(r))
        table = rng.normal(size=(n, d)) @ ((q * np.sqrt(values)) @ q.T)
        mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(float(values.min()), 10 * float(values.max())))
        return Case(table, dpm.Schema.unbounded(d), (q * values) @ q.T, np.full(d, True), mechanism, mean=False)

    return draw


def tails(law: str, n: int, d: int) -> Draw:
    """Columns with tails heavier than normal, independent except where whole rows are far out."""

    def draw(rng: np.random.Generator) -> Case:
        if law == "t3":
            table = rng.standard_t(3, size=(n, d)) / math.sqrt(3.0)
        elif law == "lognormal":
            table = rng.lognormal(0.0, 1.0, size=(n, d))
        elif law == "contaminated":  # 5 % of rows at 10 standard deviations
            table = rng.normal(size=(n, d)) * np.where(rng.random(n) < 0.05, 10.0, 1.0)[:, None]
        elif law == "contaminated-2-30":
            table = rng.normal(size=(n, d)) * np.where(rng.random(n) < 0.02, 30.0, 1.0)[:, None]
        elif law == "laplace":
            table = rng.laplace(size=(n, d))
        elif law == "exponential":
            table = rng.exponential(size=(n, d)) ** 1.5
        elif law == "row-t4":
            table = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(4, size=n) / 2)[:, None]
        elif law == "pareto":
            table = rng.pareto(3.5, size=(n, d))
        else:
            raise ValueError(law)
        return array_case(table, scales=(0.1, 100.0))

    return draw


def flagged(n: int, shares: Sequence[float], d: int = 2) -> Draw:
    """Normal columns beside rare flags."""

    def draw(rng: np.random.Generator) -> Case:
        return array_case(
            rng.normal(size=(n, d)), np.column_stack([rng.random(n) < share for share in shares]), scales=(0.1, 100.0)
        )

    return draw


def numbered_flag(n: int, share: float, d: int = 2) -> Draw:
    """Normal columns beside a rare flag that the schema knows as a number with a scale."""

    def draw(rng: np.random.Generator) -> Case:
        return array_case(np.column_stack([rng.normal(size=(n, d)), rng.random(n) < share]), scales=(0.01, 100.0))

    return draw


def inflated(n: int, share: float, law: str = "lognormal", d: int = 3) -> Draw:
    """Normal columns beside one that is zero in most rows."""

    def draw(rng: np.random.Generator) -> Case:
        positive = rng.lognormal(0, 1, n) if law == "lognormal" else rng.poisson(3.0, n) + 1.0
        return array_case(
            np.column_stack([rng.normal(size=(n, d)), positive * (rng.random(n) < share)]), scales=(0.01, 100.0)
        )

    return draw


# ---- real tables -------------------------------------------------------------------------------------------------------------


def adult(numbers: Sequence[str], categories: Sequence[str]) -> Draw:
    def draw(rng: np.random.Generator) -> Case:
        del rng
        people = dpm.datasets.adult()
        frame = people.frame.to_pandas()
        known = {column.name: column.levels for column in people.schema.columns if isinstance(column, dpm.Categorical)}
        return frame_case(frame, numbers, {name: known[name] for name in categories})

    return draw


def sklearn_table(name: str, columns: int | None = None) -> Draw:
    def draw(rng: np.random.Generator) -> Case:
        del rng
        from sklearn import datasets

        table = getattr(datasets, f"load_{name}")(as_frame=True).data.iloc[:, :columns]
        return frame_case(table, list(table.columns))

    return draw


def statsmodels_table(name: str, leave_out: Iterable[str] = ()) -> Draw:
    """A table that ships with statsmodels, read from its file; every column as a number."""

    def draw(rng: np.random.Generator) -> Case:
        del rng
        spec = importlib.util.find_spec("statsmodels")
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(f"{name} ships with statsmodels: install it")
        path = Path(next(iter(spec.submodule_search_locations))) / "datasets" / name / f"{name}.csv"
        # Commas or tabs, by the table.
        frame = pd.read_csv(path, sep=None, engine="python", skipinitialspace=True).select_dtypes("number")
        frame.columns = [str(name).strip('" ') for name in frame.columns]
        kept = [c for c in frame.columns if c not in leave_out and frame[c].notna().all() and frame[c].std() > 0]
        return frame_case(frame.astype(dict.fromkeys(kept, float)), kept)

    return draw


WIDE = 10 * math.sqrt(10)
RHO: Mapping[str, float] = {"rho": 0.5}


def _published() -> list[Setting]:
    cells = [("isotropic", 3000, 10, WIDE, False, 0.5), ("skewed", 3000, 10, WIDE, True, 0.5)]
    cells += [("isotropic", 8000, 10, WIDE, False, 0.5), ("skewed", 8000, 10, WIDE, True, 0.5)]
    cells += [
        ("isotropic", 7000, 10, 1e4 * math.sqrt(10), False, 0.5),
        ("isotropic", 7000, 10, 1e6 * math.sqrt(10), False, 0.5),
    ]
    cells += [("isotropic", 8000, 10, WIDE, False, 0.05), ("isotropic", 8000, 10, WIDE, False, 0.01)]
    cells += [("skewed", 8000, 10, WIDE, True, 0.05), ("skewed", 7000, 10, 1e4 * math.sqrt(10), True, 0.5)]
    cells += [
        ("isotropic", 3000, 20, 10 * math.sqrt(20), False, 0.5),
        ("skewed", 3000, 20, 10 * math.sqrt(20), True, 0.5),
    ]
    return [
        Setting(
            f"{kind}, d = {d}, n = {n}, K = {spread:.3g}, ρ = {rho}",
            "published",
            published(n, d, spread, skewed),
            {"rho": rho},
            "replace_one",
            trials=100,
        )
        for kind, n, d, spread, skewed, rho in cells
    ]


def _settings() -> list[Setting]:
    found = _published()
    for law in ("t3", "lognormal", "contaminated"):
        for d in (2, 10, 50):
            for n in (500, 3000, 20_000):
                found.append(Setting(f"{law}, d = {d}, n = {n}", "tails", tails(law, n, d), RHO, trials=20))
    for d in (2, 5):
        for n in (1000, 3000, 10_000):
            found.append(
                Setting(f"5 % at 10 sd, d = {d}, n = {n}, ε = 1", "tails", tails("contaminated", n, d), trials=20)
            )
    for share in (0.001, 0.005, 0.01, 0.03):
        found.append(Setting(f"two normals, flag of {share:.1%}, n = 20,000", "flags", flagged(20_000, [share])))
    for epsilon in (0.3, 3.0, 10.0):
        budget = {"epsilon": epsilon, "delta": 1e-6}
        found.append(Setting(f"the same, flag of 0.5%, ε = {epsilon:g}", "flags", flagged(20_000, [0.005]), budget))
    found.append(
        Setting(
            "five normals, four flags of .3 to 3 %, n = 20,000", "flags", flagged(20_000, [0.003, 0.006, 0.01, 0.03], 5)
        )
    )
    for share in (0.005, 0.01, 0.03):
        for epsilon in (1.0, 3.0, 10.0):
            budget = {"epsilon": epsilon, "delta": 1e-6}
            found.append(
                Setting(
                    f"two normals, number of 0 or 1 ({share:.1%}), n = 20,000, ε = {epsilon:g}",
                    "flags",
                    numbered_flag(20_000, share),
                    budget,
                )
            )
    for epsilon in (0.3, 1.0, 3.0, 10.0):
        budget = {"epsilon": epsilon, "delta": 1e-6}
        found.append(
            Setting(
                f"three normals, a lognormal zero in 95 %, n = 6000, ε = {epsilon:g}",
                "flags",
                inflated(6000, 0.05),
                budget,
            )
        )
    for epsilon in (1.0, 3.0):
        budget = {"epsilon": epsilon, "delta": 1e-6}
        found.append(
            Setting(
                f"Adult: age, hours; race, ε = {epsilon:g}",
                "real",
                adult(["age", "hours-per-week"], ["race"]),
                budget,
                trials=10,
            )
        )
    return found + _held_out()


def _held_out() -> list[Setting]:
    found: list[Setting] = []

    def add(name: str, group: str, draw: Draw, trials: int = 20, **rest: Any) -> None:
        found.append(Setting(name, group, draw, held_out=True, trials=trials, **rest))

    for name, values in (
        ("geometric spectrum 1 to 1000", np.geomspace(1, 1000, 12)),
        ("one spike of 10⁴", np.r_[1e4, np.ones(9)]),
        ("one small direction of 10⁻³", np.r_[1e-3, np.ones(9)]),
        ("d = 30, half 100", np.r_[np.full(15, 100.0), np.ones(15)]),
    ):
        for n in (2000, 10_000):
            add(f"{name}, n = {n}", "spectra", spectrum(n, values), trials=50, budget=RHO, neighbors="replace_one")
    for law in ("laplace", "exponential", "row-t4", "pareto", "contaminated-2-30"):
        for d, n in ((3, 2000), (8, 5000), (25, 20_000)):
            add(f"{law}, d = {d}, n = {n}", "tails", tails(law, n, d), budget=RHO)
            add(f"{law}, d = {d}, n = {n}, ε = 1", "tails", tails(law, n, d))
    for shares in ((0.002,), (0.02,), (0.004, 0.004, 0.004), (0.0005, 0.05)):
        add(
            f"four normals, flags of {', '.join(f'{s:.2%}' for s in shares)}, n = 50,000",
            "flags",
            flagged(50_000, shares, 4),
        )
        add(
            "the same, n = 8000, replace-one, ρ = 0.5",
            "flags",
            flagged(8000, shares, 4),
            budget=RHO,
            neighbors="replace_one",
        )
    for n in (4000, 40_000):
        add(f"five normals, a Poisson zero in 98 %, n = {n}", "flags", inflated(n, 0.02, "poisson", 5))
    for epsilon in (0.3, 1.0, 3.0, 10.0):
        budget = {"epsilon": epsilon, "delta": 1e-6}
        real: list[tuple[str, Draw]] = [
            ("Fair's affairs", statsmodels_table("fair")),
            ("RAND health insurance", statsmodels_table("randhie")),
            (
                "Adult: all six numbers",
                adult(["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"], []),
            ),
            ("Adult: age, hours; occupation, sex", adult(["age", "hours-per-week"], ["occupation", "sex"])),
            ("Adult: education-num; native-country", adult(["education-num"], ["native-country"])),
            ("Election study 1996", statsmodels_table("anes96")),
            ("Wine", sklearn_table("wine")),
            ("Diabetes", sklearn_table("diabetes")),
            ("Breast cancer, ten columns", sklearn_table("breast_cancer", 10)),
            ("Iris", sklearn_table("iris")),
        ]
        for name, draw in real:
            add(f"{name}, ε = {epsilon:g}", "real", draw, trials=10, budget=budget)
    return found


SETTINGS = _settings()
