"""The tables of the page on typical ranges: real ones at codebook bounds, synthetic ones, and when each was first looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import Numeric
from dpmoments.schema.schema import Schema

# Bounds that a clinic would write down; sex is coded 1 and 2.
DIABETES = {
    "age": (18, 100), "sex": (1, 2), "bmi": (10, 60), "bp": (40, 200), "s1": (50, 500), "s2": (10, 400), "s3": (10, 150),
    "s4": (1, 15), "s5": (2, 8), "s6": (40, 400), "progression": (0, 400),
}  # fmt: skip
# Bounds of a feature of a nucleus: mean, standard error and worst value of ten measurements.
NUCLEI = {
    "radius": (0, 50), "texture": (0, 50), "perimeter": (0, 300), "area": (0, 5000), "smoothness": (0, 0.5),
    "compactness": (0, 2), "concavity": (0, 2), "concave points": (0, 0.5), "symmetry": (0, 1),
    "fractal dimension": (0, 0.3),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """A table and its schema without typical ranges."""

    name: str
    frame: pa.Table
    schema: Schema

    def cells(self, column: Numeric) -> FloatArray:
        return np.clip(self.frame[column.name].to_numpy().astype(np.float64), *column.bounds)


def tables() -> list[Table]:
    """Real tables at codebook bounds, and synthetic ones at loose ones."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    wine, airfoil, adult = dpm.datasets.wine(), dpm.datasets.airfoil(), dpm.datasets.adult()
    raw = load_diabetes(scaled=False)
    cancer = load_breast_cancer()
    names = [str(name) for name in cancer.feature_names]
    nuclei = {}
    for name in names:
        lower, upper = next(bounds for key, bounds in NUCLEI.items() if key in name)
        nuclei[name] = lower, upper * (0.2 if "error" in name else 1.0)
    of_numbers = Schema(*(column for column in adult.schema.columns if isinstance(column, Numeric)))
    return [
        Table("wine", wine.frame, wine.schema),
        Table("airfoil", airfoil.frame, airfoil.schema),
        of_codebook("diabetes", np.column_stack([raw.data, raw.target]), DIABETES),
        of_codebook("breast cancer", cancer.data, nuclei),
        Table("adult, numbers", adult.frame, of_numbers),
        *synthetic_tables(),
    ]


def looked_at_tables() -> list[Table]:
    """Tables of a second round: on digits, where most corners are nearly always 0, the rule got its third constant."""
    from sklearn.datasets import load_digits, load_iris

    iris, digits, adult = load_iris(), load_digits(), dpm.datasets.adult("train")
    lengths = {"sepal length": (0, 10), "sepal width": (0, 10), "petal length": (0, 10), "petal width": (0, 5)}
    rng = np.random.default_rng(9)
    common = rng.normal(size=(10_000, 1))
    heavy = (rng.standard_t(4, size=(10_000, 8)) + common) / math.sqrt(3.0)
    loose, looser = np.geomspace(20.0, 60.0, 8), np.geomspace(10.0, 200.0, 8)
    spend = np.where(rng.random((10_000, 8)) < 0.7, 0.0, np.exp(rng.normal(size=(10_000, 8)) + common))
    return [
        of_codebook("iris", iris.data, lengths),
        of_codebook("digits", digits.data, {f"pixel {place}": (0, 16) for place in range(64)}),
        Table("adult, all columns", adult.frame, adult.schema),
        of_columns("t with 4 degrees, 10 to 200 sd", heavy, -looser / 2.0, looser),
        of_columns("7 of 10 are 0, 20 to 60 sd", spend / spend.std(axis=0), np.zeros(8), loose),
    ]


def unseen_tables() -> list[Table]:
    """Tables that nobody looked at before all constants of the rule were chosen."""
    rng = np.random.default_rng(31)
    shares = rng.beta(2.0, 3.0, size=(3_000, 6)) + 0.5 * rng.beta(2.0, 3.0, size=(3_000, 1))
    low_rank = rng.normal(size=(8_000, 3)) @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(8_000, 12))
    low_rank /= low_rank.std(axis=0)
    widths = np.exp(rng.uniform(np.log(5.0), np.log(80.0), 12))
    income = np.exp(rng.normal(size=(50_000, 6)) + 0.7 * rng.normal(size=(50_000, 1)))
    income /= income.std(axis=0)
    mixed = of_columns("", low_rank[:, :5], -widths[:5] / 2.0, widths[:5])
    region = [f"region {code}" for code in range(9)]
    flags = low_rank[:, 5:8] > np.array([0.0, 0.7, 1.5])
    codes = np.clip(np.round(low_rank[:, 8] + 4.0 + rng.normal(size=8_000)), 0, 8).astype(int)
    frame = mixed.frame.append_column("region", pa.array([region[code] for code in codes]))
    for place in range(3):
        frame = frame.append_column(f"flag {place}", pa.array(flags[:, place]))
    columns = [*mixed.schema.columns, dpm.Categorical("region", region)]
    columns += [dpm.Boolean(f"flag {place}") for place in range(3)]
    return [
        of_columns("sums of shares, tight", shares, np.zeros(6), np.full(6, 1.5)),
        of_columns("rank 3 of 12, 5 to 80 sd", low_rank, -widths / 2.0, widths),
        of_columns("incomes, 30 to 3000 sd", income, np.zeros(6), np.geomspace(30.0, 3000.0, 6)),
        Table("numbers, levels and flags", frame, Schema(*columns)),
    ]


def synthetic_tables() -> Iterable[Table]:
    """Correlated columns at bounds from tight to loose: normal, lognormal, and one where all are equally loose."""
    for name, n_rows, looseness, skewed in (
        ("normal, 4 to 100 sd", 2_000, np.geomspace(4.0, 100.0, 10), False),
        ("the same, more rows", 100_000, np.geomspace(4.0, 100.0, 10), False),
        ("lognormal, 5 to 50 sd", 5_000, np.geomspace(5.0, 50.0, 8), True),
        ("normal, all 30 sd", 20_000, np.full(6, 30.0), False),
    ):
        d = len(looseness)
        rng = np.random.default_rng([d, n_rows])
        factors = rng.normal(size=(n_rows, d)) + 0.8 * rng.normal(size=(n_rows, 1))
        values = np.exp(0.5 * factors) if skewed else factors
        values = (values - values.mean(axis=0)) / values.std(axis=0)
        lower = np.full(d, np.floor(values.min())) if skewed else -0.4 * looseness
        yield of_columns(name, values, lower, looseness)


def of_codebook(name: str, values: FloatArray, bounds: Mapping[str, tuple[float, float]]) -> Table:
    """A table of numbers with these names and bounds."""
    columns = (Numeric(column, *public) for column, public in bounds.items())
    return Table(name, pa.table(dict(zip(bounds, values.T, strict=True))), Schema(*columns))


def of_columns(name: str, values: FloatArray, lower: FloatArray, widths: FloatArray) -> Table:
    """A table of numbers with bounds from ``lower`` on, that wide."""
    ends = zip(lower.tolist(), (lower + widths).tolist(), strict=True)
    return of_codebook(name, values, {f"x{place}": bounds for place, bounds in enumerate(ends)})
